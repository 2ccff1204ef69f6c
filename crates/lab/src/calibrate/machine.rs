//! Properties of the machine that affect every measurement: clock, late wake-ups, pauses.

use model::calibration::{Clock, DelayPercentiles, Host, Pauses};
use model::{Condition, ErrorClass, Failure};
use nix::sys::prctl::set_timerslack;
use nix::time::{ClockId, clock_getres};
use rig::{Pinning, pin_current_thread};
use stats::Histogram;
use std::fs;
use std::hint::black_box;
use std::thread;
use std::time::{Duration, Instant};

/// Sleep time of the thread that measures late wake-ups.
const SLEEP: Duration = Duration::from_millis(1);
/// Smallest gap between two clock readings that counts as a pause.
const PAUSE: Duration = Duration::from_millis(1);
/// Clock readings per batch, to measure the cost of one.
const READINGS: u32 = 10_000;
const BATCHES: usize = 9;

/// Identifies this machine; `facts` are the conditions of the host.
pub fn host(facts: &[Condition], pinning: &Pinning) -> Host {
    let id = fs::read_to_string("/etc/machine-id").unwrap_or_default();
    let name = || fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let id = if id.trim().is_empty() { name() } else { id };
    Host {
        machine: format!("{:016x}", fnv1a(id.trim().as_bytes())),
        kernel: fact(facts, "host", "kernel"),
        cpu: fact(facts, "cpu", "model"),
        generator_cpus: pinning.generator.clone(),
        server_cpus: pinning.server.clone(),
    }
}

/// Value of a fact; empty if unknown.
fn fact(facts: &[Condition], group: &str, name: &str) -> String {
    let found = facts.iter().find(|f| f.group == group && f.name == name);
    found.map(|f| f.value.clone()).unwrap_or_default()
}

/// Fowler, Noll and Vo's hash, variant 1a, 64 bits. A machine id is confidential (machine-id(5)),
/// so only its hash is published.
fn fnv1a(bytes: &[u8]) -> u64 {
    let add = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, add)
}

/// The clock that times all measurements.
pub(super) fn clock(facts: &[Condition]) -> Clock {
    let resolution = clock_getres(ClockId::CLOCK_MONOTONIC).map_or(Duration::ZERO, Duration::from);
    let mut batches: Vec<Duration> = (0..BATCHES)
        .map(|_| {
            let begun = Instant::now();
            for _ in 0..READINGS {
                black_box(Instant::now());
            }
            begun.elapsed()
        })
        .collect();
    batches.sort_unstable();
    Clock {
        source: fact(facts, "host", "clock source"),
        resolution_ns: resolution.as_nanos() as u64,
        reading_ns: batches[BATCHES / 2].as_nanos() as f64 / f64::from(READINGS),
    }
}

/// How late a thread on these CPUs wakes up from repeated sleeps of 1 ms.
pub(super) fn timer(cpus: &[usize], length: Duration) -> Result<DelayPercentiles, Failure> {
    on(cpus, || {
        // If this is refused, the kernel's default slack of 50 µs shows in the result.
        let _ = set_timerslack(1);
        let mut oversleeps = Histogram::new();
        let begun = Instant::now();
        while begun.elapsed() < length || oversleeps.is_empty() {
            let before = Instant::now();
            thread::sleep(SLEEP);
            let over = before.elapsed().saturating_sub(SLEEP);
            oversleeps.record(over.as_nanos() as u64);
        }
        late(&oversleeps)
    })
}

/// Pauses of a thread on these CPUs that does nothing but read the clock.
pub(super) fn pauses(cpus: &[usize], length: Duration) -> Result<Pauses, Failure> {
    on(cpus, || {
        let begun = Instant::now();
        let (mut before, mut longest, mut paused) = (begun, Duration::ZERO, Duration::ZERO);
        while before - begun < length {
            let now = Instant::now();
            let gap = now - before;
            longest = longest.max(gap);
            if gap > PAUSE {
                paused += gap;
            }
            before = now;
        }
        let share_over_1ms = paused.as_secs_f64() / (before - begun).as_secs_f64();
        Pauses { share_over_1ms, ns_max: longest.as_nanos() as u64 }
    })
}

/// Percentiles and maximum of a distribution.
pub(super) fn late(times: &Histogram) -> DelayPercentiles {
    DelayPercentiles {
        ns_p50: times.quantile_ns(0.5),
        ns_p99: times.quantile_ns(0.99),
        ns_p999: times.quantile_ns(0.999),
        ns_max: times.max_ns(),
    }
}

/// Runs `work` in a thread on these CPUs.
fn on<T: Send>(cpus: &[usize], work: impl FnOnce() -> T + Send) -> Result<T, Failure> {
    thread::scope(|scope| {
        let pinned = scope.spawn(|| pin_current_thread(cpus).map(|()| work())).join();
        let panicked = || Failure {
            class: ErrorClass::Other,
            message: "a thread that measured the machine panicked".into(),
        };
        Ok(pinned.map_err(|_| panicked())??)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_matches_the_reference_implementation() {
        assert_eq!(fnv1a(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(b"a"), 0xaf63_dc4c_8601_ec8c);
        let facts = rig::conditions(std::path::Path::new("/")).facts;
        let pinning = Pinning::plan(&[0, 1], |cpu| cpu);
        let here = host(&facts, &pinning);
        assert_eq!(here.machine.len(), 16);
        assert!(!here.kernel.is_empty() && !here.cpu.is_empty(), "{here:?}");
        assert_eq!((&here.generator_cpus[..], &here.server_cpus[..]), (&[0][..], &[1][..]));
    }

    #[test]
    fn wake_ups_and_pauses_are_plausible() {
        let length = Duration::from_millis(30);
        let late = timer(&[], length).unwrap();
        assert!(late.ns_p50 > 0, "nobody wakes up at once: {late:?}");
        assert!(late.ns_p50 <= late.ns_p99 && late.ns_p999 <= late.ns_max, "{late:?}");
        let begun = Instant::now();
        let pauses = pauses(&[], length).unwrap();
        assert!(begun.elapsed() >= length);
        assert!((0.0..=1.0).contains(&pauses.share_over_1ms) && pauses.ns_max > 0, "{pauses:?}");
        assert!(pauses.share_over_1ms == 0.0 || pauses.ns_max > 1_000_000, "{pauses:?}");
        let clock = clock(&[]);
        assert!(clock.reading_ns > 0.0 && clock.source.is_empty(), "{clock:?}");
    }
}
