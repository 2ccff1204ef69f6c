/**
 * The judged result of a run, as serialized by the Rust crate `report` (crates/report/src/view.rs,
 * `View` with `charts`).
 *
 * Times are nanoseconds, rates operations per second, unless a name says otherwise.
 */

import type { Section } from "./blocks";
import type { FailoverView } from "./faultview";
import type { GridView } from "./gridview";
import type { SearchView } from "./searchview";
import type { ServerCharts } from "./serverview";

/** Format version that this page reads: `VIEW_FORMAT` of the crate. */
export const VIEW_FORMAT = 1;

/** Validity of a run. */
export type Validity = "valid" | "unreplicated" | "not-steady" | "invalid";

/**
 * A centre with the bounds of its 95 % interval over blocks, within the observed range; `lo` and `hi` are null with
 * fewer than three blocks.
 */
export interface Value {
  center: number;
  lo: number | null;
  hi: number | null;
  /** True for a lower bound: `center` or longer. */
  at_least?: true;
}

/** The load. */
export interface Load {
  arrivals: "closed" | "constant" | "poisson";
  schedule: Schedule;
  clients: number;
  /** Maximum operations in flight per client. */
  pipeline: number;
  one_session: boolean;
}

/** Offered load over time. Levels are clients for closed arrivals, otherwise operations per second. */
export type Schedule = { steady: number } | { share: number } | { stages: Stage[] } | { shares: { permille: number[]; stage_ns: number; rest_ns: number } } | { search: unknown };

/** A time span with a constant or linearly changing level. */
export interface Stage {
  length_ns: number;
  from: number;
  to: number;
}

/** Outcomes of operations; all fields except `ok` count as not successful. */
export interface Counts {
  ok: number;
  miss: number;
  /** Misses of cache records that no client had removed. */
  lost: number;
  error: number;
  wrong: number;
  stale: number;
  errors_by_class: Record<string, number>;
  /** One error message per class; absent without failures. */
  error_examples?: Record<string, string>;
  lock_broken: number;
  lock_timeouts: number;
}

/** A measured target. */
export interface TargetView {
  name: string;
  kind: string;
  product: string | null;
  place: string;
  settings: Record<string, string>;
  not_run: string | null;
  control_of: string | null;
}

/** One point of a latency curve: the latency at quantile `q` (0 to 1). */
export interface CurvePoint {
  q: number;
  ns: number;
}

/** Data of a row for charts. */
export interface RowCharts {
  time_curve: CurvePoint[];
  lock_wait_curve: CurvePoint[];
  /** One series per block: operations per second in each interval. */
  rate_series: number[][];
  /** 99th percentile of the response time, one series per block: seconds at the end of an interval, and nanoseconds. */
  p99_series: [number, number][][];
  /** Failed operations per second in the intervals of `rate_series`, one series per block; empty if none failed. */
  failed_series: number[][];
  /** Hit ratio of reads, one series per block with misses; null for an interval without reads. */
  hit_series: (number | null)[][];
  /** Length of an interval of `rate_series` and `hit_series`, seconds. */
  interval_s: number;
  /** Absent unless the memory of the target is limited. */
  resources?: ResourceCharts;
  /** Absent unless the plan caused a fault. */
  servers?: ServerCharts;
  by_block: BlockPoint[];
}

/** Memory and disk over time: one series per block, null without samples. */
export interface ResourceCharts {
  interval_s: number;
  memory_bytes: (number | null)[][];
  swapped_bytes: (number | null)[][];
  read_bytes_per_s: (number | null)[][];
  written_bytes_per_s: (number | null)[][];
}

/** A row's result in one block (from 0); failed blocks are not in the list. */
export interface BlockPoint {
  block: number;
  rate_per_s: number;
  ok: number;
}

/** Target × workload × load × operation. */
export interface Row {
  target: string;
  product: string | null;
  workload: string;
  operation: string;
  load: Load;
  blocks: number;
  /** `rate_per_s`, or `service_ns_mean` if think time or the mix determines the rate. */
  compared_by: string;
  metrics: Record<string, Value>;
  counts: Counts;
  footnotes: number[];
  charts?: RowCharts;
}

/** A statistic of a target under one load. */
export interface FactView {
  target: string;
  workload: string;
  load: Load;
  name: string;
  label: string;
  source: string;
  value: Value;
  /** The formatted value. */
  shown: string;
  by_block: Record<string, number>;
  beyond: number;
}

/** An event of a target. */
export interface EventView {
  target: string;
  workload: string;
  load: Load;
  block: number;
  /** Phase during whose measurement it happened; null outside all phases. */
  phase: string | null;
  /** Seconds since the start of that measurement. */
  at_s: number;
  kind: string;
  what: string;
  /** Address of the affected server; empty if the target is one server. */
  subject: string;
  /** The primary that a promoted server replaces. */
  in_place_of?: string;
}

/** Comparison of two targets at the same operation and load; `ratio` above 1 means that `a` is faster. */
export interface Comparison {
  workload: string;
  operation: string;
  load: Load;
  metric: string;
  a: string;
  b: string;
  /** Blocks with both targets. */
  blocks: number;
  ratio: Value;
  verdict: string;
  doubt: string | null;
}

/** Growth of an operation's cost with the size of the data set, on one target. */
export interface GrowthView {
  workload: string;
  target: string;
  operation: string;
  load: Load;
  /** The size that grows from point to point. */
  grows: "records" | "records_of_tag";
  metric: string;
  /** In ascending order of size. */
  points: GrowthPoint[];
  /** Exponent of the power law; null with fewer than two sizes. */
  slope: Value | null;
  /** `does not grow`, `grows slower`, `grows in proportion`, `grows faster`, `shrinks`, `undecided`. */
  verdict: string;
}

/** One size: the name of its profile in rows, and the mean service time. */
export interface GrowthPoint {
  workload: string;
  records: number;
  /** Mean number; omitted without tags. */
  records_of_tag?: number;
  cost: Value;
}

/** One target's ramp: the load rises in stages until the store fails, and falls again. */
export interface RampView {
  workload: string;
  /** Name of the phase. */
  operation: string;
  target: string;
  load: Load;
  /** True if operations follow each other on the same key. */
  in_pairs: boolean;
  blocks: number;
  times: "response" | "service";
  /** `found`, `never-missed`, `generator`, `never-held` or `broken`. */
  outcome: string;
  sentence: string;
  /** `reached_per_s`, `knee_per_s`, `missed_per_s`, `within_limit_per_s`, `peak_per_s`, `server_cpus`, `generator_cpus`. */
  metrics: Record<string, Value>;
  limit_ns: number | null;
  /** Omitted without a control that separates the effect of order from that of the operation. */
  place?: PlaceView;
  /** How a cache in front of a database helps it; omitted without one. Rates, and the share of hits. */
  helps?: { alone: string; blocks: number; sentence: string; metrics: Record<string, Value> };
  at: RampPoint[];
  stages: RampStage[];
  charts?: { blocks: RampBlock[] };
}

/** Effect of an operation's position in a pair. */
export interface PlaceView {
  /** In the order of the ramp. */
  operations: string[];
  blocks: number;
  doubt: string | null;
  sentence: string;
  /** `rate_per_s`; `set.first.ns_p99` and the like at `first`, `second` and `apart`; ratios such as `first_by_second.ns_p99`. */
  metrics: Record<string, Value>;
}

/** The state of a ramp at a share of its knee. */
export interface RampPoint {
  share: number;
  metrics: Record<string, Value>;
}

/** Name for all operations of a stage together. */
export const ALL = "all";

/** A stage over all blocks. */
export interface RampStage {
  number: number;
  way: "up" | "down";
  clients: number;
  blocks: number;
  /** Blocks in which it passed, and requests that were due but never sent. */
  held: number;
  unsent: number;
  metrics: Record<string, Value>;
  /** `all` is the total. */
  operations: Record<string, { metrics: Record<string, Value>; counts: Counts }>;
}

/** The ramp of one block over time. */
export interface RampBlock {
  block: number;
  failed: boolean;
  stages: StageInTime[];
  saturation: Saturation | null;
}

/** A stage, in seconds since the start of the trial. */
export interface StageInTime {
  from_s: number;
  to_s: number;
  planned_per_s: number | null;
  clients: number;
  answered_per_s: number;
  ns_p99: number | null;
  holds: boolean;
}

/** Resource usage of server and generator: the lowest and the highest value of each quantity in spans of equal length. */
export interface Saturation {
  span_s: number;
  series: SaturationSeries[];
}

/** Samples of one quantity; `high` is absent if it equals `low` everywhere. */
export interface SaturationSeries {
  panel: string;
  name: string;
  low: (number | null)[];
  high?: (number | null)[];
}

/** A judged statement. */
export interface ClaimView {
  id: string;
  text: string;
  source: string;
  source_value?: string;
  workload: string | null;
  /** About tables that the source publishes, not about this run. */
  of_tables?: boolean;
  expected: string;
  measured: Value | null;
  unit: "ratio" | "clients" | "ns" | "exponent" | "per_s" | "share" | "bytes" | "count";
  /** `measured` with its unit and interval. */
  shown: string | null;
  verdict: string;
  note: string;
}

/** A row of the recommendation table. */
export interface AdviceView {
  shop: string;
  size: string;
  clients: number;
  factory: string;
  source_recommends: string;
  recommended: string | null;
  why: string;
  agreement: string;
}

/** All targets by the study's weights, best first, for shop sizes with the same load. */
export interface RankingView {
  sizes: string[];
  clients: number;
  workload: string;
  /** Why the order is undecided; null if it can be decided. */
  doubt: string | null;
  targets: RankedView[];
  rates?: TargetRates[];
}

/** A target's rank; `ratio` is the best score divided by its own. */
export interface RankedView {
  target: string;
  ratio: Value | null;
  verdict: string | null;
}

/** A target's rates by operation and block, operations per second. */
export interface TargetRates {
  target: string;
  by_operation: Record<string, Record<string, number>>;
  /** The same by wall time, including the clients' own work between calls. */
  by_wall: Record<string, Record<string, number>>;
}

/** A trial without a complete result. */
export interface FailureView {
  block: number;
  /** Absent if the whole trial failed. */
  probe?: number;
  cell: string;
  workload: string;
  /** Absent if the whole trial failed. */
  phase?: string;
  target: string;
  class: string;
  reason: string;
  /** Last lines of the server's log, joined by ` | `; null without any, or if an earlier failure has them. */
  log: string | null;
}

/** Disturbances of the run. */
export interface NoiseView {
  name: string;
  median: string;
  worst: string;
  meaning: string;
}

/** A fact about host or server. */
export interface Condition {
  group: string;
  name: string;
  value: string;
  warning: string | null;
}

/** A fixed rule that decides the validity of a run. */
export interface Rule {
  name: string;
  limit: string;
  meaning: string;
}

/** Part of a sentence: `target` names a store, `figure` is a number, `doubt` says that something is unknown. */
export interface Piece {
  text: string;
  style: "plain" | "target" | "figure" | "doubt";
}

/** A sentence without its full stop; `place` is its profile and load, empty for the whole run. */
export interface Sentence {
  place: string;
  pieces: Piece[];
}

/** The answer: a summary, and details per profile and load if the summary does not include them. */
export interface Answer {
  summary: Sentence[];
  places?: Sentence[];
}

/** The judged result of a run. */
export interface View {
  format: number;
  run: string;
  study: string;
  title: string;
  question: string;
  source: string;
  scale: string;
  profiles: string[];
  answer: Answer;
  /** The sections below the answer. */
  sheet: Section[];
  validity: Validity;
  reasons: string[];
  /** Short descriptions of what was not steady. */
  unsteady: string[];
  status: string;
  stopped_because: string;
  started_unix_ms: number;
  took_s: number;
  blocks: number;
  /** All digits of a 64-bit number, which does not fit in a JavaScript number. */
  seed: string;
  tool: string;
  command: string[];
  equivalence_zone: number;
  /** Minimum number of blocks for a decision. */
  fewest_blocks: number;
  generation: Record<string, string>;
  /** Data of each profile of an application cache; absent in other runs. */
  data?: Record<string, string>;
  /** True if the run was interrupted and resumed. */
  resumed?: boolean;
  targets: TargetView[];
  cells: Row[];
  comparisons: Comparison[];
  /** Absent if no profile measured several sizes. */
  growth?: GrowthView[];
  facts?: FactView[];
  events?: EventView[];
  /** Absent if the plan caused no fault. */
  failovers?: FailoverView[];
  /** Absent if no rows form a grid. */
  grids?: GridView[];
  /** Absent if no load has stages. */
  ramps?: RampView[];
  /** Absent without a search. */
  searches?: SearchView[];
  claims: ClaimView[];
  advice: AdviceView[];
  advice_basis: string | null;
  advice_weights: Record<string, number>;
  rankings: RankingView[];
  failures: FailureView[];
  noise: NoiseView[];
  conditions: { facts: Condition[] };
  /** Footnotes without a reference concern the whole run. */
  footnotes: string[];
  rules: Rule[];
}
