//! Time limit for cleaning a store.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use model::{ErrorClass, Failure};

/// Time limit for cleaning a store: ten minutes, but only five more seconds once the user has
/// interrupted the run.
pub struct CleanupDeadline<'a> {
    stop: &'a AtomicBool,
    started: Instant,
    interrupted: Option<Instant>,
}

/// Time limit of a cleanup. A store of a hundred million keys takes about half of it.
const CLEANING_MAX: Duration = Duration::from_secs(600);
/// Time left once the run is interrupted.
const CLEANING_AFTER_INTERRUPT: Duration = Duration::from_secs(5);

impl<'a> CleanupDeadline<'a> {
    /// Starts the clock; `stop` is set when the user interrupts.
    pub fn new(stop: &'a AtomicBool) -> Self {
        Self { stop, started: Instant::now(), interrupted: None }
    }

    /// Errors: the time limit has passed.
    pub fn check(&mut self) -> Result<(), Failure> {
        let late = |message: String| Err(Failure { class: ErrorClass::Timeout, message });
        if self.started.elapsed() > CLEANING_MAX {
            return late(format!("cleaning took longer than {} s", CLEANING_MAX.as_secs()));
        }
        if !self.stop.load(Ordering::Relaxed) {
            return Ok(());
        }
        let interrupted = *self.interrupted.get_or_insert_with(Instant::now);
        if interrupted.elapsed() > CLEANING_AFTER_INTERRUPT {
            let seconds = CLEANING_AFTER_INTERRUPT.as_secs();
            return late(format!("cleaning was interrupted and took more than {seconds} s longer"));
        }
        Ok(())
    }
}
