import type { Ranked, Weights } from "../src/ranking";
import type { TargetRates } from "../src/view";

/** A run of some blocks. */
export interface Case {
  blocks: number;
  rates: TargetRates[];
  orders: { weights: Weights; order: Omit<Ranked, "blocks">[] }[];
}

export const cases: Case[];
