import { describe, expect, it } from "vitest";
import { answer, words } from "../src/answer";
import { against, groups, inverse } from "../src/standing";
import * as format from "../src/format";
import { parseView } from "../src/parse";
import type { View } from "../src/view";
import * as variants from "./variants.mjs";

function viewOf(raw: variants.Raw): View {
  return parseView(JSON.stringify(raw)) as View;
}

function sentences(view: View): string[] {
  return groups(view).map((group) => words(answer(group, view.equivalence_zone)));
}

describe("the answer", () => {
  it("names the fastest with ratio and interval, and what is undecided", () => {
    const [one, eight] = sentences(viewOf(variants.sessions()));
    expect(one).toMatch(/^files is fastest at writing \(1\.\d\d× redis, 1\.\d\d–1\.\d\d\), reading \(.*\) and the mix/);
    expect(one).toMatch(/; undecided: changing between redis and files \(1\.\d\d×, \d\.\d\d–1\.\d\d\)$/);
    expect(eight).toMatch(/^redis is fastest at writing .*; files at reading \(1\.\d\d× redis, 1\.\d\d–1\.\d\d\)$/);
  });

  it("turns a comparison round when the faster target is the second", () => {
    const view = viewOf(variants.sessions());
    const eight = groups(view)[1];
    const write = eight?.operations.find((op) => op.operation === "write");
    const raw = view.comparisons.find((c) => c.operation === "write" && c.load.clients === 8 && c.a === "files");
    expect(raw?.verdict).toBe("slower");
    expect(write?.best?.target).toBe("redis");
    expect(write?.standings.get("files")).toEqual({ verdict: "slower", ratio: raw?.ratio, doubt: null });
    const flipped = against(view.comparisons.filter((c) => c === raw), "redis", "files");
    expect(flipped?.verdict).toBe("faster");
    expect(flipped?.ratio.center).toBeCloseTo(1 / (raw?.ratio.center ?? 0));
    expect(flipped?.ratio.lo).toBeCloseTo(1 / (raw?.ratio.hi ?? 0));
  });

  it("names as best the one that no ratio puts behind another, whatever the rates of all blocks", () => {
    const view = viewOf(variants.sessions());
    const reads = (): ReturnType<typeof groups>[0]["operations"][0] | undefined =>
      groups(view)[1]?.operations.find((op) => op.operation === "read");
    expect(reads()?.best?.target).toBe("files");
    const compared = view.comparisons.filter((c) => c.operation === "read" && c.load.clients === 8);
    const own = compared.find((c) => [c.a, c.b].sort().join() === "files,redis");
    if (own === undefined) throw new Error("files and redis are not compared");
    own.ratio = { center: own.a === "files" ? 0.9 : 1.1, lo: null, hi: null };
    own.verdict = "undecided";
    expect(reads()?.best?.target).toBe("redis");
    expect(reads()?.standings.get("files")?.ratio?.center).toBeCloseTo(0.9, 1);
    const cycle = ["files,redis", "redis,mysql", "mysql,files"];
    for (const c of compared) c.ratio.center = cycle.includes(`${c.a},${c.b}`) ? 1.1 : 0.9;
    expect(reads()?.best, "each is behind another").toBeNull();
  });

  it("says equal only when every tied target is equal", () => {
    const view = viewOf(variants.sessions());
    const change = view.comparisons.filter((c) => c.operation === "change" && c.load.clients === 1);
    for (const c of change) if (c.a === "files" && c.b === "redis") c.verdict = "equal";
    expect(sentences(view)[0]).toContain("; redis and files are equal within ±3 % at changing (");
    for (const c of change) if (c.b === "mysql") c.verdict = "undecided";
    expect(sentences(view)[0]).toContain("undecided: changing between redis, files and mysql");
  });

  it("says why what its interval would decide is undecided", () => {
    const view = viewOf(variants.sessions());
    const doubt = "clear alone but not among 27 comparisons: more blocks would tell";
    for (const c of view.comparisons.filter((c) => c.operation === "change" && c.load.clients === 1)) {
      if (c.a !== "files" || c.b !== "redis") continue;
      Object.assign(c, { verdict: "undecided", doubt, ratio: { center: 0.004, lo: 0.001, hi: 0.01 } });
    }
    expect(sentences(view)[0]).toMatch(/; undecided: changing between redis and files \(250×, 100–1,?000×?\), clear alone but not among 27/);
  });

  it("decides nothing from one block", () => {
    const [one] = sentences(viewOf(variants.oneBlock()));
    expect(one).toMatch(/^undecided: writing between files, redis and mysql \(1\.\d\d×\); reading between/);
    expect(one).not.toContain("fastest");
  });

  it("decides nothing from two blocks", () => {
    const [one] = sentences(viewOf(variants.twoBlocks()));
    expect(one).toMatch(/^undecided: writing between files, redis and mysql \(1\.\d\d×\); reading between/);
    expect(one).not.toContain("fastest");
  });

  it("does not let a control win, and keeps it out of the sentence", () => {
    const view = viewOf(variants.withControl());
    const [one] = sentences(view);
    expect(one).toContain("files is fastest at writing");
    expect(one).not.toContain("files-again");
    const write = groups(view)[0]?.operations[0];
    expect(write?.rows.map((row) => row.target)).toEqual(["files", "files-again", "redis", "mysql"]);
    expect(write?.standings.get("files-again")?.verdict).toBe("equal");
  });

  it("says of an operation that one store alone has that it was measured there", () => {
    const view = viewOf(variants.sessions());
    view.cells = view.cells.filter((row) => row.target === "redis" || row.operation !== "change");
    expect(sentences(view)[0]).toMatch(/; changing was measured on redis alone$/);
  });

  it("ranks pages by their time where the comparison says so, and leaves parts to the table", () => {
    const view = viewOf(variants.manyProfiles());
    const page = groups(view).find((g) => g.workload === "shop-page");
    const whole = page?.operations.find((op) => op.operation === "page");
    const mean = (name: string): number => whole?.rows.find((r) => r.target === name)?.metrics["service_ns_mean"]?.center ?? 0;
    expect(whole?.metric).toBe("service_ns_mean");
    expect(whole?.best?.target).toBe("redis");
    expect(mean("redis")).toBeLessThan(mean("files"));
    const said = words(answer(page as NonNullable<typeof page>, 0.03));
    expect(said).toMatch(/^redis is fastest at a whole page \(/);
    expect(said).not.toContain("page.open");
  });
});

describe("groups", () => {
  it("keep the operations in the order in which they were measured, as the terminal has them", () => {
    const view = viewOf(variants.sessions());
    const measured = ["read", "mixed", "clean", "write"];
    view.cells = measured.flatMap((operation, i) =>
      view.cells.filter((row) => row.operation === ["write", "read", "change", "mixed"][i]).map((row) => ({ ...row, operation })),
    );
    expect(groups(view).map((g) => g.operations.map((op) => op.operation))).toEqual([measured, measured]);
  });

  it("follow profiles, then one session last, then clients", () => {
    const keys = groups(viewOf(variants.manyProfiles())).map((g) => `${g.workload} ${format.load(g.load)}`);
    expect(keys).toEqual(["steady 1 client", "steady 8 clients", "shop-page 8 clients", "shop-page 8 clients on one session"]);
  });

  it("keep an open interval open when a ratio is turned", () => {
    expect(inverse({ center: 2, lo: null, hi: null })).toEqual({ center: 0.5, lo: null, hi: null });
    expect(inverse({ center: 2, lo: 1, hi: 4 })).toEqual({ center: 0.5, lo: 0.25, hi: 1 });
  });
});
