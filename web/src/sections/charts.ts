/** The charts: the one that answers comes first, all others below the tables. */

import { growth } from "../charts/growth";
import { hitsOverTime, overTime } from "../charts/overtime";
import { latency, lockWaits } from "../charts/percentiles";
import { rampLatency } from "../charts/ramp";
import { rampInTime } from "../charts/ramptime";
import { rates } from "../charts/rates";
import { searchCurves } from "../charts/search";
import type { Context } from "../context";
import { h } from "../dom";

type Draw = (context: Context) => (HTMLElement | null)[];

/** Of these the first that has data answers. */
const ANSWERS: readonly Draw[] = [searchCurves, (context) => [rampLatency(context)], (context) => [rates(context)]];

const OTHERS: readonly Draw[] = [rampInTime, growth, latency, overTime, hitsOverTime, lockWaits].map((draw) => (context) => [draw(context)]);

function drawn(all: readonly Draw[], context: Context): HTMLElement[][] {
  return all.map((draw) => draw(context).filter((chart) => chart !== null)).filter((charts) => charts.length > 0);
}

/** The chart that answers, and how charts are read. */
export function answerChart(context: Context): HTMLElement[] {
  const charts = drawn(ANSWERS, context)[0] ?? [];
  if (charts.length === 0) return [];
  const pointer = "Point at a chart for its values; hold Ctrl and turn the wheel to zoom, drag to move; choose stores by their names.";
  const touch = "Tap a chart for its values; choose stores by their names.";
  return [...charts, h("p", { class: "hint with-pointer" }, pointer), h("p", { class: "hint with-touch" }, touch)];
}

/** All that do not answer. */
export function otherCharts(context: Context): HTMLElement[] {
  return [...drawn(ANSWERS, context).slice(1), ...drawn(OTHERS, context)].flat();
}
