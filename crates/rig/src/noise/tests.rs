use super::*;
use crate::process_cpu_ns;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

#[test]
fn kernel_files_are_parsed() {
    let stat = "cpu  100 20 30 400 50 6 7 8 90 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n";
    let ticks = CpuTicks::parse(stat).unwrap();
    assert_eq!(ticks, CpuTicks { processes: 150, steal: 8, all: 621 });
    assert_eq!(CpuTicks::parse("cpu  1 2 3\n"), None);
    assert_eq!(CpuTicks::parse("intr 1\n"), None);
    let pressure =
        "some avg10=0.75 avg60=0.49 avg300=0.49 total=7379821\nfull avg10=0.00 total=5\n";
    assert_eq!(total_us(pressure, "some "), Some(7_379_821));
    assert_eq!(total_us("full total=5\n", "some "), None);
}

#[test]
fn shares_refer_to_the_time_between_two_samples() {
    let at = Instant::now();
    let before = Sample {
        at,
        ticks: CpuTicks { processes: 100, steal: 0, all: 1000 },
        pressure_us: [Some(5), None, Some(0)],
        own_ns: 0,
        server_ns: 0,
        others: OtherProcesses::default(),
    };
    let per_tick = ns_per_tick() as u64;
    let after = Sample {
        at: at + Duration::from_secs(2),
        ticks: CpuTicks { processes: 180, steal: 10, all: 1200 },
        pressure_us: [Some(500_005), Some(1), Some(0)],
        own_ns: 40 * per_tick,
        server_ns: 20 * per_tick,
        others: OtherProcesses::default(),
    };
    let noise = before.until(&after);
    assert!((noise.steal_share - 0.05).abs() < 1e-9);
    assert!((noise.other_cpu_share - 0.1).abs() < 1e-9);
    assert_eq!(noise.psi_cpu_some_share, Some(0.25));
    assert_eq!(noise.psi_io_some_share, None);
    assert_eq!(noise.psi_memory_some_share, Some(0.0));
    // No time has passed: no division by zero.
    assert!(after.until(&after).other_cpu_share.abs() < f64::EPSILON);
}

static EXCLUSIVE: Mutex<()> = Mutex::new(());

/// Serialises tests that keep CPUs busy.
pub(super) fn exclusive() -> MutexGuard<'static, ()> {
    EXCLUSIVE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Two recorders over the same time span, so work of other processes on this host cancels out.
#[test]
fn cpu_time_of_other_processes_counts_but_not_the_servers() {
    let _exclusive = exclusive();
    let mut busy = Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
    let (start, cpu_before) = (Instant::now(), process_cpu_ns(busy.id()).unwrap());
    let as_stranger = NoiseRecorder::start(&[], &[], &ProcessTree::default());
    let as_server = NoiseRecorder::start(&[], &[], &ProcessTree::new(&[busy.id()]));
    std::thread::sleep(Duration::from_millis(500));
    let (as_stranger, as_server) = (as_stranger.stop(), as_server.stop());
    let names = |noise: &Noise| noise.busiest.iter().map(|b| b.name.clone()).collect::<Vec<_>>();
    assert!(names(&as_stranger).contains(&"sh".to_string()), "{as_stranger:?}");
    let most = as_stranger.busiest.iter().map(|b| b.cpu_ns).collect::<Vec<_>>();
    assert!(most.is_sorted_by(|a, b| a >= b) && most[0] >= 50_000_000, "{as_stranger:?}");
    let spent_ns = process_cpu_ns(busy.id()).unwrap() - cpu_before;
    let cpus = crate::cpu::allowed_by_the_system().len() as f64;
    let expected = spent_ns as f64 / (start.elapsed().as_nanos() as f64 * cpus);
    busy.kill().unwrap();
    busy.wait().unwrap();

    let difference = as_stranger.other_cpu_share - as_server.other_cpu_share;
    assert!(difference > 0.7 * expected, "{difference} of {expected}");
    assert!(difference < 1.3 * expected, "{difference} of {expected}");
    assert!(as_server.hiccup_ns_p99 > 0);
    assert!(as_server.hiccup_ns_max >= as_server.hiccup_ns_p99);
}
