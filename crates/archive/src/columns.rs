//! Samples of a trial as columns of differences, and back.

use model::{NetworkUse, ProcessUse, Sample, StoreCounters, ThreadCpu};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The readings of one counter: the first, then the difference of each to the last that was told;
/// `None` where nothing was told. Differences of 0 at the end are left out, but for the first
/// reading; one that was never told has no entries.
type Column = Vec<Option<i64>>;

/// What is wrong with a line.
type Problem = String;

/// Samples of a trial at most; those who write keep 100,000.
const SAMPLES_MAX: usize = 1 << 17;
/// Bytes of the name of a thread or an interface at most; Linux has 15.
const NAME_MAX: usize = 64;

/// The samples of a trial: a line of the file.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Line {
    pub(crate) block: u32,
    /// Id of the cell.
    pub(crate) cell: String,
    /// Differences like the others, but whole: as long as there are samples.
    at_ns: Vec<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    server: Option<Process>,
    generator: Process,
    /// By the counter's name. Fragmentation is in thousandths.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    store: BTreeMap<String, Column>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    network: Option<Network>,
}

/// Where `cpu_ns` was not told, there was no process.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Process {
    cpu_ns: Column,
    resident_bytes: Column,
    swapped_bytes: Column,
    voluntary_switches: Column,
    involuntary_switches: Column,
    run_delay_ns: Column,
    threads: Vec<Thread>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Thread {
    id: u32,
    name: String,
    cpu_ns: Column,
}

/// Where `received_bytes` was not told, the interface was not there.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Network {
    interface: String,
    received_bytes: Column,
    sent_bytes: Column,
    received_packets: Column,
    sent_packets: Column,
}

impl Line {
    pub(crate) fn of((block, cell): (u32, &str), samples: &[Sample]) -> Self {
        let network = samples.iter().find_map(|s| s.network.as_ref());
        let has_server = samples.iter().any(|s| s.server.is_some());
        let mut last = 0;
        let at_ns = samples.iter().map(|s| difference(&mut last, s.at_ns)).collect();
        Self {
            block,
            cell: cell.into(),
            at_ns,
            server: has_server.then(|| Process::of(samples.iter().map(|s| s.server.as_ref()))),
            generator: Process::of(samples.iter().map(|s| Some(&s.generator))),
            store: store_columns(samples),
            network: network.map(|n| Network::of(&n.interface, samples)),
        }
    }

    /// The samples again; where all of them would take more than `most_bytes` of memory, every
    /// second, or every third, and so on. Errors: columns that do not fit each other, or more than
    /// can be of one trial.
    pub(crate) fn samples(&self, most_bytes: usize) -> Result<Vec<Sample>, Problem> {
        let step = self.check(most_bytes)?;
        let mut last = 0_u64;
        let times = self.at_ns.iter().map(|difference| {
            last = last.wrapping_add_signed(*difference);
            last
        });
        let mut samples: Vec<Sample> =
            times.step_by(step).map(|at_ns| Sample { at_ns, ..Sample::default() }).collect();
        let shape = Shape { length: self.at_ns.len(), step };
        self.generator.put(&mut samples, shape, |sample, used| sample.generator = used)?;
        if let Some(server) = &self.server {
            server.put(&mut samples, shape, |sample, used| sample.server = Some(used))?;
        }
        self.put_store(&mut samples, shape)?;
        if let Some(network) = &self.network {
            network.put(&mut samples, shape)?;
        }
        Ok(samples)
    }

    /// Every thread and every column that ended early counts in every sample, so a short line can
    /// stand for a lot.
    /// Errors: what no run has written. Else how many samples to go on by.
    fn check(&self, most_bytes: usize) -> Result<usize, Problem> {
        let processes = || self.server.iter().chain([&self.generator]);
        let names = processes().flat_map(|process| &process.threads).map(|t| &t.name);
        let names: Vec<&String> = names.chain(self.network.iter().map(|n| &n.interface)).collect();
        if let Some(long) = names.iter().find(|name| name.len() > NAME_MAX) {
            let length = long.len();
            return Err(format!("a name has {length} bytes (expected at most {NAME_MAX})"));
        }
        let threads: usize = processes().map(|process| process.threads.len()).sum();
        let each = size_of::<Sample>() + threads * (size_of::<ThreadCpu>() + NAME_MAX / 2);
        let count = self.at_ns.len();
        if count > SAMPLES_MAX {
            return Err(format!("it has {count} samples (expected at most {SAMPLES_MAX})"));
        }
        Ok(count.saturating_mul(each).div_ceil(most_bytes.max(1)).max(1))
    }

    /// Names that are not known are passed over.
    fn put_store(&self, samples: &mut [Sample], shape: Shape) -> Result<(), Problem> {
        for (name, column) in &self.store {
            let mut readings = Readings::of(column, shape)?;
            for sample in samples.iter_mut() {
                let Some(reading) = readings.told() else { continue };
                let store = sample.store.get_or_insert_default();
                if name == FRAGMENTATION {
                    store.fragmentation = Some(reading as f64 / 1e3);
                } else if let Some((_, counter)) =
                    counters(store).into_iter().find(|(own, _)| own == name)
                {
                    *counter = Some(reading);
                }
            }
        }
        Ok(())
    }
}

const FRAGMENTATION: &str = "fragmentation";

/// The whole numbers that a store tells, by name.
fn counters(store: &mut StoreCounters) -> [(&'static str, &mut Option<u64>); 12] {
    [
        ("used_bytes", &mut store.used_bytes),
        ("limit_bytes", &mut store.limit_bytes),
        ("keys", &mut store.keys),
        ("connections", &mut store.connections),
        ("refused", &mut store.refused),
        ("commands", &mut store.commands),
        ("hits", &mut store.hits),
        ("misses", &mut store.misses),
        ("evicted", &mut store.evicted),
        ("expired", &mut store.expired),
        ("received_bytes", &mut store.received_bytes),
        ("sent_bytes", &mut store.sent_bytes),
    ]
}

fn store_columns(samples: &[Sample]) -> BTreeMap<String, Column> {
    let mut told: Vec<StoreCounters> =
        samples.iter().map(|s| s.store.clone().unwrap_or_default()).collect();
    let names = counters(&mut StoreCounters::default()).map(|(name, _)| name);
    let mut columns: BTreeMap<String, Column> = BTreeMap::new();
    for (at, name) in names.into_iter().enumerate() {
        let readings = told.iter_mut().map(|store| *counters(store)[at].1);
        columns.insert(name.into(), column(readings));
    }
    let permille = |f: f64| (f * 1e3).round() as u64;
    let fragmentation = column(told.iter().map(|store| store.fragmentation.map(permille)));
    columns.insert(FRAGMENTATION.into(), fragmentation);
    columns.retain(|_, column| !column.is_empty());
    columns
}

impl Process {
    fn of<'a>(used: impl Iterator<Item = Option<&'a ProcessUse>> + Clone) -> Self {
        let of = |number: fn(&ProcessUse) -> u64| column(used.clone().map(|u| u.map(number)));
        Self {
            cpu_ns: of(|u| u.cpu_ns),
            resident_bytes: of(|u| u.resident_bytes),
            swapped_bytes: of(|u| u.swapped_bytes),
            voluntary_switches: of(|u| u.voluntary_switches),
            involuntary_switches: of(|u| u.involuntary_switches),
            run_delay_ns: of(|u| u.run_delay_ns),
            threads: threads(used),
        }
    }

    /// Hands every reading over to its sample.
    fn put(
        &self,
        samples: &mut [Sample],
        shape: Shape,
        take: impl Fn(&mut Sample, ProcessUse),
    ) -> Result<(), Problem> {
        let mut cpu_ns = Readings::of(&self.cpu_ns, shape)?;
        let mut resident_bytes = Readings::of(&self.resident_bytes, shape)?;
        let mut swapped_bytes = Readings::of(&self.swapped_bytes, shape)?;
        let mut voluntary_switches = Readings::of(&self.voluntary_switches, shape)?;
        let mut involuntary_switches = Readings::of(&self.involuntary_switches, shape)?;
        let mut run_delay_ns = Readings::of(&self.run_delay_ns, shape)?;
        let threads = self.threads.iter().map(|t| Ok((t, Readings::of(&t.cpu_ns, shape)?)));
        let mut threads = threads.collect::<Result<Vec<_>, Problem>>()?;
        for sample in samples {
            let threads = threads.iter_mut().filter_map(|(thread, readings)| {
                let cpu_ns = readings.told()?;
                Some(ThreadCpu { id: thread.id, name: thread.name.clone(), cpu_ns })
            });
            let threads: Vec<ThreadCpu> = threads.collect();
            let used = ProcessUse {
                cpu_ns: 0,
                threads,
                resident_bytes: resident_bytes.told().unwrap_or_default(),
                swapped_bytes: swapped_bytes.told().unwrap_or_default(),
                voluntary_switches: voluntary_switches.told().unwrap_or_default(),
                involuntary_switches: involuntary_switches.told().unwrap_or_default(),
                run_delay_ns: run_delay_ns.told().unwrap_or_default(),
            };
            if let Some(cpu_ns) = cpu_ns.told() {
                take(sample, ProcessUse { cpu_ns, ..used });
            }
        }
        Ok(())
    }
}

/// A column for each thread under each name that it had, in the order in which they were seen.
fn threads<'a>(used: impl Iterator<Item = Option<&'a ProcessUse>> + Clone) -> Vec<Thread> {
    let length = used.clone().count();
    let mut places: BTreeMap<(u32, &str), usize> = BTreeMap::new();
    let mut seen: Vec<(u32, &str, Vec<Option<u64>>)> = Vec::new();
    for (at, used) in used.enumerate() {
        for thread in used.iter().flat_map(|used| &used.threads) {
            let key = (thread.id, thread.name.as_str());
            let place = *places.entry(key).or_insert_with(|| {
                seen.push((key.0, key.1, vec![None; length]));
                seen.len() - 1
            });
            seen[place].2[at] = Some(thread.cpu_ns);
        }
    }
    let thread = |(id, name, readings): (u32, &str, Vec<Option<u64>>)| Thread {
        id,
        name: name.into(),
        cpu_ns: column(readings.into_iter()),
    };
    seen.into_iter().map(thread).collect()
}

impl Network {
    fn of(interface: &str, samples: &[Sample]) -> Self {
        let of = |number: fn(&NetworkUse) -> u64| {
            column(samples.iter().map(|s| s.network.as_ref().map(number)))
        };
        Self {
            interface: interface.into(),
            received_bytes: of(|n| n.received_bytes),
            sent_bytes: of(|n| n.sent_bytes),
            received_packets: of(|n| n.received_packets),
            sent_packets: of(|n| n.sent_packets),
        }
    }

    fn put(&self, samples: &mut [Sample], shape: Shape) -> Result<(), Problem> {
        let mut received_bytes = Readings::of(&self.received_bytes, shape)?;
        let mut sent_bytes = Readings::of(&self.sent_bytes, shape)?;
        let mut received_packets = Readings::of(&self.received_packets, shape)?;
        let mut sent_packets = Readings::of(&self.sent_packets, shape)?;
        for sample in samples {
            let used = NetworkUse {
                interface: self.interface.clone(),
                received_bytes: 0,
                sent_bytes: sent_bytes.told().unwrap_or_default(),
                received_packets: received_packets.told().unwrap_or_default(),
                sent_packets: sent_packets.told().unwrap_or_default(),
            };
            let told = received_bytes.told();
            sample.network = told.map(|received_bytes| NetworkUse { received_bytes, ..used });
        }
        Ok(())
    }
}

/// From the last reading to this one. Wraps, so that any numbers come back as they were.
fn difference(last: &mut u64, reading: u64) -> i64 {
    reading.wrapping_sub(std::mem::replace(last, reading)).cast_signed()
}

fn column(readings: impl Iterator<Item = Option<u64>>) -> Column {
    let mut last = 0;
    let mut column: Column = readings.map(|r| r.map(|r| difference(&mut last, r))).collect();
    if column.iter().all(Option::is_none) {
        return Column::new();
    }
    let cut = column.iter().rposition(|difference| *difference != Some(0)).unwrap_or(0);
    column.truncate(cut + 1);
    column
}

/// How many samples a line holds, and every how many of them are read.
#[derive(Clone, Copy)]
struct Shape {
    length: usize,
    step: usize,
}

/// The readings of a column, one after the other.
struct Readings<'a> {
    step: usize,
    differences: std::slice::Iter<'a, Option<i64>>,
    /// `None` for a counter that was never told.
    last: Option<u64>,
}

impl<'a> Readings<'a> {
    fn of(column: &'a Column, shape: Shape) -> Result<Self, Problem> {
        if column.len() > shape.length {
            return Err("a column is longer than that of the times".into());
        }
        let last = (!column.is_empty()).then_some(0);
        Ok(Self { step: shape.step, differences: column.iter(), last })
    }

    /// The next reading that counts; `None` where it was not told.
    fn told(&mut self) -> Option<u64> {
        let told = self.next();
        for _ in 1..self.step {
            self.next();
        }
        told
    }

    fn next(&mut self) -> Option<u64> {
        match self.differences.next() {
            None => self.last,
            Some(difference) => {
                self.last = Some(self.last?.wrapping_add_signed((*difference)?));
                self.last
            }
        }
    }
}
