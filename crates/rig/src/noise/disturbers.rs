//! Identifies other processes on the CPUs of generator and servers by sampling the running thread.
//!
//! Source: `perf_event_open(2)`, the software event `PERF_COUNT_SW_CPU_CLOCK` of a CPU for all
//! processes, with records of new processes and new names. It needs `CAP_PERFMON` or a
//! `kernel.perf_event_paranoid` of at most 0. It samples instead of recording context switches,
//! because a record of each switch costs the measured CPU about 0.5 µs, several percent for a
//! server that sleeps between requests. 199 samples of 1 µs per second cost 0.02 %.

use model::{Disturber, Disturbers};
use perf_event::events::Software;
use perf_event::{Builder, SampleFlag, Sampler};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::cpu::{allowed_by_the_system, pin_current_thread};
use crate::procfs::ProcessActivity;
use crate::tree::ProcessTree;

/// Time between two samples of a CPU. Their number per second is prime, so they do not align with
/// periodic work at 100 or 1,000 Hz.
const PERIOD_NS: u64 = 1_000_000_000 / 199;
/// Ring buffer for the samples of a CPU; enough for half a minute.
const RING_BYTES: usize = 128 << 10;
/// Interval at which samples are read and new processes are looked up.
const READ_INTERVAL: Duration = Duration::from_millis(250);
/// Maximum number of CPUs that are watched.
const CPUS_MAX: usize = 64;
/// Maximum number of disturbers that are reported.
const REPORTED_MAX: usize = 5;
/// Maximum number of names that are kept of processes that were never sampled.
const NAMES_MAX: usize = 4_096;

/// Watches from [`Watch::start`] to [`Watch::stop`]. Dropping it also ends its thread.
#[derive(Debug)]
pub(super) struct Watch {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<Disturbers>>,
}

impl Watch {
    /// Watches the CPUs of generator and server; an empty list means all CPUs of this machine. This
    /// process and `servers` with their children are excluded. `None` if the kernel does not permit
    /// it.
    pub(super) fn start(
        generator: &[usize],
        server: &[usize],
        servers: &ProcessTree,
    ) -> Option<Self> {
        let mut cpus: BTreeSet<usize> = generator.iter().chain(server).copied().collect();
        if generator.is_empty() || server.is_empty() {
            cpus.extend(allowed_by_the_system());
        }
        let rings = cpus.into_iter().take(CPUS_MAX).map(open).collect::<io::Result<_>>().ok()?;
        let mut collector = SampleCollector::new(rings, servers);
        let own = generator.to_vec();
        let (stop, stopped) = mpsc::channel::<()>();
        let watch = move || {
            // If pinning fails, the samples are read on another CPU.
            let _ = pin_current_thread(&own);
            while stopped.recv_timeout(READ_INTERVAL) == Err(RecvTimeoutError::Timeout) {
                collector.read();
            }
            collector.read();
            collector.into_disturbers()
        };
        let thread = thread::Builder::new().name("disturbers".into()).spawn(watch).ok()?;
        Some(Self { stop: Some(stop), thread: Some(thread) })
    }

    pub(super) fn stop(mut self) -> Option<Disturbers> {
        self.end()
    }

    fn end(&mut self) -> Option<Disturbers> {
        self.stop.take();
        self.thread.take()?.join().ok()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.end();
    }
}

/// Whether the kernel lets this process see what runs on a CPU.
pub(crate) fn is_permitted() -> io::Result<()> {
    let cpu = crate::cpu::allowed_cpus().first().copied().unwrap_or(0);
    open(cpu).map(drop)
}

fn open(cpu: usize) -> io::Result<Sampler> {
    let mut event = Builder::new(Software::CPU_CLOCK);
    event.any_pid().one_cpu(cpu).include_kernel();
    event.sample_period(PERIOD_NS).sample(SampleFlag::TID).comm(true).task(true);
    // No thread waits for wake-ups: the rings are read at fixed intervals.
    event.wakeup_watermark(RING_BYTES).enabled(true);
    event.build()?.sampled(RING_BYTES)
}

/// The needed part of a ring's record. Source: `enum perf_event_type` of the kernel's
/// `linux/perf_event.h`; all of these records start with 32-bit ids.
#[derive(Debug, PartialEq, Eq)]
enum Record {
    Sample { pid: u32 },
    Fork { pid: u32, parent: u32 },
    Name { pid: u32, name: String },
    Lost,
}

impl Record {
    fn parse(kind: u32, data: &[u8]) -> Option<Self> {
        let id = |index: usize| {
            let bytes = data.get(4 * index..4 * index + 4)?;
            Some(u32::from_ne_bytes(bytes.try_into().ok()?))
        };
        match kind {
            // Lost records, and samples that the kernel throttled.
            2 | 5 => Some(Self::Lost),
            // The name of a process is that of its first thread.
            3 if id(0)? == id(1)? => {
                let name = data.get(8..)?.split(|byte| *byte == 0).next()?;
                Some(Self::Name { pid: id(0)?, name: String::from_utf8_lossy(name).into() })
            }
            7 if id(0)? == id(2)? => Some(Self::Fork { pid: id(0)?, parent: id(1)? }),
            9 => Some(Self::Sample { pid: id(0)? }),
            _ => None,
        }
    }
}

/// Collects samples of other processes.
struct SampleCollector {
    rings: Vec<Sampler>,
    servers: ProcessTree,
    /// Processes that are excluded: this one, the servers and their children.
    ours: BTreeSet<u32>,
    names: BTreeMap<u32, String>,
    others: BTreeMap<u32, Other>,
    incomplete: bool,
}

#[derive(Debug, Default)]
struct Other {
    name: Option<String>,
    is_kernel: bool,
    samples: u64,
}

impl SampleCollector {
    fn new(rings: Vec<Sampler>, servers: &ProcessTree) -> Self {
        let ours = servers.pids().into_iter().chain([std::process::id()]).collect();
        Self {
            rings,
            servers: servers.clone(),
            ours,
            names: BTreeMap::new(),
            others: BTreeMap::new(),
            incomplete: false,
        }
    }

    /// Reads all records of the rings. A process can start on one CPU and run on another, so the
    /// samples are attributed only after all rings have been read.
    fn read(&mut self) {
        let mut records = Vec::new();
        for ring in &mut self.rings {
            while let Some(record) = ring.next_record() {
                records.extend(Record::parse(record.ty(), &record.to_contiguous()));
            }
        }
        self.add(records);
    }

    fn add(&mut self, records: Vec<Record>) {
        let mut samples: BTreeMap<u32, u64> = BTreeMap::new();
        for record in records {
            match record {
                // 0 is an idle CPU; u32::MAX is a process that no longer has an id.
                Record::Sample { pid: 0 | u32::MAX } => {}
                Record::Sample { pid } => *samples.entry(pid).or_default() += 1,
                Record::Fork { pid, parent } if self.ours.contains(&parent) => {
                    self.ours.insert(pid);
                }
                Record::Fork { pid, .. } => {
                    self.ours.remove(&pid);
                }
                Record::Name { pid, name } => {
                    if let Some(other) = self.others.get_mut(&pid) {
                        other.name = Some(name.clone());
                    }
                    if self.names.len() >= NAMES_MAX {
                        self.names.clear();
                    }
                    self.names.insert(pid, name);
                }
                Record::Lost => self.incomplete = true,
            }
        }
        for (pid, count) in samples {
            if !self.others.contains_key(&pid) && !self.ours.contains(&pid) {
                self.register(pid);
            }
            if let Some(other) = self.others.get_mut(&pid) {
                other.samples += count;
            }
        }
    }

    /// Adds a process that was sampled for the first time.
    fn register(&mut self, pid: u32) {
        let ours = self.servers.pids();
        if ours.contains(&pid) {
            self.ours.extend(ours);
            return;
        }
        let activity = ProcessActivity::of(pid);
        let is_kernel = activity.as_ref().is_some_and(|activity| activity.is_kernel);
        let name = activity.map(|activity| activity.name);
        let name = name.or_else(|| self.names.get(&pid).cloned());
        self.others.insert(pid, Other { name, is_kernel, samples: 0 });
    }

    /// The processes that ran most; processes with the same name are combined.
    fn into_disturbers(self) -> Disturbers {
        let mut by_name: BTreeMap<(Option<String>, u32), (Disturber, u64)> = BTreeMap::new();
        for (pid, Other { name, is_kernel, samples }) in self.others {
            let cpu_ns = samples * PERIOD_NS;
            // Processes without a name are kept separate.
            let key = (name.clone(), if name.is_some() { 0 } else { pid });
            let none = Disturber { name, pid, processes: 0, is_kernel, cpu_ns: 0 };
            let (one, most_ns) = by_name.entry(key).or_insert((none, 0));
            one.processes += 1;
            one.cpu_ns += cpu_ns;
            if cpu_ns > *most_ns {
                (one.pid, *most_ns) = (pid, cpu_ns);
            }
        }
        let mut most: Vec<Disturber> = by_name.into_values().map(|(one, _)| one).collect();
        most.sort_by_key(|one| std::cmp::Reverse(one.cpu_ns));
        most.truncate(REPORTED_MAX);
        Disturbers { most, incomplete: self.incomplete }
    }
}

#[cfg(test)]
#[path = "disturbers_tests.rs"]
mod tests;
