/** What an operation of an application cache asks of its stores, and what the filled stores take. */

import { type Context, targetName } from "../context";
import { fold, h, labelled, section, tableHead } from "../dom";
import * as format from "../format";
import type { Group, OperationGroup } from "../standing";
import { validityMark } from "../validity";
import type { Row, Value } from "../view";

/** A column: its name, the metric, and how it is printed. */
type Column = readonly [name: string, metric: string, print: (n: number) => string];

const EFFORT: readonly Column[] = [
  ["Calls/s", "calls_rate_per_s", format.rate],
  ["Hits", "hit_ratio", format.shareOfAll],
  ["Round trips", "round_trips_per_op", format.threeDigits],
  ["Commands", "commands_per_op", format.threeDigits],
  ["Files", "files_per_op", format.threeDigits],
];

const SIZES: readonly Column[] = [
  ["Memory of servers", "server_memory_bytes", format.bytes],
  ["On disk", "store_bytes", format.bytes],
  ["Stale members", "stale_members", format.meanCount],
];

function metricCell(row: Row, [name, metric, print]: Column): HTMLTableCellElement {
  const value: Value | undefined = row.metrics[metric];
  if (value === undefined) return labelled(name, h("span", { class: "none" }, format.NONE));
  const ends = format.interval(value, print);
  return labelled(name, h("span", { title: ends === "" ? undefined : `${format.endsName(row.blocks)} ${ends}` }, print(value.center)));
}

function counts(row: Row): boolean {
  return ["round_trips_per_op", "files_per_op"].some((metric) => row.metrics[metric] !== undefined);
}

/** Operations that counted their effort; of whole phases the parts, which have rows of their own. */
function operations(group: Group): OperationGroup[] {
  const hasParts = (op: OperationGroup): boolean => group.operations.some((o) => o.operation.startsWith(`${op.operation}.`));
  return group.operations.filter((op) => !hasParts(op) && op.rows.some(counts));
}

function effortTable(found: readonly OperationGroup[]): HTMLElement {
  const row = (of: Row): HTMLElement =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, h("div", {}, targetName(of.target), h("span", { class: "sub" }, format.operationTitle(of.operation)))),
      EFFORT.map((column) => metricCell(of, column)),
    );
  const bodies = found.map((op) => h("tbody", {}, op.rows.filter(counts).map(row)));
  return h("table", { class: "cards effort" }, tableHead(["Store and operation", ...EFFORT.map(([name]) => name)]), bodies);
}

/** Every phase of a trial tells the same sizes; the first of each store is enough. */
function sizesTable(group: Group): HTMLElement | null {
  const rows = group.operations.flatMap((op) => op.rows).filter((row) => SIZES.some(([, metric]) => row.metrics[metric] !== undefined));
  const first = rows.filter((row, i) => rows.findIndex((other) => other.target === row.target) === i);
  if (first.length === 0) return null;
  const lines = first.map((row) =>
    h("tr", {}, h("th", { scope: "row" }, h("div", {}, targetName(row.target))), SIZES.map((column) => metricCell(row, column))),
  );
  return h(
    "div",
    {},
    h("p", { class: "hint" }, "What the stores took when they were filled, and how many entries of tags named records that were gone after the last phase (means over blocks):"),
    h("table", { class: "cards effort" }, tableHead(["Store", ...SIZES.map(([name]) => name)]), h("tbody", {}, lines)),
  );
}

/** The tables of each profile and load; null where no store counted its effort. */
export function effort(context: Context): HTMLElement | null {
  const parts = context.groups.flatMap((group) => {
    const found = operations(group);
    if (found.length === 0) return [];
    const name = `${context.manyProfiles ? `${group.workload} · ` : ""}${format.load(group.load)}`;
    const heading = h("h3", {}, name, validityMark(context.view));
    const rows = found.reduce((sum, op) => sum + op.rows.filter(counts).length, 0);
    return [heading, fold(`Table of ${format.plural(rows, "operation")}`, effortTable(found), sizesTable(group))];
  });
  if (parts.length === 0) return null;
  return section(
    "effort",
    "Effort of an operation",
    h(
      "p",
      { class: "hint" },
      "Calls/s are operations by time in calls, summed over clients, as the original benchmark gives them; the others are means of an operation. ",
      "Round trips are answers of servers that were waited for; files are those opened, listed, looked at or removed.",
    ),
    parts,
  );
}
