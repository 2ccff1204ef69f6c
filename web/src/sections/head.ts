/** The top of the page: what was asked, what was found, and whether it may be used. */

import { answer, type Segment } from "../answer";
import { type Context, targetName } from "../context";
import { chip, h } from "../dom";
import * as format from "../format";
import { type Group, loadKey } from "../standing";
import * as theme from "../theme";
import { verdict } from "../validity";
import type { AloneView, View } from "../view";

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

/** Pieces of a sentence with its full stop; a figure keeps what ends its clause, so that no line begins with a comma. */
function sentence(pieces: readonly Segment[]): Node[] {
  let ended = "";
  return [...pieces, { text: ".", style: "plain" } as const].flatMap((piece, i, all): Node[] => {
    const text = piece.text.slice(ended.length);
    const next = all[i + 1];
    ended = piece.style === "figure" && next?.style === "plain" ? (/^[,;.]/.exec(next.text)?.[0] ?? "") : "";
    if (text === "") return [];
    const built = segment({ ...piece, text });
    return [ended === "" ? built : h("span", { class: "held" }, built, ended)];
  });
}

/** A sentence of the view, in which a store's name is set as everywhere. */
function said(sentence: string, target: string, place = ""): HTMLElement {
  const rest = sentence.startsWith(target) ? sentence.slice(target.length) : ` ${sentence}`;
  return h("li", {}, place === "" ? null : h("p", { class: "answer-load" }, place), h("p", { class: "answer-text" }, targetName(target), format.unbroken(rest), "."));
}

/** What a profile and load came to: the view's own sentence where it has one, else how its stores compare. */
function answerItem(context: Context, group: Group): HTMLElement {
  const when = format.load(group.load);
  const place = context.manyProfiles ? `${group.workload} · ${when}` : `At ${when}`;
  const alone = aloneAt(context.view, group);
  if (alone !== undefined) return said(alone.sentence, alone.target, place);
  const segments = answer(group, context.view.equivalence_zone);
  const told: Segment[] = segments.length > 0 ? segments : [{ text: "nothing could be compared", style: "doubt" }];
  return h("li", {}, h("p", { class: "answer-load" }, place), h("p", { class: "answer-text" }, sentence(told)));
}

function aloneAt(view: View, group: Group): AloneView | undefined {
  return (view.alone ?? []).find(({ workload, load }) => workload === group.workload && loadKey(load) === loadKey(group.load));
}

function hint(text: string): HTMLElement {
  return h("p", { class: "hint" }, text);
}

/** What searches found, each with its peak below. */
function ofSearches({ searches = [] }: View): HTMLElement[] {
  const of = (target: string): string => (searches.length > 1 ? ` of ${target}` : "");
  const peaks = searches.flatMap((s) => (s.peak_per_s === null ? [] : [`Peak${of(s.target)} without regard for limits: ${format.rate(s.peak_per_s)} requests/s.`]));
  return searches.length === 0 ? [] : [list(searches.map((s) => said(s.sentence, s.target))), ...peaks.map(hint)];
}

function ofRamps({ ramps = [] }: View): HTMLElement[] {
  if (ramps.length === 0) return [];
  const many = new Set(ramps.map((ramp) => ramp.workload)).size > 1;
  const items = ramps.map((ramp) => said(ramp.sentence, ramp.target, many ? ramp.workload : ""));
  // Sentences have brackets where there is an interval.
  const brackets = ramps.some((ramp) => ramp.sentence.includes("["));
  return [list(items), ...(brackets ? [hint("In brackets: the interval, from the stage that a store bore to the first that was too much for it, over blocks.")] : [])];
}

function ofGroups(context: Context): HTMLElement[] {
  const { groups, view } = context;
  if (groups.length === 0) return [];
  const alone = groups.filter((group) => aloneAt(view, group) !== undefined);
  const compared = groups.filter((group) => !alone.includes(group));
  const ratios = compared.some((group) => answer(group, view.equivalence_zone).some(({ style }) => style === "figure"));
  const ends = alone.some((group) => aloneAt(view, group)?.sentence.includes("["));
  const fewest = Math.min(...alone.flatMap((group) => group.operations.flatMap((op) => op.rows.map((row) => row.blocks))));
  return [
    list(groups.map((group) => answerItem(context, group))),
    ...(ratios ? [hint("In brackets: how many times as fast as the next store, with the 95 % interval of that ratio.")] : []),
    ...(ends ? [hint(`In brackets after a rate: the ${format.endsName(fewest)}.`)] : []),
  ];
}

function list(items: HTMLElement[]): HTMLElement {
  return h("ul", { class: "answers" }, items);
}

function answers(context: Context): HTMLElement {
  const { view } = context;
  const found = [...ofSearches(view), ...ofRamps(view), ...ofGroups(context)];
  if (found.length > 0) return h("div", {}, found);
  const where = view.failures.length > 0 ? "The failures below say why." : "The table of stores says why.";
  return h("p", { class: "answer-none" }, `Nothing was measured. ${where}`);
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
