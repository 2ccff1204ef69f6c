/** The charts, one under the other. */

import { growth } from "../charts/growth";
import { rampLatency } from "../charts/ramp";
import { rampInTime } from "../charts/ramptime";
import { searchCurves } from "../charts/search";
import { latency, lockWaits } from "../charts/percentiles";
import { hitsOverTime, overTime } from "../charts/overtime";
import { rates } from "../charts/rates";
import type { Context } from "../context";
import { h, section } from "../dom";

/** All charts that have data; null when there are none. */
export function charts(context: Context): HTMLElement | null {
  const built = [...searchCurves(context), rampLatency(context), rampInTime(context), rates(context), growth(context), latency(context), overTime(context), hitsOverTime(context), lockWaits(context)];
  const shown = built.filter((c) => c !== null);
  if (shown.length === 0) return null;
  return section(
    "charts",
    "Charts",
    h(
      "p",
      { class: "hint screen-only" },
      "Point at a chart for its values; hold Ctrl and turn the wheel to zoom, drag to move; choose stores by their names.",
    ),
    shown,
  );
}
