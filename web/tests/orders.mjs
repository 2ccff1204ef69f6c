// The program's orders by several weights: a snapshot of crates/report/src/tests/ranking.rs.
import { readFileSync } from "node:fs";
import { join } from "node:path";

const NAME = "cachedyno_report__tests__ranking__scores_by_any_weights_match_the_page.snap";
const path = join(import.meta.dirname, "../../crates/report/src/tests/snapshots", NAME);

/** Runs with their number of blocks, rates and orders. */
export const cases = JSON.parse(readFileSync(path, "utf8").split("---\n")[2]);
