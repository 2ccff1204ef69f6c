/**
 * The order of all stores by weights of a reader's choice, as the Rust crate `report` computes it
 * by those of the study (crates/report/src/ranking.rs). A store's score in a block is the weighted
 * geometric mean of its rates, exp(Σ w·ln rate / Σ w); two stores are compared by block, by rates
 * without the clients' own work between calls and by those of wall time.
 */

import { geometricMean } from "./interval";
import { inverse } from "./groups";
import type { TargetRates, Value, View } from "./view";

/** How much each operation counts: numbers of 0 and more. */
export type Weights = Record<string, number>;

/** A store's place. */
export interface Ranked {
  target: string;
  /** How many times the best store's score is its own; null for the best, and without a common block. */
  ratio: Value | null;
  /** The same by wall time. */
  byWall: Value | null;
  /** Blocks that it has in common with the best. */
  blocks: number;
}

/** Logarithms of a store's scores by block. */
type Scores = Map<string, number>;

/** Operations that count. */
export function counted(weights: Weights): [string, number][] {
  return Object.entries(weights).filter(([, weight]) => weight > 0);
}

/** Scores of every block in which all operations that count have a rate. */
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

/** All stores that have every operation that counts, best first; none where no operation counts. */
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

/** The rules of a view by which differences are decided. */
type Rules = Pick<View, "equivalence_zone" | "fewest_blocks">;

type Standing = "slower" | "equal" | "undecided";

/** What an interval by itself says of a store against the best: beyond the zone, within it, or neither. */
function alone(ratio: Value | null, rules: Rules): Standing {
  const zone = rules.equivalence_zone;
  if (ratio === null || ratio.lo === null || ratio.hi === null) return "undecided";
  if (ratio.hi < 1 / (1 + zone)) return "slower";
  return ratio.lo >= 1 / (1 + zone) && ratio.hi <= 1 + zone ? "equal" : "undecided";
}

/** The same by rates without the clients' own work and by those of wall time; undecided where these differ. */
export function standing({ ratio, byWall, blocks }: Omit<Ranked, "target">, rules: Rules): Standing {
  const free = alone(ratio, rules);
  return blocks < rules.fewest_blocks || alone(byWall, rules) !== free ? "undecided" : free;
}
