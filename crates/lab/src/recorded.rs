//! Progress reports, several per second, while a phase runs.

use load::wire::row::{INTERVAL_NS, Row};
use load::wire::{Offer, Pacing, ProgressSnapshot};
use load::{Latest, Progress};
use model::{Event, Recorded, RecordedOperation};
use stats::Histogram;
use std::iter;

/// Intervals in the reported rate: one second.
const REPORTED_INTERVALS: usize = (1_000_000_000 / INTERVAL_NS) as usize;
/// Most recent intervals, for which some threads have not handed over their counts yet.
const INCOMPLETE_INTERVALS: usize = 4;

/// Events with the progress of a cell's phase and its latest results.
pub(crate) fn events(cell: &str, progress: Progress<'_>) -> impl Iterator<Item = Event> {
    let Progress { phase, rate_per_s, response_ns_p99, latest } = progress;
    let (cell, phase) = (cell.to_string(), phase.to_string());
    let report =
        Event::Progress { cell: cell.clone(), phase: phase.clone(), rate_per_s, response_ns_p99 };
    let recorded = latest.map(|Latest { at_ns, stage, planned_per_s, operations, .. }| {
        let recorded = Recorded { cell, phase, at_ns, stage, planned_per_s, operations };
        Event::Recorded(Box::new(recorded))
    });
    iter::once(report).chain(recorded)
}

/// Results of the wire engine since the last report, with the current stage and planned rate.
/// `names` are the names of the recorder's rows.
pub(crate) fn latest(
    snapshot: &ProgressSnapshot<'_>,
    (phase, names): (&str, &[&str]),
    offer: &Offer,
) -> Latest {
    let rows = snapshot.latest.rows().iter().zip(names);
    let happened = rows.filter(|(row, _)| row.counts().total() > 0);
    let operations = happened.map(|(row, name)| operation(name, row));
    let whole = Box::new(operation(phase, &snapshot.latest.whole()));
    // The recorded time, not the current time, decides the stage.
    let at_ns = snapshot.all.covered_ns() / u64::from(offer.threads.max(1));
    let (stage, planned_per_s) = place(offer, at_ns);
    Latest { at_ns, stage, planned_per_s, operations: operations.collect(), whole }
}

fn operation(name: &str, row: &Row) -> RecordedOperation {
    RecordedOperation {
        operation: name.into(),
        counts: row.counts().clone(),
        service: row.service().clone(),
        response: row.lag().map_or_else(Histogram::default, |_| row.response().clone()),
    }
}

/// Converts the engine's snapshot of a phase to a progress report.
pub(crate) fn progress<'a>(
    phase: &'a str,
    timeout_ns: u64,
    latest: impl Fn(&ProgressSnapshot<'_>) -> Option<Latest> + 'a,
    progress: &'a mut dyn FnMut(Progress<'_>),
) -> impl FnMut(ProgressSnapshot<'_>) + 'a {
    move |snapshot| {
        // Intervals without replies appear only once a later one has a reply.
        let over = (snapshot.at_ns / INTERVAL_NS) as usize;
        let until = over.saturating_sub(INCOMPLETE_INTERVALS);
        let from = until.saturating_sub(REPORTED_INTERVALS);
        let done = snapshot.all.done_per_interval().iter().take(until).skip(from);
        let seconds = (until - from) as f64 * INTERVAL_NS as f64 / 1e9;
        let rate_per_s = done.sum::<u64>() as f64 / seconds.max(f64::MIN_POSITIVE);
        let whole = snapshot.all.whole();
        let response_ns_p99 = whole.counts().times(whole.response(), timeout_ns).quantile(0.99);
        progress(Progress { phase, rate_per_s, response_ns_p99, latest: latest(&snapshot) });
    }
}

/// Stage, from 0, and planned rate at a time of the measurement, if the load has them. The first
/// stage of the offer is the warm-up, unless it is the only one.
fn place(offer: &Offer, at_ns: u64) -> (Option<u32>, Option<f64>) {
    let at_ns = offer.warmup_ns.saturating_add(at_ns);
    match &offer.pacing {
        Pacing::Closed { stages, .. } => {
            (stage(stages.iter().map(|s| s.length_ns), at_ns).map(|(number, _)| number), None)
        }
        Pacing::Open { stages, .. } => match &stages[..] {
            [only] => (None, Some(only.rate_from_per_s)),
            stages => {
                let found = stage(stages.iter().map(|s| s.length_ns), at_ns);
                let rate = found.and_then(|(number, share)| {
                    let stage = stages.get(number as usize + 1)?;
                    let rise_per_s = stage.rate_to_per_s - stage.rate_from_per_s;
                    Some(stage.rate_from_per_s + rise_per_s * share)
                });
                (found.map(|(number, _)| number), rate)
            }
        },
    }
}

/// Number of the stage after the warm-up and its completed share, 0 to 1; `None` without stages.
fn stage(lengths_ns: impl Iterator<Item = u64>, at_ns: u64) -> Option<(u32, f64)> {
    let (mut from_ns, mut found) = (0_u64, None);
    for (index, length_ns) in lengths_ns.enumerate() {
        if index > 0 {
            let share = at_ns.saturating_sub(from_ns) as f64 / length_ns.max(1) as f64;
            found = Some((index as u32 - 1, share.min(1.0)));
        }
        from_ns = length_ns.saturating_add(from_ns);
        if at_ns < from_ns && found.is_some() {
            break;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_decides_the_current_stage() {
        // A warm-up of 10, then stages of 100, 0 and 50.
        let at = |at_ns| stage([10, 100, 0, 50].into_iter(), at_ns);
        assert_eq!(at(0), Some((0, 0.0)));
        assert_eq!(at(60), Some((0, 0.5)));
        assert_eq!(at(110), Some((2, 0.0)));
        assert_eq!(at(135), Some((2, 0.5)));
        assert_eq!(at(1_000), Some((2, 1.0)));
        assert_eq!(stage([].into_iter(), 5), None);
        assert_eq!(stage([10].into_iter(), 5), None);
    }
}
