/** What an operation of an application cache asks of its stores, and what the filled stores take. */

import { type Context, targetName } from "../context";
import { groupName } from "../charts/figure";
import { cards, type Column, fold, h, none, section, sub } from "../dom";
import * as format from "../format";
import type { Group, OperationGroup } from "../standing";
import { validityMark } from "../validity";
import type { Row } from "../view";

/** A column of means of a metric, each with its interval for the pointer. */
function metric(name: string, key: string, print: (n: number) => string): Column<Row> {
  return [name, (row) => {
    const value = row.metrics[key];
    if (value === undefined) return none();
    const ends = format.interval(value, print);
    return h("span", { title: ends === "" ? undefined : `${format.endsName(row.blocks)} ${ends}` }, print(value.center));
  }];
}

const EFFORT: readonly Column<Row>[] = [
  ["Store and operation", (row) => [targetName(row.target), sub(format.operationTitle(row.operation))]],
  metric("Calls/s", "calls_rate_per_s", format.rate),
  metric("Hits", "hit_ratio", format.shareOfAll),
  metric("Round trips", "round_trips_per_op", format.threeDigits),
  metric("Commands", "commands_per_op", format.threeDigits),
  metric("Files", "files_per_op", format.threeDigits),
];

const SIZES: readonly Column<Row>[] = [
  ["Store", (row) => targetName(row.target)],
  metric("Memory of servers", "server_memory_bytes", format.bytes),
  metric("On disk", "store_bytes", format.bytes),
  metric("Stale members", "stale_members", format.meanCount),
];

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
  const sizes = ["server_memory_bytes", "store_bytes", "stale_members"];
  const rows = group.operations.flatMap((op) => op.rows).filter((row) => sizes.some((key) => row.metrics[key] !== undefined));
  const first = rows.filter((row, i) => rows.findIndex((other) => other.target === row.target) === i);
  if (first.length === 0) return null;
  return h(
    "div",
    {},
    h("p", { class: "hint" }, "What the stores took when they were filled, and how many entries of tags named records that were gone after the last phase (means over blocks):"),
    cards(SIZES, [first], "effort"),
  );
}

/** The tables of each profile and load; null where no store counted its effort. */
export function effort(context: Context): HTMLElement | null {
  const parts = context.groups.flatMap((group) => {
    const found = operations(group);
    if (found.length === 0) return [];
    const heading = h("h3", {}, groupName(context, group), validityMark(context.view));
    const bodies = found.map((op) => op.rows.filter(counts));
    return [heading, fold(`Table of ${format.plural(bodies.flat().length, "operation")}`, cards(EFFORT, bodies, "effort"), sizesTable(group))];
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
