import { describe, expect, it } from "vitest";
import { rampPoints } from "../src/charts/ramp";
import { panelsOf, zigzag } from "../src/charts/ramptime";
import { drawnProbes } from "../src/charts/search";
import { contextOf } from "../src/context";
import { head } from "../src/sections/head";
import { method } from "../src/sections/method";
import { parseView } from "../src/parse";
import type { SearchView } from "../src/searchview";
import type { RampBlock, RampView, View } from "../src/view";
import { sheetOf } from "./sheets.mjs";
import * as variants from "./variants.mjs";

function viewOf(raw: variants.Raw): View {
  return parseView(JSON.stringify({ ...raw, sheet: sheetOf(raw) })) as View;
}

const first = (view: View): RampView => (view.ramps ?? [])[0] as RampView;
const block = (view: View): RampBlock => first(view).charts?.blocks[0] as RampBlock;

describe("ramps", () => {
  it("name a broken store in the answer", () => {
    const said = (head(contextOf(viewOf(variants.doubtfulRamps()))) as HTMLElement).textContent;
    expect(said).toContain("redis failed in every block");
    expect(said).not.toContain("Nothing was measured");
  });
});

describe("a ramp's charts", () => {
  it("have one point per answered stage", () => {
    const ramp = first(viewOf(variants.ramps()));
    expect(rampPoints(ramp, "up", "all", "p99")).toHaveLength(12);
    expect(rampPoints(ramp, "down", "set", "p50")).toHaveLength(11);
    expect(rampPoints(ramp, "up", "touch", "p99")).toEqual([]);
    const [rate, log] = rampPoints(ramp, "up", "all", "p99")[0] as [number, number];
    expect(rate).toBeCloseTo(9400, 0);
    expect(10 ** log).toBeGreaterThan(1e5);
  });

  it("draw the lowest and the highest value of each time span", () => {
    const series = { panel: "cpu", name: "server", low: [1, null, 3], high: [2, null, 3] };
    expect(zigzag(series, 4)).toEqual([[1, 1], [3, 2], [6, null], [10, 3]]);
    expect(zigzag({ panel: "cpu", name: "server", low: [1, 2] }, 2)).toEqual([[1, 1], [3, 2]]);
  });

  it("have a panel for each sampled quantity", () => {
    const view = viewOf(variants.ramps());
    const titles = panelsOf(block(view)).map((panel) => panel.title);
    expect(titles.slice(0, 3)).toEqual(["99th percentile", "Operations/s", "CPUs used"]);
    expect(titles).toHaveLength(11);
    const latency = panelsOf(block(view))[0];
    expect(latency?.lines.map((line) => line.name)).toEqual(["p99", "stage failed"]);
    expect(latency?.lines[1]?.points).toHaveLength(block(view).stages.filter((stage) => !stage.holds).length);
    const bare = { ...block(view), saturation: null };
    expect(panelsOf(bare).map((panel) => panel.title)).toEqual(["99th percentile", "Operations/s"]);
    const closed = { ...bare, stages: bare.stages.map((stage) => ({ ...stage, planned_per_s: null })) };
    expect(panelsOf(closed).map((panel) => panel.title)).toEqual(["99th percentile", "Operations/s", "Clients"]);
  });

  it("draw waits in their own panel, and a limit only if usage comes near it", () => {
    const panels = (of: RampBlock, title: string) => panelsOf(of).find((panel) => panel.title.startsWith(title));
    const known = block(viewOf(variants.ramps()));
    const cpu = panels(known, "CPUs used");
    expect(cpu?.lines.map((line) => line.name)).not.toContain("generator waits for a CPU");
    const highest = Math.max(...(cpu?.lines ?? []).flatMap((line) => line.points.map(([, y]) => y ?? 0)));
    expect(highest).toBeLessThan(1.1);
    expect(cpu?.least).toBe(1);
    expect(panels(known, "Generator waits")?.lines.map((line) => line.name)).toEqual(["generator"]);
    expect(panels(known, "Memory")?.title).toBe("Memory; its limit is 4 GiB");
    expect(panels(known, "Memory")?.lines.map((line) => line.name)).toEqual(["resident", "used by the data"]);
    const saturation = known.saturation as NonNullable<RampBlock["saturation"]>;
    const filled = saturation.series.map((one) => (one.name === "resident" ? { ...one, high: one.low.map(() => 2 ** 31) } : one));
    const near = panels({ ...known, saturation: { ...saturation, series: filled } }, "Memory");
    expect([near?.title, near?.lines.map((line) => line.name)]).toEqual(["Memory", ["resident", "used by the data", "limit"]]);
  });

  it("use one colour per name in all panels and keep gaps between stages", () => {
    const [latency] = panelsOf(block(viewOf(variants.ramps())));
    const points = latency?.lines[0]?.points ?? [];
    expect(points[2]?.[1]).toBeNull();
    expect(points[0]?.[1]).toBe(points[1]?.[1]);
  });
});

describe("a search", () => {
  it("is a chart of its probes, with its answer above", () => {
    const view = viewOf(variants.searched());
    expect(drawnProbes((view.searches as NonNullable<View["searches"]>)[0] as SearchView).map((p) => p.number)).toEqual([2, 3, 4, 5, 6, 7, 8, 9]);
    const said = (head(contextOf(view)) as HTMLElement).textContent;
    expect(said).toContain("sustains 72,000/s [70,000, 75,000]");
    expect(said).toContain("peak, ignoring the limits: 98,000/s");
    expect((method(contextOf(view)) as HTMLElement).textContent).toContain("depends on the earlier ones");
  });
});
