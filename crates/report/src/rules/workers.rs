//! Rules on each worker of a fleet. A worker that breaks one is named, with the result without it.

use crate::findings::Findings;
use crate::limits::{
    BUSY_SHARE_MAX, SLOW_WORKER_FACTOR, START_SKEW_NS_MAX, WAITED_SHARE_MAX, WORKER_DEVIATIONS_MAX,
    WORKER_SHARE_MAX,
};
use crate::measurement::Measurement;
use crate::show;
use crate::view::WorkerView;
use crate::workers::{against_all, of};
use model::TAKEN_SHARE_MAX;

/// Workers that may have started too early or too late.
pub(super) fn start(measurement: &Measurement<'_>, findings: &mut Findings) {
    for one in of(measurement).iter().filter(|one| one.start_skew_ns > START_SKEW_NS_MAX) {
        findings.invalid.push(format!(
            "{}: {} may have started {} too early or too late{}: use a network with shorter round \
             trips, or CPUs that others do not use",
            measurement.label(),
            one.worker,
            show::ns(one.start_skew_ns as f64),
            without(one)
        ));
    }
}

/// Workers that answered another share of their part of the plan than all together.
pub(super) fn share(measurement: &Measurement<'_>, findings: &mut Findings) {
    for one in of(measurement) {
        let Some((share, deviations)) = against_all(measurement, &one.worker) else { continue };
        if (share - 1.0).abs() <= WORKER_SHARE_MAX || deviations <= WORKER_DEVIATIONS_MAX {
            continue;
        }
        findings.invalid.push(format!(
            "{}: {} answered {} of what all workers answered of their parts of the plan{}: check \
             its network and its CPUs, or leave it out",
            measurement.label(),
            one.worker,
            show::percent(share),
            without(one)
        ));
    }
}

/// Workers of a closed load whose clients were much slower than those of the others.
pub(super) fn slow(measurement: &Measurement<'_>, findings: &mut Findings) {
    let workers = of(measurement);
    let clients: u32 = workers.iter().map(|one| one.clients).sum();
    for one in workers.iter().filter(|one| one.share_of_plan.is_none()) {
        let others = f64::from(clients.saturating_sub(one.clients));
        let Some(without_it) = one.rate_per_s_without.filter(|_| others > 0.0) else { continue };
        let (own, usual) = (one.rate_per_s / f64::from(one.clients.max(1)), without_it / others);
        if own * SLOW_WORKER_FACTOR < usual {
            let text = format!(
                "{}: {} reached {} per client and the others {}{}: check its network and its CPUs",
                measurement.label(),
                one.worker,
                show::rate(own),
                show::rate(usual),
                without(one)
            );
            findings.not_steady("a worker was slower than the others", text);
        }
    }
}

/// Workers of a closed load whose threads were busy.
pub(super) fn busy(measurement: &Measurement<'_>, findings: &mut Findings) {
    let workers = of(measurement);
    let is_busy = |one: &&WorkerView| one.share_of_plan.is_none() && one.cpu_share > BUSY_SHARE_MAX;
    // If all are busy, the rule on the generator's CPUs says so, and knows whether the server was.
    if workers.iter().all(|one| is_busy(&one)) {
        return;
    }
    for one in workers.iter().filter(is_busy) {
        findings.invalid.push(format!(
            "{}: {} is generator-bound, its threads used {} of their CPUs{}: give it more CPUs \
             and --threads, or use more workers",
            measurement.label(),
            one.worker,
            show::percent(one.cpu_share),
            without(one)
        ));
    }
}

/// Workers that waited for a CPU, or whose CPUs others used.
pub(super) fn disturbed(measurement: &Measurement<'_>, findings: &mut Findings) {
    for one in of(measurement) {
        let is_late = one.share_of_plan.is_some() && one.waited_share > WAITED_SHARE_MAX;
        if !is_late && one.disturbed_share <= TAKEN_SHARE_MAX {
            continue;
        }
        let text = format!(
            "{}: {} waited {} of the time for a CPU, and others used its CPUs for {} of the \
             time{}: stop other processes there, or give it CPUs of its own",
            measurement.label(),
            one.worker,
            show::percent(one.waited_share),
            show::percent(one.disturbed_share),
            without(one)
        );
        findings.not_steady("a worker was disturbed", text);
    }
}

/// The result of the other workers, as part of a sentence.
fn without(one: &WorkerView) -> String {
    let Some(rate) = one.rate_per_s_without else { return String::new() };
    let p99 = one.response_ns_p99_without.map(|time| format!(", p99 {time}"));
    format!(" (without it: {}{})", show::rate(rate), p99.unwrap_or_default())
}
