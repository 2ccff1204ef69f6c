//! What changes seldom while a run lasts: targets, the trial under way, what failed, how it ended.

use model::{
    Cell, Event, Failure, Header, Load, Plan, Schedule, Seal, SealStatus, TargetState, Trial,
};
use serde::Serialize;
use std::collections::VecDeque;

/// Stages of a load of which each is told.
const STAGES_TOLD_MAX: usize = 2;

/// Warnings, and trials that failed, of which the words are kept.
const WORDS_MAX: usize = 20;

/// The state of a run, as readers get it.
#[derive(Debug, Default, Serialize)]
pub(crate) struct State {
    run: String,
    study: String,
    title: String,
    question: String,
    scale: &'static str,
    tool: String,
    started_unix_ms: u64,
    /// Those that were checked.
    targets: Vec<Target>,
    now: Option<Now>,
    /// Share of the run that was done when the trial under way began.
    done_share: f64,
    /// Seconds that were left then; `None` where that is not foreseen.
    left_s: Option<f64>,
    /// Trials that have ended.
    trials: u64,
    /// The last of those that failed, and of probes.
    failed: VecDeque<Failed>,
    /// The last ones.
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

/// The trial under way.
#[derive(Debug, Serialize)]
struct Now {
    /// From 0.
    block: u32,
    cell: String,
    target: String,
    profile: String,
    load: String,
    /// When it began, seconds since the run did.
    since_s: f64,
    /// `None` before the first.
    phase: Option<String>,
    /// From 0; `None` where the load has none.
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
    /// Whether there is a report to read; `None` while it is made.
    report: Option<bool>,
}

impl State {
    /// Takes in what is neither recorded nor sampled nor of one trial; true where that changed
    /// anything.
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

    /// The report is there, or will never be.
    pub(crate) fn reported(&mut self, is_there: bool) {
        if let Some(ended) = &mut self.ended {
            ended.report = Some(is_there);
        }
    }

    fn cell(&self, id: &str) -> Option<&Cell> {
        self.cells.iter().find(|cell| cell.id == id)
    }

    /// Name of a cell's target; the cell's id where it is not of the plan.
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

    /// The phase and the stage under way; true where they changed.
    pub(crate) fn phase_is(&mut self, phase: &str, stage: Option<u32>) -> bool {
        let Some(now) = &mut self.now else { return false };
        let is_new = now.phase.as_deref() != Some(phase);
        // Progress knows no stage: what was recorded told it.
        let stage = if is_new { stage } else { stage.or(now.stage) };
        let changes = is_new || now.stage != stage;
        (now.phase, now.stage) = (Some(phase.into()), stage);
        changes
    }
}

/// A load in few words: of many stages their number, and the most that any asks for.
fn brief(load: &Load) -> String {
    let Schedule::Stages(stages) = &load.schedule else { return load.to_string() };
    let stages = stages.len();
    let most = match load.highest_per_s() {
        Some(rate_per_s) => format!("{rate_per_s}/s"),
        None => format!("{} clients", load.clients),
    };
    if stages <= STAGES_TOLD_MAX {
        load.to_string()
    } else {
        format!("{stages} stages, up to {most}")
    }
}

fn keep<T>(all: &mut VecDeque<T>, one: T) {
    if all.len() == WORDS_MAX {
        all.pop_front();
    }
    all.push_back(one);
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Arrivals, Stage};

    #[test]
    fn a_load_of_many_stages_is_told_in_brief() {
        let staged =
            |load: Load, stages| brief(&Load { schedule: Schedule::Stages(stages), ..load });
        let clients = |most: u64| {
            let crowd = (1..=most).map(|level| Stage::level(level, 400_000_000)).collect();
            staged(Load::closed(most as u32), crowd)
        };
        assert_eq!(clients(40), "40 stages, up to 40 clients");
        assert_eq!(clients(2), "1 client for 0.4 s, then 2 clients for 0.4 s");
        assert_eq!(brief(&Load::closed(8)), "8 clients");
        let poisson = Load { arrivals: Arrivals::Poisson, ..Load::closed(8) };
        let climb = vec![Stage { length_ns: 1, from: 10, to: 4_000 }; 3];
        assert_eq!(staged(poisson, climb), "3 stages, up to 4000/s");
    }
}
