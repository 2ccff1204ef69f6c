//! Statistics of measurements: no clock, no socket, no process, no global randomness.
//!
//! - [`compare`]: paired comparison of two targets; the verdicts of a whole run.
//! - [`mod@back_within`]: when a latency is within a limit again after an event.
//! - [`mod@dip`]: effect of an event on a rate: lowest value and recovery time.
//! - [`mod@erratic`]: variation of a rate over time.
//! - [`episodes`]: confidence of a quantile when slow requests come in episodes.
//! - [`growth`]: growth of a cost with a size: the exponent of a power law.
//! - [`histogram`]: a distribution of nanoseconds that can be merged and stored.
//! - [`interval`]: center and confidence interval over blocks, with warnings.
//! - [`knee`]: the knee of a load that rises in stages.
//! - [`search`]: the search for the highest rate within limits, probe by probe.
//! - [`steady`]: steadiness of a phase's rate.
//! - [`tail`]: decides whether a share of all requests is within a limit.
//! - [`times`]: latencies of operations, some of which failed.
//! - [`units`]: formatting of numbers with units; parsing of durations, sizes and counts.

// In this crate, because it is compiled before all others.
#[cfg(not(target_os = "linux"))]
compile_error!(
    "cachedyno runs on Linux only: use a Linux machine, a virtual machine or a container"
);

pub mod back_within;
pub mod compare;
pub mod crossover;
pub mod dip;
pub mod episodes;
pub mod erratic;
pub mod growth;
pub mod histogram;
pub mod interval;
pub mod knee;
pub mod search;
pub mod steady;
pub mod tail;
pub mod times;
pub mod units;

mod random;
mod student;

pub use back_within::{BackWithin, back_within};
pub use compare::{Comparison, Doubt, Paired, Stricter, Verdict, strict_verdicts, verdicts};
pub use crossover::{Crossing, crossover};
pub use dip::{Dip, dip};
pub use erratic::{Erratic, erratic};
pub use growth::{Growth, Slope, power_law_slope, slope_over_blocks};
pub use histogram::Histogram;
pub use interval::{Estimate, Interval, IntervalError, Warning, geometric_mean_interval};
pub use random::{GOLDEN, SplitMix64, scatter};
pub use steady::{Steady, is_steady};
pub use student::widening;
pub use times::{Time, Times};
pub use units::{
    Unit, UnitError, append_number, format_bytes, format_ns, format_percent, format_rate,
    format_ratio, format_value_with_interval, parse_bytes, parse_count, parse_duration_ns,
};
