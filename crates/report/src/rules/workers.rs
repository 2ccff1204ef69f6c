//! Rules on each worker of a fleet. A rule names the worker that breaks it most, with the result
//! without it, and counts the others; the table of workers has the details.

use std::collections::BTreeMap;

use crate::findings::Findings;
use crate::limits::{
    BUSY_SHARE_MAX, OWN_SHARE_MAX, SLOW_WORKER_FACTOR, START_SKEW_NS_MAX, WAITED_SHARE_MAX,
    WORKER_DEVIATIONS_MAX, WORKER_SHARE_MAX,
};
use crate::measurement::Measurement;
use crate::recorded::Recorded;
use crate::series::{is_serverless, restores_cleaned};
use crate::show;
use crate::view::WorkerView;
use crate::workers::{against_all, of};
use model::{TAKEN_SHARE_MAX, Workload};

/// Most workers that are named besides the worst.
const NAMED_MAX: usize = 3;

/// A worker that breaks a rule in a phase.
struct Broken<'a> {
    label: String,
    one: &'a WorkerView,
    /// The larger, the worse.
    by: f64,
    /// What it did, as the rest of a sentence.
    what: String,
}

/// Workers that may have started too early or too late.
pub(super) fn start(_: &Recorded, all: &[Measurement<'_>], findings: &mut Findings) {
    let broken = find(all, |_, one| {
        let skew_ns = one.start_skew_ns;
        let time = show::ns(skew_ns as f64);
        let what = format!("may have started {time} too early or too late");
        (skew_ns > START_SKEW_NS_MAX).then_some((skew_ns as f64, what))
    });
    let cure = "give workers CPUs that others do not use, and a network with short round trips";
    findings.invalid.extend(sentence(&broken, cure));
}

/// Workers that answered another share of their part of the plan than all together.
pub(super) fn share(_: &Recorded, all: &[Measurement<'_>], findings: &mut Findings) {
    let broken = find(all, |measurement, one| {
        let (share, deviations) = against_all(measurement, &one.worker)?;
        let (off, below) = ((share - 1.0).abs(), 1.0 - share);
        let share = show::percent(share);
        let what =
            format!("answered {share} of what all workers answered of their parts of the plan");
        let is_off = off > WORKER_SHARE_MAX && deviations > WORKER_DEVIATIONS_MAX;
        // One that answers too little makes the share of the others too large.
        is_off.then_some((below, what))
    });
    let cure = "check its network and its CPUs, or leave it out";
    findings.invalid.extend(sentence(&broken, cure));
}

/// Workers of a closed load whose clients were much slower than those of the others.
pub(super) fn slow(_: &Recorded, all: &[Measurement<'_>], findings: &mut Findings) {
    let broken = find(all, |measurement, one| {
        if is_planned(measurement) {
            return None;
        }
        let clients: u32 = of(measurement).iter().map(|one| one.clients).sum();
        let others = f64::from(clients.saturating_sub(one.clients));
        let without_it = one.rate_per_s_without.filter(|_| others > 0.0)?;
        let (own, usual) = (one.rate_per_s / f64::from(one.clients.max(1)), without_it / others);
        let (own_rate, usual_rate) = (show::rate(own), show::rate(usual));
        let what = format!("reached {own_rate} per client and the others {usual_rate}");
        (own * SLOW_WORKER_FACTOR < usual).then_some((usual / own.max(f64::MIN_POSITIVE), what))
    });
    if let Some(text) = sentence(&broken, "check its network and its CPUs") {
        findings.not_steady("a worker was slower than the others", text);
    }
}

/// Workers that limited a closed load: event loops that were busy, and blocking clients that the
/// generator's own work kept from sending.
pub(super) fn busy(_: &Recorded, all: &[Measurement<'_>], findings: &mut Findings) {
    let broken = find(all, |measurement, one| {
        let share = limiting_share(measurement, one)?;
        // If all are busy, the rules on the generator say so, and know whether the server was.
        if of(measurement).iter().all(|one| limiting_share(measurement, one).is_some()) {
            return None;
        }
        let shown = show::percent(share);
        let what = if is_of_keys(measurement) {
            format!("is generator-bound, its threads used {shown} of their CPUs")
        } else {
            format!(
                "is generator-bound, its clients spent {shown} of their time on the generator's \
                 own work"
            )
        };
        Some((share, what))
    });
    let cure = "give it more CPUs and --threads, or use more workers";
    findings.invalid.extend(sentence(&broken, cure));
}

/// True if a plan says when requests are sent, also if a worker had none to send.
fn is_planned(measurement: &Measurement<'_>) -> bool {
    measurement.points.iter().any(|at| measurement.is_paced(*at))
}

fn is_of_keys(measurement: &Measurement<'_>) -> bool {
    matches!(measurement.cell.workload, Workload::Kv(_))
}

/// The share by which a worker limited a closed load: of its CPUs, or of its clients' time; `None`
/// if it did not.
fn limiting_share(measurement: &Measurement<'_>, one: &WorkerView) -> Option<f64> {
    let Measurement { cell, products, planned, .. } = measurement;
    if is_planned(measurement) || one.share_of_plan.is_some() {
        return None;
    }
    if is_of_keys(measurement) {
        return Some(one.cpu_share).filter(|share| *share > BUSY_SHARE_MAX);
    }
    // Without a server the clients do all the work, and also when they restore cleaned records.
    let is_exempt = is_serverless(products) || restores_cleaned(&cell.workload, *planned);
    Some(one.own_share).filter(|share| !is_exempt && *share > OWN_SHARE_MAX)
}

/// Workers that waited for a CPU, whose CPUs others used, or that were stopped.
pub(super) fn disturbed(_: &Recorded, all: &[Measurement<'_>], findings: &mut Findings) {
    let broken = find(all, |measurement, one| {
        let is_late = one.share_of_plan.is_some() && one.waited_share > WAITED_SHARE_MAX;
        let is_disturbed = one.disturbed_share > TAKEN_SHARE_MAX;
        let (waited, taken) = (show::percent(one.waited_share), show::percent(one.disturbed_share));
        let waited = is_late.then(|| {
            let is_shared = shares_cpus(measurement, &one.worker);
            let shared = if is_shared { " that it shares with other workers" } else { "" };
            format!("waited {waited} of the time for a CPU{shared}")
        });
        let taken = is_disturbed.then(|| format!("could not use its CPUs for {taken} of the time"));
        let what: Vec<String> = waited.into_iter().chain(taken).collect();
        let by = one.waited_share.max(one.disturbed_share);
        (!what.is_empty()).then(|| (by, what.join(", and ")))
    });
    let cure = "stop other processes there, or give it CPUs of its own";
    if let Some(text) = sentence(&broken, cure) {
        findings.not_steady("a worker was disturbed", text);
    }
}

/// True if a worker uses the same CPUs as others of the fleet.
fn shares_cpus(measurement: &Measurement<'_>, name: &str) -> bool {
    let contributors = measurement.points.iter().flat_map(|(_, point)| &point.contributors);
    contributors.filter(|one| one.name == name).any(|one| one.shares_cpus)
}

/// The workers that break a rule; `check` returns by how much and what they did.
fn find<'a>(
    all: &'a [Measurement<'_>],
    check: impl Fn(&Measurement<'_>, &WorkerView) -> Option<(f64, String)>,
) -> Vec<Broken<'a>> {
    let of_measurement = |measurement: &'a Measurement<'_>| {
        let check = &check;
        of(measurement).iter().filter_map(move |one| {
            let (by, what) = check(measurement, one)?;
            Some(Broken { label: measurement.label(), one, by, what })
        })
    };
    all.iter().flat_map(of_measurement).collect()
}

/// A sentence on the worst, with the number of the others; `None` without any.
fn sentence(broken: &[Broken<'_>], cure: &str) -> Option<String> {
    let worst = (0..broken.len()).max_by(|a, b| broken[*a].by.total_cmp(&broken[*b].by))?;
    let mut phases: BTreeMap<&str, usize> = BTreeMap::new();
    for (_, also) in broken.iter().enumerate().filter(|(at, _)| *at != worst) {
        *phases.entry(&also.one.worker).or_default() += 1;
    }
    let Broken { label, one, what, .. } = &broken[worst];
    let own = match phases.remove(one.worker.as_str()) {
        None => String::new(),
        Some(1) => ", and in another phase as well".into(),
        Some(more) => format!(", and in {more} other phases as well"),
    };
    let others = others(&phases);
    Some(format!("{label}: {} {what}{}{own}{others}: {cure}", one.worker, without(one)))
}

/// How often the same is true of other workers.
fn others(phases: &BTreeMap<&str, usize>) -> String {
    if phases.is_empty() {
        return String::new();
    }
    let counted = |(name, phases): (&&str, &usize)| match phases {
        1 => (*name).to_string(),
        phases => format!("{name} in {phases} phases"),
    };
    let mut named: Vec<String> = phases.iter().take(NAMED_MAX).map(counted).collect();
    let more = phases.len().saturating_sub(NAMED_MAX);
    named.extend((more > 0).then(|| format!("{more} others")));
    let end = named.pop().unwrap_or_default();
    let and = if named.is_empty() { "" } else { " and " };
    format!("; also {}{and}{end}", named.join(", "))
}

/// The result of the other workers, as part of a sentence.
fn without(one: &WorkerView) -> String {
    let Some(rate) = one.rate_per_s_without else { return String::new() };
    let p99 = one.response_ns_p99_without.map(|time| format!(", p99 {time}"));
    format!(" (without it: {}{})", show::rate(rate), p99.unwrap_or_default())
}
