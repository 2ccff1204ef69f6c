//! Time for which this process could not run although nothing else used its CPUs: it was stopped
//! (`SIGSTOP`), frozen or throttled by a control group, or its virtual machine was paused. The
//! kernel's counters of waiting threads do not include any of these.
//!
//! A thread repeatedly sleeps. What a sleep was too long, less the time that the thread then waited
//! for a CPU (`schedstat`), is a pause.

use crate::procfs::SchedStat;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

const SLEEP: Duration = Duration::from_millis(20);
/// Shorter delays are those of timers and of an ordinary scheduler.
const SHORTEST: Duration = Duration::from_millis(10);
/// After a pause the reader can run before the thread that notices it: how long to wait for that.
const NOTICED_WITHIN: Duration = Duration::from_millis(10);

/// Records the pauses of this process. Dropping it ends its thread.
#[derive(Debug)]
pub(super) struct Pauses {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    noticed: Mutex<Noticed>,
    stop: AtomicBool,
}

#[derive(Debug)]
struct Noticed {
    /// When the thread last ran.
    at: Instant,
    /// Start and end of each pause since the last reading.
    pauses: Vec<(Instant, Instant)>,
}

impl Shared {
    fn noticed(&self) -> MutexGuard<'_, Noticed> {
        self.noticed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True if the process may have been paused since the thread last ran.
    fn is_late(&self) -> bool {
        self.noticed().at.elapsed() > SLEEP + SHORTEST
    }
}

impl Pauses {
    pub(super) fn watch() -> Self {
        let noticed = Noticed { at: Instant::now(), pauses: Vec::new() };
        let shared =
            Arc::new(Shared { noticed: Mutex::new(noticed), stop: AtomicBool::new(false) });
        let own = Arc::clone(&shared);
        let thread = thread::Builder::new().name("pauses".into()).spawn(move || watch(&own));
        Self { shared, thread: thread.ok() }
    }

    /// Length of the pauses since the last reading, at `since`, nanoseconds. A pause that began
    /// before counts from then on only.
    pub(super) fn take_ns(&self, since: Instant) -> u64 {
        let until = Instant::now() + NOTICED_WITHIN;
        while self.thread.is_some() && self.shared.is_late() && Instant::now() < until {
            thread::sleep(Duration::from_millis(1));
        }
        let pauses = std::mem::take(&mut self.shared.noticed().pauses);
        let length_ns = |(from, to): (Instant, Instant)| {
            to.saturating_duration_since(from.max(since)).as_nanos() as u64
        };
        pauses.into_iter().map(length_ns).sum()
    }
}

impl Drop for Pauses {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

fn watch(shared: &Shared) {
    // Without the counter, time that the thread waits for a CPU counts as a pause.
    let counters = File::open("/proc/thread-self/schedstat").ok();
    let waited_ns = || {
        let mut text = [0; 96];
        let length = counters.as_ref()?.read_at(&mut text, 0).ok()?;
        Some(SchedStat::parse(&text[..length])?.waited_ns)
    };
    let (mut before, mut waited_before_ns) = (Instant::now(), waited_ns());
    while !shared.stop.load(Ordering::Relaxed) {
        thread::park_timeout(SLEEP);
        let (now, waited_now_ns) = (Instant::now(), waited_ns());
        let over = now.duration_since(before).saturating_sub(SLEEP);
        let waited_ns = waited_now_ns.zip(waited_before_ns).map_or(0, |(now, was)| now - was);
        let paused = over.saturating_sub(Duration::from_nanos(waited_ns));
        let mut noticed = shared.noticed();
        noticed.at = now;
        if paused >= SHORTEST {
            noticed.pauses.push((before + SLEEP + Duration::from_nanos(waited_ns), now));
        }
        drop(noticed);
        (before, waited_before_ns) = (now, waited_now_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_counts_from_the_last_reading_on() {
        let at = |ms| Instant::now() + Duration::from_millis(ms);
        let (start, before, from, to) = (at(0), at(100), at(200), at(260));
        let noticed = Noticed { at: start, pauses: vec![(start, before), (before, from)] };
        let shared = Shared { noticed: Mutex::new(noticed), stop: AtomicBool::new(false) };
        let pauses = Pauses { shared: Arc::new(shared), thread: None };
        // One ended before the last reading, the other began before it.
        let ms = pauses.take_ns(before + Duration::from_millis(60)) / 1_000_000;
        assert!((39..=41).contains(&ms), "{ms}");
        assert_eq!(pauses.take_ns(start), 0, "they were counted");
        pauses.shared.noticed().pauses.push((from, to));
        assert_eq!(pauses.take_ns(start), to.duration_since(from).as_nanos() as u64);
    }
}
