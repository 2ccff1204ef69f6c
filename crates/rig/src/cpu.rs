//! Assignment of CPUs to generator and server, and CPU time from the process CPU clock.

use crate::error::{Result, RigError};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_getcpuclockid, clock_gettime};
use nix::unistd::Pid;
use std::collections::BTreeMap;

/// Disjoint sets of CPUs for the two sides of a measurement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pinning {
    /// CPUs of the load generator; empty only if there is no CPU.
    pub generator: Vec<usize>,
    /// CPUs of the server; the same as the generator's if there is only one.
    pub server: Vec<usize>,
    /// Effect of the division on measurements; `None` if both sides have whole cores.
    pub note: Option<String>,
}

impl Pinning {
    /// Divides the CPUs of this process by whole cores.
    pub fn for_this_process() -> Self {
        Self::plan(&allowed_cpus(), core_of)
    }

    /// Divides `allowed` (CPU numbers); `core_of` returns the same value for CPUs of one physical
    /// core. The generator gets the first half, and the odd core.
    pub fn plan<C: Ord>(allowed: &[usize], core_of: impl Fn(usize) -> C) -> Self {
        let mut cores: BTreeMap<C, Vec<usize>> = BTreeMap::new();
        for cpu in allowed {
            cores.entry(core_of(*cpu)).or_default().push(*cpu);
        }
        let mut cores: Vec<Vec<usize>> = cores.into_values().collect();
        cores.sort_by_key(|cpus| cpus[0]);
        let mut note = None;
        if allowed.len() < 2 {
            let text = "generator and server share the only CPU and slow each other down";
            return Self {
                generator: allowed.to_vec(),
                server: allowed.to_vec(),
                note: Some(text.into()),
            };
        }
        if cores.len() < 2 {
            note = Some("generator and server have CPUs of one physical core and share it".into());
            cores = allowed.iter().map(|cpu| vec![*cpu]).collect();
        }
        let server = cores.split_off(cores.len().div_ceil(2)).concat();
        Self { generator: cores.concat(), server, note }
    }
}

/// Numbers of the CPUs that the calling thread can use, ascending.
pub fn allowed_cpus() -> Vec<usize> {
    let Ok(set) = sched_getaffinity(Pid::from_raw(0)) else { return Vec::new() };
    (0..CpuSet::count()).filter(|cpu| set.is_set(*cpu).unwrap_or(false)).collect()
}

/// Package and core of a CPU; the CPU itself if the kernel does not report them.
pub(crate) fn core_of(cpu: usize) -> (i64, i64) {
    let read = |name: &str| {
        let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/{name}");
        std::fs::read_to_string(path).ok()?.trim().parse::<i64>().ok()
    };
    match (read("physical_package_id"), read("core_id")) {
        (Some(package), Some(core)) => (package, core),
        _ => (i64::MIN, i64::try_from(cpu).unwrap_or(i64::MAX)),
    }
}

/// Pins the calling thread, and threads that it starts later, to these CPUs. An empty list changes
/// nothing.
pub fn pin_current_thread(cpus: &[usize]) -> Result<()> {
    match cpu_set(cpus, &allowed_by_the_system())? {
        Some(set) => sched_setaffinity(Pid::from_raw(0), &set).map_err(|e| RigError::Io {
            doing: "pin a thread to CPUs",
            what: format!("{cpus:?}"),
            source: e.into(),
        }),
        None => Ok(()),
    }
}

/// The CPU set for the kernel; `None` for an empty list, an error for a CPU not in `allowed`.
pub(crate) fn cpu_set(cpus: &[usize], allowed: &[usize]) -> Result<Option<CpuSet>> {
    let mut set = CpuSet::new();
    for cpu in cpus {
        if !allowed.contains(cpu) || set.set(*cpu).is_err() {
            return Err(RigError::Cpu { cpu: *cpu, allowed: allowed.to_vec() });
        }
    }
    Ok((!cpus.is_empty()).then_some(set))
}

/// CPUs to which a thread can be moved, which can be more than [`allowed_cpus`] after pinning.
pub(crate) fn allowed_by_the_system() -> Vec<usize> {
    let line = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    let online = parse_list(&line);
    if online.is_empty() { allowed_cpus() } else { online }
}

/// Parses the kernel's list format, for example `0-3,8` (cpuset(7), "List format").
pub(crate) fn parse_list(text: &str) -> Vec<usize> {
    let parts = text.trim().split(',').filter(|part| !part.is_empty());
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.parse::<usize>().ok()?..=last.parse::<usize>().ok()?)
    };
    parts.filter_map(range).flatten().collect()
}

/// CPU time of a process, in nanoseconds, including ended threads; `None` if the process does not
/// exist.
pub fn process_cpu_ns(pid: u32) -> Option<u64> {
    let clock = clock_getcpuclockid(Pid::from_raw(i32::try_from(pid).ok()?)).ok()?;
    read_clock(clock)
}

/// CPU time of this process, in nanoseconds.
pub fn own_cpu_ns() -> u64 {
    read_clock(ClockId::CLOCK_PROCESS_CPUTIME_ID).unwrap_or(0)
}

fn read_clock(clock: ClockId) -> Option<u64> {
    let time: TimeSpec = clock_gettime(clock).ok()?;
    let seconds = u64::try_from(time.tv_sec()).ok()?;
    Some(seconds * 1_000_000_000 + u64::try_from(time.tv_nsec()).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_disjoint_and_keep_cores_whole() {
        let own = |cpu| cpu;
        let two = Pinning::plan(&[0, 1], own);
        assert_eq!(two, Pinning { generator: vec![0], server: vec![1], note: None });
        let odd = Pinning::plan(&[2, 5, 7], own);
        assert_eq!((odd.generator, odd.server), (vec![2, 5], vec![7]));
        // CPUs 0 and 2 are threads of one core, 1 and 3 of the other.
        let smt = Pinning::plan(&[0, 1, 2, 3], |cpu| cpu % 2);
        assert_eq!((smt.generator, smt.server), (vec![0, 2], vec![1, 3]));
    }

    #[test]
    fn shared_cpus_are_noted() {
        let one = Pinning::plan(&[3], |cpu| cpu);
        assert_eq!((one.generator, one.server), (vec![3], vec![3]));
        assert!(one.note.unwrap().contains("only CPU"));
        let core = Pinning::plan(&[0, 1], |_| 0);
        assert_eq!((core.generator, core.server), (vec![0], vec![1]));
        assert!(core.note.unwrap().contains("one physical core"));
    }

    #[test]
    fn a_thread_can_be_pinned_and_moved() {
        std::thread::spawn(|| {
            for cpu in allowed_cpus() {
                pin_current_thread(&[cpu]).unwrap();
                assert_eq!(allowed_cpus(), [cpu]);
            }
            let error = pin_current_thread(&[1023]).unwrap_err().to_string();
            assert!(error.starts_with("CPU `1023` cannot be used (expected one of ["), "{error}");
        })
        .join()
        .unwrap();
    }

    #[test]
    fn the_clock_counts_work_of_ended_threads() {
        let pid = std::process::id();
        let before = process_cpu_ns(pid).unwrap();
        let spent = std::thread::spawn(|| {
            let clock = || read_clock(ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap();
            let start = clock();
            while clock() - start < 20_000_000 {}
            clock() - start
        });
        let spent = spent.join().unwrap();
        assert!(process_cpu_ns(pid).unwrap() - before >= spent);
        assert!(process_cpu_ns(u32::MAX).is_none());
    }

    #[test]
    fn kernel_lists_are_parsed() {
        assert_eq!(parse_list("0-2,5\n"), [0, 1, 2, 5]);
        assert_eq!(parse_list("\n"), [0_usize; 0]);
    }
}
