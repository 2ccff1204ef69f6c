import { describe, expect, it } from "vitest";
import { rampPoints, timeOf } from "../src/charts/ramp";
import { panelsOf, zigzag } from "../src/charts/ramptime";
import { drawnProbes } from "../src/charts/search";
import { contextOf } from "../src/context";
import { head } from "../src/sections/head";
import { method } from "../src/sections/method";
import { downOf, ramps } from "../src/sections/ramps";
import { search } from "../src/sections/search";
import { parseView } from "../src/parse";
import type { ProbeView, RampBlock, RampView, SearchView, View } from "../src/view";
import * as variants from "./variants.mjs";

function viewOf(raw: variants.Raw): View {
  return parseView(JSON.stringify(raw)) as View;
}

function texts(root: HTMLElement, query: string): string[] {
  return [...root.querySelectorAll(query)].map((e) => e.textContent ?? "");
}

const first = (view: View): RampView => (view.ramps ?? [])[0] as RampView;
const block = (view: View): RampBlock => first(view).charts?.blocks[0] as RampBlock;

describe("ramps", () => {
  it("have a row a store, and a table of stages for each", () => {
    const built = ramps(contextOf(viewOf(variants.ramps()))) as HTMLElement;
    expect(texts(built, ".ramps tbody th .target")).toEqual(["redis", "memcached"]);
    const cells = texts(built, ".ramps tbody tr:first-child td");
    expect(cells[0]).toMatch(/^94k\/s92.1k\/s–102k\/s$/);
    expect(texts(built, ".ramps thead th")).toContain("p99 below 1 ms");
    expect(texts(built, ".ramps thead th").filter((name) => name.startsWith("p99 at"))).toHaveLength(5);
    const tables = built.querySelectorAll(".stages");
    expect(tables).toHaveLength(2);
    expect(tables[0]?.querySelectorAll("tbody tr")).toHaveLength(12);
    expect(texts(tables[0] as HTMLElement, "tr.missed td:nth-child(3)")).toEqual(["too much", "too much"]);
  });

  it("tell the place in a pair apart from the operation", () => {
    const raw = variants.ramps();
    expect(ramps(contextOf(viewOf(raw)))?.querySelector(".places")).toBeNull();
    const view = viewOf(raw);
    const time = (center: number) => ({ center, lo: null, hi: null });
    first(view).place = {
      operations: ["set", "get"],
      blocks: 3,
      doubt: null,
      sentence: "redis: the first of a pair takes 5.00× as long",
      metrics: { "set.first.ns_p50": time(50_000), "get.first.ns_p50": time(51_000), "get.apart.ns_p99": time(90_000) },
    };
    const built = ramps(contextOf(view))?.querySelector(".places") as HTMLElement;
    expect(texts(built, "li")).toEqual(["redis: the first of a pair takes 5.00× as long"]);
    expect(texts(built, "tbody tr")).toHaveLength(2);
    expect(texts(built, "tbody tr:first-child td")[0]).toContain("50");
    expect(texts(built, "tbody tr:last-child td")[5]).toContain("90");
  });

  it("set the way down beside the way up", () => {
    const ramp = first(viewOf(variants.ramps()));
    const up = ramp.stages[2] as RampView["stages"][number];
    const down = downOf(ramp, up);
    expect(down?.way).toBe("down");
    expect(down?.metrics["planned_per_s"]?.center).toBeCloseTo(up.metrics["planned_per_s"]?.center as number, 6);
    const p99 = (stage: typeof up): number => timeOf(ramp, stage, "all", "p99")?.center as number;
    expect(p99(down as typeof up)).toBeGreaterThan(p99(up));
    expect(downOf(ramp, ramp.stages[11] as typeof up)).toBeUndefined();
  });

  it("say of what only the least is known, and what broke", () => {
    const context = contextOf(viewOf(variants.doubtfulRamps()));
    const built = ramps(context) as HTMLElement;
    expect(texts(built, ".chip")).toContain("?at least: generator's limit");
    expect(texts(built, ".chip")).toContain("?broke");
    expect(texts(built, "h3")).toEqual(["open", "Stages, open", "putra-2024", "Stages, putra-2024"]);
    const closed = [...built.querySelectorAll<HTMLElement>(".stages")].pop() as HTMLElement;
    expect(texts(closed, "thead th")[0]).toBe("clients");
    expect(texts(closed, "tbody th")[0]).toBe("20");
    const said = (head(context) as HTMLElement).textContent;
    expect(said).toContain("redis broke in every block");
    expect(said).not.toContain("Nothing was measured");
  });

  it("have no column, and no word, of a way down that there was not", () => {
    const raw = variants.ramps();
    const has = (text: string): boolean => (ramps(contextOf(viewOf(raw))) as HTMLElement).textContent?.includes(text) ?? false;
    expect([has("p99 way down"), has("p99 stands at shares"), has("CPU/op server")]).toEqual([true, true, true]);
    for (const ramp of raw.ramps ?? []) {
      ramp.stages = ramp.stages.filter((stage) => stage.way === "up");
      ramp.at = [];
    }
    expect([has("p99 way down"), has("p99 stands at shares"), has("CPU/op server")]).toEqual([false, false, false]);
  });

  it("are not there in other runs", () => {
    expect(ramps(contextOf(viewOf(variants.sessions())))).toBeNull();
  });
});

describe("a ramp's charts", () => {
  it("have a point a stage with an answer", () => {
    const ramp = first(viewOf(variants.ramps()));
    expect(rampPoints(ramp, "up", "all", "p99")).toHaveLength(12);
    expect(rampPoints(ramp, "down", "set", "p50")).toHaveLength(11);
    expect(rampPoints(ramp, "up", "touch", "p99")).toEqual([]);
    const [rate, log] = rampPoints(ramp, "up", "all", "p99")[0] as [number, number];
    expect(rate).toBeCloseTo(9400, 0);
    expect(10 ** log).toBeGreaterThan(1e5);
  });

  it("draw the lowest and the highest value of each span", () => {
    const series = { panel: "cpu", name: "server", low: [1, null, 3], high: [2, null, 3] };
    expect(zigzag(series, 4)).toEqual([[1, 1], [3, 2], [6, null], [10, 3]]);
    expect(zigzag({ panel: "cpu", name: "server", low: [1, 2] }, 2)).toEqual([[1, 1], [3, 2]]);
  });

  it("have a panel for each kind of quantity that was sampled", () => {
    const view = viewOf(variants.ramps());
    const titles = panelsOf(block(view)).map((panel) => panel.title);
    expect(titles.slice(0, 3)).toEqual(["99th percentile", "Operations/s", "CPUs used"]);
    expect(titles).toHaveLength(11);
    const latency = panelsOf(block(view))[0];
    expect(latency?.lines.map((line) => line.name)).toEqual(["p99", "stage was too much"]);
    expect(latency?.lines[1]?.points).toHaveLength(block(view).stages.filter((stage) => !stage.holds).length);
    const bare = { ...block(view), saturation: null };
    expect(panelsOf(bare).map((panel) => panel.title)).toEqual(["99th percentile", "Operations/s"]);
    const closed = { ...bare, stages: bare.stages.map((stage) => ({ ...stage, planned_per_s: null })) };
    expect(panelsOf(closed).map((panel) => panel.title)).toEqual(["99th percentile", "Operations/s", "Clients"]);
  });

  it("leave room for what is used: waits apart, and a limit in words until something comes near it", () => {
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

  it("give a name one colour in all panels and keep gaps between stages", () => {
    const [latency] = panelsOf(block(viewOf(variants.ramps())));
    const points = latency?.lines[0]?.points ?? [];
    expect(points[2]?.[1]).toBeNull();
    expect(points[0]?.[1]).toBe(points[1]?.[1]);
  });
});

describe("a search", () => {
  it("is a curve of its probes and a table of them", () => {
    const view = viewOf(variants.searched());
    expect(drawnProbes((view.searches as NonNullable<View["searches"]>)[0] as SearchView).map((p) => p.number)).toEqual([2, 3, 4, 5, 6, 7, 8, 9]);
    const built = search(contextOf(view)) as HTMLElement;
    expect(built.querySelectorAll("tbody tr")).toHaveLength(9);
    expect(texts(built, "tbody tr:nth-child(5) td")[5]).toBe("✕missed");
    expect(texts(built, "tbody tr:nth-child(1) td")[4]).toBe("–");
    expect(built.textContent).toContain("others had CPUs");
    const said = (head(contextOf(view)) as HTMLElement).textContent;
    expect(said).toContain("sustains 72,000/s [70,000, 75,000]");
    expect(said).toContain("peak, ignoring the limits: 98,000/s");
  });

  it("has one line for rests that follow each other, and says what verdicts and missing numbers mean", () => {
    const raw = variants.searched();
    const probes = raw.searches?.[0]?.probes ?? [];
    const rest = (number: number): ProbeView => ({ ...(probes[1] as ProbeView), number, purpose: "rest", verdict: null, reason: "still slow" });
    probes.splice(2, 0, rest(10), rest(11), rest(12));
    const view = viewOf(raw);
    const built = search(contextOf(view)) as HTMLElement;
    expect(built.querySelectorAll("tbody tr")).toHaveLength(10);
    expect(texts(built, "tbody tr:nth-child(3) th")[0]).toBe("10–12rest");
    expect(texts(built, "tbody tr:nth-child(3) td")[5]).toContain("slow, 3 times");
    for (const part of ["undecided: neither is certain", "Numbers that are not listed"]) expect(built.textContent).toContain(part);
    expect(built.textContent).not.toContain("broke:");
    expect(built.textContent).toContain("18 probes, 9 of them rests");
    const said = (method(contextOf(view)) as HTMLElement).textContent ?? "";
    expect(said).toContain("follows from those before it");
  });

  it("is not there in other runs", () => {
    expect(search(contextOf(viewOf(variants.sessions())))).toBeNull();
  });
});
