/** Windows of faults as distributions: a mark for each fault on a logarithmic axis of time, a row for each profile and target. */

import type { CustomSeriesOption, SeriesOption } from "echarts";
import type { Context } from "../context";
import type { FailoverView, SpreadView } from "../faultview";
import * as format from "../format";
import { marks } from "./axes";
import { axis, type Drawing, entries, ink, items, type LegendEntry, line, mount, type RenderItem, tip, zoom } from "./base";
import { figure, selector } from "./figure";

/** A window of a fault: its name, what a missing one and a row's label say, and where it is read. */
interface Window {
  name: string;
  /** A window of length 0. */
  none: string;
  read: (of: FailoverView) => SpreadView | null;
}

const WINDOWS: readonly Window[] = [
  { name: "no writes", none: "< 100 ms", read: (of) => of.writes_unavailable_ns },
  { name: "no reads", none: "< 100 ms", read: (of) => of.reads_unavailable_ns },
  { name: "rate back", none: "at once", read: (of) => of.rate_back_ns },
  { name: "p99 back", none: "at once", read: (of) => of.p99_back_ns },
];

/** Decades between the shortest or longest window and those of length 0 or without an end. */
const APART = 0.35;
/** Largest distance of a mark from the middle of its row, in rows. */
const SPREAD = 0.24;
/** Pixels: height of a row, of what is above and below all rows, and of half the line at the median. */
const [ROW, AROUND, HALF] = [34, 56, 11] as const;
/** Widest label of a row, as a share of the chart. */
const LABEL = 0.36;

/** A mark: log10 of nanoseconds, the height at which it is drawn, the row to which it belongs, and its text. */
export interface Mark {
  x: number;
  y: number;
  row: number;
  text: string;
}

/** The marks of a window, one for each fault, and the medians of its rows. */
export interface Strip {
  rows: FailoverView[];
  marks: Mark[];
  medians: { x: number; row: number }[];
  /** Ticks of the axis of time with their labels, ascending. */
  ticks: { x: number; text: string }[];
}

/** Windows that outlasted the measurement; faults whose trials failed have none. */
function endless(of: FailoverView, spread: SpreadView): number {
  return Math.max(0, of.faults - of.failed - spread.all.length);
}

/** The windows of all faults; null if none is known. */
export function stripOf(all: readonly FailoverView[], { none, read }: Window): Strip | null {
  const rows = all.filter((of) => read(of) !== null);
  const spreads = rows.map((of) => read(of) as SpreadView);
  const logs = spreads.flatMap((spread) => spread.all.filter((ns) => ns > 0).map((ns) => Math.log10(ns)));
  if (rows.length === 0) return null;
  const scale = logs.length === 0 ? [8, 9] : marks(Math.min(...logs), Math.max(...logs));
  const [first, last] = [(scale[0] as number) - APART, (scale[scale.length - 1] as number) + APART];
  const at = (ns: number | null): number => (ns === null ? last : ns > 0 ? Math.log10(ns) : first);
  const shown = (ns: number | null): string => (ns === null ? "not at all" : ns > 0 ? format.time(ns) : none);
  const strips = spreads.map((spread, row): Mark[] => {
    const windows = [...spread.all, ...Array<null>(endless(rows[row] as FailoverView, spread)).fill(null)];
    // Alternating above and below the middle separates windows of nearly the same length.
    return windows.map((ns, i) => ({ x: at(ns), y: row + SPREAD * (((i * 2) % 5) / 2 - 1), row, text: shown(ns) }));
  });
  const ends = strips.flat().map(({ x }) => x);
  return {
    rows,
    marks: strips.flat(),
    medians: spreads.map(({ median }, row) => ({ x: at(median), row })),
    ticks: [
      ...(ends.includes(first) ? [{ x: first, text: none }] : []),
      ...scale.map((x) => ({ x, text: format.timeShort(10 ** x) })),
      ...(ends.includes(last) ? [{ x: last, text: "not at all" }] : []),
    ],
  };
}

function title({ workload, target, fault }: FailoverView, manyTargets: boolean): string {
  const profile = workload.startsWith(fault) || workload.includes("proof") ? workload : `${workload}, ${fault}`;
  return manyTargets ? `${profile} · ${target}` : profile;
}

/** Lines at the medians. */
function medianSeries(strip: Strip): CustomSeriesOption {
  const { text } = ink();
  const renderItem: RenderItem = (params, api) => {
    const { x, row } = strip.medians[params.dataIndex] as { x: number; row: number };
    const [left, middle] = api.coord([x, row]) as [number, number];
    return { type: "line", shape: { x1: left, y1: middle - HALF, x2: left, y2: middle + HALF }, style: { stroke: text, lineWidth: 2 } };
  };
  return { type: "custom", id: "medians", data: strip.medians.map(({ x, row }) => [x, row]), renderItem, silent: true, clip: true, z: 4, tooltip: { show: false } };
}

function marksOf(entry: LegendEntry, strip: Strip): SeriesOption {
  const own = strip.marks.filter(({ row }) => strip.rows[row]?.target === entry.name);
  return line(entry, { data: own.map(({ x, y }) => [x, y]), symbolSize: 7, lineStyle: { width: 0, opacity: 0 } });
}

function drawing(context: Context, strip: Strip, window: Window, width: number): Drawing {
  const legend = entries(context.view, [...new Set(strip.rows.map(({ target }) => target))]);
  const names = strip.rows.map((of) => title(of, legend.length > 1));
  const base = axis();
  const ticks = strip.ticks.map(({ x }) => x);
  const [left, right] = [ticks[0] as number, ticks[ticks.length - 1] as number];
  const ranges = names.map((name, of) => {
    const texts = strip.marks.filter(({ row }) => row === of).map(({ text }) => text);
    return `${name}: ${texts.length} faults, ${texts[0]} to ${texts[texts.length - 1]}`;
  });
  const shown = (params: unknown): HTMLElement => {
    const [item] = items<{ value: [number, number]; seriesName: string }>(params);
    const mark = strip.marks.find(({ x, y }) => x === item?.value[0] && y === item.value[1]);
    const look = legend.find(({ name }) => name === item?.seriesName)?.look;
    return tip(names[mark?.row ?? 0] ?? "", [{ name: window.name, look, value: mark?.text ?? "" }]);
  };
  return {
    legend,
    label: `${window.name} of each fault. ${ranges.join("; ")}.`,
    note: "Line: median.",
    height: AROUND + ROW * strip.rows.length,
    option: {
      grid: { left: 8, right: 24, top: 16, bottom: 24, containLabel: true },
      tooltip: { trigger: "item", formatter: shown },
      dataZoom: [zoom("xAxisIndex")],
      xAxis: {
        type: "value",
        min: left - 0.08,
        max: right + 0.08,
        ...base,
        axisLine: { ...base["axisLine"], onZero: false },
        axisTick: { ...base["axisTick"], customValues: ticks },
        axisLabel: { ...base["axisLabel"], customValues: ticks, formatter: (x: number) => strip.ticks.find((tick) => Math.abs(tick.x - x) < 1e-6)?.text ?? "" },
        splitLine: { ...base["splitLine"], customValues: ticks } as object,
      },
      yAxis: {
        type: "value",
        inverse: true,
        min: -0.5,
        max: strip.rows.length - 0.5,
        ...base,
        axisTick: { show: false },
        axisLabel: { ...base["axisLabel"], customValues: names.map((_, row) => row), formatter: (row: number) => names[row] ?? "", hideOverlap: false, width: width * LABEL, overflow: "truncate" as const },
        splitLine: { show: false },
      },
      series: [...legend.map((entry) => marksOf(entry, strip)), medianSeries(strip)],
    },
  };
}

/** The chart of windows; null if no fault has one. */
export function windows(context: Context): HTMLElement | null {
  const all = context.view.failovers ?? [];
  const known = WINDOWS.flatMap((window) => {
    const strip = stripOf(all, window);
    return strip === null ? [] : [{ name: window.name, value: { window, strip } }];
  });
  if (known.length === 0) return null;
  const chosen = selector("Time", known, () => chart.redraw());
  const chart = mount((width) => drawing(context, chosen.value().strip, chosen.value().window, width), "targets shown");
  const hint = "A mark for each fault. No writes, no reads: the longest time without an answer; rate back, p99 back: the time until the rate, or the 99th percentile, was back.";
  return figure(context, "chart-windows", "Times of each fault", hint, [chosen.element], chart);
}
