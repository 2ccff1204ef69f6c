/** What clients noticed of the faults of one cell (crates/report/src/view/failover.rs). */

/** Windows of a fault in nanoseconds: one for each fault, ascending, without those that outlasted the measurement. */
export interface SpreadView {
  median: number | null;
  worst: number | null;
  all: number[];
}

/** The faults of one cell. */
export interface FailoverView {
  target: string;
  workload: string;
  fault: string;
  /** Number of faults, including those of failed trials. */
  faults: number;
  /** Faults whose trials failed, so they have no windows. */
  failed: number;
  reads_unavailable_ns: SpreadView | null;
  writes_unavailable_ns: SpreadView | null;
  rate_back_ns: SpreadView | null;
  p99_back_ns: SpreadView | null;
}
