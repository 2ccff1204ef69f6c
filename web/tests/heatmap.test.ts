import { describe, expect, it } from "vitest";
import { drawnCells, heatMap } from "../src/charts/heatmap";
import { curvesOf } from "../src/charts/response";
import { contextOf } from "../src/context";
import type { GridView } from "../src/gridview";
import { parseView } from "../src/parse";
import type { Row, Value, View } from "../src/view";
import { sheetOf } from "./sheets.mjs";
import * as variants from "./variants.mjs";

const view = (): View => {
  const raw = variants.gridded();
  return parseView(JSON.stringify({ ...raw, sheet: sheetOf(raw) })) as View;
};

const RATE = { name: "rate", read: (row: Row): Value | undefined => row.metrics["rate_per_s"], print: (n: number) => String(n), tick: (n: number) => String(n) };

describe("a heat map", () => {
  const chosen = { operation: "get", figure: RATE, rows: 0, columns: 1, fixed: [0, 0, 0] };
  const grid = (of: View): GridView => of.grids?.[0] as GridView;

  it("has a cell for each combination, and none where nothing was measured", () => {
    const of = view();
    const drawn = drawnCells(of.cells, grid(of), chosen);
    expect(drawn.map((line) => line.length)).toEqual([3, 3, 3]);
    expect(drawn[2]?.[2]).toBeNull();
    expect(drawn.flat().filter((cell) => cell === null)).toHaveLength(1);
    const pipelined = drawnCells(of.cells, grid(of), { ...chosen, fixed: [0, 0, 1] });
    expect(pipelined.flat().filter((cell) => cell === null)).toHaveLength(0);
  });

  it("shades all cells of an operation on one scale", () => {
    const of = view();
    const shades = [0, 1].flatMap((pipeline) => drawnCells(of.cells, grid(of), { ...chosen, fixed: [0, 0, pipeline] }).flat().flatMap((cell) => (cell === null ? [] : [cell.shade])));
    expect([Math.min(...shades), Math.max(...shades)]).toEqual([0, 46]);
  });

  it("shows another operation, and swaps axes", () => {
    const of = view();
    const [get, set] = ["get", "set"].map((operation) => drawnCells(of.cells, grid(of), { ...chosen, operation })[0]?.[0]?.text);
    expect(Number(set) / Number(get)).toBeCloseTo(0.9, 3);
    const turned = drawnCells(of.cells, grid(of), { ...chosen, rows: 1, columns: 0 });
    expect(turned[1]?.[0]).toEqual(drawnCells(of.cells, grid(of), chosen)[0]?.[1]);
  });

  it("draws a line for each row, and leaves out what was not measured", () => {
    const of = view();
    const lines = curvesOf(of.cells, grid(of), chosen);
    expect(lines.map(({ name }) => name)).toEqual(["value size 64 B", "value size 1 KiB", "value size 16 KiB"]);
    expect(lines.map(({ points }) => points.length)).toEqual([3, 3, 2]);
    const [first] = lines[0]?.points ?? [];
    expect(String(Math.round(10 ** (first?.at[1] ?? 0)))).toBe(String(Math.round(first?.value.center ?? 0)));
    expect(first?.at[2]).toBeLessThanOrEqual(first?.at[1] ?? 0);
  });

  it("is absent without a grid", () => {
    const of = view();
    delete of.grids;
    expect(heatMap(contextOf(of))).toBeNull();
  });

  it("lets the reader choose axes, and offers the others as selectors", () => {
    const built = heatMap(contextOf(view())) as HTMLElement;
    const named = (label: string) => built.querySelector(`select[aria-label="${label}"]`) as HTMLSelectElement;
    const heads = () => [...built.querySelectorAll("tbody th")].map((th) => th.textContent);
    const shown = () => [...built.querySelectorAll<HTMLElement>(".heatmap-panel .selector")].filter((own) => !own.hidden).map((own) => own.textContent?.match(/^[a-zA-Z ]+?(?=\d|get|ope|val|con|$)/)?.[0]);
    expect(heads()).toEqual(["64 B", "1 KiB", "16 KiB"]);
    expect(built.textContent).toContain("not measured");
    expect(shown()).toContain("requests at once");
    named("Rows").value = "requests at once";
    named("Rows").dispatchEvent(new Event("change"));
    expect(heads()).toEqual(["1", "16"]);
    expect([...named("Columns").options].map((option) => option.value)).toEqual(["value size", "connections"]);
  });
});
