//! Work that ends at a time, with what it has by then.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// How soon the work learns that the user stopped it.
const STOPPED_WITHIN: Duration = Duration::from_millis(10);

/// Does work that ends early when the flag that it is given is set: when `stop` is, and at the
/// deadline. Whether the deadline ended it.
pub(crate) fn within<T>(
    deadline: Option<Instant>,
    stop: &AtomicBool,
    work: impl FnOnce(&AtomicBool) -> T,
) -> (T, bool) {
    let Some(deadline) = deadline else { return (work(stop), false) };
    let (ends, (done, is_done)) = (AtomicBool::new(false), mpsc::channel::<()>());
    thread::scope(|scope| {
        let ends = &ends;
        let watching = scope.spawn(move || {
            loop {
                let left = deadline.saturating_duration_since(Instant::now());
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
        assert!(within(soon, &stop, wait).1);
        let late = Some(Instant::now() + Duration::from_secs(3_600));
        assert!(!within(late, &stop, |_| ()).1);
        stop.store(true, Ordering::Relaxed);
        assert!(!within(late, &stop, wait).1);
    }
}
