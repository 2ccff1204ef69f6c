/** Values over time within each block: the rate (warm-up, stalls, drift) and the hit ratio. */

import type { LineSeriesOption, SeriesOption } from "echarts";
import type { Context } from "../context";
import * as format from "../format";
import type { OperationGroup } from "../groups";
import type { Row } from "../view";
import { secondsAxis, valueAxis } from "./axes";
import { axis, axisTip, type Drawing, endMarked, entries, items, line, type LegendEntry, mount, tip, zoom } from "./base";
import { eventSeries, type Happening, happenings, room, type Told } from "./events";
import { type Choice, cellSelectors, figure, selector } from "./figure";

const ALL_BLOCKS = -1;

/** Height of a chart below its event labels, pixels. */
const HEIGHT = 330;

/** A chart over time: data and texts. */
interface Over {
  id: string;
  title: string;
  hint: string;
  /** Name of the vertical axis and of the lines in the description. */
  quantity: string;
  /** Ticks of the vertical axis from 0 to the maximum, if there is a maximum. */
  marks?: number[];
  /** One series per block; null for an interval without data. */
  series: (row: Row) => (number | null)[][];
  /** Formats a value with three digits and its unit. */
  short: (value: number) => string;
  long: (text: string) => string;
  /** Formats a value for the axis. */
  tick: (value: number) => string;
}

const RATE: Over = {
  id: "chart-time",
  title: "Rate over time",
  hint: "Each line is one block. A flat line is a stable store, a rise is warming up, a decline is degradation, a notch is a stall.",
  quantity: "operations/s",
  series: (row) => row.charts?.rate_series ?? [],
  short: format.rate,
  long: (text) => `${text} operations/s`,
  tick: format.rateShort,
};

const HITS: Over = {
  id: "chart-hits",
  title: "Hits over time",
  hint: "Share of reads that found their record. Each line is one block with at least one miss. It falls as records are cleaned or expire.",
  quantity: "hits",
  marks: [0, 0.2, 0.4, 0.6, 0.8, 1],
  series: (row) => row.charts?.hit_series ?? [],
  short: format.shareOfAll,
  long: (text) => `${text} of reads hit`,
  tick: format.percent,
};

/** Drawn points: seconds since the start of the measurement, and the value. */
function points(over: Over, row: Row, series: number): [number, number | null][] {
  const step = row.charts?.interval_s ?? 0;
  return (over.series(row)[series] ?? []).map((value, i) => [(i + 1) * step, value]);
}

/** Block of a series, from 0; failed blocks have no series. */
function blockOf(row: Row, series: number): number {
  return row.charts?.by_block[series]?.block ?? series;
}

function lines(over: Over, entry: LegendEntry, row: Row, block: number): LineSeriesOption[] {
  const series = over.series(row).map((_, i) => i);
  return series
    .filter((i) => block === ALL_BLOCKS || blockOf(row, i) === block)
    .map((i) =>
      line(entry, {
        id: `${entry.name} ${i}`,
        data: endMarked(points(over, row, i), entry.look),
        lineStyle: { width: 1.5, opacity: block === ALL_BLOCKS ? 0.62 : 1 },
      }),
    );
}

/** Length of a row's longest series, seconds. */
function length(over: Over, row: Row): number {
  return (row.charts?.interval_s ?? 0) * Math.max(0, ...over.series(row).map((series) => series.length));
}

/** Events of each drawn store. Blocks repeat each other, so for all blocks the first one's events are shown. */
function told(over: Over, context: Context, rows: readonly Row[], legend: readonly LegendEntry[], block: number): Told[] {
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

interface Item {
  seriesName: string;
  seriesType: string;
  value: [number, number | null];
}

function timeTip(over: Over, params: unknown, legend: readonly LegendEntry[]): HTMLElement {
  const shown = items<Item>(params).filter((item) => item.seriesType === "line");
  const at = shown[0]?.value[0] ?? 0;
  const byTarget = new Map<string, number[]>();
  for (const { seriesName, value } of shown) {
    if (value[1] !== null) byTarget.set(seriesName, [...(byTarget.get(seriesName) ?? []), value[1]]);
  }
  const rows = [...byTarget].map(([name, rates]) => {
    const ends = [Math.min(...rates), Math.max(...rates)].map(over.short);
    const value = rates.length === 1 ? (ends[0] as string) : `${ends[0]}–${ends[1]}`;
    return { name, look: legend.find((entry) => entry.name === name)?.look, value: over.long(value) };
  });
  const many = shown.length > byTarget.size ? "lowest to highest block" : "";
  return tip(`after ${format.threeDigits(at)} s`, rows, many);
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

function drawing(over: Over, context: Context, op: OperationGroup, [block, width]: [number, number]): Drawing {
  const rows = op.rows.filter((row) => isDrawn(over, row));
  const legend = entries(context.view, rows.map((row) => row.target));
  const events = told(over, context, rows, legend, block);
  const above = room(events, Math.max(0, ...rows.map((row) => length(over, row))), width);
  const ofFirst = block === ALL_BLOCKS && rows.some((row) => over.series(row).length > 1);
  const marked = events.length === 0 ? "" : `Vertical lines: events${ofFirst ? " in the first block" : ""}.`;
  return {
    legend,
    label: `Lines of ${over.quantity} over time, one for each block, for ${format.list(legend.map((e) => e.name))}.`,
    note: [marked, over === RATE ? tooShort(op) : ""].filter((text) => text !== "").join(" "),
    ...(above > 0 ? { height: HEIGHT + above } : {}),
    option: {
      grid: { left: 8, right: 20, top: 28 + above, bottom: 8, containLabel: true },
      tooltip: axisTip((params) => timeTip(over, params, legend)),
      dataZoom: [zoom("xAxisIndex")],
      xAxis: { ...secondsAxis(), max: "dataMax" },
      yAxis: bounded(over),
      series: [...rows.flatMap((row, i): SeriesOption[] => lines(over, legend[i] as LegendEntry, row, block)), ...eventSeries(events)],
    },
  };
}

/** A line needs two intervals. */
function isDrawn(over: Over, row: Row): boolean {
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
