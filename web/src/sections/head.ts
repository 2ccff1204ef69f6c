/** The top of the page: what was asked, what was found, and whether it may be used. */

import { answer, type Segment } from "../answer";
import { type Context, targetName } from "../context";
import { chip, h } from "../dom";
import * as format from "../format";
import type { Group } from "../standing";
import * as theme from "../theme";
import { verdict } from "../validity";
import type { View } from "../view";

/** The bar with the product's name and the theme's button. */
export function bar(): HTMLElement {
  const button = h("button", { type: "button", class: "theme-toggle" });
  const label = (): void => {
    button.textContent = theme.current() === "dark" ? "Light" : "Dark";
    button.setAttribute("aria-label", `switch to ${theme.current() === "dark" ? "light" : "dark"} colours`);
  };
  button.addEventListener("click", () => theme.toggle());
  theme.onChange(label);
  label();
  return h("header", { class: "bar" }, h("span", { class: "brand" }, "cachedyno"), button);
}

function segment({ text, style }: Segment): Node {
  if (style === "target") return targetName(text);
  if (style === "figure") return h("span", { class: "figure" }, text);
  if (style === "doubt") return h("span", { class: "doubt" }, text);
  return document.createTextNode(text);
}

function answerItem(context: Context, group: Group): HTMLElement {
  const segments = answer(group, context.view.equivalence_zone);
  const said: Segment[] = segments.length > 0 ? segments : [{ text: "nothing could be compared", style: "doubt" }];
  const when = format.load(group.load);
  return h(
    "li",
    {},
    h("p", { class: "answer-load" }, context.manyProfiles ? `${group.workload} · ${when}` : `At ${when}`),
    h("p", { class: "answer-text" }, said.map((piece) => segment(piece)), "."),
  );
}

/** A sentence of the view, in which a store's name is set as everywhere. */
function said(sentence: string, target: string): HTMLElement {
  const rest = sentence.startsWith(target) ? sentence.slice(target.length) : ` ${sentence}`;
  return h("li", {}, h("p", { class: "answer-text" }, targetName(target), rest, "."));
}

/** What was found where the view has sentences of its own; null where it has none. */
function found(context: Context): HTMLElement | null {
  const { ramps, searches } = context.view;
  if (searches !== undefined) {
    const of = (target: string): string => (searches.length > 1 ? ` of ${target}` : "");
    const peaks = searches.flatMap((s) => (s.peak_per_s === null ? [] : [`Peak${of(s.target)} without regard for limits: ${format.rate(s.peak_per_s)} requests/s.`]));
    return h("div", {}, h("ul", { class: "answers" }, searches.map((s) => said(s.sentence, s.target))), peaks.map((peak) => h("p", { class: "hint" }, peak)));
  }
  if (ramps === undefined || ramps.length === 0) return null;
  const many = new Set(ramps.map((ramp) => ramp.workload)).size > 1;
  const item = (ramp: (typeof ramps)[number]): HTMLElement => {
    const built = said(ramp.sentence, ramp.target);
    if (many) built.prepend(h("p", { class: "answer-load" }, ramp.workload));
    return built;
  };
  return h(
    "div",
    {},
    h("ul", { class: "answers" }, ramps.map(item)),
    h("p", { class: "hint" }, "In brackets: the interval, from the stage that a store bore to the first that was too much for it, over blocks."),
  );
}

function answers(context: Context): HTMLElement {
  const sentences = found(context);
  if (sentences !== null) return sentences;
  if (context.groups.length === 0) {
    return h("p", { class: "answer-none" }, "Nothing was measured. The failures below say why.");
  }
  return h(
    "div",
    {},
    h("ul", { class: "answers" }, context.groups.map((group) => answerItem(context, group))),
    h(
      "p",
      { class: "hint" },
      "In brackets: how many times as fast as the next store, with the 95 % interval of that ratio.",
    ),
  );
}

function facts(view: View): HTMLElement {
  const entries: [string, string | HTMLElement][] = [
    ["Scale", view.scale],
    ["Blocks", String(view.blocks)],
    ["Measured", format.when(view.started_unix_ms)],
    ["Took", `${format.span(view.took_s)}${view.resumed === true ? " (resumed)" : ""}`],
    ["State", view.status === "complete" ? view.status : chip("warn", view.status)],
    ["Run", view.run],
    ["Tool", view.tool],
  ];
  return h(
    "dl",
    { class: "facts" },
    entries.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))),
  );
}

/** Title, question, answers, validity and the facts of the run. */
export function head(context: Context): HTMLElement {
  const { view } = context;
  return h(
    "section",
    { id: "answer", "aria-labelledby": "title" },
    h("h1", { id: "title" }, view.title),
    view.question === "" ? null : h("p", { class: "question" }, view.question),
    view.validity === "valid" ? [answers(context), verdict(view)] : [verdict(view), answers(context)],
    facts(view),
  );
}
