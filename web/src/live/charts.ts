/** Charts of a run in progress: rate and p99, and below them CPU and memory of server and generator. */

import type { EChartsOption, LineSeriesOption } from "echarts";
import { valueAxis } from "../charts/axes";
import { axis, axisTip, type Chart, type Drawing, endMarked, ink, items, line, mount, tip, zoom } from "../charts/base";
import { type Choice, selector } from "../charts/figure";
import { h } from "../dom";
import * as format from "../format";
import * as theme from "../theme";
import type { Point, Store, Usage } from "./store";

/** Seconds, a value, and 1 for a lower bound; null breaks the line. */
export type Datum = [number, number | null, 1?];

/** A line with its name, look and data. */
export interface Line {
  name: string;
  look: theme.Look;
  data: Datum[];
  /** Value of the last point. */
  trial: number;
}

/** A gap of this many seconds breaks a line, as does a new trial. */
const GAP_S = 1.6;

const DASHES: readonly number[][] = [[], [7, 3], [2, 3], [9, 3, 2, 3], [12, 4]];

/** Points with one name, with gaps. */
function collect<T extends { at_s: number; trial: number }>(
  all: readonly T[],
  named: (one: T) => { name: string; look: theme.Look; value: number; isBound?: boolean }[],
): Line[] {
  const lines = new Map<string, Line>();
  for (const one of all) {
    for (const { name, look, value, isBound } of named(one)) {
      const line = lines.get(name) ?? { name, look, data: [], trial: one.trial };
      lines.set(name, line);
      const last = line.data[line.data.length - 1];
      const isApart = line.trial !== one.trial || one.at_s - (last?.[0] ?? one.at_s) > GAP_S;
      if (last !== undefined && isApart) line.data.push([(last[0] + one.at_s) / 2, null]);
      line.data.push(isBound === true ? [one.at_s, value, 1] : [one.at_s, value]);
      line.trial = one.trial;
    }
  }
  return [...lines.values()];
}

/** Looks of the run's targets, with the colours of the report. A target's lines differ by dash. */
export function looks(store: Store, shown: theme.Theme): (target: string) => theme.Look {
  const names = [...new Set([...(store.state?.targets ?? []).map((t) => t.name), ...store.points.map((p) => p.target)])];
  return (target) => ({ ...theme.look(Math.max(0, names.indexOf(target)), shown, false), dash: [] });
}

function dashed(look: theme.Look, dash: number[]): theme.Look {
  return { ...look, dash, hollow: dash.length > 0 };
}

function muted(dash: number[]): theme.Look {
  return { ...theme.plain(ink().muted), dash, hollow: true };
}

/** Actual and planned requests per second by target. */
export function rateLines(store: Store, lookOf: (target: string) => theme.Look, planned: theme.Look): Line[] {
  return collect(store.points, (point: Point) => {
    const own = { name: point.target, look: lookOf(point.target), value: point.rate_per_s };
    const { planned_per_s } = point;
    return planned_per_s === undefined ? [own] : [own, { name: "planned", look: planned, value: planned_per_s }];
  });
}

/** 99th percentiles by target and operation. */
export function latencyLines(store: Store, lookOf: (target: string) => theme.Look): Line[] {
  const operations = [...new Set(store.points.flatMap((p) => p.operations.map((o) => o.operation)))];
  const dash = (operation: string): number[] => DASHES[operations.indexOf(operation) % DASHES.length] as number[];
  return collect(store.points, (point: Point) =>
    point.operations
      .map(({ operation, ns_p99: p99 }) => ({
        name: `${point.target} ${operation}`,
        look: dashed(lookOf(point.target), dash(operation)),
        value: typeof p99 === "object" ? (p99?.at_least ?? 0) : p99,
        isBound: typeof p99 === "object",
      }))
      .filter(({ value }) => value > 0),
  );
}

/** CPU usage of the server, of its busiest thread if it has several, and of the generator. */
export function cpuLines(store: Store, lookOf: (target: string) => theme.Look, generator: theme.Look): Line[] {
  return collect(store.usage, (usage: Usage) => {
    const look = lookOf(usage.target);
    const lines = [{ name: "generator", look: generator, value: usage.generator_cpus }];
    if (usage.server_cpus === undefined) return lines;
    lines.unshift({ name: usage.target, look, value: usage.server_cpus });
    if (usage.threads.length > 1) {
      const value = Math.max(...usage.threads.map((t) => t.cpus));
      lines.push({ name: `${usage.target} busiest thread`, look: dashed(look, [2, 3]), value });
    }
    return lines;
  });
}

/** Memory of the server: resident, and used as reported by the server. */
export function memoryLines(store: Store, lookOf: (target: string) => theme.Look): Line[] {
  return collect(store.usage, (usage: Usage) => {
    const look = lookOf(usage.target);
    const resident = { name: `${usage.target} resident`, look, value: usage.server_bytes };
    const used = { name: `${usage.target} used`, look: dashed(look, [7, 3]), value: usage.store_bytes };
    return [resident, used].filter((line): line is typeof line & { value: number } => line.value !== undefined);
  });
}

/** A point in time of the run: `1:05`, `1:02:05`. */
export function clock(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds));
  const [hours, minutes, rest] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  const two = (n: number): string => String(n).padStart(2, "0");
  return hours > 0 ? `${hours}:${two(minutes)}:${two(rest)}` : `${minutes}:${two(rest)}`;
}

/** Content and number format of a chart. */
interface Kind {
  id: string;
  title: string;
  hint: string;
  quantity: string;
  isLog: boolean;
  lines: (store: Store) => Line[];
  print: (value: number) => string;
  tick: (value: number) => string;
}

const lookOf = (store: Store): ((target: string) => theme.Look) => looks(store, theme.current());

const KINDS: readonly Kind[] = [
  {
    id: "live-rate",
    title: "Rate",
    hint: "Answered requests per second. For an open load, the dashed line is the planned rate.",
    quantity: "requests/s",
    isLog: false,
    lines: (store) => rateLines(store, lookOf(store), muted([4, 3])),
    print: (value) => `${format.rate(value)} requests/s`,
    tick: format.rateShort,
  },
  {
    id: "live-latency",
    title: "p99",
    hint: "The time within which 99 of 100 requests were answered, from their due time for an open load, otherwise from when they were sent. Failures are slower than any answer: a triangle marks a lower bound.",
    quantity: "p99",
    isLog: true,
    lines: (store) => latencyLines(store, lookOf(store)),
    print: format.time,
    tick: format.timeShort,
  },
  {
    id: "live-cpu",
    title: "CPUs",
    hint: "CPUs in use. A thread can use at most one; the first to reach its limit limits the rate.",
    quantity: "CPUs",
    isLog: false,
    lines: (store) => cpuLines(store, lookOf(store), muted([4, 3])),
    print: format.threeDigits,
    tick: (value) => `${Number(value.toPrecision(3))}`,
  },
  {
    id: "live-memory",
    title: "Memory",
    hint: "Memory of the server: resident, and used by its data as reported by the server.",
    quantity: "bytes",
    isLog: false,
    lines: (store) => memoryLines(store, lookOf(store)),
    print: format.bytes,
    tick: format.bytes,
  },
];

function series(drawn: Line): LineSeriesOption {
  const data = endMarked(drawn.data.map(([at_s, value]) => [at_s, value]), drawn.look).map((datum, i) => {
    const isBound = drawn.data[i]?.[2] === 1;
    return isBound ? { value: drawn.data[i] as Datum, symbol: "triangle" } : datum;
  });
  // Planned rates and the generator stay behind the stores.
  return line(drawn, { id: drawn.name, data, z: drawn.look.hollow ? 2 : 3, lineStyle: { width: 1.6 } });
}

function tooltip(kind: Kind, lines: Line[]): NonNullable<EChartsOption["tooltip"]> {
  const looks = new Map(lines.map(({ name, look }) => [name, look]));
  return axisTip((params) => {
    const shown = items<{ seriesName: string; value: Datum }>(params);
    const rows = shown.flatMap(({ seriesName, value }) =>
      value[1] === null ? [] : [{ name: seriesName, look: looks.get(seriesName), value: `${value[2] === 1 ? "≥ " : ""}${kind.print(value[1])}` }],
    );
    return tip(`at ${clock(shown[0]?.value[0] ?? 0)}`, rows);
  });
}

function drawing(kind: Kind, store: Store, shown_s: number): Drawing {
  const ends = [store.points, store.usage].map((all) => all[all.length - 1]?.at_s ?? 0);
  const end_s = Math.max(...ends, 1);
  const from_s = Math.max(0, end_s - shown_s);
  const within = { ...store, points: store.points.filter((p) => p.at_s >= from_s), usage: store.usage.filter((u) => u.at_s >= from_s) };
  const lines = kind.lines(within);
  const base = axis();
  return {
    legend: lines.map(({ name, look }) => ({ name, look })),
    label: `Lines of ${kind.quantity} over the time of the run, for ${format.list(lines.map((line) => line.name))}.`,
    note: lines.length === 0 ? "Nothing has been recorded yet." : "",
    option: {
      // Use the same range in all charts.
      grid: { left: 68, right: 20, top: 28, bottom: 26, containLabel: false },
      tooltip: tooltip(kind, lines),
      dataZoom: [zoom("xAxisIndex")],
      xAxis: {
        type: "value",
        min: from_s,
        max: end_s,
        ...base,
        axisLabel: { ...base["axisLabel"], formatter: clock, showMinLabel: false, showMaxLabel: false },
        splitLine: { show: false },
      },
      yAxis: valueAxis(kind.quantity, kind.tick, kind.isLog),
      series: lines.map(series),
    },
  };
}

const SHOWN: Choice<number>[] = [
  { name: "last 5 minutes", value: 300 },
  { name: "last minute", value: 60 },
  { name: "last 30 minutes", value: 1800 },
];

/** All charts, with a function that redraws them. */
export function charts(store: () => Store): { element: HTMLElement; refresh: () => void } {
  const shown = selector("Show", SHOWN, () => mounted.forEach((chart) => chart.redraw()));
  const made: [Kind, Chart][] = KINDS.map((kind) => [kind, mount(() => drawing(kind, store(), shown.value()))]);
  const mounted = made.map(([, chart]) => chart);
  const figures = made.map(([kind, chart]) =>
    h(
      "figure",
      { id: kind.id, "aria-labelledby": `${kind.id}-title` },
      h("h3", { id: `${kind.id}-title` }, kind.title),
      h("p", { class: "hint" }, kind.hint),
      chart.element,
    ),
  );
  const element = h("section", { id: "charts", "aria-label": "charts" }, h("div", { class: "selectors" }, shown.element), figures);
  return { element, refresh: () => mounted.forEach((chart) => chart.refresh()) };
}
