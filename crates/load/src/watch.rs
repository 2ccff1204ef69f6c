//! The generator's measurement of itself: CPU time and run delay of the calling thread.

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;
use nix::time::{ClockId, clock_gettime};
use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};

/// See [`spun_ns`].
static SPUN_NS: AtomicU64 = AtomicU64::new(0);

/// CPU time that threads of this process have spent polling for replies that had not arrived,
/// nanoseconds. It keeps their CPUs busy but is available for other work.
pub fn spun_ns() -> u64 {
    SPUN_NS.load(Ordering::Relaxed)
}

/// Adds to the time that the calling thread has spent polling.
pub(crate) fn spun(ns: u64) {
    SPUN_NS.fetch_add(ns, Ordering::Relaxed);
}

/// CPU usage of the calling thread so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadUse {
    /// CPU time, nanoseconds.
    pub cpu_ns: u64,
    /// User-mode part of it, nanoseconds.
    pub user_ns: u64,
    /// Time ready to run but waiting for a CPU, nanoseconds; 0 if the kernel does not report it.
    pub run_delay_ns: u64,
}

impl ThreadUse {
    /// Reads the usage of the calling thread.
    pub fn now() -> Self {
        let cpu = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID);
        let cpu_ns = cpu.map_or(0, |t| t.tv_sec() as u64 * 1_000_000_000 + t.tv_nsec() as u64);
        let used = getrusage(UsageWho::RUSAGE_THREAD);
        let user_ns = used.map_or(0, |used| used.user_time().num_nanoseconds() as u64);
        // Three numbers: time on a CPU, time waiting for one (both ns), slices run.
        let schedstat = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
        let run_delay_ns =
            schedstat.split_whitespace().nth(1).and_then(|n| n.parse().ok()).unwrap_or(0);
        Self { cpu_ns, user_ns, run_delay_ns }
    }

    /// Usage since `earlier`.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            cpu_ns: self.cpu_ns.saturating_sub(earlier.cpu_ns),
            user_ns: self.user_ns.saturating_sub(earlier.user_ns),
            run_delay_ns: self.run_delay_ns.saturating_sub(earlier.run_delay_ns),
        }
    }

    /// Sum of both.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            cpu_ns: self.cpu_ns + other.cpu_ns,
            user_ns: self.user_ns + other.user_ns,
            run_delay_ns: self.run_delay_ns + other.run_delay_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
    use nix::unistd::Pid;
    use std::thread;
    use std::time::{Duration, Instant};

    #[test]
    fn cpu_time_and_run_delay_are_counted_per_thread() {
        if fs::read_to_string("/proc/thread-self/schedstat").is_err() {
            println!("skipped: this kernel has no schedstat");
            return;
        }
        // Two threads on one CPU must wait for each other.
        let spin = || {
            let this = Pid::from_raw(0);
            let allowed = sched_getaffinity(this).unwrap();
            let cpu = (0..CpuSet::count()).find(|c| allowed.is_set(*c).unwrap()).unwrap();
            let mut one = CpuSet::new();
            one.set(cpu).unwrap();
            sched_setaffinity(this, &one).unwrap();
            let (start, before) = (Instant::now(), ThreadUse::now());
            while start.elapsed() < Duration::from_millis(200) {}
            ThreadUse::now().since(before)
        };
        let threads: Vec<_> = (0..2).map(|_| thread::spawn(spin)).collect();
        let used: Vec<ThreadUse> = threads.into_iter().map(|t| t.join().unwrap()).collect();
        let waited: u64 = used.iter().map(|u| u.run_delay_ns).sum();
        assert!(waited > 50_000_000, "{waited}");
        assert!(used.iter().all(|u| (1_000_000..=210_000_000).contains(&u.cpu_ns)), "{used:?}");
    }
}
