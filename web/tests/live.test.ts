import { describe, expect, it } from "vitest";
import { clock, cpuLines, latencyLines, looks, memoryLines, rateLines } from "../src/live/charts";
import { head, type Link, report, rest, store as latest, viewOf, words } from "../src/live/head";
import { empty, KEPT, type Point, progress, type State, type Store, taken, type Usage } from "../src/live/store";
import { look } from "../src/theme";
import * as variants from "./variants.mjs";

const NOW = { block: 0, cell: "redis/kv/8", target: "redis", profile: "kv", load: "8 clients", since_s: 10, phase: "mixed", stage: 1 };

function state(changes: Partial<State> = {}): State {
  return {
    run: "00c0ffee",
    study: "bench",
    title: "Key-value load",
    question: "How much?",
    scale: "standard",
    tool: "cachedyno 0.1.0",
    started_unix_ms: 1_790_000_000_000,
    targets: [
      { name: "redis", version: "Redis 7.0.15", unavailable: null },
      { name: "memcached", version: null, unavailable: "it is not installed" },
    ],
    now: NOW,
    done_share: 0.2,
    left_s: 40,
    trials: 3,
    failed: [],
    warnings: [],
    ended: null,
    ...changes,
  };
}

function point(at_s: number, changes: Partial<Point> = {}): Point {
  const operations = [{ operation: "get", rate_per_s: 900, ns_p50: 1e5, ns_p99: 2e5, errors: 0, misses: 0 }];
  return { at_s, trial: 1, target: "redis", phase: "mixed", rate_per_s: 900, operations, ...changes };
}

function usage(at_s: number, changes: Partial<Usage> = {}): Usage {
  return { at_s, trial: 1, target: "redis", server_cpus: 0.5, threads: [], generator_cpus: 0.9, generator_waiting: 0.01, ...changes };
}

function stored(changes: Partial<Store> = {}): Store {
  return { ...empty(), state: state(), ...changes };
}

const snapshot = (s: Store, at_s: number): string =>
  JSON.stringify({ format: 1, at_s, state: s.state, points: s.points, usage: s.usage });

describe("the store", () => {
  it("starts from a snapshot and adds new points", () => {
    let store = taken(empty(), "snapshot", snapshot(stored({ points: [point(1)] }), 12), 2);
    expect(store.offset_s).toBe(10);
    store = taken(store, "point", JSON.stringify(point(2)), 3);
    store = taken(store, "usage", JSON.stringify(usage(2)), 3);
    expect([store.points.length, store.usage.length, store.state?.run]).toEqual([2, 1, "00c0ffee"]);
    store = taken(store, "state", JSON.stringify(state({ trials: 4 })), 3);
    expect([store.state?.trials, store.points.length]).toEqual([4, 2]);
    // After a reconnect, a new snapshot follows.
    store = taken(store, "snapshot", snapshot(stored(), 20), 5);
    expect([store.points.length, store.offset_s]).toEqual([0, 15]);
  });

  it("keeps the last 30 minutes", () => {
    let store = stored({ points: Array.from({ length: KEPT }, (_, i) => point(i)) });
    store = taken(store, "point", JSON.stringify(point(9999)), 0);
    expect([store.points.length, store.points[0]?.at_s, store.points[KEPT - 1]?.at_s]).toEqual([KEPT, 1, 9999]);
  });

  it("says that it cannot read another format", () => {
    const store = taken(stored(), "snapshot", '{"format":2,"at_s":1}', 0);
    expect(store.state).toBeNull();
    expect(store.problem).toContain("format 2, and this page reads 1");
  });

  it("estimates progress between two events", () => {
    const store = stored({ offset_s: 0 });
    expect(progress(store, 10)).toEqual({ done: 0.2, left_s: 40 });
    expect(progress(store, 30)).toEqual({ done: 0.6000000000000001, left_s: 20 });
    expect(progress(store, 99)).toEqual({ done: 1, left_s: 0 });
    const ended = state({ ended: { status: "complete", because: "enough", report: null }, now: null, done_share: 1, left_s: null });
    expect(progress(stored({ state: ended }), 99)).toEqual({ done: 1, left_s: null });
  });
});

describe("lines", () => {
  const lookOf = looks(stored(), "light");
  const plain = look(7, "light", true);

  it("show targets and planned rates", () => {
    const store = stored({ points: [point(1, { planned_per_s: 1000 }), point(1.5, { planned_per_s: 2000 })] });
    const lines = rateLines(store, lookOf, plain);
    expect(lines.map((l) => l.name)).toEqual(["redis", "planned"]);
    expect(lines[1]?.data).toEqual([[1, 1000], [1.5, 2000]]);
  });

  it("break without measurements", () => {
    const [line] = rateLines(stored({ points: [point(1), point(1.5), point(9)] }), lookOf, plain);
    expect(line?.data).toEqual([[1, 900], [1.5, 900], [5.25, null], [9, 900]]);
    const trials = [point(1), point(1.5, { trial: 2 }), point(2, { trial: 2 })];
    const [ofTwo] = rateLines(stored({ points: trials }), lookOf, plain);
    expect(ofTwo?.data).toEqual([[1, 900], [1.25, null], [1.5, 900], [2, 900]]);
  });

  it("distinguish operations by dashes", () => {
    const operations = ["get", "set"].map((operation) => ({ operation, rate_per_s: 1, ns_p50: 1, ns_p99: 5, errors: 0, misses: 0 }));
    const lines = latencyLines(stored({ points: [point(1, { operations }), point(2, { operations: [] })] }), lookOf);
    expect(lines.map((l) => [l.name, l.look.dash.length])).toEqual([["redis get", 0], ["redis set", 2]]);
    expect(lines[0]?.look.color).toBe(lookOf("redis").color);
  });

  it("mark a percentile as a bound if failures reach it", () => {
    const operation = { operation: "get", rate_per_s: 1, ns_p50: 1, errors: 2, misses: 0 };
    const percentiles = [5, { at_least: 5e9 }, { at_least: 0 }, null].map((ns_p99, i) => point(i + 1, { operations: [{ ...operation, ns_p99 }] }));
    const [line] = latencyLines(stored({ points: percentiles }), lookOf);
    expect(line?.data).toEqual([[1, 5], [2, 5e9, 1]]);
  });

  it("show the busiest of several threads, and the generator", () => {
    const threads = [{ name: "main", cpus: 0.2 }, { name: "io_thd_1", cpus: 0.7 }];
    const lines = cpuLines(stored({ usage: [usage(1, { threads })] }), lookOf, plain);
    expect(lines.map((l) => [l.name, l.data[0]?.[1]])).toEqual([["redis", 0.5], ["generator", 0.9], ["redis busiest thread", 0.7]]);
    const files = usage(1);
    delete files.server_cpus;
    expect(cpuLines(stored({ usage: [files] }), lookOf, plain).map((l) => l.name)).toEqual(["generator"]);
  });

  it("show the memory figures that the server reports", () => {
    expect(memoryLines(stored({ usage: [usage(1)] }), lookOf)).toEqual([]);
    const lines = memoryLines(stored({ usage: [usage(1, { server_bytes: 8, store_bytes: 4 })] }), lookOf);
    expect(lines.map((l) => l.name)).toEqual(["redis resident", "redis used"]);
  });
});

describe("words", () => {
  it("describe the current activity", () => {
    expect(words(state())).toBe("redis, kv, 8 clients: phase mixed, stage 2");
    expect(words(state({ now: { ...NOW, phase: null, stage: null } }))).toBe("redis, kv, 8 clients: being prepared");
    expect(words(state({ now: null, trials: 0 }))).toBe("Checking the stores.");
    const ended = { status: "complete", because: "enough blocks", report: null };
    expect(words(state({ ended }))).toBe("The run is over: enough blocks.");
  });

  it("print the time of a run", () => {
    expect([0, 65, 3725].map(clock)).toEqual(["0:00", "1:05", "1:02:05"]);
  });

  it("are at the top, with the remaining time", () => {
    const text = head(stored(), "connected", null, 30).textContent ?? "";
    for (const part of ["Key-value load", "running", "Blo", "60 %", "Left20 s", "Runs for0:30"]) expect(text).toContain(part);
    expect(head(stored(), "lost", null, 30).textContent).toContain("does not answer");
    const crowded = head(empty(), "crowded", null, 0).textContent;
    for (const part of ["too many readers", "once another reader has left"]) expect(crowded).toContain(part);
    expect(head(empty(), "connecting", null, 0).textContent).toContain("connecting");
  });

  it("link to the report once it exists", () => {
    const ended = (there: boolean | null): State => state({ ended: { status: "complete", because: "", report: there } });
    expect(report(state(), null, "connected")).toBeNull();
    expect(report(ended(null), null, "connected")?.textContent).toContain("is being written");
    expect(report(ended(null), null, "closed")?.textContent).toContain("cachedyno report 00c0ffee");
    expect(report(ended(false), null, "closed")?.textContent).toContain("could not be written");
    expect(report(ended(true), { url: "blob:x", view: null }, "closed")?.querySelector("a")?.getAttribute("href")).toBe("blob:x");
  });

  it("call a run complete only once its report exists", () => {
    const ended = (there: boolean | null): Store => stored({ state: state({ ended: { status: "complete", because: "enough", report: there } }) });
    const standing = (store: Store, link: Link): string => head(store, link, null, 30).querySelector("[role=status] .chip")?.textContent ?? "";
    expect(standing(ended(null), "connected")).toContain("writing the report");
    expect(standing(ended(true), "connected")).toContain("writing the report");
    expect(standing(ended(false), "closed")).toContain("complete");
  });

  it("show the validity of the report", () => {
    const ended = stored({ state: state({ ended: { status: "complete", because: "enough", report: true } }) });
    expect(head(ended, "connected", null, 30).querySelector(".chip-good")).toBeNull();
    const page = (data: string): string => `<!doctype html><script type="application/json" id="cachedyno-view">${data}</script>`;
    const view = viewOf(page(JSON.stringify({ ...variants.notSteady(), sheet: [] })));
    const built = head(ended, "closed", { url: "blob:x", view }, 30);
    expect(built.querySelector(".validity-warn .chip")?.textContent).toBe("!NOT-STEADY");
    expect(built.textContent).toContain("two halves differ by 5 %");
    expect(viewOf(page(JSON.stringify({ ...variants.sessions(), format: 9 })))).toBeNull();
    expect(viewOf("<!doctype html>")).toBeNull();
  });

  it("show failures as text", () => {
    const failed = [{ cell: "redis/kv/8", block: 1, message: "<b>the server died</b>" }];
    const parts = rest(state({ failed, warnings: ["a `b` c"] }));
    expect(parts.map((p) => p.id)).toEqual(["stores", "failed", "warnings"]);
    expect(parts[0]?.textContent).toContain("memcached not run: it is not installed");
    expect(parts[1]?.textContent).toContain("in block 2: <b>the server died</b>");
    expect(parts[2]?.querySelector("code")?.textContent).toBe("b");
  });

  it("show the store's latest statistics", () => {
    expect(latest(stored())).toBeNull();
    const text = latest(stored({ usage: [usage(65, { connections: 9, evicted_per_s: 12, swapped_bytes: 0 })] }))?.textContent ?? "";
    expect(text).toContain("redis at 1:05");
    expect(text).toContain("Connections9");
    expect(text).toContain("Evicted12.0/s");
    expect(text).not.toContain("Swapped");
  });
});
