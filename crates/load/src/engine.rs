//! The phases of a trial with blocking clients.

use model::{ErrorClass, Failure, Load, PEAK, Phase};
use std::sync::atomic::Ordering;
use workloads::Client;

use crate::clients::{Clients, Threads};
use crate::crew::{Crew, Part};
use crate::meter::{Finished, Meter, PhaseRecord, Progress};
use crate::state::Settings;
use crate::step::Step;

/// Load to offer, and settings of its clients.
pub struct Engine<'a> {
    /// Phases, in order.
    pub phases: &'a [Phase],
    /// A load with planned arrivals and their seed: at a constant rate, or in stages whose rates
    /// are shares of that of the phase [`PEAK`]. `None` for a closed load.
    pub planned: Option<(&'a Load, u64)>,
    /// Settings of the clients.
    pub settings: Settings<'a>,
}

impl Engine<'_> {
    /// Fills, then runs every phase with all clients, one thread each.
    pub fn run(
        &self,
        clients: Vec<Box<dyn Client>>,
        meter: &mut dyn Meter,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Finished {
        let mut clients = Clients::new(clients);
        self.run_by(&mut Threads::new(&mut clients, self.settings), meter, progress)
    }

    /// The same with the clients of `crew`.
    pub fn run_by(
        &self,
        crew: &mut dyn Crew,
        meter: &mut dyn Meter,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Finished {
        // The fill's results are not shown during the run, only its speed.
        let of_fill = &mut |report: Progress<'_>| progress(Progress { latest: None, ..report });
        let Part { record: fill, failure } = crew.fill(meter, of_fill);
        let mut finished = Finished { fill, failure, ..Finished::default() };
        meter.filled();
        for index in 0..self.phases.len() {
            if self.is_over(&finished) {
                break;
            }
            if let Err(failure) = meter.before_phase() {
                finished.failure = Some(failure);
                break;
            }
            let record = self.phase(index, crew, meter, progress, &mut finished);
            finished.phases.extend(record);
        }
        if !self.is_over(&finished) {
            finished.read_back = crew.read_back();
        }
        finished.interrupted = self.settings.stop.load(Ordering::Relaxed);
        finished
    }

    fn is_over(&self, finished: &Finished) -> bool {
        finished.failure.is_some() || self.settings.stop.load(Ordering::Relaxed)
    }

    /// Runs a phase, step by step. A phase that ended early has the stages that were complete.
    fn phase(
        &self,
        index: usize,
        crew: &mut dyn Crew,
        meter: &mut dyn Meter,
        progress: &mut dyn FnMut(Progress<'_>),
        finished: &mut Finished,
    ) -> Option<PhaseRecord> {
        let phase = &self.phases[index];
        let peak_per_s =
            finished.phase(PEAK).and_then(PhaseRecord::whole).map_or(0.0, |peak| peak.rate_per_s);
        let needs_peak =
            self.planned.is_some_and(|(load, _)| load.needs_peak()) && phase.name != PEAK;
        if needs_peak && peak_per_s <= 0.0 {
            let message = "no operation succeeded in phase `peak`".into();
            finished.failure = Some(Failure { class: ErrorClass::Other, message });
            return None;
        }
        let mut record: Option<PhaseRecord> = None;
        for step in Step::of_phase((index, phase), self.planned, peak_per_s) {
            if self.is_over(finished) {
                break;
            }
            let first = record.as_ref().and_then(|record| record.begun);
            let Part { record: next, failure } = crew.step(&step, first, meter, progress);
            finished.failure = failure;
            // Of a step that was stopped nothing counts, nor of a stage that failed.
            let is_partial = self.is_over(finished);
            if is_partial && (finished.failure.is_none() || step.stage.is_some()) {
                break;
            }
            match (&mut record, next) {
                (Some(record), Some(next)) => record.add_stage(next),
                (None, Some(next)) => record = Some(next),
                (_, None) => break,
            }
        }
        record
    }
}
