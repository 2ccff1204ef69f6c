//! The slowly changing state of a run: targets, current trial, failures, final status.

use model::{
    Cell, Event, Failure, Header, Load, Plan, Schedule, Seal, SealStatus, TargetState, Trial,
};
use serde::Serialize;
use std::collections::VecDeque;

/// Loads with more stages than this are abbreviated.
const STAGES_SHOWN_MAX: usize = 2;

/// How many warnings, and how many failed trials, are kept.
const MESSAGES_MAX: usize = 20;

/// The state of a run, as sent to readers.
#[derive(Debug, Default, Serialize)]
pub(crate) struct State {
    run: String,
    study: String,
    title: String,
    question: String,
    scale: &'static str,
    tool: String,
    started_unix_ms: u64,
    /// The targets that were checked.
    targets: Vec<Target>,
    now: Option<Now>,
    /// Share of the run that was done when the current trial started.
    done_share: f64,
    /// Seconds left at that time; `None` if unknown.
    left_s: Option<f64>,
    /// Trials that have ended.
    trials: u64,
    /// The last trials and probes that failed.
    failed: VecDeque<Failed>,
    /// The last warnings.
    warnings: VecDeque<String>,
    ended: Option<Ended>,
    #[serde(skip)]
    cells: Vec<Cell>,
}

#[derive(Debug, Serialize)]
struct Target {
    name: String,
    version: Option<String>,
    /// Why it cannot be measured.
    unavailable: Option<String>,
}

/// The current trial.
#[derive(Debug, Serialize)]
struct Now {
    /// From 0.
    block: u32,
    cell: String,
    target: String,
    profile: String,
    load: String,
    /// Start of the trial, seconds since the start of the run.
    since_s: f64,
    /// `None` before the first phase.
    phase: Option<String>,
    /// From 0; `None` if the load has no stages.
    stage: Option<u32>,
}

#[derive(Debug, Serialize)]
struct Failed {
    cell: String,
    /// From 0.
    block: u32,
    message: String,
}

#[derive(Debug, Serialize)]
struct Ended {
    status: SealStatus,
    because: String,
    /// Whether a report is available; `None` while it is being written.
    report: Option<bool>,
}

impl State {
    /// Applies an event that is not a recording, a sample or the start or end of a trial; true if
    /// it changed anything.
    pub(crate) fn take(&mut self, event: &Event) -> bool {
        match event {
            Event::RunStarted(header) => self.run_started(header),
            Event::TargetChecked(TargetState { target, version, unavailable, .. }) => {
                self.targets.push(Target {
                    name: target.clone(),
                    version: version.clone(),
                    unavailable: unavailable.as_ref().map(|failure| failure.message.clone()),
                });
            }
            Event::PointEnded(part) => {
                let failed = part.points.iter().filter_map(|point| point.failure.as_ref());
                failed.for_each(|failure| self.failed(part, failure));
            }
            Event::Warning(text) => keep(&mut self.warnings, text.clone()),
            Event::RunEnded(seal) => self.run_ended(seal),
            _ => return false,
        }
        true
    }

    fn run_started(&mut self, header: &Header) {
        let Plan { study, title, question, scale, cells, .. } = &header.plan;
        *self = Self {
            run: header.run.clone(),
            study: study.clone(),
            title: title.clone(),
            question: question.clone(),
            scale: scale.name(),
            tool: header.tool.clone(),
            started_unix_ms: header.started_unix_ms,
            cells: cells.clone(),
            ..Self::default()
        };
    }

    fn run_ended(&mut self, seal: &Seal) {
        self.now = None;
        self.left_s = None;
        if seal.status == SealStatus::Complete {
            self.done_share = 1.0;
        }
        let because = seal.stopped_because.clone();
        self.ended = Some(Ended { status: seal.status, because, report: None });
    }

    /// Notes whether a report is available after the run.
    pub(crate) fn set_report_available(&mut self, available: bool) {
        if let Some(ended) = &mut self.ended {
            ended.report = Some(available);
        }
    }

    fn cell(&self, id: &str) -> Option<&Cell> {
        self.cells.iter().find(|cell| cell.id == id)
    }

    /// Name of a cell's target; the cell's id if the plan does not contain it.
    pub(crate) fn target_of(&self, cell: &str) -> String {
        self.cell(cell).map_or(cell, |c| &c.target).to_string()
    }

    pub(crate) fn trial_started(
        &mut self,
        (block, cell): (u32, &str),
        (done_share, left_ns): (f64, u64),
        at_s: f64,
    ) {
        let known = self.cell(cell);
        let now = Now {
            block,
            cell: cell.into(),
            target: self.target_of(cell),
            profile: known.map(|c| c.workload.profile().to_string()).unwrap_or_default(),
            load: known.map(|c| brief(&c.load)).unwrap_or_default(),
            since_s: at_s,
            phase: None,
            stage: None,
        };
        self.now = Some(now);
        self.done_share = done_share;
        self.left_s = Some(left_ns as f64 / 1e9);
    }

    pub(crate) fn trial_ended(&mut self, trial: &Trial) {
        self.trials += 1;
        if let Some(failure) = &trial.failure {
            self.failed(trial, failure);
        }
    }

    fn failed(&mut self, trial: &Trial, Failure { message, .. }: &Failure) {
        let (cell, message) = (trial.cell.clone(), message.clone());
        keep(&mut self.failed, Failed { cell, block: trial.block, message });
    }

    /// Sets the current phase and stage; true if they changed.
    pub(crate) fn set_phase(&mut self, phase: &str, stage: Option<u32>) -> bool {
        let Some(now) = &mut self.now else { return false };
        let is_new = now.phase.as_deref() != Some(phase);
        // Progress events carry no stage; keep the one last recorded.
        let stage = if is_new { stage } else { stage.or(now.stage) };
        let changes = is_new || now.stage != stage;
        (now.phase, now.stage) = (Some(phase.into()), stage);
        changes
    }
}

/// A short description of a load: many stages appear as their number and the highest level.
fn brief(load: &Load) -> String {
    let Schedule::Stages(stages) = &load.schedule else { return load.to_string() };
    let stages = stages.len();
    let most = match load.highest_per_s() {
        Some(rate_per_s) => format!("{rate_per_s}/s"),
        None => format!("{} clients", load.clients),
    };
    if stages <= STAGES_SHOWN_MAX {
        load.to_string()
    } else {
        format!("{stages} stages, up to {most}")
    }
}

fn keep<T>(all: &mut VecDeque<T>, one: T) {
    if all.len() == MESSAGES_MAX {
        all.pop_front();
    }
    all.push_back(one);
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Arrivals, Stage};

    #[test]
    fn a_load_of_many_stages_is_abbreviated() {
        let with_stages =
            |load: Load, stages| brief(&Load { schedule: Schedule::Stages(stages), ..load });
        let clients = |most: u64| {
            let stages = (1..=most).map(|level| Stage::level(level, 400_000_000)).collect();
            with_stages(Load::closed(most as u32), stages)
        };
        assert_eq!(clients(40), "40 stages, up to 40 clients");
        assert_eq!(clients(2), "1 client for 0.4 s, then 2 clients for 0.4 s");
        assert_eq!(brief(&Load::closed(8)), "8 clients");
        let poisson = Load { arrivals: Arrivals::Poisson, ..Load::closed(8) };
        let ramp = vec![Stage { length_ns: 1, from: 10, to: 4_000 }; 3];
        assert_eq!(with_stages(poisson, ramp), "3 stages, up to 4000/s");
    }
}
