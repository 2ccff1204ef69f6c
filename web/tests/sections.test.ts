import { describe, expect, it } from "vitest";
import { marks } from "../src/charts/axes";
import { growthPoints, slopeText, table, words as growthWords } from "../src/charts/growth";
import { tooShort } from "../src/charts/overtime";
import { position, points, waitShares } from "../src/charts/percentiles";
import { happenings, place, room } from "../src/charts/events";
import { drawnParts, goesOn, highest } from "../src/charts/rates";
import { type Context, contextOf } from "../src/context";
import { h } from "../src/dom";
import { claims } from "../src/sections/claims";
import { conditions } from "../src/sections/conditions";
import { head } from "../src/sections/head";
import { commandLine, method } from "../src/sections/method";
import { notes } from "../src/sections/notes";
import { sheet } from "../src/sections/sheet";
import type { Group, OperationGroup } from "../src/groups";
import { look, type Look, looks, symbol, wear } from "../src/theme";
import { parseView } from "../src/parse";
import type { GrowthView, Row, View } from "../src/view";
import { sheetOf } from "./sheets.mjs";
import * as variants from "./variants.mjs";

const SECTIONS = { head, method, sheet: whole, claims: parts(claims), conditions: parts(conditions), notes: parts(notes) };

function whole(context: Context): HTMLElement {
  return h("div", {}, sheet(context));
}

function parts(make: (context: Context) => (HTMLElement | null)[]): (context: Context) => HTMLElement {
  return (context) => h("div", {}, make(context));
}

function viewOf(raw: variants.Raw): View {
  return parseView(JSON.stringify({ ...raw, sheet: sheetOf(raw) })) as View;
}

function build(section: keyof typeof SECTIONS, raw: variants.Raw): HTMLElement {
  return SECTIONS[section](contextOf(viewOf(raw)));
}

function texts(root: HTMLElement, query: string): string[] {
  return [...root.querySelectorAll(query)].map((e) => e.textContent ?? "");
}

describe("the answer", () => {
  it("has the view's sentences, with names and figures highlighted", () => {
    const raw = variants.sessions();
    const built = build("head", raw);
    const found = texts(built, ".answer-text").map((text) => text.replaceAll("\u00a0", " "));
    expect(found).toEqual(raw.answer.summary.map(({ pieces }) => `${pieces.map(({ text }) => text).join("")}.`));
    expect(texts(built, ".answer-load")).toEqual(["steady, 1 client", "steady, 8 clients"]);
    expect(texts(built, ".figure")).toEqual(["1.58× [1.57, 1.59]", "1.40× [1.38, 1.43]"]);
    expect(texts(built, ".hint")).toEqual(["Numbers in brackets are 95 % intervals, or with few blocks the lowest and the highest block."]);
  });

  it("follows a summary if there are many profiles and loads", () => {
    const raw = variants.sessions();
    raw.answer = { summary: [{ place: "", pieces: [{ text: "in short", style: "plain" }] }], places: raw.answer.summary };
    const found = texts(build("head", raw), ".answer-text");
    expect(found).toHaveLength(3);
    expect(found[0]).toBe("in short.");
  });
});

describe("a run of one store", () => {
  it("starts with the store's results at each load, in the view's words", () => {
    const raw = variants.alone();
    const said = texts(build("head", raw), ".answer-text").map((text) => text.replaceAll("\u00a0", " "));
    expect(said).toEqual(raw.answer.summary.map(({ pieces }) => `${pieces.map(({ text }) => text).join("")}.`));
    expect(texts(build("head", raw), ".answer-load")).toEqual(["steady, 1 client", "steady, 8 clients"]);
  });

  it("has no marks above the bars of a single store", () => {
    const raw = variants.alone();
    const [one, many] = [raw, variants.sessions()].map((view) => drawnParts(contextOf(viewOf(view)).groups[0] as Group));
    expect(one).toBe("Bar: geometric mean over blocks; line through its top: 95 % interval; small dots: individual blocks, in order.");
    expect(many).toMatch(/in order; mark above: store, as in the legend\.$/);
    const block = drawnParts(contextOf(viewOf(variants.oneBlock())).groups[0] as Group);
    expect(block).toBe("Bar: measured rate; mark above: store, as in the legend.");
  });

  it("says where to look if nothing was measured", () => {
    const raw = variants.nothingMeasured();
    expect(build("head", raw).textContent).toContain("Nothing was measured. The failures below say why.");
    raw.failures = [];
    expect(build("head", raw).textContent).toContain("Nothing was measured. The table of stores says why.");
  });
});

describe("events", () => {
  const events = () => viewOf(variants.killed()).events ?? [];
  const row = () => viewOf(variants.killed()).cells.find((r) => r.operation === "write") as Row;

  it("of the same kind in quick succession are merged, with their number", () => {
    const found = happenings(events(), row(), 0, 10);
    expect(found.map(({ words }) => words)).toEqual(["killed", "replica lost its primary ×2", "promoted to primary", "named as the primary by a Sentinel", "replica attached"]);
    expect(happenings(events(), row(), 99, 10)).toEqual([]);
    expect(happenings(events(), { ...row(), operation: "write.get" }, 0, 10)).toHaveLength(5);
    expect(happenings(events(), { ...row(), operation: "read" }, 0, 10)).toEqual([]);
  });

  it("have labels that neither overlap nor leave the chart at any width", () => {
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

describe("the sheet", () => {
  const of = (raw: variants.Raw, id: string): HTMLElement => build("sheet", raw).querySelector(`#${id}`) as HTMLElement;

  it("has a table per load, a body per operation and a row per target", () => {
    const built = of(variants.sessions(), "results");
    expect(texts(built, "h3").map((text) => text.slice(0, 15))).toEqual(["steady, 1 clien", "steady, 8 clien"]);
    expect(built.querySelectorAll("table.numbers")).toHaveLength(2);
    expect(texts(built, "table:first-of-type .of-group").slice(0, 3)).toEqual(["write", "read", "change"]);
    expect(built.querySelectorAll("tbody tr:not(.of-group)")).toHaveLength(18);
    expect(texts(built, "tr.best th .target").slice(0, 2)).toEqual(["redis", "redis"]);
    expect(texts(built, "tr[data-target=redis] td")[0]).toBe("8.10 k/s[7.97, 8.23]");
  });

  it("shows verdicts by colour and glyph, and marks the tables of an invalid run", () => {
    const raw = variants.sessions();
    expect(texts(of(raw, "results"), ".chip-good")).toContain("✓fastest");
    raw.validity = "invalid";
    expect(texts(of(raw, "results"), "h3 .chip")).toEqual(["✕INVALID", "✕INVALID"]);
  });

  it("sorts each group of a table by its columns, numbers numerically", () => {
    const built = of(variants.sessions(), "results");
    const first = built.querySelector("tbody") as HTMLElement;
    const order = (): string[] => texts(first, "th[scope=row] .target");
    const press = (i: number): void => (built.querySelectorAll("thead button")[i] as HTMLButtonElement).click();
    expect(order()).toEqual(["files", "redis", "mysql"]);
    press(1);
    expect(order()).toEqual(["redis", "files", "mysql"]);
    expect(built.querySelectorAll("th")[1]?.getAttribute("aria-sort")).toBe("descending");
    press(1);
    expect(order()).toEqual(["mysql", "files", "redis"]);
    press(0);
    expect(order()).toEqual(["files", "mysql", "redis"]);
    expect(built.querySelectorAll("th[aria-sort]")).toHaveLength(1);
    expect(texts(first, "tr")[0]).toBe("write");
  });

  it("starts with the chart of the answer, and has all others below the tables", () => {
    const ids = (raw: variants.Raw): string[] => [...build("sheet", raw).querySelectorAll("section")].map((one) => one.id);
    const figures = (raw: variants.Raw, id: string): string[] => [...of(raw, id).querySelectorAll("figure")].map((one) => one.id);
    expect(ids(variants.sessions())[0]).toBe("chart");
    expect(figures(variants.sessions(), "chart")).toEqual(["chart-rates"]);
    expect(figures(variants.ramps(), "chart")).toEqual(["chart-ramp"]);
    expect(figures(variants.searched(), "chart")).toEqual(["chart-search"]);
    expect(figures(variants.sessions(), "charts")).not.toContain("chart-rates");
    expect(ids(variants.sessions()).indexOf("charts")).toBeGreaterThan(ids(variants.sessions()).indexOf("results"));
  });

  it("renders consecutive sentences as one list, and code as code", () => {
    const advice = of(variants.sessions(), "advice");
    expect(advice.querySelectorAll("ul.prose")).toHaveLength(1);
    expect(texts(advice, "li code")).toContain("advice");
    expect(advice.querySelector("#weights")).not.toBeNull();
  });

  it("has a line per stage and a line per probe", () => {
    expect(of(variants.ramps(), "ramps").querySelectorAll("table:last-of-type tbody tr").length).toBeGreaterThanOrEqual(12);
    expect(texts(of(variants.searched(), "probes"), ".chip-bad")).toContain("✕missed");
  });
});

describe("the head of a resumed run", () => {
  it("says so next to the time of its trials", () => {
    const raw = variants.sessions();
    const took = (): string[] => texts(build("head", raw), ".facts dd").filter((text) => / s|min/.test(text));
    expect(took().join()).not.toContain("resumed");
    raw["resumed"] = true;
    expect(took().join()).toContain(" (resumed)");
  });
});

describe("other sections", () => {
  it("say so if nothing was measured", () => {
    const built = build("head", variants.nothingMeasured());
    expect(built.textContent).toContain("Nothing was measured");
    expect(built.textContent).toContain("no trial has a complete result");
  });

  it("link each mark to its footnote", () => {
    const raw = variants.sessions();
    const marks = [...build("sheet", raw).querySelectorAll("#results .notes a")].map((a) => a.getAttribute("href"));
    const ids = [...build("notes", raw).querySelectorAll("li")].map((li) => `#${li.id}`);
    expect(ids).toEqual(["#note-1", "#note-2", "#note-3"]);
    expect(new Set(marks)).toEqual(new Set(ids));
    expect(build("notes", raw).textContent).toContain("Notes without a reference in a table concern the whole run.");
  });

  it("say what was not steady, and only what is known", () => {
    const banner = (raw: variants.Raw): string => texts(build("head", raw), ".validity p")[0] as string;
    expect(banner(variants.notSteady())).toBe("Rates drifted during the measurement; other processes took the CPU: use the numbers with care.");
    const raw = variants.notSteady();
    raw.unsteady = [];
    expect(banner(raw)).toBe("A steadiness rule was violated: use the numbers with care.");
  });

  it("list the rules with their limits", () => {
    const built = build("method", variants.sessions());
    expect(texts(built, "tbody th")).toEqual(["failed trials", "wrong values", "drift"]);
  });

  it("show claims with their figures, including those not run", () => {
    const raw = variants.sessions();
    if (raw.claims[0]) raw.claims[0].shown = "1.41× [1.39, 1.43]";
    const built = build("claims", raw);
    expect(texts(built, "td[data-label=Measured]")).toEqual(["1.41× [1.39, 1.43]on steady", ...texts(built, "td[data-label=Measured]").slice(1)]);
    expect(texts(built, "td[data-label=Measured]").at(-1)).toBe("–");
    expect(built.querySelector(".hint")?.textContent).toBe("Of 4 statements: 1 confirmed, 1 refuted, 1 undecided and 1 not run.");
    if (raw.claims[0]) raw.claims[0].of_tables = true;
    const hint = "Of 3 statements: 1 refuted, 1 undecided and 1 not run. Of 1 statement about the source's own tables: 1 confirmed.";
    expect(build("claims", raw).querySelector(".hint")?.textContent).toBe(hint);
  });

  it("open the groups of conditions with a warning", () => {
    const built = build("conditions", variants.sessions());
    const open = [...built.querySelectorAll("details")].filter((d) => d.open);
    expect(open.map((d) => d.querySelector(".group-name")?.textContent)).toEqual(["cpu", "memory"]);
  });

  it("quote the command and say where values are generated", () => {
    expect(commandLine(["cachedyno", "run", "a b", "it's", "--set=x=1"])).toBe("cachedyno run 'a b' 'it'\\''s' --set=x=1");
    const built = build("method", variants.manyProfiles());
    expect(built.textContent).toContain("In the profile steady, values are generated outside the timed span");
    expect(built.textContent).toContain("In the profile shop-page, values are generated inside the timed span");
    expect(built.querySelector("a")).toBeNull();
  });

  it("show data as text, even if it looks like HTML", () => {
    for (const section of Object.keys(SECTIONS) as (keyof typeof SECTIONS)[]) {
      const built = build(section, variants.hostile());
      expect(built.querySelectorAll("script, img")).toHaveLength(0);
    }
    expect(build("sheet", variants.hostile()).textContent).toContain(variants.HOSTILE);
  });
});

describe("charts", () => {
  it("draw intervals up to twice their bar", () => {
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

  it("name the stores that finished too soon for a line over time", () => {
    const view = viewOf(variants.sessions());
    const write = contextOf(view).groups[0]?.operations[0] as OperationGroup;
    expect(tooShort(write)).toBe("");
    for (const row of write.rows.filter((row) => row.target !== "mysql")) {
      Object.assign(row.charts as object, { rate_series: row.target === "redis" ? [] : [[4e4], []] });
    }
    expect(tooShort(write)).toMatch(/^No line for files and redis: finished in less than two intervals of [\d.]+ s\.$/);
  });

  it("distinguish eleven targets by lines, and by the marks before their names", () => {
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

  it("draw a cost proportional to the size with slope 1", () => {
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

  it("describe a slope, with its figures in a table", () => {
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

  it("keep the sizes of a profile in order", () => {
    const names = contextOf(viewOf(variants.grown())).groups.map((group) => group.workload);
    expect(names).toEqual(["by-records/2000x200", "by-records/5000x500", "by-records/20000x2000"]);
  });

  it("say how many requests had to wait", () => {
    const rows = viewOf(variants.manyProfiles()).cells.filter((r) => r.operation === "page" && r.load.one_session);
    expect(waitShares(rows)).toMatch(/^Share of requests that had to wait: files 83 %/);
    expect(waitShares(viewOf(variants.sessions()).cells)).toBe("");
  });
});
