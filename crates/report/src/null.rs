//! Distinguishes the limit of the generator from that of a store, by the ratio of a rate to the
//! null rate and by the CPU usage of both.

use model::calibration::{NULL_FACTOR_CHANCE, NULL_FACTOR_MIN};
use model::{Header, NullRate, Point, Product, Trial};

use crate::blocks::median;
use crate::findings::Findings;
use crate::limits::BUSY_SHARE_MAX;
use crate::show;

/// Remedy for a ramp if the generator is the limit.
pub(crate) const RAMP_CURE: &str = "give it more threads (--threads, --set threads=N for a \
    study) and CPUs, or measure on a larger machine";

/// Remedy for other loads if the generator is the limit.
pub(crate) const NULL_CURE: &str =
    "give it more --threads and CPUs, or measure on a larger machine";

/// Ratio of the null rate to a measured rate.
pub(crate) enum Nearness {
    /// Far enough.
    Clear,
    /// Near the null rate, but the target used that share of its usable CPUs and the generator was
    /// not busy.
    OwnLimit(f64, f64),
    /// Too near the threshold to decide.
    Undecided(f64),
    /// The generator was possibly the limit.
    Bound(f64),
    /// The null server was slower than the target, so its measurement was disturbed.
    Disturbed,
}

/// CPUs that the servers of a run share; `None` without a null server.
pub(crate) fn server_cpus(header: &Header) -> Option<u32> {
    header.null_rates.iter().map(|rate| rate.server_cpus).max()
}

/// Compares `rate` with the null rate; `own_limit` returns the share of its CPUs that the target
/// used if it was the slower side ([`at_its_limit`]).
pub(crate) fn nearness(
    rate: f64,
    null_per_s: f64,
    own_limit: impl FnOnce() -> Option<f64>,
) -> Nearness {
    let factor = null_per_s / rate;
    if factor >= NULL_FACTOR_MIN * (1.0 + NULL_FACTOR_CHANCE) {
        return Nearness::Clear;
    }
    if factor < 1.0 {
        return Nearness::Disturbed;
    }
    match own_limit() {
        Some(share) => Nearness::OwnLimit(factor, share),
        None if factor >= NULL_FACTOR_MIN * (1.0 - NULL_FACTOR_CHANCE) => {
            Nearness::Undecided(factor)
        }
        None => Nearness::Bound(factor),
    }
}

/// Reports a null server that was slower than the rate described by `what`.
pub(crate) fn disturbed(what: &str, rate: f64, null_per_s: f64, findings: &mut Findings) {
    let text = format!(
        "{what} {}, but the null server only {}: its measurement was disturbed, so it is unknown \
         whether the generator was the limit; measure on a quieter machine",
        show::rate(rate),
        show::rate(null_per_s),
    );
    findings.not_steady("the null server was disturbed", text);
}

impl Nearness {
    /// The footnote for results that break no rule.
    pub(crate) fn note(&self, label: &str, cure: &str) -> Option<String> {
        match self {
            Self::OwnLimit(factor, share) => Some(format!(
                "{label}: the generator reaches only {} as much on a null server, but the target \
                 used {} of the CPUs it can use and the generator had spare CPU: the rate is the \
                 target's, and latencies include queueing in the generator",
                show::ratio(*factor),
                show::percent(*share),
            )),
            Self::Undecided(factor) => Some(format!(
                "{label}: the generator reaches {} as much on a null server, too near to \
                 {NULL_FACTOR_MIN}× to say whether it was the limit ({cure})",
                show::ratio(*factor)
            )),
            Self::Clear | Self::Bound(_) | Self::Disturbed => None,
        }
    }
}

/// The share of its usable CPUs that a target used, if it used nearly all of them while the
/// generator was not busy, so the target was the slower side. `own` are the CPUs used by a thread
/// of the generator, `server` those used by the server.
pub(crate) fn at_its_limit(
    (own, server): (f64, Option<f64>),
    header: &Header,
    target: &str,
    known: &NullRate,
) -> Option<f64> {
    let target = header.plan.target(target)?;
    // Redis executes commands on one thread, and does I/O on as many threads as are configured.
    let io_threads = target.io_threads();
    let has_one =
        target.product == Product::Redis && target.program.is_none_or(|p| p.has_one_thread);
    let usable =
        if has_one { io_threads } else { known.server_cpus }.clamp(1, known.server_cpus.max(1));
    let share = server? / f64::from(usable);
    (share > BUSY_SHARE_MAX && own <= BUSY_SHARE_MAX).then_some(share.min(1.0))
}

/// CPUs used in the median point: by a thread of the generator and, if known, by the server.
pub(crate) fn busy(points: &[(&Trial, &Point)], threads: u32) -> Option<(f64, Option<f64>)> {
    let busy = |ns: u64, length_ns: u64| ns as f64 / length_ns as f64;
    let threads = f64::from(threads.max(1));
    // A point without replies has length 0.
    let timed = || points.iter().filter(|(_, p)| p.length_ns > 0);
    let own = median(timed().map(|(_, p)| busy(p.generator_busy_ns(), p.length_ns) / threads))?;
    let seen = timed().filter_map(|(_, p)| Some(busy(p.server_cpu_ns?, p.length_ns)));
    Some((own, median(seen)))
}

/// Share of a point for which each of the generator's threads waited for a CPU.
pub(crate) fn waited(point: &Point, threads: f64) -> f64 {
    point.generator_run_delay_ns as f64 / point.length_ns.max(1) as f64 / threads
}
