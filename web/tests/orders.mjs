// The program's orders by several weights: a snapshot of crates/report/src/tests/ranking.rs.
import { readFileSync } from "node:fs";
import { join } from "node:path";

const NAME = "cachedyno_report__tests__ranking__scores_by_any_weights_are_those_that_the_page_computes.snap";
const path = join(import.meta.dirname, "../../crates/report/src/tests/snapshots", NAME);

/** Runs of some blocks, each with its rates and orders. */
export const cases = JSON.parse(readFileSync(path, "utf8").split("---\n")[2]);
