/**
 * Orders the rows of a view for reading: by workload and load, then by operation, and says how each
 * target stands against the best of its operation. Verdicts are the view's; nothing is judged here.
 */

import type { Comparison, Load, Row, Value, View } from "./view";

/** How a target stands against the best one; `ratio` is above 1 of a control alone. */
export interface Standing {
  verdict: "best" | "slower" | "faster" | "equal" | "undecided" | "none";
  ratio: Value | null;
  doubt: string | null;
}

/** What an operation's comparisons say as a whole. */
export type Outcome = "fastest" | "equal" | "undecided" | "alone";

/** All targets at one operation. */
export interface OperationGroup {
  operation: string;
  /** In the order of the view's targets. */
  rows: Row[];
  /** `rate_per_s`, or `service_ns_mean` where think time or the mix rules the rate. */
  metric: string;
  best: Row | null;
  outcome: Outcome;
  standings: Map<string, Standing>;
}

/** All operations at one workload and load. */
export interface Group {
  key: string;
  workload: string;
  load: Load;
  operations: OperationGroup[];
}

/** A key for a load. */
export function loadKey(load: Load): string {
  return JSON.stringify(load);
}

/** True for a part of another operation: `mixed.read`, `page.open`. */
export function isPart(operation: string): boolean {
  return operation.includes(".");
}

/** True for a part of a mix, at which nobody is the best: how often it comes is the mix's doing. A page is the same for all. */
export function isGiven(operation: string): boolean {
  return isPart(operation) && !operation.startsWith("page.");
}

/** A value upside down: the ratio seen from the other side. */
export function inverse(value: Value): Value {
  return {
    center: 1 / value.center,
    lo: value.hi === null ? null : 1 / value.hi,
    hi: value.lo === null ? null : 1 / value.lo,
  };
}

const FLIPPED: Record<string, string> = { faster: "slower", slower: "faster" };

function sameCell(c: Comparison, row: Row): boolean {
  return c.workload === row.workload && c.operation === row.operation && loadKey(c.load) === loadKey(row.load);
}

/** The comparison of `a` against `b`, turned round where the view has it the other way. */
export function against(comparisons: readonly Comparison[], a: string, b: string): Comparison | null {
  for (const c of comparisons) {
    if (c.a === a && c.b === b) return c;
    if (c.a === b && c.b === a) {
      return { ...c, a, b, ratio: inverse(c.ratio), verdict: FLIPPED[c.verdict] ?? c.verdict };
    }
  }
  return null;
}

function byMetric(rows: readonly Row[], metric: string): Row[] {
  const sign = metric === "rate_per_s" ? -1 : 1;
  return rows
    .filter((row) => row.blocks > 0 && row.metrics[metric] !== undefined)
    .sort((a, b) => sign * ((a.metrics[metric]?.center ?? 0) - (b.metrics[metric]?.center ?? 0)));
}

/**
 * Rows by their metric, the best first: one that none other is ahead of by the ratio of the two. Empty where each is
 * behind some other, since not all have the same blocks.
 */
function ranking(comparisons: readonly Comparison[], rows: readonly Row[], metric: string): Row[] {
  const ordered = byMetric(rows, metric);
  const ahead = (other: Row, row: Row): boolean =>
    (against(comparisons, other.target, row.target)?.ratio.center ?? 0) > 1;
  const best = ordered.find((row) => !ordered.some((other) => ahead(other, row)));
  return best === undefined ? [] : [best, ...ordered.filter((row) => row !== best)];
}

function standing(comparison: Comparison | null): Standing {
  if (comparison === null) return { verdict: "none", ratio: null, doubt: null };
  const { verdict, ratio, doubt } = comparison;
  const known = verdict === "slower" || verdict === "faster" || verdict === "equal" ? verdict : "undecided";
  return { verdict: known, ratio, doubt };
}

function outcomeOf(others: readonly Standing[]): Outcome {
  if (others.length === 0) return "alone";
  const tied = others.filter((s) => s.verdict !== "slower");
  if (tied.length === 0) return "fastest";
  return tied.every((s) => s.verdict === "equal") ? "equal" : "undecided";
}

function operationGroup(view: View, rows: Row[], controls: ReadonlySet<string>): OperationGroup {
  const first = rows[0] as Row;
  const comparisons = view.comparisons.filter((c) => sameCell(c, first));
  const metric = first.compared_by;
  const ranks = view.validity !== "unreplicated";
  const mayBeBest = (row: Row): boolean => ranks && !controls.has(row.target) && !isGiven(row.operation);
  const ranked = ranking(comparisons, rows.filter(mayBeBest), metric);
  const best = ranked[0] ?? null;
  const standings = new Map<string, Standing>();
  for (const row of rows) {
    const isBest = best !== null && row.target === best.target;
    const compared = best === null || isBest ? null : against(comparisons, row.target, best.target);
    standings.set(row.target, isBest ? { verdict: "best", ratio: null, doubt: null } : standing(compared));
  }
  const others = ranked.slice(1);
  const standingOf = (row: Row): Standing => standings.get(row.target) ?? standing(null);
  return {
    operation: first.operation,
    rows,
    metric,
    best,
    outcome: outcomeOf(others.map(standingOf)),
    standings,
  };
}

function gather<T>(items: readonly T[], key: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const item of items) {
    const group = groups.get(key(item));
    if (group) group.push(item);
    else groups.set(key(item), [item]);
  }
  return groups;
}

/** All rows of a view, grouped for reading, in the view's order of profiles, loads and operations. */
export function groups(view: View): Group[] {
  const controls = new Set(view.targets.filter((t) => t.control_of !== null).map((t) => t.name));
  const targetRank = new Map(view.targets.map((t, i) => [t.name, i]));
  const rank = (row: Row): number => targetRank.get(row.target) ?? targetRank.size;
  const cells = gather(view.cells, (row) => `${row.workload}|${loadKey(row.load)}`);
  return [...cells].map(([key, rows]): Group => {
    const first = rows[0] as Row;
    const operations = [...gather(rows, (row) => row.operation).values()]
      .map((same) => operationGroup(view, [...same].sort((a, b) => rank(a) - rank(b)), controls));
    return { key, workload: first.workload, load: first.load, operations };
  });
}
