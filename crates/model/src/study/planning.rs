//! A study and a user's choices become a plan.

use super::choices::{Choices, Resolved};
use super::wire::{Profile, StopKind, Study, StudyPhase};
use super::{StudyError, quoted_list};
use crate::plan::{
    Cell, Effort, Load, Phase, Plan, PlannedTarget, Product, Sessions, Stop, Workload,
};
use crate::target::NO_SESSIONS;

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
                let loads = loads(profile, &resolved);
                loads.into_iter().map(move |load| (*profile, load))
            })
            .flat_map(|(profile, load)| targets.iter().map(move |t| (profile, load.clone(), t)))
            .map(|(profile, load, target)| cell(profile, load, target, &resolved))
            .collect();
        Ok(Plan {
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
                half_width_goal: resolved.defaults.half_width_goal,
            },
            equivalence_zone: resolved.defaults.equivalence_zone,
            timeout_ns: resolved.defaults.timeout_ms * 1_000_000,
            cells,
            targets,
            claims: self.claims.iter().map(|c| c.get_ref().clone()).collect(),
            advice: self.advice.as_ref().map(|a| a.get_ref().clone()),
        })
    }

    fn planned_targets(
        &self,
        choices: &Choices,
        resolved: &Resolved,
    ) -> Result<Vec<PlannedTarget>, StudyError> {
        let mut targets: Vec<PlannedTarget> = Vec::new();
        if choices.targets.is_empty() {
            targets.extend(self.targets.iter().map(|t| {
                let settings = settings(self, t.name.get_ref(), t.product, resolved);
                planned(t.name.get_ref(), t.product, settings)
            }));
        }
        for choice in &choices.targets {
            if targets.iter().any(|t| t.name == choice.name) {
                return Err(StudyError::Choice(format!(
                    "target `{}` is given twice (give each a name of its own: --target NAME=URL)",
                    choice.name
                )));
            }
            let product = match &choice.endpoint {
                Some(endpoint) => endpoint.product(),
                None => self.product_of(&choice.name)?,
            };
            let unfit = match &choice.endpoint {
                Some(endpoint) => endpoint.no_sessions(),
                None => (!product.keeps_sessions()).then_some(NO_SESSIONS),
            };
            if let Some(why) = unfit {
                return Err(StudyError::Choice(format!("target `{}`: {why}", choice.name)));
            }
            let settings = match choice.endpoint {
                Some(_) => std::collections::BTreeMap::new(),
                None => settings(self, &choice.name, product, resolved),
            };
            targets.push(PlannedTarget {
                address: choice.endpoint.as_ref().map(ToString::to_string),
                named: true,
                ..planned(&choice.name, product, settings)
            });
        }
        if choices.control {
            targets.push(self.control_target(&targets)?);
        }
        Ok(targets)
    }

    fn product_of(&self, name: &str) -> Result<Product, StudyError> {
        let of_study = self.targets.iter().find(|t| t.name.get_ref() == name).map(|t| t.product);
        let of_name = Product::ALL.into_iter().find(|p| p.name() == name);
        of_study.or(of_name).ok_or_else(|| {
            let known = quoted_list(self.target_names());
            StudyError::Choice(format!(
                "unknown target `{name}` (known: {known}; give another store as \
                 --target {name}=URL)"
            ))
        })
    }

    fn control_target(&self, targets: &[PlannedTarget]) -> Result<PlannedTarget, StudyError> {
        let wanted = self.control.get_ref();
        let original = targets.iter().find(|t| &t.name == wanted).or_else(|| targets.first());
        let Some(original) = original else {
            return Err(StudyError::Choice("--aa needs a target to measure twice".into()));
        };
        Ok(PlannedTarget {
            name: format!("{}-again", original.name),
            control_of: Some(original.name.clone()),
            ..original.clone()
        })
    }
}

fn planned(
    name: &str,
    product: Product,
    settings: std::collections::BTreeMap<String, String>,
) -> PlannedTarget {
    PlannedTarget {
        name: name.into(),
        product,
        address: None,
        settings,
        control_of: None,
        named: false,
    }
}

/// The study's settings of a target, those of `--set PRODUCT.NAME` put over them.
fn settings(
    study: &Study,
    name: &str,
    product: Product,
    resolved: &Resolved,
) -> std::collections::BTreeMap<String, String> {
    let same_name = study.targets.iter().find(|t| t.name.get_ref() == name);
    let same_product = study.targets.iter().find(|t| t.product == product);
    let mut settings = same_name.or(same_product).map(|t| t.settings.clone()).unwrap_or_default();
    settings.extend(resolved.settings.get(&product).cloned().unwrap_or_default());
    settings
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

fn cell(profile: &Profile, load: Load, target: &PlannedTarget, resolved: &Resolved) -> Cell {
    let defaults = &resolved.defaults;
    let name = profile.name.get_ref();
    let suffix = if load.one_session() { "-one" } else { "" };
    let filled = match profile.stop {
        StopKind::Time => resolved.size.sessions.max(u64::from(load.clients())),
        StopKind::Count => 0,
    };
    Cell {
        id: format!("{}/{name}/{}{suffix}", target.name, load.clients()),
        target: target.name.clone(),
        workload: Workload::Sessions(Sessions {
            profile: name.clone(),
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
            phases: profile.phases.iter().map(|p| phase(p, profile.stop, resolved)).collect(),
        }),
        load,
    }
}

fn phase(phase: &StudyPhase, stop: StopKind, resolved: &Resolved) -> Phase {
    let size = &resolved.size;
    let (warmup_ns, stop) = match stop {
        StopKind::Time => {
            let measured_ns = (size.measure_ms as f64 * phase.length * 1e6) as u64;
            (size.warmup_ms * 1_000_000, Stop::AfterNs(measured_ns.max(1)))
        }
        StopKind::Count => (0, Stop::Count(size.sessions)),
    };
    Phase { name: phase.name.clone(), mix: phase.mix.get_ref().clone(), warmup_ns, stop }
}

#[cfg(test)]
#[path = "planning_tests.rs"]
mod tests;
