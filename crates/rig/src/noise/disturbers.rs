//! Who else runs on the CPUs of generator and servers: samples of the thread that runs there.
//!
//! Source: `perf_event_open(2)`, the software event `PERF_COUNT_SW_CPU_CLOCK` of a CPU for all
//! processes, with records of new processes and of new names. It needs `CAP_PERFMON` or a
//! `kernel.perf_event_paranoid` of at most 0. Samples are taken and not context switches: a record
//! of each switch costs the measured CPU about 0.5 µs, which is several percent of a server that
//! sleeps between requests. 199 samples a second of 1 µs cost it 0.02 %.

use model::{Disturber, Disturbers};
use perf_event::events::Software;
use perf_event::{Builder, SampleFlag, Sampler};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::cpu::{allowed_by_the_system, pin_current_thread};
use crate::procfs::Work;
use crate::tree::ProcessTree;

/// Time between two samples of a CPU: a prime number a second, out of step with what runs a hundred
/// or a thousand times.
const PERIOD_NS: u64 = 1_000_000_000 / 199;
/// Room for the samples of a CPU, for half a minute.
const RING_BYTES: usize = 128 << 10;
/// So often samples are read, and processes that are new looked up.
const READ_EVERY: Duration = Duration::from_millis(250);
/// Most CPUs that are watched.
const CPUS_MAX: usize = 64;
/// Most that are told.
const TOLD_MAX: usize = 5;
/// Names of processes that were never seen running are kept up to this number.
const NAMES_MAX: usize = 4_096;

/// Watches from its start until [`Watch::stop`]; dropping it ends its thread as well.
#[derive(Debug)]
pub(super) struct Watch {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<Disturbers>>,
}

impl Watch {
    /// Watches the CPUs of generator and server; an empty list stands for all of this machine. This
    /// process and `servers` with their children are not told. `None` where the kernel permits it
    /// not.
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
        let mut seen = Seen::new(rings, servers);
        let own = generator.to_vec();
        let (stop, stopped) = mpsc::channel::<()>();
        let watch = move || {
            // Where it is refused, the samples are read elsewhere.
            let _ = pin_current_thread(&own);
            while stopped.recv_timeout(READ_EVERY) == Err(RecvTimeoutError::Timeout) {
                seen.read();
            }
            seen.read();
            seen.told()
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
    // Nobody waits for it: it is read by the clock.
    event.wakeup_watermark(RING_BYTES).enabled(true);
    event.build()?.sampled(RING_BYTES)
}

/// A record of a ring, as far as it is needed. Source: `enum perf_event_type` of the kernel's
/// `linux/perf_event.h`; all of them begin with ids of 32 bits.
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
            // Lost records, and samples that were not taken because there were too many.
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

/// What was seen of others so far.
struct Seen {
    rings: Vec<Sampler>,
    servers: ProcessTree,
    /// Processes that are not told.
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

impl Seen {
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

    /// Takes in what the rings hold. A process may begin on one CPU and run on another, so samples
    /// are judged when all rings are read.
    fn read(&mut self) {
        let mut records = Vec::new();
        for ring in &mut self.rings {
            while let Some(record) = ring.next_record() {
                records.extend(Record::parse(record.ty(), &record.to_contiguous()));
            }
        }
        self.take(records);
    }

    fn take(&mut self, records: Vec<Record>) {
        let mut samples: BTreeMap<u32, u64> = BTreeMap::new();
        for record in records {
            match record {
                // 0 is a CPU without work, and the last of what has no id any more.
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
                self.meet(pid);
            }
            if let Some(other) = self.others.get_mut(&pid) {
                other.samples += count;
            }
        }
    }

    /// A process that was not known runs.
    fn meet(&mut self, pid: u32) {
        let ours = self.servers.pids();
        if ours.contains(&pid) {
            self.ours.extend(ours);
            return;
        }
        let work = Work::of(pid);
        let is_kernel = work.as_ref().is_some_and(|work| work.is_kernel);
        let name = work.map(|work| work.name).or_else(|| self.names.get(&pid).cloned());
        self.others.insert(pid, Other { name, is_kernel, samples: 0 });
    }

    /// Those that ran most; processes of one name count together.
    fn told(self) -> Disturbers {
        let mut by_name: BTreeMap<(Option<String>, u32), (Disturber, u64)> = BTreeMap::new();
        for (pid, Other { name, is_kernel, samples }) in self.others {
            let cpu_ns = samples * PERIOD_NS;
            // Of those without a name nobody knows whether they belong together.
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
        most.truncate(TOLD_MAX);
        Disturbers { most, incomplete: self.incomplete }
    }
}

#[cfg(test)]
#[path = "disturbers_tests.rs"]
mod tests;
