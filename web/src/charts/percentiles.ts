/** Latency by percentile, on logarithmic axes that also show the slowest 1 in 10,000. */

import type { LineSeriesOption } from "echarts";
import type { Context } from "../context";
import * as format from "../format";
import type { OperationGroup } from "../groups";
import * as theme from "../theme";
import type { CurvePoint, Row } from "../view";
import { timeAxis } from "./axes";
import { axis, axisTip, type Drawing, entries, items, type LegendEntry, line, mount, tip, zoom } from "./base";
import { cellSelectors, figure } from "./figure";

/** Labelled quantiles, within the range of the data. */
const NAMED = [0, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999];

/** A drawn point: log10 of 1/(1 − q), and log10 of nanoseconds. */
type Point = [x: number, y: number, q: number, ns: number];

/** Position of a quantile on the axis: 0.9 at 1, 0.99 at 2, 0.999 at 3. */
export function position(q: number): number {
  return Math.log10(1 / (1 - q));
}

/** Points that can be drawn: above 0 ns, and without the maximum, which has no position on this axis. */
export function points(curve: readonly CurvePoint[]): Point[] {
  return curve
    .filter(({ q, ns }) => q >= 0 && q < 1 && ns > 0)
    .map(({ q, ns }): Point => [position(q), Math.log10(ns), q, ns]);
}

/** Marks only at the labelled quantiles. */
function curveLine(entry: LegendEntry, data: Point[]): LineSeriesOption {
  const symbol = theme.symbol(entry.look);
  return line(entry, { data, symbol: (point: unknown) => (NAMED.includes((point as Point)[2]) ? symbol : "none") });
}

function oneIn(q: number): string {
  if (q === 0) return "the fastest";
  const n = 1 / (1 - q);
  return `one in ${format.threeDigits(n)} takes longer`;
}

function percentileTip(params: unknown, legend: readonly LegendEntry[]): HTMLElement {
  const shown = items<{ seriesName: string; value: Point }>(params);
  const q = shown[0]?.value[2] ?? 0;
  const lines = shown.map(({ seriesName, value }) => {
    const other = Math.abs(value[2] - q) > 1e-9 ? ` at ${format.quantile(value[2])}` : "";
    return { name: seriesName, look: legend.find(({ name }) => name === seriesName)?.look, value: format.time(value[3]) + other };
  });
  return tip(q === 0 ? "fastest" : format.quantile(q), lines, oneIn(q));
}

function axes(all: Point[]): Pick<Drawing["option"], "xAxis" | "yAxis"> {
  const base = axis();
  const xs = NAMED.map(position);
  const right = Math.max(1, ...all.map(([x]) => x));
  return {
    xAxis: {
      type: "value",
      min: 0,
      max: right,
      ...base,
      axisTick: { ...base["axisTick"], customValues: xs },
      axisLabel: {
        ...base["axisLabel"],
        customValues: xs,
        formatter: (x: number) => {
          const q = NAMED.find((named) => Math.abs(position(named) - x) < 1e-6);
          return q === undefined ? "" : q === 0 ? "min" : format.quantile(q);
        },
      },
      splitLine: { show: false },
    },
    yAxis: timeAxis(all.map(([, y]) => y)),
  };
}

function drawing(context: Context, op: OperationGroup, curve: (row: Row) => readonly CurvePoint[]): Drawing {
  const drawn = op.rows.map((row) => ({ row, at: points(curve(row)) })).filter(({ at }) => at.length > 0);
  const legend = entries(context.view, drawn.map(({ row }) => row.target));
  return {
    legend,
    label: `Curves of time by percentile for ${format.list(legend.map((entry) => entry.name))}.`,
    option: {
      grid: { left: 8, right: 28, top: 16, bottom: 8, containLabel: true },
      tooltip: axisTip((params) => percentileTip(params, legend), true),
      dataZoom: [zoom("xAxisIndex"), zoom("yAxisIndex")],
      ...axes(drawn.flatMap(({ at }) => at)),
      series: drawn.map(({ at }, i) => curveLine(legend[i] as LegendEntry, at)),
    },
  };
}

/** Share of requests that had to wait, by store; empty if it was not recorded. */
export function waitShares(rows: readonly Row[]): string {
  const shares = rows.flatMap((row) => {
    const share = row.metrics["lock_wait_share"];
    return share === undefined ? [] : [`${row.target} ${format.percent(share.center)}`];
  });
  return shares.length === 0 ? "" : `Share of requests that had to wait: ${shares.join(", ")}.`;
}

function curves(
  context: Context,
  id: string,
  title: string,
  help: string,
  curve: (row: Row) => readonly CurvePoint[],
  note: (rows: readonly Row[]) => string = () => "",
): HTMLElement | null {
  const has = (op: OperationGroup): boolean => op.rows.some((row) => points(curve(row)).length > 0);
  const selectors = cellSelectors(context, has, () => chart.redraw());
  if (selectors === null) return null;
  const chart = mount(() => {
    const op = selectors.operation();
    return { ...drawing(context, op, curve), note: note(op.rows) };
  });
  return figure(context, id, title, help, selectors.elements, chart);
}

/** The chart of latencies; null without any. */
export function latency(context: Context): HTMLElement | null {
  const open = context.view.cells.some((row) => format.times(row.load) === "response");
  return curves(
    context,
    "chart-latency",
    open ? "Response time by percentile" : "Service time by percentile",
    "Lower is better. 99 of 100 operations are faster than the time at 99 %; further right are rarer, slower ones.",
    (row) => row.charts?.time_curve ?? [],
  );
}

/** The chart of waits for a session's lock; null if no request waited. */
export function lockWaits(context: Context): HTMLElement | null {
  return curves(
    context,
    "chart-locks",
    "Waiting for a session's lock",
    "Lower is better. Time that a request waited because another request of the same visitor held the session's lock; only requests that had to wait count.",
    (row) => row.charts?.lock_wait_curve ?? [],
    waitShares,
  );
}
