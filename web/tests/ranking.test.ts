import { describe, expect, it } from "vitest";
import { critical, geometricMean, normalTail, splitMix64 } from "../src/interval";
import { rank, type Ranked, standing } from "../src/ranking";
import type { Value } from "../src/view";
import { type Case, cases } from "./orders.mjs";

function expectSame(found: Value | null, expected: Value | null): void {
  expect(found === null).toBe(expected === null);
  for (const end of ["center", "lo", "hi"] as const) {
    const [a, b] = [found?.[end] ?? null, expected?.[end] ?? null];
    if (a === null || b === null) expect(a).toBe(b);
    else expect(Math.abs(a / b - 1), `${end}: ${a} for ${b}`).toBeLessThan(1e-7);
  }
}

describe("the order by weights", () => {
  for (const { blocks, rates, orders } of cases) {
    for (const { weights, order } of orders) {
      it(`of ${blocks} blocks by ${JSON.stringify(weights)} matches the program's`, () => {
        const found = rank(weights, rates);
        expect(found.map((r) => r.target)).toEqual(order.map((r) => r.target));
        found.forEach((ranked, i) => expectSame(ranked.ratio, order[i]?.ratio ?? null));
      });
    }
  }

  it("does not change if all weights are scaled", () => {
    const { rates } = cases[2] as Case;
    const [small, large] = [1, 1000].map((n) => rank({ read: n, change: 2 * n, write: 0 }, rates)) as [Ranked[], Ranked[]];
    expect(small).toHaveLength(4);
    small.forEach((ranked, i) => {
      expect(ranked.target).toBe(large[i]?.target);
      expectSame(ranked.ratio, large[i]?.ratio ?? null);
    });
  });

  it("is empty if every weight is 0", () => {
    expect(rank({ read: 0, write: 0 }, (cases[2] as Case).rates)).toEqual([]);
    expect(rank({}, (cases[2] as Case).rates)).toEqual([]);
  });

  it("calls a store slower or equal only if the whole interval agrees", () => {
    const rules = { equivalence_zone: 0.03, fewest_blocks: 3 };
    const value = (lo: number | null, hi: number | null): Value => ({ center: 0.9, lo, hi });
    const of = (lo: number | null, hi: number | null, blocks = 3): string =>
      standing({ ratio: value(lo, hi), byWall: value(lo, hi), blocks }, rules);
    expect([of(0.8, 0.95), of(0.8, 0.98), of(0.975, 1.02), of(null, null)]).toEqual(["slower", "undecided", "equal", "undecided"]);
    expect([of(0.8, 0.95, 2), of(0.975, 1.02, 2)]).toEqual(["undecided", "undecided"]);
    expect(standing({ ratio: null, byWall: null, blocks: 3 }, rules)).toBe("undecided");
    const differ = { ratio: value(0.8, 0.95), byWall: value(0.8, 0.98), blocks: 3 };
    expect(standing(differ, rules), "the clients' own work decides nothing").toBe("undecided");
  });
});

describe("intervals", () => {
  it("match the tables of Student's critical values", () => {
    const table = [[1, 12.7062], [2, 4.30265], [4, 2.77645], [5, 2.57058], [7, 2.36462], [29, 2.04523]] as const;
    for (const [freedom, expected] of table) expect(Math.abs(critical(freedom) / expected - 1)).toBeLessThan(1e-5);
  });

  it("match the tables of the normal distribution", () => {
    expect(normalTail(1.959964)).toBeCloseTo(0.025, 7);
    expect(normalTail(0)).toBe(0.5);
    expect(normalTail(18)).toBeLessThan(1e-12);
  });

  it("match the published sequence", () => {
    const next = splitMix64([0, 1_234_567]);
    const got = [0, 1, 2].map(() => next()).map(([high, low]) => (BigInt(high) << 32n) | BigInt(low));
    expect(got).toEqual([6457827717110365317n, 3203168211198807973n, 9817491932198370423n]);
  });

  it("have no width if all blocks are equal, and do not exist below two", () => {
    const same = Math.log(0.5);
    expect(geometricMean([same, same, same])).toEqual({ center: 0.5, lo: 0.5, hi: 0.5 });
    expect(geometricMean([same])).toEqual({ center: 0.5, lo: null, hi: null });
  });
});
