/** The top of the page: question, answer and validity. */

import { type Context, targetName } from "../context";
import { chip, h } from "../dom";
import * as format from "../format";
import * as theme from "../theme";
import { verdict } from "../validity";
import type { Piece, Sentence, View } from "../view";

/** The bar with the product's name and the theme button. */
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

function piece({ text, style }: Piece): Node {
  if (style === "target") return targetName(text);
  if (style === "figure") return h("span", { class: "figure" }, format.unbroken(text));
  if (style === "doubt") return h("span", { class: "doubt" }, text);
  return document.createTextNode(format.unbroken(text));
}

/** A sentence of the answer, with its profile and load above it. */
function said({ place, pieces }: Sentence): HTMLElement {
  return h("li", {}, place === "" ? null : h("p", { class: "answer-load" }, place), h("p", { class: "answer-text" }, pieces.map(piece), "."));
}

function list(sentences: readonly Sentence[]): HTMLElement {
  return h("ul", { class: "answers" }, sentences.map(said));
}

function hint(text: string): HTMLElement {
  return h("p", { class: "hint" }, text);
}

/** Explanation of the brackets in sentences; empty without brackets. */
function brackets({ answer }: View): string {
  const figures = [...answer.summary, ...(answer.places ?? [])].flatMap((sentence) => sentence.pieces);
  return figures.some(({ text }) => text.includes("[")) ? "Numbers in brackets are 95 % intervals, or with few blocks the lowest and the highest block." : "";
}

function answers({ view }: Context): HTMLElement {
  const { summary, places = [] } = view.answer;
  if (summary.length === 0) {
    const where = view.failures.length > 0 ? "The failures below say why." : "The table of stores says why.";
    return h("p", { class: "answer-none" }, `Nothing was measured. ${where}`);
  }
  const about = brackets(view);
  return h("div", {}, list(summary), places.length === 0 ? null : list(places), about === "" ? null : hint(about));
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
