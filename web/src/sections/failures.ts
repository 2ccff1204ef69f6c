/** Trials without a complete result: each is a row with its reason. */

import { type Context, targetName } from "../context";
import { chip, h, labelled, prose, section, tableHead } from "../dom";
import * as format from "../format";

/** The table of failures; null when there were none. */
export function failures(context: Context): HTMLElement | null {
  const all = context.view.failures;
  if (all.length === 0) return null;
  const rows = all.map((failure) =>
    h(
      "tr",
      {},
      h("th", { scope: "row", "data-label": "Cell" }, h("div", {}, failure.cell)),
      labelled("Store", targetName(failure.target)),
      labelled("Block", `${failure.block + 1}${failure.probe === undefined ? "" : `, probe ${failure.probe}`}`),
      labelled("Class", chip("bad", failure.class)),
      labelled(
        "Reason",
        prose(failure.reason),
        failure.log === null ? null : h("span", { class: "sub log" }, "its log: ", h("code", {}, failure.log)),
      ),
    ),
  );
  return section(
    "failures",
    "Failures",
    h("p", { class: "hint" }, `${format.plural(all.length, "trial")} ended without a complete result.`),
    h("table", { class: "cards" }, tableHead(["Cell", "Store", "Block", "Class", "Reason"]), h("tbody", {}, rows)),
  );
}
