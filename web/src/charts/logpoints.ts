/** Points with intervals on two logarithmic axes. */

import type { CustomSeriesOption } from "echarts";
import type { Value } from "../view";
import type { LegendEntry, RenderItem } from "./base";

/** A point as drawn: log10 of both coordinates, and of both ends of the interval of the second. */
export type LogPoint = [x: number, y: number, lo: number, hi: number];

/** The point of a positive value; without an interval both ends are the centre. */
export function logPoint(x: number, { center, lo, hi }: Pick<Value, "center" | "lo" | "hi">): LogPoint {
  const end = (n: number | null): number => Math.log10(n !== null && n > 0 ? n : center);
  return [Math.log10(x), Math.log10(center), end(lo), end(hi)];
}

/** The intervals of points. */
export function intervalBars(entry: LegendEntry, drawn: readonly LogPoint[]): CustomSeriesOption {
  const { color } = entry.look;
  const renderItem: RenderItem = (_, api) => {
    const at = (dimension: number): number[] => api.coord([api.value(0), api.value(dimension)]);
    const [[x = 0, low = 0], [, high = 0]] = [at(2), at(3)] as [number[], number[]];
    const bar = (x1: number, y1: number, x2: number, y2: number) => ({
      type: "line" as const,
      shape: { x1, y1, x2, y2 },
      style: { stroke: color, lineWidth: 1.5 },
    });
    return { type: "group", children: [bar(x, low, x, high), bar(x - 5, low, x + 5, low), bar(x - 5, high, x + 5, high)] };
  };
  const data = drawn.filter(([, , lo, hi]) => lo < hi);
  return { type: "custom", name: entry.name, data, encode: { x: 0, y: [2, 3] }, renderItem, silent: true, clip: true, tooltip: { show: false } };
}
