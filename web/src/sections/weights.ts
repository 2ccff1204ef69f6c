/** A reader's own weights: a slider and a number for each operation, and the order that follows. */

import { type Context, paint, targetName } from "../context";
import { chip, h } from "../dom";
import * as format from "../format";
import { counted, type Ranked, rank, standing, type Weights } from "../ranking";
import { validityMark } from "../validity";
import type { RankingView } from "../view";

/** The largest weight that is taken. */
const LARGEST = 1e6;

/** The next power of ten: where sliders end. */
function sliderEnd(weights: Weights): number {
  const largest = Math.max(...Object.values(weights));
  return largest > 0 ? 10 ** Math.ceil(Math.log10(largest)) : 1;
}

/** One operation's controls. */
interface Control {
  element: HTMLElement;
  /** Shows a weight, and its share of all. */
  show: (weights: Weights) => void;
}

function control(operation: string, end: number, changed: (weight: number) => void): Control {
  const id = `weight-${operation}`;
  const range = { type: "range", min: 0, max: end, step: end / 100 };
  const slider = h("input", { ...range, "aria-label": `weight of ${operation}, slider` });
  const number = h("input", { type: "number", id, min: 0, max: LARGEST, step: end / 20, inputmode: "decimal" });
  const share = h("span", { class: "weight-share" });
  const take = (text: string): void => {
    const weight = Number(text);
    const good = text.trim() !== "" && weight >= 0 && weight <= LARGEST;
    if (good) number.removeAttribute("aria-invalid");
    else number.setAttribute("aria-invalid", "true");
    if (good) changed(weight);
  };
  slider.addEventListener("input", () => take(slider.value));
  number.addEventListener("input", () => take(number.value));
  // What cannot be a weight was not taken: the last one that was comes back.
  number.addEventListener("change", () => changed(Number.NaN));
  const show = (weights: Weights): void => {
    const weight = weights[operation] ?? 0;
    slider.value = String(weight);
    if (Number(number.value) !== weight || number.value === "") number.value = String(weight);
    number.removeAttribute("aria-invalid");
    const all = counted(weights).reduce((sum, [, w]) => sum + w, 0);
    share.textContent = all === 0 ? format.NONE : format.percent(Number((weight / all).toPrecision(2)));
  };
  const element = h("div", { class: "weight" }, h("label", { for: id }, operation), slider, number, share);
  return { element, show };
}

function move(place: number, before: number): string {
  if (before < 0) return "not in its order";
  if (before === place) return `${before + 1}`;
  return place < before ? `${before + 1}, here ▲ higher` : `${before + 1}, here ▼ lower`;
}

function rankedRow(context: Context, ranked: Ranked, place: number, before: number): HTMLTableRowElement {
  const { ratio } = ranked;
  const said = standing(ratio, context.view.equivalence_zone);
  const against = [
    ratio === null ? format.NONE : h("span", { class: "nowrap" }, h("b", {}, format.ratio(ratio.center)), ` ${format.ratioInterval(ratio)}`),
    " ",
    chip(said === "undecided" ? "doubt" : "plain", said),
  ];
  return h(
    "tr",
    {},
    h("th", { scope: "row" }, h("div", { class: "place-store" }, h("span", {}, place + 1), targetName(context, ranked.target))),
    h("td", {}, place === 0 ? chip("plain", "highest score") : against),
    h("td", { class: before === place ? "none" : "moved" }, move(place, before)),
  );
}

/** What the order is against that by the study's weights, in a sentence. */
function comparedOrder(found: readonly Ranked[], study: readonly Ranked[]): string {
  if (found.length === 0) return "Every weight is 0, or no store has a rate of every operation that counts: there is no order.";
  const names = (order: readonly Ranked[]): string => order.map((r) => r.target).join("\n");
  if (names(found) === names(study)) return "The same order as by the study's weights.";
  const [first, before] = [found[0]?.target, study[0]?.target];
  const best = first === before ? `${first} is the best by both.` : `${first} instead of ${before} is the best.`;
  return `Another order than by the study's weights: ${best}`;
}

/** The stores without a place, and why; empty when all have one. */
function leftOut(ranking: RankingView, found: readonly Ranked[], weights: Weights): string {
  const names = counted(weights).map(([operation]) => operation);
  const missing = (ranking.rates ?? []).filter((r) => names.length > 0 && !found.some((f) => f.target === r.target));
  return missing
    .map(({ target, by_operation }) => {
      const lacks = names.filter((name) => by_operation[name] === undefined);
      return `${target} has no place: ${lacks.length === 0 ? "no block has all that counts" : `not measured at ${format.list(lacks)}`}.`;
    })
    .join(" ");
}

/** An order that follows the weights. */
interface Order {
  element: HTMLElement;
  show: (weights: Weights) => void;
}

function order(context: Context, ranking: RankingView): Order {
  const study = rank(context.view.advice_weights, ranking.rates ?? []);
  const places = new Map(study.map((r, i) => [r.target, i]));
  const said = h("p", { class: "order-said", role: "status" });
  const rows = h("tbody", {});
  const without = h("p", { class: "hint" });
  const size = `${ranking.sizes.join(", ")}: ${format.plural(ranking.clients, "concurrent request")}`;
  const columns = ["Place and store", "Score against the best", "By the study's weights"];
  const head = h("thead", {}, h("tr", {}, columns.map((name) => h("th", { scope: "col" }, name))));
  const table = h("table", { class: "ranking", "aria-label": `Order, ${size}` }, head, rows);
  const show = (weights: Weights): void => {
    const found = rank(weights, ranking.rates ?? []);
    said.textContent = comparedOrder(found, study);
    rows.replaceChildren(...found.map((r, i) => rankedRow(context, r, i, places.get(r.target) ?? -1)));
    without.textContent = leftOut(ranking, found, weights);
    paint(context.view, rows);
  };
  const profile = context.manyProfiles ? `, profile ${ranking.workload}` : "";
  return { element: h("div", { class: "order" }, h("h4", {}, `${size}${profile}`), said, table, without), show };
}

/** Weights to change and the orders that follow; null where the data hold no rates for it. */
export function ownWeights(context: Context): HTMLElement | null {
  const study = context.view.advice_weights;
  const rankings = context.view.rankings.filter((ranking) => (ranking.rates ?? []).length > 0);
  if (rankings.length === 0 || Object.keys(study).length === 0) return null;
  let chosen: Weights = { ...study };
  const orders = rankings.map((ranking) => order(context, ranking));
  const reset = h("button", { type: "button", class: "screen-only" }, "Back to the study's weights");
  const show = (weights: Weights): void => {
    for (const part of [...controls, ...orders]) part.show(weights);
    reset.disabled = Object.entries(study).every(([operation, weight]) => weights[operation] === weight);
  };
  const controls = Object.keys(study).map((operation) =>
    control(operation, sliderEnd(study), (weight) => {
      if (!Number.isNaN(weight)) chosen = { ...chosen, [operation]: weight };
      show(chosen);
    }),
  );
  reset.addEventListener("click", () => {
    chosen = { ...study };
    show(chosen);
  });
  // Paper has no controls: what it shows must be what the run's own table rests on.
  addEventListener("beforeprint", () => show(study));
  addEventListener("afterprint", () => show(chosen));
  show(chosen);
  return h(
    "div",
    { id: "weights", class: "own-weights" },
    h("h3", {}, "Your own weights", validityMark(context.view)),
    h(
      "p",
      { class: "hint" },
      "How much each operation counts in your shop; only the shares matter, and 0 leaves an operation out. ",
      "A store's score is the weighted geometric mean of its rates; its ratio to the best score has a 95 % interval over blocks. ",
      "Each ratio is judged by itself here; the table above is corrected for the number of comparisons.",
    ),
    h("div", { class: "weights", role: "group", "aria-label": "weights" }, controls.map((c) => c.element), reset),
    h("div", { class: "orders" }, orders.map((o) => o.element)),
  );
}
