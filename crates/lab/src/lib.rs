//! Runs a plan: blocks of trials on fresh stores, stop rules, resume. Every step emits an event.
//!
//! - `setup`: what a run needs besides its plan.
//! - [`mod@provision`]: prepares targets: starts private servers or connects to existing ones.
//! - [`ready`]: stores prepared for one trial.
//! - [`trial`]: one measured run of one cell. `kv` runs it on the wire engine with the requests of
//!   `kv_work`. The other workloads have blocking clients: `opening` is what they need, `clients`
//!   opens them with `app_cache`, `cache_aside` and `entries`, `crew` runs them. `sampler` samples
//!   resource usage of server and generator.
//! - `actions`: planned actions on a target, such as a save; `faults`: those that interrupt
//!   service; `fault_command`: the same by a command of the user; `roles`: which server is the
//!   primary; `deadline`: work with a deadline.
//! - [`data_files`]: records and operation lists of an application cache, read from files.
//! - [`calibrate`]: limits of this machine, and CPU cost of the generator on it.
//! - [`mod@null`]: rate of the generator with the same load on a null server.
//! - [`fleet`]: loads from several processes, on this machine and others; `request_form`: requests
//!   that are all alike, which they can send as well.
//! - `search`: a trial whose load is a search, probe by probe.
//! - `room`: free memory of existing servers; `machine`: free memory and disk of this machine;
//!   `demand`: how much a cell writes; `disk_demand`: what a trial puts on the disk of a server.
//! - `server_meter`: CPU time of servers, and what was taken from it; `elsewhere`: servers on
//!   another machine.
//! - `recorded`: progress reports while a phase runs.
//! - `error_hints`: server errors with a hint for the user; `wall`: steps of the wall clock.
//! - `names`: names of keys; `address`: addresses of servers.
//! - [`schedule`]: the order of cells in a block.
//! - [`effort`]: stop rule and remaining time.
//! - [`sinks`]: event listeners.
//!
//! [`run`] is the entry point: check every target, run blocks of trials, seal the record.

mod actions;
mod address;
mod app_cache;
mod cache_aside;
pub mod calibrate;
mod clients;
mod crew;
pub mod data_files;
mod deadline;
mod demand;
mod disk_demand;
pub mod effort;
mod elsewhere;
mod entries;
mod error_hints;
mod fault_command;
mod faults;
pub mod fleet;
mod groups;
mod kv;
mod kv_work;
mod latencies;
mod machine;
mod names;
pub mod null;
mod opening;
mod pacing;
pub mod provision;
mod read_back;
pub mod ready;
mod recorded;
mod request_form;
mod roles;
mod room;
mod sampler;
pub mod schedule;
mod search;
mod server_load;
mod server_meter;
mod session_size;
mod setup;
pub mod sinks;
mod tier;
mod transport;
pub mod trial;
mod wall;

use drivers::Facts;
use model::{Cell, ErrorClass, Event, Failure, Header, Plan, Seal, SealStatus, TargetState, Trial};
use rig::TrialDirs;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

pub use effort::{StopReason, too_small_a_budget};
pub use null::null_rates;
pub use provision::{TargetProvisioner, remove_leftovers};
pub use ready::Ready;
pub use request_form::RequestForm;
pub use setup::{Protection, Setup};
pub use sinks::Sinks;
pub use trial::Measured;
pub use wall::unix_ms;

/// Consecutive failed trials after which a target is skipped for the rest of the run.
const FAILURES_IN_A_ROW: u32 = 3;

/// A finished run.
pub struct Ended {
    /// Last line of its record.
    pub seal: Seal,
    /// Directories in which trials left files. Dropping this removes them, which takes minutes for
    /// hundreds of thousands of files.
    pub files: Vec<Arc<TrialDirs>>,
}

/// Runs the plan of `header` and sends every event to `sinks`. `earlier` has the trials of an
/// interrupted run, including a partial search. Setting `stop` ends the run early.
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
    sinks.emit(&Event::RunStarted(Box::new(header)));
    let mut provisioner = TargetProvisioner::new(&plan, &run, setup);
    let ready = check_targets(&plan, &mut provisioner, sinks, stop);
    let resumed = !earlier.is_empty();
    // A resume that measured nothing, say without the store's password, can be repeated.
    let in_vain = ready.is_empty() && setup.resumes;
    let mut measuring = Measuring {
        plan: &plan,
        setup,
        provisioner,
        ready,
        spent_before_ns: earlier.iter().map(|t| t.took_ns).sum(),
        started: Instant::now(),
        trials: earlier,
        failures: BTreeMap::new(),
        sinks,
        stop,
    };
    let (blocks, stopped_because) = measuring.blocks();
    let lost = setup.lost().is_some();
    let interrupted = stop.load(Ordering::Relaxed) || lost;
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
        lost,
        null_rates: again,
    };
    let files = measuring.provisioner.into_files();
    sinks.emit(&Event::RunEnded(seal.clone()));
    Ended { seal, files }
}

/// Checks version and one verified operation of every target; returns the names of those that pass.
fn check_targets(
    plan: &Plan,
    provisioner: &mut TargetProvisioner<'_>,
    sinks: &mut Sinks<'_>,
    stop: &AtomicBool,
) -> BTreeSet<String> {
    let mut ready = BTreeSet::new();
    for target in &plan.targets {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let name = target.name.clone();
        match provisioner.check(target, stop) {
            Ok(Facts { version, configuration, .. }) => {
                let version = Some(version);
                let target = name.clone();
                let state = TargetState { target, version, configuration, unavailable: None };
                sinks.emit(&Event::TargetChecked(state));
                ready.insert(name);
            }
            Err(Failure { class, message }) => {
                let message = error_hints::explained(&message, provisioner.of_server(&name));
                let unavailable = Some(Failure { class, message });
                let state = TargetState { target: name, unavailable, ..TargetState::default() };
                sinks.emit(&Event::TargetChecked(state));
            }
        }
    }
    ready
}

/// State of a run between check and seal.
struct Measuring<'a, 'b, 's> {
    plan: &'a Plan,
    setup: &'a Setup,
    provisioner: TargetProvisioner<'a>,
    ready: BTreeSet<String>,
    spent_before_ns: u64,
    started: Instant,
    trials: Vec<Trial>,
    failures: BTreeMap<String, u32>,
    sinks: &'b mut Sinks<'s>,
    stop: &'a AtomicBool,
}

impl Measuring<'_, '_, '_> {
    /// Runs blocks until a stop rule applies. Returns the number of whole blocks and the reason.
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
                // No other trial can be measured; a resumed run has new workers.
                if let Some(lost) = self.setup.lost() {
                    return (block, lost);
                }
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
        let goes_on = |at: usize| {
            self.trials[at].is_lost() || self.plan.next_probe(&self.trials[at]).is_some()
        };
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
            |at| match self.trials.remove(at) {
                lost if lost.is_lost() => lost.again(unix_ms()),
                part => part,
            },
        );
        let (done_share, left_ns) =
            effort::estimate_remaining(self.plan, &self.ready, &self.trials, self.spent_ns());
        let id = cell.id.clone();
        self.sinks.emit(&Event::TrialStarted { block, cell: id, done_share, left_ns });
        let sinks = &mut *self.sinks;
        let measured = trial::run(&mut self.provisioner, cell, trial, self.stop, &mut |event| {
            sinks.emit(&event);
        });
        let Some(Measured { trial, intervals, samples }) = measured else { return };
        // Whether a store is killed by its limit, and what the machine must have, depends on the
        // cell.
        let is_of_store = |failure: &&Failure| {
            let not_its_own = [ErrorClass::Killed, ErrorClass::Missing, ErrorClass::Lost];
            !not_its_own.contains(&failure.class)
        };
        self.note_failure(&cell.target, trial.failure.as_ref().filter(is_of_store));
        self.sinks.emit(&Event::TrialEnded(Box::new(trial.clone())));
        if !intervals.is_empty() {
            self.sinks.emit(&Event::Intervals { cell: cell.id.clone(), intervals });
        }
        // Those of a trial that is measured again would mix with its own.
        if !samples.is_empty() && !trial.is_lost() {
            self.sinks.emit(&Event::Samples { block, cell: cell.id.clone(), samples });
        }
        self.trials.push(trial);
    }

    /// Counts failures, and skips a target that keeps failing.
    fn note_failure(&mut self, target: &str, failure: Option<&Failure>) {
        // Never retry what could harm other users' data.
        if let Some(Failure { class: ErrorClass::NotOurs, .. }) = failure {
            self.ready.remove(target);
            let skipped = format!("target `{target}` is skipped for the rest of the run");
            self.sinks.emit(&Event::Warning(skipped));
            return;
        }
        let in_a_row = self.failures.entry(target.into()).or_default();
        *in_a_row = if failure.is_some() { *in_a_row + 1 } else { 0 };
        if *in_a_row >= FAILURES_IN_A_ROW {
            self.ready.remove(target);
            self.sinks.emit(&Event::Warning(format!(
                "target `{target}` is skipped for the rest of the run: {FAILURES_IN_A_ROW} \
                 consecutive trials failed"
            )));
        }
    }
}
