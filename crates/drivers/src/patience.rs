//! How long a store may be cleaned.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use model::{ErrorClass, Failure};

/// How long the cleaning of a store may take: ten minutes, but only five seconds more once the user
/// has interrupted the run.
pub struct Patience<'a> {
    stop: &'a AtomicBool,
    began: Instant,
    interrupted: Option<Instant>,
}

/// Longest cleaning: a store of a hundred million keys takes about half of it.
const CLEANING_MAX: Duration = Duration::from_secs(600);
/// What is left of it once the run is interrupted.
const CLEANING_ON: Duration = Duration::from_secs(5);

impl<'a> Patience<'a> {
    /// Begins now; `stop` is set when the user interrupts.
    pub fn new(stop: &'a AtomicBool) -> Self {
        Self { stop, began: Instant::now(), interrupted: None }
    }

    /// Errors: the time is over.
    pub fn check(&mut self) -> Result<(), Failure> {
        let late = |words: String| Err(Failure { class: ErrorClass::Timeout, message: words });
        if self.began.elapsed() > CLEANING_MAX {
            return late(format!("cleaning took longer than {} s", CLEANING_MAX.as_secs()));
        }
        if !self.stop.load(Ordering::Relaxed) {
            return Ok(());
        }
        let interrupted = *self.interrupted.get_or_insert_with(Instant::now);
        if interrupted.elapsed() > CLEANING_ON {
            let seconds = CLEANING_ON.as_secs();
            return late(format!("cleaning was interrupted and took more than {seconds} s longer"));
        }
        Ok(())
    }
}
