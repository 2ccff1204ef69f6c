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

const one = (draw: (context: Context) => HTMLElement | null): Draw => (context) => [draw(context)];

/** Of these the first that has data answers: where something happened to a store, the course of time. */
function answers({ view }: Context): Draw[] {
  const inTime = (view.events ?? []).length > 0 ? [one(overTime)] : [];
  return [searchCurves, one(rampLatency), ...inTime, one(rates)];
}

const OTHERS: readonly Draw[] = [rampInTime, growth, latency, hitsOverTime, lockWaits].map(one);

function drawn(all: readonly Draw[], context: Context): HTMLElement[][] {
  return all.map((draw) => draw(context).filter((chart) => chart !== null)).filter((charts) => charts.length > 0);
}

/** The chart that answers, and how charts are read. */
export function answerChart(context: Context): HTMLElement[] {
  const charts = drawn(answers(context), context)[0] ?? [];
  if (charts.length === 0) return [];
  const pointer = "Point at a chart for its values; hold Ctrl and turn the wheel to zoom, drag to move; choose stores by their names.";
  const touch = "Tap a chart for its values; choose stores by their names.";
  return [...charts, h("p", { class: "hint with-pointer" }, pointer), h("p", { class: "hint with-touch" }, touch)];
}

/** All that do not answer. */
export function otherCharts(context: Context): HTMLElement[] {
  const hasEvents = (context.view.events ?? []).length > 0;
  return [...drawn(answers(context), context).slice(1), ...drawn(OTHERS, context), ...(hasEvents ? [] : drawn([one(overTime)], context))].flat();
}
