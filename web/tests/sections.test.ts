import { describe, expect, it } from "vitest";
import { marks } from "../src/charts/axes";
import { growthPoints, slopeText, table, words as growthWords } from "../src/charts/growth";
import { tooShort } from "../src/charts/overtime";
import { position, points, waitShares } from "../src/charts/percentiles";
import { happenings, place, room } from "../src/charts/events";
import { drawnParts, goesOn, highest } from "../src/charts/rates";
import { contextOf } from "../src/context";
import { advice } from "../src/sections/advice";
import { claims } from "../src/sections/claims";
import { conditions } from "../src/sections/conditions";
import { effort } from "../src/sections/effort";
import { failures } from "../src/sections/failures";
import { head } from "../src/sections/head";
import { commandLine, method } from "../src/sections/method";
import { noise } from "../src/sections/noise";
import { notes } from "../src/sections/notes";
import { problems, results } from "../src/sections/results";
import { targets } from "../src/sections/targets";
import type { Group, OperationGroup } from "../src/standing";
import { look, type Look, looks, symbol, wear } from "../src/theme";
import { parseView } from "../src/parse";
import type { GrowthView, Row, View } from "../src/view";
import * as variants from "./variants.mjs";

const SECTIONS = [head, advice, results, effort, claims, targets, failures, noise, conditions, notes, method];

function viewOf(raw: variants.Raw): View {
  return parseView(JSON.stringify(raw)) as View;
}

function build(section: (typeof SECTIONS)[number], raw: variants.Raw): HTMLElement {
  return section(contextOf(viewOf(raw))) as HTMLElement;
}

function texts(root: HTMLElement, query: string): string[] {
  return [...root.querySelectorAll(query)].map((e) => e.textContent ?? "");
}

describe("the answer", () => {
  it("is the view's, sentence by sentence, with names and figures set apart", () => {
    const raw = variants.sessions();
    const built = build(head, raw);
    const told = texts(built, ".answer-text").map((text) => text.replaceAll("\u00a0", " "));
    expect(told).toEqual(raw.answer.summary.map(({ pieces }) => `${pieces.map(({ text }) => text).join("")}.`));
    expect(texts(built, ".answer-load")).toEqual(["steady, 1 client", "steady, 8 clients"]);
    expect(texts(built, ".figure")).toEqual(["1.58× [1.57, 1.59]", "1.40× [1.38, 1.43]"]);
    expect(texts(built, ".hint")).toEqual(["In brackets: the interval of the number before it."]);
  });

  it("stands below its summary where there are many profiles and loads", () => {
    const raw = variants.sessions();
    raw.answer = { summary: [{ place: "", pieces: [{ text: "in short", style: "plain" }] }], places: raw.answer.summary };
    const told = texts(build(head, raw), ".answer-text");
    expect(told).toHaveLength(3);
    expect(told[0]).toBe("in short.");
  });
});

describe("a run of one store", () => {
  it("begins with what the store came to at each load, in the view's words", () => {
    const raw = variants.alone();
    const said = texts(build(head, raw), ".answer-text").map((text) => text.replaceAll("\u00a0", " "));
    expect(said).toEqual(raw.answer.summary.map(({ pieces }) => `${pieces.map(({ text }) => text).join("")}.`));
    expect(texts(build(head, raw), ".answer-load")).toEqual(["steady, 1 client", "steady, 8 clients"]);
  });

  it("has no column of verdicts, and no mark above bars that only one store has", () => {
    const raw = variants.alone();
    expect(texts(build(results, raw), "thead th:nth-child(3)").every((text) => text.startsWith("p50"))).toBe(true);
    expect(build(results, raw).textContent).not.toContain("compare");
    const [one, many] = [raw, variants.sessions()].map((view) => drawnParts(contextOf(viewOf(view)).groups[0] as Group));
    expect(one).toBe("Bar: geometric mean over blocks; line through its top: 95 % interval; small dots: single blocks, in their order.");
    expect(many).toMatch(/in their order; mark above: its store, as in the legend\.$/);
    const block = drawnParts(contextOf(viewOf(variants.oneBlock())).groups[0] as Group);
    expect(block).toBe("Bar: the rate that was measured; mark above: its store, as in the legend.");
  });

  it("says where to look when nothing was measured", () => {
    const raw = variants.nothingMeasured();
    expect(build(head, raw).textContent).toContain("Nothing was measured. The failures below say why.");
    raw.failures = [];
    expect(build(head, raw).textContent).toContain("Nothing was measured. The table of stores says why.");
  });
});

describe("explanations", () => {
  it("name what the tables of results have, and nothing else", () => {
    const raw = variants.sessions();
    const said = (): string => texts(build(results, raw), "section > .hint")[0] ?? "";
    expect(said()).toContain("Service time is from sending to the complete answer, own CPU is that");
    expect(said()).not.toContain("esponse time");
    for (const row of raw.cells) delete row.metrics["generator_cpu_ns_per_op"];
    expect(said()).not.toContain("own CPU");
    expect(texts(build(results, raw), "thead th").join()).not.toContain("own CPU");
  });

  it("name what the tables of effort have, and nothing else", () => {
    const raw = variants.caches();
    for (const row of raw.cells) for (const metric of ["files_per_op", "calls_rate_per_s", "stale_members"]) delete row.metrics[metric];
    const built = build(effort, raw);
    const names = ["Store and operation", "Hits", "Round trips", "Commands", "Store", "Memory of servers", "On disk"];
    expect(texts(built, "thead th")).toEqual([...names, ...names]);
    expect(built.textContent).not.toMatch(/Calls\/s|Files are|entries of tags/);
    expect(build(effort, variants.caches()).textContent).toMatch(/Calls\/s are .*Round trips are .*Files are .*entries of tags/);
  });
});

describe("events", () => {
  const events = () => viewOf(variants.killed()).events ?? [];
  const row = () => viewOf(variants.killed()).cells.find((r) => r.operation === "write") as Row;

  it("of a kind that follow each other at once are told as one, with their number", () => {
    const told = happenings(events(), row(), 0, 10);
    expect(told.map(({ words }) => words)).toEqual(["killed", "replica lost its primary ×2", "promoted to primary", "named as the primary by a Sentinel", "replica attached"]);
    expect(happenings(events(), row(), 99, 10)).toEqual([]);
    expect(happenings(events(), { ...row(), operation: "write.get" }, 0, 10)).toHaveLength(5);
    expect(happenings(events(), { ...row(), operation: "read" }, 0, 10)).toEqual([]);
  });

  it("have words that neither lie on each other nor leave the chart, however narrow", () => {
    for (const width of [270, 1000]) {
      const lines = happenings(events(), row(), 0, 10).map(({ at_s, words }) => ({ x: 60 + (at_s / 10) * width, words }));
      const placed = place(lines, 60, 60 + width);
      for (const [i, a] of placed.entries()) {
        expect(a.from).toBeGreaterThanOrEqual(60);
        expect(a.from + a.width).toBeLessThanOrEqual(60 + width);
        for (const b of placed.slice(i + 1)) expect(a.row !== b.row || a.from + a.width < b.from || b.from + b.width < a.from).toBe(true);
      }
      expect(placed[0]?.row).toBe(0);
      expect(placed[1]?.row).toBe(1);
    }
    const entry = { name: "redis", look: look(0, "light", false) };
    expect(room([{ entry, happened: happenings(events(), row(), 0, 10) }], 10, 360)).toBeGreaterThan(30);
    expect(room([], 10, 360)).toBe(0);
  });
});

describe("results", () => {
  it("has a table a load, a body an operation and a row a target", () => {
    const built = build(results, variants.sessions());
    expect(texts(built, "h3")).toEqual(["1 client", "8 clients"]);
    expect(built.querySelectorAll("table")).toHaveLength(2);
    expect(built.querySelectorAll("tbody")).toHaveLength(8);
    expect(built.querySelectorAll("tbody tr:not(.operation)")).toHaveLength(24);
  });

  it("shows rate, interval, times and verdict of a row", () => {
    const raw = variants.sessions();
    const row = raw.cells[0] as Row;
    row.metrics["rate_per_s"] = { center: 21616.4, lo: 21267, hi: 21971.2 };
    row.metrics["service_ns_p99"] = { center: 89_480, lo: 88_000, hi: 91_000 };
    delete row.metrics["service_ns_p999"];
    const cells = texts(build(results, raw), "tbody tr:nth-child(2) > *");
    expect(cells[0]).toBe("files1ext4 on NVMe");
    expect(cells[1]).toBe("21,61621,267–21,971");
    expect(cells[2]).toBe("✓fastest");
    expect(cells[4]).toBe("89.5 µs");
    expect(cells[5]).toBe("–");
  });

  it("has a column of problems only where there are some", () => {
    const built = build(results, variants.sessions());
    const [one, eight] = [...built.querySelectorAll("table")];
    expect(one?.querySelector(".problems")).toBeNull();
    expect(texts(eight as HTMLElement, ".problems .bad")).toEqual(["3 misses"]);
    const counts = { ...(variants.sessions().cells[0] as Row).counts, error: 1, wrong: 2, lock_timeouts: 1200 };
    expect(problems(counts)).toEqual(["1 error", "2 wrong values", "1,200 locks given up"]);
    expect(problems({ ...counts, miss: 7, lost: 5, stale: 1, error: 0, wrong: 0, lock_timeouts: 0 })).toEqual([
      "7 misses", "5 of them lost", "1 stale value",
    ]);
  });

  it("never calls a store fastest that is only ahead", () => {
    const built = build(results, variants.oneBlock());
    expect(texts(built, ".chip")).not.toContain("✓fastest");
    expect(texts(built, ".chip")).not.toContain("highest rate");
    expect(texts(built, ".none").filter((text) => text === "too few blocks to rank")).toHaveLength(8);
    expect(texts(built, ".rate .sub").every((text) => text === "no interval")).toBe(true);
  });

  it("tells the data of a profile beside its tables", () => {
    const raw = variants.caches();
    const workload = (raw.cells[0] as Row).workload;
    const told = "3,000 records of 1 to 1,024 bytes, each with 0 to 15 of 300 tags";
    expect(texts(build(results, raw), "h3 + .hint")).toEqual([]);
    raw["data"] = { [workload]: told };
    expect(texts(build(results, raw), "h3 + .hint")).toEqual([told, told]);
  });

  it("marks every table of a run that must not be used", () => {
    const raw = variants.sessions();
    raw.validity = "invalid";
    expect(texts(build(results, raw), "h3 .chip")).toEqual(["✕INVALID", "✕INVALID"]);
  });
});

describe("the head of a resumed run", () => {
  it("says so beside the time of its trials", () => {
    const raw = variants.sessions();
    const took = (): string[] => texts(build(head, raw), ".facts dd").filter((text) => / s|min/.test(text));
    expect(took().join()).not.toContain("resumed");
    raw["resumed"] = true;
    expect(took().join()).toContain(" (resumed)");
  });
});

describe("effort", () => {
  it("has a row an operation and store, and what the stores took", () => {
    const built = build(effort, variants.caches());
    expect(texts(built, "h3")).toEqual(["1 client", "8 clients"]);
    const [operations, sizes] = [...built.querySelectorAll<HTMLElement>("table")] as [HTMLElement, HTMLElement, ...HTMLElement[]];
    expect(texts(operations, "tbody tr:first-child th").slice(0, 2)).toEqual(["fileswrite", "filesread"]);
    const read = [...operations.querySelectorAll("tbody")][1] as HTMLElement;
    expect(texts(read, "tr:nth-child(1) td")).toEqual(["24,310", "99.9 %", "–", "–", "3.00"]);
    expect(texts(read, "tr:nth-child(2) td")).toEqual(["24,310", "99.9 %", "2.00", "15.3", "–"]);
    expect(texts(sizes, "tbody tr")).toEqual(["files–80 MiB–", "redis1.46 GiB–791", "mysql1.46 GiB––"]);
  });

  it("prints stale members as means of a count", () => {
    const raw = variants.caches();
    const [redis, mysql] = ["redis", "mysql"].map((name) => raw.cells.filter((row) => row.target === name));
    for (const row of redis ?? []) row.metrics["stale_members"] = { center: 7, lo: null, hi: null };
    for (const row of mysql ?? []) row.metrics["stale_members"] = { center: 41.2, lo: null, hi: null };
    const built = build(effort, raw);
    expect(texts(built, "td[data-label=\"Stale members\"]").slice(1, 3)).toEqual(["7", "41"]);
    expect(built.textContent).toContain("(means over blocks)");
  });

  it("calls no share of hits 100 % beside a miss", () => {
    const raw = variants.caches();
    for (const row of raw.cells.filter((r) => r.operation === "read")) {
      row.metrics["hit_ratio"] = { center: row.target === "files" ? 1 : 0.999_999, lo: null, hi: null };
    }
    const hits = texts(build(effort, raw), "tbody:nth-of-type(2) td[data-label=Hits]");
    expect(hits.slice(0, 3)).toEqual(["100 %", "<100 %", "<100 %"]);
  });

  it("leaves out a whole phase whose operations have rows", () => {
    const raw = variants.caches();
    for (const row of raw.cells.filter((r) => r.operation === "read")) row.operation = "mixed.read";
    const said = texts(build(effort, raw), "th .sub");
    expect(said).toContain("read within mixed");
    expect(said).not.toContain("mixed");
  });
});

describe("other sections", () => {
  it("leave out what a view does not have", () => {
    const context = contextOf(viewOf(variants.nothingMeasured()));
    expect(advice(context)).toBeNull();
    expect(effort(context)).toBeNull();
    expect(effort(contextOf(viewOf(variants.sessions())))).toBeNull();
    expect(results(context)).toBeNull();
    expect(notes(context)).toBeNull();
    expect(head(context).textContent).toContain("Nothing was measured");
    expect(head(context).textContent).toContain("no trial has a complete result");
  });

  it("link each mark to its footnote", () => {
    const raw = variants.sessions();
    const marks = [...build(results, raw).querySelectorAll(".notes a")].map((a) => a.getAttribute("href"));
    const ids = [...build(notes, raw).querySelectorAll("li")].map((li) => `#${li.id}`);
    expect(ids).toEqual(["#note-1", "#note-2", "#note-3"]);
    expect(new Set(marks)).toEqual(new Set(ids.slice(0, 2)));
    expect(build(notes, raw).textContent).toContain("Notes that no table points to concern the whole run.");
  });

  it("say what was not steady, and no more than is known", () => {
    const banner = (raw: variants.Raw): string => texts(build(head, raw), ".validity p")[0] as string;
    expect(banner(variants.notSteady())).toBe("Rates drifted while they were measured; other processes took the CPU: use the numbers with care.");
    const raw = variants.notSteady();
    raw.unsteady = [];
    expect(banner(raw)).toBe("A rule about steadiness does not hold: use the numbers with care.");
  });

  it("show the last words of a server with the failure that has them", () => {
    const raw = variants.sessions();
    const [first] = raw.failures as [View["failures"][number]];
    raw.failures = [{ ...first, log: "a | b" }, { ...first, block: 3, log: null }];
    expect(texts(build(failures, raw), ".log")).toEqual(["its log: a | b"]);
  });

  it("put a mark that every row carries at the table's heading, once", () => {
    const raw = variants.sessions();
    for (const row of raw.cells) row.footnotes = row.load.clients === 8 ? [1] : [];
    const built = build(results, raw);
    expect(texts(built, "h3")).toEqual(["1 client", "8 clients2"]);
    expect(built.querySelectorAll("table .notes")).toHaveLength(0);
  });

  it("list the rules with their limits", () => {
    const built = build(method, variants.sessions());
    expect(texts(built, "tbody th")).toEqual(["failed trials", "wrong values", "drift"]);
  });

  it("show claims with their figures, also those not run", () => {
    const raw = variants.sessions();
    if (raw.claims[0]) raw.claims[0].measured = { center: 1.408, lo: 1.39, hi: 1.43 };
    const built = build(claims, raw);
    expect(texts(built, "td[data-label=Measured]")).toEqual(["1.41× (1.39–1.43)on steady", ...texts(built, "td[data-label=Measured]").slice(1)]);
    expect(texts(built, "td[data-label=Measured]").at(-1)).toBe("–");
    expect(built.querySelector(".hint")?.textContent).toBe("Of 4 statements: 1 confirmed, 1 refuted, 1 undecided and 1 not run.");
  });

  it("say why a target was not run and what a control is", () => {
    const built = build(targets, variants.withControl());
    expect(built.textContent).toContain("nobody listens at 10.0.0.7:6379");
    expect(built.textContent).toContain("the same store as files, measured again");
  });

  it("open the groups of conditions that carry a warning", () => {
    const built = build(conditions, variants.sessions());
    const open = [...built.querySelectorAll("details")].filter((d) => d.open);
    expect(open.map((d) => d.querySelector(".group-name")?.textContent)).toEqual(["cpu", "memory"]);
  });

  it("quote the command and say where values are drawn", () => {
    expect(commandLine(["cachedyno", "run", "a b", "it's", "--set=x=1"])).toBe("cachedyno run 'a b' 'it'\\''s' --set=x=1");
    const built = build(method, variants.manyProfiles());
    expect(built.textContent).toContain("In the profile steady, values are drawn before the clock starts");
    expect(built.textContent).toContain("In the profile shop-page, values are drawn while the clock runs");
    expect(built.querySelector("a")).toBeNull();
  });

  it("show data as text, whatever it looks like", () => {
    for (const section of SECTIONS) {
      const built = build(section, variants.hostile());
      expect(built.querySelectorAll("script, img")).toHaveLength(0);
    }
    expect(build(results, variants.hostile()).textContent).toContain(variants.HOSTILE);
  });
});

describe("charts", () => {
  it("draw no interval beyond twice its bar", () => {
    const row = variants.sessions().cells[0] as Row;
    const blocks = [900, 1000, 1100];
    row.charts = { ...(row.charts as NonNullable<Row["charts"]>), by_block: blocks.map((rate, block) => ({ block, rate_per_s: rate, ok: 1 })) };
    const drawn = (hi: number | null): [number, boolean] => {
      row.metrics["rate_per_s"] = { center: 1000, lo: hi === null ? null : 1, hi };
      return [highest(row), goesOn(row)];
    };
    expect(drawn(700e6)).toEqual([2200, true]);
    expect(drawn(2200)).toEqual([2200, false]);
    expect(drawn(1200)).toEqual([1200, false]);
    expect(drawn(null)).toEqual([1100, false]);
  });

  it("put a tenfold rarer operation one step further right", () => {
    expect([0, 0.9, 0.99, 0.999].map((q) => Math.round(position(q) * 1e9) / 1e9)).toEqual([0, 1, 2, 3]);
    const drawn = points([{ q: 0.5, ns: 1000 }, { q: 0.9, ns: 0 }, { q: 1, ns: 9 }]);
    expect(drawn).toHaveLength(1);
    expect(drawn[0]?.[1]).toBeCloseTo(3);
  });

  it("mark an axis around its data", () => {
    expect(marks(4.5, 5.1).map((m) => Math.round(10 ** m))).toEqual([20000, 50000, 100000, 200000]);
    expect(marks(3, 6).map((m) => Math.round(10 ** m))).toEqual([1e3, 1e4, 1e5, 1e6]);
  });

  it("give a target one colour, a control that of what it repeats", () => {
    const view = viewOf(variants.withControl());
    for (const theme of ["light", "dark"] as const) {
      const found = looks(view, theme);
      expect(found.get("files-again")?.color).toBe(found.get("files")?.color);
      expect(found.get("files-again")?.hollow).toBe(true);
      const own = ["files", "redis", "mysql"].map((name) => found.get(name)?.color);
      expect(new Set(own).size).toBe(3);
    }
  });

  it("name the stores that were done too soon for a line over time", () => {
    const view = viewOf(variants.sessions());
    const write = contextOf(view).groups[0]?.operations[0] as OperationGroup;
    expect(tooShort(write)).toBe("");
    for (const row of write.rows.filter((row) => row.target !== "mysql")) {
      Object.assign(row.charts as object, { rate_series: row.target === "redis" ? [] : [[4e4], []] });
    }
    expect(tooShort(write)).toMatch(/^Without a line: files and redis, done in less than two intervals of [\d.]+ s\.$/);
  });

  it("tell eleven targets apart in lines, and by the marks before their names", () => {
    const all = Array.from({ length: 11 }, (_, i) => look(i, "dark", i === 10));
    const drawn = (one: Look): string => {
      const element = document.createElement("span");
      wear(element, one);
      return `${element.style.getPropertyValue("--target")} ${element.style.getPropertyValue("--mark")}`;
    };
    for (const name of [drawn, (one: Look) => `${one.color} ${symbol(one)}`, ({ color, dash }: Look) => `${color} ${dash}`]) {
      expect(new Set(all.map(name)).size).toBe(11);
    }
    expect([drawn(all[8] as Look).slice(0, 7), drawn(all[0] as Look).slice(0, 7)]).toEqual([all[0]?.color, all[0]?.color]);
  });

  it("draw a cost in proportion to the size with slope 1", () => {
    const [files] = (variants.grown().growth ?? []).filter((c) => c.operation === "write" && c.target === "files");
    const drawn = growthPoints(files as GrowthView);
    expect(drawn).toHaveLength(3);
    const [first, , last] = drawn as number[][] as [number[], number[], number[]];
    const rise = (at: number): number => (last[at] ?? 0) - (first[at] ?? 0);
    expect(rise(1) / rise(0)).toBeCloseTo(1.01);
    expect(10 ** ((first[2] ?? 0) - (first[1] ?? 0))).toBeCloseTo(0.9);
    expect(10 ** ((first[3] ?? 0) - (first[1] ?? 0))).toBeCloseTo(1.12);
    const bare = { ...(files as GrowthView), points: [{ workload: "w", records: 0, records_of_tag: 5, cost: { center: 9, lo: null, hi: null } }] };
    expect(growthPoints(bare)).toEqual([]);
    expect(growthPoints({ ...bare, grows: "records_of_tag" })).toEqual([[Math.log10(5), Math.log10(9), Math.log10(9), Math.log10(9)]]);
  });

  it("tell what a slope says, with its figures in a table", () => {
    const raw = variants.grown();
    const curves = (raw.growth ?? []).filter((c) => c.operation === "write");
    const built = table({ curves, grows: "records" });
    expect(texts(built, "tbody th")).toEqual(["files", "redis", "mysql"]);
    expect(texts(built, "td[data-label=Slope]")).toEqual(["1.01 (0.97 to 1.05)", "0.00 (-0.03 to 0.02)", "0.52 (0.41 to 0.63)"]);
    expect(texts(built, "td:last-child")).toEqual([
      "grows in proportion to the records",
      "does not grow with the records",
      "grows slower than the records",
    ]);
    expect(texts(built, "tr:first-child td:nth-child(2) > div > div")[0]).toBe("2,000: 20.0 µs");
    expect(texts(built, "tr:nth-child(3) td:nth-child(2) > div > div")).toHaveLength(2);
    const alone = { ...(curves[0] as GrowthView), slope: null, verdict: "undecided" };
    expect([slopeText(alone), growthWords(alone)]).toEqual(["–", "undecided"]);
    const one = { ...alone, slope: { center: 0.5, lo: null, hi: null }, grows: "records_of_tag" as const, verdict: "grows faster" };
    expect([slopeText(one), growthWords(one)]).toEqual(["0.50", "grows faster than the records of a tag"]);
  });

  it("keep the sizes of a profile in their order", () => {
    const names = contextOf(viewOf(variants.grown())).groups.map((group) => group.workload);
    expect(names).toEqual(["by-records/2000x200", "by-records/5000x500", "by-records/20000x2000"]);
  });

  it("say how many requests had to wait", () => {
    const rows = viewOf(variants.manyProfiles()).cells.filter((r) => r.operation === "page" && r.load.one_session);
    expect(waitShares(rows)).toMatch(/^Share of requests that had to wait: files 83 %/);
    expect(waitShares(viewOf(variants.sessions()).cells)).toBe("");
  });
});
