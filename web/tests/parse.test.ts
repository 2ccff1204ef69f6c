import { describe, expect, it } from "vitest";
import { parseView, ViewError } from "../src/parse";
import { sheetOf } from "./sheets.mjs";
import * as variants from "./variants.mjs";

const whole = (raw: variants.Raw) => ({ ...raw, sheet: sheetOf(raw) });

describe("the data of a page", () => {
  it("is null in a template", () => {
    expect(parseView('{"placeholder":true}')).toBeNull();
  });

  it("keeps every digit of a 64-bit seed, even after text that looks like one", () => {
    const raw = variants.sessions();
    raw.title = 'the "seed": 42 of doubt';
    const text = JSON.stringify(whole(raw)).replace(/"seed":\d+/, '"seed":18446744073709551615');
    expect(parseView(text)?.seed).toBe("18446744073709551615");
  });

  it("reads Rust's escapes", () => {
    const text = JSON.stringify(whole(variants.hostile())).replace(/[<>&\u2028\u2029]/g, (c) => {
      return `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`;
    });
    expect(text).not.toContain("<");
    expect(parseView(text)?.claims[0]?.text).toBe(variants.HOSTILE);
  });

  it("is rejected with a reason if it is invalid", () => {
    const without = (change: (raw: Record<string, unknown>) => void): string => {
      const raw = whole(variants.sessions()) as unknown as Record<string, unknown>;
      change(raw);
      return JSON.stringify(raw);
    };
    expect(() => parseView("{")).toThrow(ViewError);
    expect(() => parseView(without((v) => (v["format"] = 2)))).toThrow("format `2`, expected 1");
    expect(() => parseView(without((v) => delete v["cells"]))).toThrow("`cells` is undefined, expected array");
    expect(() => parseView(without((v) => (v["cells"] = [{ target: "x" }])))).toThrow("`cells[0].workload` is undefined");
  });
});
