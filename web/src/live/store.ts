/** State of a run in progress, built from the events that docs/FORMAT.md describes. */

/** Supported version of the events. */
export const FORMAT = 1;

/** Maximum number of points kept per kind: half an hour. */
export const KEPT = 3600;

/** Nanoseconds, or a lower bound if failed requests reach this percentile. */
export type Time = number | { at_least: number };

/** Results of one operation in a time span; latencies in nanoseconds. */
export interface PointOperation {
  operation: string;
  rate_per_s: number;
  ns_p50: Time | null;
  ns_p99: Time | null;
  errors: number;
  misses: number;
}

/** Results in a time span that ends `at_s` seconds after the start of the run; trials count from 1. */
export interface Point {
  at_s: number;
  trial: number;
  target: string;
  phase: string;
  stage?: number;
  planned_per_s?: number;
  rate_per_s: number;
  operations: PointOperation[];
}

/** Resource usage of server and generator in a time span. */
export interface Usage {
  at_s: number;
  trial: number;
  target: string;
  server_cpus?: number;
  threads: { name: string; cpus: number }[];
  server_bytes?: number;
  swapped_bytes?: number;
  generator_cpus: number;
  generator_waiting: number;
  store_bytes?: number;
  connections?: number;
  evicted_per_s?: number;
  expired_per_s?: number;
  received_per_s?: number;
  sent_per_s?: number;
}

/** The current trial. */
export interface Now {
  block: number;
  cell: string;
  target: string;
  profile: string;
  load: string;
  since_s: number;
  phase: string | null;
  stage: number | null;
}

/** State that rarely changes. */
export interface State {
  run: string;
  study: string;
  title: string;
  question: string;
  scale: string;
  tool: string;
  started_unix_ms: number;
  targets: { name: string; version: string | null; unavailable: string | null }[];
  now: Now | null;
  done_share: number;
  left_s: number | null;
  trials: number;
  failed: { cell: string; block: number; message: string }[];
  warnings: string[];
  ended: { status: string; because: string; report: boolean | null } | null;
}

/** All data of the page. */
export interface Store {
  state: State | null;
  points: Point[];
  usage: Usage[];
  /** Offset from the reader's clock to seconds since the start of the run. */
  offset_s: number;
  /** Why nothing can be shown; empty if it can. */
  problem: string;
}

/** An empty store. */
export function empty(): Store {
  return { state: null, points: [], usage: [], offset_s: 0, problem: "" };
}

function added<T>(all: readonly T[], one: T): T[] {
  return [...all.slice(Math.max(0, all.length + 1 - KEPT)), one];
}

/** The store after an event, received at `clock_s` on the reader's clock. */
export function taken(store: Store, name: string, text: string, clock_s: number): Store {
  const data: unknown = JSON.parse(text);
  if (name === "point") return { ...store, points: added(store.points, data as Point) };
  if (name === "usage") return { ...store, usage: added(store.usage, data as Usage) };
  if (name === "state") return { ...store, state: data as State };
  const { format, at_s, ...rest } = data as { format: number; at_s: number } & Pick<Store, "state" | "points" | "usage">;
  if (format !== FORMAT) {
    return { ...empty(), problem: `The program's events have format ${format}, and this page reads ${FORMAT}: reload it.` };
  }
  return { ...rest, offset_s: at_s - clock_s, problem: "" };
}

/** Completed share of the run, 0 to 1, and remaining seconds; null if unknown. */
export function progress(store: Store, clock_s: number): { done: number; left_s: number | null } {
  const { state } = store;
  if (state === null) return { done: 0, left_s: null };
  const { now, done_share, left_s } = state;
  if (state.ended !== null || now === null || left_s === null) return { done: done_share, left_s: null };
  const passed_s = Math.max(0, clock_s + store.offset_s - now.since_s);
  const share = Math.min(1, passed_s / Math.max(left_s, 0.001));
  return { done: done_share + (1 - done_share) * share, left_s: Math.max(0, left_s - passed_s) };
}
