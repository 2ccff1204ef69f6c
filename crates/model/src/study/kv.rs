//! The workload `kv`: keys and values, as many as a study states or as a multiple of a memory
//! limit, with what the store writes in the background.

use serde::Deserialize;
use serde::de::IgnoredAny;
use std::iter;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use toml::Spanned;

use super::choices::absolute;
use super::collections::Collections;
use super::phases::{fault_in_length, plain, timed};
use super::planning::{Keys, Run, WorkloadTables, on_targets};
use super::set::{Key, VALUE_BYTES, list, number, put, within};
use super::targets::Stores;
use super::{Fault, Study, StudyError};
use crate::action::{Act, Action};
use crate::arrivals::{Arrivals, STAGE_RATE_MAX};
use crate::load::{Load, Schedule};
use crate::memory::{MemoryLimit, MemoryPlan};
use crate::plan::{Cell, Kv, Phase, PlannedTarget, Workload};
use crate::product::{DISK_BLOCK_BYTES, Product};

/// Operations; each has its own phase.
const OPERATIONS: [&str; 2] = ["set", "get"];
/// Key names as `redis-benchmark` generated them in 2013: 21 bytes.
const KEY_PREFIX: &str = "key:rand:";
const KEY_BYTES: u64 = 21;
/// Redis' overhead per key in addition to name and value: an entry of the hash table (24 bytes),
/// its slot (8, or 16 after the table grew), an object (16), and two string headers (8).
const ENTRY_BYTES: u64 = 24 + 12 + 16 + 8;
/// Numbers of keys, requests at once, and requests per second.
const KEYS: RangeInclusive<u64> = 1..=1_000_000_000;
const PIPELINE: RangeInclusive<u32> = 1..=1_000;
const RATE: RangeInclusive<u64> = 1..=STAGE_RATE_MAX;
/// Maximum amount of data, as a multiple of the memory.
const DATA_MAX: f64 = 64.0;
/// Largest exponent of Zipf's law.
const ZIPF_MAX: f64 = 5.0;
/// Memory of a store that must not swap, as a multiple of its data: a save may copy all of it.
const MEMORY_FACTOR: u64 = 4;
/// Swap, as a multiple of the data.
const SWAP_FACTOR: u64 = 2;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Defaults {
    /// Sizes of values, bytes.
    value_bytes: Vec<usize>,
    /// Number of keys of profiles without `data`.
    keys: Option<u64>,
    /// Requests that a client sends at once, in place of those of profiles. Only from `--set`.
    #[serde(skip)]
    pipeline: Vec<u32>,
    /// Requests per second, in place of those of profiles that have a rate. Only from `--set`.
    #[serde(skip)]
    rate: Option<u64>,
    /// Time beyond its planned phases after which a trial ends with a partial result, seconds.
    deadline_s: u64,
    /// Directory for swap; `None` for that of the data. Only from `--set`.
    #[serde(skip)]
    swap_dir: Option<PathBuf>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Size {
    /// Memory of the store, for profiles with `data`.
    memory: Option<MemoryLimit>,
}

#[expect(clippy::struct_excessive_bools, reason = "independent keys of a file")]
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Profile {
    name: Spanned<String>,
    #[serde(rename = "about")]
    _about: IgnoredAny,
    /// Amounts of data as multiples of the memory; each is a separate workload, as is each size of
    /// values and each pipeline. Without it, the number of keys is that of `[defaults]`.
    data: Option<Spanned<Vec<f64>>>,
    /// True for a single key.
    #[serde(default)]
    single_key: bool,
    /// Numbers of clients, in place of those of the study.
    #[serde(default)]
    clients: Vec<u32>,
    /// Requests per second of all clients, at random times; without it, each client sends its next
    /// requests when it has the answers.
    rate: Option<Spanned<u64>>,
    /// True if each request has its own connection.
    #[serde(default)]
    reconnect: bool,
    /// Operations, in the order of their phases.
    operations: Spanned<Vec<String>>,
    /// Targets that it measures; all without it.
    targets: Option<Spanned<Vec<String>>>,
    /// Lists or hashes behind the keys, in place of strings.
    collections: Option<Collections>,
    /// Sizes of values, bytes, in place of those of `[defaults]`; of an element of a collection.
    value_bytes: Option<Spanned<Vec<usize>>>,
    /// Keys filled per second; 0 for as many as the server takes. Only stores with a protocol of
    /// keys are filled at a pace.
    #[serde(default)]
    fill_per_s: u64,
    /// True if keys are accessed one after the other.
    #[serde(default)]
    in_order: bool,
    /// Exponent of Zipf's law, by which keys are chosen; without it, all are equally likely.
    zipf: Option<Spanned<f64>>,
    /// Length of a phase in units of the scale's `measure_ms`.
    length: Spanned<f64>,
    /// Requests that a client sends at once.
    pipeline: Spanned<Vec<u32>>,
    /// True if memory is limited and the remaining data goes to swap.
    #[serde(default)]
    swap: bool,
    /// When the store saves its data, as a share of the first phase.
    save_at: Option<Spanned<f64>>,
    /// When the store rewrites its log of changes, as a share of the first phase.
    rewrite_at: Option<Spanned<f64>>,
}

impl Keys for Defaults {
    type Size = Size;
    type Profile = Profile;
    const SET: &'static [Key<Self, Size>] = &[
        Key("value_bytes", |own, _, text| {
            put(&mut own.value_bytes, list(text, &VALUE_BYTES), "32 to 16777216 bytes, or several")
        }),
        Key("keys", |own, _, text| {
            put(&mut own.keys, within(text, &KEYS).map(Some), "1 to 1000000000")
        }),
        Key("pipeline", |own, _, text| {
            put(&mut own.pipeline, list(text, &PIPELINE), "1 to 1000, or several as in `1,50`")
        }),
        Key("rate", |own, _, text| {
            put(&mut own.rate, within(text, &RATE).map(Some), "1 to 100000000 requests per second")
        }),
        Key("deadline_s", |own, _, text| number(&mut own.deadline_s, text, 1..=86_400, "seconds")),
        Key("swap_dir", |own, _, text| {
            put(&mut own.swap_dir, absolute(text).map(Some), "an absolute directory on a disk")
        }),
        Key("memory", |_, size, text| {
            put(&mut size.memory, MemoryLimit::parse(text).map(Some), MemoryLimit::EXPECTED)
        }),
    ];
    const STORES: Stores = Stores::Entries;
    const OPERATIONS: &'static [&'static str] = &OPERATIONS;

    fn fault(own: &WorkloadTables<Self>) -> Option<Fault> {
        let lacks_memory = own.scales.values().any(|scale| scale.size.memory.is_none());
        own.profiles.iter().find_map(|profile| {
            let at = profile.name.span().start;
            let problem = match &profile.data {
                Some(_) if profile.single_key => "`single_key` contradicts `data`",
                Some(_) if lacks_memory => "`data` needs `memory` in the `size` of each scale",
                None if profile.swap => "`swap` needs `data`",
                None if own.defaults.keys.is_none() && !profile.single_key => {
                    "without `data`, `[defaults]` needs `keys`"
                }
                _ => return fault_in_profile(profile),
            };
            Some((at, format!("profile `{}`: {problem}", profile.name.get_ref())))
        })
    }

    fn cells(run: &Run<'_, Self>) -> Result<Vec<Cell>, StudyError> {
        has_effect(run)?;
        let mut cells = Vec::new();
        for profile in run.chosen() {
            for clients in run.clients(&profile.clients) {
                for point in profile.grid(run) {
                    let own = run.targets.iter().filter(|t| profile.measures(t, &run.study));
                    let own: Vec<&PlannedTarget> = own.collect();
                    own.iter().try_for_each(|target| fits_disk(profile, point, target))?;
                    let kv = |target: &PlannedTarget| {
                        let kv = workload((profile, point), target, run);
                        // A store without a protocol of keys has a thread per client.
                        let is_on_wire = target.product.keeps_keys();
                        Workload::Kv(if is_on_wire { kv } else { Kv { threads: clients, ..kv } })
                    };
                    let load = profile.load((clients, point.pipeline), run);
                    cells.extend(on_targets(own.iter().copied(), &load, kv));
                }
            }
        }
        Ok(cells)
    }

    fn targets(profile: &Profile) -> Option<&Spanned<Vec<String>>> {
        profile.targets.as_ref()
    }

    fn swap_dir(&self) -> Option<PathBuf> {
        self.swap_dir.clone()
    }

    fn memory(size: &Size) -> Option<MemoryLimit> {
        size.memory
    }
}

/// A key of `--set` that only some profiles have: which, and what these do.
struct Use(&'static str, fn(&Profile) -> bool, &'static str);

const USES: [Use; 3] = [
    Use("swap_dir", |profile| profile.swap, "swaps"),
    Use("keys", |profile| profile.data.is_none() && !profile.single_key, "has a number of keys"),
    Use("rate", |profile| profile.rate.is_some(), "has a rate"),
];

/// Errors: the user set a key that no chosen profile has.
fn has_effect(run: &Run<'_, Defaults>) -> Result<(), StudyError> {
    let is_useless = |Use(key, uses, _): &&Use| run.is_set(key) && !run.chosen().any(uses);
    let Some(Use(key, uses, what)) = USES.iter().find(is_useless) else { return Ok(()) };
    let able = run.profiles.iter().find(|profile| uses(profile));
    let cure = able.map_or_else(String::new, |profile| {
        format!(" (expected one that does, such as `--set profile={}`)", profile.name.get_ref())
    });
    let problem = format!("--set {key} has no effect: none of the chosen profiles {what}{cure}");
    Err(StudyError::Choice(problem))
}

/// One of the workloads of a profile: a value of each of its lists.
#[derive(Clone, Copy)]
struct GridPoint {
    data: Option<f64>,
    value_bytes: usize,
    pipeline: u32,
}

impl Profile {
    /// All combinations of its lists.
    fn grid(&self, run: &Run<'_, Defaults>) -> Vec<GridPoint> {
        let data = self
            .data
            .as_ref()
            .map_or(vec![None], |data| data.get_ref().iter().copied().map(Some).collect());
        let mut points = Vec::new();
        for data in data {
            for value_bytes in self.sizes(run) {
                for pipeline in self.pipelines(run) {
                    points.push(GridPoint { data, value_bytes: *value_bytes, pipeline: *pipeline });
                }
            }
        }
        points
    }

    fn sizes<'a>(&'a self, run: &'a Run<'_, Defaults>) -> &'a [usize] {
        let own = self.value_bytes.as_ref().filter(|_| !run.is_set("value_bytes"));
        own.map_or(&run.defaults.value_bytes[..], |sizes| sizes.get_ref())
    }

    fn pipelines<'a>(&'a self, run: &'a Run<'_, Defaults>) -> &'a [u32] {
        let is_own = !run.is_set("pipeline") || self.rate.is_some() || self.reconnect;
        if is_own { self.pipeline.get_ref() } else { &run.defaults.pipeline }
    }

    /// Its name, and the values of lists with several.
    fn name_of(&self, point: GridPoint, run: &Run<'_, Defaults>) -> String {
        let has_several = |data: &Spanned<Vec<f64>>| data.get_ref().len() > 1;
        let data = point.data.filter(|_| self.data.as_ref().is_some_and(has_several));
        let sizes = (self.sizes(run).len() > 1).then(|| format!("{}B", point.value_bytes));
        let pipelines = (self.pipelines(run).len() > 1).then(|| format!("P{}", point.pipeline));
        let values = [data.map(|data| data.to_string()), sizes, pipelines];
        let parts = iter::once(self.name.get_ref().clone()).chain(values.into_iter().flatten());
        parts.collect::<Vec<_>>().join("-")
    }

    fn load(&self, (clients, pipeline): (u32, u32), run: &Run<'_, Defaults>) -> Load {
        match &self.rate {
            Some(rate) => {
                let rate = run.defaults.rate.unwrap_or(*rate.get_ref());
                Load::planned(Arrivals::Poisson, Schedule::Steady(rate), clients)
            }
            None if self.reconnect => Load::closed(clients).reconnecting(),
            None => Load::closed(clients).pipelined(pipeline),
        }
    }

    /// What the store writes in the background: key, time and action.
    fn writes(&self) -> Vec<(&'static str, &Spanned<f64>, Act)> {
        let all =
            [("save_at", &self.save_at, Act::Save), ("rewrite_at", &self.rewrite_at, Act::Rewrite)];
        all.into_iter().filter_map(|(key, at, act)| Some((key, at.as_ref()?, act))).collect()
    }

    /// True if it measures a target: one that it lists, or a store that the study does not have
    /// and that has the product of a listed one. Without a list, all but those on request and the
    /// disk itself.
    fn measures(&self, target: &PlannedTarget, study: &Study) -> bool {
        let original = target.control_of.as_ref().unwrap_or(&target.name);
        let own = study.target(original);
        let Some(listed) = &self.targets else {
            let is_wanted = target.named || !own.is_some_and(|own| own.on_request);
            return is_wanted && target.product != Product::Disk;
        };
        let own = own.map(|own| own.name.get_ref());
        let mut listed = listed.get_ref().iter();
        match own {
            Some(own) => listed.any(|name| name == own),
            None => listed
                .filter_map(|name| study.target(name))
                .any(|listed| listed.product() == target.product),
        }
    }
}

fn fault_in_profile(profile: &Profile) -> Option<Fault> {
    let Profile { data, operations, length, value_bytes, zipf, pipeline, rate, .. } = profile;
    let is_share = |share: &f64| (0.0..1.0).contains(share);
    let is_amount = |data: &f64| *data > 0.0 && *data <= DATA_MAX;
    let collections = profile.collections.as_ref();
    let is_known = |name: &String| match collections {
        Some(own) => own.names().any(|own| own == name),
        None => OPERATIONS.contains(&name.as_str()),
    };
    if let Some(fault) = collections.and_then(Collections::fault) {
        return Some(fault);
    }
    let is_off = |data: &&Spanned<Vec<f64>>| {
        data.get_ref().is_empty() || !data.get_ref().iter().all(is_amount)
    };
    if let Some(data) = data.as_ref().filter(is_off) {
        return Some((
            data.span().start,
            format!("data must be numbers above 0, up to {DATA_MAX}"),
        ));
    }
    if operations.get_ref().is_empty() || !operations.get_ref().iter().all(is_known) {
        let expected = match collections {
            Some(_) => "commands of its collections",
            None => "`set` or `get`",
        };
        return Some((operations.span().start, format!("operations must be {expected}")));
    }
    if let Some(fault) = fault_in_length(length) {
        return Some(fault);
    }
    let is_size = |bytes: &usize| (1..=*VALUE_BYTES.end()).contains(bytes);
    let is_off = |sizes: &&Spanned<Vec<usize>>| {
        sizes.get_ref().is_empty() || !sizes.get_ref().iter().all(is_size)
    };
    if let Some(sizes) = value_bytes.as_ref().filter(is_off) {
        let expected = format!("value_bytes must be 1 to {}", VALUE_BYTES.end());
        return Some((sizes.span().start, expected));
    }
    let is_planned = rate.is_some();
    let at_once = pipeline.get_ref();
    if at_once.is_empty() || !at_once.iter().all(|n| PIPELINE.contains(n)) {
        let expected = format!("pipeline must be 1 to {}", PIPELINE.end());
        return Some((pipeline.span().start, expected));
    }
    if is_planned && *at_once != [1] {
        let problem = "pipeline must be [1] with a rate: each request has its own time";
        return Some((pipeline.span().start, problem.into()));
    }
    if profile.reconnect && (is_planned || *at_once != [1]) {
        let problem = "pipeline must be [1] and rate absent with `reconnect`";
        return Some((pipeline.span().start, problem.into()));
    }
    if let Some(rate) = rate.as_ref().filter(|rate| !RATE.contains(rate.get_ref())) {
        let expected = format!("rate must be 1 to {} requests per second", RATE.end());
        return Some((rate.span().start, expected));
    }
    let is_exponent = |exponent: &f64| *exponent > 0.0 && *exponent <= ZIPF_MAX;
    if let Some(exponent) = zipf.as_ref().filter(|exponent| !is_exponent(exponent.get_ref())) {
        let expected = format!("zipf must be a number above 0, up to {ZIPF_MAX}");
        return Some((exponent.span().start, expected));
    }
    let mut times = profile.writes().into_iter().map(|(key, at, _)| (key, at));
    let (key, at) = times.find(|(_, at)| !is_share(at.get_ref()))?;
    Some((at.span().start, format!("{key} must be a share from 0 to below 1")))
}

/// Errors: the target is the disk itself, and its values are no whole blocks.
fn fits_disk(
    profile: &Profile,
    point: GridPoint,
    target: &PlannedTarget,
) -> Result<(), StudyError> {
    let bytes = point.value_bytes;
    if target.product != Product::Disk || bytes.is_multiple_of(DISK_BLOCK_BYTES) {
        return Ok(());
    }
    let (target, profile) = (&target.name, profile.name.get_ref());
    Err(StudyError::Choice(format!(
        "target `{target}`: direct I/O on the disk needs values of whole blocks, and those of \
         profile `{profile}` have {bytes} bytes (expected a multiple of {DISK_BLOCK_BYTES}: --set \
         value_bytes=BYTES, or --set profile=device)"
    )))
}

/// A workload of a profile on a target. The memory of a server at a URL is not limited.
fn workload(
    (profile, point): (&Profile, GridPoint),
    target: &PlannedTarget,
    run: &Run<'_, Defaults>,
) -> Kv {
    let Run { defaults, size, scale, study, .. } = run;
    let length_ns = ((scale.measure_ms as f64 * profile.length.get_ref() * 1e6) as u64).max(1);
    let operations = profile.operations.get_ref();
    let phase = |name: &String| timed(name, &[name], length_ns, scale);
    let phases: Vec<Phase> = operations.iter().map(phase).collect();
    let planned_ns: u64 = phases.iter().map(|phase| phase.warmup_ns + length_ns).sum();
    let action = |(_, at, what): (&str, &Spanned<f64>, Act)| Action {
        by_command: false,
        phase: operations.first().cloned().unwrap_or_default(),
        at_ns: (length_ns as f64 * at.get_ref()) as u64,
        what,
    };
    let memory_bytes = size.memory.map_or(0, MemoryLimit::bytes);
    let data_bytes = point.data.map(|data| (memory_bytes as f64 * data) as u64);
    let memory = data_bytes.map(|data_bytes| {
        if profile.swap {
            MemoryPlan { limit_bytes: memory_bytes, swap_bytes: data_bytes * SWAP_FACTOR }
        } else {
            let limit_bytes = data_bytes.max(memory_bytes) * MEMORY_FACTOR;
            MemoryPlan { limit_bytes, swap_bytes: 0 }
        }
    });
    let product = target.product;
    let zipf = profile.zipf.as_ref().map(|exponent| format!("zipf:{}", exponent.get_ref()));
    let order = if profile.in_order { "sequential" } else { "uniform" };
    Kv {
        profile: profile.name_of(point, run),
        operations: match &profile.collections {
            Some(own) => own.operations(),
            None => plain(&OPERATIONS),
        },
        keys: match data_bytes {
            _ if profile.single_key => 1,
            Some(bytes) => (bytes / entry_bytes(profile, point, product)).max(1),
            None => defaults.keys.unwrap_or(1),
        },
        distribution: zipf.unwrap_or_else(|| order.into()),
        key_prefix: KEY_PREFIX.into(),
        value_bytes: point.value_bytes.to_string(),
        filled_share: 1.0,
        fill_per_s: if product.keeps_keys() { profile.fill_per_s } else { 0 },
        verify_one_in: study.verify_one_in,
        threads: 1,
        phases,
        actions: profile.writes().into_iter().map(action).collect(),
        deadline_ns: planned_ns + defaults.deadline_s * 1_000_000_000,
        memory: memory.filter(|_| !target.is_at_url()),
        ..Kv::default()
    }
}

/// Approximate memory of a key and its value, or space of a block.
fn entry_bytes(profile: &Profile, point: GridPoint, product: Product) -> u64 {
    let value_bytes = point.value_bytes as u64;
    match (product, &profile.collections) {
        (Product::Disk, _) => value_bytes,
        (_, Some(own)) => redis_bytes(own.bytes(value_bytes)),
        (_, None) => redis_bytes(value_bytes),
    }
}

/// Approximate memory that Redis uses for a key and its value; jemalloc rounds each string up.
fn redis_bytes(value_bytes: u64) -> u64 {
    ENTRY_BYTES + size_class(KEY_BYTES + 2) + size_class(value_bytes + 6)
}

/// jemalloc's allocation for a size: multiples of 16 up to 128, then four sizes per doubling
/// (jemalloc(3), size classes).
fn size_class(bytes: u64) -> u64 {
    let spacing = if bytes <= 128 { 16 } else { 1 << ((bytes - 1).ilog2() - 2) };
    bytes.next_multiple_of(spacing)
}

#[cfg(test)]
#[path = "kv_tests.rs"]
mod tests;
