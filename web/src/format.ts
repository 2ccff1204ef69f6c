/** Formats all displayed numbers, so that units look the same everywhere. */

import type { Load, Stage, Value } from "./view";

const GROUPED = new Intl.NumberFormat("en-GB", { maximumFractionDigits: 0 });

/** Placeholder for a missing number. */
export const NONE = "–";

/** An integer with thousands separators: `48,230`. */
export function count(n: number): string {
  return GROUPED.format(n);
}

/** A mean of counts: `7`, `0.33`; rounded to an integer from 10 up. */
export function meanCount(n: number): string {
  return n >= 9.95 ? count(n) : String(Number(n.toPrecision(2)));
}

/** A number with three significant digits, never in exponential form: `0.0412`, `4.12`, `412`. */
export function threeDigits(n: number): string {
  if (!Number.isFinite(n)) return NONE;
  if (n === 0) return "0";
  const size = Math.abs(n);
  const rounded = Number(size.toPrecision(3));
  if (rounded >= 100) return GROUPED.format(n);
  const decimals = Math.min(6, 2 - Math.floor(Math.log10(rounded)));
  return n.toFixed(decimals);
}

/** Operations per second without the unit; rounded to an integer from 100 up. */
export function rate(perSecond: number): string {
  return Math.abs(perSecond) >= 99.95 ? count(perSecond) : threeDigits(perSecond);
}

/** A rate for an axis: `40k`, `1.5M`. */
export function rateShort(perSecond: number): string {
  for (const [step, suffix] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]] as const) {
    if (Math.abs(perSecond) >= step) return `${Number((perSecond / step).toPrecision(3))}${suffix}`;
  }
  return `${Number(perSecond.toPrecision(3))}`;
}

const TIME_UNITS = [
  [1e9, "s"],
  [1e6, "ms"],
  [1e3, "µs"],
  [1, "ns"],
] as const;

/** A time split into number and unit, so that a table can show the unit smaller. */
export function timeParts(ns: number): { number: string; unit: string } {
  if (!Number.isFinite(ns)) return { number: NONE, unit: "" };
  const rounded = Number(ns.toPrecision(3));
  for (const [size, unit] of TIME_UNITS) {
    if (rounded >= size) return { number: threeDigits(ns / size), unit };
  }
  return { number: threeDigits(ns), unit: "ns" };
}

/** A time with its unit: `18.3 µs`. */
export function time(ns: number): string {
  const { number, unit } = timeParts(ns);
  return unit === "" ? number : `${number} ${unit}`;
}

/** A time for an axis, without trailing zeros: `20 µs`, `1 ms`. */
export function timeShort(ns: number): string {
  for (const [size, unit] of TIME_UNITS) {
    if (ns >= size * 0.9995) return `${Number((ns / size).toPrecision(3))} ${unit}`;
  }
  return `${Number(ns.toPrecision(3))} ns`;
}

/** A ratio: `1.41×`; three digits above 10. */
export function ratio(r: number): string {
  return `${ratioNumber(r)}×`;
}

function ratioNumber(r: number): string {
  if (!Number.isFinite(r)) return NONE;
  if (Math.abs(r) >= 0.095 && Math.abs(r) < 9.995) return r.toFixed(2);
  return threeDigits(r);
}

/** A fraction as a percentage: `0.034` is `3.4 %`. */
export function percent(fraction: number): string {
  return `${Number((fraction * 100).toPrecision(3))} %`;
}

/** A size in binary units: `80 MiB`, `1.46 GiB`. */
export function bytes(n: number): string {
  const { number, unit } = bytesParts(n);
  return `${number} ${unit}`;
}

/** The same, split into number and unit. */
export function bytesParts(n: number): { number: string; unit: string } {
  for (const [size, unit] of [[2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"]] as const) {
    if (n >= size) return { number: `${Number((n / size).toPrecision(3))}`, unit };
  }
  return { number: `${Math.round(n)}`, unit: "B" };
}

/** A quantile as a percentage: `0.999` is `99.9 %`. */
export function quantile(q: number): string {
  return `${Number((q * 100).toPrecision(8))} %`;
}

/** A share: `99.9 %`, and `<100 %` if it would round up to 100 %. */
export function shareOfAll(share: number): string {
  const text = percent(share);
  return text === "100 %" && share < 1 ? "<100 %" : text;
}

/**
 * Maximum factor between the center and a displayed bound. Beyond it, the blocks do not bound the value
 * on that side. As in the Rust crate `stats` (crates/stats/src/units.rs), which formats values for
 * terminals.
 */
export const BOUNDED = 100;

/** Maximum factor at which a bound has the precision of the center; beyond it, it has three digits. */
const NEAR = 10;

function threeDigitsOf(n: number): number {
  return Number(n.toPrecision(3));
}

function end(n: number, center: number, print: (n: number) => string): string {
  const factor = center === 0 || n === 0 ? 1 : Math.max(n / center, center / n);
  if (factor > BOUNDED) {
    return n > center ? `>${print(threeDigitsOf(center * BOUNDED))}` : `<${print(threeDigitsOf(center / BOUNDED))}`;
  }
  return print(factor > NEAR ? threeDigitsOf(n) : n);
}

/** The bounds of an interval: `47,610–48,870`; empty without one, with `>` or `<` beyond `BOUNDED`. */
export function interval({ center, lo, hi }: Value, print: (n: number) => string): string {
  if (lo === null || hi === null) return "";
  return `${end(lo, center, print)}–${end(hi, center, print)}`;
}

/** Minimum number of blocks for a 95 % interval; with fewer, the bounds are a range. */
const BLOCKS_OF_INTERVAL = 6;

/** Name of the bounds of a rate over this many blocks; as `ends_name` in crates/report/src/show.rs. */
export function endsName(blocks: number): string {
  return blocks < BLOCKS_OF_INTERVAL ? "range of blocks" : "95 % interval";
}

/** A ratio's interval: `1.36–1.47`; empty without one. */
export function ratioInterval(value: Value): string {
  return interval(value, ratioNumber);
}

/** A point in time: `2026-11-21 19:16 UTC`. */
export function when(unixMs: number): string {
  const date = new Date(unixMs);
  if (Number.isNaN(date.getTime())) return NONE;
  return `${date.toISOString().slice(0, 16).replace("T", " ")} UTC`;
}

/** A duration: `48 s`, `12 min 4 s`, `2 h 5 min`. */
export function span(seconds: number): string {
  const whole = Math.round(seconds);
  if (seconds < 10) return `${Number(seconds.toPrecision(2))} s`;
  if (whole < 60) return `${whole} s`;
  const minutes = Math.floor(whole / 60);
  if (minutes < 60) return whole % 60 === 0 ? `${minutes} min` : `${minutes} min ${whole % 60} s`;
  const rest = minutes % 60;
  return rest === 0 ? `${minutes / 60} h` : `${Math.floor(minutes / 60)} h ${rest} min`;
}

/** A noun with its number: `1 block`, `6 blocks`, `1 miss`, `2 misses`. */
export function plural(n: number, one: string, many = `${one}s`): string {
  return `${count(n)} ${n === 1 ? one : many}`;
}

/** A load: `8 clients on one session`, `50 clients, 16 at once`, `5,000/s Poisson over 50 clients`. */
export function load(l: Load): string {
  const spacing = { closed: null, constant: "evenly spaced", poisson: "Poisson" }[l.arrivals];
  const comma = "steady" in l.schedule ? "" : ",";
  const over = spacing === null ? "" : `${comma} ${spacing}${comma} over ${plural(l.clients, "client")}`;
  const session = l.one_session ? " on one session" : "";
  const pipeline = l.pipeline > 1 ? `, ${l.pipeline} at once` : "";
  return offered(l) + over + session + pipeline;
}

/** The offered load over time: `5,000/s`, `1 to 200 clients in 60 s`, `up to 120 % of the peak in 23 steps of 4 s`. */
function offered({ arrivals, schedule }: Load): string {
  const level = (n: number): string => (arrivals === "closed" ? plural(n, "client") : `${count(n)}/s`);
  const seconds = (ns: number): string => `${ns / 1e9} s`;
  if ("steady" in schedule) return level(schedule.steady);
  if ("stages" in schedule) {
    const stage = ({ from, to, length_ns }: Stage): string =>
      from === to ? `${level(to)} for ${seconds(length_ns)}` : `${count(from)} to ${level(to)} in ${seconds(length_ns)}`;
    return schedule.stages.map(stage).join(", then ");
  }
  if ("search" in schedule) return "search for the highest rate";
  if ("share" in schedule) return `${schedule.share / 10} % of the highest rate`;
  const { permille, stage_ns } = schedule.shares;
  return `up to ${Math.max(...permille) / 10} % of the peak in ${plural(permille.length, "step")} of ${seconds(stage_ns)}`;
}

/** The relevant latency: response time (from the due time) for an open load, otherwise service time. */
export function times(l: Load): "service" | "response" {
  return l.arrivals === "closed" ? "service" : "response";
}

/** A sentence with non-breaking spaces between numbers and units. */
export function unbroken(sentence: string): string {
  return sentence.replace(/(\d) (?=(?:%|ns|µs|ms|s|[kMG]?\/s|[KMG]?i?B)(?!\w))/g, "$1\u00a0");
}

/** Names in a sentence: `a`, `a and b`, `a, b and c`. */
export function list(names: readonly string[]): string {
  if (names.length < 2) return names.join("");
  return `${names.slice(0, -1).join(", ")} and ${names[names.length - 1]}`;
}

/** Title of an operation: `mixed.read` is a part of `mixed`. */
export function operationTitle(operation: string): string {
  const [whole, part] = operation.split(".");
  return part === undefined ? operation : `${part} within ${whole}`;
}
