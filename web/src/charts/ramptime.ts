/** A ramp over time: latency and rates, and aligned below them the resource usage of server and generator. */

import type { LineSeriesOption } from "echarts";
import type { Context } from "../context";
import * as format from "../format";
import * as theme from "../theme";
import type { RampBlock, RampView, SaturationSeries } from "../view";
import { secondsAxis, timeAxis, valueAxis } from "./axes";
import { axisTip, type Drawing, items, type LegendEntry, ink, line, mount, tip, zoom } from "./base";
import { type Choice, figure, selector } from "./figure";

type Point = [x: number, y: number | null];

/** A line of a panel. */
export interface Line {
  name: string;
  points: Point[];
  /** True for points without a line. */
  isDots?: boolean;
}

/** One of the stacked charts. */
export interface Panel {
  title: string;
  height: number;
  lines: Line[];
  /** Formats a value for the axis and for tooltips. */
  tick: (value: number) => string;
  full: (value: number) => string;
  isLog: boolean;
  /** True for bytes, whose ticks are powers of two. */
  isBinary?: boolean;
  /** Minimum end of the axis. */
  least?: number;
}

const perSecond = (n: number): string => `${format.rateShort(n)}/s`;
const bytesPerSecond = (n: number): string => `${format.bytes(n)}/s`;

/** Saturation panels in order: title and number format. */
const PANELS: Record<string, [title: string, print: (n: number) => string]> = {
  cpu: ["CPUs used", (n) => `${Number(n.toPrecision(3))}`],
  waiting: ["Generator waits for a CPU", (n) => `${Number(n.toPrecision(3))}`],
  memory: ["Memory", format.bytes],
  fragmentation: ["Fragmentation", (n) => `${Number(n.toPrecision(3))}`],
  keys: ["Keys", perSecond],
  connections: ["Connections", format.rateShort],
  network: ["Network", bytesPerSecond],
  packets: ["Packets", perSecond],
  switches: ["Context switches", perSecond],
};

/** Name of a memory limit, and the used share from which it is drawn; below it, it would flatten the other lines. */
const [LIMIT, NEAR] = ["limit", 0.5];

const [TOP, TITLE, BOTTOM] = [0, 36, 26];

/** Points of a series: the lowest and then the highest value of each time span. */
export function zigzag({ low, high }: SaturationSeries, span: number): Point[] {
  return low.flatMap((value, i): Point[] => {
    const [from, to] = [(i + 0.25) * span, (i + 0.75) * span];
    const most = high?.[i] ?? value;
    return most === value ? [[(i + 0.5) * span, value]] : [[from, value], [to, most]];
  });
}

/** The level of each stage, with gaps while the store settles. */
function steps(block: RampBlock, read: (stage: RampBlock["stages"][number]) => number | null): Point[] {
  return block.stages.flatMap((stage): Point[] => {
    const value = read(stage);
    return [[stage.from_s, value], [stage.to_s, value], [stage.to_s, null]];
  });
}

function log(ns: number | null): number | null {
  return ns !== null && ns > 0 ? Math.log10(ns) : null;
}

/** All panels of a block with data. */
export function panelsOf(block: RampBlock): Panel[] {
  const time = (log: number): string => format.time(10 ** log);
  const missed = block.stages.filter((stage) => !stage.holds && stage.ns_p99 !== null);
  const tooMuch = missed.map((stage): Point => [(stage.from_s + stage.to_s) / 2, log(stage.ns_p99)]);
  const latency: Panel = {
    title: "99th percentile",
    height: 150,
    lines: [
      { name: "p99", points: steps(block, (stage) => log(stage.ns_p99)) },
      ...(tooMuch.length > 0 ? [{ name: "stage failed", points: tooMuch, isDots: true }] : []),
    ],
    tick: (y) => format.timeShort(10 ** y),
    full: time,
    isLog: true,
  };
  const isPlanned = block.stages.some((stage) => stage.planned_per_s !== null);
  const rate: Panel = {
    title: "Operations/s",
    height: 130,
    lines: [
      ...(isPlanned ? [{ name: "planned", points: steps(block, (stage) => stage.planned_per_s) }] : []),
      { name: "answered", points: steps(block, (stage) => stage.answered_per_s) },
    ],
    tick: format.rateShort,
    full: perSecond,
    isLog: false,
  };
  const clients: Panel = { title: "Clients", height: 90, lines: [{ name: "clients", points: steps(block, (stage) => stage.clients) }], tick: format.rateShort, full: format.count, isLog: false };
  return [latency, rate, ...(isPlanned ? [] : [clients]), ...saturation(block)];
}

function saturation(block: RampBlock): Panel[] {
  const found = block.saturation;
  if (found === null) return [];
  return Object.entries(PANELS).flatMap(([panel, [title, print]]): Panel[] => {
    const all = found.series.filter((one) => one.panel === panel);
    if (all.length === 0) return [];
    const far = farLimit(all);
    const lines = all.filter(({ name }) => far === null || name !== LIMIT).map((one) => ({ name: one.name, points: zigzag(one, found.span_s) }));
    const shared = { title: far === null ? title : `${title}; its limit is ${print(far)}`, lines, tick: print, full: print, isLog: false };
    // A thread can use at most one CPU, so the axis always reaches 1.
    if (panel === "cpu") return [{ ...shared, height: 140, least: 1 }];
    return [{ ...shared, height: 84, isBinary: panel === "memory" || panel === "network" }];
  });
}

/** The limit among these series if no value comes near it; null otherwise. */
function farLimit(all: readonly SaturationSeries[]): number | null {
  const limit = highest(all.filter(({ name }) => name === LIMIT));
  const most = highest(all.filter(({ name }) => name !== LIMIT));
  return most < NEAR * limit ? limit : null;
}

function highest(all: readonly SaturationSeries[]): number {
  return Math.max(0, ...all.flatMap(({ low, high }) => high ?? low).map((value) => value ?? 0));
}

/** A colour per name, the same in every panel. */
function looksOf(panels: readonly Panel[]): Map<string, theme.Look> {
  const found = new Map<string, theme.Look>();
  const palette = theme.palette(theme.current());
  for (const panel of panels) {
    panel.lines.forEach(({ name, isDots }, i) => {
      const color = palette[i % palette.length] as string;
      if (!found.has(name)) found.set(name, { ...theme.plain(color), mark: isDots ? "diamond" : "circle" });
    });
  }
  return found;
}

function series(panel: Panel, index: number, looks: Map<string, theme.Look>): LineSeriesOption[] {
  return panel.lines.map(({ name, points, isDots }) => {
    const look = looks.get(name) as theme.Look;
    return line({ name, look }, {
      id: `${index} ${name}`,
      xAxisIndex: index,
      yAxisIndex: index,
      data: points,
      symbolSize: isDots ? 9 : 6,
      showSymbol: isDots === true,
      lineStyle: { width: 1.5, opacity: isDots ? 0 : 1, type: name === "planned" ? [5, 4] : "solid" },
    });
  });
}

interface Item {
  seriesName: string;
  seriesId: string;
  value: Point;
}

function timeTip(params: unknown, panels: readonly Panel[], looks: Map<string, theme.Look>): HTMLElement {
  const shown = items<Item>(params).filter((item) => item.value[1] !== null);
  const at = shown[0]?.value[0] ?? 0;
  const rows = shown.map(({ seriesName, seriesId, value }) => {
    const panel = panels[Number.parseInt(seriesId, 10)] as Panel;
    const name = panel.lines.length > 1 || seriesName === "p99" ? seriesName : panel.title;
    return { name, look: looks.get(seriesName), value: panel.full(value[1] as number) };
  });
  return tip(`after ${format.threeDigits(at)} s`, rows);
}

/** Tick interval: a power of two, about a third of the maximum. */
function step(most: number): number {
  return 2 ** Math.max(0, Math.ceil(Math.log2(Math.max(1, most) / 4)));
}

function yAxis(panel: Panel, index: number): object {
  const values = panel.lines.flatMap(({ points }) => points.flatMap(([, y]) => (y === null ? [] : [y])));
  if (panel.isLog && values.length > 0) return { ...timeAxis(values, panel.title), gridIndex: index };
  const most = Math.max(0, ...values);
  const interval = step(most);
  const binary = panel.isBinary && most > 0 ? { interval, max: Math.ceil(most / interval) * interval } : {};
  const least = panel.least !== undefined && most < panel.least ? { max: panel.least } : {};
  return { ...valueAxis(panel.title, panel.tick), gridIndex: index, splitNumber: 3, ...binary, ...least };
}

function drawing(ramp: RampView, block: RampBlock): Drawing {
  const panels = panelsOf(block);
  const looks = looksOf(panels);
  const tops: number[] = [];
  let height = TOP;
  for (const panel of panels) {
    tops.push(height + TITLE);
    height += TITLE + panel.height;
  }
  const ends = [...block.stages.map((stage) => stage.to_s), (block.saturation?.span_s ?? 0) * (block.saturation?.series[0]?.low.length ?? 0)];
  const last = panels.length - 1;
  const legend = [...looks].map(([name, look]): LegendEntry => ({ name, look }));
  return {
    legend,
    height: height + BOTTOM,
    label: `Lines over time of ${format.list(panels.map((panel) => panel.title.toLowerCase()))} of ${ramp.target}.`,
    note: block.saturation === null ? "Resource usage was not sampled, or is not drawn for this block." : "Of each span the lowest and the highest reading are drawn; all of them are in the record.",
    option: {
      axisPointer: { link: [{ xAxisIndex: "all" }], lineStyle: { color: ink().muted } },
      // Fixed margins, so that all panels are aligned.
      grid: panels.map((panel, i) => ({ left: 76, right: 16, top: tops[i] as number, height: panel.height, outerBoundsMode: "none" as const })),
      tooltip: axisTip((params) => timeTip(params, panels, looks)),
      dataZoom: [zoom("xAxisIndex", panels.map((_, i) => i))],
      xAxis: panels.map((_, i) => {
        const base = secondsAxis();
        return { ...base, gridIndex: i, max: Math.max(...ends), axisLabel: { ...base.axisLabel, show: i === last } };
      }),
      yAxis: panels.map(yAxis) as object[],
      series: panels.flatMap((panel, i) => series(panel, i, looks)),
    },
  };
}

function blocksOf(ramp: RampView): Choice<RampBlock>[] {
  const blocks = ramp.charts?.blocks ?? [];
  return blocks.map((block) => ({ name: `block ${block.block + 1}${block.failed ? ", failed" : ""}`, value: block }));
}

/** The chart of a ramp over time; null without a ramp. */
export function rampInTime(context: Context): HTMLElement | null {
  const ramps = (context.view.ramps ?? []).filter((ramp) => blocksOf(ramp).length > 0);
  if (ramps.length === 0) return null;
  const many = new Set(ramps.map((ramp) => ramp.workload)).size > 1;
  const name = (ramp: RampView): string => (many ? `${ramp.target}, ${ramp.workload}` : ramp.target);
  const byRamp = selector("Store", ramps.map((ramp) => ({ name: name(ramp), value: ramp })), () => {
    byBlock.offer(blocksOf(byRamp.value()));
    chart.redraw();
  });
  const byBlock = selector("Block", blocksOf(byRamp.value()), () => chart.redraw());
  const chart = mount(() => drawing(byRamp.value(), byBlock.value()));
  return figure(
    context,
    "chart-saturation",
    "The ramp over time, with resource usage",
    "Where latency rises, look below for a line at its limit: the server's CPU (1 per thread), its memory, or the generator.",
    [byRamp.element, byBlock.element],
    chart,
  );
}
