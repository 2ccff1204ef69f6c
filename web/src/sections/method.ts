/** The method of measurement in words, enough to repeat it. */

import type { Context } from "../context";
import { cards, h, prose, section, sub } from "../dom";
import * as format from "../format";
import type { View } from "../view";

const DRAWN: Record<string, string> = {
  inside: "values are generated inside the timed span, so rates and response times include their generation",
  outside: "values are generated outside the timed span, so rates and times exclude their generation",
};

function generation(view: View): string[] {
  return Object.entries(view.generation).map(
    ([profile, where]) => `In the profile ${profile}, ${DRAWN[where] ?? `values are generated ${where} the timed span`}.`,
  );
}

/** The command line with shell quoting. */
export function commandLine(words: readonly string[]): string {
  return words
    .map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`))
    .join(" ");
}

function rules(view: View): HTMLElement | null {
  if (view.rules.length === 0) return null;
  return h(
    "details",
    { class: "group" },
    h("summary", {}, h("span", { class: "group-name" }, "Rules that decide whether a run is valid"), sub(format.plural(view.rules.length, "rule"))),
    cards([["Rule", ({ name }) => name], ["Limit", ({ limit }) => limit], ["Beyond it", ({ meaning }) => prose(meaning)]], [view.rules]),
  );
}

/** The section on the method, always present. */
export function method(context: Context): HTMLElement {
  const { view } = context;
  const zone = format.percent(view.equivalence_zone);
  const ofBlocks = [
    `Each of the ${format.plural(view.blocks, "block")} measures every store at every load once, in random order, each time on a new store with new data.`,
    "A value is the geometric mean over blocks with its 95 % interval, within the lowest and the highest block: with fewer than 6 blocks, that is their range. Fewer than 3 blocks give none. A latency curve merges the distributions of all blocks.",
    `Ratios within ±${zone} count as equal; “undecided” means that there are not enough blocks to decide. Verdicts are corrected for the number of comparisons.`,
  ];
  const searched = [
    `Each of the ${format.plural(view.blocks, "block")} searches every store once, in random order. Each probe depends on the earlier ones, all on the same filled store unless it dies.`,
    "A probe is judged by the share of its requests beyond each limit, with its 95 % interval; correlated slow requests count as fewer.",
    "The answer is the rate at which that share crosses the allowed share, on a line through the confirmed probes; its interval is over the confirmation rounds, or over blocks if there are several. A long probe just below it must also pass.",
  ];
  const sentences = [
    ...(view.searches === undefined ? ofBlocks : searched),
    ...generation(view),
    view.stopped_because === "" ? "" : `No more blocks were added: ${view.stopped_because}.`.replace("..", "."),
  ].filter((text) => text !== "");
  return section(
    "method",
    "How it was measured",
    h("ul", { class: "prose" }, sentences.map((text) => h("li", {}, text))),
    h(
      "dl",
      { class: "facts" },
      h("div", {}, h("dt", {}, "Study"), h("dd", {}, view.study)),
      h("div", {}, h("dt", {}, "Profiles"), h("dd", {}, format.list(view.profiles))),
      h("div", {}, h("dt", {}, "Seed"), h("dd", {}, view.seed)),
    ),
    view.source === "" ? null : h("p", { class: "hint" }, `Source of the study: ${view.source}`),
    view.command.length === 0 ? null : h("pre", { class: "command" }, h("code", {}, commandLine(view.command))),
    rules(view),
  );
}
