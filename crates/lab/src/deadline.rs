//! Work with a deadline: it ends there and keeps its partial result.

use load::Finished;
use model::{ErrorClass, Failure};
use stats::format_ns;
use std::cell::OnceCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// Maximum delay until the work learns that the user stopped it.
const STOPPED_WITHIN: Duration = Duration::from_millis(10);

/// Deadline of a trial's load, counted from its first start even if the store is replaced later.
pub(crate) struct Deadline {
    after_ns: u64,
    at: OnceCell<Instant>,
}

impl Deadline {
    /// Deadline after `after_ns` nanoseconds; 0 for none.
    pub(crate) fn after(after_ns: u64) -> Self {
        Self { after_ns, at: OnceCell::new() }
    }

    /// Runs a load that ends at the deadline with a partial result. The interrupted point, or else
    /// the trial, gets the deadline as its failure.
    pub(crate) fn within(
        &self,
        stop: &AtomicBool,
        offer: impl FnOnce(&AtomicBool) -> Finished,
    ) -> Finished {
        if self.after_ns == 0 {
            return offer(stop);
        }
        let at = || Instant::now() + Duration::from_nanos(self.after_ns);
        let at = *self.at.get_or_init(at);
        let (mut finished, is_late) = until(Some(at), stop, offer);
        // A load that ended on its own is complete.
        if is_late && finished.interrupted {
            finished.interrupted = false;
            let points = finished.phases.iter_mut().flat_map(|phase| &mut phase.points);
            match points.last().and_then(|point| point.failure.as_mut()) {
                Some(of_point) => *of_point = self.failure(),
                None => finished.failure = Some(self.failure()),
            }
        }
        finished
    }

    /// The failure of a load past its deadline; `None` before the deadline.
    pub(crate) fn is_over(&self) -> Option<Failure> {
        self.at.get().filter(|at| Instant::now() >= **at).map(|_| self.failure())
    }

    fn failure(&self) -> Failure {
        let deadline = format_ns(self.after_ns as f64);
        let message = format!(
            "the trial reached its deadline of {deadline} (raise it with --set deadline_s=SECONDS)"
        );
        Failure { class: ErrorClass::Timeout, message }
    }
}

/// Runs `work` with a flag that is set at the deadline or when `stop` is set; the work must then
/// end soon. Returns the result, and true if the deadline set the flag.
pub(crate) fn until<T>(
    deadline: Option<Instant>,
    stop: &AtomicBool,
    work: impl FnOnce(&AtomicBool) -> T,
) -> (T, bool) {
    let (ends, (done, is_done)) = (AtomicBool::new(false), mpsc::channel::<()>());
    thread::scope(|scope| {
        let ends = &ends;
        let watching = scope.spawn(move || {
            loop {
                let left = deadline.map_or(STOPPED_WITHIN, |deadline| {
                    deadline.saturating_duration_since(Instant::now())
                });
                if left.is_zero() || stop.load(Ordering::Relaxed) {
                    ends.store(true, Ordering::Relaxed);
                    return left.is_zero();
                }
                let waited = is_done.recv_timeout(left.min(STOPPED_WITHIN));
                if !matches!(waited, Err(RecvTimeoutError::Timeout)) {
                    return false;
                }
            }
        });
        let worked = work(ends);
        drop(done);
        (worked, watching.join().unwrap_or(false))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(ends: &AtomicBool) {
        while !ends.load(Ordering::Relaxed) {
            thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn work_ends_at_its_deadline_or_when_it_is_stopped() {
        let stop = AtomicBool::new(false);
        let soon = Some(Instant::now() + Duration::from_millis(20));
        assert!(until(soon, &stop, wait).1);
        let late = Some(Instant::now() + Duration::from_secs(3_600));
        assert!(!until(late, &stop, |_| ()).1);
        stop.store(true, Ordering::Relaxed);
        assert!(!until(late, &stop, wait).1);
    }

    #[test]
    fn a_restarted_load_keeps_its_deadline() {
        let (deadline, stop) = (Deadline::after(20_000_000), AtomicBool::new(false));
        let stopped = |ends: &AtomicBool| {
            wait(ends);
            Finished { interrupted: true, ..Finished::default() }
        };
        assert!(deadline.within(&stop, |_| Finished::default()).failure.is_none());
        let at = deadline.at.get().copied();
        for _ in 0..2 {
            let finished = deadline.within(&stop, stopped);
            assert_eq!((finished.failure, finished.interrupted), (deadline.is_over(), false));
        }
        assert!(deadline.is_over().is_some() && deadline.at.get().copied() == at);
        let whole = |ends: &AtomicBool| {
            wait(ends);
            Finished::default()
        };
        assert!(deadline.within(&stop, whole).failure.is_none(), "it ended on its own");
    }
}
