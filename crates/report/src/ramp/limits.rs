//! Whose limit a ramp met, and what of it breaks a rule. That requests fail or wait beyond the knee
//! is what a ramp is for.

use model::Counts;
use model::calibration::NULL_FACTOR_MIN;
use stats::knee::{ERROR_SHARE, Stage, Way};

use super::{Climb, Ramp, Seen, planned};
use crate::notes::Notes;
use crate::null::{self, Nearness};
use crate::ramp::saturation::threads_within;
use crate::recorded::Recorded;
use crate::rules::{BUSY_SHARE_MAX, NOISY_TRIALS_MAX};
use crate::show;
use crate::taken;
use crate::validity::{Findings, classes, median};
use crate::view::RampView;

/// Share of a stage for which threads may wait for a CPU: with more, a generator was not there to
/// send, and a server not there to answer.
const WAITED_SHARE_MAX: f64 = 0.1;

/// Share of the stages of a way up that may contradict its knee.
const AGAINST_SHARE_MAX: f64 = 0.1;
/// Share of the 99th percentile at the knee that may be the requests' lag.
const LAG_SHARE_NOTE: f64 = 0.5;

/// Why the generator was the limit.
pub(crate) struct Limited {
    pub(crate) why: String,
}

/// Tells whether the generator was the limit in more than half of the blocks: in the stage above
/// the knee its threads were busy, or waited for a CPU, while the server had rest.
pub(crate) fn limited(ramp: &Ramp<'_>, recorded: &Recorded) -> Option<Limited> {
    let threads = f64::from(ramp.cell.threads());
    let missed: Vec<(&Climb<'_>, &Seen<'_>)> =
        ramp.whole().filter_map(|climb| Some((climb, climb.missed()?))).collect();
    let at_rest = |(climb, seen): &&(&Climb<'_>, &Seen<'_>)| !served(climb, seen, recorded);
    let busy = |(_, seen): &&(&Climb<'_>, &Seen<'_>)| {
        seen.generator_cpus() / threads > BUSY_SHARE_MAX || waited(seen, threads) > WAITED_SHARE_MAX
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
    let cure = if waited(seen, threads) > WAITED_SHARE_MAX {
        "stop what else runs there, or measure on a quieter or larger machine"
    } else {
        CURE
    };
    let why = format!(
        "the generator was the limit, in the first stage above the knee its threads used {} of \
         their CPUs and waited {} of the time for one{server}: {cure}",
        show::percent(seen.generator_cpus() / threads),
        show::percent(waited(seen, threads)),
    );
    Some(Limited { why })
}

/// The same where the knee is too near to what the generator reaches on a server that does nothing.
fn by_null(ramp: &Ramp<'_>, recorded: &Recorded) -> Option<Limited> {
    let (Nearness::Bound(factor), _, null) = near_null(ramp, recorded)? else { return None };
    let why = format!(
        "the generator may be the limit, it reaches {} on a null server ({} as much as the knee, \
         at least {NULL_FACTOR_MIN}× must be): {CURE}",
        show::rate(null),
        show::ratio(factor)
    );
    Some(Limited { why })
}

/// What a larger generator takes.
const CURE: &str =
    "give it more threads (--set threads=N) and CPUs, or measure on a larger machine";

/// How near the knee is to the rate that the generator reaches on the null server, and both.
fn near_null(ramp: &Ramp<'_>, recorded: &Recorded) -> Option<(Nearness, f64, f64)> {
    let known = recorded.null_rate(&ramp.cell.id, ramp.phase)?;
    let null = known.rate_per_s?;
    let knee = median(ramp.whole().filter_map(|climb| Some(climb.held()?.rate())))?;
    let threads = f64::from(ramp.cell.threads());
    // The stage above the knee was too much for whoever was the slower one.
    let above = || ramp.whole().filter_map(|climb| climb.missed().or_else(|| climb.held()));
    let own_limit = || {
        let own = median(above().map(|seen| seen.generator_cpus() / threads))?;
        let server = median(above().filter_map(Seen::server_cpus));
        null::at_its_limit((own, server), &recorded.header, &ramp.cell.target, known)
    };
    Some((null::nearness(knee, null, own_limit), knee, null))
}

fn waited(seen: &Seen<'_>, threads: f64) -> f64 {
    seen.result.generator_run_delay_ns as f64 / seen.result.length_ns as f64 / threads
}

/// True where the server had no rest in a stage: one of its threads was busy, or they waited for a
/// CPU. Without samples, where it used as much as one CPU. What cannot be seen had rest.
fn served(climb: &Climb<'_>, seen: &Seen<'_>, recorded: &Recorded) -> bool {
    let from_ns = seen.result.begun_ns;
    let span = from_ns..from_ns + seen.result.length_ns;
    match threads_within(recorded.samples_of(climb.trial), span) {
        Some(threads) => threads.busiest > BUSY_SHARE_MAX || threads.waited > WAITED_SHARE_MAX,
        None => seen.server_cpus().is_some_and(|cpus| cpus > BUSY_SHARE_MAX),
    }
}

/// Rules and footnotes.
pub(crate) fn check(
    ramp: &Ramp<'_>,
    view: &RampView,
    recorded: &Recorded,
    findings: &mut Findings,
    notes: &mut Notes,
) {
    let place = format!("`{}`", ramp.cell.id);
    match near_null(ramp, recorded) {
        Some((Nearness::Disturbed, knee, null)) => {
            null::disturbed(&format!("{place}: the knee is"), knee, null, findings);
        }
        Some((near, ..)) => near.note(&place, CURE).into_iter().for_each(|note| {
            notes.add(note);
        }),
        None => {}
    }
    let mut counts = Counts::default();
    for climb in &ramp.climbs {
        for point in &climb.trial.points {
            point.whole().into_iter().for_each(|whole| counts.merge(&whole.counts));
            counts.merge(&point.warmup);
        }
    }
    if view.outcome == "never-held" {
        findings.invalid.push(view.sentence.clone());
    }
    let mut note = |n: u64, what: &str| {
        if n > 0 {
            notes.add(format!("{place}: {n} of {} operations {what}", counts.total()));
        }
    };
    note(counts.miss, "found nothing: the server had removed the key, or its lifetime was over");
    note(counts.error, &format!("failed: {}", classes(&counts)));
    let points = ramp.climbs.iter().flat_map(|climb| &climb.trial.points);
    let unsent: u64 = points.map(|point| point.unsent).sum();
    if unsent > 0 {
        notes.add(format!(
            "{place}: {unsent} more operations were due and never sent: they waited for a client \
             until the time-out (--timeout) had passed; stages count them as failed"
        ));
    }
    check_knees(ramp, &place, findings, notes);
    check_taken(ramp, &place, findings, notes);
    check_way_back(ramp, &place, notes);
}

/// What others took of the CPUs below the knee, and how long the generator waited for its own.
fn check_taken(ramp: &Ramp<'_>, place: &str, findings: &mut Findings, notes: &mut Notes) {
    taken::note_ramp(ramp, place, notes);
    let waited = waited_up_to_knee(ramp);
    if waited > WAITED_SHARE_MAX {
        let words = format!(
            "{place}: up to the knee the generator waited {} of the time for a CPU: stop what else \
             runs there, give it CPUs of its own, or measure on a quieter machine",
            show::percent(waited)
        );
        findings.not_steady("the generator had no CPU", words);
    }
}

/// Share of the time for which the generator's threads waited for a CPU, over the stages of whole
/// climbs that are no higher than the knee, or the lowest.
fn waited_up_to_knee(ramp: &Ramp<'_>) -> f64 {
    let below = ramp.whole().flat_map(Climb::up_to_knee);
    let shares: Vec<f64> = below.map(|seen| waited(seen, f64::from(ramp.cell.threads()))).collect();
    shares.iter().sum::<f64>() / shares.len().max(1) as f64
}

/// That the store did not come back: on the way down stages no higher than the knee did not hold.
fn check_way_back(ramp: &Ramp<'_>, place: &str, notes: &mut Notes) {
    let mut below: Vec<&Stage> = Vec::new();
    for climb in ramp.whole() {
        let Some(held) = climb.held() else { continue };
        let low = |seen: &&Seen<'_>| planned(seen.result) <= planned(held.result);
        let way = climb.stages.iter().filter(|seen| seen.way == Way::Down);
        below.extend(way.filter(low).map(|seen| &seen.rule));
    }
    let missed: Vec<&Stage> = below.iter().copied().filter(|rule| !rule.holds()).collect();
    let failed = missed.iter().filter(|rule| rule.error_share >= ERROR_SHARE).count();
    if failed == 0 && missed.len() * 2 <= below.len() {
        return;
    }
    let failed =
        if failed > 0 { format!(", in {failed} of them requests failed") } else { String::new() };
    notes.add(format!(
        "{place}: on the way down {} of {} stages no higher than the knee did not hold{failed}: \
         what was too much on the way up still weighs on the store",
        missed.len(),
        below.len()
    ));
}

/// What speaks against the knees of blocks.
fn check_knees(ramp: &Ramp<'_>, place: &str, findings: &mut Findings, notes: &mut Notes) {
    let blocks = ramp.whole().count();
    let never = ramp.whole().filter(|climb| climb.knee.held.is_none()).count();
    if (1..blocks).contains(&never) {
        notes.add(format!(
            "{place}: in {never} of {blocks} blocks not even the lowest stage held; knee and limit \
             are those of the others"
        ));
    }
    let stumbled = ramp.whole().filter(|climb| climb.knee.against > 0).count();
    let stages: usize = ramp.whole().map(|climb| climb.knee.against).sum();
    let doubted = ramp.whole().filter(|climb| climb.against_share() > AGAINST_SHARE_MAX).count();
    let plural = if stages == 1 { "" } else { "s" };
    let text = format!(
        "{place}: in {stumbled} of {blocks} blocks {stages} stage{plural} in all did not hold \
         below the knee or held above it"
    );
    if doubted as f64 > NOISY_TRIALS_MAX * blocks as f64 {
        let cure = "measure on a quieter machine, or with longer stages";
        findings.not_steady("stages contradict the knee", format!("{text}: {cure}"));
    } else if stumbled > 0 {
        notes.add(text);
    }
    let late = ramp.whole().filter(|climb| climb.held().is_some_and(is_late)).count();
    if late * 2 > blocks {
        notes.add(format!(
            "{place}: at the knee more than {} of the 99th percentile is time before requests \
             were sent: they waited for a client, or the generator was late",
            show::percent(LAG_SHARE_NOTE)
        ));
    }
}

fn is_late(seen: &Seen<'_>) -> bool {
    let Some(lag) = seen.whole().map(|whole| &whole.lag) else { return false };
    let p99 = seen.quantile(0.99).unwrap_or(0.0);
    !lag.is_empty() && lag.quantile_ns(0.99) as f64 > LAG_SHARE_NOTE * p99
}
