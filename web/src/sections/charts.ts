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

/** All charts that have data, those of one kind together. The first answer: where something happened to a store, the course of time comes before the rates. */
export function charts(context: Context): HTMLElement[][] {
  const hasEvents = (context.view.events ?? []).length > 0;
  const time = overTime(context);
  const [before, after] = hasEvents ? [time, null] : [null, time];
  const single = [rampLatency(context), before, rates(context), rampInTime(context), growth(context), latency(context), after, hitsOverTime(context), lockWaits(context)];
  const kinds = [searchCurves(context), ...single.map((chart) => (chart === null ? [] : [chart]))];
  return kinds.filter((drawn) => drawn.length > 0);
}

/** How charts are read, for a pointer and for fingers. */
export function readingHints(): HTMLElement[] {
  const pointer = "Point at a chart for its values; hold Ctrl and turn the wheel to zoom, drag to move; choose stores by their names.";
  const touch = "Tap a chart for its values; choose stores by their names.";
  return [h("p", { class: "hint with-pointer" }, pointer), h("p", { class: "hint with-touch" }, touch)];
}
