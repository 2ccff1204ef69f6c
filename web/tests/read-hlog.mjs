// Reads an HdrHistogram log with an independent library, for the tests of the
// program: `node read-hlog.mjs FILE` prints each tag with the merge of all its intervals.

import { readFileSync } from "node:fs";
import { HistogramLogReader, build } from "hdr-histogram-js";

// Use the log's digits and its largest time.
const empty = () => build({ autoResize: true, numberOfSignificantValueDigits: 3 });

const reader = new HistogramLogReader(readFileSync(process.argv[2], "utf8"));
const byTag = {};
for (let part = reader.nextIntervalHistogram(); part; part = reader.nextIntervalHistogram()) {
  const known = (byTag[part.tag] ??= { whole: empty(), intervals: 0 });
  known.whole.add(part);
  known.intervals += 1;
  known.begunMs ??= part.startTimeStampMsec;
  known.endedMs = part.endTimeStampMsec;
}
const merged = Object.entries(byTag).map(([tag, { whole, intervals, begunMs, endedMs }]) => [
  tag,
  {
    intervals,
    begun_ms: begunMs,
    ended_ms: endedMs,
    count: whole.totalCount,
    ...Object.fromEntries(
      [50, 99, 99.9].map((p) => [`p${String(p).replace(".", "")}`, whole.getValueAtPercentile(p)]),
    ),
  },
]);
console.log(JSON.stringify(Object.fromEntries(merged)));
