//! Trait of workloads, and planning from a study and the user's choices.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::path::PathBuf;
use toml::Spanned;
use toml::de::DeTable;

use super::choices::Choices;
use super::set::{self, Key, list, number, put};
use super::targets::{DISK_LIMIT, Settings, Stores, check_cm_setting};
use super::tiers::TIER;
use super::wire::{Study, StudyScale};
use super::{Fault, StudyError, quoted_list};
use crate::app_cache::CM_PREFIX;
use crate::disk_limit::DiskLimit;
use crate::load::Load;
use crate::memory::MemoryLimit;
use crate::plan::{Cell, Effort, Places, Plan, PlannedTarget, Scale, Workload};
use crate::product::Product;

/// Keys of `--set` that every study has, except `profile`.
pub(super) const SHARED: &[Key<Study, StudyScale>] = &[
    Key("clients", |own, _, text| {
        put(&mut own.clients, list(text, &(1..=4096)), "1 to 4096, or several as in `1,8`")
    }),
    Key("verify_one_in", |own, _, text| number(&mut own.verify_one_in, text, 1..=1_000_000, "")),
    Key("equivalence_zone", |own, _, text| {
        number(&mut own.equivalence_zone, text, 0.001..=1.0, "")
    }),
    Key("timeout_ms", |own, _, text| number(&mut own.timeout_ms, text, 1..=3_600_000, "")),
    Key("warmup_ms", |_, scale, text| number(&mut scale.warmup_ms, text, 0..=3_600_000, "")),
    Key("measure_ms", |_, scale, text| number(&mut scale.measure_ms, text, 1..=86_400_000, "")),
    Key("blocks_min", |_, scale, text| number(&mut scale.blocks_min, text, 1..=10_000, "")),
    Key("blocks_max", |_, scale, text| number(&mut scale.blocks_max, text, 1..=10_000, "")),
    Key("budget_s", |_, scale, text| number(&mut scale.budget_s, text, 0.0..=604_800.0, "seconds")),
];

/// Description of a workload, implemented by its table `[defaults]`.
pub(super) trait Keys: DeserializeOwned + 'static {
    /// The table `size` of a scale.
    type Size: DeserializeOwned + 'static;
    /// A table of `[[profiles]]`.
    type Profile: DeserializeOwned;
    /// Keys of `--set`: those of both tables, and keys that only `--set` has.
    const SET: &'static [Key<Self, Self::Size>];
    /// Required kind of store.
    const STORES: Stores;
    /// Operations that claims can name.
    const OPERATIONS: &'static [&'static str];
    /// True if its load is raised, as claims about ramps require.
    const IS_RAISED: bool = false;

    /// Finds the first fault in a file other than single values out of range.
    fn fault(own: &WorkloadTables<Self>) -> Option<Fault>;

    /// Describes values that contradict each other, in a file or after `--set`.
    fn contradiction(&self) -> Option<String> {
        None
    }

    /// Plans the cells: profile by profile, load by load, on each target. Fails if choices
    /// contradict each other or have no effect.
    fn cells(run: &Run<'_, Self>) -> Result<Vec<Cell>, StudyError>;

    /// Names of the targets that a profile measures; `None` for all.
    fn targets(_: &Self::Profile) -> Option<&Spanned<Vec<String>>> {
        None
    }

    /// Memory limit, of which settings of servers can be a share.
    fn memory(_: &Self::Size) -> Option<MemoryLimit> {
        None
    }

    /// Directory for swap, if the user chose one.
    fn swap_dir(&self) -> Option<PathBuf> {
        None
    }

    /// Latency limit for which a highest rate is reported, nanoseconds.
    fn limit_ns(&self) -> Option<u64> {
        None
    }
}

/// The parts of a study file that are specific to its workload.
#[derive(Deserialize)]
#[serde(bound = "K: Keys")]
pub(super) struct WorkloadTables<K: Keys> {
    pub(super) defaults: K,
    pub(super) scales: BTreeMap<Scale, WorkloadScale<K::Size>>,
    pub(super) profiles: Vec<K::Profile>,
}

/// The part of a scale that is specific to the workload.
#[derive(Deserialize)]
pub(super) struct WorkloadScale<S> {
    pub(super) size: S,
}

impl<K: Keys> WorkloadTables<K> {
    pub(super) fn fault(&mut self, document: &DeTable<'_>) -> Option<Fault> {
        let out_of_range = self.scales.iter_mut().find_map(|(scale, own)| {
            let paths = [&["defaults"][..], &["scales", scale.name(), "size"]];
            set::fault(K::SET, (&mut self.defaults, &mut own.size), document, paths)
        });
        let contradiction = || {
            let at = document.get("defaults").map_or(0, |defaults| defaults.span().start);
            Some((at, self.defaults.contradiction()?))
        };
        out_of_range.or_else(contradiction).or_else(|| K::fault(self))
    }
}

/// A study with the user's choices applied.
pub(super) struct Run<'a, K: Keys> {
    pub(super) choices: &'a Choices,
    /// The study with its values after `--set` and `--timeout`.
    pub(super) study: Study,
    /// The chosen scale, after `--set` and `--budget`.
    pub(super) scale: StudyScale,
    /// Values of the workload, after `--set`.
    pub(super) defaults: K,
    /// Sizes of the chosen scale.
    pub(super) size: K::Size,
    /// All profiles, as parsed by the workload.
    pub(super) profiles: Vec<K::Profile>,
    pub(super) settings: Settings,
    pub(super) targets: Vec<PlannedTarget>,
}

impl<'a, K: Keys> Run<'a, K> {
    pub(super) fn new(study: &Study, choices: &'a Choices) -> Result<Self, StudyError> {
        let WorkloadTables { defaults, mut scales, profiles } = study.own()?;
        let scale = study.scales.get(&choices.scale).zip(scales.remove(&choices.scale));
        let Some((scale, WorkloadScale { size })) = scale else {
            let known = quoted_list(study.scales.keys().map(|s| s.name()));
            let (name, scale) = (&study.name, choices.scale.name());
            return Err(StudyError::Choice(format!(
                "study `{name}` has no scale `{scale}` (known: {known})"
            )));
        };
        let (mut study, scale, settings) = (study.clone(), scale.clone(), Settings::default());
        if let Some(own) = &scale.profile {
            study.profile = own.clone();
        }
        let targets = Vec::new();
        let mut run = Self { choices, study, scale, defaults, size, profiles, settings, targets };
        for (key, value) in &choices.sets {
            run.set(key, value)?;
        }
        if choices.files.is_some() {
            run.study.takes_files()?;
        }
        if let Some(budget_s) = choices.budget_s {
            run.scale.budget_s = budget_s;
            // An explicit budget applies even if fewer blocks fit than the scale requires.
            if !run.is_set("blocks_min") {
                run.scale.blocks_min = 1;
            }
        }
        run.study.timeout_ms = choices.timeout_ms.unwrap_or(run.study.timeout_ms);
        run.resolve_block_limits()?;
        let listed: Vec<&str> = run
            .chosen()
            .filter_map(|profile| K::targets(profile))
            .flat_map(|listed| listed.get_ref().iter().map(String::as_str))
            .collect();
        let stores = (K::STORES, listed.as_slice());
        run.targets = run.study.planned_targets(choices, &run.settings, stores)?;
        for target in &mut run.targets {
            let limit = target.tier.memory.or(K::memory(&run.size));
            target.resolve_memory(limit).map_err(StudyError::Choice)?;
        }
        Ok(run)
    }

    /// True if the user set the key.
    pub(super) fn is_set(&self, key: &str) -> bool {
        self.choices.sets.iter().any(|(k, _)| k == key)
    }

    /// Numbers of clients, ascending, each once: those that the user set, else the profile's
    /// `own`, else the study's.
    pub(super) fn clients(&self, own: &[u32]) -> Vec<u32> {
        let is_own = !own.is_empty() && !self.is_set("clients");
        let mut clients = if is_own { own.to_vec() } else { self.study.clients.clone() };
        clients.sort_unstable();
        clients.dedup();
        clients
    }

    /// The profiles that run.
    pub(super) fn chosen(&self) -> impl Iterator<Item = &K::Profile> {
        let all = self.study.profiles.iter().zip(&self.profiles);
        all.filter(|(profile, _)| self.study.runs(profile)).map(|(_, own)| own)
    }

    /// A workload under a load, on each target.
    pub(super) fn on_each_target(
        &self,
        load: &Load,
        workload: impl Fn(&PlannedTarget) -> Workload,
    ) -> impl Iterator<Item = Cell> {
        on_targets(self.targets.iter(), load, workload)
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), StudyError> {
        if key == "profile" {
            *self.study.profile.get_mut() = profiles(&self.study, value)?;
            return Ok(());
        }
        let shared = set::set(SHARED, (&mut self.study, &mut self.scale), (key, value));
        let values = (&mut self.defaults, &mut self.size);
        match shared.or_else(|| set::set(K::SET, values, (key, value))) {
            Some(set) => set.map_err(|expected| set::bad(key, value, &expected)),
            None => self.server_setting(key, value),
        }
    }

    /// Raises or lowers the scale's own limit to the conflicting one that the user set.
    fn resolve_block_limits(&mut self) -> Result<(), StudyError> {
        let (min, max) = (self.scale.blocks_min, self.scale.blocks_max);
        match (self.is_set("blocks_min"), self.is_set("blocks_max")) {
            _ if min <= max => {}
            (true, true) => {
                let problem = format!("--set blocks_min=`{min}` is more than blocks_max=`{max}`");
                return Err(StudyError::Choice(problem));
            }
            (false, true) => self.scale.blocks_min = max,
            (true | false, false) => self.scale.blocks_max = min,
        }
        Ok(())
    }

    fn server_setting(&mut self, key: &str, value: &str) -> Result<(), StudyError> {
        if K::STORES == Stores::Caches && key.starts_with(CM_PREFIX) {
            check_cm_setting(key, value)?;
            self.settings.cm.insert(key.into(), value.into());
            return Ok(());
        }
        if let Some(of) = key.strip_prefix(DISK_LIMIT).and_then(|rest| rest.strip_prefix('.')) {
            let limit = DiskLimit::parse(value);
            let limit = limit.ok_or_else(|| set::bad(key, value, DiskLimit::EXPECTED))?;
            self.settings.disks.insert(of.into(), limit);
            return Ok(());
        }
        if let Some(of) = key.strip_prefix(TIER).and_then(|rest| rest.strip_prefix('.')) {
            let tier = self.study.chosen_tier(key, value)?;
            self.settings.tiers.insert(of.into(), tier);
            return Ok(());
        }
        let product = key.split_once('.').and_then(|(product, name)| {
            let product = Product::ALL.into_iter().find(|p| p.name() == product)?;
            let has_server = K::STORES.servers().any(|server| server == product);
            (has_server && !name.is_empty()).then_some((product, name))
        });
        let Some((product, name)) = product else { return Err(self.unknown(key)) };
        self.settings.servers.entry(product).or_default().insert(name.into(), value.into());
        Ok(())
    }

    fn unknown(&self, key: &str) -> StudyError {
        let mut settings: Vec<String> =
            K::STORES.servers().map(|product| format!("{}.NAME", product.name())).collect();
        if K::STORES == Stores::Caches {
            settings.push(format!("{CM_PREFIX}NAME"));
        }
        settings.push(format!("{DISK_LIMIT}.LABEL"));
        settings.push(format!("{TIER}.TARGET"));
        let own = K::SET.iter().map(|key| key.0);
        let known = ["profile"].into_iter().chain(own).chain(SHARED.iter().map(|key| key.0));
        StudyError::Choice(format!(
            "unknown key `{key}` in --set for study `{}` (known: {}, and {} for settings of \
             servers, software and disks)",
            self.study.name,
            quoted_list(known),
            quoted_list(settings.iter().map(String::as_str))
        ))
    }
}

/// A workload under a load, on some targets.
pub(super) fn on_targets<'t>(
    targets: impl Iterator<Item = &'t PlannedTarget>,
    load: &Load,
    workload: impl Fn(&PlannedTarget) -> Workload,
) -> impl Iterator<Item = Cell> {
    let suffix = if load.one_session { "-one" } else { "" };
    targets.map(move |target| {
        let (workload, load, target) = (workload(target), load.clone(), target.name.clone());
        let id = format!("{target}/{}/{}{suffix}", workload.profile(), load.clients);
        Cell { id, target, workload, load }
    })
}

fn profiles(study: &Study, value: &str) -> Result<Vec<String>, StudyError> {
    if value == "all" {
        return Ok(study.profile_names().map(String::from).collect());
    }
    let mut chosen: Vec<String> = Vec::new();
    for name in value.split(',') {
        if !study.profile_names().any(|p| p == name) {
            let known = quoted_list(study.profile_names());
            return Err(StudyError::Choice(format!(
                "unknown profile `{name}` in --set profile (known: {known}; several with commas, \
                 or `all`)"
            )));
        }
        if !chosen.iter().any(|c| c == name) {
            chosen.push(name.into());
        }
    }
    Ok(chosen)
}

/// The targets that have cells. Errors: the user named one that has none.
fn measured<K: Keys>(
    targets: Vec<PlannedTarget>,
    cells: &[Cell],
    (study, profiles): (&Study, &[K::Profile]),
) -> Result<Vec<PlannedTarget>, StudyError> {
    let has_cells = |target: &PlannedTarget| cells.iter().any(|cell| cell.target == target.name);
    if let Some(unused) = targets.iter().find(|target| target.named && !has_cells(target)) {
        let lists = |own: &K::Profile| {
            K::targets(own).is_some_and(|listed| listed.get_ref().contains(&unused.name))
        };
        let all = study.profiles.iter().zip(profiles);
        let able: Vec<&str> = all
            .filter(|(_, own)| lists(own))
            .map(|(profile, _)| &**profile.name.get_ref())
            .collect();
        let expected = match &able[..] {
            [] => "another `--set profile=…`".into(),
            able => format!("`--set profile=…` with {}", quoted_list(able.iter().copied())),
        };
        return Err(StudyError::Choice(format!(
            "target `{}` is measured by none of the chosen profiles (expected {expected}, or no \
             such target)",
            unused.name
        )));
    }
    Ok(targets.into_iter().filter(has_cells).collect())
}

/// Errors: cells need a command that interrupts service, or have no use for it.
fn check_fault_command(is_given: bool, study: &str, cells: &[Cell]) -> Result<(), StudyError> {
    let mut faults = cells.iter().filter_map(|cell| Some((cell, cell.workload.by_command()?)));
    Err(StudyError::Choice(match (faults.next(), is_given) {
        (Some((cell, act)), false) => format!(
            "cachedyno does not interrupt the server of target `{}`, which it did not start \
             (expected --fault-command COMMAND, which causes the fault `{}` there; or a private \
             server: leave out the URL)",
            cell.target,
            act.fault_name()
        ),
        (None, true) => format!(
            "--fault-command has no effect: study `{study}` interrupts no server at a URL \
             (expected the study `failover` with --target NAME=URL, or no --fault-command)"
        ),
        _ => return Ok(()),
    }))
}

impl Study {
    pub(super) fn planned<K: Keys>(&self, choices: &Choices) -> Result<Plan, StudyError> {
        let run = Run::<K>::new(self, choices)?;
        let cells = K::cells(&run)?;
        if let Some(problem) = run.defaults.contradiction() {
            return Err(StudyError::Choice(format!("--set: {problem}")));
        }
        let Run { study, scale, defaults, targets, profiles, .. } = run;
        let targets = measured::<K>(targets, &cells, (&study, &profiles))?;
        check_fault_command(choices.has_fault_command, &study.name, &cells)?;
        let profiles = study.profiles.iter().filter(|profile| study.runs(profile));
        Ok(Plan {
            scale: choices.scale,
            profiles: profiles.map(|p| p.name.get_ref().clone()).collect(),
            seed: choices.seed,
            effort: Effort {
                budget_ns: (scale.budget_s * 1e9) as u64,
                blocks_min: scale.blocks_min,
                blocks_max: scale.blocks_max,
            },
            equivalence_zone: study.equivalence_zone,
            timeout_ns: study.timeout_ms * 1_000_000,
            stall_ns: choices
                .stall_ns
                .unwrap_or_else(|| Plan::stall_ns_by_default(study.timeout_ms * 1_000_000)),
            cells,
            targets,
            tables: study.tables.into_iter().map(Spanned::into_inner).collect(),
            claims: study.claims.into_iter().map(Spanned::into_inner).collect(),
            advice: study.advice.map(Spanned::into_inner),
            requirements: Vec::new(),
            limit_ns: defaults.limit_ns(),
            places: Places::default(),
            swap_dir: defaults.swap_dir(),
            study: study.name,
            title: study.title,
            question: study.question,
            source: study.source,
        })
    }
}

#[cfg(test)]
#[path = "planning_tests.rs"]
pub(super) mod tests;
