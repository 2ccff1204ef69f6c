// Sheets of the program: a snapshot of crates/report/src/tests/sheets.rs.
import { readFileSync } from "node:fs";
import { join } from "node:path";

const NAME = "cachedyno_report__tests__sheets__sheets_are_those_that_the_page_is_tested_with.snap";
const path = join(import.meta.dirname, "../../crates/report/src/tests/snapshots", NAME);
const text = readFileSync(path, "utf8");

/** Sections of typical runs, by name. */
export const sheets = JSON.parse(text.slice(text.indexOf("\n---\n") + 5));

/** A fresh copy of the sheet that fits a view best, without parts that lack data in the view. */
export function sheetOf(view) {
  const isOf = [["searched", view.searches], ["ramps", view.ramps], ["killed", view.facts], ["caches", view.cells[0]?.metrics.calls_rate_per_s]];
  const name = isOf.find(([, has]) => has !== undefined)?.[0] ?? "sessions";
  const has = { claims: view.claims.length, notes: view.footnotes.length, conditions: view.conditions.facts.length, weights: view.rankings.length };
  const keeps = (block) => block.kind !== "part" || has[block.part] !== 0;
  // The second store of a view can have another name.
  const text = JSON.stringify(sheets[name]).replaceAll('"redis"', JSON.stringify(view.targets[1]?.name ?? "redis"));
  return JSON.parse(text).map((section) => ({ ...section, blocks: section.blocks.filter(keeps) }));
}
