//! Samples of a trial as columns of differences, and back.

use model::{NetworkUse, ProcessUse, Sample, StoreCounters, ThreadCpu};
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt;

/// The readings of one counter: the first, then the difference of each to the last that was told;
/// [`NOT_TOLD`], `null` in the file, where nothing was told. Differences of 0 at the end are left
/// out, but for the first reading; one that was never told has no entries.
#[derive(Debug, Default)]
struct Column(Vec<i64>);

impl Column {
    /// True where nothing was ever reported.
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// No difference of two readings of a counter is that large.
const NOT_TOLD: i64 = i64::MIN;

impl Serialize for Column {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.0.iter().map(|entry| (*entry != NOT_TOLD).then_some(*entry)))
    }
}

impl<'de> Deserialize<'de> for Column {
    /// Half of the memory that a list of options takes.
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = Column;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of differences")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut of: A) -> Result<Column, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = of.next_element::<Option<i64>>()? {
                    entries.push(entry.unwrap_or(NOT_TOLD));
                }
                entries.shrink_to_fit();
                Ok(Column(entries))
            }
        }
        from.deserialize_seq(Entries)
    }
}

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
    #[serde(default, skip_serializing_if = "Column::is_empty")]
    group_bytes: Column,
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
            group_bytes: column(samples.iter().map(|s| s.group_bytes)),
            network: network.map(|n| Network::of(&n.interface, samples)),
        }
    }

    /// The samples again, one after the other. Errors: columns that do not fit each other, or more
    /// than can be of one trial.
    pub(crate) fn samples(&self) -> Result<impl Iterator<Item = Sample> + '_, Problem> {
        let length = self.length()?;
        let server = self.server.as_ref().map(|server| ProcessReadings::of(server, length));
        let mut server = server.transpose()?;
        let mut generator = ProcessReadings::of(&self.generator, length)?;
        let network = self.network.as_ref().map(|network| NetworkReadings::of(network, length));
        let mut network = network.transpose()?;
        let store = self.store.iter();
        let store = store.map(|(name, column)| Ok((name.as_str(), Readings::of(column, length)?)));
        let mut store = store.collect::<Result<Vec<_>, Problem>>()?;
        let mut group_bytes = Readings::of(&self.group_bytes, length)?;
        let mut last = 0_u64;
        Ok(self.at_ns.iter().map(move |difference| {
            last = last.wrapping_add_signed(*difference);
            Sample {
                at_ns: last,
                server: server.as_mut().and_then(ProcessReadings::told),
                generator: generator.told().unwrap_or_default(),
                store: store_told(&mut store),
                group_bytes: group_bytes.told(),
                network: network.as_mut().and_then(NetworkReadings::told),
            }
        }))
    }

    /// Every how many samples are to be kept, so that they take that many bytes of memory at most.
    /// Every thread and every column that ended early counts in every sample, so a short line can
    /// stand for a lot.
    pub(crate) fn step(&self, most_bytes: usize) -> usize {
        let processes = self.server.iter().chain([&self.generator]);
        let threads: usize = processes.map(|process| process.threads.len()).sum();
        let each = size_of::<Sample>() + threads * (size_of::<ThreadCpu>() + NAME_MAX / 2);
        self.at_ns.len().saturating_mul(each).div_ceil(most_bytes.max(1)).max(1)
    }

    /// How many samples it holds. Errors: what no run has written.
    fn length(&self) -> Result<usize, Problem> {
        let processes = self.server.iter().chain([&self.generator]);
        let names = processes.flat_map(|process| &process.threads).map(|t| &t.name);
        let mut names = names.chain(self.network.iter().map(|n| &n.interface));
        if let Some(long) = names.find(|name| name.len() > NAME_MAX) {
            let length = long.len();
            return Err(format!("a name has {length} bytes (expected at most {NAME_MAX})"));
        }
        let count = self.at_ns.len();
        if count > SAMPLES_MAX {
            return Err(format!("it has {count} samples (expected at most {SAMPLES_MAX})"));
        }
        Ok(count)
    }
}

/// What a store told of all its counters at one time. Names that are not known are passed over.
fn store_told(columns: &mut [(&str, Readings<'_>)]) -> Option<StoreCounters> {
    let mut told: Option<StoreCounters> = None;
    for (name, readings) in columns {
        let Some(reading) = readings.told() else { continue };
        let store = told.get_or_insert_default();
        if *name == FRAGMENTATION {
            store.fragmentation = Some(reading as f64 / 1e3);
        } else if let Some((_, counter)) = counters(store).into_iter().find(|(own, _)| own == name)
        {
            *counter = Some(reading);
        }
    }
    told
}

const FRAGMENTATION: &str = "fragmentation";

/// The whole numbers that a store tells, by name.
fn counters(store: &mut StoreCounters) -> [(&'static str, &mut Option<u64>); 13] {
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
        ("saving", &mut store.saving),
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
    columns.retain(|_, column| !column.0.is_empty());
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
}

/// The readings of a process, one after the other.
struct ProcessReadings<'a> {
    cpu_ns: Readings<'a>,
    resident_bytes: Readings<'a>,
    swapped_bytes: Readings<'a>,
    voluntary_switches: Readings<'a>,
    involuntary_switches: Readings<'a>,
    run_delay_ns: Readings<'a>,
    threads: Vec<(&'a Thread, Readings<'a>)>,
}

impl<'a> ProcessReadings<'a> {
    fn of(process: &'a Process, length: usize) -> Result<Self, Problem> {
        let of = |column| Readings::of(column, length);
        let threads = process.threads.iter().map(|thread| Ok((thread, of(&thread.cpu_ns)?)));
        Ok(Self {
            cpu_ns: of(&process.cpu_ns)?,
            resident_bytes: of(&process.resident_bytes)?,
            swapped_bytes: of(&process.swapped_bytes)?,
            voluntary_switches: of(&process.voluntary_switches)?,
            involuntary_switches: of(&process.involuntary_switches)?,
            run_delay_ns: of(&process.run_delay_ns)?,
            threads: threads.collect::<Result<_, Problem>>()?,
        })
    }

    fn told(&mut self) -> Option<ProcessUse> {
        let threads = self.threads.iter_mut().filter_map(|(thread, readings)| {
            let cpu_ns = readings.told()?;
            Some(ThreadCpu { id: thread.id, name: thread.name.clone(), cpu_ns })
        });
        let used = ProcessUse {
            cpu_ns: 0,
            threads: threads.collect(),
            resident_bytes: self.resident_bytes.told().unwrap_or_default(),
            swapped_bytes: self.swapped_bytes.told().unwrap_or_default(),
            voluntary_switches: self.voluntary_switches.told().unwrap_or_default(),
            involuntary_switches: self.involuntary_switches.told().unwrap_or_default(),
            run_delay_ns: self.run_delay_ns.told().unwrap_or_default(),
        };
        self.cpu_ns.told().map(|cpu_ns| ProcessUse { cpu_ns, ..used })
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
}

/// The readings of a network interface, one after the other.
struct NetworkReadings<'a> {
    interface: &'a str,
    received_bytes: Readings<'a>,
    sent_bytes: Readings<'a>,
    received_packets: Readings<'a>,
    sent_packets: Readings<'a>,
}

impl<'a> NetworkReadings<'a> {
    fn of(network: &'a Network, length: usize) -> Result<Self, Problem> {
        let of = |column| Readings::of(column, length);
        Ok(Self {
            interface: &network.interface,
            received_bytes: of(&network.received_bytes)?,
            sent_bytes: of(&network.sent_bytes)?,
            received_packets: of(&network.received_packets)?,
            sent_packets: of(&network.sent_packets)?,
        })
    }

    fn told(&mut self) -> Option<NetworkUse> {
        let used = NetworkUse {
            interface: self.interface.into(),
            received_bytes: 0,
            sent_bytes: self.sent_bytes.told().unwrap_or_default(),
            received_packets: self.received_packets.told().unwrap_or_default(),
            sent_packets: self.sent_packets.told().unwrap_or_default(),
        };
        self.received_bytes.told().map(|received_bytes| NetworkUse { received_bytes, ..used })
    }
}

/// From the last reading to this one. Wraps, so that any numbers come back as they were.
fn difference(last: &mut u64, reading: u64) -> i64 {
    reading.wrapping_sub(std::mem::replace(last, reading)).cast_signed()
}

fn column(readings: impl Iterator<Item = Option<u64>>) -> Column {
    let mut last = 0;
    let entries = readings.map(|r| r.map_or(NOT_TOLD, |r| difference(&mut last, r)));
    let mut entries: Vec<i64> = entries.collect();
    if entries.iter().all(|entry| *entry == NOT_TOLD) {
        return Column::default();
    }
    let cut = entries.iter().rposition(|difference| *difference != 0).unwrap_or(0);
    entries.truncate(cut + 1);
    Column(entries)
}

/// The readings of a column, one after the other.
struct Readings<'a> {
    differences: std::slice::Iter<'a, i64>,
    /// `None` for a counter that was never told.
    last: Option<u64>,
}

impl<'a> Readings<'a> {
    /// Of a column of so many samples.
    fn of(column: &'a Column, length: usize) -> Result<Self, Problem> {
        if column.0.len() > length {
            return Err("a column is longer than that of the times".into());
        }
        let last = (!column.0.is_empty()).then_some(0);
        Ok(Self { differences: column.0.iter(), last })
    }

    /// The next reading; `None` where it was not told.
    fn told(&mut self) -> Option<u64> {
        match self.differences.next() {
            Some(&NOT_TOLD) => None,
            Some(difference) => {
                self.last = Some(self.last?.wrapping_add_signed(*difference));
                self.last
            }
            None => self.last,
        }
    }
}
