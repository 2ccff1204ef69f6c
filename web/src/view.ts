/**
 * The judged result of a run, as the Rust crate `report` serialises it (crates/report/src/view.rs,
 * `View` with `charts`).
 *
 * Times are nanoseconds, rates operations per second, unless a name says otherwise.
 */

import type { Section } from "./blocks";

/** Version of the data that this page reads: `VIEW_FORMAT` of the crate. */
export const VIEW_FORMAT = 1;

/** May the numbers be used? */
export type Validity = "valid" | "unreplicated" | "not-steady" | "invalid";

/**
 * A centre with the ends of its 95 % interval over blocks, within what was observed; `lo` and `hi` are null below three
 * blocks.
 */
export interface Value {
  center: number;
  lo: number | null;
  hi: number | null;
  /** True for a bound: as long as `center`, or longer. */
  at_least?: true;
}

/** How operations were offered. */
export interface Load {
  arrivals: "closed" | "constant" | "poisson";
  schedule: Schedule;
  clients: number;
  /** Operations that a client may have in flight. */
  pipeline: number;
  one_session: boolean;
}

/** What is offered over time. Levels are clients where arrivals are closed, else operations a second. */
export type Schedule = { steady: number } | { stages: Stage[] } | { shares: { permille: number[]; stage_ns: number; rest_ns: number } } | { search: unknown };

/** A span of time in which a level is constant or changes evenly. */
export interface Stage {
  length_ns: number;
  from: number;
  to: number;
}

/** How operations ended; every field but `ok` counts apart from success. */
export interface Counts {
  ok: number;
  miss: number;
  /** Of the misses, those of a cache's records that nobody had removed. */
  lost: number;
  error: number;
  wrong: number;
  stale: number;
  errors_by_class: Record<string, number>;
  /** Of each class the words of one failure; absent where nothing failed. */
  error_examples?: Record<string, string>;
  lock_broken: number;
  lock_timeouts: number;
}

/** A target as measured. */
export interface TargetView {
  name: string;
  kind: string;
  product: string | null;
  place: string;
  settings: Record<string, string>;
  not_run: string | null;
  control_of: string | null;
}

/** One point of a latency curve: the time at quantile `q` (0 to 1). */
export interface CurvePoint {
  q: number;
  ns: number;
}

/** What only charts need of a row. */
export interface RowCharts {
  time_curve: CurvePoint[];
  lock_wait_curve: CurvePoint[];
  /** One series a block: operations per second in each interval. */
  rate_series: number[][];
  /** Share of reads that hit, one series a block in which any missed; null in an interval without reads. */
  hit_series: (number | null)[][];
  /** Length of an interval of `rate_series` and `hit_series`, seconds. */
  interval_s: number;
  by_block: BlockPoint[];
}

/** One row's result in one block, counted from 0; blocks that failed are not in the list. */
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
  /** `rate_per_s`, or `service_ns_mean` where think time or the mix rules the rate. */
  compared_by: string;
  metrics: Record<string, Value>;
  counts: Counts;
  footnotes: number[];
  charts?: RowCharts;
}

/** A number about a target under one load. */
export interface FactView {
  target: string;
  workload: string;
  load: Load;
  name: string;
  label: string;
  source: string;
  value: Value;
  /** The value for people. */
  shown: string;
  by_block: Record<string, number>;
  beyond: number;
}

/** Something that happened to a target. */
export interface EventView {
  target: string;
  workload: string;
  load: Load;
  block: number;
  /** Phase in whose measurement it happened; null outside of all. */
  phase: string | null;
  /** Seconds since that measurement began. */
  at_s: number;
  kind: string;
  what: string;
  subject: string;
}

/** Two targets at the same operation and load; `ratio` above 1 means that `a` is the faster. */
export interface Comparison {
  workload: string;
  operation: string;
  load: Load;
  metric: string;
  a: string;
  b: string;
  /** Blocks that have both. */
  blocks: number;
  ratio: Value;
  verdict: string;
  doubt: string | null;
}

/** How the cost of an operation grows with the size of the data set, on one target. */
export interface GrowthView {
  workload: string;
  target: string;
  operation: string;
  load: Load;
  /** What grows from point to point: the key of a point. */
  grows: "records" | "records_of_tag";
  metric: string;
  /** In rising order of size. */
  points: GrowthPoint[];
  /** Exponent of the power law; null below two sizes. */
  slope: Value | null;
  /** `does not grow`, `grows slower`, `grows in proportion`, `grows faster`, `shrinks`, `undecided`. */
  verdict: string;
}

/** One size: the profile's name with it in rows, and the mean service time. */
export interface GrowthPoint {
  workload: string;
  records: number;
  /** In the mean. */
  records_of_tag: number;
  cost: Value;
}

/** One target's ramp: its load raised in stages until it broke, and lowered again. */
export interface RampView {
  workload: string;
  /** Name of the phase. */
  operation: string;
  target: string;
  load: Load;
  /** True where operations follow each other on the same key. */
  in_pairs: boolean;
  blocks: number;
  times: "response" | "service";
  /** `found`, `never-missed`, `generator`, `never-held` or `broken`. */
  outcome: string;
  sentence: string;
  /** `reached_per_s`, `knee_per_s`, `missed_per_s`, `within_limit_per_s`, `peak_per_s`, `server_cpus`, `generator_cpus`. */
  metrics: Record<string, Value>;
  limit_ns: number | null;
  /** Left out where no control tells the place of an operation in a pair from the operation. */
  place?: PlaceView;
  at: RampPoint[];
  stages: RampStage[];
  charts?: { blocks: RampBlock[] };
}

/** What the place of an operation in a pair takes, apart from the operation. */
export interface PlaceView {
  /** In the ramp's order. */
  operations: string[];
  blocks: number;
  doubt: string | null;
  sentence: string;
  /** `rate_per_s`; `set.first.ns_p99` and the like at `first`, `second` and `apart`; ratios such as `first_by_second.ns_p99`. */
  metrics: Record<string, Value>;
}

/** A ramp at a share of its knee. */
export interface RampPoint {
  share: number;
  metrics: Record<string, Value>;
}

/** What stands for all operations of a stage. */
export const ALL = "all";

/** One stage over all blocks. */
export interface RampStage {
  number: number;
  way: "up" | "down";
  clients: number;
  blocks: number;
  /** Blocks in which it held, and requests that were due in it and never sent. */
  held: number;
  unsent: number;
  metrics: Record<string, Value>;
  /** `all` is all together. */
  operations: Record<string, { metrics: Record<string, Value>; counts: Counts }>;
}

/** One block's ramp in the course of time. */
export interface RampBlock {
  block: number;
  failed: boolean;
  stages: StageInTime[];
  saturation: Saturation | null;
}

/** A stage, in seconds since the trial began. */
export interface StageInTime {
  from_s: number;
  to_s: number;
  planned_per_s: number | null;
  clients: number;
  answered_per_s: number;
  ns_p99: number | null;
  holds: boolean;
}

/** What server and generator used: of each quantity the lowest and the highest value in spans of equal length. */
export interface Saturation {
  span_s: number;
  series: SaturationSeries[];
}

/** One quantity; `high` is absent where it is `low` everywhere. */
export interface SaturationSeries {
  panel: string;
  name: string;
  low: (number | null)[];
  high?: (number | null)[];
}

/** What a search came to; all but `found` say why its rate cannot be used, or why there is none. */
export type SearchOutcome =
  | "found"
  | "missed"
  | "not-judged"
  | "never-missed"
  | "clients"
  | "generator"
  | "unsettled"
  | "not-held"
  | "broken"
  | "nothing"
  | "ended-early";

/** What a search for the highest rate within limits found. */
export interface SearchView {
  target: string;
  limits: string[];
  outcome: SearchOutcome;
  sentence: string;
  answer: Value | null;
  peak_per_s: number | null;
  /** What each block found by itself. */
  by_block: { block: number; outcome: SearchOutcome; answer: Value | null }[];
  /** All probes. */
  tried: number;
  /** Rests among all probes; those at which the store had come to rest are not among `probes`. */
  rests: number;
  probes: ProbeView[];
}

/** What a probe says of the limits. */
export type ProbeVerdict = "holds" | "missed" | "undecided" | "broke";

/** One probe of a search. */
export interface ProbeView {
  block: number;
  number: number;
  purpose: "peak" | "rest" | "bracket" | "confirm" | "hold";
  rate_per_s: number | null;
  length_s: number;
  answered_per_s: number;
  response_ns_p50: number | Value | null;
  response_ns_p99: number | Value | null;
  error_share: number | null;
  taken_share: number;
  /** Share of requests beyond each limit; empty at the peak. */
  beyond: { limit: string; share: number }[];
  /** Null where nothing is judged. */
  verdict: ProbeVerdict | null;
  reason: "queue grew" | "still slow" | "others had CPUs" | "generator late" | null;
  /** Why it ended before its time. */
  failure: string | null;
}

/** A judged statement. */
export interface ClaimView {
  id: string;
  text: string;
  source: string;
  workload: string | null;
  expected: string;
  measured: Value | null;
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

/** All targets by the study's weights, best first, for the sizes of shop that mean the same load. */
export interface RankingView {
  sizes: string[];
  clients: number;
  workload: string;
  /** Why nothing of the order is decided; null where something may be. */
  doubt: string | null;
  targets: RankedView[];
  rates?: TargetRates[];
}

/** A target's place; `ratio` is how many times the best one's score is its own. */
export interface RankedView {
  target: string;
  ratio: Value | null;
  verdict: string | null;
}

/** A target's operations per second, by operation and block. */
export interface TargetRates {
  target: string;
  by_operation: Record<string, Record<string, number>>;
  /** The same by wall time, of which the clients' own work between calls is a part. */
  by_wall: Record<string, Record<string, number>>;
}

/** A trial that has no (complete) result. */
export interface FailureView {
  block: number;
  /** Absent where all of the trial failed. */
  probe?: number;
  cell: string;
  target: string;
  class: string;
  reason: string;
  /** The last lines of the server's log, joined by ` | `; null where there are none, or an earlier failure has them. */
  log: string | null;
}

/** What disturbed the run. */
export interface NoiseView {
  name: string;
  median: string;
  worst: string;
  meaning: string;
}

/** One stated fact about host or server. */
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

/** Some words of a sentence: `target` ones name a store, `figure` ones are numbers, `doubt` ones say that something is not known. */
export interface Piece {
  text: string;
  style: "plain" | "target" | "figure" | "doubt";
}

/** A sentence without its full stop; `place` is the profile and load that it is about, empty for the whole run. */
export interface Sentence {
  place: string;
  pieces: Piece[];
}

/** What was found: in short, and for each profile and load where the summary does not say as much. */
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
  /** What is shown below the answer. */
  sheet: Section[];
  validity: Validity;
  reasons: string[];
  /** What was not steady, in a few words each. */
  unsteady: string[];
  status: string;
  stopped_because: string;
  started_unix_ms: number;
  took_s: number;
  blocks: number;
  /** All digits of a 64-bit number, which a JavaScript number cannot hold. */
  seed: string;
  tool: string;
  command: string[];
  equivalence_zone: number;
  /** Blocks below which nothing is decided. */
  fewest_blocks: number;
  generation: Record<string, string>;
  /** What data each profile of an application cache has; absent in other runs. */
  data?: Record<string, string>;
  /** True where the run was interrupted and taken up again. */
  resumed?: boolean;
  targets: TargetView[];
  cells: Row[];
  comparisons: Comparison[];
  /** Absent where no profile measured several sizes. */
  growth?: GrowthView[];
  facts?: FactView[];
  events?: EventView[];
  /** Absent where no load was raised in stages. */
  ramps?: RampView[];
  /** Absent where nothing was searched for. */
  searches?: SearchView[];
  claims: ClaimView[];
  advice: AdviceView[];
  advice_basis: string | null;
  advice_weights: Record<string, number>;
  rankings: RankingView[];
  failures: FailureView[];
  noise: NoiseView[];
  conditions: { facts: Condition[] };
  /** Those that no row points to concern the whole run. */
  footnotes: string[];
  rules: Rule[];
}
