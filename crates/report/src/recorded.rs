//! A run's record as the judgement reads it.

use model::{Cell, Failure, Header, NullRate, Sample, Seal, StoreCounters, TargetState, Trial};
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// Everything a record holds, read back or still in memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    /// Plan and conditions.
    pub header: Header,
    /// What was learnt of each target before the first trial, in any order; a target that is
    /// missing here was neither reached nor refused.
    pub targets: Vec<TargetState>,
    /// All trials, in any order. Where a resumed run measured a cell of a block again, the later
    /// entry counts.
    pub trials: Vec<Trial>,
    /// How the run ended; `None` when it was killed, or is under way.
    pub seal: Option<Seal>,
    /// True of a run that is under way.
    pub running: bool,
    /// What was sampled while trials lasted, by block and id of the cell, each in the order of
    /// time; empty where nothing was.
    pub samples: BTreeMap<(u32, String), Vec<Sample>>,
}

impl Recorded {
    /// What is known of that target.
    pub(crate) fn state(&self, target: &str) -> Option<&TargetState> {
        self.targets.iter().find(|t| t.target == target)
    }

    /// Whether a trial of that cell failed.
    pub(crate) fn has_failed(&self, cell: &str) -> bool {
        self.trials.iter().any(|t| t.cell == cell && t.failure.is_some())
    }

    /// Why that target was not measured, when it was not.
    pub(crate) fn unavailable(&self, target: &str) -> Option<&Failure> {
        self.state(target).and_then(|t| t.unavailable.as_ref())
    }

    /// What the generator reached with a phase's load on the null server: the highest rate, of the
    /// one before the trials and the one after them.
    pub(crate) fn null_rate(&self, cell: &str, phase: &str) -> Option<&NullRate> {
        let after = self.seal.iter().flat_map(|seal| &seal.null_rates);
        let all = self.header.null_rates.iter().chain(after);
        let own = all.filter(|null| null.cell == cell && null.phase == phase);
        own.max_by(|a, b| a.rate_per_s.partial_cmp(&b.rate_per_s).unwrap_or(Ordering::Equal))
    }

    /// Trials of a cell by block; a later entry of a block replaces an earlier one.
    pub(crate) fn latest(&self, cell: &str) -> Vec<&Trial> {
        let own = self.trials.iter().filter(|trial| trial.cell == cell);
        let by_block: BTreeMap<u32, &Trial> = own.map(|trial| (trial.block, trial)).collect();
        by_block.into_values().collect()
    }

    /// What was sampled in a trial, in the order of time; empty where nothing was.
    pub(crate) fn samples_of(&self, trial: &Trial) -> &[Sample] {
        self.samples.get(&(trial.block, trial.cell.clone())).map_or(&[], Vec::as_slice)
    }

    /// By how much what a cell's servers count grew while they were sampled, in all trials.
    pub(crate) fn counted(&self, cell: &str, read: fn(&StoreCounters) -> Option<u64>) -> u64 {
        let grown = |trial: &Trial| {
            let mut told = self.samples_of(trial).iter().filter_map(|s| read(s.store.as_ref()?));
            let first = told.next()?;
            Some(told.next_back()?.saturating_sub(first))
        };
        self.latest(cell).into_iter().filter_map(grown).sum()
    }
}

/// Names of a cell's planned phases, then of any others that were recorded.
pub(crate) fn phase_names<'a>(cell: &'a Cell, trials: &[&'a Trial]) -> Vec<&'a str> {
    let mut names: Vec<&str> = cell.workload.phases().iter().map(|p| p.name.as_str()).collect();
    for point in trials.iter().flat_map(|trial| &trial.points) {
        if !names.contains(&point.phase.as_str()) {
            names.push(&point.phase);
        }
    }
    names
}
