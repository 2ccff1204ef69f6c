import { describe, expect, it } from "vitest";
import { byteScale, drawn, RATE } from "../src/charts/overtime";
import type { ResourceCharts, Row } from "../src/view";
import * as variants from "./variants.mjs";

/** A row whose target has limited memory. */
function limited(more: Partial<ResourceCharts> = {}): Row {
  const row = structuredClone(variants.sessions().cells[0]) as Row;
  if (row.charts !== null && row.charts !== undefined) {
    row.charts.resources = {
      interval_s: 0.1,
      memory_bytes: [[1, 2]],
      swapped_bytes: [[0, 0]],
      read_bytes_per_s: [[null, 3]],
      written_bytes_per_s: [[]],
      ...more,
    };
  }
  return row;
}

describe("quantities below the rate", () => {
  const names = (row: Row): string[] => drawn(RATE, [row]).map((over) => over.quantity);

  it("are those that are not always 0", () => {
    expect(names(limited())).toEqual(["operations/s", "memory used", "read from disk"]);
    expect(names(limited({ swapped_bytes: [[0, 4096]] }))).toContain("on swap");
  });

  it("are absent without limited memory", () => {
    expect(names(variants.sessions().cells[0] as Row)).toEqual(["operations/s"]);
  });

  it("begin with p99 where the record has it", () => {
    const row = limited();
    if (row.charts !== null && row.charts !== undefined) row.charts.p99_series = [[[0.2, 3e6], [0.9, 4e6]]];
    expect(names(row)).toEqual(["operations/s", "p99", "memory used", "read from disk"]);
    const p99 = drawn(RATE, [row])[1];
    expect(p99?.series(row)).toEqual([[[0.2, 3e6], [0.9, 4e6]]]);
    expect(p99?.tick(3e6)).toBe("3 ms");
  });

  it("have ticks at powers of two", () => {
    expect(byteScale(64 << 20)).toEqual({ interval: 32 << 20, max: 64 << 20 });
    expect(byteScale(65 << 20)).toEqual({ interval: 64 << 20, max: 128 << 20 });
    expect(byteScale(1)).toEqual({ interval: 1, max: 1 });
  });
});
