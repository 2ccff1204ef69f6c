/** Custom weights: a slider and a number per operation, and the resulting order. */

import { type Context, paint, targetName } from "../context";
import { chip, h } from "../dom";
import * as format from "../format";
import { counted, type Ranked, rank, standing, type Weights } from "../ranking";
import { validityMark } from "../validity";
import type { RankingView, View } from "../view";

/** Largest accepted weight. */
const LARGEST = 1000;

/** The next power of ten, the end of the sliders. */
function sliderEnd(weights: Weights): number {
  const largest = Math.max(...Object.values(weights));
  return largest > 0 ? 10 ** Math.ceil(Math.log10(largest)) : 1;
}

/** The controls of one operation. */
interface Control {
  element: HTMLElement;
  /** Shows a weight and its share of the total. */
  show: (weights: Weights) => void;
}

/** `changed` is called with every valid weight, or null for invalid input. */
function control(operation: string, end: number, changed: (weight: number | null) => void): Control {
  const id = `weight-${operation}`;
  const range = { type: "range", min: 0, max: end, step: end / 100 };
  const slider = h("input", { ...range, "aria-label": `weight of ${operation}, slider` });
  const described = { "aria-describedby": `${id}-wrong`, inputmode: "decimal" };
  const number = h("input", { type: "number", id, min: 0, max: LARGEST, step: end / 20, ...described });
  const share = h("span", { class: "weight-share" });
  const wrong = h("p", { class: "weight-wrong", id: `${id}-wrong`, role: "alert" });
  let taken = 0;
  const take = (text: string): void => {
    const weight = Number(text);
    if (text.trim() !== "" && weight >= 0 && weight <= LARGEST) return changed(weight);
    number.setAttribute("aria-invalid", "true");
    wrong.textContent = `A weight is a number from 0 to ${format.count(LARGEST)}; the order still uses ${taken} for ${operation}.`;
    changed(null);
  };
  slider.addEventListener("input", () => take(slider.value));
  number.addEventListener("input", () => take(number.value));
  const show = (weights: Weights): void => {
    const weight = weights[operation] ?? 0;
    taken = weight;
    slider.value = String(weight);
    if (Number(number.value) !== weight || number.value === "") number.value = String(weight);
    number.removeAttribute("aria-invalid");
    wrong.textContent = "";
    const all = counted(weights).reduce((sum, [, w]) => sum + w, 0);
    share.textContent = all === 0 ? format.NONE : format.percent(Number((weight / all).toPrecision(2)));
  };
  const element = h("div", { class: "weight" }, h("label", { for: id }, operation), slider, number, share, wrong);
  return { element, show };
}

function move(place: number, before: number): string {
  if (before < 0) return "not ranked";
  if (before === place) return `${before + 1}`;
  return place < before ? `${before + 1}, here ▲ higher` : `${before + 1}, here ▼ lower`;
}

function rankedRow(context: Context, ranked: Ranked, place: number, before: number): HTMLTableRowElement {
  const { ratio } = ranked;
  const said = standing(ranked, context.view);
  const against = [
    ratio === null ? format.NONE : h("span", { class: "nowrap" }, h("b", {}, format.ratio(ratio.center)), ` ${format.ratioInterval(ratio)}`),
    " ",
    chip(said === "undecided" ? "doubt" : "plain", said),
  ];
  return h(
    "tr",
    {},
    h("th", { scope: "row" }, h("div", { class: "place-store" }, h("span", {}, place + 1), targetName(ranked.target))),
    h("td", {}, place === 0 ? chip("plain", "highest score") : against),
    h("td", { class: before === place ? "none" : "moved" }, move(place, before)),
  );
}

/** The first store of an order and those not significantly behind it. */
function tied(found: readonly Ranked[], view: View): string[] {
  return found.filter((r, i) => i === 0 || standing(r, view) !== "slower").map((r) => r.target);
}

/** Why the first store of an order is not proven to be the best; empty if it is. */
function undecidedLead(found: readonly Ranked[], view: View): string {
  const others = found.slice(1);
  const most = Math.max(...others.map((r) => r.blocks));
  if (others.length > 0 && most < view.fewest_blocks) {
    return `undecided: ${format.plural(most, "block")}, but ${view.fewest_blocks} are needed.`;
  }
  const level = tied(found, view);
  return level.length < 2 ? "" : `no clear best among ${format.list(level)}.`;
}

/** A sentence that compares this order with the order by the study's weights. */
function comparedOrder(found: readonly Ranked[], study: readonly Ranked[], view: View): string {
  if (found.length === 0) return "No order: every weight is 0, or no store has a rate for every weighted operation.";
  const names = (order: readonly Ranked[]): string => order.map((r) => r.target).join("\n");
  const same = names(found) === names(study);
  const order = `${same ? "The same order as" : "A different order than"} with the study's weights`;
  const undecided = undecidedLead(found, view);
  if (undecided !== "") return `${order}: ${undecided}`;
  if (same) return `${order}.`;
  const [first, before] = [found[0]?.target, study[0]?.target];
  if (tied(study, view).length > 1) return `${order}: ${first} is the best, while the study's weights have no clear best.`;
  return `${order}: ${first === before ? `${first} is the best by both.` : `${first} instead of ${before} is the best.`}`;
}

/** Operations with a weight, in the order of measurement. */
function weighted(view: View): string[] {
  const measured = [...new Set(view.cells.map((row) => row.operation.split(".").pop() ?? ""))];
  const place = (operation: string): number => (measured.includes(operation) ? measured.indexOf(operation) : measured.length);
  return Object.keys(view.advice_weights).sort((a, b) => place(a) - place(b));
}

/** Stores without a rank, and why; empty if all have one. */
function leftOut(ranking: RankingView, found: readonly Ranked[], weights: Weights): string {
  const names = counted(weights).map(([operation]) => operation);
  const missing = (ranking.rates ?? []).filter((r) => names.length > 0 && !found.some((f) => f.target === r.target));
  return missing
    .map(({ target, by_operation }) => {
      const lacks = names.filter((name) => by_operation[name] === undefined);
      return `${target} has no rank: ${lacks.length === 0 ? "no block has all weighted operations" : `not measured at ${format.list(lacks)}`}.`;
    })
    .join(" ");
}

/** An order by the current weights. */
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
  const columns = ["Rank and store", "Score relative to the best", "By the study's weights"];
  const head = h("thead", {}, h("tr", {}, columns.map((name) => h("th", { scope: "col" }, name))));
  const table = h("table", { class: "ranking", "aria-label": `Order, ${size}` }, head, rows);
  const show = (weights: Weights): void => {
    const found = rank(weights, ranking.rates ?? []);
    said.textContent = comparedOrder(found, study, context.view);
    rows.replaceChildren(...found.map((r, i) => rankedRow(context, r, i, places.get(r.target) ?? -1)));
    without.textContent = leftOut(ranking, found, weights);
    paint(context.view, rows);
  };
  const profile = context.manyProfiles ? `, profile ${ranking.workload}` : "";
  return { element: h("div", { class: "order" }, h("h4", {}, `${size}${profile}`), said, table, without), show };
}

/** Editable weights and the resulting orders; null if the data has no rates for them. */
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
  const controls = weighted(context.view).map((operation) =>
    control(operation, sliderEnd(study), (weight) => {
      if (weight === null) {
        reset.disabled = false;
        return;
      }
      chosen = { ...chosen, [operation]: weight };
      show(chosen);
    }),
  );
  reset.addEventListener("click", () => {
    chosen = { ...study };
    show(chosen);
  });
  // Print has no controls, so it shows the study's weights.
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
      "Weight of each operation in your shop. Only the proportions matter; 0 ignores an operation. ",
      "A store's score is the weighted geometric mean of its rates; its ratio to the best score has a 95 % interval over blocks. ",
      "Here each ratio is judged alone; the table above is corrected for the number of comparisons.",
    ),
    h("div", { class: "weights", role: "group", "aria-label": "weights" }, controls.map((c) => c.element), reset),
    h("div", { class: "orders" }, orders.map((o) => o.element)),
  );
}
