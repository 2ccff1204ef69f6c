import type { Section } from "../src/blocks";
import type { View } from "../src/view";

export const sheets: Record<"sessions" | "ramps" | "searched" | "killed" | "caches", Section[]>;

export function sheetOf(view: Omit<View, "seed" | "sheet">): Section[];
