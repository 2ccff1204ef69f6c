/** Orders the rows of a view for charts: by workload and load, then by operation. */

import type { Load, Row, Value, View } from "./view";

/** All targets for one operation. */
export interface OperationGroup {
  operation: string;
  /** In the order of the view's targets. */
  rows: Row[];
}

/** All operations for one workload and load. */
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

/** The inverse of a ratio with its interval. */
export function inverse(value: Value): Value {
  return {
    center: 1 / value.center,
    lo: value.hi === null ? null : 1 / value.hi,
    hi: value.lo === null ? null : 1 / value.lo,
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
  const targetRank = new Map(view.targets.map((t, i) => [t.name, i]));
  const rank = (row: Row): number => targetRank.get(row.target) ?? targetRank.size;
  const cells = gather(view.cells, (row) => `${row.workload}|${loadKey(row.load)}`);
  return [...cells].map(([key, rows]): Group => {
    const first = rows[0] as Row;
    const operations = [...gather(rows, (row) => row.operation)]
      .map(([operation, same]): OperationGroup => ({ operation, rows: [...same].sort((a, b) => rank(a) - rank(b)) }));
    return { key, workload: first.workload, load: first.load, operations };
  });
}
