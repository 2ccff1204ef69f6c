/** What else kept the machine busy while it measured. */

import type { Context } from "../context";
import { fold, h, labelled, section, tableHead } from "../dom";
import * as format from "../format";

/** The table of disturbances; null when none were recorded. */
export function noise(context: Context): HTMLElement | null {
  const all = context.view.noise;
  if (all.length === 0) return null;
  const rows = all.map((entry) =>
    h(
      "tr",
      {},
      h("th", { scope: "row", "data-label": "Disturbance" }, h("div", {}, entry.name)),
      labelled("Median trial", entry.median),
      labelled("Worst trial", entry.worst),
      labelled("Meaning", entry.meaning),
    ),
  );
  return section(
    "noise",
    "Noise",
    h("p", { class: "hint" }, "Recorded during every trial."),
    fold(
      `Table of ${format.plural(rows.length, "disturbance")}`,
      h(
        "table",
        { class: "cards" },
        tableHead(["Disturbance", "Median trial", "Worst trial", "Meaning"]),
        h("tbody", {}, rows),
      ),
    ),
  );
}
