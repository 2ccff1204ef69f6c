import { describe, expect, it } from "vitest";
import * as format from "../src/format";
import type { Load } from "../src/view";

describe("numbers", () => {
  it("keeps three significant digits", () => {
    expect([0, 0.04119, 4.123, 41.26, 412.4, 99.96, 9.996, 0.9996].map(format.threeDigits)).toEqual([
      "0", "0.0412", "4.12", "41.3", "412", "100", "10.0", "1.00",
    ]);
    expect(format.threeDigits(Number.NaN)).toBe("–");
  });

  it("rounds means of counts to integers from 10 up", () => {
    expect([0, 1 / 3, 7, 9.97, 41.2, 12345.6].map(format.meanCount)).toEqual(["0", "0.33", "7", "10", "41", "12,346"]);
  });

  it("rounds rates to integers from 100 up", () => {
    expect([48230.4, 99.96, 12.345].map(format.rate)).toEqual(["48,230", "100", "12.3"]);
    expect([0, 950, 20000, 1.5e6, 2e9].map(format.rateShort)).toEqual(["0", "950", "20k", "1.5M", "2G"]);
  });

  it("chooses the unit of a time after rounding", () => {
    expect([0, 18, 999.6, 18_340, 999_600, 1_420_000, 2.5e9].map(format.time)).toEqual([
      "0 ns", "18.0 ns", "1.00 µs", "18.3 µs", "1.00 ms", "1.42 ms", "2.50 s",
    ]);
    expect([200, 50_000, 1e6, 2e9].map(format.timeShort)).toEqual(["200 ns", "50 µs", "1 ms", "2 s"]);
  });

  it("prints ratios with two decimals, with more digits only where they are needed", () => {
    expect([1.4142, 0.213, 0.0213, 12.34, 1].map(format.ratio)).toEqual(["1.41×", "0.21×", "0.0213×", "12.3×", "1.00×"]);
  });

  it("prints sizes in binary units", () => {
    expect([0, 512, 1536, 80 * 2 ** 20, 1.4648 * 2 ** 30].map(format.bytes)).toEqual([
      "0 B", "512 B", "1.5 KiB", "80 MiB", "1.46 GiB",
    ]);
  });

  it("prints quantiles and shares without rounding noise", () => {
    expect([0.5, 0.99, 0.999, 0.9999].map(format.quantile)).toEqual(["50 %", "99 %", "99.9 %", "99.99 %"]);
    expect([0.03, 0.8345, 0].map(format.percent)).toEqual(["3 %", "83.5 %", "0 %"]);
    expect([1, 0.99999, 0.9994, 0.5].map(format.shareOfAll)).toEqual(["100 %", "<100 %", "99.9 %", "50 %"]);
  });
});

describe("intervals", () => {
  it("formats both bounds alike", () => {
    expect(format.interval({ center: 48230, lo: 47610.2, hi: 48870 }, format.rate)).toBe("47,610–48,870");
    expect(format.ratioInterval({ center: 1.41, lo: 1.36, hi: 1.47 })).toBe("1.36–1.47");
  });

  it("has three digits far from the center, and marks bounds beyond the limit", () => {
    const of = (center: number, lo: number, hi: number): string => format.interval({ center, lo, hi }, format.rate);
    expect(of(30_412, 2_345.6, 348_129)).toBe("2,350–348,000");
    expect(of(30_412, 1, 700_123_456)).toBe("<304–>3,040,000");
    expect(format.ratioInterval({ center: 0.34, lo: 1e-4, hi: 48_129 })).toBe("<0.00340–>34.0");
    expect(format.ratioInterval({ center: 123, lo: 1.3, hi: 12_129 })).toBe("1.30–12,100");
  });

  it("is empty with too few blocks", () => {
    expect(format.interval({ center: 1, lo: null, hi: null }, format.rate)).toBe("");
    expect(format.ratioInterval({ center: 1.41, lo: null, hi: null })).toBe("");
  });
});

describe("words", () => {
  it("names loads", () => {
    const closed = (clients: number): Load => ({ arrivals: "closed", schedule: { steady: clients }, clients, pipeline: 1, one_session: false });
    expect(format.load(closed(1))).toBe("1 client");
    expect(format.load({ ...closed(8), one_session: true })).toBe("8 clients on one session");
    expect(format.load({ ...closed(50), pipeline: 16 })).toBe("50 clients, 16 at once");
    const open: Load = { ...closed(50), arrivals: "poisson", schedule: { steady: 5000 } };
    expect(format.load(open)).toBe("5,000/s Poisson over 50 clients");
    const stages = [
      { length_ns: 10e9, from: 1000, to: 1000 },
      { length_ns: 5e8, from: 1000, to: 5000 },
    ];
    const staged = "1,000/s for 10 s, then 1,000 to 5,000/s in 0.5 s, Poisson, over 50 clients";
    expect(format.load({ ...open, schedule: { stages } })).toBe(staged);
    const coming = [
      { length_ns: 10e9, from: 1, to: 1 },
      { length_ns: 60e9, from: 1, to: 200 },
    ];
    const more = { ...closed(200), pipeline: 4, schedule: { stages: coming } };
    expect(format.load(more)).toBe("1 client for 10 s, then 1 to 200 clients in 60 s, 4 at once");
    const share = "25 % of the highest rate, Poisson, over 50 clients";
    expect(format.load({ ...open, schedule: { share: 250 } })).toBe(share);
    const shares = { permille: [100, 1200], stage_ns: 4e9, rest_ns: 0 };
    const ramp = "up to 120 % of the peak in 2 steps of 4 s, evenly spaced, over 50 clients";
    expect(format.load({ ...open, arrivals: "constant", schedule: { shares } })).toBe(ramp);
  });

  it("prints points and spans of time", () => {
    expect(format.when(Date.UTC(2026, 10, 21, 19, 16, 40))).toBe("2026-11-21 19:16 UTC");
    expect([2.34, 48.2, 120, 724, 3600, 7500].map(format.span)).toEqual([
      "2.3 s", "48 s", "2 min", "12 min 4 s", "1 h", "2 h 5 min",
    ]);
  });

  it("keeps a number with its unit in a sentence", () => {
    expect(format.unbroken("9 of 12 µs, 3 % and 8.1 k/s over 5 blocks")).toBe("9 of 12\u00a0µs, 3\u00a0% and 8.1\u00a0k/s over 5 blocks");
  });

  it("joins lists and counts nouns", () => {
    expect([[], ["a"], ["a", "b"], ["a", "b", "c"]].map(format.list)).toEqual(["", "a", "a and b", "a, b and c"]);
    expect(format.plural(1, "miss", "misses")).toBe("1 miss");
    expect(format.plural(1200, "miss", "misses")).toBe("1,200 misses");
    expect(format.operationTitle("mixed.read")).toBe("read within mixed");
  });
});
