//! What the engine of blocking clients offers, and the state that all threads of a trial share.

use model::{ErrorClass, Failure, Generation, Phase};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Barrier, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::recorder::Recorder;

/// How often a client hands its records to all, and how often progress is told.
pub(crate) const TICK: Duration = Duration::from_millis(250);

/// What to offer, and how.
pub struct Engine<'a> {
    /// Phases, in order.
    pub phases: &'a [Phase],
    /// Whether values are drawn inside the timed span.
    pub generation: Generation,
    /// CPUs for the client threads; empty to leave them where they are.
    pub cpus: &'a [usize],
    /// How long clients wait for an answer, nanoseconds.
    pub timeout_ns: u64,
    /// Set by someone else to end the trial early.
    pub stop: &'a AtomicBool,
}

/// Shared by all threads of a trial.
pub(crate) struct Shared<'a> {
    pub(crate) engine: &'a Engine<'a>,
    pub(crate) gate: Barrier,
    pub(crate) clients: usize,
    /// When the phase at hand began, the same for all clients.
    begun: Mutex<Instant>,
    pub(crate) merged: Mutex<Recorder>,
    pub(crate) failure: Mutex<Option<Failure>>,
    failed: AtomicBool,
}

impl<'a> Shared<'a> {
    /// What the threads of so many clients share before they begin.
    pub(crate) fn new(engine: &'a Engine<'a>, clients: usize) -> Self {
        Self {
            engine,
            gate: Barrier::new(clients + 1),
            clients,
            begun: Mutex::new(Instant::now()),
            merged: Mutex::default(),
            failure: Mutex::default(),
            failed: AtomicBool::new(false),
        }
    }

    pub(crate) fn over(&self) -> bool {
        self.failed.load(Ordering::Relaxed) || self.engine.stop.load(Ordering::Relaxed)
    }

    pub(crate) fn fail(&self, class: ErrorClass, message: String) {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.get_or_insert(Failure { class, message });
        self.failed.store(true, Ordering::Relaxed);
    }

    /// Waits as long, or until the run is over.
    pub(crate) fn wait(&self, duration: Duration) {
        let until = Instant::now() + duration;
        while !self.over() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            thread::sleep(left.min(TICK));
        }
    }

    pub(crate) fn lock_begun(&self) -> MutexGuard<'_, Instant> {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn lock_merged(&self) -> MutexGuard<'_, Recorder> {
        self.merged.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
