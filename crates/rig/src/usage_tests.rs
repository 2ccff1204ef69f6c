//! Tests of [`super`] with this process and its children.

use super::*;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

/// Keeps a CPU busy, for at most 20 s of CPU time in case nothing kills it.
const BUSY: &str = "ulimit -t 20; while :; do :; done";

fn shell(script: &str) -> Child {
    Command::new("sh").args(["-c", script]).spawn().unwrap()
}

fn kill_and_wait(mut child: Child) {
    kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGKILL).unwrap();
    child.wait().unwrap();
}

fn spin(until: impl Fn() -> bool) {
    let mut iterations = 0_u64;
    while !until() {
        iterations = std::hint::black_box(iterations + 1);
    }
}

#[test]
fn status_fields_are_found_by_name() {
    let text = b"Name:\ta b: c\nState:\tZ (zombie)\nThreads:\t12\nVmRSS:\t    2048 kB\n\
                 VmSwap:\t       4 kB\nvoluntary_ctxt_switches:\t7\nnonvoluntary_ctxt_switches:\t8\n";
    let expected = Status {
        name: "a b: c",
        has_ended: true,
        threads: 12,
        resident_bytes: 2 << 20,
        swapped_bytes: 4096,
        voluntary_switches: 7,
        involuntary_switches: 8,
    };
    assert_eq!(Status::parse(text), expected);
    assert_eq!(Status::parse(b""), Status::default());
}

#[test]
fn calls_and_major_faults_are_found_in_their_files() {
    let io = b"rchar: 9\nwchar: 8\nsyscr: 70\nsyscw: 6\nread_bytes: 5\nwrite_bytes: 4\n";
    assert_eq!((calls(io), calls(b"")), (76, 0));
    let stat = b"12 (a) b (c) S 1 2 3 4 5 600 71 81 9 10 11 12";
    assert_eq!((major_faults(stat), major_faults(b"12 (a")), (9, 0));
}

#[test]
fn reading_counts_as_calls() {
    let mut reader = UsageReader::new(&[std::process::id()]);
    let before = reader.read().unwrap().calls;
    for _ in 0..50 {
        fs::read("/proc/self/cmdline").unwrap();
    }
    let after = reader.read().unwrap().calls;
    assert!(after >= before + 50, "{before} {after}");
}

#[test]
fn the_cpu_time_of_all_threads_equals_that_of_the_process() {
    // A shell has exactly one thread, and none that has ended.
    let child = shell(BUSY);
    let mut reader = UsageReader::new(&[child.id()]);
    thread::sleep(Duration::from_millis(300));
    kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGSTOP).unwrap();
    // It may be waiting for a CPU when the signal comes.
    let is_stopped = || {
        let stat = fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
        stat.contains(") T ")
    };
    while !is_stopped() {
        thread::sleep(Duration::from_millis(1));
    }
    let used = reader.read().unwrap();
    assert_eq!(used.threads.len(), 1, "{used:?}");
    assert_eq!((used.threads[0].id, used.threads[0].name.as_str()), (child.id(), "sh"));
    // It is stopped, so both clocks show the same value.
    assert_eq!(used.threads[0].cpu_ns, used.cpu_ns);
    assert!(used.cpu_ns > 1_000_000 && used.resident_bytes > 100_000, "{used:?}");
    assert_eq!(reader.read().unwrap().cpu_ns, used.cpu_ns);
    kill_and_wait(child);
}

#[test]
fn counts_never_decrease_when_threads_start_and_end() {
    let (stop, started) = (Arc::new(AtomicBool::new(false)), Arc::new(Barrier::new(2)));
    let mut reader = UsageReader::new(&[std::process::id()]);
    let before = reader.read().unwrap();
    let (stop_worker, gate) = (stop.clone(), started.clone());
    let worker = thread::Builder::new().name("usage-worker".into()).spawn(move || {
        gate.wait();
        let since = Instant::now();
        spin(|| since.elapsed() > Duration::from_millis(60));
        thread::sleep(Duration::from_millis(20));
        while !stop_worker.load(Ordering::Relaxed) {
            thread::sleep(Duration::from_millis(1));
        }
    });
    let worker = worker.unwrap();
    started.wait();
    thread::sleep(Duration::from_millis(200));
    let during = reader.read().unwrap();
    let named = during.threads.iter().find(|t| t.name == "usage-worker").unwrap();
    assert!(named.cpu_ns > 5_000_000, "{during:?}");
    assert!(during.cpu_ns - before.cpu_ns >= named.cpu_ns, "{during:?}");
    stop.store(true, Ordering::Relaxed);
    worker.join().unwrap();
    // The first reading notices the missing files or the changed number of threads.
    reader.read().unwrap();
    let after = reader.read().unwrap();
    assert!(after.threads.iter().all(|t| t.name != "usage-worker"), "{after:?}");
    assert!(after.voluntary_switches >= during.voluntary_switches);
    assert!(after.run_delay_ns >= during.run_delay_ns && after.cpu_ns >= during.cpu_ns);
}

#[test]
fn usage_is_summed_over_processes_and_keeps_that_of_ended_ones() {
    let children = [shell("exec sleep 60"), shell(BUSY)];
    let pids = children.each_ref().map(Child::id);
    let mut both = UsageReader::new(&pids);
    let mut each = pids.map(|pid| UsageReader::new(&[pid]));
    thread::sleep(Duration::from_millis(100));
    let before: u64 = each.iter_mut().map(|r| r.read().unwrap().cpu_ns).sum();
    let all = both.read().unwrap();
    let after: Vec<ProcessUse> = each.iter_mut().map(|r| r.read().unwrap()).collect();
    let sum = |of: fn(&ProcessUse) -> u64| after.iter().map(of).sum::<u64>();
    assert!(all.cpu_ns >= before && all.cpu_ns <= sum(|u| u.cpu_ns), "{all:?} {after:?}");
    assert_eq!(all.resident_bytes, sum(|u| u.resident_bytes));
    let [first, second] = children;
    kill_and_wait(second);
    let less = both.read().unwrap();
    assert!(less.cpu_ns >= all.cpu_ns && less.resident_bytes < all.resident_bytes, "{less:?}");
    assert!(each[0].read().is_some());
    // A process that was started in its place.
    let third = shell("exec sleep 60");
    both.follow(&[pids[0], third.id()]);
    let more = both.read().unwrap();
    assert!(more.resident_bytes > less.resident_bytes, "{more:?}");
    kill_and_wait(first);
    kill_and_wait(third);
    assert_eq!(both.read(), None);
    assert_eq!(UsageReader::new(&[]).read(), None);
}

#[test]
fn a_zombie_process_has_no_usage() {
    let mut child = shell("exit 0");
    let mut reader = UsageReader::new(&[child.id()]);
    let until = Instant::now() + Duration::from_secs(10);
    while reader.read().is_some() {
        assert!(Instant::now() < until, "the process does not end");
        thread::sleep(Duration::from_millis(2));
    }
    child.wait().unwrap();
}

#[test]
fn many_threads_are_read_less_often() {
    let stop = Arc::new(AtomicBool::new(false));
    let many = THREADS_AT_ONCE + 6;
    let threads: Vec<_> = (0..many)
        .map(|_| {
            let stop = stop.clone();
            thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    thread::sleep(Duration::from_millis(10));
                }
            })
        })
        .collect();
    let mut reader = UsageReader::new(&[std::process::id()]);
    let readings: Vec<ProcessUse> = (0..4).map(|_| reader.read().unwrap()).collect();
    stop.store(true, Ordering::Relaxed);
    for thread in threads {
        thread.join().unwrap();
    }
    let listed: Vec<bool> = readings.iter().map(|used| !used.threads.is_empty()).collect();
    assert!(listed[0] && listed.iter().any(|is_listed| !is_listed), "{listed:?}");
    // Counts are kept in readings that list no threads.
    for pair in readings.windows(2) {
        assert!(pair[1].voluntary_switches >= pair[0].voluntary_switches);
    }
}
