import type { View } from "../src/view";

/** The view as its text has it: the seed is still a number, and its sheet is not there yet. */
export type Raw = Omit<View, "seed" | "sheet"> & { seed: number };

export const HOSTILE: string;
export function sessions(): Raw;
export function alone(): Raw;
export function killed(): Raw;
export function failedOver(): Raw;
export function gridded(): Raw;
export function oneBlock(): Raw;
export function twoBlocks(): Raw;
export function nothingMeasured(): Raw;
export function hostile(): Raw;
export function withControl(): Raw;
export function manyProfiles(): Raw;
export function missingBlock(): Raw;
export function notSteady(): Raw;
export function caches(): Raw;
export function unrankable(): Raw;
export function grown(): Raw;
export function ramps(): Raw;
export function longRamps(): Raw;
export function doubtfulRamps(): Raw;
export function searched(): Raw;
