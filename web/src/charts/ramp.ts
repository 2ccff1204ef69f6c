/** Latency by rate, on the way up and on the way down. */

import type { CustomSeriesOption, LineSeriesOption, SeriesOption } from "echarts";
import type { Context } from "../context";
import * as format from "../format";
import { ALL, type RampStage, type RampView, type Value } from "../view";
import { rateAxis, timeAxis } from "./axes";
import { axisTip, type Drawing, entries, filled, items, type LegendEntry, line, mount, type RenderItem, tip, zoom } from "./base";
import { figure, selector } from "./figure";

/** A drawn point: the rate, and log10 of nanoseconds. */
type Point = [x: number, y: number];

/** The selected content of a chart. */
interface Chosen {
  ramps: RampView[];
  operation: string;
  percentile: string;
}

const PERCENTILES = [
  { name: "99 %", value: "p99" },
  { name: "50 %", value: "p50" },
  { name: "99.9 %", value: "p999" },
];

/** Rate of a stage: the planned one for an open load, the answered one for a closed load. */
export function rateOf(ramp: RampView, stage: RampStage): Value | undefined {
  return stage.metrics[ramp.times === "response" ? "asked_per_s" : "rate_per_s"];
}

/** A percentile of an operation in a stage. */
export function timeOf(ramp: RampView, stage: RampStage, operation: string, percentile: string): Value | undefined {
  return stage.operations[operation]?.metrics[`${ramp.times}_ns_${percentile}`];
}

/** Points of one direction; stages without an answer are omitted. */
export function rampPoints(ramp: RampView, way: string, operation: string, percentile: string): Point[] {
  return ramp.stages.flatMap((stage): Point[] => {
    const rate = rateOf(ramp, stage)?.center;
    const time = timeOf(ramp, stage, operation, percentile)?.center;
    if (stage.way !== way || rate === undefined || time === undefined || time <= 0) return [];
    return [[rate, Math.log10(time)]];
  });
}

function way(entry: LegendEntry, data: Point[], isDown: boolean): LineSeriesOption {
  return line(entry, {
    id: `${entry.name} ${isDown ? "down" : "up"}`,
    data,
    symbolSize: isDown ? 6 : 8,
    itemStyle: filled({ ...entry.look, hollow: isDown || entry.look.hollow }),
    lineStyle: { width: isDown ? 1 : 2, type: isDown ? [3, 4] : "solid" },
  });
}

/** The knee as an upright line in a band as wide as its interval. */
function knee(entry: LegendEntry, ramp: RampView, [bottom, top]: [number, number]): CustomSeriesOption[] {
  const found = ramp.metrics["knee_per_s"];
  if (found === undefined) return [];
  const { color } = entry.look;
  const renderItem: RenderItem = (_, api) => {
    const at = (x: number, y: number): [number, number] => api.coord([x, y]) as [number, number];
    const [x, low] = at(found.center, bottom);
    const [, high] = at(found.center, top);
    const [from] = at(found.lo ?? found.center, bottom);
    const [to] = at(found.hi ?? found.center, bottom);
    return {
      type: "group",
      children: [
        { type: "rect", shape: { x: from, y: high, width: Math.max(0, to - from), height: low - high }, style: { fill: color, opacity: 0.1 } },
        { type: "line", shape: { x1: x, y1: low, x2: x, y2: high }, style: { stroke: color, lineWidth: 1.5, lineDash: [6, 4] } },
      ],
    };
  };
  const shared = { type: "custom" as const, name: entry.name, renderItem, silent: true, clip: true, tooltip: { show: false } };
  return [{ ...shared, data: [[found.center, bottom]], encode: { x: 0, y: 1 }, z: 0 }];
}

interface Item {
  seriesName: string;
  seriesId: string;
  seriesType: string;
  value: Point;
}

function rampTip(params: unknown, chosen: Chosen, legend: readonly LegendEntry[]): HTMLElement {
  const shown = items<Item>(params).filter((item) => item.seriesType === "line");
  const rows = shown.map(({ seriesName, seriesId, value: [rate, log] }) => ({
    name: `${seriesName}${seriesId.endsWith("down") ? ", down" : ""}`,
    look: legend.find((entry) => entry.name === seriesName)?.look,
    value: `${format.time(10 ** log)} at ${format.rateShort(rate)}/s`,
  }));
  const name = PERCENTILES.find((p) => p.value === chosen.percentile)?.name ?? "";
  return tip(`${name} of ${chosen.operation === ALL ? "all operations" : chosen.operation}`, rows);
}

/** The drawn directions, and the knees with their bands. */
function drawnParts(drawn: readonly { ramp: RampView; down: Point[] }[]): string {
  const knees = drawn.flatMap(({ ramp }) => ramp.metrics["knee_per_s"] ?? []);
  return [
    drawn.some(({ down }) => down.length > 0) ? "Solid: load rising; dashed: load falling." : "",
    knees.length > 0 ? "The vertical line is the knee." : "",
    knees.some(({ lo, hi }) => lo !== null && hi !== null) ? "Its band extends to the next stage, which failed." : "",
  ].filter((text) => text !== "").join(" ");
}

function drawing(context: Context, chosen: Chosen): Drawing {
  const { operation, percentile } = chosen;
  const drawn = chosen.ramps
    .map((ramp) => ({
      ramp,
      up: rampPoints(ramp, "up", operation, percentile),
      down: rampPoints(ramp, "down", operation, percentile),
    }))
    .filter(({ up }) => up.length > 0);
  const legend = entries(context.view, drawn.map(({ ramp }) => ramp.target));
  const all = drawn.flatMap(({ up, down }) => [...up, ...down]);
  const isOpen = chosen.ramps.some((ramp) => ramp.times === "response");
  const times = timeAxis(all.map(([, y]) => y), isOpen ? "response time" : "service time");
  const series = drawn.flatMap(({ ramp, up, down }, i): SeriesOption[] => {
    const entry = legend[i] as LegendEntry;
    return [...knee(entry, ramp, [times.min, times.max]), way(entry, up, false), ...(down.length === 0 ? [] : [way(entry, down, true)])];
  });
  return {
    legend,
    label: `Lines of ${isOpen ? "response" : "service"} time by rate for ${format.list(legend.map((e) => e.name))}; the same numbers are in the tables of stages.`,
    note: drawnParts(drawn),
    option: {
      grid: { left: 8, right: 24, top: 28, bottom: 30, containLabel: true },
      tooltip: axisTip((params) => rampTip(params, chosen, legend), true),
      dataZoom: [zoom("xAxisIndex"), zoom("yAxisIndex")],
      xAxis: rateAxis(isOpen ? "operations/s planned" : "operations/s answered"),
      yAxis: times,
      series,
    },
  };
}

/** Ramps by profile, in the view's order. */
export function byProfile(ramps: readonly RampView[]): { name: string; value: RampView[] }[] {
  const names = [...new Set(ramps.map((ramp) => ramp.workload))];
  return names.map((name) => ({ name, value: ramps.filter((ramp) => ramp.workload === name) }));
}

function operationsOf(ramps: readonly RampView[]): { name: string; value: string }[] {
  const names = new Set(ramps.flatMap((ramp) => ramp.stages.flatMap((stage) => Object.keys(stage.operations))));
  const single = [...names].filter((name) => name !== ALL);
  return [{ name: "all", value: ALL }, ...single.map((name) => ({ name, value: name }))];
}

/** The chart of latency by rate; null without a load in stages. */
export function rampLatency(context: Context): HTMLElement | null {
  const ramps = (context.view.ramps ?? []).filter((ramp) => rampPoints(ramp, "up", ALL, "p99").length > 0);
  if (ramps.length === 0) return null;
  const byName = selector("Profile", byProfile(ramps), () => {
    operation.offer(operationsOf(byName.value()));
    chart.redraw();
  });
  const operation = selector("Operation", operationsOf(byName.value()), () => chart.redraw());
  const percentile = selector("Percentile", PERCENTILES, () => chart.redraw());
  const chart = mount(() => {
    return drawing(context, { ramps: byName.value(), operation: operation.value(), percentile: percentile.value() });
  });
  const selectors = byProfile(ramps).length > 1 ? [byName.element] : [];
  return figure(
    context,
    "chart-ramp",
    "Time by rate",
    "Lower and further right is better. Where a line turns upwards, the store no longer keeps up.",
    [...selectors, operation.element, percentile.element],
    chart,
  );
}
