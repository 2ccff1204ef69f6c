import { describe, expect, it } from "vitest";
import { contextOf } from "../src/context";
import { sheet } from "../src/sections/sheet";
import { ownWeights } from "../src/sections/weights";
import { parseView } from "../src/parse";
import type { View } from "../src/view";
import { sheetOf } from "./sheets.mjs";
import * as variants from "./variants.mjs";

function viewOf(raw: variants.Raw): View {
  return parseView(JSON.stringify({ ...raw, sheet: sheetOf(raw) })) as View;
}

function build(raw: variants.Raw): HTMLElement {
  return ownWeights(contextOf(viewOf(raw))) as HTMLElement;
}

function texts(root: HTMLElement, query: string): string[] {
  return [...root.querySelectorAll(query)].map((e) => e.textContent ?? "");
}

function number(root: HTMLElement, operation: string): HTMLInputElement {
  return root.querySelector(`#weight-${operation}`) as HTMLInputElement;
}

function type(input: HTMLInputElement, text: string, event = "input"): void {
  input.value = text;
  input.dispatchEvent(new Event(event));
}

const order = (root: HTMLElement, i: number): string[] => texts(root.querySelectorAll(".order")[i] as HTMLElement, "tbody th .target");
const said = (root: HTMLElement): string[] => texts(root, ".order-said");

describe("your own weights", () => {
  it("start from the study's and show its order", () => {
    const built = build(variants.sessions());
    expect(texts(built, ".weight label")).toEqual(["write", "read", "change"]);
    expect(["write", "read", "change"].map((name) => number(built, name).value)).toEqual(["0.05", "0.7", "0.25"]);
    expect(texts(built, ".weight-share")).toEqual(["5 %", "70 %", "25 %"]);
    expect(texts(built, "h4")).toEqual(["small: 1 concurrent request", "medium to large: 8 concurrent requests"]);
    expect(order(built, 0)).toEqual(["files", "redis", "mysql"]);
    expect(order(built, 1)).toEqual(["redis", "files", "mysql"]);
    expect(new Set(said(built))).toEqual(new Set(["The same order as with the study's weights."]));
    expect(built.querySelector("button")?.disabled).toBe(true);
  });

  it("agree with the program's ranking by the study's weights", () => {
    const raw = variants.sessions();
    const built = build(raw);
    raw.rankings.forEach((ranking, i) => {
      expect(order(built, i)).toEqual(ranking.targets.map((r) => r.target));
      const shown = texts(built.querySelectorAll(".order")[i] as HTMLElement, "tbody b");
      expect(shown).toEqual(ranking.targets.slice(1).map((r) => `${r.ratio?.center.toFixed(2)}×`));
    });
  });

  it("update the order immediately, say so, and can be reset", () => {
    const built = build(variants.sessions());
    for (const name of ["read", "write"]) type(number(built, name), "0");
    expect(order(built, 0)).toEqual(["redis", "files", "mysql"]);
    expect(texts(built, ".weight-share")).toEqual(["0 %", "0 %", "100 %"]);
    expect(said(built)).toEqual([
      "A different order than with the study's weights: no clear best among redis and files.",
      "The same order as with the study's weights.",
    ]);
    const moves = texts(built.querySelector(".order") as HTMLElement, "td:last-child");
    expect(moves).toEqual(["2, here ▲ higher", "1, here ▼ lower", "3"]);
    built.querySelector("button")?.click();
    expect(order(built, 0)).toEqual(["files", "redis", "mysql"]);
    expect(number(built, "write").value).toBe("0.05");
  });

  it("keep slider and number in sync", () => {
    const built = build(variants.sessions());
    const slider = built.querySelector<HTMLInputElement>("input[type=range][aria-label='weight of read, slider']");
    type(slider as HTMLInputElement, "0.35");
    expect(number(built, "read").value).toBe("0.35");
    type(number(built, "read"), "0.9");
    expect(slider?.value).toBe("0.9");
    expect(slider?.max).toBe("1");
  });

  it("name the best only if it is significantly ahead", () => {
    const raw = variants.sessions();
    const alone = (target: string, rate: number): void => {
      const own = raw.rankings[0]?.rates?.find((r) => r.target === target);
      for (const rates of [own?.by_operation["change"] ?? {}, own?.by_wall["change"] ?? {}]) {
        for (const block of Object.keys(rates)) rates[block] = rate + Number(block);
      }
    };
    alone("redis", 40_000);
    const clear = build(raw);
    for (const name of ["read", "write"]) type(number(clear, name), "0");
    expect(said(clear)[0]).toBe("A different order than with the study's weights: redis instead of files is the best.");
    alone("redis", 20_500);
    alone("files", 20_480);
    const level = build(raw);
    for (const name of ["read", "write"]) type(number(level, name), "0");
    expect(said(level)[0]).toBe("A different order than with the study's weights: no clear best among redis and files.");
  });

  it("decide nothing from two blocks, with any weights", () => {
    const built = build(variants.twoBlocks());
    const few = "undecided: 2 blocks, but 3 are needed.";
    expect(said(built)[0]).toBe(`The same order as with the study's weights: ${few}`);
    expect(texts(built, ".order td .chip-doubt")).toEqual(["?undecided", "?undecided", "?undecided", "?undecided"]);
    for (const name of ["read", "write"]) type(number(built, name), "0");
    expect(said(built).every((text) => text.endsWith(few))).toBe(true);
  });

  it("reject an invalid weight with a message next to it", () => {
    const built = build(variants.sessions());
    const read = number(built, "read");
    const [before, wrong] = [order(built, 0), built.querySelector("#weight-read-wrong") as HTMLElement];
    expect(read.getAttribute("aria-describedby")).toBe(wrong.id);
    for (const bad of ["-1", "", "1e9", "1000.1"]) {
      type(read, bad);
      type(read, bad, "change");
      expect(read.getAttribute("aria-invalid")).toBe("true");
      expect(wrong.textContent).toBe("A weight is a number from 0 to 1,000; the order still uses 0.7 for read.");
      expect(texts(built, ".weight-share")).toEqual(["5 %", "70 %", "25 %"]);
      expect(order(built, 0)).toEqual(before);
    }
    const reset = built.querySelector("button") as HTMLButtonElement;
    expect(reset.disabled).toBe(false);
    reset.click();
    expect([read.value, read.getAttribute("aria-invalid"), wrong.textContent]).toEqual(["0.7", null, ""]);
    type(read, "1000");
    expect([read.getAttribute("aria-invalid"), wrong.textContent]).toEqual([null, ""]);
    expect(texts(built, ".weight-share")).toContain("100 %");
  });

  it("have no order if every weight is 0", () => {
    const built = build(variants.sessions());
    for (const name of ["read", "write", "change"]) type(number(built, name), "0");
    expect(said(built)[0]).toContain("No order:");
    expect(order(built, 0)).toEqual([]);
  });

  it("name a store that lacks an operation, and rank it once that operation has no weight", () => {
    const built = build(variants.unrankable());
    expect(order(built, 0)).toEqual(["files", "redis"]);
    expect(built.textContent).toContain("mysql has no rank: not measured at write.");
    type(number(built, "write"), "0");
    expect(order(built, 0)).toEqual(["files", "redis", "mysql"]);
    expect(built.textContent).not.toContain("has no place");
    expect(built.textContent).toContain("not ranked");
  });

  it("are the study's in print", () => {
    const built = build(variants.sessions());
    for (const name of ["read", "write"]) type(number(built, name), "0");
    dispatchEvent(new Event("beforeprint"));
    expect(order(built, 0)).toEqual(["files", "redis", "mysql"]);
    dispatchEvent(new Event("afterprint"));
    expect(order(built, 0)).toEqual(["redis", "files", "mysql"]);
  });

  it("are below the advice, and absent without rates", () => {
    const view = viewOf(variants.sessions());
    expect(sheet(contextOf(view)).find((one) => one.id === "advice")?.querySelector("#weights")).not.toBeNull();
    for (const ranking of view.rankings) delete ranking.rates;
    expect(ownWeights(contextOf(view))).toBeNull();
  });
});
