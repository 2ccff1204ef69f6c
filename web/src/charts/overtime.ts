/** Rate over time within each block: shows warming up, stalls and drift. */

import type { LineSeriesOption } from "echarts";
import type { Context } from "../context";
import * as format from "../format";
import type { OperationGroup } from "../standing";
import * as theme from "../theme";
import type { Row } from "../view";
import { axis, type Drawing, type LegendEntry, mount, tip, zoom } from "./base";
import { type Choice, cellSelectors, figure, selector } from "./figure";

const ALL_BLOCKS = -1;

/** Points as drawn: seconds from the start of the measurement against operations per second. */
function points(row: Row, series: number): [number, number][] {
  const step = row.charts?.interval_s ?? 0;
  return (row.charts?.rate_series[series] ?? []).map((rate, i) => [(i + 1) * step, rate]);
}

/** The block of a series, counted from 0: one that failed has no series. */
function blockOf(row: Row, series: number): number {
  return row.charts?.by_block[series]?.block ?? series;
}

function lines(entry: LegendEntry, row: Row, block: number): LineSeriesOption[] {
  const series = row.charts?.rate_series.map((_, i) => i) ?? [];
  const { color, dash } = entry.look;
  return series
    .filter((i) => block === ALL_BLOCKS || blockOf(row, i) === block)
    .map((i) => ({
      type: "line",
      name: entry.name,
      id: `${entry.name} ${i}`,
      data: points(row, i),
      symbol: "circle",
      symbolSize: 7,
      showSymbol: false,
      itemStyle: { color },
      lineStyle: { color, width: 1.5, opacity: block === ALL_BLOCKS ? 0.62 : 1, type: dash.length === 0 ? "solid" : dash },
      emphasis: { disabled: true },
    }));
}

interface Item {
  seriesName: string;
  seriesId: string;
  value: [number, number];
}

function timeTip(params: unknown, looks: Map<string, theme.Look>): HTMLElement {
  const items = (Array.isArray(params) ? params : [params]) as Item[];
  const at = items[0]?.value[0] ?? 0;
  const byTarget = new Map<string, number[]>();
  for (const { seriesName, value } of items) {
    byTarget.set(seriesName, [...(byTarget.get(seriesName) ?? []), value[1]]);
  }
  const rows = [...byTarget].map(([name, rates]) => {
    const ends = [Math.min(...rates), Math.max(...rates)].map(format.rate);
    const shown = rates.length === 1 ? (ends[0] as string) : `${ends[0]}–${ends[1]}`;
    return { name, color: looks.get(name)?.color ?? "", value: `${shown} operations/s` };
  });
  const many = items.length > byTarget.size ? "lowest to highest block" : "";
  return tip(`after ${format.threeDigits(at)} s`, rows, many);
}

function drawing(context: Context, op: OperationGroup, block: number): Drawing {
  const looks = theme.looks(context.view, theme.current());
  const rows = op.rows.filter((row) => (row.charts?.rate_series.length ?? 0) > 0);
  const legend = rows.map((row) => ({ name: row.target, look: looks.get(row.target) as theme.Look }));
  const base = axis();
  return {
    legend,
    label: `Lines of operations per second over time, one for each block, for ${format.list(legend.map((e) => e.name))}.`,
    option: {
      grid: { left: 8, right: 20, top: 28, bottom: 8, containLabel: true },
      tooltip: {
        trigger: "axis",
        axisPointer: { type: "line", label: { show: false } },
        formatter: (params) => timeTip(params, looks),
      },
      dataZoom: [zoom("xAxisIndex")],
      xAxis: {
        type: "value",
        min: 0,
        max: "dataMax",
        ...base,
        axisLabel: { ...base["axisLabel"], formatter: (s: number) => `${Number(s.toPrecision(4))} s` },
        splitLine: { show: false },
      },
      yAxis: {
        type: "value",
        name: "operations/s",
        min: 0,
        ...base,
        nameTextStyle: { ...base["nameTextStyle"], align: "left" },
        axisLabel: { ...base["axisLabel"], formatter: (n: number) => format.rateShort(n) },
      },
      series: rows.flatMap((row, i) => lines(legend[i] as LegendEntry, row, block)),
    },
  };
}

function blockChoices(op: OperationGroup): Choice<number>[] {
  const blocks = op.rows.flatMap((row) => row.charts?.rate_series.map((_, i) => blockOf(row, i)) ?? []);
  const single = [...new Set(blocks)].sort((a, b) => a - b).map((i) => ({ name: `block ${i + 1}`, value: i }));
  return single.length === 1 ? single : [{ name: "all blocks", value: ALL_BLOCKS }, ...single];
}

/** The chart of rates over time; null when none were recorded. */
export function overTime(context: Context): HTMLElement | null {
  const has = (op: OperationGroup): boolean => op.rows.some((row) => row.charts?.rate_series.some((s) => s.length > 1));
  const selectors = cellSelectors(context, has, () => {
    byBlock.offer(blockChoices(selectors?.operation() as OperationGroup));
    chart.redraw();
  });
  if (selectors === null) return null;
  const byBlock = selector("Block", blockChoices(selectors.operation()), () => chart.redraw());
  const chart = mount(() => drawing(context, selectors.operation(), byBlock.value()));
  return figure(
    context,
    "chart-time",
    "Rate over time",
    "A level line is a steady store; each line is one block. A rise is warming up, a fall is wear, a notch is a stall.",
    [...selectors.elements, byBlock.element],
    chart,
  );
}
