//! Conversion of a trial's samples to columns of differences and back.

use model::{COUNTERS, Counter, Sample, ThreadCpu};
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt;

/// The readings of one counter: the first one, then the difference of each to the last known one.
/// A missing reading is [`MISSING`], `null` in the file. Trailing differences of 0 are omitted, but
/// not the first reading. A counter without any reading has no entries.
#[derive(Debug, Default)]
struct Column(Vec<i64>);

/// Marks a missing reading; no real difference is that large.
const MISSING: i64 = i64::MIN;

impl Serialize for Column {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.0.iter().map(|entry| (*entry != MISSING).then_some(*entry)))
    }
}

impl<'de> Deserialize<'de> for Column {
    /// Avoids a list of options, which would take twice the memory.
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
                    entries.push(entry.unwrap_or(MISSING));
                }
                entries.shrink_to_fit();
                Ok(Column(entries))
            }
        }
        from.deserialize_seq(Entries)
    }
}

/// Description of an invalid line.
type Problem = String;

/// Maximum number of samples per trial; the writer keeps at most 100,000.
const SAMPLES_MAX: usize = 1 << 17;
/// Maximum length in bytes of a name: of a server at the longest path of a socket, with its
/// database. Linux allows 15 for threads and interfaces.
const NAME_MAX: usize = 256;
/// Length of most names.
const NAME_USUAL: usize = 32;

/// A line of the file: the samples of a trial.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Line {
    pub(crate) block: u32,
    /// Id of the cell.
    pub(crate) cell: String,
    /// Differences with one entry per sample; zeros at the end are not omitted.
    at_ns: Vec<i64>,
    /// Name of the network interface, if any.
    interface: Option<String>,
    /// By counter name; counters without readings are omitted.
    counters: BTreeMap<String, Column>,
    /// The processes of several servers: id, address and CPU time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    servers: Vec<Thread>,
    server_threads: Vec<Thread>,
    generator_threads: Vec<Thread>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Thread {
    id: u32,
    name: String,
    cpu_ns: Column,
}

impl Line {
    pub(crate) fn of((block, cell): (u32, &str), samples: &[Sample]) -> Self {
        let mut last = 0;
        let counter = |c: &Counter| (c.name.to_string(), column(samples.iter().map(c.read)));
        let counters = COUNTERS.iter().map(counter).filter(|(_, column)| !column.0.is_empty());
        Self {
            block,
            cell: cell.into(),
            at_ns: samples.iter().map(|s| difference(&mut last, s.at_ns)).collect(),
            interface: samples.iter().find_map(|s| Some(s.network.as_ref()?.interface.clone())),
            counters: counters.collect(),
            servers: threads(samples.iter().map(|s| &s.servers[..])),
            server_threads: threads(
                samples.iter().map(|s| s.server.as_ref().map_or(&[][..], |server| &server.threads)),
            ),
            generator_threads: threads(samples.iter().map(|s| &s.generator.threads[..])),
        }
    }

    /// Decodes the samples. Unknown counters are ignored. Errors: columns of different lengths,
    /// more samples than a trial can have, or samples that are not in order of time.
    pub(crate) fn samples(&self) -> Result<impl Iterator<Item = Sample> + '_, Problem> {
        let length = self.length()?;
        let mut counters = Vec::new();
        for (name, column) in &self.counters {
            let readings = Readings::of(column, length)?;
            counters.extend(COUNTERS.iter().find(|c| c.name == name).map(|c| (c, readings)));
        }
        let mut servers = thread_readings(&self.servers, length)?;
        let mut server = thread_readings(&self.server_threads, length)?;
        let mut generator = thread_readings(&self.generator_threads, length)?;
        let mut last = 0_u64;
        Ok(self.at_ns.iter().map(move |difference| {
            last = last.wrapping_add_signed(*difference);
            let mut sample = Sample { at_ns: last, ..Sample::default() };
            for (counter, readings) in &mut counters {
                readings
                    .next_reading()
                    .into_iter()
                    .for_each(|number| (counter.put)(&mut sample, number));
            }
            sample.servers = current_threads(&mut servers);
            let of_server = current_threads(&mut server);
            sample.server.iter_mut().for_each(|used| used.threads.clone_from(&of_server));
            sample.generator.threads = current_threads(&mut generator);
            if let (Some(network), Some(name)) = (&mut sample.network, &self.interface) {
                network.interface.clone_from(name);
            }
            sample
        }))
    }

    /// The smallest n for which every n-th sample fits into `max_bytes` of memory. Each sample
    /// counts with all threads, since a short line can expand to many entries.
    pub(crate) fn step(&self, max_bytes: usize) -> usize {
        let threads = self.threads().count();
        let each = size_of::<Sample>() + threads * (size_of::<ThreadCpu>() + NAME_USUAL);
        self.at_ns.len().saturating_mul(each).div_ceil(max_bytes.max(1)).max(1)
    }

    /// Columns of all threads and servers.
    fn threads(&self) -> impl Iterator<Item = &Thread> {
        self.servers.iter().chain(&self.server_threads).chain(&self.generator_threads)
    }

    /// Number of samples. Errors: too many samples, samples that are not in order of time, or a
    /// name that is too long.
    fn length(&self) -> Result<usize, Problem> {
        let names = self.threads().map(|thread| &thread.name);
        let mut names = names.chain(&self.interface);
        if let Some(long) = names.find(|name| name.len() > NAME_MAX) {
            let length = long.len();
            return Err(format!("a name has {length} bytes (expected at most {NAME_MAX})"));
        }
        let count = self.at_ns.len();
        if count > SAMPLES_MAX {
            return Err(format!("it has {count} samples (expected at most {SAMPLES_MAX})"));
        }
        let next = |at: u64, difference: &i64| at.checked_add(u64::try_from(*difference).ok()?);
        let is_in_order = self.at_ns.iter().try_fold(0, next).is_some();
        is_in_order.then_some(count).ok_or_else(|| "its samples are not in order of time".into())
    }
}

fn thread_readings(
    threads: &[Thread],
    length: usize,
) -> Result<Vec<(&Thread, Readings<'_>)>, Problem> {
    threads.iter().map(|thread| Ok((thread, Readings::of(&thread.cpu_ns, length)?))).collect()
}

fn current_threads(threads: &mut [(&Thread, Readings<'_>)]) -> Vec<ThreadCpu> {
    let current = |(thread, readings): &mut (&Thread, Readings<'_>)| {
        let cpu_ns = readings.next_reading()?;
        Some(ThreadCpu { id: thread.id, name: thread.name.clone(), cpu_ns })
    };
    threads.iter_mut().filter_map(current).collect()
}

/// One column per pair of thread id and name, in order of first appearance.
fn threads<'a>(used: impl Iterator<Item = &'a [ThreadCpu]> + Clone) -> Vec<Thread> {
    let length = used.clone().count();
    let mut places: BTreeMap<(u32, &str), usize> = BTreeMap::new();
    let mut seen: Vec<(u32, &str, Vec<Option<u64>>)> = Vec::new();
    for (at, used) in used.enumerate() {
        for thread in used {
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

/// Difference to the last reading. It wraps, so that any readings can be restored exactly.
fn difference(last: &mut u64, reading: u64) -> i64 {
    reading.wrapping_sub(std::mem::replace(last, reading)).cast_signed()
}

fn column(readings: impl Iterator<Item = Option<u64>>) -> Column {
    let mut last = 0;
    let entries = readings.map(|r| r.map_or(MISSING, |r| difference(&mut last, r)));
    let mut entries: Vec<i64> = entries.collect();
    if entries.iter().all(|entry| *entry == MISSING) {
        return Column::default();
    }
    let cut = entries.iter().rposition(|difference| *difference != 0).unwrap_or(0);
    entries.truncate(cut + 1);
    Column(entries)
}

/// Decoder of a column.
struct Readings<'a> {
    differences: std::slice::Iter<'a, i64>,
    /// Last known reading; `None` for a counter without readings.
    last: Option<u64>,
}

impl<'a> Readings<'a> {
    /// Decodes a column for `length` samples.
    fn of(column: &'a Column, length: usize) -> Result<Self, Problem> {
        if column.0.len() > length {
            return Err("a column is longer than that of the times".into());
        }
        let last = (!column.0.is_empty()).then_some(0);
        Ok(Self { differences: column.0.iter(), last })
    }

    /// The next reading; `None` if it is missing.
    fn next_reading(&mut self) -> Option<u64> {
        match self.differences.next() {
            Some(&MISSING) => None,
            Some(difference) => {
                self.last = Some(self.last?.wrapping_add_signed(*difference));
                self.last
            }
            None => self.last,
        }
    }
}
