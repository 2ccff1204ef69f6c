/**
 * The order of all stores by custom weights, computed like the order by the study's weights in the Rust
 * crate `report` (crates/report/src/ranking.rs). A store's score in a block is the weighted
 * geometric mean of its rates, exp(Σ w·ln rate / Σ w). Two stores are compared by block, by rates
 * without the clients' own work between calls and by wall-time rates.
 */

import { geometricMean } from "./interval";
import { inverse } from "./groups";
import type { TargetRates, Value, View } from "./view";

/** Weight of each operation, 0 or more. */
export type Weights = Record<string, number>;

/** A store's rank. */
export interface Ranked {
  target: string;
  /** The best score divided by its own; null for the best, and without a common block. */
  ratio: Value | null;
  /** The same by wall time. */
  byWall: Value | null;
  /** Number of blocks in common with the best. */
  blocks: number;
}

/** Logarithms of a store's scores by block. */
type Scores = Map<string, number>;

/** Operations with a weight above 0. */
export function counted(weights: Weights): [string, number][] {
  return Object.entries(weights).filter(([, weight]) => weight > 0);
}

/** Scores of all blocks with a rate for every weighted operation. */
function scores(weights: Weights, rates: TargetRates["by_operation"]): Scores {
  const used = counted(weights);
  const all = used.reduce((sum, [, weight]) => sum + weight, 0);
  const blocks = Object.keys(rates[used[0]?.[0] ?? ""] ?? {});
  const found: Scores = new Map();
  for (const block of blocks) {
    const logs = used.map(([operation, weight]) => {
      const rate = rates[operation]?.[block];
      return rate === undefined ? Number.NaN : weight * Math.log(rate);
    });
    const sum = logs.reduce((a, b) => a + b, 0);
    if (!Number.isNaN(sum)) found.set(block, sum / all);
  }
  return found;
}

function mean(found: Scores): number {
  return [...found.values()].reduce((sum, v) => sum + v, 0) / found.size;
}

function ofBest(best: Scores, other: Scores): { ratio: Value | null; blocks: number } {
  const differences = [...best].flatMap(([block, score]) => {
    const twin = other.get(block);
    return twin === undefined ? [] : [score - twin];
  });
  const blocks = differences.length;
  return { ratio: blocks === 0 ? null : inverse(geometricMean(differences)), blocks };
}

/** All stores with every weighted operation, best first; none without weighted operations. */
export function rank(weights: Weights, rates: readonly TargetRates[]): Ranked[] {
  const scored = rates
    .map(({ target, by_operation, by_wall }) => {
      return { target, found: scores(weights, by_operation), wall: scores(weights, by_wall) };
    })
    .filter(({ found }) => found.size > 0)
    .sort((a, b) => mean(b.found) - mean(a.found));
  const best = scored[0];
  return scored.map(({ target, found, wall }, i) => {
    if (i === 0 || best === undefined) return { target, ratio: null, byWall: null, blocks: found.size };
    return { target, ...ofBest(best.found, found), byWall: ofBest(best.wall, wall).ratio };
  });
}

/** The view's rules for deciding differences. */
type Rules = Pick<View, "equivalence_zone" | "fewest_blocks">;

type Standing = "slower" | "equal" | "undecided";

/** Verdict of a single interval on a store against the best: beyond the zone, within it, or undecided. */
function alone(ratio: Value | null, rules: Rules): Standing {
  const zone = rules.equivalence_zone;
  if (ratio === null || ratio.lo === null || ratio.hi === null) return "undecided";
  if (ratio.hi < 1 / (1 + zone)) return "slower";
  return ratio.lo >= 1 / (1 + zone) && ratio.hi <= 1 + zone ? "equal" : "undecided";
}

/** The same by both kinds of rates; undecided if they differ. */
export function standing({ ratio, byWall, blocks }: Omit<Ranked, "target">, rules: Rules): Standing {
  const free = alone(ratio, rules);
  return blocks < rules.fewest_blocks || alone(byWall, rules) !== free ? "undecided" : free;
}
