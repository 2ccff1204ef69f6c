//! The workload `app-cache`: the application cache of a shop, records with tags.

mod sizes;
mod tables;

use std::ops::RangeInclusive;

pub(super) use self::tables::Defaults;
use self::tables::{COUNT, Profile, RECORD, Size};
use super::phases::StudyPhase;
use super::planning::{Keys, Run, WorkloadTables};
use super::set::{Key, named, number, put};
use super::targets::Stores;
use super::wire::{Study, StudyWorkload};
use super::{Choices, Fault, StudyError};
use crate::app_cache::{AppCache, Backend, DataFiles, DataSize, Fill, Magento};
use crate::load::Load;
use crate::memory::{MemoryLimit, MemoryPlan, PageCache};
use crate::phase::Phase;
use crate::plan::{Cell, PlannedTarget, Workload};

const CHANCE: RangeInclusive<u64> = 1..=1_000_000;

impl Keys for Defaults {
    type Size = Size;
    type Profile = Profile;
    const SET: &'static [Key<Self, Size>] = &[
        Key("keys", |_, size, text| number(&mut size.keys, text, COUNT, "")),
        Key("tags", |own, _, text| number(&mut own.tags, text, COUNT, "")),
        Key("sizes", |own, _, text| {
            put(&mut own.sizes, sizes::parse(text).map(Some), sizes::EXPECTED)
        }),
        Key("min_tags", |own, _, text| number(&mut own.min_tags, text, 0..=1000, "")),
        Key("max_tags", |own, _, text| number(&mut own.max_tags, text, 0..=1000, "")),
        Key("min_rec_size", |own, _, text| number(&mut own.min_rec_size, text, RECORD, "bytes")),
        Key("max_rec_size", |own, _, text| number(&mut own.max_rec_size, text, RECORD, "bytes")),
        Key("ops", |_, size, text| number(&mut size.ops, text, COUNT, "")),
        Key("write_chance", |own, _, text| number(&mut own.write_chance, text, CHANCE, "")),
        Key("clean_chance", |own, _, text| number(&mut own.clean_chance, text, CHANCE, "")),
        Key("magento", |own, _, text| {
            put(&mut own.magento, Magento::parse(text), "`on`, `off`, `1` or `2`")
        }),
        Key("page_reads", |own, _, text| number(&mut own.page_reads, text, 1..=10_000, "")),
        Key("page_writes", |own, _, text| number(&mut own.page_writes, text, 0..=10_000, "")),
        Key("fill", |own, _, text| put(&mut own.fill, named(text), "`save` or `fast`")),
        Key("memory_limit", |own, _, text| {
            put(&mut own.memory_limit, MemoryLimit::parse(text).map(Some), MemoryLimit::EXPECTED)
        }),
    ];
    const STORES: Stores = Stores::Caches;
    const OPERATIONS: &'static [&'static str] = &["read", "write", "clean", "page", "purchase"];

    fn fault(own: &WorkloadTables<Self>) -> Option<Fault> {
        own.profiles.iter().find_map(|profile| {
            let fault = |phase: &StudyPhase| phase.fault(Self::OPERATIONS, profile.as_original);
            profile.phases.iter().find_map(fault).or_else(|| sizes::fault_in_file(profile, own))
        })
    }

    fn contradiction(&self) -> Option<String> {
        let Self { tags, min_tags, max_tags, min_rec_size, max_rec_size, .. } = self;
        if min_tags > max_tags || max_tags > tags {
            return Some(format!(
                "min_tags `{min_tags}`, max_tags `{max_tags}` and tags `{tags}` do not fit \
                 (expected min_tags <= max_tags <= tags)"
            ));
        }
        (min_rec_size > max_rec_size).then(|| {
            format!(
                "min_rec_size `{min_rec_size}` and max_rec_size `{max_rec_size}` do not fit \
                 (expected min_rec_size <= max_rec_size)"
            )
        })
    }

    fn cells(run: &Run<'_, Self>) -> Result<Vec<Cell>, StudyError> {
        reject_conflicts_with_files(run.choices)?;
        sizes::check(run)?;
        check_layers(run)?;
        let mut cells = Vec::new();
        for profile in run.chosen() {
            for data in sizes::of(profile, run) {
                for load in run.clients(&profile.clients).into_iter().map(Load::closed) {
                    let cache = app_cache(profile, data, &load, run);
                    check_files(&cache, load.clients)?;
                    cells.extend(run.on_each_target(&load, |target| {
                        let fill = target.backend.map_or(Fill::Save, |b| cache.fill.on(b));
                        let magento = layer(target, run);
                        Workload::AppCache(AppCache { magento, fill, ..cache.clone() })
                    }));
                }
            }
        }
        Ok(cells)
    }
}

/// Magento's layer above a target: its own, or that of the study.
fn layer(target: &PlannedTarget, run: &Run<'_, Defaults>) -> Magento {
    let name = target.control_of.as_ref().unwrap_or(&target.name);
    run.study.target(name).and_then(|t| t.magento).unwrap_or(run.defaults.magento)
}

/// Rejects backends that cannot do what the layer above them asks for.
fn check_layers(run: &Run<'_, Defaults>) -> Result<(), StudyError> {
    let unfit = run.targets.iter().find(|target| {
        let intersects = target.backend.is_none_or(Backend::intersects_tags);
        layer(target, run) == Magento::Two && !intersects
    });
    let Some(target) = unfit else { return Ok(()) };
    Err(StudyError::Choice(format!(
        "target `{}` cannot be measured with `magento` 2: Magento 2 cleans the records that carry \
         all of several tags, and its software cannot (expected another target, or \
         --set magento=off)",
        target.name
    )))
}

/// The workload of a profile under a load, on a backend that supports every fill.
fn app_cache(
    profile: &Profile,
    data: Option<DataSize>,
    load: &Load,
    run: &Run<'_, Defaults>,
) -> AppCache {
    let Run { defaults, size, scale, study, choices, .. } = run;
    let name = profile.name.get_ref();
    let files = choices.files.as_ref();
    let of_files = |files: &DataFiles| DataSize { keys: files.keys, tags: files.tags };
    let own_keys = profile.keys.get(&choices.scale).filter(|_| !run.is_set("keys"));
    let keys = own_keys.map_or(size.keys, |keys| *keys.get_ref());
    let drawn = DataSize { keys, tags: defaults.tags };
    let DataSize { keys, tags } = data.unwrap_or_else(|| files.map_or(drawn, of_files));
    let ops = files.map_or(0, |files| files.ops);
    let ops = if ops > 0 { ops } else { size.ops };
    let phase = |phase: &StudyPhase| {
        let planned = phase.planned(profile.stop, ops, scale);
        let is_warm = profile.page_cache == PageCache::Warm;
        Phase { warmup_ns: if is_warm { planned.warmup_ns } else { 0 }, ..planned }
    };
    let own_limit = profile.memory_limit.get(&run.choices.scale).map(|limit| *limit.get_ref());
    let limit = defaults.memory_limit.or(own_limit);
    let sets_bytes = run.is_set("min_rec_size") || run.is_set("max_rec_size");
    let own_bytes = profile.record_bytes.as_ref().filter(|_| !sets_bytes).map(|own| *own.get_ref());
    AppCache {
        profile: data.map_or_else(|| name.clone(), |data| format!("{name}/{data}")),
        sizes_of: data.map(|_| name.clone()),
        keys: keys.max(u64::from(load.clients)),
        tags,
        tags_of_record: (defaults.min_tags, defaults.max_tags),
        record_bytes: own_bytes.unwrap_or((defaults.min_rec_size, defaults.max_rec_size)),
        write_chance: defaults.write_chance,
        clean_chance: defaults.clean_chance,
        as_original: profile.as_original,
        magento: defaults.magento,
        page_reads: defaults.page_reads,
        page_writes: defaults.page_writes,
        fill: profile.fill.filter(|_| !run.is_set("fill")).unwrap_or(defaults.fill),
        verify_one_in: study.verify_one_in,
        files: files.cloned(),
        page_cache: profile.page_cache,
        memory: limit.map(MemoryPlan::limit),
        phases: profile.phases.iter().map(phase).collect(),
    }
}

/// True if the files of `--data-set` determine the value of this `--set` key.
pub fn determined_by_files(key: &str) -> bool {
    let data = ["keys", "tags", "min_tags", "max_tags", "min_rec_size", "max_rec_size"];
    data.contains(&key) || ["ops", "write_chance", "clean_chance"].contains(&key)
}

impl Study {
    /// Fails if the study does not use the files of `--data-set`.
    pub fn takes_files(&self) -> Result<(), StudyError> {
        let problem = "--data-set is only for studies of application caches";
        let wrong = || StudyError::Choice(format!("{problem} (study `{}` is not one)", self.name));
        (self.workload == StudyWorkload::AppCache).then_some(()).ok_or_else(wrong)
    }
}

/// Rejects `--set` keys whose values the files of `--data-set` determine.
fn reject_conflicts_with_files(choices: &Choices) -> Result<(), StudyError> {
    let set = choices.sets.iter().find(|(key, _)| determined_by_files(key));
    let (Some(files), Some((key, value))) = (&choices.files, set) else { return Ok(()) };
    Err(StudyError::Choice(format!(
        "--set {key}=`{value}` conflicts with --data-set `{}`, whose files determine it (leave out \
         one of the two; `cachedyno data-set` writes files of other sizes)",
        files.directory
    )))
}

/// Rejects files of `--data-set` that do not fit the profile: it must measure one data set, and
/// clients that follow lists need one list each.
fn check_files(cache: &AppCache, clients: u32) -> Result<(), StudyError> {
    let Some(files) = &cache.files else { return Ok(()) };
    let name = cache.sizes_of.as_ref().unwrap_or(&cache.profile);
    let (directory, lists) = (&files.directory, files.lists);
    let problem = if cache.sizes_of.is_some() {
        format!(
            "contains one data set, but profile `{name}` measures several (choose another profile \
             with --set profile=NAME)"
        )
    } else if cache.as_original && lists == 0 {
        format!(
            "contains no lists of operations, which profile `{name}` needs (expected \
             `ops-client_0.json` to `ops-client_{}.json` in it, or a profile with random \
             operations, as in --set profile=weighted)",
            clients.saturating_sub(1)
        )
    } else if cache.as_original && lists < clients {
        format!(
            "has lists for {lists} clients (expected {clients} for profile `{name}`, up to \
             `ops-client_{}.json`; or use --set clients={lists})",
            clients - 1
        )
    } else {
        return Ok(());
    };
    Err(StudyError::Choice(format!("--data-set `{directory}` {problem}")))
}

#[cfg(test)]
#[path = "app_cache_tests.rs"]
mod tests;
