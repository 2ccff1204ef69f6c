//! Pure arithmetic of measuring: no clock, no socket, no process, no global randomness.
//!
//! - [`compare`]: two targets paired by block; the verdicts of a whole run.
//! - [`mod@dip`]: what an event did to a rate: how low it fell, and when it was back.
//! - [`episodes`]: how sure a quantile is when what is slow comes in episodes.
//! - [`growth`]: how a cost grows with a size: the exponent of a power law.
//! - [`histogram`]: a distribution of nanoseconds, mergeable and storable.
//! - [`interval`]: a centre with its interval over blocks, and what is doubtful about it.
//! - [`knee`]: where a store breaks when its load is raised in stages.
//! - [`search`]: the search for the highest rate within limits, probe by probe.
//! - [`steady`]: whether a phase's rate held while it was measured.
//! - [`tail`]: whether a limit holds for a share of all requests.
//! - [`times`]: times of operations of which some failed.
//! - [`units`]: printing numbers with units; reading durations and sizes.

// Here, as every other crate of the program is compiled after this one.
#[cfg(not(target_os = "linux"))]
compile_error!(
    "cachedyno runs on Linux only: use a Linux machine, a virtual machine or a container"
);

pub mod compare;
pub mod dip;
pub mod episodes;
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

pub use compare::{Comparison, Doubt, Paired, Stricter, Verdict, strict_verdicts, verdicts};
pub use dip::{Dip, dip};
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
