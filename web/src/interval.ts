/**
 * The interval of a geometric mean over blocks, as the Rust crate `stats` computes it
 * (crates/stats/src/interval.rs): each bound is the wider one of Student's t on logarithms and the
 * expanded bootstrap over blocks. Equal blocks give the same interval in both.
 */

import type { Value } from "./view";

const CONFIDENCE = 0.95;
const RESAMPLES = 10_000;

/** Logarithms closer than this are equal up to rounding. */
const ROUNDING = 1e-12;

/**
 * Probability that Student's t with an integer number of degrees of freedom is between −t and t, where t is
 * √freedom · tan(angle) (Abramowitz and Stegun, 26.7.3 and 26.7.4).
 */
function within(angle: number, freedom: number): number {
  const odd = freedom % 2;
  const cosine = Math.cos(angle);
  let term = odd === 1 ? cosine : 1;
  let sum = freedom === 1 ? 0 : term;
  for (let k = 2 + odd; k < freedom; k += 2) {
    term *= ((k - 1) / k) * cosine ** 2;
    sum += term;
  }
  const wave = Math.sin(angle) * sum;
  return odd === 1 ? (2 / Math.PI) * (angle + wave) : wave;
}

/** Two-sided critical value of Student's t at probability 0.05. */
export function critical(freedom: number): number {
  let [low, high] = [0, Math.PI / 2];
  for (let i = 0; i < 100; i += 1) {
    const middle = (low + high) / 2;
    if (within(middle, freedom) < CONFIDENCE) low = middle;
    else high = middle;
  }
  return Math.sqrt(freedom) * Math.tan((low + high) / 2);
}

/** Probability that a normal deviate is below `-z`, for z ≥ 0 (26.2.11). */
export function normalTail(z: number): number {
  let term = z;
  let sum = z;
  for (let k = 3; term > sum * 1e-17; k += 2) {
    term *= (z * z) / k;
    sum += term;
  }
  return Math.max(0, 0.5 - (Math.exp((-z * z) / 2) / Math.sqrt(2 * Math.PI)) * sum);
}

/** A 64-bit number as two 32-bit numbers. */
type Long = [high: number, low: number];

function add([aHigh, aLow]: Long, [bHigh, bLow]: Long): Long {
  const low = aLow + bLow;
  return [(aHigh + bHigh + (low > 0xffff_ffff ? 1 : 0)) >>> 0, low >>> 0];
}

function multiply([aHigh, aLow]: Long, [bHigh, bLow]: Long): Long {
  // In halves of 16 bits, since a 64-bit product does not fit in a JavaScript number.
  const upper = (aLow >>> 16) * bLow + Math.floor(((aLow & 0xffff) * bLow) / 0x1_0000);
  const high = Math.floor(upper / 0x1_0000) + Math.imul(aHigh, bLow) + Math.imul(aLow, bHigh);
  return [high >>> 0, Math.imul(aLow, bLow) >>> 0];
}

/** The number with its own upper bits mixed in. */
function mixed([high, low]: Long, shift: number): Long {
  return [(high ^ (high >>> shift)) >>> 0, (low ^ ((low >>> shift) | (high << (32 - shift)))) >>> 0];
}

const STEP: Long = [0x9e37_79b9, 0x7f4a_7c15];
const FIRST: Long = [0xbf58_476d, 0x1ce4_e5b9];
const SECOND: Long = [0x94d0_49bb, 0x1331_11eb];

/** Random 64-bit numbers: SplitMix64 (crates/stats/src/random.rs). */
export function splitMix64(seed: Long): () => Long {
  let state = seed;
  return () => {
    state = add(state, STEP);
    return mixed(multiply(mixed(multiply(mixed(state, 30), FIRST), 27), SECOND), 31);
  };
}

const drawn = new Map<number, Uint16Array>();

/** Block indices of all resamples, drawn once because they do not depend on the values. */
function resamples(blocks: number): Uint16Array {
  const known = drawn.get(blocks);
  if (known) return known;
  const next = splitMix64([0, 0]);
  const indices = Uint16Array.from({ length: RESAMPLES * blocks }, () => {
    const [high, low] = next();
    return Math.floor((high * blocks + Math.floor((low * blocks) / 2 ** 32)) / 2 ** 32);
  });
  drawn.set(blocks, indices);
  return indices;
}

/** Means of all resamples in ascending order. */
function resampledMeans(logs: readonly number[]): Float64Array {
  const indices = resamples(logs.length);
  const means = new Float64Array(RESAMPLES);
  for (let i = 0; i < RESAMPLES; i += 1) {
    let sum = 0;
    for (let j = 0; j < logs.length; j += 1) sum += logs[indices[i * logs.length + j] as number] as number;
    means[i] = sum / logs.length;
  }
  return means.sort();
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, v) => sum + v, 0) / values.length;
}

/** Geometric mean of values given as logarithms, one per block, at least one. */
export function geometricMean(logs: readonly number[]): Value {
  const middle = mean(logs);
  const center = Math.exp(middle);
  const blocks = logs.length;
  if (blocks < 3) return { center, lo: null, hi: null };
  if (Math.max(...logs) - Math.min(...logs) <= ROUNDING) return { center, lo: center, hi: center };
  const variance = logs.reduce((sum, v) => sum + (v - middle) ** 2, 0) / (blocks - 1);
  const t = critical(blocks - 1);
  const reach = t * Math.sqrt(variance / blocks);
  const means = resampledMeans(logs);
  const tail = normalTail(Math.sqrt(blocks / (blocks - 1)) * t);
  const rank = Math.max(1, Math.floor(tail * (RESAMPLES + 1)));
  const lo = Math.min(means[rank - 1] as number, middle - reach);
  const hi = Math.max(means[RESAMPLES - rank] as number, middle + reach);
  return { center, lo: Math.min(Math.exp(lo), center), hi: Math.max(Math.exp(hi), center) };
}
