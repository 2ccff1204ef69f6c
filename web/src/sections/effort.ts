/** What an operation of an application cache asks of its stores, and what the filled stores take. */

import { type Context, targetName } from "../context";
import { groupName } from "../charts/figure";
import { cards, type Column, fold, h, none, section, sub } from "../dom";
import * as format from "../format";
import type { Group, OperationGroup } from "../standing";
import { validityMark } from "../validity";
import type { Row } from "../view";

/** A column of means: its name, the metric, and how that is printed. */
type Metric = [name: string, key: string, print: (n: number) => string];

const EFFORT: readonly Metric[] = [
  ["Calls/s", "calls_rate_per_s", format.rate],
  ["Hits", "hit_ratio", format.shareOfAll],
  ["Round trips", "round_trips_per_op", format.threeDigits],
  ["Commands", "commands_per_op", format.threeDigits],
  ["Files", "files_per_op", format.threeDigits],
];

const SIZES: readonly Metric[] = [
  ["Memory of servers", "server_memory_bytes", format.bytes],
  ["On disk", "store_bytes", format.bytes],
  ["Stale members", "stale_members", format.meanCount],
];

/** Those metrics that some row has. */
function present(metrics: readonly Metric[], rows: readonly Row[]): Metric[] {
  return metrics.filter(([, key]) => rows.some((row) => row.metrics[key] !== undefined));
}

/** Columns of the metrics that some row has, each value with its interval for the pointer. */
function columns(metrics: readonly Metric[], rows: readonly Row[]): Column<Row>[] {
  return present(metrics, rows).map(([name, key, print]): Column<Row> => [name, (row) => {
    const value = row.metrics[key];
    if (value === undefined) return none();
    const ends = format.interval(value, print);
    return h("span", { title: ends === "" ? undefined : `${format.endsName(row.blocks)} ${ends}` }, print(value.center));
  }]);
}

/** What the columns mean that are there. */
function hint(rows: readonly Row[]): string {
  const names = new Set(present(EFFORT, rows).map(([name]) => name));
  const calls = names.has("Calls/s");
  return [
    calls ? "Calls/s are operations by time in calls, summed over clients, as the original benchmark gives them; the others are means of an operation." : "Means of an operation.",
    names.has("Round trips") ? "Round trips are answers of servers that were waited for." : "",
    names.has("Files") ? "Files are those opened, listed, looked at or removed." : "",
  ].filter((text) => text !== "").join(" ");
}

const STORE: Column<Row> = ["Store", (row) => targetName(row.target)];
const OPERATION: Column<Row> = ["Store and operation", (row) => [targetName(row.target), sub(format.operationTitle(row.operation))]];

function counts(row: Row): boolean {
  return ["round_trips_per_op", "files_per_op"].some((metric) => row.metrics[metric] !== undefined);
}

/** Operations that counted their effort; of whole phases the parts, which have rows of their own. */
function operations(group: Group): OperationGroup[] {
  const hasParts = (op: OperationGroup): boolean => group.operations.some((o) => o.operation.startsWith(`${op.operation}.`));
  return group.operations.filter((op) => !hasParts(op) && op.rows.some(counts));
}

/** Every phase of a trial tells the same sizes; the first of each store is enough. */
function sizesTable(group: Group): HTMLElement | null {
  const rows = group.operations.flatMap((op) => op.rows).filter((row) => present(SIZES, [row]).length > 0);
  const first = rows.filter((row, i) => rows.findIndex((other) => other.target === row.target) === i);
  if (first.length === 0) return null;
  const stale = present(SIZES, first).some(([, key]) => key === "stale_members");
  const also = stale ? ", and how many entries of tags named records that were gone after the last phase" : "";
  return h(
    "div",
    {},
    h("p", { class: "hint" }, `What the stores took when they were filled${also} (means over blocks):`),
    cards([STORE, ...columns(SIZES, first)], [first], "effort"),
  );
}

/** The tables of each profile and load; null where no store counted its effort. */
export function effort(context: Context): HTMLElement | null {
  const parts = context.groups.flatMap((group) => {
    const found = operations(group);
    if (found.length === 0) return [];
    const heading = h("h3", {}, groupName(context, group), validityMark(context.view));
    const bodies = found.map((op) => op.rows.filter(counts));
    return [heading, fold(`Table of ${format.plural(bodies.flat().length, "operation")}`, cards([OPERATION, ...columns(EFFORT, bodies.flat())], bodies, "effort"), sizesTable(group))];
  });
  if (parts.length === 0) return null;
  return section(
    "effort",
    "Effort of an operation",
    h("p", { class: "hint" }, hint(context.groups.flatMap((group) => operations(group).flatMap((op) => op.rows.filter(counts))))),
    parts,
  );
}
