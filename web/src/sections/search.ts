/** Every probe of a search, in their order. */

import type { Context } from "../context";
import { chip, h, labelled, prose, section, tableHead } from "../dom";
import * as format from "../format";
import type { ProbeVerdict, ProbeView, SearchView, Value } from "../view";

const TONES: Record<ProbeVerdict, "good" | "bad" | "doubt"> = { holds: "good", missed: "bad", broke: "bad", undecided: "doubt" };

/** What verdicts mean, in the order in which they are explained. */
const MEANINGS: readonly [ProbeVerdict, string][] = [
  ["holds", "no more requests are beyond the limit than may be"],
  ["missed", "more requests are beyond it than may be, or a queue grew"],
  ["undecided", "neither is certain"],
  ["broke", "it failed, or answered nothing"],
];

/** A rest that another one follows, since the store had not come to rest. */
const isSlowRest = (probe: ProbeView): boolean => probe.reason === "still slow";

/** Probes as they are listed: of rests that follow each other because the store was still slow one. */
function grouped(probes: readonly ProbeView[]): [ProbeView, ...ProbeView[]][] {
  const groups: [ProbeView, ...ProbeView[]][] = [];
  for (const probe of probes) {
    const last = groups[groups.length - 1];
    if (last !== undefined && isSlowRest(last[0]) && isSlowRest(probe)) last.push(probe);
    else groups.push([probe]);
  }
  return groups;
}

/** What the verdicts that occur mean, and which numbers are not listed. */
function hints(found: SearchView): string[] {
  const occurring = MEANINGS.filter(([verdict]) => found.probes.some((probe) => probe.verdict === verdict));
  const meanings = occurring.map(([verdict, text]) => `${verdict}: ${text}`).join("; ");
  const listed = found.probes.filter((probe) => probe.purpose === "rest").length;
  return [
    `${format.plural(found.tried, "probe")}, ${found.rests} of them rests. Limits: ${found.limits.join(" and ")}. Each probe follows from those before it.`,
    ...(meanings === "" ? [] : [`Verdicts are 95 % certain, and requests of one burst, which are slow together, count as few: ${meanings}.`]),
    ...(listed < found.rests ? ["Numbers that are not listed are rests after which the store answered as it does without load."] : []),
  ];
}

function row(group: [ProbeView, ...ProbeView[]], ofBlocks: boolean): HTMLElement {
  const probe = group[group.length - 1] as ProbeView;
  const block = ofBlocks ? `${probe.block + 1}.` : "";
  const number = block + (group.length === 1 ? `${probe.number}` : `${group[0].number}–${probe.number}`);
  const reason = group.length === 1 ? (probe.failure ?? probe.reason) : `slow, ${group.length} times`;
  const time = (of: number | Value | null): string => (of === null ? format.NONE : format.timeOf(of));
  const isJudged = probe.purpose !== "peak" && probe.beyond.length > 0;
  return h(
    "tr",
    {},
    h("th", { scope: "row" }, h("div", {}, number, h("span", { class: "sub" }, probe.purpose))),
    labelled("Rate/s", probe.rate_per_s === null ? format.NONE : format.count(probe.rate_per_s)),
    labelled("Answered/s", format.rate(probe.answered_per_s)),
    labelled("p50", time(probe.response_ns_p50)),
    labelled("p99", time(probe.response_ns_p99)),
    labelled("Beyond the limit", isJudged ? probe.beyond.map((b) => format.percent(b.share)).join(", ") : format.NONE),
    labelled(
      "Verdict",
      probe.verdict === null ? h("span", { class: "none" }, format.NONE) : chip(TONES[probe.verdict], probe.verdict),
      reason === null ? null : h("span", { class: "sub" }, prose(reason)),
    ),
  );
}

function table(found: SearchView, of: string): (HTMLElement | null)[] {
  const ofBlocks = found.by_block.length > 1;
  return [
    of === "" ? null : h("h3", {}, of),
    ...hints(found).map((text) => h("p", { class: "hint" }, text)),
    h(
      "table",
      { class: "cards" },
      tableHead(["Probe", "Rate/s", "Answered/s", "p50", "p99", "Beyond the limit", "Verdict"]),
      h("tbody", {}, grouped(found.probes).map((group) => row(group, ofBlocks))),
    ),
  ];
}

/** Tables of probes; null where nothing was searched for. */
export function search(context: Context): HTMLElement | null {
  const all = (context.view.searches ?? []).filter((found) => found.probes.length > 0);
  if (all.length === 0) return null;
  return section(
    "probes",
    "Probes",
    all.flatMap((found) => table(found, all.length > 1 ? found.target : "")),
  );
}
