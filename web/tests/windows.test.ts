import { describe, expect, it } from "vitest";
import { stripOf, windows } from "../src/charts/windows";
import { contextOf } from "../src/context";
import type { FailoverView, SpreadView } from "../src/faultview";
import { parseView } from "../src/parse";
import type { View } from "../src/view";
import { sheetOf } from "./sheets.mjs";
import * as variants from "./variants.mjs";

const view = (): View => {
  const raw = variants.failedOver();
  return parseView(JSON.stringify({ ...raw, sheet: sheetOf(raw) })) as View;
};

const strip = (read: (of: FailoverView) => SpreadView | null) => stripOf(view().failovers ?? [], { name: "window", none: "at once", read });

describe("the windows of faults", () => {
  it("have a mark for each fault, with its time", () => {
    const writes = strip((of) => of.writes_unavailable_ns);
    expect(writes?.marks.map(({ text }) => text)).toEqual(["1.41 s", "1.44 s", "2.20 s", "at once", "at once", "at once"]);
    expect(writes?.marks.map(({ row }) => row)).toEqual([0, 0, 0, 1, 1, 1]);
    expect(10 ** (writes?.medians[0]?.x ?? 0)).toBeCloseTo(1.44e9, -3);
    expect(writes?.ticks.map(({ text }) => text)).toEqual(["at once", "1 s", "2 s", "5 s"]);
  });

  it("count those that outlasted the measurement, but not failed trials", () => {
    const rate = strip((of) => of.rate_back_ns);
    expect(rate?.marks.slice(3).map(({ text }) => text)).toEqual(["100 ms", "200 ms", "not at all"]);
    expect(rate?.ticks.at(-1)?.text).toBe("not at all");
  });

  it("are absent where none is known", () => {
    expect(strip((of) => of.p99_back_ns)).toBeNull();
    const of = view();
    expect(windows(contextOf(of))?.querySelector("h3")?.textContent).toContain("Times of each fault");
    delete of.failovers;
    expect(windows(contextOf(of))).toBeNull();
  });
});
