//! Settings of blocking clients, and the state shared by all threads of a step.

use model::{ErrorClass, Failure, Generation};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Barrier, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::recorder::Recorder;
use crate::stall::Pulse;

/// How often a client hands over its records, and how often progress is reported.
pub(crate) const TICK: Duration = Duration::from_millis(250);

/// Settings of clients and their threads.
#[derive(Clone, Copy, Debug)]
pub struct Settings<'a> {
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

/// State shared by all threads of a step.
pub(crate) struct Shared<'a> {
    pub(crate) settings: Settings<'a>,
    pub(crate) gate: Barrier,
    /// When the step started; the same for all clients.
    begun: Mutex<Instant>,
    pub(crate) merged: Mutex<Recorder>,
    /// By client.
    pub(crate) pulses: Vec<Pulse>,
    failure: Mutex<Option<Failure>>,
    failed: AtomicBool,
}

impl<'a> Shared<'a> {
    /// State for this many clients, before any of them has started.
    pub(crate) fn new(settings: Settings<'a>, clients: usize) -> Self {
        Self {
            settings,
            gate: Barrier::new(clients + 1),
            begun: Mutex::new(Instant::now()),
            merged: Mutex::default(),
            pulses: (0..clients).map(|_| Pulse::default()).collect(),
            failure: Mutex::default(),
            failed: AtomicBool::new(false),
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.failed.load(Ordering::Relaxed) || self.settings.stop.load(Ordering::Relaxed)
    }

    pub(crate) fn fail(&self, class: ErrorClass, message: String) {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.get_or_insert(Failure { class, message });
        self.failed.store(true, Ordering::Relaxed);
    }

    /// Why the step is over, unless it was stopped from outside.
    pub(crate) fn failure(&self) -> Option<Failure> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sleeps for `duration`, or until the step is over.
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

    pub(crate) fn lock_begun(&self) -> MutexGuard<'_, Instant> {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn lock_merged(&self) -> MutexGuard<'_, Recorder> {
        self.merged.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
