import { describe, expect, it } from "vitest";
import { against, groups, inverse } from "../src/standing";
import * as format from "../src/format";
import { parseView } from "../src/parse";
import type { View } from "../src/view";
import * as variants from "./variants.mjs";

function viewOf(raw: variants.Raw): View {
  return parseView(JSON.stringify(raw)) as View;
}

describe("standings", () => {
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

  it("does not let a control win", () => {
    const view = viewOf(variants.withControl());
    const write = groups(view)[0]?.operations[0];
    expect(write?.rows.map((row) => row.target)).toEqual(["files", "files-again", "redis", "mysql"]);
    expect(write?.standings.get("files-again")?.verdict).toBe("equal");
  });

  it("ranks pages by their time where the comparison says so", () => {
    const view = viewOf(variants.manyProfiles());
    const page = groups(view).find((g) => g.workload === "shop-page");
    const whole = page?.operations.find((op) => op.operation === "page");
    const mean = (name: string): number => whole?.rows.find((r) => r.target === name)?.metrics["service_ns_mean"]?.center ?? 0;
    expect(whole?.metric).toBe("service_ns_mean");
    expect(whole?.best?.target).toBe("redis");
    expect(mean("redis")).toBeLessThan(mean("files"));
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
