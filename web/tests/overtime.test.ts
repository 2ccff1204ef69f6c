import { describe, expect, it } from "vitest";
import { happenings, shortNames } from "../src/charts/events";
import { blockChoices, story } from "../src/charts/failover";
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

describe("the time line of a fault", () => {
  const row = (): Row => variants.failedOver().cells.find((r) => r.operation === "write") as Row;

  it("has failed requests below p99", () => {
    expect(drawn(RATE, [row()]).map((over) => over.quantity)).toEqual(["operations/s", "p99", "failed/s"]);
  });

  it("starts with the worst block and offers each block once", () => {
    const names = blockChoices(row()).map(({ name }) => name);
    expect(names.slice(0, 3)).toEqual(["block 3 (worst)", "block 1", "block 2"]);
    expect(names).toHaveLength(row().charts?.by_block.length ?? 0);
  });

  it("names servers at its events, as there are several", () => {
    const events = variants.failedOver().events ?? [];
    const words = happenings(events, row(), 0, 10).map((one) => one.words);
    expect(words[0]).toBe(":13500 killed");
    expect(words).toContain(":13501 promoted to primary in place of :13500");
  });

  it("tells roles in words", () => {
    const [first, , sentinel] = row().charts?.servers?.blocks[0] ?? [];
    expect(story(first?.roles ?? [])).toBe("primary until 3.00 s, gone until 7.10 s, not in sync until 9.97 s, then replica");
    expect(story(sentinel?.roles ?? [])).toBe("Sentinel");
  });

  it("leaves out a host that all servers have", () => {
    const one = shortNames(["127.0.0.1:7001", "", "127.0.0.1:7002"]);
    expect([one("127.0.0.1:7001"), one("10.0.0.9:7001"), one("")]).toEqual([":7001", "10.0.0.9:7001", ""]);
    expect(shortNames(["10.0.0.1:1", "10.0.0.2:1"])("10.0.0.1:1")).toBe("10.0.0.1:1");
    expect(shortNames(["/run/a.sock"])("/run/a.sock")).toBe("/run/a.sock");
  });
});
