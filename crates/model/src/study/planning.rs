//! A study and a user's choices become a plan.

use super::choices::{Choices, Resolved};
use super::ramp::LatencyLimit;
use super::wire::{Profile, StopKind, Study, StudyPhase, StudyWorkload};
use super::{StudyError, ramp};
use crate::app_cache::{AppCache, DataSize, Fill};
use crate::load::Load;
use crate::memory::{MemoryLimit, PageCache};
use crate::plan::{Cell, Effort, Phase, Plan, PlannedTarget, Sessions, Stop, Workload};

impl Study {
    /// Lists everything that a run with these choices will do.
    pub fn plan(&self, choices: &Choices) -> Result<Plan, StudyError> {
        let resolved = Resolved::new(self, choices)?;
        let targets = self.planned_targets(choices, &resolved)?;
        let profiles: Vec<&Profile> =
            self.profiles.iter().filter(|p| resolved.profiles.contains(p.name.get_ref())).collect();
        let cells = profiles
            .iter()
            .flat_map(|profile| {
                let sizes = resolved.data_sizes(profile, choices.scale);
                sizes.into_iter().map(move |size| (*profile, size))
            })
            .flat_map(|(profile, size)| {
                let loads = match self.workload {
                    StudyWorkload::Ramp => ramp::loads(profile, &resolved, choices.seed),
                    StudyWorkload::Sessions | StudyWorkload::AppCache => loads(profile, &resolved),
                };
                loads.into_iter().map(move |load| (profile, size, load))
            })
            .flat_map(|(profile, size, load)| {
                targets.iter().map(move |t| (profile, size, load.clone(), t))
            })
            .map(|(profile, size, load, target)| self.cell(profile, size, load, target, &resolved))
            .collect();
        let plan = Plan {
            study: self.name.clone(),
            title: self.title.clone(),
            question: self.question.clone(),
            source: self.source.clone(),
            scale: choices.scale,
            profiles: profiles.iter().map(|p| p.name.get_ref().clone()).collect(),
            seed: choices.seed,
            effort: Effort {
                budget_ns: (resolved.size.budget_s * 1e9) as u64,
                blocks_min: resolved.size.blocks_min,
                blocks_max: resolved.size.blocks_max,
            },
            equivalence_zone: resolved.defaults.equivalence_zone,
            timeout_ns: resolved.defaults.timeout_ms * 1_000_000,
            cells,
            targets,
            claims: self.claims.iter().map(|c| c.get_ref().clone()).collect(),
            advice: self.advice.as_ref().map(|a| a.get_ref().clone()),
            search: None,
            limit_ns: resolved.defaults.limit.map(LatencyLimit::ns),
        };
        files_suit(&plan)?;
        Ok(plan)
    }

    fn cell(
        &self,
        profile: &Profile,
        data: Option<DataSize>,
        load: Load,
        target: &PlannedTarget,
        resolved: &Resolved,
    ) -> Cell {
        let size = &resolved.size;
        let phases = |operations: u64| {
            let phase = |p| phase(p, profile, operations, resolved);
            profile.phases.iter().map(phase).collect()
        };
        let workload = match self.workload {
            StudyWorkload::Sessions => {
                Workload::Sessions(sessions(profile, &load, resolved, phases(size.sessions)))
            }
            StudyWorkload::AppCache => {
                let phases = phases(size.ops);
                Workload::AppCache(app_cache(profile, data, &load, target, resolved, phases))
            }
            StudyWorkload::Ramp => Workload::Kv(ramp::workload(profile, &load, resolved)),
        };
        let suffix = if load.one_session() { "-one" } else { "" };
        let (target, clients) = (target.name.clone(), load.clients());
        let id = format!("{target}/{}/{clients}{suffix}", workload.profile());
        Cell { id, target, workload, load }
    }
}

/// Whether the files that are read suit every profile: one data set, and a list for each client
/// that follows one.
fn files_suit(plan: &Plan) -> Result<(), StudyError> {
    let Some(files) = plan.files() else { return Ok(()) };
    for (cell, cache) in plan.caches() {
        let (name, clients) = (cell.workload.study_profile(), cell.load.clients());
        if cache.sizes_of.is_some() {
            return Err(StudyError::Choice(format!(
                "--data-set `{}` holds one data set, but profile `{name}` measures several \
                 (expected another --set profile)",
                files.directory
            )));
        }
        if cache.as_original && files.lists == 0 {
            return Err(StudyError::Choice(format!(
                "--data-set `{}` holds no list of operations, which profile `{name}` follows \
                 (expected `ops-client_0.json` to `ops-client_{}.json` in it, or a profile that \
                 draws its operations, as in --set profile=weighted)",
                files.directory,
                clients.saturating_sub(1)
            )));
        }
        if cache.as_original && files.lists < clients {
            return Err(StudyError::Choice(format!(
                "--data-set `{}` has lists for {} clients (expected {clients} for profile \
                 `{name}`, up to `ops-client_{}.json`; --set clients={} uses what is there)",
                files.directory,
                files.lists,
                clients - 1,
                files.lists
            )));
        }
    }
    Ok(())
}

fn loads(profile: &Profile, resolved: &Resolved) -> Vec<Load> {
    let mut clients = resolved.defaults.clients.clone();
    clients.sort_unstable();
    clients.dedup();
    let own = clients.iter().map(|c| Load::closed(*c));
    let mut loads: Vec<Load> = own.collect();
    if let Some(most) = clients.last().filter(|c| profile.one_session && **c > 1) {
        loads.push(Load::Closed {
            clients: *most,
            one_session: true,
            pipeline: 1,
            stages: Vec::new(),
        });
    }
    loads
}

fn sessions(profile: &Profile, load: &Load, resolved: &Resolved, phases: Vec<Phase>) -> Sessions {
    let defaults = &resolved.defaults;
    let filled = match profile.stop {
        StopKind::Time => resolved.size.sessions.max(u64::from(load.clients())),
        StopKind::Count => 0,
    };
    Sessions {
        profile: profile.name.get_ref().clone(),
        layout: profile.layout,
        connections: profile.connections,
        names: profile.names,
        order: profile.order,
        generation: defaults.generation,
        filled,
        value_bytes: defaults.value_bytes,
        ttl_s: defaults.ttl_s,
        verify_one_in: defaults.verify_one_in,
        think_ns: (defaults.think_ms * 1e6) as u64,
        phases,
    }
}

fn app_cache(
    profile: &Profile,
    data: Option<DataSize>,
    load: &Load,
    target: &PlannedTarget,
    resolved: &Resolved,
    phases: Vec<Phase>,
) -> AppCache {
    let defaults = &resolved.defaults;
    let name = profile.name.get_ref();
    let DataSize { keys, tags } = data.unwrap_or_else(|| {
        let tags = resolved.files.as_ref().map_or(defaults.tags, |files| files.tags);
        DataSize { keys: resolved.size.keys, tags }
    });
    AppCache {
        profile: data.map_or_else(|| name.clone(), |data| format!("{name}/{data}")),
        sizes_of: data.map(|_| name.clone()),
        keys: keys.max(u64::from(load.clients())),
        tags,
        tags_of_record: (defaults.min_tags, defaults.max_tags),
        record_bytes: (defaults.min_rec_size, defaults.max_rec_size),
        write_chance: defaults.write_chance,
        clean_chance: defaults.clean_chance,
        as_original: profile.as_original,
        magento: defaults.magento,
        fill: target.backend.map_or(Fill::Save, |backend| defaults.fill.on(backend)),
        verify_one_in: defaults.verify_one_in,
        files: resolved.files.clone(),
        page_cache: profile.page_cache,
        memory_limit_bytes: defaults.memory_limit.map(MemoryLimit::bytes),
        phases,
    }
}

fn phase(phase: &StudyPhase, profile: &Profile, operations: u64, resolved: &Resolved) -> Phase {
    let size = &resolved.size;
    let (warmup_ns, stop) = match profile.stop {
        StopKind::Time => {
            let measured_ns = (size.measure_ms as f64 * phase.length * 1e6) as u64;
            let warmup_ms = match profile.page_cache {
                PageCache::Warm => size.warmup_ms,
                PageCache::Cold => 0,
            };
            (warmup_ms * 1_000_000, Stop::AfterNs(measured_ns.max(1)))
        }
        StopKind::Count => (0, Stop::Count(operations)),
    };
    let mix = phase.mix.get_ref().clone();
    Phase { name: phase.name.clone(), mix, warmup_ns, stop, control: None }
}

#[cfg(test)]
#[path = "planning_tests.rs"]
pub(super) mod tests;

#[cfg(test)]
#[path = "app_cache_tests.rs"]
mod app_cache_tests;
