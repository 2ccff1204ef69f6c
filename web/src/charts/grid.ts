/** Rows that form a grid: its axes, and the figures over two of them. */

import * as format from "../format";
import type { GridAxis, GridView } from "../gridview";
import type { Row, Value } from "../view";

/** Names of axes, and of their values. */
export const AXES: Record<GridAxis["name"], { name: string; print: (value: number) => string }> = {
  value_bytes: { name: "value size", print: format.bytes },
  clients: { name: "connections", print: format.count },
  pipeline: { name: "requests at once", print: format.count },
  threads: { name: "I/O threads", print: format.count },
};

/** A figure of a row, and how it is written. */
export interface Figure {
  name: string;
  read: (row: Row) => Value | undefined;
  print: (value: number) => string;
  /** How it is written on an axis. */
  tick: (value: number) => string;
}

export const FIGURES: Figure[] = [
  { name: "operations per second", read: (row) => row.metrics["rate_per_s"], print: format.rate, tick: format.rateShort },
  { name: "p99", read: (row) => row.metrics[`${format.times(row.load)}_ns_p99`], print: format.time, tick: format.timeShort },
];

/** What a grid shows: its operation and figure, two axes, and the chosen value of each axis. */
export interface Chosen {
  operation: string;
  figure: Figure;
  /** Indices of the axes of rows and columns. */
  rows: number;
  columns: number;
  /** For each axis the index of its value; those of rows and columns are ignored. */
  fixed: readonly number[];
}

/** Operations of a grid, in the order of its rows. */
export function operations(cells: readonly Row[], grid: GridView): string[] {
  return [...new Set(grid.cells.map(({ row }) => (cells[row] as Row).operation))];
}

/** All values of the chosen operation and figure. */
export function allValues(cells: readonly Row[], grid: GridView, { operation, figure }: Chosen): Value[] {
  const own = grid.cells.map(({ row }) => cells[row] as Row).filter((row) => row.operation === operation);
  return own.flatMap((row) => figure.read(row) ?? []);
}

/** The chosen values by row and column; undefined where nothing was measured. */
export function shownValues(cells: readonly Row[], grid: GridView, { operation, figure, rows, columns, fixed }: Chosen): (Value | undefined)[][] {
  const isShown = (at: readonly number[]): boolean => at.every((index, axis) => axis === rows || axis === columns || index === fixed[axis]);
  const shown = grid.cells.filter(({ at, row }) => (cells[row] as Row).operation === operation && isShown(at));
  const [down, across] = [grid.axes[rows], grid.axes[columns]] as [GridAxis, GridAxis];
  return down.values.map((_, r) =>
    across.values.map((__, c) => {
      const found = shown.find(({ at }) => at[rows] === r && at[columns] === c);
      return found === undefined ? undefined : figure.read(cells[found.row] as Row);
    }),
  );
}
