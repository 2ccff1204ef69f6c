//! A thread that repeatedly sleeps for 1 ms and records by how much each sleep was too long, which
//! is the delay that any thread on that CPU would have suffered.
//!
//! A wake-up costs 3 to 10 µs of CPU time, more in virtual machines. If that exceeds 0.35 % of a
//! CPU, the thread sleeps longer, up to 4 ms; hiccups shorter than the sleep are then detected less
//! often, but measured just as precisely.

use crate::cpu::pin_current_thread;
use nix::time::{ClockId, clock_gettime};
use stats::Histogram;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const SLEEP: Duration = Duration::from_millis(1);
const SLEEP_MAX: Duration = Duration::from_millis(4);

/// Maximum share of one CPU that the thread uses before it sleeps longer.
const COST_SHARE_MAX: f64 = 0.0035;
/// Number of sleeps after which its CPU use is checked again.
const SLEEPS_PER_REVIEW: u32 = 64;

#[derive(Debug)]
pub(super) struct Hiccups {
    stop: Arc<AtomicBool>,
    /// `None` if no thread could be started, and after its end.
    thread: Option<JoinHandle<Histogram>>,
}

impl Hiccups {
    pub(super) fn start(cpus: &[usize]) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (stop_flag, cpus) = (Arc::clone(&stop), cpus.to_vec());
        let thread = std::thread::Builder::new()
            .name("hiccups".into())
            .spawn(move || watch(&stop_flag, &cpus))
            .ok();
        Self { stop, thread }
    }

    /// Maximum and 99th percentile of the oversleep, in nanoseconds; 0 if nothing was recorded.
    pub(super) fn stop(mut self) -> (u64, u64) {
        let oversleeps = self.end().unwrap_or_default();
        (oversleeps.max_ns(), oversleeps.quantile_ns(0.99))
    }

    fn end(&mut self) -> Option<Histogram> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take()?.join().ok()
    }
}

impl Drop for Hiccups {
    fn drop(&mut self) {
        self.end();
    }
}

fn watch(stop: &AtomicBool, cpus: &[usize]) -> Histogram {
    // If either call fails, the oversleeps are slightly larger, but still recorded.
    let _ = pin_current_thread(cpus);
    let _ = nix::sys::prctl::set_timerslack(1);
    let mut oversleeps = Histogram::new();
    let cpu_before = thread_cpu();
    let mut sleep = SLEEP;
    let mut sleeps = 0;
    let mut before = Instant::now();
    while !stop.load(Ordering::Relaxed) {
        std::thread::sleep(sleep);
        let now = Instant::now();
        let over = now.duration_since(before).saturating_sub(sleep);
        oversleeps.record(over.as_nanos() as u64);
        before = now;
        sleeps += 1;
        if sleeps % SLEEPS_PER_REVIEW == 0 {
            let cost = thread_cpu().saturating_sub(cpu_before) / sleeps;
            sleep = cost.mul_f64(1.0 / COST_SHARE_MAX).clamp(SLEEP, SLEEP_MAX);
        }
    }
    oversleeps
}

/// CPU time of the calling thread; zero if the clock does not exist.
fn thread_cpu() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Duration::ZERO, Duration::from)
}
