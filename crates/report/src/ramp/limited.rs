//! Whether the generator was the limit of a ramp.

use model::calibration::NULL_FACTOR_MIN;

use super::ladder::{Ladder, Ramp, StageResult};
use super::saturation::threads_within;
use crate::blocks::median;
use crate::limits::{BUSY_SHARE_MAX, WAITED_SHARE_MAX};
use crate::null::{self, Nearness, RAMP_CURE, waited};
use crate::recorded::Recorded;
use crate::show;

/// Why the generator was the limit.
pub(crate) struct Limited {
    pub(crate) why: String,
}

/// The generator as the limit in more than half of the blocks: in the stage above the knee its
/// threads were busy or waited for a CPU, while the server was partly idle.
pub(crate) fn limited(ramp: &Ramp<'_>, recorded: &Recorded) -> Option<Limited> {
    let threads = f64::from(ramp.cell.threads());
    let missed: Vec<(&Ladder<'_>, &StageResult<'_>)> =
        ramp.whole().filter_map(|ladder| Some((ladder, ladder.first_failing()?))).collect();
    let server_idle =
        |(ladder, seen): &&(&Ladder<'_>, &StageResult<'_>)| !is_saturated(ladder, seen, recorded);
    let busy = |(_, seen): &&(&Ladder<'_>, &StageResult<'_>)| {
        seen.generator_cpus() / threads > BUSY_SHARE_MAX
            || waited(seen.result, threads) > WAITED_SHARE_MAX
    };
    let limited: Vec<_> = missed.iter().filter(server_idle).filter(busy).collect();
    if limited.len() * 2 <= missed.len() {
        return by_null(ramp, recorded);
    }
    let (_, seen) = limited.first()?;
    let server = seen.server_cpus().map_or_else(String::new, |cpus| {
        format!(" while the server used {} of one", show::percent(cpus))
    });
    // More threads do not help if threads already wait for a CPU.
    let cure = if waited(seen.result, threads) > WAITED_SHARE_MAX {
        "stop other processes on its CPUs, or measure on a quieter or larger machine"
    } else {
        RAMP_CURE
    };
    let why = format!(
        "the generator was the limit: in the first stage above the knee its threads used {} of \
         their CPUs and waited {} of the time for one{server}; {cure}",
        show::percent(seen.generator_cpus() / threads),
        show::percent(waited(seen.result, threads)),
    );
    Some(Limited { why })
}

/// The same if the knee is too close to the generator's rate on the null server.
fn by_null(ramp: &Ramp<'_>, recorded: &Recorded) -> Option<Limited> {
    let (Nearness::Bound(factor), _, null) = near_null(ramp, recorded)? else { return None };
    let why = format!(
        "the generator may be the limit: it reaches {} on a null server ({} the knee, must be at \
         least {NULL_FACTOR_MIN}×); {RAMP_CURE}",
        show::rate(null),
        show::ratio(factor)
    );
    Some(Limited { why })
}

/// Closeness of the knee to the null rate, and both rates.
pub(crate) fn near_null(ramp: &Ramp<'_>, recorded: &Recorded) -> Option<(Nearness, f64, f64)> {
    let known = recorded.null_rate(&ramp.cell.id, ramp.phase)?;
    let null = known.rate_per_s?;
    let knee = median(ramp.whole().filter_map(|ladder| Some(ladder.last_passing()?.rate())))?;
    let threads = f64::from(ramp.cell.threads());
    // The stage above the knee exceeded either the store's or the generator's limit.
    let above = || {
        ramp.whole().filter_map(|ladder| ladder.first_failing().or_else(|| ladder.last_passing()))
    };
    let own_limit = || {
        let own = median(above().map(|seen| seen.generator_cpus() / threads))?;
        let server = median(above().filter_map(StageResult::server_cpus));
        null::at_its_limit((own, server), &recorded.header, &ramp.cell.target, known)
    };
    Some((null::nearness(knee, null, own_limit), knee, null))
}

/// True if the server was saturated in a stage: a thread was busy, or threads waited for a CPU.
/// Without samples, if it used a whole CPU. False if unknown.
fn is_saturated(ladder: &Ladder<'_>, seen: &StageResult<'_>, recorded: &Recorded) -> bool {
    let from_ns = seen.result.begun_ns;
    let span = from_ns..from_ns + seen.result.length_ns;
    match threads_within(recorded.samples_of(ladder.trial), span) {
        Some(threads) => threads.busiest > BUSY_SHARE_MAX || threads.waited > WAITED_SHARE_MAX,
        None => seen.server_cpus().is_some_and(|cpus| cpus > BUSY_SHARE_MAX),
    }
}
