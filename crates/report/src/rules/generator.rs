//! Rules on the generator: if it is the bottleneck, the result is not about the store.

use model::calibration::NULL_FACTOR_MIN;
use model::{Point, Trial, Workload};

use crate::blocks::median;
use crate::findings::Findings;
use crate::limits::{
    BUSY_SHARE_MAX, OWN_SHARE_MAX, OWN_SHARE_NOTE, PAUSED_SHARE_MAX, PAUSED_SHARE_NOTE,
    WAITED_SHARE_MAX,
};
use crate::measurement::Measurement;
use crate::null::{self, NULL_CURE, Nearness, busy};
use crate::outages;
use crate::ramp::near_null;
use crate::search::CellSearch;
use crate::series::{is_serverless, restores_cleaned};
use crate::show;
use crate::view::{SearchOutcome, SearchView};

/// Share of the clients' time that the generator's own work takes, at all points used in figures: a
/// limit caused by the generator is not a limit of the store.
pub(super) fn own_work(measurement: &Measurement<'_>, findings: &mut Findings) {
    // Without a server the clients do all the work, and also when they restore cleaned records.
    if is_serverless(measurement.products)
        || restores_cleaned(&measurement.cell.workload, measurement.planned)
    {
        return;
    }
    let label = measurement.label();
    let Some(own) = median(measurement.decisive().map(|point| point.own_share)) else { return };
    if own > OWN_SHARE_MAX {
        findings.invalid.push(format!(
            "{label}: generator-bound, the clients spent {} of their time on the generator's own \
             work in the median trial (at most {} is allowed): give the generator more CPUs or \
             use fewer clients",
            show::percent(own),
            show::percent(OWN_SHARE_MAX)
        ));
    } else if own > OWN_SHARE_NOTE {
        findings.footnotes.push(format!(
            "{label}: the clients spent {} of their time on the generator's own work; the store \
             may be faster than measured",
            show::percent(own)
        ));
    }
}

/// Requests that were due but never sent, at points that must hold; elsewhere they are failures.
pub(super) fn unsent(measurement: &Measurement<'_>, findings: &mut Findings) {
    let held = measurement.held();
    let unsent: u64 = held.iter().map(|(_, point)| point.unsent).sum();
    if unsent > 0 {
        let why = outages::of_points(&held).unwrap_or_else(|| {
            "offer a lower rate, or allow more in flight with --clients or --pipeline".into()
        });
        findings.invalid.push(format!(
            "{}: {unsent} requests were due and could not be sent within the timeout: {why}",
            measurement.label()
        ));
    }
}

/// Busy event loops while the server is partly idle, at points of a closed load that must hold.
/// Under an open load a thread may busy-wait, so the lag is the criterion there. A peak only starts
/// a search, and the search's answer is compared with the null server.
pub(super) fn busy_threads(measurement: &Measurement<'_>, findings: &mut Findings) {
    let Workload::Kv(kv) = &measurement.cell.workload else { return };
    let is_closed = |at: &(&Trial, &Point)| !measurement.is_paced(*at);
    let closed: Vec<_> = measurement.held().into_iter().filter(is_closed).collect();
    let Some((own, server)) = busy(&closed, kv.threads).filter(|(own, _)| *own > BUSY_SHARE_MAX)
    else {
        return;
    };
    let (label, own) = (measurement.label(), show::percent(own));
    match server {
        Some(server) if server > BUSY_SHARE_MAX => {}
        Some(server) => findings.invalid.push(format!(
            "{label}: generator-bound, its threads used {own} of their CPUs and the server {} of \
             one: use more --threads",
            show::percent(server)
        )),
        None => findings.footnotes.push(format!(
            "{label}: the generator's threads used {own} of their CPUs; the server may be faster \
             than measured (try more --threads)"
        )),
    }
}

/// A generator that waits for a CPU sends requests late. Judged at points with a planned rate below
/// the store's limit; above it, requests are also late because all clients are busy.
pub(super) fn waiting(measurement: &Measurement<'_>, findings: &mut Findings) {
    let threads = f64::from(measurement.cell.threads());
    let below: Vec<&Point> = paced(measurement).into_iter().flatten().collect();
    let shares = below.iter().map(|point| null::waited(point, threads));
    let waited = shares.sum::<f64>() / below.len().max(1) as f64;
    if waited > WAITED_SHARE_MAX {
        let mut contributors = below.iter().flat_map(|point| &point.contributors);
        let cure = if contributors.any(|one| one.shares_cpus) {
            "workers share CPUs and wait for each other, so use fewer workers or more machines"
        } else {
            "stop other processes on its CPUs, give it its own CPUs, or measure on a quieter \
             machine"
        };
        let sentence = format!(
            "{} the generator waited {} of the time for a CPU: {cure}",
            place_of_paced(measurement),
            show::percent(waited)
        );
        findings.not_steady("the generator had no CPU", sentence);
    }
}

/// A generator that was stopped, frozen or throttled sends all requests late that were due
/// meanwhile. A single trial is enough: results are means over trials, also of p99. Judged at the
/// same points as waits.
pub(super) fn stopped(measurement: &Measurement<'_>, findings: &mut Findings) {
    let share = |points: &[&Point]| {
        let sum = |get: fn(&Point) -> u64| points.iter().map(|point| get(point)).sum::<u64>();
        sum(|point| point.disturbance.paused_ns) as f64 / sum(|p| p.length_ns).max(1) as f64
    };
    let trials = paced(measurement);
    let shares: Vec<_> = trials.iter().map(|points| (share(points), points)).collect();
    let stopped = |limit: f64| {
        let above = shares.iter().filter(|(share, _)| *share > limit);
        let (share, worst) = above.clone().max_by(|a, b| a.0.total_cmp(&b.0))?;
        let contributors = worst.iter().flat_map(|point| &point.contributors);
        let most = contributors.max_by_key(|one| one.point.disturbance.paused_ns);
        Some(format!(
            "{} {} was stopped, frozen or throttled for {} of the time in {} of {} trials, and \
             the requests that were due meanwhile decide",
            place_of_paced(measurement),
            most.map_or("the generator", |one| &one.name),
            show::percent(*share),
            above.count(),
            trials.len()
        ))
    };
    if let Some(text) = stopped(PAUSED_SHARE_MAX) {
        let cure = "let it run without interruption or limit of its CPU time, or measure on a \
                    quieter machine";
        findings.not_steady("the generator was stopped", format!("{text} p99: {cure}"));
    } else if let Some(text) = stopped(PAUSED_SHARE_NOTE) {
        findings.footnotes.push(text + " p99.9");
    }
}

/// Points with a planned rate below the store's limit, by trial.
fn paced<'a>(measurement: &Measurement<'a>) -> Vec<Vec<&'a Point>> {
    let of_trial = |(trial, groups): &(&'a Trial, Vec<Vec<&'a Point>>)| {
        let first = groups.first()?.iter().copied();
        Some(first.filter(|point| measurement.is_paced((trial, point))).collect())
    };
    measurement.decisive.iter().filter_map(of_trial).collect()
}

/// These points as the start of a sentence.
fn place_of_paced(measurement: &Measurement<'_>) -> String {
    if measurement.ramp.is_some() {
        format!("`{}`: up to the knee", measurement.cell.id)
    } else {
        format!("{}:", measurement.label())
    }
}

/// If a target is nearly as fast as the null server, the generator is the limit. The comparison
/// uses the rate of a point that must hold, the knee of a ramp (then a lower bound, see `ramp`), or
/// the answer of a search (see `search`). It is only a footnote if the load cannot run on the null
/// server, or if the server was busy while the generator was not. Records without a null server are
/// not judged.
pub(super) fn null_server(measurement: &Measurement<'_>, findings: &mut Findings) {
    let Measurement { recorded, cell, phase, .. } = measurement;
    if let Some((ramp, _)) = measurement.ramp {
        let place = format!("`{}`", cell.id);
        match near_null(ramp, recorded) {
            Some((Nearness::Disturbed, knee, null)) => {
                null::disturbed(&format!("{place}: the knee is"), knee, null, findings);
            }
            Some((near, ..)) => findings.footnotes.extend(near.note(&place, null::RAMP_CURE)),
            None => {}
        }
        return;
    }
    let (held, label) = (measurement.held(), measurement.label());
    let Workload::Kv(kv) = &cell.workload else { return };
    let known = recorded.null_rate(&cell.id, phase);
    let Some(known) = known.filter(|_| !held.is_empty() || measurement.search.is_some()) else {
        return;
    };
    let Some(null) = known.rate_per_s else {
        let why = known.not_checked.as_deref().unwrap_or("no reason was recorded");
        findings.footnotes.push(format!("{label}: not checked against the null server: {why}"));
        return;
    };
    if let Some((search, view)) = measurement.search {
        searched_null(search, view, findings);
        return;
    }
    let answered = || median(held.iter().filter_map(|(_, point)| Some(point.whole()?.rate_per_s)));
    let planned = cell.load.in_phase(phase).highest_per_s().map(|rate_per_s| rate_per_s as f64);
    let (rate, seen, cure) = if planned.is_some() {
        let cure = "plan a lower --rate, or give the generator more --threads and CPUs";
        (planned, "the plan is", cure)
    } else {
        (answered(), "the server answered", NULL_CURE)
    };
    let Some(rate) = rate else { return };
    let own_limit = || {
        let is_closed = held.first().is_some_and(|at| !measurement.is_paced(*at));
        let busy = busy(&held, kv.threads).filter(|_| is_closed)?;
        null::at_its_limit(busy, &recorded.header, &cell.target, known)
    };
    match null::nearness(rate, null, own_limit) {
        Nearness::Disturbed => {
            null::disturbed(&format!("{label}: {seen}"), rate, null, findings);
        }
        Nearness::Bound(factor) => findings.invalid.push(format!(
            "{label}: generator-bound, {seen} {} and the generator reaches {} on a null server \
             ({} as much, at least {NULL_FACTOR_MIN}× is needed): {cure}",
            show::rate(rate),
            show::rate(null),
            show::ratio(factor),
        )),
        near => findings.footnotes.extend(near.note(&label, cure)),
    }
}

/// The same for the answer of a search.
fn searched_null(search: &CellSearch<'_>, view: &SearchView, findings: &mut Findings) {
    let place = search.place();
    match search.near_null() {
        Some((Nearness::Disturbed, answer, null)) => {
            null::disturbed(&format!("{place}the answer is"), answer, null, findings);
        }
        Some((near, ..)) => {
            findings.footnotes.extend(near.note(&format!("{place}at the peak"), NULL_CURE));
        }
        None => {}
    }
    if view.outcome == SearchOutcome::Generator {
        findings.invalid.push(view.sentence.clone());
    }
}
