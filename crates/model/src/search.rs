//! A search for the highest rate within limits: what is planned, and its trials as
//! [`stats::search`] judges them. Run and report read them by the same function, so that a record
//! leads to the result that the run had.

use serde::{Deserialize, Serialize};
use stats::Histogram;
use stats::search::{Purpose, Seen, Settings, Step};
use stats::tail::Batch;

use crate::load::Load;
use crate::trial::{Disturbed, LEFT_OUT_MAX, PhaseResult, Trial};

mod slo;

pub use slo::{Slo, SloError};

/// A store is at rest again when its median is no longer than so many times that of its first rest,
/// or than so small a part of the strictest limit.
const RESTED_FACTOR: u64 = 2;
const RESTED_PART: u64 = 4;
/// Requests of which none may be due by chance.
const FEW: f64 = 20.0;
/// By how much of its length a probe may last longer before a queue is said to have grown.
const OVERRUN_MAX: f64 = 0.01;

/// What is searched for, and how thoroughly.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Search {
    /// All of them must hold; at least one.
    pub slos: Vec<Slo>,
    /// Shortest length of a probe, nanoseconds, above 0.
    pub probe_ns: u64,
    /// Rounds of the confirmation, at least 1.
    pub rounds: u32,
    /// True for independent arrivals, false for evenly spaced ones.
    pub poisson: bool,
}

impl Search {
    /// What the search needs to know.
    pub fn settings(&self, seed: u64) -> Settings {
        Settings {
            allowed: self.slos.iter().map(Slo::allowed).collect(),
            probe_ns: self.probe_ns,
            rounds: self.rounds,
            seed,
        }
    }

    /// Times after which an answer is too late, one for each limit, nanoseconds.
    pub fn limits_ns(&self) -> Vec<u64> {
        self.slos.iter().map(Slo::limit_ns).collect()
    }

    /// The load of a probe at a rate, by the clients of another load.
    pub fn load(&self, other: &Load, rate_per_s: u64) -> Load {
        let (clients, pipeline) = (other.clients(), other.pipeline());
        Load::Open { rate_per_s, poisson: self.poisson, clients, pipeline, stages: Vec::new() }
    }

    /// The id under which results of a probe of a cell stand: the cell's, with the rate where the
    /// probe has one.
    pub fn cell_id(cell: &str, step: Step) -> String {
        if step.rate_per_s == 0 { cell.into() } else { format!("{cell}@{}", step.rate_per_s) }
    }

    /// Trials in their order, as they are judged; those that are no probes are left out.
    pub fn seen(&self, trials: &[Trial]) -> Vec<Seen> {
        let rest = trials.iter().find(|t| purpose(t) == Some(Purpose::Rest));
        let usual_ns = rest.and_then(whole).map_or(0, |o| o.service.quantile_ns(0.5));
        trials.iter().filter_map(|trial| self.one(trial, usual_ns)).collect()
    }

    /// Response times of a probe by which it is judged: without what is left out because others
    /// took a CPU.
    pub fn response(trial: &Trial) -> Option<Histogram> {
        let response = &whole(trial)?.response;
        let apart = Self::left_out(trial);
        Some(apart.map_or_else(|| response.clone(), |apart| response.without(&apart.response)))
    }

    /// What is left out of a probe because others took a CPU; `None` where that is nothing, or so
    /// much that nothing is.
    pub fn left_out(trial: &Trial) -> Option<&Disturbed> {
        trial.phases.first().and_then(disturbed)
    }

    /// Share of a probe's requests that is left out for that, 0 to 1.
    pub fn left_out_share(trial: &Trial) -> f64 {
        let due = trial.phases.first().and_then(|phase| phase.due.as_ref());
        let left_out = Self::left_out(trial).zip(due);
        left_out.map_or(0.0, |(left_out, due)| left_out.share_of(due))
    }

    fn one(&self, trial: &Trial, usual_ns: u64) -> Option<Seen> {
        let probe = trial.probe?;
        let phase = trial.phases.first();
        let result = whole(trial);
        // Of so few requests none may be due by chance.
        let few = (probe.rate_per_s as f64) * (probe.length_ns as f64) < FEW * 1e9;
        let silent = result.is_none_or(|o| o.counts.total() == 0);
        let broke = trial.failure.is_some() || (silent && (probe.rate_per_s == 0 || !few));
        let mut seen = Seen {
            purpose: probe.purpose,
            rate_per_s: probe.rate_per_s,
            answered_per_s: result.map_or(0.0, |o| o.rate_per_s),
            length_ns: probe.length_ns,
            batches: phase.map_or_else(Vec::new, batches),
            fell_behind: false,
            broke,
            doubted: false,
            at_rest: false,
        };
        let Some((phase, result)) = phase.zip(result) else { return Some(seen) };
        let overran = probe.rate_per_s > 0 && overran(phase, &seen);
        // Where others took a CPU shortly before the end, that is why.
        let by_others = overran && disturbed(phase).is_some_and(|d| ends_with_loss(phase, d));
        seen.fell_behind = (overran && !by_others) || phase.unsent > 0;
        seen.doubted = !broke && !seen.fell_behind && (by_others || self.doubted(phase, &seen));
        let strictest_ns = self.limits_ns().into_iter().min().unwrap_or(0);
        let at_most_ns = (usual_ns * RESTED_FACTOR).max(strictest_ns.min(1 << 40) / RESTED_PART);
        let as_usual = result.service.quantile_ns(0.5) <= at_most_ns;
        seen.at_rest = !broke && !seen.fell_behind && as_usual;
        Some(seen)
    }

    /// True where a limit is missed, and would not be without the requests that the generator sent
    /// late.
    fn doubted(&self, phase: &PhaseResult, seen: &Seen) -> bool {
        let late = phase.due.as_ref().map_or(0, |due| due.late);
        let mut limits = self.slos.iter().zip(&seen.batches).map(|(slo, batches)| {
            let requests: u64 = batches.iter().map(|b| b.requests).sum();
            let over: u64 = batches.iter().map(|b| b.over).sum();
            (over, slo.allowed() * requests as f64)
        });
        let misses = limits.clone().any(|(over, allowed)| over as f64 > allowed);
        misses && limits.all(|(over, allowed)| over.saturating_sub(late) as f64 <= allowed)
    }
}

fn purpose(trial: &Trial) -> Option<Purpose> {
    trial.probe.map(|probe| probe.purpose)
}

/// All operations of a probe together.
fn whole(trial: &Trial) -> Option<&crate::OperationResult> {
    trial.phases.first()?.operations.last()
}

/// For each limit, what was due in each interval: without what was delayed because others took a
/// CPU, as long as enough is left.
fn batches(phase: &PhaseResult) -> Vec<Vec<Batch>> {
    let Some(due) = &phase.due else { return Vec::new() };
    let disturbed = disturbed(phase);
    let of_limit = |limit: usize| {
        let batch = |interval: usize| {
            let all = Batch {
                requests: due.due_per_interval[interval],
                over: due.beyond[limit].over_per_interval.get(interval).copied().unwrap_or(0),
            };
            let apart = |counts: &[u64]| counts.get(interval).copied().unwrap_or(0);
            disturbed.map_or(all, |disturbed| Batch {
                requests: all.requests - apart(&disturbed.due_per_interval).min(all.requests),
                over: all.over - apart(&disturbed.over_per_interval[limit]).min(all.over),
            })
        };
        (0..due.due_per_interval.len()).map(batch).collect()
    };
    (0..due.beyond.len()).map(of_limit).collect()
}

/// What is to be left out because others took a CPU; `None` where that is nothing, or too much.
fn disturbed(phase: &PhaseResult) -> Option<&Disturbed> {
    let due = phase.due.as_ref()?;
    let disturbed = due.disturbed.as_ref()?;
    (disturbed.share_of(due) <= LEFT_OUT_MAX).then_some(disturbed)
}

/// True where of what was due last most is to be left out.
fn ends_with_loss(phase: &PhaseResult, disturbed: &Disturbed) -> bool {
    let due = phase.due.as_ref().map_or(&[][..], |due| &due.due_per_interval);
    let last = due.iter().rposition(|requests| *requests > 0);
    last.is_some_and(|last| {
        let apart = disturbed.due_per_interval.get(last).copied().unwrap_or(0);
        apart * 2 > due[last]
    })
}

/// True where the last answers came so late that a queue must have grown: later than what chance
/// piles up where as many come as can go, √n requests.
fn overran(phase: &PhaseResult, seen: &Seen) -> bool {
    let rate = seen.rate_per_s as f64;
    let due = rate * seen.length_ns as f64 / 1e9;
    let allowed_ns = OVERRUN_MAX * seen.length_ns as f64 + due.sqrt() / rate * 1e9;
    let overrun_ns = phase.wall_ns as f64 - seen.length_ns as f64;
    overrun_ns > allowed_ns
}
