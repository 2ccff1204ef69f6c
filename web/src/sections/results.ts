/** The result tables: one for each workload and load, operation by operation. */

import { type Context, targetName } from "../context";
import { groupName } from "../charts/figure";
import { chip, fold, h, none, prose, scrollBox, section, sub } from "../dom";
import * as format from "../format";
import type { Group, OperationGroup, Standing } from "../standing";
import { validityMark } from "../validity";
import type { Counts, Load, Row, Value } from "../view";
import { noteMarks } from "./notes";

interface Column {
  title: string;
  unit: string;
  metric: string;
  /** A size in bytes, and not a time. */
  isSize?: boolean;
}

/** Columns of times and costs for a load. */
function timeColumns(load: Load): Column[] {
  const times = format.times(load);
  const unit = `${times} time`;
  return [
    { title: "p50", unit, metric: `${times}_ns_p50` },
    { title: "p99", unit, metric: `${times}_ns_p99` },
    { title: "p99.9", unit, metric: `${times}_ns_p999` },
    { title: "server CPU", unit: "per op", metric: "server_cpu_ns_per_op" },
    { title: "own CPU", unit: "per op", metric: "generator_cpu_ns_per_op" },
    { title: "network", unit: "per op", metric: "network_bytes_per_op", isSize: true },
  ];
}

function costCell(value: Value | undefined, blocks: number, isSize: boolean): HTMLTableCellElement {
  if (value === undefined) return h("td", { class: "number none" }, format.NONE);
  const { number, unit } = (isSize ? format.bytesParts : format.timeParts)(value.center);
  const ends = format.interval(value, isSize ? format.bytes : format.time);
  return h(
    "td",
    { class: "number", title: ends === "" ? undefined : `${format.timeEndsName(blocks)} ${ends}` },
    value.at_least === true ? `≥ ${number}` : number,
    h("span", { class: "unit" }, ` ${unit}`),
  );
}

function rateCell(value: Value | undefined, largest: number): HTMLTableCellElement {
  if (value === undefined) return h("td", { class: "number none" }, format.NONE);
  const share = largest > 0 ? Math.max(0, Math.min(1, value.center / largest)) : 0;
  return h(
    "td",
    { class: "number rate" },
    h("span", { class: "center" }, format.rate(value.center)),
    sub(format.interval(value, format.rate) || "no interval"),
    h("span", { class: "meter", "aria-hidden": "true" }, h("span", { style: `width:${(share * 100).toFixed(1)}%` })),
  );
}

/** What went wrong or had to wait, in words; empty when nothing did. */
export function problems(counts: Counts): string[] {
  const named: [number, string, string][] = [
    [counts.miss, "miss", "misses"],
    [counts.lost, "of them lost", "of them lost"],
    [counts.error, "error", "errors"],
    [counts.wrong, "wrong value", "wrong values"],
    [counts.stale, "stale value", "stale values"],
    [counts.lock_broken, "broken lock", "broken locks"],
    [counts.lock_timeouts, "lock given up", "locks given up"],
  ];
  return named.filter(([n]) => n > 0).map(([n, one, many]) => format.plural(n, one, many));
}

function problemCell(row: Row): HTMLTableCellElement {
  const found = problems(row.counts);
  const classes = Object.entries(row.counts.errors_by_class).map(([name, n]) => {
    const words = row.counts.error_examples?.[name];
    return `${name}: ${format.count(n)}${words === undefined ? "" : ` (such as: ${words})`}`;
  });
  return h(
    "td",
    { class: "problems", title: classes.length > 0 ? classes.join(", ") : undefined },
    found.length === 0 ? none("none") : found.map((text) => h("span", { class: "bad" }, text)),
  );
}

const TONES: Record<Standing["verdict"], "good" | "warn" | "doubt" | "plain"> = {
  best: "good",
  slower: "plain",
  faster: "doubt",
  equal: "plain",
  undecided: "doubt",
  none: "plain",
};

function verdictCell(context: Context, op: OperationGroup, row: Row): HTMLTableCellElement {
  const standing = op.standings.get(row.target) ?? { verdict: "none", ratio: null, doubt: null };
  if (standing.verdict === "best") return h("td", { class: "verdict" }, bestChip(op, context.view.fewest_blocks));
  const repeats = context.view.targets.find((t) => t.name === row.target)?.control_of ?? null;
  const ratio = standing.ratio;
  return h(
    "td",
    { class: "verdict" },
    standing.verdict === "none" ? none("not compared") : chip(TONES[standing.verdict], standing.verdict),
    ratio === null ? null : sub(h("b", {}, format.ratio(ratio.center)), ` ${format.ratioInterval(ratio)}`),
    standing.doubt ? h("span", { class: "sub wrap" }, prose(standing.doubt)) : null,
    repeats === null ? null : sub(`control: the same store as ${repeats}`),
  );
}

function bestChip(op: OperationGroup, fewest: number): HTMLElement {
  if (op.outcome === "alone") return none("nothing to compare");
  if (op.outcome === "fastest") return chip("good", "fastest");
  if (op.rows.some((row) => row.blocks < fewest)) return none("too few blocks to rank");
  return chip("plain", op.metric === "rate_per_s" ? "highest rate" : "shortest time");
}

/** What the rows of one table have in common. */
interface Shared {
  withProblems: boolean;
  /** Whether there are several stores to compare. */
  withVerdict: boolean;
  /** Those of times and costs that some row has. */
  columns: readonly Column[];
  notes: ReadonlySet<number>;
}

function sharedBy(group: Group): Shared {
  const rows = group.operations.flatMap((op) => op.rows);
  const notes = (rows[0]?.footnotes ?? []).filter((note) => rows.every((row) => row.footnotes.includes(note)));
  const columns = timeColumns(group.load).filter((column) => rows.some((row) => column.metric in row.metrics));
  const withVerdict = new Set(rows.map((row) => row.target)).size > 1;
  return { withProblems: rows.some((row) => problems(row.counts).length > 0), withVerdict, columns, notes: new Set(notes) };
}

function resultRow(context: Context, op: OperationGroup, row: Row, shared: Shared): HTMLTableRowElement {
  const largest = Math.max(...op.rows.map((r) => r.metrics["rate_per_s"]?.center ?? 0));
  const isBest = op.outcome === "fastest" && op.best?.target === row.target;
  return h(
    "tr",
    { class: isBest ? "best" : undefined, "data-target": row.target },
    h(
      "th",
      { scope: "row" },
      targetName(row.target),
      noteMarks(context.view, row.footnotes.filter((note) => !shared.notes.has(note))),
      row.product === null ? null : sub(row.product),
    ),
    rateCell(row.metrics["rate_per_s"], largest),
    shared.withVerdict ? verdictCell(context, op, row) : null,
    shared.columns.map((column) => costCell(row.metrics[column.metric], row.blocks, column.isSize === true)),
    h("td", { class: "number" }, row.blocks),
    shared.withProblems ? problemCell(row) : null,
  );
}

function heading(title: string, unit: string, kind: string): HTMLTableCellElement {
  return h("th", { scope: "col", class: kind }, title, unit === "" ? null : sub(unit));
}

function table(context: Context, group: Group, shared: Shared): HTMLTableElement {
  const fewest = Math.min(...group.operations.flatMap((op) => op.rows.map((row) => row.blocks)));
  const columns = [
    heading("store", "", ""),
    heading("rate", `ops/s, ${format.endsName(fewest)}`, "number"),
    ...(shared.withVerdict ? [heading("verdict", "against the best", "")] : []),
    ...shared.columns.map((column) => heading(column.title, column.unit, "number")),
    heading("blocks", "", "number"),
    ...(shared.withProblems ? [heading("problems", "over all blocks", "")] : []),
  ];
  const bodies = group.operations.map((op) => {
    const title = h("th", { scope: "rowgroup", colspan: columns.length }, h("span", {}, format.operationTitle(op.operation)));
    const rows = op.rows.map((row) => resultRow(context, op, row, shared));
    return h("tbody", {}, h("tr", { class: "operation" }, title), rows);
  });
  return h("table", { class: "results" }, h("thead", {}, h("tr", {}, columns)), bodies);
}

/** What the numbers are, those alone that the tables have. */
function hint({ groups, view }: Context): string {
  const rows = groups.flatMap((group) => group.operations.flatMap((op) => op.rows));
  const kinds = new Set(groups.map((group) => format.times(group.load)));
  const repeated =
    view.blocks > 1
      ? "Geometric means over blocks; each block measured every store once, freshly started, in random order."
      : "Each store was measured once, freshly started.";
  const meanings = [
    kinds.has("service") ? "service time is from sending to the complete answer" : "",
    kinds.has("response") ? "response time is from the moment at which a request was due" : "",
    rows.some((row) => "generator_cpu_ns_per_op" in row.metrics) ? "own CPU is that of the measuring clients" : "",
  ].filter((text) => text !== "").join(", ");
  return meanings === "" ? repeated : `${repeated} ${meanings.charAt(0).toUpperCase()}${meanings.slice(1)}.`;
}

/** All tables; null when nothing was measured. */
export function results(context: Context): HTMLElement | null {
  if (context.groups.length === 0) return null;
  const tables = context.groups.map((group) => {
    const name = groupName(context, group);
    const shared = sharedBy(group);
    const heading = h("h3", {}, h("span", {}, name, noteMarks(context.view, [...shared.notes])), validityMark(context.view));
    const rows = group.operations.reduce((sum, op) => sum + op.rows.length, 0);
    const data = context.view.data?.[group.workload];
    return [heading, data === undefined ? null : h("p", { class: "hint" }, prose(data)), fold(`Table of ${format.plural(rows, "result")}`, scrollBox(`Results: ${name}`, table(context, group, shared)))];
  });
  return section(
    "results",
    "Results",
    h("p", { class: "hint" }, hint(context)),
    tables.flat(),
  );
}
