//! The workload `kv`: keys and values, as many as a study states or as a multiple of a memory
//! limit, with what the store writes in the background.

mod profile;

use serde::Deserialize;
use std::iter;
use std::path::PathBuf;
use toml::Spanned;

use self::profile::{KEYS, OPERATIONS, PIPELINE, Profile, ProfileKeys, RATE, fault_in_profile};
use super::choices::absolute;
use super::entry_size::{KEY_PREFIX, entry_bytes};
use super::phases::{plain, timed};
use super::planning::{Keys, Run, WorkloadTables, on_targets};
use super::set::{Key, THREADS_MAX, VALUE_BYTES, list, number, put, within};
use super::targets::Stores;
use super::{Fault, Study, StudyError};
use crate::action::{Act, Action};
use crate::arrivals::Arrivals;
use crate::load::{Load, Schedule};
use crate::memory::{MemoryLimit, MemoryPlan};
use crate::plan::{Cell, Kv, Phase, PlannedTarget, Workload};
use crate::product::{DISK_BLOCK_BYTES, Product};
use crate::search::{LIMITS_MAX, PROBE_NS_MIN, ROUNDS, Search, Slo};

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
    /// Limits in place of those of profiles that have some. Only from `--set`.
    #[serde(skip)]
    limits: Vec<Slo>,
    /// Threads of the generator. Only from `--set`.
    #[serde(skip, default = "one")]
    threads: u32,
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

/// Parses limits such as `p99<1ms,p999<10ms`.
fn limits(text: &str) -> Option<Vec<Slo>> {
    let all: Vec<Slo> =
        text.split(',').map(|one| one.trim().parse().ok()).collect::<Option<_>>()?;
    (all.len() <= LIMITS_MAX).then_some(all)
}

fn one() -> u32 {
    1
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Size {
    /// Memory of the store, for profiles with `data`.
    memory: Option<MemoryLimit>,
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
        Key("limits", |own, _, text| {
            put(&mut own.limits, limits(text), "up to 16 limits, as in `p99<1ms,p999<10ms`")
        }),
        Key("threads", |own, _, text| number(&mut own.threads, text, 1..=THREADS_MAX, "threads")),
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
                Some(_) if profile.keys.is_some() => "`keys` contradicts `data`",
                Some(_) if lacks_memory => "`data` needs `memory` in the `size` of each scale",
                None if profile.swap => "`swap` needs `data`",
                None if own.defaults.keys.is_none() && profile.follows_defaults() => {
                    "without `data`, `[defaults]` needs `keys`"
                }
                _ => return fault_in_profile(profile),
            };
            Some((at, format!("profile `{}`: {problem}", profile.name.get_ref())))
        })
    }

    fn cells(run: &Run<'_, Self>) -> Result<Vec<Cell>, StudyError> {
        has_effect(run)?;
        run.chosen().try_for_each(|profile| has_long_probes(profile, run))?;
        let mut cells = Vec::new();
        for profile in run.chosen() {
            for clients in run.clients(&profile.clients) {
                for point in profile.grid(run) {
                    let own = run.targets.iter().filter(|t| profile.measures(t, &run.study));
                    let own: Vec<&PlannedTarget> = own.collect();
                    own.iter().try_for_each(|target| fits_disk(profile, point, target))?;
                    let load = profile.load((clients, point.pipeline), run);
                    let kv = |target: &PlannedTarget| {
                        let kv = workload((profile, point), target, &load, run);
                        // A store without a protocol of keys has a thread per client.
                        let is_on_wire = target.product.keeps_keys();
                        let threads = if is_on_wire { kv.threads.min(clients) } else { clients };
                        Workload::Kv(Kv { threads, ..kv })
                    };
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

const USES: [Use; 4] = [
    Use("swap_dir", |profile| profile.swap, "swaps"),
    Use("keys", Profile::follows_defaults, "has a number of keys"),
    Use("rate", |profile| profile.rate.is_some(), "has a rate"),
    Use("limits", |profile| profile.limits.is_some(), "has limits"),
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
        let is_own = !run.is_set("pipeline") || self.is_one_by_one();
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

    /// Number of keys without `data`, for this memory of each.
    fn keys(&self, target: &PlannedTarget, run: &Run<'_, Defaults>, entry_bytes: u64) -> u64 {
        let usual = run.defaults.keys.unwrap_or(1);
        match self.keys {
            Some(ProfileKeys::Number(number)) => number,
            Some(ProfileKeys::Share(share)) if !run.is_set("keys") => {
                let filled = target.tier.memory.map(|memory| share.of(memory) / entry_bytes);
                filled.unwrap_or(usual).max(1)
            }
            Some(ProfileKeys::Share(_)) | None => usual,
        }
    }

    fn load(&self, (clients, pipeline): (u32, u32), run: &Run<'_, Defaults>) -> Load {
        let planned = |schedule| Load::planned(Arrivals::Poisson, schedule, clients);
        if let Some(limits) = &self.limits {
            let own = &run.defaults.limits;
            let slos = if own.is_empty() { limits.get_ref() } else { own }.clone();
            let probe_ns = self.length_ns(&run.scale);
            return planned(Schedule::Search(Search { slos, probe_ns, rounds: ROUNDS }));
        }
        match &self.rate {
            Some(rate) => {
                let rate = run.defaults.rate.unwrap_or(*rate.get_ref());
                planned(Schedule::Steady(rate))
            }
            None if self.reconnect => Load::closed(clients).reconnecting(),
            None => Load::closed(clients).pipelined(pipeline),
        }
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

/// Errors: probes of a search are too short.
fn has_long_probes(profile: &Profile, run: &Run<'_, Defaults>) -> Result<(), StudyError> {
    if profile.limits.is_none() || profile.length_ns(&run.scale) >= PROBE_NS_MIN {
        return Ok(());
    }
    let measure_ms = run.scale.measure_ms;
    let least = PROBE_NS_MIN as f64 / 1e6 / profile.length.get_ref();
    Err(StudyError::Choice(format!(
        "measure_ms `{measure_ms}` is too short for the probes of profile `{}` (expected {least} \
         or more: --set measure_ms={least})",
        profile.name.get_ref()
    )))
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
    load: &Load,
    run: &Run<'_, Defaults>,
) -> Kv {
    let Run { defaults, size, scale, study, .. } = run;
    let length_ns = profile.length_ns(scale);
    let operations = profile.operations.get_ref();
    let phase = |name: &String| timed(name, &[name], length_ns, scale);
    let phases: Vec<Phase> = operations.iter().map(phase).collect();
    let planned_ns: u64 = phases.iter().map(|phase| phase.warmup_ns + length_ns).sum();
    // A search that contradicts itself starts again.
    let searched_ns = 2 * load.search_ns(scale.warmup_ms * 1_000_000);
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
    let entry = entry_bytes(point.value_bytes as u64, profile.collections.as_ref(), product);
    let zipf = profile.zipf.as_ref().map(|exponent| format!("zipf:{}", exponent.get_ref()));
    let order = if profile.in_order { "sequential" } else { "uniform" };
    Kv {
        profile: profile.name_of(point, run),
        operations: match &profile.collections {
            Some(own) => own.operations(),
            None => plain(&OPERATIONS),
        },
        keys: match data_bytes {
            Some(bytes) => (bytes / entry).max(1),
            None => profile.keys(target, run, entry),
        },
        distribution: zipf.unwrap_or_else(|| order.into()),
        key_prefix: KEY_PREFIX.into(),
        value_bytes: point.value_bytes.to_string(),
        filled_share: 1.0,
        fill_per_s: if product.keeps_keys() { profile.fill_per_s } else { 0 },
        verify_one_in: study.verify_one_in,
        threads: defaults.threads,
        phases,
        actions: profile.writes().into_iter().map(action).collect(),
        deadline_ns: planned_ns + searched_ns + defaults.deadline_s * 1_000_000_000,
        memory: memory.filter(|_| !target.is_at_url()),
        ..Kv::default()
    }
}

#[cfg(test)]
#[path = "kv_tests.rs"]
mod tests;
