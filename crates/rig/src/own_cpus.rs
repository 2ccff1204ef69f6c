//! CPUs that a process keeps to, apart from other processes of this machine that do the same.

use std::collections::BTreeMap;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::thread;
use std::time::{Duration, Instant};

use crate::cpu::{allowed_cpus, core_of};

/// Namespace of the machine's own process ids: `PROC_PID_INIT_INO` of the kernel.
const OF_THE_MACHINE: &str = "pid:[4026531836]";

/// How long others may choose their CPUs: some milliseconds, unless one was stopped meanwhile.
const OTHERS_CHOOSE_WITHIN: Duration = Duration::from_secs(2);

/// CPUs that are taken until this is dropped or its process ends.
#[derive(Debug)]
pub struct OwnCpus {
    /// Their numbers, ascending.
    pub cpus: Vec<usize>,
    /// An abstract address can be bound once in a network namespace, and ends with its process.
    _taken: Vec<UnixDatagram>,
}

impl OwnCpus {
    /// Takes `count` of the CPUs that the calling thread can use, by whole cores as far as
    /// possible. `None` if others have taken too many of them, or in a container: it does not see
    /// what is taken outside.
    pub fn take(count: usize) -> Option<Self> {
        let namespace = std::fs::read_link("/proc/self/ns/pid").ok()?;
        let sees_all = namespace.as_os_str() == OF_THE_MACHINE;
        sees_all.then(|| Self::take_of(&allowed_cpus(), core_of, count, "cachedyno/cpu"))?
    }

    /// Takes some of `allowed`; `core_of` returns the same value for CPUs of one physical core.
    fn take_of<C: Ord>(
        allowed: &[usize],
        core_of: impl Fn(usize) -> C,
        count: usize,
        name: &str,
    ) -> Option<Self> {
        let bound = |what: &str| {
            let address = SocketAddr::from_abstract_name(format!("{name}/{what}")).ok()?;
            UnixDatagram::bind_addr(&address).ok()
        };
        // One at a time, since all free CPUs are held while choosing.
        let until = Instant::now() + OTHERS_CHOOSE_WITHIN;
        let _choosing = loop {
            if let Some(choosing) = bound("choosing") {
                break choosing;
            }
            if Instant::now() > until {
                return None;
            }
            thread::sleep(Duration::from_millis(1));
        };
        let mut cores: BTreeMap<C, Vec<(usize, UnixDatagram)>> = BTreeMap::new();
        for cpu in allowed {
            let Some(socket) = bound(&cpu.to_string()) else { continue };
            cores.entry(core_of(*cpu)).or_default().push((*cpu, socket));
        }
        let mut cores: Vec<_> = cores.into_values().collect();
        // Cores without another's CPU first.
        cores.sort_by_key(|free| (std::cmp::Reverse(free.len()), free[0].0));
        let mut own: Vec<_> = cores.into_iter().flatten().take(count).collect();
        own.sort_by_key(|(cpu, _)| *cpu);
        let (cpus, taken): (Vec<_>, _) = own.into_iter().unzip();
        (cpus.len() == count && count > 0).then_some(Self { cpus, _taken: taken })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(core_of: fn(usize) -> usize, count: usize, name: &str) -> Option<OwnCpus> {
        let name = format!("test/{}/{name}", std::process::id());
        OwnCpus::take_of(&[0, 1, 2, 3], core_of, count, &name)
    }

    #[test]
    fn each_cpu_is_taken_once() {
        let first = take(|cpu| cpu, 2, "once").unwrap();
        let second = take(|cpu| cpu, 1, "once").unwrap();
        assert_eq!((&*first.cpus, &*second.cpus), (&[0, 1][..], &[2][..]));
        assert!(take(|cpu| cpu, 2, "once").is_none());
        // A failed attempt keeps nothing, and dropped CPUs are free again.
        assert_eq!(take(|cpu| cpu, 1, "once").unwrap().cpus, [3]);
        drop(first);
        assert_eq!(take(|cpu| cpu, 3, "once").unwrap().cpus, [0, 1, 3]);
        assert!(take(|cpu| cpu, 0, "once").is_none());
    }

    #[test]
    fn those_who_take_at_the_same_time_get_different_cpus() {
        for round in 0..50 {
            let name = format!("together {round}");
            let all: Vec<OwnCpus> = thread::scope(|scope| {
                let one = || scope.spawn(|| take(|cpu| cpu, 1, &name).unwrap());
                let started = [one(), one(), one(), one()];
                started.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            let mut cpus: Vec<usize> = all.iter().flat_map(|own| own.cpus.clone()).collect();
            cpus.sort_unstable();
            assert_eq!(cpus, [0, 1, 2, 3]);
        }
    }

    #[test]
    fn whole_cores_are_preferred() {
        // CPUs 0 and 2 are threads of one core, 1 and 3 of the other.
        let one = take(|cpu| cpu % 2, 1, "cores").unwrap();
        assert_eq!(one.cpus, [0]);
        let two = take(|cpu| cpu % 2, 2, "cores").unwrap();
        assert_eq!(two.cpus, [1, 3]);
        assert_eq!(take(|cpu| cpu % 2, 1, "cores").unwrap().cpus, [2]);
    }
}
