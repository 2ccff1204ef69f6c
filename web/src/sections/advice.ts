/** The recommendation table: what each shop should use, by these measurements. */

import { type Context, targetName } from "../context";
import { cards, chip, type Column, h, prose, section, sub } from "../dom";
import * as format from "../format";
import type { AdviceView } from "../view";
import { ownWeights } from "./weights";

function agreement(value: string): HTMLElement {
  if (value === "same") return chip("good", "same");
  if (value === "different") return chip("warn", "different");
  return chip("doubt", value);
}

const COLUMNS: readonly Column<AdviceView>[] = [
  ["Shop", ({ shop }) => shop],
  ["Size", ({ size, clients }) => [size, sub(format.plural(clients, "concurrent request"))]],
  ["As delivered", ({ factory }) => targetName(factory)],
  ["Source recommends", ({ source_recommends: theirs }) => targetName(theirs)],
  ["These measurements", ({ recommended: ours }) => (ours === null ? h("span", { class: "doubt" }, "cannot say") : h("strong", {}, targetName(ours)))],
  ["Why", ({ why }) => prose(why)],
  ["Against the source", (row) => agreement(row.agreement)],
];

/** The table, and what it rests on; null for a study without one. */
export function advice(context: Context): HTMLElement | null {
  const { view } = context;
  if (view.advice.length === 0) return null;
  return section(
    "advice",
    "What to pick",
    cards(COLUMNS, [view.advice], "advice"),
    view.advice_basis ? h("p", { class: "hint" }, prose(view.advice_basis)) : null,
    ownWeights(context),
  );
}
