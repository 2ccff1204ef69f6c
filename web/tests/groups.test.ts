import { describe, expect, it } from "vitest";
import { groups, inverse } from "../src/groups";
import * as format from "../src/format";
import { parseView } from "../src/parse";
import type { View } from "../src/view";
import { sheetOf } from "./sheets.mjs";
import * as variants from "./variants.mjs";

function viewOf(raw: variants.Raw): View {
  return parseView(JSON.stringify({ ...raw, sheet: sheetOf(raw) })) as View;
}

describe("groups", () => {
  it("keep the operations in the order of measurement, as in the terminal", () => {
    const view = viewOf(variants.sessions());
    const measured = ["read", "mixed", "clean", "write"];
    view.cells = measured.flatMap((operation, i) =>
      view.cells.filter((row) => row.operation === ["write", "read", "change", "mixed"][i]).map((row) => ({ ...row, operation })),
    );
    expect(groups(view).map((g) => g.operations.map((op) => op.operation))).toEqual([measured, measured]);
  });

  it("are ordered by profile, then by clients, with one session last", () => {
    const keys = groups(viewOf(variants.manyProfiles())).map((g) => `${g.workload} ${format.load(g.load)}`);
    expect(keys).toEqual(["steady 1 client", "steady 8 clients", "shop-page 8 clients", "shop-page 8 clients on one session"]);
  });

  it("keep an open interval open when a ratio is inverted", () => {
    expect(inverse({ center: 2, lo: null, hi: null })).toEqual({ center: 0.5, lo: null, hi: null });
    expect(inverse({ center: 2, lo: 1, hi: 4 })).toEqual({ center: 0.5, lo: 0.25, hi: 1 });
  });
});
