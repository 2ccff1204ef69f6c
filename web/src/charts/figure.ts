/** A chart with heading, hint and selectors. */

import type { Context } from "../context";
import { h } from "../dom";
import * as format from "../format";
import type { Group, OperationGroup } from "../groups";
import { validityMark } from "../validity";
import type { Chart } from "./base";

/** A choice of a selector. */
export interface Choice<T> {
  name: string;
  value: T;
}

/** A selector with its label; `changed` is called after each choice. */
export interface Selector<T> {
  element: HTMLElement;
  value: () => T;
  /** Replaces the choices and keeps the selected name if it still exists. */
  offer: (choices: Choice<T>[]) => void;
}

/** Makes a selector; with one choice it is plain text. */
export function selector<T>(label: string, choices: Choice<T>[], changed: () => void): Selector<T> {
  let offered = choices;
  const select = h("select", { "aria-label": label });
  const fill = (): void => {
    const kept = offered.findIndex((choice) => choice.name === select.value);
    select.replaceChildren(...offered.map((choice) => h("option", { value: choice.name }, choice.name)));
    select.selectedIndex = Math.max(0, kept);
    select.disabled = offered.length < 2;
  };
  fill();
  select.addEventListener("change", changed);
  return {
    element: h("label", { class: "selector" }, h("span", {}, label), select),
    value: () => (offered[select.selectedIndex] ?? offered[0] as Choice<T>).value,
    offer: (next) => {
      offered = next;
      fill();
    },
  };
}

/** The name of a group among those of a view. */
export function groupName(context: Context, group: Group): string {
  const load = format.load(group.load);
  return context.manyProfiles ? `${group.workload} · ${load}` : load;
}

/** Two selectors, for the load and for one of its operations. */
export interface CellSelectors {
  elements: HTMLElement[];
  group: () => Group;
  operation: () => OperationGroup;
}

/** Selectors for operations that satisfy `has`. */
export function cellSelectors(
  context: Context,
  has: (op: OperationGroup) => boolean,
  changed: () => void,
): CellSelectors | null {
  const usable = context.groups.filter((group) => group.operations.some(has));
  if (usable.length === 0) return null;
  const operationsOf = (group: Group): Choice<OperationGroup>[] =>
    group.operations.filter(has).map((op) => ({ name: format.operationTitle(op.operation), value: op }));
  const byLoad = selector(
    "Load",
    usable.map((group) => ({ name: groupName(context, group), value: group })),
    () => {
      byOperation.offer(operationsOf(byLoad.value()));
      changed();
    },
  );
  const byOperation = selector("Operation", operationsOf(usable[0] as Group), changed);
  return { elements: [byOperation.element, byLoad.element], group: byLoad.value, operation: byOperation.value };
}

/** A chart with heading, help and selectors. */
export function figure(
  context: Context,
  id: string,
  title: string,
  help: string,
  selectors: HTMLElement[],
  chart: Chart,
): HTMLElement {
  return h(
    "figure",
    { id, "aria-labelledby": `${id}-title` },
    h("h3", { id: `${id}-title` }, title, validityMark(context.view)),
    h("p", { class: "hint" }, help),
    selectors.length === 0 ? null : h("div", { class: "selectors" }, selectors),
    chart.element,
  );
}
