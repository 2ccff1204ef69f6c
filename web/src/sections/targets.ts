/** The stores: what they were, where, and with which settings. */

import { type Context, targetName } from "../context";
import { cards, chip, type Column, fold, h, none, prose, section, sub } from "../dom";
import * as format from "../format";
import type { TargetView } from "../view";

function settings(target: TargetView): HTMLElement {
  const entries = Object.entries(target.settings);
  if (entries.length === 0) return none("none given");
  const lines = entries.map(([name, value]) => h("code", {}, `${name} = ${value}`));
  return h("details", {}, h("summary", {}, `${entries.length} given`), h("div", { class: "codes" }, lines));
}

function state(target: TargetView): (HTMLElement | string)[] {
  if (target.not_run !== null) return [chip("warn", "not run"), h("span", { class: "sub wrap" }, prose(target.not_run))];
  if (target.control_of !== null) {
    return [chip("plain", "control"), h("span", { class: "sub wrap" }, `the same store as ${target.control_of}, measured again: any difference between the two is noise`)];
  }
  return [chip("good", "measured")];
}

const COLUMNS: readonly Column<TargetView>[] = [
  ["Store", ({ name }) => targetName(name)],
  ["Product", ({ product, kind }) => [product ?? none("never answered"), sub(kind)]],
  ["Place", ({ place }) => h("span", { class: "place" }, place)],
  ["Settings", settings],
  ["State", state],
];

/** The table of targets; null for a view without any. */
export function targets(context: Context): HTMLElement | null {
  const all = context.view.targets;
  if (all.length === 0) return null;
  return section("targets", "Stores", fold(`Table of ${format.plural(all.length, "store")}`, cards(COLUMNS, [all])));
}
