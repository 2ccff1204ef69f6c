/** Rates by operation with intervals and a dot per block: bars from zero, or marks on a logarithmic axis if rates differ much. */

import type { CustomSeriesOption } from "echarts";
import type { Context } from "../context";
import * as format from "../format";
import type { Group } from "../groups";
import * as theme from "../theme";
import type { Row } from "../view";
import { valueAxis } from "./axes";
import { axis, type Drawing, entries, ink, type LegendEntry, mount, type RenderItem, tip, zoom } from "./base";
import { figure, groupName, selector } from "./figure";

const RATE = "rate_per_s";

/** Maximum drawn length of an interval, as a multiple of its bar: a wider one would leave no room for the bars. */
const DRAWN = 2;

/** Height of a column including its mark, as a multiple of its highest value. */
const ROOM = 1.06;

/** The rates of single blocks. */
function byBlock(row: Row): number[] {
  return (row.charts?.by_block ?? []).map((block) => block.rate_per_s);
}

/** Highest rate to which a row's interval is drawn. */
function limit(row: Row): number {
  return DRAWN * Math.max(row.metrics[RATE]?.center ?? 0, ...byBlock(row));
}

/** True if a row's interval extends beyond its drawn part. */
export function goesOn(row: Row): boolean {
  return (row.metrics[RATE]?.hi ?? 0) > limit(row);
}

/** Largest drawn rate of a row. */
export function highest(row: Row): number {
  const { center = 0, hi = null } = row.metrics[RATE] ?? {};
  return Math.max(center, Math.min(hi ?? 0, limit(row)), ...byBlock(row));
}

/** Maximum ratio of the highest to the lowest rate for visible bars. */
const BARS_MAX = 50;

/** True if rates differ too much for bars from zero, so that a logarithmic axis is better. */
export function differMuch(group: Group): boolean {
  const rates = group.operations.flatMap((op) => op.rows.map((row) => row.metrics[RATE]?.center ?? 0)).filter((rate) => rate > 0);
  return Math.max(...rates) > BARS_MAX * Math.min(...rates);
}

/** Lowest drawn rate of a row. */
function lowest(row: Row): number {
  const { center = Infinity, lo = null } = row.metrics[RATE] ?? {};
  return Math.min(center, Math.max(lo ?? center, center / DRAWN), ...byBlock(row).filter((rate) => rate > 0));
}

type Api = Parameters<RenderItem>[1];
type Shape = Exclude<ReturnType<RenderItem>, null | undefined>;

/** Position of a bar: middle and width in pixels, and the y coordinates of its values. */
interface Place {
  middle: number;
  width: number;
  y: (rate: number) => number;
}

function place(api: Api, index: number, series: number): Place {
  const visible = api.currentSeriesIndices();
  const band = (api.size?.([1, 0]) as number[])[0] as number;
  const slot = Math.min(64, (band * 0.78) / Math.max(1, visible.length));
  const offset = (visible.indexOf(series) - (visible.length - 1) / 2) * slot;
  const [x] = api.coord([index, 0]) as [number, number];
  return {
    middle: x + offset,
    width: Math.max(4, slot * 0.78),
    y: (rate) => (api.coord([index, rate]) as [number, number])[1],
  };
}

function bar(at: Place, rate: number, look: theme.Look): Shape {
  const top = at.y(rate);
  const shape = { x: at.middle - at.width / 2, y: top, width: at.width, height: Math.max(1, at.y(0) - top) };
  const dash = look.hollow ? { lineDash: [4, 3] } : {};
  return {
    type: "rect",
    shape,
    style: { fill: look.color, fillOpacity: look.hollow ? 0.08 : 0.26, stroke: look.color, lineWidth: 1.25, ...dash },
  };
}

// The whole column reacts to the pointer, since a low bar would be hard to hit.
function hit(at: Place, y: number, height: number): Shape {
  return { type: "rect", shape: { x: at.middle - at.width / 2, y, width: at.width, height }, style: { fill: "transparent" } };
}

// An interval that exceeds the chart ends with an arrow instead of a cap.
function whisker(at: Place, lo: number, hi: number, goes: boolean, stroke: string): Shape[] {
  const cap = Math.min(7, at.width / 3);
  const [low, high] = [at.y(lo), at.y(hi)];
  const line = (x1: number, y1: number, x2: number, y2: number): Shape => ({
    type: "line",
    shape: { x1, y1, x2, y2 },
    style: { stroke, lineWidth: 1.25 },
    silent: true,
  });
  return [
    line(at.middle, low, at.middle, high),
    line(at.middle - cap, low, at.middle + cap, low),
    goes ? arrow(at.middle, high, stroke) : line(at.middle - cap, high, at.middle + cap, high),
  ];
}

function arrow(x: number, y: number, fill: string): Shape {
  const points = [[x, y], [x - 5, y + 9], [x + 5, y + 9]];
  return { type: "polygon", shape: { points }, style: { fill }, silent: true };
}

/** Largest size of a mark. */
const MARK_PX = 10;

function markSize(at: Place): number {
  return Math.max(5, Math.min(MARK_PX, at.width));
}

// Above the highest value, because bars have no dash to distinguish stores of the same colour.
function mark(at: Place, y: number, look: theme.Look, ground: string): Shape {
  // ECharts keeps a path's shape when it redraws at another width, so move and scale it instead.
  const size = markSize(at);
  const shape = { pathData: theme.outline(look.mark), x: 0, y: 0, width: MARK_PX, height: MARK_PX };
  const scale = size / MARK_PX;
  return { type: "path", x: at.middle - size / 2, y, scaleX: scale, scaleY: scale, shape, style: { fill: look.hollow ? ground : look.color, stroke: look.color, lineWidth: 1 }, silent: true };
}

// Blocks are drawn side by side in order, so that a drift over the run shows as a slope.
function dots(at: Place, rates: readonly number[], look: theme.Look, ground: string): Shape[] {
  const step = rates.length > 1 ? (at.width * 0.7) / (rates.length - 1) : 0;
  const radius = Math.max(1.5, Math.min(3, at.width / 9));
  return rates.map((rate, i) => ({
    type: "circle",
    shape: { cx: at.middle + (i - (rates.length - 1) / 2) * step, cy: at.y(rate), r: radius },
    style: { fill: look.color, stroke: ground, lineWidth: 1 },
    silent: true,
  }));
}

function series(group: Group, index: number, entry: LegendEntry, rows: (Row | undefined)[], isMarked: boolean): CustomSeriesOption {
  const isLog = differMuch(group);
  const colours = ink();
  return {
    type: "custom",
    name: entry.name,
    clip: true,
    encode: { x: 0, y: [1, 2] },
    data: rows.flatMap((row, at) => {
      const value = row?.metrics[RATE];
      return row === undefined || value === undefined ? [] : [[at, value.center, ROOM * highest(row)]];
    }),
    renderItem: (params, api) => {
      const at = api.value(0) as number;
      const row = rows[at];
      const value = row?.metrics[RATE];
      if (row === undefined || value === undefined) return null;
      const spot = place(api, at, index);
      const { lo, hi } = value;
      const top = Math.min(hi ?? 0, limit(row));
      const interval = lo === null || hi === null ? [] : whisker(spot, isLog ? Math.max(lo, lowest(row)) : lo, top, goesOn(row), colours.text);
      const single = byBlock(row);
      const blocks = single.length > 1 ? dots(spot, single, entry.look, colours.ground) : [];
      // A logarithmic axis has no zero for bars, so the mark is the value.
      const size = markSize(spot);
      const marked = isLog ? spot.y(value.center) - size / 2 : spot.y(highest(row)) - size - 4;
      const above = isMarked || isLog ? [mark(spot, marked, entry.look, colours.ground)] : [];
      const { y, height } = params.coordSys as unknown as { y: number; height: number };
      const children = [hit(spot, y, height), ...(isLog ? [] : [bar(spot, value.center, entry.look)]), ...blocks, ...interval, ...above];
      return { type: "group", children };
    },
    tooltip: { formatter: (params) => rateTip(group, entry, rows[(params as { value: number[] }).value[0] as number]) },
  };
}

function rateTip(group: Group, { name, look }: LegendEntry, row: Row | undefined): HTMLElement {
  const value = row?.metrics[RATE];
  if (row === undefined || value === undefined) return tip(name, []);
  const ends = format.interval(value, format.rate);
  const blocks = byBlock(row).map(format.rate);
  return tip(
    `${format.operationTitle(row.operation)}, ${format.load(group.load)}`,
    [{ name, look, value: `${format.rate(value.center)} operations/s` }],
    [ends === "" ? "too few blocks for an interval" : `${format.endsName(row.blocks)} ${ends}`, `blocks: ${blocks.join(" · ")}`].join("\n"),
  );
}

function targetsOf(group: Group): string[] {
  return [...new Set(group.operations.flatMap((op) => op.rows.map((row) => row.target)))];
}

/** Explanation of what is drawn besides the bars. */
export function drawnParts(group: Group): string {
  const isLog = differMuch(group);
  const rows = group.operations.flatMap((op) => op.rows).filter((row) => row.metrics[RATE] !== undefined);
  const fewest = Math.min(...rows.map((row) => row.blocks));
  const parts = [
    `${isLog ? "Mark" : "Bar"}: ${fewest > 1 ? "geometric mean over blocks" : "measured rate"}`,
    rows.some((row) => row.metrics[RATE]?.lo !== null) ? `line through ${isLog ? "it" : "its top"}: ${format.endsName(fewest)}` : "",
    rows.some((row) => byBlock(row).length > 1) ? "small dots: individual blocks, in order" : "",
    targetsOf(group).length > 1 && !isLog ? "mark above: store, as in the legend" : "",
  ].filter((text) => text !== "");
  const goes = rows.some(goesOn) ? ` ▲ This interval exceeds twice its ${isLog ? "rate" : "bar"}; hover for both bounds.` : "";
  return `${parts.join("; ")}.${isLog ? " Logarithmic axis: each step is ten times the one below." : ""}${goes}`;
}

function rateScale(group: Group) {
  const isLog = differMuch(group);
  const scale = valueAxis("operations/s", format.rateShort, isLog);
  if (!isLog) return scale;
  const rows = group.operations.flatMap((op) => op.rows);
  return { ...scale, min: 10 ** Math.floor(Math.log10(Math.min(...rows.map(lowest)))) };
}

/** Width in pixels that an operation's name needs. */
const NAME_PX = 72;

function drawing(context: Context, group: Group, width: number): Drawing {
  const names = targetsOf(group);
  const legend = entries(context.view, names);
  const rowsOf = (name: string): (Row | undefined)[] =>
    group.operations.map((op) => op.rows.find((row) => row.target === name));
  const base = axis();
  const isNarrow = width < NAME_PX * group.operations.length;
  return {
    legend,
    note: drawnParts(group),
    label: `Operations per second for ${group.operations.length} operations and ${names.length} stores; the same numbers are in the table of results.`,
    option: {
      grid: { left: 8, right: 12, top: 28, bottom: 8, containLabel: true },
      tooltip: { trigger: "item" },
      dataZoom: [zoom("xAxisIndex")],
      xAxis: {
        type: "category",
        data: group.operations.map((op) => format.operationTitle(op.operation)),
        ...base,
        axisLabel: { ...base["axisLabel"], color: ink().text, hideOverlap: false, interval: 0, lineHeight: 14, ...(isNarrow ? { rotate: 50 } : { width: 84, overflow: "break" as const }) },
        splitLine: { show: false },
      },
      yAxis: rateScale(group),
      series: legend.map((entry, i) => series(group, i, entry, rowsOf(entry.name), names.length > 1)),
    },
  };
}

/** The chart of rates; null if nothing was measured. */
export function rates(context: Context): HTMLElement | null {
  if (context.groups.length === 0) return null;
  const choices = context.groups.map((group) => ({ name: groupName(context, group), value: group }));
  const byLoad = selector("Load", choices, () => chart.redraw());
  const chart = mount((width) => drawing(context, byLoad.value(), width));
  return figure(
    context,
    "chart-rates",
    "Rate by operation",
    "Higher is better.",
    [byLoad.element],
    chart,
  );
}
