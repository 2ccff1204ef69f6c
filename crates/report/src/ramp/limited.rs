//! Whose limit a ramp met.

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

/// Tells whether the generator was the limit in more than half of the blocks: in the stage above
/// the knee its threads were busy, or waited for a CPU, while the server had rest.
pub(crate) fn limited(ramp: &Ramp<'_>, recorded: &Recorded) -> Option<Limited> {
    let threads = f64::from(ramp.cell.threads());
    let missed: Vec<(&Ladder<'_>, &StageResult<'_>)> =
        ramp.whole().filter_map(|ladder| Some((ladder, ladder.missed()?))).collect();
    let at_rest =
        |(ladder, seen): &&(&Ladder<'_>, &StageResult<'_>)| !served(ladder, seen, recorded);
    let busy = |(_, seen): &&(&Ladder<'_>, &StageResult<'_>)| {
        seen.generator_cpus() / threads > BUSY_SHARE_MAX
            || waited(seen.result, threads) > WAITED_SHARE_MAX
    };
    let limited: Vec<_> = missed.iter().filter(at_rest).filter(busy).collect();
    if limited.len() * 2 <= missed.len() {
        return by_null(ramp, recorded);
    }
    let (_, seen) = limited.first()?;
    let server = seen.server_cpus().map_or_else(String::new, |cpus| {
        format!(" while the server used {} of one", show::percent(cpus))
    });
    // Who waits for a CPU gains nothing from more threads.
    let cure = if waited(seen.result, threads) > WAITED_SHARE_MAX {
        "stop what else runs there, or measure on a quieter or larger machine"
    } else {
        RAMP_CURE
    };
    let why = format!(
        "the generator was the limit, in the first stage above the knee its threads used {} of \
         their CPUs and waited {} of the time for one{server}: {cure}",
        show::percent(seen.generator_cpus() / threads),
        show::percent(waited(seen.result, threads)),
    );
    Some(Limited { why })
}

/// The same where the knee is too near to what the generator reaches on a server that does nothing.
fn by_null(ramp: &Ramp<'_>, recorded: &Recorded) -> Option<Limited> {
    let (Nearness::Bound(factor), _, null) = near_null(ramp, recorded)? else { return None };
    let why = format!(
        "the generator may be the limit, it reaches {} on a null server ({} as much as the knee, \
         at least {NULL_FACTOR_MIN}× must be): {RAMP_CURE}",
        show::rate(null),
        show::ratio(factor)
    );
    Some(Limited { why })
}

/// How near the knee is to the rate that the generator reaches on the null server, and both.
pub(crate) fn near_null(ramp: &Ramp<'_>, recorded: &Recorded) -> Option<(Nearness, f64, f64)> {
    let known = recorded.null_rate(&ramp.cell.id, ramp.phase)?;
    let null = known.rate_per_s?;
    let knee = median(ramp.whole().filter_map(|ladder| Some(ladder.held()?.rate())))?;
    let threads = f64::from(ramp.cell.threads());
    // The stage above the knee was too much for whoever was the slower one.
    let above = || ramp.whole().filter_map(|ladder| ladder.missed().or_else(|| ladder.held()));
    let own_limit = || {
        let own = median(above().map(|seen| seen.generator_cpus() / threads))?;
        let server = median(above().filter_map(StageResult::server_cpus));
        null::at_its_limit((own, server), &recorded.header, &ramp.cell.target, known)
    };
    Some((null::nearness(knee, null, own_limit), knee, null))
}

/// True where the server had no rest in a stage: one of its threads was busy, or they waited for a
/// CPU. Without samples, where it used as much as one CPU. What cannot be seen had rest.
fn served(ladder: &Ladder<'_>, seen: &StageResult<'_>, recorded: &Recorded) -> bool {
    let from_ns = seen.result.begun_ns;
    let span = from_ns..from_ns + seen.result.length_ns;
    match threads_within(recorded.samples_of(ladder.trial), span) {
        Some(threads) => threads.busiest > BUSY_SHARE_MAX || threads.waited > WAITED_SHARE_MAX,
        None => seen.server_cpus().is_some_and(|cpus| cpus > BUSY_SHARE_MAX),
    }
}
