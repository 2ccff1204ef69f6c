//! Runs a plan: blocks, trials, fresh rigs, when to stop, resume. Everything it does is an event.
//!
//! - [`mod@bench`]: the targets made ready: private servers to start, or existing ones to use.
//! - [`ready`]: what was made ready for one trial.
//! - [`trial`]: one measured run of one cell; `kv` does it on the wire engine, `app_cache` opens
//!   the clients of an application cache, `sampler` reads what server and generator use meanwhile.
//! - `actions`: what is done to a target meanwhile; `roles`: which of its servers is the primary;
//!   `deadline`: work that ends at a time.
//! - [`data_files`]: records and lists of an application cache that are read and not drawn.
//! - [`calibrate`]: what this machine can do and what the generator costs on it.
//! - [`mod@null`]: what the generator reaches with the same load on a server that does nothing.
//! - `search`: a trial whose load is a search, probe by probe.
//! - `room`: memory of servers that were there before, which is never filled; `machine`: the same
//!   of this machine's memory and disks; `demand`: what a cell writes.
//! - `recorded`: what is told a few times a second while a phase runs.
//! - `error_hints`: what servers said, fit for people; `wall`: the wall clock, and whether it was
//!   set.
//! - `names`: how keys are named; `address`: where servers are.
//! - [`schedule`]: the order of cells in a block.
//! - [`effort`]: when enough was measured.
//! - [`sinks`]: those who listen.
//!
//! The way of a run is [`run`]: check every target, then blocks of trials, then the seal.

mod actions;
mod address;
mod app_cache;
pub mod bench;
pub mod calibrate;
pub mod data_files;
mod deadline;
mod demand;
pub mod effort;
mod error_hints;
mod intervals;
mod kv;
mod machine;
mod names;
pub mod null;
mod read_back;
pub mod ready;
mod recorded;
mod roles;
mod room;
mod sampler;
pub mod schedule;
mod search;
pub mod sinks;
pub mod trial;
mod wall;

use drivers::Facts;
use model::{Cell, ErrorClass, Event, Failure, Header, Plan, Seal, SealStatus, TargetState, Trial};
use rig::TrialDirs;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

pub use bench::{Bench, Setup, remove_leftovers};
pub use effort::StopReason;
pub use null::null_rates;
pub use ready::Ready;
pub use sinks::Sinks;
pub use trial::Measured;
pub use wall::unix_ms;

/// Failed trials in a row after which a target is left out of the rest of the run.
const FAILURES_IN_A_ROW: u32 = 3;

/// A run that has ended.
pub struct Ended {
    /// Its last line.
    pub seal: Seal,
    /// What lies where its trials left files on the disk. They are removed when this is dropped,
    /// which takes minutes where there are hundreds of thousands.
    pub files: Vec<Arc<TrialDirs>>,
}

/// Runs the plan of `header` and tells `sinks` everything. `earlier` are trials that an
/// interrupted run has measured already, a search as far as it came; `stop` ends the run early from
/// outside.
pub fn run(
    header: Header,
    setup: &Setup,
    earlier: Vec<Trial>,
    sinks: &mut Sinks<'_>,
    stop: &AtomicBool,
) -> Ended {
    let plan = header.plan.clone();
    let run = header.run.clone();
    let null_rates = header.null_rates.clone();
    sinks.tell(&Event::RunStarted(Box::new(header)));
    let mut bench = Bench::new(&plan, &run, setup);
    let ready = check_targets(&plan, &mut bench, sinks, stop);
    let resumed = !earlier.is_empty();
    // A run that is taken up in vain, say without the store's password, can be taken up again.
    let in_vain = ready.is_empty() && setup.resumes;
    let mut measuring = Measuring {
        plan: &plan,
        bench,
        ready,
        spent_before_ns: earlier.iter().map(|t| t.took_ns).sum(),
        started: Instant::now(),
        trials: earlier,
        failures: BTreeMap::new(),
        sinks,
        stop,
    };
    let (blocks, stopped_because) = measuring.blocks();
    let interrupted = stop.load(Ordering::Relaxed);
    let again = if interrupted {
        Vec::new()
    } else {
        null::again(&plan, setup, &null_rates, &measuring.trials)
    };
    let seal = Seal {
        status: if interrupted || in_vain { SealStatus::Interrupted } else { SealStatus::Complete },
        finished_unix_ms: unix_ms(),
        blocks,
        stopped_because,
        resumed,
        null_rates: again,
    };
    let files = measuring.bench.into_files();
    sinks.tell(&Event::RunEnded(seal.clone()));
    Ended { seal, files }
}

/// Asks every target for its version and one verified operation; those that passed.
fn check_targets(
    plan: &Plan,
    bench: &mut Bench<'_>,
    sinks: &mut Sinks<'_>,
    stop: &AtomicBool,
) -> BTreeSet<String> {
    let mut ready = BTreeSet::new();
    for target in &plan.targets {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let name = target.name.clone();
        match bench.check(target, stop) {
            Ok(Facts { version, configuration, .. }) => {
                let version = Some(version);
                let target = name.clone();
                let state = TargetState { target, version, configuration, unavailable: None };
                sinks.tell(&Event::TargetChecked(state));
                ready.insert(name);
            }
            Err(Failure { class, message }) => {
                let message = error_hints::explained(&message, bench.setup.endpoints.get(&name));
                let unavailable = Some(Failure { class, message });
                let state = TargetState { target: name, unavailable, ..TargetState::default() };
                sinks.tell(&Event::TargetChecked(state));
            }
        }
    }
    ready
}

/// The state of a run between its check and its seal.
struct Measuring<'a, 'b, 's> {
    plan: &'a Plan,
    bench: Bench<'a>,
    ready: BTreeSet<String>,
    spent_before_ns: u64,
    started: Instant,
    trials: Vec<Trial>,
    failures: BTreeMap<String, u32>,
    sinks: &'b mut Sinks<'s>,
    stop: &'a AtomicBool,
}

impl Measuring<'_, '_, '_> {
    /// Runs blocks until it is enough; the number of whole blocks, and why no more.
    fn blocks(&mut self) -> (u32, String) {
        if self.stop.load(Ordering::Relaxed) {
            return (0, "interrupted".into());
        }
        if !self.plan.cells.iter().any(|c| self.ready.contains(&c.target)) {
            return (0, "no target can be measured".into());
        }
        for block in 0.. {
            if let Some(reason) = self.stop_reason(block) {
                return (block, reason.to_string());
            }
            for (position, cell) in schedule::order(self.plan, block).into_iter().enumerate() {
                if self.stop.load(Ordering::Relaxed) {
                    return (block, "interrupted".into());
                }
                self.cell(block, position as u32, cell);
            }
            if self.stop.load(Ordering::Relaxed) {
                return (block, "interrupted".into());
            }
        }
        unreachable!("blocks are counted up to a limit")
    }

    fn spent_ns(&self) -> u64 {
        self.spent_before_ns + self.started.elapsed().as_nanos() as u64
    }

    fn stop_reason(&self, block: u32) -> Option<StopReason> {
        if self.ready.is_empty() {
            return Some(StopReason::NothingLeft);
        }
        effort::stop_reason(self.plan, &self.trials, block)
    }

    fn cell(&mut self, block: u32, position: u32, cell: &Cell) {
        let is_own = |t: &Trial| t.block == block && t.cell == cell.id;
        let known = self.trials.iter().position(is_own);
        let goes_on = |at: usize| self.plan.next_probe(&self.trials[at]).is_some();
        if !self.ready.contains(&cell.target) || known.is_some_and(|at| !goes_on(at)) {
            return;
        }
        let trial = known.map_or_else(
            || Trial {
                block,
                position,
                cell: cell.id.clone(),
                started_unix_ms: unix_ms(),
                ..Trial::default()
            },
            |at| self.trials.remove(at),
        );
        let (done_share, left_ns) =
            effort::foresee(self.plan, &self.ready, &self.trials, self.spent_ns());
        let id = cell.id.clone();
        self.sinks.tell(&Event::TrialStarted { block, cell: id, done_share, left_ns });
        let sinks = &mut *self.sinks;
        let measured = trial::run(&mut self.bench, cell, trial, self.stop, &mut |event| {
            sinks.tell(&event);
        });
        let Some(Measured { trial, intervals, samples }) = measured else { return };
        self.note_failure(&cell.target, trial.failure.as_ref());
        self.sinks.tell(&Event::TrialEnded(Box::new(trial.clone())));
        if !intervals.is_empty() {
            self.sinks.tell(&Event::Intervals { cell: cell.id.clone(), intervals });
        }
        if !samples.is_empty() {
            self.sinks.tell(&Event::Samples { block, cell: cell.id.clone(), samples });
        }
        self.trials.push(trial);
    }

    /// Leaves a target out that fails over and over.
    fn note_failure(&mut self, target: &str, failure: Option<&Failure>) {
        // What would harm others is not tried again.
        if let Some(Failure { class: ErrorClass::NotOurs, .. }) = failure {
            self.ready.remove(target);
            let left_out = format!("target `{target}` is left out of the rest of the run");
            self.sinks.tell(&Event::Warning(left_out));
            return;
        }
        let in_a_row = self.failures.entry(target.into()).or_default();
        *in_a_row = if failure.is_some() { *in_a_row + 1 } else { 0 };
        if *in_a_row >= FAILURES_IN_A_ROW {
            self.ready.remove(target);
            self.sinks.tell(&Event::Warning(format!(
                "target `{target}` is left out of the rest of the run: {FAILURES_IN_A_ROW} of its \
                 trials in a row failed"
            )));
        }
    }
}
