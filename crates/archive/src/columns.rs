//! Samples of a trial as columns of differences, and back.

use model::{COUNTERS, Counter, ProcessUse, Sample, ThreadCpu};
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt;

/// The readings of one counter: the first, then the difference of each to the last that was told;
/// [`NOT_TOLD`], `null` in the file, where nothing was told. Differences of 0 at the end are left
/// out, but for the first reading; one that was never told has no entries.
#[derive(Debug, Default)]
struct Column(Vec<i64>);

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
    /// Name of the network's interface; `None` without one.
    interface: Option<String>,
    /// By the counter's name; without those that were never told.
    counters: BTreeMap<String, Column>,
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
            server_threads: threads(samples.iter().map(|s| s.server.as_ref())),
            generator_threads: threads(samples.iter().map(|s| Some(&s.generator))),
        }
    }

    /// The samples again, one after the other. Errors: columns that do not fit each other, or more
    /// than can be of one trial. Names that are not known are passed over.
    pub(crate) fn samples(&self) -> Result<impl Iterator<Item = Sample> + '_, Problem> {
        let length = self.length()?;
        let mut counters = Vec::new();
        for (name, column) in &self.counters {
            let readings = Readings::of(column, length)?;
            counters.extend(COUNTERS.iter().find(|c| c.name == name).map(|c| (c, readings)));
        }
        let mut server = thread_readings(&self.server_threads, length)?;
        let mut generator = thread_readings(&self.generator_threads, length)?;
        let mut last = 0_u64;
        Ok(self.at_ns.iter().map(move |difference| {
            last = last.wrapping_add_signed(*difference);
            let mut sample = Sample { at_ns: last, ..Sample::default() };
            for (counter, readings) in &mut counters {
                readings.told().into_iter().for_each(|number| (counter.put)(&mut sample, number));
            }
            let of_server = threads_told(&mut server);
            sample.server.iter_mut().for_each(|used| used.threads.clone_from(&of_server));
            sample.generator.threads = threads_told(&mut generator);
            if let (Some(network), Some(name)) = (&mut sample.network, &self.interface) {
                network.interface.clone_from(name);
            }
            sample
        }))
    }

    /// Every how many samples are to be kept, so that they take that many bytes of memory at most.
    /// Every thread and every column that ended early counts in every sample, so a short line can
    /// stand for a lot.
    pub(crate) fn step(&self, most_bytes: usize) -> usize {
        let threads = self.server_threads.len() + self.generator_threads.len();
        let each = size_of::<Sample>() + threads * (size_of::<ThreadCpu>() + NAME_MAX / 2);
        self.at_ns.len().saturating_mul(each).div_ceil(most_bytes.max(1)).max(1)
    }

    /// How many samples it holds. Errors: what no run has written.
    fn length(&self) -> Result<usize, Problem> {
        let names = self.server_threads.iter().chain(&self.generator_threads).map(|t| &t.name);
        let mut names = names.chain(&self.interface);
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

fn thread_readings(
    threads: &[Thread],
    length: usize,
) -> Result<Vec<(&Thread, Readings<'_>)>, Problem> {
    threads.iter().map(|thread| Ok((thread, Readings::of(&thread.cpu_ns, length)?))).collect()
}

fn threads_told(threads: &mut [(&Thread, Readings<'_>)]) -> Vec<ThreadCpu> {
    let told = |(thread, readings): &mut (&Thread, Readings<'_>)| {
        let cpu_ns = readings.told()?;
        Some(ThreadCpu { id: thread.id, name: thread.name.clone(), cpu_ns })
    };
    threads.iter_mut().filter_map(told).collect()
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
