/** Axes of several charts: logarithmic ones for latencies, and those for rates. */

import * as format from "../format";
import { axis } from "./base";

/** Ticks as log10: powers of ten, with 2 and 5 in between if few decades are shown. */
export function marks(low: number, high: number): number[] {
  const steps = high - low > 2.4 ? [1] : [1, 2, 5];
  const found: number[] = [];
  for (let decade = Math.floor(low) - 1; decade <= Math.ceil(high); decade += 1) {
    for (const step of steps) found.push(decade + Math.log10(step));
  }
  const from = Math.max(...found.filter((mark) => mark <= low + 1e-9));
  const to = Math.min(...found.filter((mark) => mark >= high - 1e-9));
  return found.filter((mark) => mark >= from && mark <= to);
}

/** A vertical axis for these latencies, given as log10 of nanoseconds. */
export function timeAxis(logs: readonly number[], name = "") {
  return logAxis(logs, format.timeShort, name);
}

/** A vertical axis for these values, given as log10. */
export function logAxis(logs: readonly number[], tick: (value: number) => string, name = "") {
  const base = axis();
  const ys = marks(Math.min(...logs), Math.max(...logs));
  return {
    type: "value" as const,
    name,
    min: ys[0] as number,
    max: ys[ys.length - 1] as number,
    ...base,
    nameTextStyle: { ...base["nameTextStyle"], align: "left" as const },
    axisTick: { ...base["axisTick"], customValues: ys },
    axisLabel: { ...base["axisLabel"], customValues: ys, formatter: (y: number) => tick(10 ** y) },
    splitLine: { ...base["splitLine"], customValues: ys } as object,
  };
}

/** A horizontal axis with a tick at each of these values, given as log10. */
export function valuesAxis(logs: readonly number[], name: string, tick: (value: number) => string) {
  const base = axis();
  const values = [...new Set(logs)].sort((a, b) => a - b);
  const [left, right] = [values[0] ?? 0, values[values.length - 1] ?? 1];
  const room = Math.max(0.05, (right - left) * 0.06);
  return {
    type: "value" as const,
    name,
    nameLocation: "middle" as const,
    nameGap: 30,
    min: left - room,
    max: right + room,
    ...base,
    axisTick: { ...base["axisTick"], customValues: values },
    axisLabel: { ...base["axisLabel"], customValues: values, formatter: (x: number) => tick(10 ** x) },
    splitLine: { show: false },
  };
}

/** A vertical axis that starts at 0 or is logarithmic. */
export function valueAxis(name: string, tick: (value: number) => string, isLog = false) {
  const base = axis();
  return {
    ...(isLog ? { type: "log" as const } : { type: "value" as const, min: 0 }),
    name,
    ...base,
    nameTextStyle: { ...base["nameTextStyle"], align: "left" as const },
    axisLabel: { ...base["axisLabel"], formatter: (n: number) => tick(n) },
  };
}

/** A horizontal axis of seconds. */
export function secondsAxis() {
  const base = axis();
  return {
    type: "value" as const,
    min: 0,
    ...base,
    axisLabel: { ...base["axisLabel"], formatter: (s: number) => `${Number(s.toPrecision(4))} s` },
    splitLine: { show: false },
  };
}

/** A horizontal axis of rates that starts at 0. */
export function rateAxis(name: string) {
  const base = axis();
  return {
    type: "value" as const,
    name,
    nameLocation: "middle" as const,
    nameGap: 30,
    min: 0,
    ...base,
    axisLabel: { ...base["axisLabel"], formatter: (n: number) => format.rateShort(n) },
    splitLine: { show: false },
  };
}
