import { describe, expect, it } from "vitest";
import { contextOf } from "../src/context";
import { advice } from "../src/sections/advice";
import { ownWeights } from "../src/sections/weights";
import { parseView, type View } from "../src/view";
import * as variants from "./variants.mjs";

function build(raw: variants.Raw): HTMLElement {
  return ownWeights(contextOf(parseView(JSON.stringify(raw)) as View)) as HTMLElement;
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
    expect(texts(built, ".weight label")).toEqual(["change", "read", "write"]);
    expect(["change", "read", "write"].map((name) => number(built, name).value)).toEqual(["0.25", "0.7", "0.05"]);
    expect(texts(built, ".weight-share")).toEqual(["25 %", "70 %", "5 %"]);
    expect(texts(built, "h4")).toEqual(["small: 1 concurrent request", "medium to large: 8 concurrent requests"]);
    expect(order(built, 0)).toEqual(["files", "redis", "mysql"]);
    expect(order(built, 1)).toEqual(["redis", "files", "mysql"]);
    expect(new Set(said(built))).toEqual(new Set(["The same order as by the study's weights."]));
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

  it("order anew at once, say so, and come back", () => {
    const built = build(variants.sessions());
    for (const name of ["read", "write"]) type(number(built, name), "0");
    expect(order(built, 0)).toEqual(["redis", "files", "mysql"]);
    expect(texts(built, ".weight-share")).toEqual(["100 %", "0 %", "0 %"]);
    expect(said(built)).toEqual([
      "Another order than by the study's weights: redis instead of files is the best.",
      "The same order as by the study's weights.",
    ]);
    const moves = texts(built.querySelector(".order") as HTMLElement, "td:last-child");
    expect(moves).toEqual(["2, here ▲ higher", "1, here ▼ lower", "3"]);
    built.querySelector("button")?.click();
    expect(order(built, 0)).toEqual(["files", "redis", "mysql"]);
    expect(number(built, "write").value).toBe("0.05");
  });

  it("keep slider and number together", () => {
    const built = build(variants.sessions());
    const slider = built.querySelector<HTMLInputElement>("input[type=range][aria-label='weight of read, slider']");
    type(slider as HTMLInputElement, "0.35");
    expect(number(built, "read").value).toBe("0.35");
    type(number(built, "read"), "0.9");
    expect(slider?.value).toBe("0.9");
    expect(slider?.max).toBe("1");
  });

  it("do not take what is no weight", () => {
    const built = build(variants.sessions());
    const read = number(built, "read");
    for (const bad of ["-1", "", "1e9"]) {
      type(read, bad);
      expect(read.getAttribute("aria-invalid")).toBe("true");
      expect(texts(built, ".weight-share")).toEqual(["25 %", "70 %", "5 %"]);
    }
    type(read, "-1", "change");
    expect(read.value).toBe("0.7");
    expect(read.getAttribute("aria-invalid")).toBeNull();
  });

  it("say that nothing is ordered where everything weighs nothing", () => {
    const built = build(variants.sessions());
    for (const name of ["read", "write", "change"]) type(number(built, name), "0");
    expect(said(built)[0]).toContain("there is no order");
    expect(order(built, 0)).toEqual([]);
  });

  it("name a store that lacks an operation, and rank it once that does not count", () => {
    const built = build(variants.unrankable());
    expect(order(built, 0)).toEqual(["files", "redis"]);
    expect(built.textContent).toContain("mysql has no place: not measured at write.");
    type(number(built, "write"), "0");
    expect(order(built, 0)).toEqual(["files", "redis", "mysql"]);
    expect(built.textContent).not.toContain("has no place");
    expect(built.textContent).toContain("not in its order");
  });

  it("go to paper as the study's", () => {
    const built = build(variants.sessions());
    for (const name of ["read", "write"]) type(number(built, name), "0");
    dispatchEvent(new Event("beforeprint"));
    expect(order(built, 0)).toEqual(["files", "redis", "mysql"]);
    dispatchEvent(new Event("afterprint"));
    expect(order(built, 0)).toEqual(["redis", "files", "mysql"]);
  });

  it("stand under the advice, and not where a view has no rates", () => {
    const view = parseView(JSON.stringify(variants.sessions())) as View;
    expect(advice(contextOf(view))?.querySelector("#weights")).not.toBeNull();
    for (const ranking of view.rankings) delete ranking.rates;
    expect(ownWeights(contextOf(view))).toBeNull();
  });
});
