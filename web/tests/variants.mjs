// Views that are hard to render, derived from the fixture for unit and browser tests.
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { said } from "../fixtures/answer.mjs";
import { ramps as made } from "../fixtures/ramp.mjs";

const read = (name) => JSON.parse(readFileSync(join(dirname(fileURLToPath(import.meta.url)), `../fixtures/${name}`), "utf8"));

/** A fresh copy of the fixture. */
export function sessions() {
  return read("sessions.json");
}

/** Two stores with a load that rises in stages and falls again. */
export function ramps() {
  return read("ramp.json");
}

/** Four stores for two hours: the largest view of ramps. */
export function longRamps() {
  return made(sessions(), ["redis", "memcached", "redis-io-2", "memcached-1"], { steps: 60, spans: 300, threads: 6 });
}

/** A ramp limited by the generator, a failed one, and waiting clients. */
export function doubtfulRamps() {
  const view = ramps();
  const [redis, memcached] = view.ramps;
  Object.assign(memcached, { outcome: "generator", sentence: "memcached sustains at least 112,000/s: the generator was the limit" });
  memcached.metrics.knee_per_s.hi = null;
  Object.assign(redis, { outcome: "broken", at: [], blocks: 0, metrics: {}, sentence: "redis failed in every block, after sustaining 70,000/s: connection lost: the server ended with signal 9" });
  redis.stages = redis.stages.slice(0, 7);
  redis.charts.blocks = [{ ...redis.charts.blocks[1], failed: true }];
  const closed = structuredClone(view.ramps[1]);
  Object.assign(closed, { workload: "putra-2024", times: "service", load: { arrivals: "closed", schedule: { stages: [] }, clients: 240, pipeline: 1, one_session: false } });
  closed.stages.forEach((stage, i) => {
    stage.clients = 20 * (i < 12 ? i + 1 : 23 - i);
    delete stage.metrics.planned_per_s;
  });
  closed.charts.blocks[0].stages.forEach((stage) => (stage.planned_per_s = null));
  view.ramps.push(closed);
  view.profiles.push("putra-2024");
  view.answer = { summary: view.ramps.map(({ sentence, target, workload }) => said(sentence, target, workload)) };
  return view;
}

/** A search for the highest rate within a limit. */
export function searched() {
  const view = ramps();
  const probe = (number, rate_per_s, ns, verdict, purpose = "bracket") => ({
    ...{ block: 0, number, purpose, rate_per_s, length_s: 2, answered_per_s: rate_per_s ?? 98000, response_ns_p50: ns / 5, response_ns_p99: ns },
    ...{ error_share: 0, beyond: purpose === "peak" ? [] : [{ limit: "p99<1ms", share: ns > 1e6 ? 0.04 : 0.002 }], verdict, reason: number === 7 ? "others had CPUs" : null, failure: null },
  });
  const probes = [probe(1, null, 4e5, null, "peak"), probe(2, 20000, 2.1e5, "holds"), probe(3, 40000, 2.9e5, "holds"), probe(4, 60000, 5e5, "holds"), probe(5, 90000, 9e6, "missed"), probe(6, 75000, 9e5, "undecided"), probe(7, 78000, 1.4e6, "missed", "confirm"), probe(8, 71000, 7e5, "holds", "confirm"), probe(9, 68000, 8e5, "holds", "hold")];
  const sentence = "redis sustains 72,000/s [70,000, 75,000] with p99 below 1 ms";
  delete view.ramps;
  return {
    ...view,
    answer: { summary: [said(sentence, "redis"), said("peak, ignoring the limits: 98,000/s", "")] },
    ...{ study: "find-max", comparisons: [], title: "The highest rate of redis" },
    searches: [{ target: "redis", limits: ["p99<1ms"], outcome: "found", sentence, answer: { center: 72000, lo: 70000, hi: 75000 }, peak_per_s: 98000, held_per_s: 71000, missed_per_s: 78000, by_block: [{ block: 0, outcome: "found", answer: null }], tried: 18, rests: 9, probes }],
  };
}

/** One store at two loads: there is nothing to compare. */
export function alone() {
  const view = sessions();
  view.cells = view.cells.filter((row) => row.target === "redis");
  view.targets = view.targets.filter((target) => target.name === "redis");
  const summary = [1, 8].map((clients) => {
    const sentence = `redis reached ${clients}0.1 k/s [19.9, 20.3] at write (p99 61.2 µs) and 24.3 k/s [24.0, 24.6] at read (p99 52.3 µs) over 6 blocks; no operation failed`;
    return said(sentence, "redis", clients === 1 ? "steady, 1 client" : `steady, ${clients} clients`);
  });
  return { ...view, answer: { summary }, comparisons: [], claims: [], advice: [], advice_basis: null, advice_weights: {}, rankings: [] };
}

const HAPPENED = [[2.998, "killed"], [3.014, "replica lost its primary"], [3.02, "replica lost its primary"], [4.433, "promoted to primary"], [5.247, "named as the primary by a Sentinel"], [9.97, "replica attached"]];

/** A primary killed in the middle of a phase of ten seconds: two events in quick succession, and one at the end. */
export function killed() {
  const view = alone();
  view.cells = view.cells.filter((row) => row.load.clients === 8);
  view.answer.summary.shift();
  for (const { charts } of view.cells) {
    charts.interval_s = 0.1;
    charts.rate_series = charts.by_block.map((_, block) => Array.from({ length: 100 }, (_, i) => (i > 30 && i < 52 ? 0 : 2000 + 10 * ((i * 7 + block) % 13))));
  }
  const { workload, load } = view.cells[0];
  const of = (block) => HAPPENED.map(([at_s, what]) => ({ target: "redis", workload, load, block, phase: "write", at_s: at_s + 0.002 * block, kind: what.split(" ")[0], what, subject: "127.0.0.1:13500" }));
  view.events = view.cells[0].charts.by_block.flatMap(({ block }) => of(block));
  view.facts = [["writes_lost", "acknowledged writes lost", "0"], ["get.unavailable_ns", "get not answered", "2.25 s [2.20 s, 2.28 s]"]].map(([name, label, shown]) => {
    return { target: "redis", workload, load, name, label, source: "clients", value: { center: 0, lo: 0, hi: 0 }, shown, by_block: {}, beyond: 0 };
  });
  return view;
}

const PRIMARY = "127.0.0.1:13500";
const REPLICA = "127.0.0.1:13501";

/** The same kill with the roles and the CPU use of its servers; failed requests before the promotion, and the third block is the worst. */
export function failedOver() {
  const view = killed();
  const span = (from_s, to_s, role) => ({ from_s, to_s, role });
  const until = (to, from = 0) => (_, i) => (i < to && i >= from ? 0.3 + 0.02 * (i % 4) : null);
  const servers = () => [
    { name: PRIMARY, cpu_share: Array.from({ length: 20 }, (_, i) => (i < 6 ? 0.52 : i < 15 ? null : 0.9)), roles: [span(0, 2.998, "primary"), span(2.998, 7.1, "gone"), span(7.1, 9.97, "behind"), span(9.97, 10, "replica")] },
    { name: REPLICA, cpu_share: Array.from({ length: 20 }, until(20)), roles: [span(0, 3.014, "replica"), span(3.014, 4.433, "behind"), span(4.433, 10, "primary")] },
    { name: "127.0.0.1:13502", cpu_share: Array.from({ length: 20 }, () => 0.01), roles: [span(0, 10, "sentinel")] },
  ];
  const row = view.cells.find(({ operation }) => operation === "write");
  Object.assign(row.charts, {
    p99_series: row.charts.by_block.map(() => Array.from({ length: 20 }, (_, i) => [(i + 1) / 2, i > 5 && i < 12 ? 9e8 : 1.2e6])),
    failed_series: row.charts.by_block.map(() => Array.from({ length: 100 }, (_, i) => (i > 40 && i < 44 ? 320 : 0))),
    servers: { interval_s: 0.5, worst: 2, blocks: row.charts.by_block.map(servers) },
  });
  const promoted = view.events.filter(({ kind }) => kind === "promoted");
  for (const event of promoted) Object.assign(event, { subject: REPLICA, in_place_of: PRIMARY });
  const { load } = row;
  const spread = (...all) => ({ median: all[(all.length - 1) >> 1], worst: all.at(-1), all });
  const fault = (workload, target, more) => ({ target, workload, load, fault: workload.split("-")[0], by_command: false, share: null, planned_per_s: null, peak_per_s: null, faults: 3, survived: null, failed: 0, above_limit_before: null, cpu_peak_share: null, two_primaries_ns: null, not_promoted: 0, writes_lost: [0, 100], writes_unknown: 0, p99_back_ns: null, ...more });
  view.failovers = [
    fault("kill", "redis", { writes_unavailable_ns: spread(1.41e9, 1.44e9, 2.2e9), reads_unavailable_ns: spread(1.41e9, 1.44e9, 2.2e9), rate_back_ns: spread(1.5e9, 1.5e9, 2.3e9) }),
    fault("failover", "redis", { faults: 4, failed: 1, writes_unavailable_ns: spread(0, 0, 0), reads_unavailable_ns: spread(0, 0, 1.2e8), rate_back_ns: { median: 2e8, worst: null, all: [1e8, 2e8] } }),
  ];
  return view;
}

/** Gets and sets over sizes of values, connections and requests at once; one combination was not measured. */
export function gridded() {
  const view = alone();
  const axes = [{ name: "value_bytes", values: [64, 1024, 16384] }, { name: "clients", values: [1, 50, 500] }, { name: "pipeline", values: [1, 16] }];
  const [model] = view.cells;
  const at = axes[0].values.flatMap((_, a) => axes[1].values.flatMap((__, b) => axes[2].values.map((___, c) => [a, b, c])));
  const measured = at.filter(([a, b, c]) => !(a === 2 && b === 2 && c === 0));
  const cells = [];
  view.cells = measured.flatMap((place) => ["get", "set"].map((operation, i) => {
    const [bytes, clients, pipeline] = axes.map(({ values }, axis) => values[place[axis]]);
    const rate = (Math.round((40_000 * Math.sqrt(clients) * Math.sqrt(pipeline)) / (1 + bytes / 4096)) * (10 - i)) / 10;
    const row = structuredClone(model);
    Object.assign(row, { operation, workload: `grid-${bytes}B-P${pipeline}`, load: { arrivals: "closed", schedule: { steady: clients }, clients, pipeline, one_session: false } });
    Object.assign(row.metrics, { rate_per_s: { center: rate, lo: rate * 0.98, hi: rate * 1.02 }, service_ns_p99: { center: 1e9 / rate, lo: null, hi: null } });
    delete row.charts;
    cells.push({ at: place, row: cells.length });
    return row;
  }));
  const load = { arrivals: "closed", schedule: { steady: 1 }, clients: 1, pipeline: 1, one_session: false };
  view.grids = [{ target: "redis", profile: "grid", load, axes, cells }];
  return view;
}

/** Too few blocks to decide anything, with intervals made by `of`. */
function fewBlocks(blocks, of) {
  const view = sessions();
  const doubt = `${blocks} block${blocks === 1 ? "" : "s"}; 3 are needed`;
  view.blocks = blocks;
  for (const row of view.cells) {
    row.blocks = blocks;
    row.metrics = Object.fromEntries(Object.entries(row.metrics).map(([name, value]) => [name, of(value)]));
    for (const list of [row.charts.rate_series, row.charts.by_block]) list.length = blocks;
  }
  for (const comparison of view.comparisons) {
    Object.assign(comparison, { blocks, ratio: of(comparison.ratio), verdict: "undecided", doubt });
  }
  for (const claim of view.claims.filter((c) => c.measured !== null)) {
    Object.assign(claim, { measured: of(claim.measured), verdict: "undecided", note: doubt });
  }
  for (const ranking of view.rankings) {
    ranking.doubt = doubt;
    for (const { by_operation, by_wall } of ranking.rates) {
      for (const rates of [by_operation, by_wall].flatMap(Object.values)) {
        for (const block of Object.keys(rates)) if (Number(block) >= blocks) delete rates[block];
      }
    }
    for (const ranked of ranking.targets.slice(1)) Object.assign(ranked, { ratio: of(ranked.ratio), verdict: "undecided" });
  }
  return view;
}

/** One block: no intervals, nothing decided. */
export function oneBlock() {
  return fewBlocks(1, ({ center }) => ({ center, lo: null, hi: null }));
}

/** Two blocks: no intervals either. */
export function twoBlocks() {
  return fewBlocks(2, ({ center }) => ({ center, lo: null, hi: null }));
}

/** Three very different blocks. */
export function wideBlocks() {
  return fewBlocks(3, ({ center }) => ({ center, lo: center / 23_000, hi: center * 23_000 }));
}

/** Every trial failed: no rows. */
export function nothingMeasured() {
  const view = sessions();
  Object.assign(view, { validity: "invalid", reasons: ["no trial has a complete result"], blocks: 0, answer: { summary: [] } });
  Object.assign(view, { cells: [], comparisons: [], footnotes: [], advice: [], advice_basis: null, rankings: [] });
  return view;
}

/** A name that looks like a tag, and texts with markup, quotes and line separators. */
export const HOSTILE = '<script>globalThis.hit=1</script><img src=x onerror="globalThis.hit=2">';

/** The store `redis` renamed to it, and markup in every text of the page. */
export function hostile() {
  const text = JSON.stringify(caches()).replaceAll('"redis"', JSON.stringify(HOSTILE));
  const view = JSON.parse(text);
  view.title = `</script><b>${HOSTILE}\u2028`;
  view.footnotes[0] = HOSTILE;
  view.claims[0].text = HOSTILE;
  view.conditions.facts[0].value = HOSTILE;
  return view;
}

/** An A/A control: `files-again` repeats `files`. */
export function withControl() {
  const view = sessions();
  const files = view.targets.find((t) => t.name === "files");
  view.targets.splice(1, 0, { ...files, name: "files-again", control_of: "files" });
  for (const row of view.cells.filter((r) => r.target === "files")) {
    const again = structuredClone(row);
    again.target = "files-again";
    // The fastest of all: a control must still not win.
    again.metrics.rate_per_s.center *= 9;
    view.cells.push(again);
    view.comparisons.push({
      ...{ workload: row.workload, operation: row.operation, load: row.load, metric: "rate_per_s" },
      ...{ a: "files", b: "files-again", ratio: { center: 1.004, lo: 0.99, hi: 1.018 }, verdict: "equal", doubt: null },
    });
  }
  return view;
}

const PAGE_PARTS = ["page", "page.open", "page.close"];

/** More profiles and loads than fit on one screen: the fixture, and pages with think time, also on one session. */
export function manyProfiles() {
  const view = withControl();
  view.profiles.push("shop-page");
  view.generation["shop-page"] = "inside";
  for (const one_session of [false, true]) {
    const load = { arrivals: "closed", schedule: { steady: 8 }, clients: 8, pipeline: 1, one_session };
    for (const row of view.cells.filter((r) => r.workload === "steady" && r.operation === "change" && r.load.clients === 8)) {
      for (const operation of PAGE_PARTS) view.cells.push(pageRow(row, operation, load));
    }
    for (const c of view.comparisons.filter((x) => x.workload === "steady" && x.operation === "change" && x.load.clients === 8)) {
      for (const operation of PAGE_PARTS) {
        view.comparisons.push({ ...c, workload: "shop-page", operation, load, metric: "service_ns_mean" });
      }
    }
  }
  return view;
}

function pageRow(row, operation, load) {
  const copy = structuredClone(row);
  Object.assign(copy, { workload: "shop-page", operation, load, compared_by: "service_ns_mean" });
  if (load.one_session) {
    copy.metrics.lock_wait_share = { center: 0.83, lo: 0.82, hi: 0.84 };
    copy.counts.lock_waits = 5120;
    copy.counts.lock_timeouts = copy.target === "mysql" ? 2 : 0;
    copy.charts.lock_wait_curve = copy.charts.time_curve.map(({ q, ns }) => ({ q, ns: ns * 30 }));
  }
  return copy;
}

/** The second block of `files` failed: its lists are shorter than the others. */
export function missingBlock() {
  const view = sessions();
  for (const row of view.cells.filter((r) => r.target === "files")) {
    row.blocks -= 1;
    for (const list of [row.charts.rate_series, row.charts.by_block]) list.splice(1, 1);
  }
  return view;
}

/** A run that is not steady, with reasons. */
export function notSteady() {
  const view = sessions();
  view.validity = "not-steady";
  view.unsteady = ["rates drifted during the measurement", "other processes took the CPU"];
  view.reasons = ["mysql/steady/8: the rate still rose by 6 % in the last half of block 2", "redis/steady/1: two halves differ by 5 %"];
  return view;
}

const bare = (center) => ({ center, lo: null, hi: null });

/** Application caches: effort of operations, sizes of stores, and lost records. */
export function caches() {
  const view = sessions();
  for (const row of view.cells) {
    const isFiles = row.target === "files";
    row.metrics.calls_rate_per_s = { center: 24310, lo: 23900, hi: 24720 };
    if (isFiles) row.metrics.files_per_op = bare(3);
    else Object.assign(row.metrics, { round_trips_per_op: bare(2), commands_per_op: bare(15.27) });
    if (row.operation === "read") {
      row.metrics.hit_ratio = bare(0.9987);
      // A store that is cleaned gradually, with an interval without reads.
      if (!isFiles) row.charts.hit_series = [[1, 0.95, null, 0.8, 0.74]];
    }
    if (row.target === "redis") row.metrics.stale_members = bare(791);
    row.metrics[isFiles ? "store_bytes" : "server_memory_bytes"] = bare((isFiles ? 80 : 1500) * 2 ** 20);
  }
  Object.assign(view.cells.find((row) => row.target === "mysql").counts, { miss: 7, lost: 5, stale: 2 });
  return view;
}

/** Stores, one of them without writes. */
export function unrankable() {
  const view = sessions();
  for (const ranking of view.rankings) {
    const own = ranking.rates.find((rates) => rates.target === "mysql");
    for (const rates of [own.by_operation, own.by_wall]) delete rates.write;
    ranking.targets = ranking.targets.filter((ranked) => ranked.target !== "mysql");
  }
  return view;
}

const SIZES = [2000, 5000, 20000].map((records) => ({ workload: `by-records/${records}x${records / 10}`, records, records_of_tag: 75 }));
const SLOPES = { files: [1.01, 0.97, 1.05, "grows in proportion"], redis: [-0.004, -0.03, 0.02, "does not grow"], mysql: [0.52, 0.41, 0.63, "grows slower"] };

/** A profile with three sizes: two operations, one of them with a growing cost; `mysql` failed at the largest size. */
export function grown() {
  const view = sessions();
  const rows = view.cells.filter((row) => row.load.clients === 8 && ["read", "write"].includes(row.operation));
  const pairs = view.comparisons.filter((c) => c.load.clients === 8 && ["read", "write"].includes(c.operation));
  const of = (made, workload) => ({ ...structuredClone(made), workload });
  const has = (target, size) => target !== "mysql" || size.records < 20000;
  view.profiles = ["by-records"];
  view.generation = { "by-records": "outside" };
  view.cells = SIZES.flatMap((size) => rows.filter((row) => has(row.target, size)).map((row) => of(row, size.workload)));
  view.comparisons = SIZES.flatMap((size) =>
    pairs.filter((c) => has(c.a, size) && has(c.b, size)).map((c) => of(c, size.workload)),
  );
  view.growth = rows.map(({ target, operation, load }) => {
    const [center, lo, hi, verdict] = operation === "write" ? SLOPES[target] : [0, -0.02, 0.02, "does not grow"];
    const cost = (n) => 2e4 * (n / 2000) ** center;
    const points = SIZES.filter((size) => has(target, size)).map((size) => {
      const ns = cost(size.records);
      return { ...size, cost: { center: ns, lo: ns * 0.9, hi: ns * 1.12 } };
    });
    const named = { workload: "by-records", target, operation, load, grows: "records", metric: "service_ns_mean" };
    return { ...named, points, slope: { center, lo, hi }, verdict };
  });
  return view;
}
