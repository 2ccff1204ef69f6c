/** Every probe of a search, in their order. */

import type { Context } from "../context";
import { chip, h, labelled, prose, section, tableHead } from "../dom";
import * as format from "../format";
import type { ProbeView } from "../view";

const TONES: Record<string, "good" | "bad" | "doubt" | "plain"> = { holds: "good", missed: "bad", broke: "bad", undecided: "doubt" };

function row(probe: ProbeView): HTMLElement {
  const time = (ns: number | null): string => (ns === null ? format.NONE : format.time(ns));
  const isJudged = probe.purpose !== "peak" && probe.over_shares.length > 0;
  return h(
    "tr",
    {},
    h("th", { scope: "row" }, h("div", {}, `${probe.number}`, h("span", { class: "sub" }, probe.purpose))),
    labelled("Rate/s", probe.rate_per_s === null ? format.NONE : format.count(probe.rate_per_s)),
    labelled("Answered/s", format.rate(probe.answered_per_s)),
    labelled("p50", time(probe.response_ns_p50)),
    labelled("p99", time(probe.response_ns_p99)),
    labelled("Beyond the limit", isJudged ? probe.over_shares.map(format.percent).join(", ") : format.NONE),
    labelled(
      "Verdict",
      probe.verdict === "" ? h("span", { class: "none" }, format.NONE) : chip(TONES[probe.verdict] ?? "plain", probe.verdict),
      probe.reason === null ? null : h("span", { class: "sub" }, prose(probe.reason)),
    ),
  );
}

/** The table of probes; null in other runs than searches. */
export function search(context: Context): HTMLElement | null {
  const found = context.view.search;
  if (found === undefined || found.probes.length === 0) return null;
  return section(
    "probes",
    "Probes",
    h("p", { class: "hint" }, `Limits: ${found.limits.join(" and ")}. Each probe follows from those before it.`),
    h("table", { class: "cards" }, tableHead(["Probe", "Rate/s", "Answered/s", "p50", "p99", "Beyond the limit", "Verdict"]), h("tbody", {}, found.probes.map(row))),
  );
}
