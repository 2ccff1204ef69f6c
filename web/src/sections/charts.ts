/** The charts: the one that shows the answer first, all others below the tables. */

import { failovers } from "../charts/failover";
import { growth } from "../charts/growth";
import { heatMap } from "../charts/heatmap";
import { hitsOverTime, overTime } from "../charts/overtime";
import { latency, lockWaits } from "../charts/percentiles";
import { rampLatency } from "../charts/ramp";
import { rampInTime } from "../charts/ramptime";
import { rates } from "../charts/rates";
import { searchCurves } from "../charts/search";
import { windows } from "../charts/windows";
import type { Context } from "../context";
import { h } from "../dom";

/** All charts with data, grouped by kind. The first shows the answer; if a store had events, the chart over time comes before the rates. */
export function charts(context: Context): HTMLElement[][] {
  const hasEvents = (context.view.events ?? []).length > 0;
  const time = overTime(context);
  const [before, after] = hasEvents ? [time, null] : [null, time];
  const single = [rampLatency(context), windows(context), failovers(context), before, rates(context), heatMap(context), rampInTime(context), growth(context), latency(context), after, hitsOverTime(context), lockWaits(context)];
  const kinds = [searchCurves(context), ...single.map((chart) => (chart === null ? [] : [chart]))];
  return kinds.filter((drawn) => drawn.length > 0);
}

/** How to use the charts, with a pointer and by touch. */
export function readingHints(): HTMLElement[] {
  const pointer = "Hover over a chart for values. Hold Ctrl and scroll to zoom, drag to move. Click a store's name to show or hide it.";
  const touch = "Tap a chart for values. Tap a store's name to show or hide it.";
  return [h("p", { class: "hint with-pointer" }, pointer), h("p", { class: "hint with-touch" }, touch)];
}
