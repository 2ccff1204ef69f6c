/** A heat map of rows that form a grid: a table whose cells have a figure and a shade of it, and the same as lines. */

import { type Context, paint, targetName } from "../context";
import { h, none, scrollBox } from "../dom";
import * as format from "../format";
import type { GridAxis, GridView } from "../gridview";
import type { Row, Value } from "../view";
import { mount } from "./base";
import { type Choice, figure, selector, type Selector } from "./figure";
import { allValues, AXES, type Chosen, type Figure, FIGURES, operations, shownValues } from "./grid";
import { curves } from "./response";

/** Share of the shade's colour at the highest value; more would make the text hard to read. */
const SHADE = 46;

/** A drawn cell; null where nothing was measured. */
export type Drawn = { text: string; interval: string; shade: number } | null;

/** Cells by row and column. Shades are by the logarithm of the figure, over all cells of the operation. */
export function drawnCells(cells: readonly Row[], grid: GridView, chosen: Chosen): Drawn[][] {
  const { print } = chosen.figure;
  const logs = allValues(cells, grid, chosen).flatMap(({ center }) => (center > 0 ? [Math.log(center)] : []));
  const [low, high] = [Math.min(...logs), Math.max(...logs)];
  const cell = (value: Value | undefined): Drawn => {
    if (value === undefined) return null;
    const share = high > low ? (Math.log(value.center) - low) / (high - low) : 1;
    return { text: `${value.at_least ? "≥ " : ""}${print(value.center)}`, interval: format.interval(value, print), shade: Math.round(share * SHADE) };
  };
  return shownValues(cells, grid, chosen).map((line) => line.map(cell));
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
  private readonly chart = mount(() => curves(this.context.view.cells, this.grid, this.chosen()), "lines shown");
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
    this.element.replaceChildren(h("div", { class: "selectors" }, all.map(({ element }) => element)), this.canvas, this.chart.element);
    this.redraw();
  }

  private chosen(): Chosen {
    const fixed = this.fixed.map((one) => one.value());
    return { operation: this.operation.value(), figure: this.shown.value(), rows: this.rows.value(), columns: this.columns.value(), fixed };
  }

  redraw(): void {
    const { grid } = this;
    const chosen = this.chosen();
    this.fixed.forEach(({ element }, axis) => element.toggleAttribute("hidden", axis === chosen.rows || axis === chosen.columns));
    const drawn = drawnCells(this.context.view.cells, grid, chosen);
    const label = `${chosen.figure.name} of ${grid.target}, ${chosen.operation}`;
    this.canvas.replaceChildren(h("p", { class: "chart-note" }, targetName(grid.target), ` ${format.operationTitle(chosen.operation)}, ${chosen.figure.name}`), scrollBox(label, table(grid, chosen, drawn)));
    paint(this.context.view, this.canvas);
    this.chart.redraw();
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
  const hint = "One figure over two axes; the selectors choose them, and the values of all others. The stronger the colour of a cell, the higher its figure, on a logarithmic scale that all cells of the operation share. The lines below are the same cells: along the columns, a line for each row, with 95 % intervals; both axes are logarithmic.";
  return figure(context, "chart-heatmap", "Grid", hint, [byGrid.element], { element: h("div", { class: "chart" }, panel.element), redraw, refresh: redraw });
}
