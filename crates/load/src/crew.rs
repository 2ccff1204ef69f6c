//! Blocking clients as an engine uses them: threads of this process, or of others.

use model::{Failure, ReadBack};
use std::time::Instant;

use crate::meter::{Meter, PhaseRecord, Progress};
use crate::step::Step;

/// The clients of a trial, connected, and idle between the calls of these functions: threads of
/// this process, or of others.
pub trait Crew {
    /// Writes what the phases read.
    fn fill(&mut self, meter: &mut dyn Meter, progress: &mut dyn FnMut(Progress<'_>)) -> Part;

    /// Runs a step. `first` is the start of the measurement of the phase's first step; `None` if
    /// this is the first.
    fn step(
        &mut self,
        step: &Step,
        first: Option<Instant>,
        meter: &mut dyn Meter,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Part;

    /// Reads a sample of the last writes back; `None` if that was stopped.
    fn read_back(&mut self) -> Option<ReadBack>;
}

/// Result of a fill or of a step.
#[derive(Debug, Default)]
pub struct Part {
    /// What was measured until it ended; `None` if nothing was.
    pub record: Option<PhaseRecord>,
    /// Why it ended early, unless the user stopped it.
    pub failure: Option<Failure>,
}
