/** A heat map of rows that form a grid: a table whose cells have a figure and a shade of it. */

import { type Context, paint, targetName } from "../context";
import { h, none, scrollBox } from "../dom";
import * as format from "../format";
import type { GridAxis, GridCell, GridView } from "../gridview";
import type { Row, Value } from "../view";
import { type Choice, figure, selector, type Selector } from "./figure";

/** Names of axes, and of their values. */
const AXES: Record<GridAxis["name"], { name: string; print: (value: number) => string }> = {
  value_bytes: { name: "value size", print: format.bytes },
  clients: { name: "connections", print: format.count },
  pipeline: { name: "requests at once", print: format.count },
  threads: { name: "I/O threads", print: format.count },
};

/** A figure of a row, and how it is written. */
interface Figure {
  name: string;
  read: (row: Row) => Value | undefined;
  print: (value: number) => string;
}

const FIGURES: Figure[] = [
  { name: "operations per second", read: (row) => row.metrics["rate_per_s"], print: format.rate },
  { name: "p99", read: (row) => row.metrics[`${format.times(row.load)}_ns_p99`], print: format.time },
];

/** Share of the shade's colour at the highest value; more would make the text hard to read. */
const SHADE = 46;

/** A drawn cell; null where nothing was measured. */
export type Drawn = { text: string; interval: string; shade: number } | null;

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
function operations(cells: readonly Row[], grid: GridView): string[] {
  return [...new Set(grid.cells.map(({ row }) => (cells[row] as Row).operation))];
}

/** Cells by row and column. Shades are by the logarithm of the figure, over all cells of the operation. */
export function drawnCells(cells: readonly Row[], grid: GridView, { operation, figure: { read, print }, rows, columns, fixed }: Chosen): Drawn[][] {
  const own = grid.cells.filter(({ row }) => (cells[row] as Row).operation === operation);
  const valueOf = ({ row }: GridCell): Value | undefined => read(cells[row] as Row);
  const logs = own.map(valueOf).flatMap((value) => (value !== undefined && value.center > 0 ? [Math.log(value.center)] : []));
  const [low, high] = [Math.min(...logs), Math.max(...logs)];
  const isShown = ({ at }: GridCell): boolean => at.every((index, axis) => axis === rows || axis === columns || index === fixed[axis]);
  const shown = own.filter(isShown);
  const cell = (r: number, c: number): Drawn => {
    const found = shown.find(({ at }) => at[rows] === r && at[columns] === c);
    const value = found === undefined ? undefined : valueOf(found);
    if (value === undefined) return null;
    const share = high > low ? (Math.log(value.center) - low) / (high - low) : 1;
    return { text: `${value.at_least ? "≥ " : ""}${print(value.center)}`, interval: format.interval(value, print), shade: Math.round(share * SHADE) };
  };
  const [down, across] = [grid.axes[rows], grid.axes[columns]] as [GridAxis, GridAxis];
  return down.values.map((_, r) => across.values.map((__, c) => cell(r, c)));
}

function table(grid: GridView, chosen: Chosen, drawn: readonly Drawn[][]): HTMLElement {
  const [down, across] = [grid.axes[chosen.rows], grid.axes[chosen.columns]] as [GridAxis, GridAxis];
  const named = (axis: GridAxis, i: number): string => AXES[axis.name].print(axis.values[i] as number);
  const cell = (one: Drawn): HTMLElement => {
    if (one === null) return h("td", { class: "number" }, none("not measured"));
    return h("td", { class: "number", style: `--shade:${one.shade}%`, title: one.interval }, one.text);
  };
  const head = h("tr", {}, h("th", { scope: "col" }, `${AXES[down.name].name} ↓ · ${AXES[across.name].name} →`), across.values.map((_, i) => h("th", { scope: "col", class: "number" }, named(across, i))));
  const body = drawn.map((line, i) => h("tr", {}, h("th", { scope: "row" }, named(down, i)), line.map(cell)));
  return h("table", { class: "heatmap" }, h("thead", {}, head), h("tbody", {}, body));
}

function gridName(context: Context, grid: GridView): string {
  const all = context.view.grids ?? [];
  const isAlone = new Set(all.map(({ profile }) => profile)).size === 1;
  return isAlone ? grid.target : `${grid.target} · ${grid.profile}`;
}

/** Selectors of one grid, which is replaced as a whole by another one. */
class Panel {
  readonly element = h("div", { class: "heatmap-panel" });
  private readonly canvas = h("div", { class: "heatmap-canvas" });
  private operation!: Selector<string>;
  private shown!: Selector<Figure>;
  private rows!: Selector<number>;
  private columns!: Selector<number>;
  private fixed: Selector<number>[] = [];
  private grid!: GridView;

  constructor(
    private readonly context: Context,
    first: GridView,
  ) {
    this.use(first);
  }

  /** Shows another grid with its own axes. */
  use(grid: GridView): void {
    this.grid = grid;
    const redraw = (): void => this.redraw();
    const names = grid.axes.map(({ name }, value): Choice<number> => ({ name: AXES[name].name, value }));
    this.operation = selector("Operation", operations(this.context.view.cells, grid).map((value) => ({ name: format.operationTitle(value), value })), redraw);
    this.shown = selector("Figure", FIGURES.map((value) => ({ name: value.name, value })), redraw);
    this.rows = selector("Rows", names, () => {
      this.columns.offer(names.filter(({ value }) => value !== this.rows.value()));
      this.redraw();
    });
    this.columns = selector("Columns", names.slice(1), redraw);
    this.fixed = grid.axes.map(({ name, values }) => selector(AXES[name].name, values.map((value, i) => ({ name: AXES[name].print(value), value: i })), redraw));
    const all = [this.operation, this.shown, this.rows, this.columns, ...this.fixed];
    this.element.replaceChildren(h("div", { class: "selectors" }, all.map(({ element }) => element)), this.canvas);
    this.redraw();
  }

  redraw(): void {
    const { grid } = this;
    const [rows, columns] = [this.rows.value(), this.columns.value()];
    this.fixed.forEach(({ element }, axis) => element.toggleAttribute("hidden", axis === rows || axis === columns));
    const chosen = { operation: this.operation.value(), figure: this.shown.value(), rows, columns, fixed: this.fixed.map((one) => one.value()) };
    const drawn = drawnCells(this.context.view.cells, grid, chosen);
    const label = `${chosen.figure.name} of ${grid.target}, ${chosen.operation}`;
    this.canvas.replaceChildren(h("p", { class: "chart-note" }, targetName(grid.target), ` ${format.operationTitle(chosen.operation)}, ${chosen.figure.name}`), scrollBox(label, table(grid, chosen, drawn)));
    paint(this.context.view, this.canvas);
  }
}

/** The heat map; null without a grid. */
export function heatMap(context: Context): HTMLElement | null {
  const [first, ...others] = context.view.grids ?? [];
  if (first === undefined) return null;
  const panel = new Panel(context, first);
  const choices = [first, ...others].map((value) => ({ name: gridName(context, value), value }));
  const byGrid = selector("Target", choices, () => panel.use(byGrid.value()));
  const redraw = (): void => panel.redraw();
  const hint = "One figure over two axes; the selectors choose them, and the values of all others. The stronger the colour of a cell, the higher its figure, on a logarithmic scale that all cells of the operation share.";
  return figure(context, "chart-heatmap", "Grid", hint, [byGrid.element], { element: h("div", { class: "chart" }, panel.element), redraw, refresh: redraw });
}
