//! Work that ends at a time, with what it has by then.

use load::Finished;
use model::{ErrorClass, Failure};
use stats::format_ns;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// How soon the work learns that the user stopped it.
const STOPPED_WITHIN: Duration = Duration::from_millis(10);

/// Offers a load that ends after so many nanoseconds with what it has by then; 0 for no deadline.
/// What was stopped says so: the point under way, or the trial where none was.
pub(crate) fn within(
    deadline_ns: u64,
    stop: &AtomicBool,
    offer: impl FnOnce(&AtomicBool) -> Finished,
) -> Finished {
    if deadline_ns == 0 {
        return offer(stop);
    }
    let deadline = Instant::now() + Duration::from_nanos(deadline_ns);
    let (mut finished, is_late) = until(Some(deadline), stop, offer);
    if is_late {
        ended_late(&mut finished, deadline_ns);
    }
    finished
}

/// Says what a deadline ended: the phase that was stopped, or the trial where none was under way.
fn ended_late(finished: &mut Finished, deadline_ns: u64) {
    finished.interrupted = false;
    let deadline = format_ns(deadline_ns as f64);
    let message = format!("the trial reached its deadline of {deadline}");
    let failure = Failure { class: ErrorClass::Timeout, message };
    let points = finished.phases.iter_mut().flat_map(|phase| &mut phase.points);
    match points.last().and_then(|point| point.failure.as_mut()) {
        Some(of_point) => *of_point = failure,
        None => finished.failure = Some(failure),
    }
}

/// Does work that ends early when the flag that it is given is set: when `stop` is, at the deadline
/// where there is one, and by the work itself. Whether the deadline ended it.
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
}
