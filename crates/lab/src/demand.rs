//! Estimates the most data that a cell has on its servers at any time.
//!
//! Trials remove their data, so the cells of a target do not add up. A load without a bound, such
//! as inserts by clients that send as fast as they can, is bounded by the highest known rate of a
//! server. That bound counts only on servers with keys of others; elsewhere the run watches the
//! server instead ([`crate::room`]).

use model::{
    AppCache, Backend, CacheAside, Cell, Failure, Kv, KvOperation, Load, Phase, Plan, Product,
    Sessions, Stop, Workload,
};
use stats::format_bytes;
use std::fmt;
use workloads::kv::values_of;

use crate::names::{self, unreadable};

/// Server overhead per key besides name and value, bytes: entry, object and hash bucket (twice
/// while the table grows).
const KEY_BYTES: f64 = 100.0;
/// Additional overhead for a TTL, bytes.
const TTL_BYTES: f64 = 60.0;
/// Allocators round sizes up to classes that differ by up to a quarter.
const ROUNDED: f64 = 1.25;
/// Server memory per idle client, bytes: a buffer for each direction.
const CLIENT_BYTES: u64 = 32 << 10;
/// Keys are not spread evenly over the servers of a cluster.
const UNEVEN: f64 = 1.25;
/// Upper bounds of a server's rate, requests per second: per request in flight (a round trip takes
/// at least 30 µs), in total, and in total with pipelining.
const ANSWERED_ONE_PER_S_MAX: f64 = 33_000.0;
const ANSWERED_PER_S_MAX: f64 = 500_000.0;
const PIPELINED_PER_S_MAX: f64 = 4_000_000.0;
/// Smallest space of a file on disk.
const BLOCK_BYTES: u64 = 4096;
/// Longest name of a session or cache record, including a layout's prefix.
const NAME_BYTES: f64 = 96.0;

/// Upper bound of a cell's data at any time.
pub(crate) struct Demand {
    /// Stored data, bytes.
    data_bytes: u64,
    /// Upper bound of the data that an unbounded load adds, bytes.
    load_bytes: u64,
    /// Maximum number of keys, sessions or records.
    entries: u64,
    /// Links and directories in which the layout keeps tags, a block each on a disk.
    tag_files: u64,
    /// Memory of clients and requests in flight, bytes.
    buffer_bytes: u64,
    clients: u32,
    /// Description of the stored data.
    what: String,
    /// True if it is written before the load starts.
    pub(crate) is_filled: bool,
    /// True if all keys of a cluster may be on one server.
    is_together: bool,
    /// How to reduce it.
    pub(crate) cure: String,
}

impl fmt::Display for Demand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (data, buffers) = (format_bytes(self.data_bytes), format_bytes(self.buffer_bytes));
        let (what, clients) = (&self.what, self.clients);
        let plural = if clients == 1 { "" } else { "s" };
        write!(f, "{data} for {what}, and {buffers} for {clients} client{plural}")
    }
}

impl Demand {
    /// Of the target's cell that writes most. `own` is the prefix of every name.
    pub(crate) fn of_target(plan: &Plan, target: &str, own: &str) -> Result<Option<Self>, Failure> {
        let cells = plan.cells.iter().filter(|cell| cell.target == target);
        let planned = plan.targets.iter().find(|planned| planned.name == target);
        let links_tags = planned.is_some_and(|p| p.backend == Some(Backend::SymfonyFile));
        let is_disk = planned.is_some_and(|p| p.products() == [Product::Disk]);
        let of = |cell: &Cell| {
            let demand = Self::of(cell, own)?;
            let tag_files = match &cell.workload {
                Workload::AppCache(cache) if links_tags => {
                    tag_files(cache.tags, cache.records_of_tag())
                }
                _ => 0,
            };
            let demand = Self { tag_files, ..demand };
            match &cell.workload {
                Workload::Kv(kv) if is_disk => demand.of_blocks(kv),
                _ => Ok(demand),
            }
        };
        let all = cells.map(of).collect::<Result<Vec<_>, Failure>>()?;
        let load_bytes = all.iter().map(|demand| demand.load_bytes).max().unwrap_or(0);
        let most = all.into_iter().max_by_key(|demand| demand.data_bytes + demand.buffer_bytes);
        Ok(most.map(|demand| Self { load_bytes, ..demand }))
    }

    pub(crate) fn of(cell: &Cell, own: &str) -> Result<Self, Failure> {
        match &cell.workload {
            Workload::Kv(kv) => of_kv(kv, &cell.load, own),
            Workload::Sessions(sessions) => Ok(of_sessions(sessions, &cell.load)),
            Workload::AppCache(cache) => Ok(of_cache(cache, &cell.load)),
            Workload::CacheAside(aside) => Ok(of_rows(aside, &cell.load)),
        }
    }

    fn new(
        (entries, entry_bytes): (f64, f64),
        load: &Load,
        in_flight_bytes: f64,
        (noun, cure): (&str, &'static str),
    ) -> Self {
        let clients = load.clients;
        let pipeline = u64::from(load.pipeline);
        let each = format_bytes(entry_bytes.ceil() as u64);
        Self {
            data_bytes: (entries * entry_bytes).ceil() as u64,
            load_bytes: 0,
            entries: entries as u64,
            tag_files: 0,
            buffer_bytes: u64::from(clients).saturating_mul(
                pipeline.saturating_mul(in_flight_bytes as u64).saturating_add(CLIENT_BYTES),
            ),
            clients,
            what: format!("{entries} {noun} of {each} including server overhead"),
            is_filled: true,
            is_together: false,
            cure: cure.into(),
        }
    }

    /// The same without a server, whose blocks take no more than their values.
    fn of_blocks(self, kv: &Kv) -> Result<Self, Failure> {
        let (sizes, _) = values_of(&kv.value_bytes, 0).map_err(unreadable)?;
        let data_bytes = (self.entries as f64 * sizes.mean()).ceil() as u64;
        let each = format_bytes(sizes.mean().ceil() as u64);
        Ok(Self { data_bytes, what: format!("{} blocks of {each}", self.entries), ..self })
    }

    /// Bytes on a disk, where each entry fills whole blocks, and a description.
    pub(crate) fn on_disk(&self) -> (u64, String) {
        let entry_bytes = self.data_bytes.div_ceil(self.entries.max(1));
        let block_bytes = entry_bytes.next_multiple_of(BLOCK_BYTES);
        let blocks = format_bytes(BLOCK_BYTES);
        let of_tags = match self.tag_files {
            0 => String::new(),
            files => format!(", and {files} links and directories of tags"),
        };
        let sum = format!("{}, rounded up to blocks of {blocks}{of_tags}", self.what);
        let tags_bytes = self.tag_files.saturating_mul(BLOCK_BYTES);
        (self.entries.saturating_mul(block_bytes).saturating_add(tags_bytes), sum)
    }

    /// The same, with [`Demand::load_bytes`] added to the data.
    pub(crate) fn with_load(self) -> Self {
        if self.load_bytes == 0 {
            return self;
        }
        let what = format!("{} and what clients add at full speed", self.what);
        let data_bytes = self.data_bytes.saturating_add(self.load_bytes);
        let cure = format!(
            "bound the load with --rate or a shorter --duration (find-max: --probe; a study: \
             --set measure_ms=MILLISECONDS), or {}",
            self.cure
        );
        Self { data_bytes, what, cure, load_bytes: 0, ..self }
    }

    /// Bytes on one of `servers` servers.
    pub(crate) fn bytes_on_one_of(&self, servers: usize) -> u64 {
        let is_whole = self.is_together || servers < 2;
        let share = if is_whole { 1.0 } else { UNEVEN / servers as f64 };
        let data_bytes = (self.data_bytes as f64 * share.min(1.0)).ceil() as u64;
        data_bytes.saturating_add(self.buffer_bytes)
    }
}

/// Size of one key on the server, bytes.
fn stored(name_bytes: f64, value_bytes: f64, ttl_s: u64) -> f64 {
    (name_bytes + value_bytes) * ROUNDED + KEY_BYTES + if ttl_s > 0 { TTL_BYTES } else { 0.0 }
}

/// Mean size of a workload's keys on the server, bytes.
pub(crate) fn key_bytes(kv: &Kv, own: &str) -> Result<f64, Failure> {
    let names = names::of(kv, own, 0).map_err(unreadable)?;
    let (sizes, _) = values_of(&kv.value_bytes, 0).map_err(unreadable)?;
    let grown_bytes = most_of_commands(kv, drivers::kv::grows_to_bytes) as f64;
    let value_bytes = sent_bytes(kv, sizes.mean()) + grown_bytes;
    Ok(stored(names.bytes_max() as f64, value_bytes, kv.ttl_s))
}

/// The largest value of `of` over the user-defined commands; 0 without commands.
fn most_of_commands<T: Ord + Default>(kv: &Kv, of: impl Fn(&str) -> T) -> T {
    let commands = kv.operations.iter().filter_map(|o| o.command.as_deref());
    commands.map(of).max().unwrap_or_default()
}

/// Upper bound of the bytes that one request sends with values of `value_bytes`.
fn sent_bytes(kv: &Kv, value_bytes: f64) -> f64 {
    let values = most_of_commands(kv, |command| command.matches("__data__").count()).max(1);
    value_bytes * values as f64 + most_of_commands(kv, str::len) as f64
}

/// Upper bound of a request and its reply, bytes, when the load adds `added` elements to keys.
fn in_flight_bytes(kv: &Kv, element_bytes: usize, added: f64) -> f64 {
    let part_bytes = sent_bytes(kv, element_bytes as f64);
    let element_bytes = element_bytes as u64;
    // All elements may be added to one key, unless keys are drawn uniformly.
    let is_uniform = kv.distribution == "uniform";
    let of_one = if is_uniform { 2.0 * added / kv.keys.max(1) as f64 + 100.0 } else { added };
    let grows = most_of_commands(kv, |command| drivers::kv::adds("", Some(command)));
    let elements = if grows { of_one.min(added) } else { 0.0 };
    let grown_bytes = most_of_commands(kv, drivers::kv::grows_to_bytes) as f64;
    let value_bytes = part_bytes.max(grown_bytes) + elements * part_bytes;
    let of = |operation: &KvOperation| match &operation.command {
        Some(command) => drivers::kv::in_flight_bytes(command, value_bytes as u64, element_bytes),
        None => 2 * element_bytes,
    };
    kv.operations.iter().map(of).max().unwrap_or(0) as f64
}

fn of_kv(kv: &Kv, load: &Load, own: &str) -> Result<Demand, Failure> {
    let (sizes, _) = values_of(&kv.value_bytes, 0).map_err(unreadable)?;
    let reads = kv.filled_share == 0.0 && kv.operations.iter().all(|o| o.name == "get");
    let keys = if reads { 0 } else { kv.keys };
    let adds = |name: &str| {
        let operation = kv.operations.iter().find(|o| o.name == name);
        operation.is_some_and(|o| drivers::kv::adds(&o.name, o.command.as_deref()))
    };
    let (added, unbounded) = adding(&kv.phases, load, adds);
    let cure = match kv.memory {
        Some(_) => "use a smaller --set memory=SIZE, of which the data are a multiple",
        None => {
            "use fewer --keys or a smaller --value, of a study --set keys=NUMBER or \
             --set value_bytes=BYTES"
        }
    };
    // A command may write several keys per key name.
    let names = most_of_commands(kv, drivers::kv::names).max(1);
    let entries = keys as f64 * names as f64 + added.ceil();
    let key_bytes = key_bytes(kv, own)?;
    let moved_bytes = in_flight_bytes(kv, sizes.max(), added);
    let demand = Demand::new((entries, key_bytes), load, moved_bytes, ("keys", cure));
    // Every client may read a key that grows without a bound.
    let at_once = f64::from(load.clients) * f64::from(load.pipeline);
    let growth_bytes = in_flight_bytes(kv, sizes.max(), added + unbounded) - moved_bytes;
    let load_bytes = unbounded * key_bytes + growth_bytes * at_once;
    let demand = Demand { load_bytes: load_bytes as u64, ..demand };
    let is_filled = kv.filled_share > 0.0;
    Ok(Demand { is_filled, is_together: kv.key_prefix.contains('{'), ..demand })
}

fn of_sessions(sessions: &Sessions, load: &Load) -> Demand {
    let value_bytes = sessions.value_bytes as f64;
    let (written, unbounded) =
        adding(&sessions.phases, load, |name| matches!(name, "write" | "new"));
    // The page layout adds a lock per client.
    let session_bytes = stored(NAME_BYTES, value_bytes, 1);
    let lock_bytes = stored(NAME_BYTES, NAME_BYTES, 1) * f64::from(load.clients);
    let cure = "use --set sessions=NUMBER or --set value_bytes=BYTES to write less";
    let entries = sessions.filled as f64 + written.ceil();
    let demand = Demand::new((entries, session_bytes), load, 2.0 * value_bytes, ("sessions", cure));
    Demand {
        buffer_bytes: demand.buffer_bytes.saturating_add(lock_bytes as u64),
        load_bytes: (unbounded * session_bytes) as u64,
        ..demand
    }
}

fn of_cache(cache: &AppCache, load: &Load) -> Demand {
    let (_, tags_most) = cache.tags_of_record;
    let (least, most) = cache.record_bytes;
    // With files, the directory's size bounds the size of all records.
    let of_files = cache.files.as_ref().and_then(|files| {
        let bytes = rig::directory_bytes(files.directory.as_ref()).ok()?;
        Some(bytes as f64 / cache.keys.max(1) as f64)
    });
    let value_bytes = of_files.unwrap_or(f64::midpoint(least as f64, most as f64));
    let most = of_files.unwrap_or(most as f64);
    // A record lists its tags, and each tag's set lists the record.
    let tags_bytes = tags_most as f64 * stored(NAME_BYTES, NAME_BYTES, 0);
    let record_bytes = stored(NAME_BYTES, value_bytes, 1) + KEY_BYTES + tags_bytes;
    let cure = "use --set keys=NUMBER to write less";
    // A clean reads the names of at most all records.
    let moved_bytes = 2.0 * most + cache.keys as f64 * NAME_BYTES;
    let entries = (cache.keys as f64, record_bytes);
    let demand = Demand::new(entries, load, moved_bytes, ("records", cure));
    let tag_sets_bytes = cache.tags as f64 * stored(NAME_BYTES, NAME_BYTES, 1);
    Demand { data_bytes: demand.data_bytes.saturating_add(tag_sets_bytes as u64), ..demand }
}

/// Links and directories of tags in Symfony's files: a link for each tag of a record, and in a
/// tag's folder up to 38 directories with 38 directories each.
fn tag_files(tags: u64, records_of_tag: f64) -> u64 {
    let directories = records_of_tag.min(38.0 * 38.0) + records_of_tag.min(38.0) + 1.0;
    (tags as f64 * (records_of_tag + directories)).ceil() as u64
}

/// Rows of a database, or as many cached ones.
fn of_rows(aside: &CacheAside, load: &Load) -> Demand {
    let bytes = aside.row_bytes as f64;
    let entries = (aside.rows as f64, stored(NAME_BYTES, bytes, aside.ttl_s));
    let cure = "lower --set rows or --set row_bytes";
    Demand::new(entries, load, 2.0 * bytes, ("rows", cure))
}

/// Number of requests that add data: those of bounded phases, and an upper bound for the others.
fn adding(phases: &[Phase], load: &Load, adds: impl Fn(&str) -> bool) -> (f64, f64) {
    let sum = |of: fn(&Load, &Phase) -> f64| {
        phases.iter().map(|phase| share(phase, &adds) * of(load, phase)).sum()
    };
    (sum(requests), sum(unbounded_requests))
}

/// Share of a phase's operations that satisfy `is`.
fn share(phase: &Phase, is: impl Fn(&str) -> bool) -> f64 {
    let all: f64 = phase.mix.values().sum();
    let those: f64 = phase.mix.iter().filter(|(name, _)| is(name)).map(|(_, weight)| weight).sum();
    if all > 0.0 { those / all } else { 0.0 }
}

/// The highest planned rate of a phase; `None` if it depends on the store, as in the peak phase and
/// control phases of a ramp.
fn planned_per_s(load: &Load, phase: &Phase) -> Option<u64> {
    load.in_phase(&phase.name).highest_per_s().filter(|_| phase.control.is_none())
}

/// Upper bound of the requests of a phase; 0 for an unbounded phase.
fn requests(load: &Load, phase: &Phase) -> f64 {
    match (phase.stop, planned_per_s(load, phase)) {
        (Stop::Count(of_each), _) => of_each as f64 * f64::from(load.clients),
        (Stop::AfterNs(ns), Some(rate_per_s)) => {
            rate_per_s as f64 * (phase.warmup_ns + ns) as f64 / 1e9
        }
        (Stop::AfterNs(_), None) => 0.0,
    }
}

/// Requests of an unbounded phase at the highest known rate of a server; 0 for a bounded phase.
fn unbounded_requests(load: &Load, phase: &Phase) -> f64 {
    match (phase.stop, planned_per_s(load, phase)) {
        (Stop::AfterNs(ns), None) => {
            let in_flight = f64::from(load.clients) * f64::from(load.pipeline);
            let most = if load.pipeline > 1 { PIPELINED_PER_S_MAX } else { ANSWERED_PER_S_MAX };
            let per_s = (in_flight * ANSWERED_ONE_PER_S_MAX).min(most);
            let lasts_ns = (phase.warmup_ns + ns).max(load.search_ns(phase.warmup_ns));
            per_s * lasts_ns as f64 / 1e9
        }
        _ => 0.0,
    }
}

/// Why the load's writes do not determine the values of keys; `None` if they do.
pub(crate) fn unfollowed(kv: &Kv) -> Option<String> {
    let keeps = |name: &str, command| drivers::kv::keeps_values(name, command);
    let other = kv.operations.iter().find(|o| !keeps(&o.name, o.command.as_deref()))?;
    Some(format!("operation `{}` leaves values unknown", other.name))
}

#[cfg(test)]
#[path = "demand_tests.rs"]
pub(crate) mod tests;
