/** Response curves of a grid: a figure along one axis, with a line for each value of another. */

import type { SeriesOption } from "echarts";
import * as format from "../format";
import type { GridAxis, GridView } from "../gridview";
import * as theme from "../theme";
import type { Row, Value } from "../view";
import { logAxis, valuesAxis } from "./axes";
import { axisTip, type Drawing, items, type LegendEntry, line, tip, zoom } from "./base";
import { AXES, type Chosen, shownValues } from "./grid";
import { intervalBars, type LogPoint, logPoint } from "./logpoints";

/** A line: its value on the axis of rows, and its points with their values. */
export interface Curve {
  name: string;
  points: { at: LogPoint; value: Value }[];
}

/** The lines of a grid; combinations that were not measured are left out. */
export function curvesOf(cells: readonly Row[], grid: GridView, chosen: Chosen): Curve[] {
  const [down, across] = [grid.axes[chosen.rows], grid.axes[chosen.columns]] as [GridAxis, GridAxis];
  const { name, print } = AXES[down.name];
  return shownValues(cells, grid, chosen).map((values, r) => ({
    name: `${name} ${print(down.values[r] as number)}`,
    points: values.flatMap((value, c) => {
      const x = across.values[c] as number;
      return value === undefined || value.center <= 0 || x <= 0 ? [] : [{ at: logPoint(x, value), value }];
    }),
  }));
}

function curveTip(params: unknown, all: readonly Curve[], { figure, columns }: Chosen, { axes }: GridView, legend: readonly LegendEntry[]): HTMLElement {
  const shown = items<{ seriesName: string; seriesType: string; value: LogPoint }>(params).filter((item) => item.seriesType === "line");
  const x = shown[0]?.value[0] ?? 0;
  const lines = shown.flatMap(({ seriesName }) => {
    const point = all.find(({ name }) => name === seriesName)?.points.find(({ at }) => at[0] === x);
    if (point === undefined) return [];
    const ends = format.interval(point.value, figure.print);
    const value = `${figure.print(point.value.center)}${ends === "" ? "" : ` (${ends})`}`;
    return [{ name: seriesName, look: legend.find(({ name }) => name === seriesName)?.look, value }];
  });
  const axis = axes[columns] as GridAxis;
  return tip(`${AXES[axis.name].print(Math.round(10 ** x))} ${AXES[axis.name].name}`, lines);
}

/** The chart of these lines. */
export function curves(cells: readonly Row[], grid: GridView, chosen: Chosen): Drawing {
  const all = curvesOf(cells, grid, chosen);
  const across = AXES[(grid.axes[chosen.columns] as GridAxis).name];
  const legend = all.map(({ name }, i) => ({ name, look: theme.look(i, theme.current(), false) }));
  const points = all.flatMap((curve) => curve.points.map(({ at }) => at));
  const series = all.flatMap(({ points: own }, i): SeriesOption[] => {
    const entry = legend[i] as LegendEntry;
    const drawn = own.map(({ at }) => at);
    return [line(entry, { data: drawn, encode: { x: 0, y: 1 } }), intervalBars(entry, drawn)];
  });
  return {
    legend,
    label: `Lines of ${chosen.figure.name} by ${across.name} for ${format.list(legend.map(({ name }) => name))}; the same numbers are in the table above.`,
    option: {
      grid: { left: 8, right: 20, top: 28, bottom: 30, containLabel: true },
      tooltip: axisTip((params) => curveTip(params, all, chosen, grid, legend), true),
      dataZoom: [zoom("xAxisIndex"), zoom("yAxisIndex")],
      xAxis: valuesAxis(points.map(([x]) => x), across.name, (x) => across.print(Math.round(x))),
      yAxis: logAxis(points.flatMap(([, , lo, hi]) => [lo, hi]), chosen.figure.tick, chosen.figure.name),
      series,
    },
  };
}
