/** The part of the judged result that is about searches; see view.ts. */

import type { Value } from "./view";

/** Outcome of a search; all except `found` say why its rate cannot be used or does not exist. */
export type SearchOutcome =
  | "found"
  | "missed"
  | "not-judged"
  | "never-missed"
  | "clients"
  | "generator"
  | "unsettled"
  | "not-held"
  | "broken"
  | "nothing"
  | "ended-early";

/** Result of a search for the highest rate within limits. */
export interface SearchView {
  target: string;
  limits: string[];
  outcome: SearchOutcome;
  sentence: string;
  answer: Value | null;
  peak_per_s: number | null;
  /** Result of each block. */
  by_block: { block: number; outcome: SearchOutcome; answer: Value | null }[];
  /** All probes. */
  tried: number;
  /** Number of cool-downs; only those that were still slow are in `probes`. */
  rests: number;
  probes: ProbeView[];
}

/** Verdict of a probe. */
export type ProbeVerdict = "holds" | "missed" | "undecided" | "broke";

/** A probe of a search. */
export interface ProbeView {
  block: number;
  number: number;
  purpose: "peak" | "rest" | "bracket" | "confirm" | "hold";
  rate_per_s: number | null;
  length_s: number;
  answered_per_s: number;
  response_ns_p50: number | Value | null;
  response_ns_p99: number | Value | null;
  error_share: number | null;
  taken_share: number;
  /** Share of requests beyond each limit; empty at the peak. */
  beyond: { limit: string; share: number }[];
  /** Null if it is not judged. */
  verdict: ProbeVerdict | null;
  reason: "queue grew" | "still slow" | "others had CPUs" | "generator late" | null;
  /** Why it ended early. */
  failure: string | null;
}
