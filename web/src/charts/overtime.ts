/** Values over time within each block: the rate (warm-up, stalls, drift) and the hit ratio. */

import type { LineSeriesOption, SeriesOption } from "echarts";
import type { Context } from "../context";
import * as format from "../format";
import type { OperationGroup } from "../groups";
import type { ResourceCharts, Row } from "../view";
import { secondsAxis, valueAxis } from "./axes";
import { axis, axisTip, type Drawing, endMarked, entries, items, line, type LegendEntry, mount, type TipLine, tip, zoom } from "./base";
import { eventSeries, type Happening, happenings, room, type Told } from "./events";
import { type Choice, cellSelectors, figure, selector } from "./figure";

const ALL_BLOCKS = -1;

/** Height of a chart below its event labels, pixels, and of each further one that shares its time axis. */
export const [HEIGHT, FURTHER] = [330, 118] as const;

/** Height of the axis of seconds and of the name of a vertical axis, pixels. */
const [SECONDS, NAME] = [30, 28] as const;

/** A drawn point: seconds since the start of the measurement, and the value; null in an interval without data. */
export type Point = [number, number | null];

/** A chart over time: data and texts. */
export interface Over {
  id: string;
  title: string;
  hint: string;
  /** Name of the vertical axis and of the lines in the description. */
  quantity: string;
  /** Ticks of the vertical axis from 0 to the maximum, if there is a maximum. */
  marks?: number[];
  /** One series per block. */
  series: (row: Row) => Point[][];
  /** Formats a value with three digits and its unit. */
  short: (value: number) => string;
  long: (text: string) => string;
  /** Formats a value for the axis. */
  tick: (value: number) => string;
  /** The vertical axis of a chart below another one, for this highest value. */
  scale?: (top: number) => object;
  /** Height below another chart, pixels; by default that of all further ones. */
  height?: number;
  /** Further quantities, drawn below on the same time axis where there are data. */
  further?: Over[];
}

/** Points at the ends of intervals of this many seconds. */
export function evenly(step: number, series: readonly (readonly (number | null)[])[]): Point[][] {
  return series.map((values) => values.map((value, i) => [(i + 1) * step, value]));
}

/** A quantity of a target with limited memory, below the rate. */
function resource(quantity: string, read: (charts: ResourceCharts) => (number | null)[][], unit = ""): Over {
  return {
    id: "",
    title: "",
    hint: "",
    quantity,
    series: (row) => (row.charts?.resources === undefined ? [] : evenly(row.charts.resources.interval_s, read(row.charts.resources))),
    short: format.bytes,
    long: (text) => `${text}${unit}`,
    tick: (value) => `${format.bytes(value)}${unit}`,
    scale: byteScale,
  };
}

/** The 99th percentile, below the rate. */
const P99: Over = {
  id: "",
  title: "",
  hint: "",
  quantity: "p99",
  series: (row) => row.charts?.p99_series ?? [],
  short: format.time,
  long: (text) => text,
  tick: format.timeShort,
  scale: () => ({ splitNumber: 2 }),
};

/** Failed operations, below the rate. */
const FAILED: Over = {
  id: "",
  title: "",
  hint: "",
  quantity: "failed/s",
  series: (row) => evenly(row.charts?.interval_s ?? 0, row.charts?.failed_series ?? []),
  short: format.rate,
  long: (text) => text,
  tick: format.rateShort,
  scale: () => ({ splitNumber: 2 }),
};

export const RATE: Over = {
  id: "chart-time",
  title: "Rate over time",
  hint: "Each line is one block. A flat line is a stable store, a rise is warming up, a decline is degradation, a notch is a stall.",
  quantity: "operations/s",
  series: (row) => evenly(row.charts?.interval_s ?? 0, row.charts?.rate_series ?? []),
  short: format.rate,
  long: (text) => `${text} operations/s`,
  tick: format.rateShort,
  further: [
    P99,
    FAILED,
    resource("memory used", (charts) => charts.memory_bytes),
    resource("on swap", (charts) => charts.swapped_bytes),
    resource("read from disk", (charts) => charts.read_bytes_per_s, "/s"),
    resource("written to disk", (charts) => charts.written_bytes_per_s, "/s"),
  ],
};

const HITS: Over = {
  id: "chart-hits",
  title: "Hits over time",
  hint: "Share of reads that found their record. Each line is one block with at least one miss. It falls as records are cleaned or expire.",
  quantity: "hits",
  marks: [0, 0.2, 0.4, 0.6, 0.8, 1],
  series: (row) => evenly(row.charts?.interval_s ?? 0, row.charts?.hit_series ?? []),
  short: format.shareOfAll,
  long: (text) => `${text} of reads hit`,
  tick: format.percent,
};

/** Block of a series, from 0; failed blocks have no series. */
export function blockOf(row: Row, series: number): number {
  return row.charts?.by_block[series]?.block ?? series;
}

export function lines(over: Over, entry: LegendEntry, row: Row, block: number, grid: number): LineSeriesOption[] {
  return over
    .series(row)
    .map((points, i) => ({ points, i }))
    .filter(({ i }) => block === ALL_BLOCKS || blockOf(row, i) === block)
    .map(({ points, i }) =>
      line(entry, {
        id: `${grid} ${entry.name} ${i}`,
        xAxisIndex: grid,
        yAxisIndex: grid,
        data: endMarked(points, entry.look),
        lineStyle: { width: 1.5, opacity: block === ALL_BLOCKS ? 0.62 : 1 },
      }),
    );
}

/** Length of a row's longest series, seconds. */
export function length(over: Over, row: Row): number {
  return Math.max(0, ...over.series(row).map((points) => points[points.length - 1]?.[0] ?? 0));
}

/** Events of each drawn store. Blocks repeat each other, so for all blocks the first one's events are shown. */
export function told(over: Over, context: Context, rows: readonly Row[], legend: readonly LegendEntry[], block: number): Told[] {
  const events = context.view.events ?? [];
  const found = rows.map((row, i): Told => {
    const shown = block === ALL_BLOCKS ? blockOf(row, 0) : block;
    return { entry: legend[i] as LegendEntry, happened: happenings(events, row, shown, length(over, row)) };
  });
  const some = found.filter(({ happened }) => happened.length > 0);
  if (some.length < 2) return some;
  const named = (name: string) => (one: Happening): Happening => ({ ...one, words: `${name}: ${one.words}` });
  return some.map(({ entry, happened }) => ({ entry, happened: happened.map(named(entry.name)) }));
}

/** An item of a tooltip. */
export interface Item {
  seriesId: string;
  seriesName: string;
  seriesType: string;
  value: [number, number | null];
}

/** Tooltip of quantities with the same time axis; `more` adds lines for a time. */
export function timeTip(overs: readonly Over[], params: unknown, legend: readonly LegendEntry[], more: (at_s: number) => TipLine[] = () => []): HTMLElement {
  const shown = items<Item>(params).filter((item) => item.seriesType === "line");
  const at = shown[0]?.value[0] ?? 0;
  let hasMany = false;
  const rows = overs.flatMap((over, grid) => {
    const byTarget = new Map<string, number[]>();
    for (const { seriesId, seriesName, value } of shown) {
      if (value[1] !== null && seriesId.startsWith(`${grid} `)) byTarget.set(seriesName, [...(byTarget.get(seriesName) ?? []), value[1]]);
    }
    return [...byTarget].map(([name, values]) => {
      const ends = [Math.min(...values), Math.max(...values)].map(over.short);
      hasMany ||= values.length > 1;
      const value = values.length === 1 ? (ends[0] as string) : `${ends[0]}–${ends[1]}`;
      const quantity = grid === 0 ? "" : ` ${over.quantity}`;
      return { name: `${name}${quantity}`, look: legend.find((entry) => entry.name === name)?.look, value: over.long(value) };
    });
  });
  return tip(`after ${format.threeDigits(at)} s`, [...rows, ...more(at)], hasMany ? "lowest to highest block" : "");
}

/** The vertical axis; with a maximum it has these ticks, and room for a line at the last one. */
function bounded({ quantity, tick, marks: customValues }: Over): object {
  const plain = valueAxis(quantity, tick);
  if (customValues === undefined) return plain;
  const base = axis();
  return {
    ...plain,
    max: (customValues[customValues.length - 1] ?? 0) * 1.04,
    axisTick: { ...base["axisTick"], customValues },
    axisLabel: { ...plain.axisLabel, customValues },
    splitLine: { ...base["splitLine"], customValues },
  };
}

/** Highest value of a quantity. */
function highest(over: Over, rows: readonly Row[]): number {
  return Math.max(0, ...rows.flatMap((row) => over.series(row).flatMap((points) => points.map(([, value]) => value ?? 0))));
}

/** Two or three ticks of an axis of bytes, at powers of two. */
export function byteScale(top: number): object {
  const step = 2 ** Math.max(0, Math.ceil(Math.log2(top)) - 1);
  return { interval: step, max: step * Math.ceil(top / step) };
}

/** The quantities that are drawn for these rows: the chart's own one, and further ones that are not always 0. */
export function drawn(over: Over, rows: readonly Row[]): Over[] {
  return [over, ...(over.further ?? []).filter((further) => rows.some((row) => isDrawn(further, row)) && highest(further, rows) > 0)];
}

function heightOf(over: Over): number {
  return over.height ?? FURTHER;
}

/** Height of all quantities below the first one, pixels. */
export function below(overs: readonly Over[]): number {
  return overs.slice(1).reduce((sum, over) => sum + heightOf(over), 0);
}

/** Grids and axes of quantities above each other; only the lowest has the labels of the time axis. */
export function stacked(overs: readonly Over[], rows: readonly Row[], above: number, longest: number): object {
  const last = overs.length - 1;
  const first = HEIGHT - (last === 0 ? 8 : SECONDS);
  const grids = overs.map((over, i) => {
    if (last === 0) return { left: 8, right: 20, top: NAME + above, bottom: 8, containLabel: true };
    const top = i === 0 ? NAME + above : above + first + below(overs.slice(0, i)) + NAME + 8;
    return { left: 84, right: 20, top, height: i === 0 ? first - NAME : heightOf(over) - NAME - 16 };
  });
  const seconds = (i: number): object => {
    const base = secondsAxis();
    return { ...base, gridIndex: i, max: last === 0 ? "dataMax" : longest, axisLabel: { ...base.axisLabel, show: i === last } };
  };
  const values = (over: Over, i: number): object => ({ ...bounded(over), gridIndex: i, ...(i === 0 ? {} : over.scale?.(highest(over, rows))) });
  return {
    grid: grids,
    axisPointer: { link: [{ xAxisIndex: "all" }] },
    dataZoom: [zoom("xAxisIndex", overs.map((_, i) => i))],
    xAxis: overs.map((_, i) => seconds(i)),
    yAxis: overs.map(values),
  };
}

function drawing(over: Over, context: Context, op: OperationGroup, [block, width]: [number, number]): Drawing {
  const rows = op.rows.filter((row) => isDrawn(over, row));
  const legend = entries(context.view, rows.map((row) => row.target));
  const events = told(over, context, rows, legend, block);
  const longest = Math.max(0, ...rows.map((row) => length(over, row)));
  const above = room(events, longest, width);
  const ofFirst = block === ALL_BLOCKS && rows.some((row) => over.series(row).length > 1);
  const marked = events.length === 0 ? "" : `Vertical lines: events${ofFirst ? " in the first block" : ""}.`;
  const overs = drawn(over, rows);
  const further = below(overs);
  const series = overs.flatMap((one, grid) => rows.flatMap((row, i): SeriesOption[] => lines(one, legend[i] as LegendEntry, row, block, grid)));
  return {
    legend,
    label: `Lines of ${format.list(overs.map((one) => one.quantity))} over time, one for each block, for ${format.list(legend.map((e) => e.name))}.`,
    note: [marked, over === RATE ? tooShort(op) : ""].filter((text) => text !== "").join(" "),
    ...(above + further > 0 ? { height: HEIGHT + above + further } : {}),
    option: {
      ...stacked(overs, rows, above, longest),
      tooltip: axisTip((params) => timeTip(overs, params, legend)),
      series: [...series, ...eventSeries(events, further)],
    },
  };
}

/** A line needs two intervals. */
export function isDrawn(over: Over, row: Row): boolean {
  return over.series(row).some((series) => series.length > 1);
}

/** Stores without a line because they finished too soon; empty if all have one. */
export function tooShort({ rows }: OperationGroup): string {
  const missing = rows.filter((row) => !isDrawn(RATE, row)).map((row) => row.target);
  if (missing.length === 0) return "";
  const interval_s = Math.max(...rows.map((row) => row.charts?.interval_s ?? 0));
  return `No line for ${format.list(missing)}: finished in less than two intervals of ${format.threeDigits(interval_s)} s.`;
}

function blockChoices(over: Over, op: OperationGroup): Choice<number>[] {
  const blocks = op.rows.flatMap((row) => over.series(row).map((_, i) => blockOf(row, i)));
  const single = [...new Set(blocks)].sort((a, b) => a - b).map((i) => ({ name: `block ${i + 1}`, value: i }));
  return single.length === 1 ? single : [{ name: "all blocks", value: ALL_BLOCKS }, ...single];
}

/** The chart of rates over time; null without data. */
export function overTime(context: Context): HTMLElement | null {
  return chartOf(RATE, context);
}

/** The chart of the hit ratio over time; null if every read hit. */
export function hitsOverTime(context: Context): HTMLElement | null {
  return chartOf(HITS, context);
}

function chartOf(over: Over, context: Context): HTMLElement | null {
  const has = (op: OperationGroup): boolean => op.rows.some((row) => isDrawn(over, row));
  const choices = (): Choice<number>[] => blockChoices(over, selectors?.operation() as OperationGroup);
  const selectors = cellSelectors(context, has, () => {
    byBlock.offer(choices());
    chart.redraw();
  });
  if (selectors === null) return null;
  const byBlock = selector("Block", choices(), () => chart.redraw());
  const chart = mount((width) => drawing(over, context, selectors.operation(), [byBlock.value(), width]));
  return figure(context, over.id, over.title, over.hint, [...selectors.elements, byBlock.element], chart);
}
