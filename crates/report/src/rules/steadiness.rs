//! Rules on steadiness.

use model::{Point, Stop};
use stats::compare::FEWEST_BLOCKS;
use stats::steady::{FEWEST_INTERVALS, Steady, is_steady};

use crate::blocks::median;
use crate::findings::Findings;
use crate::limits::{DRIFT_SHARE_MAX, KEPT_UP_MIN, LONGEST_SHARE_MAX};
use crate::measurement::Measurement;
use crate::ramp::against_words;
use crate::show;

/// Drift of the rate within a phase in every block, at points with a constant load. Stages and
/// probes are too short for this; ramps and searches have their own rules for contradictions.
pub(super) fn drift(measurement: &Measurement<'_>, findings: &mut Findings) {
    let held = measurement.held();
    if held.is_empty() || measurement.changes_by_plan() {
        return;
    }
    let label = measurement.label();
    let longest = |(_, point): &(_, &Point)| longest_share(point);
    let longest = median(held.iter().filter_map(longest));
    if let Some(share) = longest.filter(|share| *share > LONGEST_SHARE_MAX) {
        findings.footnotes.push(format!(
            "{label}: one operation took {} of its phase, too long to judge whether the rate was \
             steady",
            show::percent(share)
        ));
        return;
    }
    let blocks = measurement.series().map(|series| series.done_per_interval.as_slice());
    let change = match is_steady(blocks, DRIFT_SHARE_MAX) {
        Steady::Yes => return,
        Steady::TooShort => return too_short(measurement, held.len(), findings),
        Steady::NotShown(lo, hi) => {
            findings.footnotes.push(format!(
                "{label}: stability is not established: within the phase the rate changes by {} \
                 to {} of its mean; run more or longer blocks",
                // A line above zero changes by at most twice its mean.
                show::signed_percent(lo.max(-2.0)),
                show::signed_percent(hi.min(2.0))
            ));
            return;
        }
        Steady::No(change) => change,
    };
    let direction = if change > 0.0 { "rises" } else { "falls" };
    let text = format!(
        "{label}: the rate {direction} by {} of its mean within the phase, in every block",
        show::percent(change.abs())
    );
    if measurement.is_cold() {
        findings.footnotes.push(format!("{text}, as expected while the page cache fills"));
    } else if measurement.keeps_its_data() {
        let sentence = format!("{text}: warm up longer or measure longer");
        findings.not_steady("rates drifted during the measurement", sentence);
    } else {
        let text = format!("{text}, as can happen while data grows or clients finish one by one");
        findings.footnotes.push(text);
    }
}

/// A phase with too few intervals or blocks to judge its steadiness. If it ends by time it could be
/// longer, so the run is UNREPLICATED; otherwise it is a footnote.
fn too_short(measurement: &Measurement<'_>, blocks: usize, findings: &mut Findings) {
    let stop = measurement.planned.map(|planned| planned.stop);
    let judged = measurement.keeps_its_data() && blocks >= FEWEST_BLOCKS;
    let Some(Stop::AfterNs(planned_ns)) = stop.filter(|_| judged) else {
        let text = "too short, or too few blocks, to judge whether the rate was steady";
        findings.footnotes.push(text.into());
        return;
    };
    let interval_ns = measurement.series().map(|series| series.interval_ns).max().unwrap_or(0);
    findings.unreplicated(format!(
        "{} of measurement per block are too short to judge whether the rate was steady, at \
         least {} are needed: --duration, or for a study --set measure_ms=",
        show::ns(planned_ns as f64),
        show::ns(((FEWEST_INTERVALS as u64 + 1) * interval_ns) as f64)
    ));
}

/// A store that did not keep up with a constant planned rate. This includes runs that kill a
/// server: the failover of an overloaded store says little. Stages and probes search for such a
/// rate.
pub(super) fn kept_up(measurement: &Measurement<'_>, findings: &mut Findings) {
    let Some(planned_per_s) = measurement.cell.load.in_phase(measurement.phase).steady_per_s()
    else {
        return;
    };
    let Some(Stop::AfterNs(planned_ns)) = measurement.planned.map(|planned| planned.stop) else {
        return;
    };
    let needed_ns = |point: &Point| {
        let whole = point.whole()?;
        let answered = whole.counts.total() - whole.counts.error;
        (whole.rate_per_s > 0.0).then(|| answered as f64 / whole.rate_per_s * 1e9)
    };
    let Some(needed_ns) = median(measurement.decisive().filter_map(needed_ns)) else { return };
    if planned_ns as f64 / needed_ns < KEPT_UP_MIN {
        let sentence = format!(
            "{}: the requests due in {} at {}/s took {} to answer, so response times only reflect \
             the length of the measurement: request a lower rate",
            measurement.label(),
            show::ns(planned_ns as f64),
            show::commas(planned_per_s),
            show::ns(needed_ns)
        );
        findings.not_steady("a store did not keep up with the planned rate", sentence);
    }
}

/// Duration of the longest operation as a share of its point.
fn longest_share(point: &Point) -> Option<f64> {
    let longest_ns = point.operations.iter().map(|o| o.service.max_ns()).max()?;
    Some(longest_ns as f64 / point.length_ns.max(1) as f64)
}

/// Stages that contradict the knee: failed below it or passed above it, as with a changing store.
pub(super) fn contradicted(measurement: &Measurement<'_>, findings: &mut Findings) {
    let Some((ramp, _)) = measurement.ramp else { return };
    if ramp.is_contradicted() {
        let cure = "measure on a quieter machine, or with longer stages";
        let sentence = format!("{}: {cure}", against_words(ramp));
        findings.not_steady("stages contradict the knee", sentence);
    }
}
