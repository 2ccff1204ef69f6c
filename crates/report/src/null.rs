//! What tells the limit of the generator from that of a store: how near a rate is to what the
//! generator reaches on a server that does nothing, and who was busy.

use model::calibration::{NULL_FACTOR_CHANCE, NULL_FACTOR_MIN};
use model::{Header, NullRate, Point, Product, Trial};

use crate::blocks::median;
use crate::findings::Findings;
use crate::limits::BUSY_SHARE_MAX;
use crate::show;

/// What a larger generator takes for a ramp.
pub(crate) const RAMP_CURE: &str =
    "give it more threads (--set threads=N) and CPUs, or measure on a larger machine";

/// What a larger generator takes elsewhere.
pub(crate) const NULL_CURE: &str =
    "give it more --threads and CPUs, or measure on a larger machine";

/// How near a rate is to what the generator reaches on the null server, in factors.
pub(crate) enum Nearness {
    /// Far enough.
    Clear,
    /// Near, but the target used that share of the CPUs it can use, and the generator had rest.
    OwnLimit(f64, f64),
    /// Too near to the limit to say.
    Undecided(f64),
    /// The generator may have been the limit.
    Bound(f64),
    /// The null server was slower, so that something disturbed it.
    Disturbed,
}

/// How near `rate` is to the null server's; `own_limit` tells the share of its CPUs that the target
/// used where it was seen to be the slower one ([`at_its_limit`]).
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

/// Finds fault with a null server that was slower than `what` is said of.
pub(crate) fn disturbed(what: &str, rate: f64, null_per_s: f64, findings: &mut Findings) {
    let text = format!(
        "{what} {}, the null server only {}, so its measurement was disturbed and whether the \
         generator was the limit is not known: measure on a quieter machine",
        show::rate(rate),
        show::rate(null_per_s),
    );
    findings.not_steady("the null server was disturbed", text);
}

impl Nearness {
    /// The footnote where nothing follows from it.
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

/// The share that a target used of the CPUs it can use, where it used nearly all of them while the
/// generator had rest: that is seen, not inferred, so the target was the slower one. `own` are the
/// CPUs that a thread of the generator used, `server` those of the server.
pub(crate) fn at_its_limit(
    (own, server): (f64, Option<f64>),
    header: &Header,
    target: &str,
    known: &NullRate,
) -> Option<f64> {
    let target = header.plan.target(target)?;
    // Redis carries commands out on one thread, and reads and writes on as many as it is told.
    let io_threads = target.settings.iter().find(|(name, _)| name.ends_with("io-threads"));
    let io_threads = io_threads.and_then(|(_, count)| count.parse::<u32>().ok()).unwrap_or(1);
    let has_one =
        target.product == Product::Redis && target.program.is_none_or(|p| p.has_one_thread);
    let usable =
        if has_one { io_threads } else { known.server_cpus }.clamp(1, known.server_cpus.max(1));
    let share = server? / f64::from(usable);
    (share > BUSY_SHARE_MAX && own <= BUSY_SHARE_MAX).then_some(share.min(1.0))
}

/// CPU time by time in the median point: of a thread of the generator, and of the server, in CPUs,
/// where it can be seen.
pub(crate) fn busy(points: &[(&Trial, &Point)], threads: u32) -> Option<(f64, Option<f64>)> {
    let busy = |ns: u64, length_ns: u64| ns as f64 / length_ns as f64;
    let threads = f64::from(threads.max(1));
    // Where nothing was answered there is no time to set it against.
    let timed = || points.iter().filter(|(_, p)| p.length_ns > 0);
    let own = median(timed().map(|(_, p)| busy(p.generator_cpu_ns, p.length_ns) / threads))?;
    let seen = timed().filter_map(|(_, p)| Some(busy(p.server_cpu_ns?, p.length_ns)));
    Some((own, median(seen)))
}

/// Share of a point for which each of the generator's threads waited for a CPU.
pub(crate) fn waited(point: &Point, threads: f64) -> f64 {
    point.generator_run_delay_ns as f64 / point.length_ns.max(1) as f64 / threads
}
