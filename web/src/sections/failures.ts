/** Trials without a complete result: each is a row with its reason. */

import { type Context, targetName } from "../context";
import { cards, chip, type Column, h, prose, section } from "../dom";
import * as format from "../format";
import type { FailureView } from "../view";

const COLUMNS: readonly Column<FailureView>[] = [
  ["Cell", ({ cell }) => cell],
  ["Store", ({ target }) => targetName(target)],
  ["Block", ({ block, probe }) => `${block + 1}${probe === undefined ? "" : `, probe ${probe}`}`],
  ["Class", (failure) => chip("bad", failure.class)],
  ["Reason", ({ reason, log }) => [...prose(reason), log === null ? null : h("span", { class: "sub log" }, "its log: ", h("code", {}, log))]],
];

/** The table of failures; null when there were none. */
export function failures(context: Context): HTMLElement | null {
  const all = context.view.failures;
  if (all.length === 0) return null;
  return section(
    "failures",
    "Failures",
    h("p", { class: "hint" }, `${format.plural(all.length, "trial")} ended without a complete result.`),
    cards(COLUMNS, [all]),
  );
}
