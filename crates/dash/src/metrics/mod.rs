//! Prometheus metrics of a run: counters since its start, and gauges of the current trial.
//!
//! - `family`: metrics of one name; `buckets`: distributions; `usage`: resources used by server
//!   and generator.
//! - `text` and `protobuf`: the exposition formats; [`Form`]: the one that a scraper gets.
//!
//! Server and store counters restart with each trial, because each trial has a fresh server;
//! Prometheus treats a counter that falls as a reset.

mod accept;
mod buckets;
mod family;
mod protobuf;
mod text;
mod usage;

use model::{Counts, Event, Header, Recorded, RecordedOperation, Sample, SealStatus};
use std::collections::BTreeMap;

pub(crate) use accept::Form;
use buckets::Distribution;
use family::{Family, Kind, Value};
use text::Dialect;
pub(crate) use usage::threads;

/// Requests of one operation in one phase of one cell, since the start of the run.
#[derive(Clone, Debug, Default)]
struct Requests {
    times: Distribution,
    lag_s: f64,
    counts: Counts,
}

/// Cell, phase and operation.
type Key = (String, String, String);

/// Data of all metrics of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Metrics {
    header: Option<Box<Header>>,
    is_active: bool,
    done_share: f64,
    block: Option<u32>,
    requests: BTreeMap<Key, Requests>,
    /// Numbers of measured and of failed trials, by target.
    trials: BTreeMap<String, (u64, u64)>,
    /// Cell, stage from 0 and planned rate of the current phase.
    current_phase: Option<(String, Option<u32>, Option<f64>)>,
    /// Cell and last sample of the current trial.
    sampled: Option<(String, Box<Sample>)>,
}

impl Metrics {
    /// Applies an event.
    pub(crate) fn take(&mut self, event: &Event) {
        match event {
            Event::RunStarted(header) => {
                (self.header, self.is_active) = (Some(header.clone()), true);
            }
            Event::TrialStarted { block, done_share, .. } => {
                (self.block, self.done_share) = (Some(*block), *done_share);
                (self.current_phase, self.sampled) = (None, None);
            }
            Event::Recorded(recorded) => self.recorded(recorded),
            Event::Sampled { cell, sample } => self.sampled = Some((cell.clone(), sample.clone())),
            Event::TrialEnded(trial) => {
                let (measured, failed) = self.trials.entry(self.target(&trial.cell)).or_default();
                *(if trial.failure.is_some() { failed } else { measured }) += 1;
                (self.current_phase, self.sampled) = (None, None);
            }
            Event::RunEnded(seal) => {
                self.is_active = false;
                if seal.status == SealStatus::Complete {
                    self.done_share = 1.0;
                }
            }
            _ => {}
        }
    }

    fn recorded(&mut self, recorded: &Recorded) {
        let Recorded { cell, phase, stage, planned_per_s, operations, .. } = recorded;
        self.current_phase = Some((cell.clone(), *stage, *planned_per_s));
        for operation in operations {
            let key = (cell.clone(), phase.clone(), operation.operation.clone());
            self.requests.entry(key).or_default().add(operation);
        }
    }

    /// Name of a cell's target; the cell's id if the plan does not contain it.
    fn target(&self, cell: &str) -> String {
        let cells = self.header.iter().flat_map(|header| &header.plan.cells);
        let found = cells.into_iter().find(|c| c.id == cell);
        found.map_or(cell, |c| c.target.as_str()).to_string()
    }

    /// All metrics in one format.
    pub(crate) fn render(&self, form: Form) -> Vec<u8> {
        let families = self.families();
        match form {
            Form::Text => text::render(&families, Dialect::Prometheus).into(),
            Form::OpenMetrics => text::render(&families, Dialect::OpenMetrics).into(),
            Form::Protobuf => protobuf::render(&families),
        }
    }

    fn families(&self) -> Vec<Family> {
        let mut families = self.of_run();
        families.extend(self.of_requests());
        if let Some((cell, sample)) = &self.sampled {
            families.extend(usage::families(&self.target(cell), sample));
        }
        families.retain(|family| !family.metrics.is_empty());
        families
    }

    fn of_run(&self) -> Vec<Family> {
        use Kind::{Counter, Gauge};
        let mut info =
            Family::new(Gauge, "cachedyno_run_info", "Labels that identify the run; always 1.");
        if let Some(header) = &self.header {
            let plan = &header.plan;
            let labels = vec![
                ("run", header.run.clone()),
                ("study", plan.study.clone()),
                ("scale", plan.scale.name().to_string()),
                ("tool", header.tool.clone()),
            ];
            info = info.with(labels, 1.0);
        }
        let active = "1 during the run, 0 after it.";
        let done = "Estimated share of the run that was done when its last trial started.";
        let mut block = Family::new(Gauge, "cachedyno_block", "Current block, from 1.");
        if let Some(number) = self.block {
            block = block.with(Vec::new(), f64::from(number) + 1.0);
        }
        let mut trials = Family::new(Counter, "cachedyno_trials_total", "Trials that have ended.");
        for (target, (measured, failed)) in &self.trials {
            for (result, count) in [("measured", measured), ("failed", failed)] {
                let labels = vec![("target", target.clone()), ("result", result.to_string())];
                trials = trials.with(labels, *count as f64);
            }
        }
        let stage = "Current stage of a staged load, from 1.";
        let mut stage = Family::new(Gauge, "cachedyno_stage", stage);
        let planned = "Requests due per second under the current open load.";
        let mut planned = Family::new(Gauge, "cachedyno_planned_requests_per_second", planned);
        if let Some((cell, number, rate)) = &self.current_phase {
            let labels = || vec![("target", self.target(cell)), ("cell", cell.clone())];
            if let Some(number) = number {
                stage = stage.with(labels(), f64::from(*number) + 1.0);
            }
            if let Some(rate) = rate {
                planned = planned.with(labels(), *rate);
            }
        }
        vec![
            info,
            Family::new(Gauge, "cachedyno_run_active", active)
                .with(Vec::new(), f64::from(u8::from(self.is_active))),
            Family::new(Gauge, "cachedyno_run_done_ratio", done).with(Vec::new(), self.done_share),
            block,
            trials,
            stage,
            planned,
        ]
    }

    fn of_requests(&self) -> [Family; 5] {
        let mut times = Family::new(
            Kind::Histogram,
            "cachedyno_request_duration_seconds",
            "Response time under an open load, else service time; failed requests count in the \
             +Inf bucket, and not in the sum.",
        );
        let mut failed = Family::new(
            Kind::Counter,
            "cachedyno_request_failures_total",
            "Requests that failed: refused, timed out, or answered with an error.",
        );
        let mut errors = Family::new(
            Kind::Counter,
            "cachedyno_request_errors_total",
            "Requests that failed, or returned a wrong or stale value.",
        );
        let mut misses = Family::new(
            Kind::Counter,
            "cachedyno_request_misses_total",
            "Requests that did not find their key.",
        );
        let mut lag = Family::new(
            Kind::Counter,
            "cachedyno_request_lag_seconds_total",
            "Time that requests of an open load were due but not yet sent.",
        );
        for ((cell, phase, operation), requests) in &self.requests {
            let labels = vec![
                ("target", self.target(cell)),
                ("cell", cell.clone()),
                ("phase", phase.clone()),
                ("op", operation.clone()),
            ];
            let of_times = Value::Times(Box::new(requests.times.clone()));
            times.metrics.push((labels.clone(), of_times));
            failed = failed.with(labels.clone(), requests.counts.error as f64);
            errors = errors.with(labels.clone(), requests.counts.failed() as f64);
            misses = misses.with(labels.clone(), requests.counts.miss as f64);
            lag = lag.with(labels, requests.lag_s);
        }
        [times, failed, errors, misses, lag]
    }
}

impl Requests {
    fn add(&mut self, recorded: &RecordedOperation) {
        let RecordedOperation { counts, service, response, .. } = recorded;
        self.counts.merge(counts);
        if response.is_empty() {
            self.times.add(service, counts.error);
        } else {
            self.times.add(response, counts.error);
            let lag_ns = (response.mean_ns() - service.mean_ns()) * service.count() as f64;
            // Both have only three significant digits, so a tiny lag could come out negative.
            self.lag_s += lag_ns.max(0.0) / 1e9;
        }
    }
}

#[cfg(test)]
mod tests;
