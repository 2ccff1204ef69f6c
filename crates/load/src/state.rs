//! Settings of the blocking-client engine, and the state shared by all threads of a trial.

use model::{ErrorClass, Failure, Generation, Load, Phase};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::recorder::Recorder;
use crate::stall::Pulse;
use crate::step::Step;

/// How often a client hands over its records, and how often progress is reported.
pub(crate) const TICK: Duration = Duration::from_millis(250);

/// Load to offer, and settings of its clients.
pub struct Engine<'a> {
    /// Phases, in order.
    pub phases: &'a [Phase],
    /// A load with planned arrivals and their seed: at a constant rate, or in stages whose rates
    /// are shares of that of the phase [`PEAK`](model::PEAK). `None` for a closed load.
    pub planned: Option<(&'a Load, u64)>,
    /// Whether values are drawn inside or outside the timed span.
    pub generation: Generation,
    /// CPUs for the client threads; empty to leave the threads unpinned.
    pub cpus: &'a [usize],
    /// Reply timeout of the clients, nanoseconds.
    pub timeout_ns: u64,
    /// Time without any answer after which the trial ends, nanoseconds; 0 for no limit.
    pub stall_ns: u64,
    /// Set from outside to end the trial early.
    pub stop: &'a AtomicBool,
}

/// State shared by all threads of a trial.
pub(crate) struct Shared<'a> {
    pub(crate) engine: &'a Engine<'a>,
    pub(crate) gate: Barrier,
    pub(crate) clients: usize,
    /// The step that starts at the gate; `None` once all are over.
    step: Mutex<Option<Arc<Step>>>,
    /// When the current step started; the same for all clients.
    phase_start: Mutex<Instant>,
    pub(crate) merged: Mutex<Recorder>,
    /// By client.
    pub(crate) pulses: Vec<Pulse>,
    pub(crate) failure: Mutex<Option<Failure>>,
    failed: AtomicBool,
}

impl<'a> Shared<'a> {
    /// State for this many clients, before any of them has started.
    pub(crate) fn new(engine: &'a Engine<'a>, clients: usize) -> Self {
        Self {
            engine,
            gate: Barrier::new(clients + 1),
            clients,
            step: Mutex::default(),
            phase_start: Mutex::new(Instant::now()),
            merged: Mutex::default(),
            pulses: (0..clients).map(|_| Pulse::default()).collect(),
            failure: Mutex::default(),
            failed: AtomicBool::new(false),
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.failed.load(Ordering::Relaxed) || self.engine.stop.load(Ordering::Relaxed)
    }

    pub(crate) fn fail(&self, class: ErrorClass, message: String) {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.get_or_insert(Failure { class, message });
        self.failed.store(true, Ordering::Relaxed);
    }

    /// Why the run is over, unless it was stopped from outside.
    pub(crate) fn failure(&self) -> Option<Failure> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sleeps for `duration`, or until the run is over.
    pub(crate) fn wait(&self, duration: Duration) {
        let until = Instant::now() + duration;
        while !self.is_over() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            thread::sleep(left.min(TICK));
        }
    }

    /// The step that starts at the gate.
    pub(crate) fn lock_step(&self) -> MutexGuard<'_, Option<Arc<Step>>> {
        self.step.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn lock_phase_start(&self) -> MutexGuard<'_, Instant> {
        self.phase_start.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn lock_merged(&self) -> MutexGuard<'_, Recorder> {
        self.merged.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
