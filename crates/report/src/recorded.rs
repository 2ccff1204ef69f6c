//! A run's record, the input of the evaluation.

use model::{
    Cell, ErrorClass, Failure, Header, NullRate, Sample, Seal, StoreCounters, TargetState, Trial,
};
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// The contents of a record, read back or still in memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    /// Plan and conditions.
    pub header: Header,
    /// Results of the target checks before the first trial, in any order; a target missing here was
    /// not checked.
    pub targets: Vec<TargetState>,
    /// All trials, in any order. If a resumed run measured a cell of a block again, the later entry
    /// counts.
    pub trials: Vec<Trial>,
    /// End of the run; `None` if it was killed or is still running.
    pub seal: Option<Seal>,
    /// True for a run that is still running.
    pub running: bool,
    /// Samples of trials by block and cell id, each in chronological order; empty without samples.
    pub samples: BTreeMap<(u32, String), Vec<Sample>>,
}

impl Recorded {
    /// Result of the check of a target.
    pub(crate) fn state(&self, target: &str) -> Option<&TargetState> {
        self.targets.iter().find(|t| t.target == target)
    }

    /// Whether a trial of a cell failed.
    pub(crate) fn has_failed(&self, cell: &str) -> bool {
        self.trials.iter().any(|t| t.cell == cell && t.failure.is_some())
    }

    /// What this machine lacks for a cell, all of whose trials failed for that; `None` if it could
    /// run.
    pub(crate) fn lacking(&self, cell: &str) -> Option<&Failure> {
        let mut own = self.trials.iter().filter(|trial| trial.cell == cell);
        let lacks =
            |trial: &&Trial| trial.failure.as_ref().is_some_and(|f| f.class == ErrorClass::Missing);
        let first = own.next().filter(lacks)?;
        own.all(|trial| lacks(&trial)).then_some(first.failure.as_ref()).flatten()
    }

    /// Why a target was not measured, if it was not.
    pub(crate) fn unavailable(&self, target: &str) -> Option<&Failure> {
        self.state(target).and_then(|t| t.unavailable.as_ref())
    }

    /// The null rate of a phase's load: the higher one of the measurements before and after the
    /// trials.
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

    /// Samples of a trial in chronological order; empty without samples.
    pub(crate) fn samples_of(&self, trial: &Trial) -> &[Sample] {
        self.samples.get(&(trial.block, trial.cell.clone())).map_or(&[], Vec::as_slice)
    }

    /// Growth of a server counter over the samples of a cell, summed over all trials.
    pub(crate) fn counted(&self, cell: &str, read: fn(&StoreCounters) -> Option<u64>) -> u64 {
        let grown = |trial: &Trial| {
            let mut counts = self.samples_of(trial).iter().filter_map(|s| read(s.store.as_ref()?));
            let first = counts.next()?;
            Some(counts.next_back()?.saturating_sub(first))
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
