//! Time for which this process could not run although nothing else used its CPUs: it was stopped
//! (`SIGSTOP`), frozen or throttled by a control group, or its virtual machine was paused. The
//! kernel's counters of waiting threads do not include any of these.
//!
//! A thread repeatedly sleeps. What a sleep was too long, less the time that the thread then waited
//! for a CPU (`schedstat`), is a pause.

use crate::procfs::SchedStat;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const SLEEP: Duration = Duration::from_millis(20);
/// Shorter delays are those of timers and of an ordinary scheduler.
const SHORTEST: Duration = Duration::from_millis(10);

/// Adds up the pauses of this process. Dropping it ends its thread.
#[derive(Debug)]
pub(super) struct Pauses {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    paused_ns: AtomicU64,
    stop: AtomicBool,
}

impl Pauses {
    pub(super) fn watch() -> Self {
        let shared = Arc::new(Shared::default());
        let own = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("pauses".into()).spawn(move || watch(&own));
        Self { shared, thread: thread.ok() }
    }

    /// Length of all pauses since the start, nanoseconds.
    pub(super) fn total_ns(&self) -> u64 {
        self.shared.paused_ns.load(Ordering::Relaxed)
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
        std::thread::park_timeout(SLEEP);
        let (now, waited_now_ns) = (Instant::now(), waited_ns());
        let over = now.duration_since(before).saturating_sub(SLEEP);
        let waited_ns = waited_now_ns.zip(waited_before_ns).map_or(0, |(now, was)| now - was);
        let paused = over.saturating_sub(Duration::from_nanos(waited_ns));
        if paused >= SHORTEST {
            shared.paused_ns.fetch_add(paused.as_nanos() as u64, Ordering::Relaxed);
        }
        (before, waited_before_ns) = (now, waited_now_ns);
    }
}
