/** Says in one sentence per load which store is the fastest, and how sure that is. */

import * as format from "./format";
import { type Group, inverse, isPart, type OperationGroup } from "./standing";
import type { Value } from "./view";

/** A piece of a sentence; `target` pieces name a store, `figure` pieces carry numbers. */
export interface Segment {
  text: string;
  style: "plain" | "target" | "figure" | "doubt";
}

const plain = (text: string): Segment => ({ text, style: "plain" });
const target = (text: string): Segment => ({ text, style: "target" });
const figure = (text: string): Segment => ({ text, style: "figure" });

const DOING: Record<string, string> = {
  write: "writing",
  read: "reading",
  change: "changing",
  mixed: "the mix",
  page: "a whole page",
};

function doing(operation: string): string {
  return DOING[operation] ?? operation;
}

/** Pieces with words between them, by default commas and a last `and`. */
function join(parts: readonly Segment[][], last = " and ", between = ", "): Segment[] {
  return parts.flatMap((part, i) => {
    if (i === 0) return part;
    return [plain(i === parts.length - 1 ? last : between), ...part];
  });
}

/** Best against the next, as a view's comparison has it; null where there is none. */
function lead(op: OperationGroup): Value | null {
  const ratio = op.next === null ? null : (op.standings.get(op.next.target)?.ratio ?? null);
  return ratio === null ? null : inverse(ratio);
}

function leadFigure(op: OperationGroup, withNext: boolean): Segment[] {
  const value = lead(op);
  if (value === null || op.next === null) return [];
  const ends = format.ratioInterval(value);
  const name = withNext ? ` ${op.next.target}` : "";
  const interval = ends === "" ? "" : `, ${ends}`;
  return [plain(" "), figure(`(${format.ratio(value.center)}${name}${interval})`)];
}

function fastest(ops: readonly OperationGroup[]): Segment[][] {
  const winners = [...new Set(ops.map((op) => op.best?.target ?? ""))];
  return winners.map((name, i) => {
    const won = ops.filter((op) => op.best?.target === name);
    const parts = won.map((op) => [plain(doing(op.operation)), ...leadFigure(op, true)]);
    return [target(name), plain(i === 0 ? " is fastest at " : " at "), ...join(parts)];
  });
}

function equal(op: OperationGroup, zone: number): Segment[] {
  const names = join(op.tied.map((name) => [target(name)]));
  const within = figure(`within ±${format.percent(zone)}`);
  return [...names, plain(" are equal "), within, plain(` at ${doing(op.operation)}`), ...leadFigure(op, false)];
}

/** True of a ratio whose interval lies wholly beyond the zone. */
function apart(ratio: Value | null, zone: number): boolean {
  if (ratio === null || ratio.lo === null || ratio.hi === null) return false;
  return ratio.lo > 1 + zone || ratio.hi < 1 / (1 + zone);
}

/** Why an operation is undecided that its interval would decide; empty for others. */
function why(op: OperationGroup, zone: number): Segment[] {
  const open = [...op.standings.values()].find((s) => s.verdict === "undecided" && apart(s.ratio, zone));
  return open?.doubt ? [plain(`, ${open.doubt}`)] : [];
}

function undecided(ops: readonly OperationGroup[], zone: number): Segment[] {
  const parts = ops.map((op) => {
    const names = join(op.tied.map((name) => [target(name)]));
    return [plain(`${doing(op.operation)} between `), ...names, ...leadFigure(op, false), ...why(op, zone)];
  });
  return [{ text: "undecided", style: "doubt" }, plain(": "), ...join(parts, "; ", "; ")];
}

function alone(ops: readonly OperationGroup[]): Segment[] {
  const names = [...new Set(ops.map((op) => op.best?.target ?? ""))].map((name) => [target(name)]);
  const what = format.list(ops.map((op) => doing(op.operation)));
  return [plain(`${what} was measured on `), ...join(names), plain(" alone")];
}

/**
 * The answer at one workload and load, without its load and without a full stop.
 *
 * Parts of an operation (`mixed.read`) are left to the tables. Ratios are of the fastest to the
 * next best, with their 95 % interval. Empty when the group has no rate at all.
 */
export function answer(group: Group, zone: number): Segment[] {
  const whole = group.operations.filter((op) => !isPart(op.operation));
  const ops = (whole.length > 0 ? whole : group.operations).filter((op) => op.best !== null);
  const of = (outcome: string): OperationGroup[] => ops.filter((op) => op.outcome === outcome);
  const clauses = [
    ...fastest(of("fastest")),
    ...of("equal").map((op) => equal(op, zone)),
    ...(of("undecided").length > 0 ? [undecided(of("undecided"), zone)] : []),
    ...(of("alone").length > 0 ? [alone(of("alone"))] : []),
  ];
  return join(clauses, "; ", "; ");
}

/** The words of a sentence. */
export function words(segments: readonly Segment[]): string {
  return segments.map((s) => s.text).join("");
}
