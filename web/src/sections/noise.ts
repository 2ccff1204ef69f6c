/** What else kept the machine busy while it measured. */

import type { Context } from "../context";
import { cards, type Column, fold, h, section } from "../dom";
import * as format from "../format";
import type { NoiseView } from "../view";

const COLUMNS: readonly Column<NoiseView>[] = [
  ["Disturbance", ({ name }) => name],
  ["Median trial", ({ median }) => median],
  ["Worst trial", ({ worst }) => worst],
  ["Meaning", ({ meaning }) => meaning],
];

/** The table of disturbances; null when none were recorded. */
export function noise(context: Context): HTMLElement | null {
  const all = context.view.noise;
  if (all.length === 0) return null;
  return section(
    "noise",
    "Noise",
    h("p", { class: "hint" }, "Recorded during every trial."),
    fold(`Table of ${format.plural(all.length, "disturbance")}`, cards(COLUMNS, [all])),
  );
}
