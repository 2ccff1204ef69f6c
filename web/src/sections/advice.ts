/** The recommendation table: what each shop should use, by these measurements. */

import { type Context, targetName } from "../context";
import { chip, h, labelled, prose, section, tableHead } from "../dom";
import * as format from "../format";
import type { AdviceView } from "../view";
import { ownWeights } from "./weights";

function agreement(value: string): HTMLElement {
  if (value === "same") return chip("good", "same");
  if (value === "different") return chip("warn", "different");
  return chip("doubt", value);
}

function row(advice: AdviceView): HTMLTableRowElement {
  const ours = advice.recommended;
  return h(
    "tr",
    {},
    h("th", { scope: "row", "data-label": "Shop" }, h("div", {}, advice.shop)),
    labelled(
      "Size",
      advice.size,
      h("span", { class: "sub" }, format.plural(advice.clients, "concurrent request")),
    ),
    labelled("As delivered", targetName(advice.factory)),
    labelled("Source recommends", targetName(advice.source_recommends)),
    labelled(
      "These measurements",
      ours === null ? h("span", { class: "doubt" }, "cannot say") : h("strong", {}, targetName(ours)),
    ),
    labelled("Why", prose(advice.why)),
    labelled("Against the source", agreement(advice.agreement)),
  );
}

/** The table, and what it rests on; null for a study without one. */
export function advice(context: Context): HTMLElement | null {
  const { view } = context;
  if (view.advice.length === 0) return null;
  const columns = ["Shop", "Size", "As delivered", "Source recommends", "These measurements", "Why", "Against the source"];
  return section(
    "advice",
    "What to pick",
    h(
      "table",
      { class: "cards advice" },
      tableHead(columns),
      h("tbody", {}, view.advice.map((entry) => row(entry))),
    ),
    view.advice_basis ? h("p", { class: "hint" }, prose(view.advice_basis)) : null,
    ownWeights(context),
  );
}
