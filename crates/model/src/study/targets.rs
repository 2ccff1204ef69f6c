//! The stores of a run: those of the study, or those that the user chose.

use std::collections::BTreeMap;

use super::choices::{Choices, Resolved, TargetChoice, check_cm_setting};
use super::wire::{Study, StudyTarget, StudyWorkload};
use super::{StudyError, quoted_list};
use crate::app_cache::{Backend, CM_PREFIX};
use crate::plan::{PlannedTarget, Product};
use crate::program::Program;
use crate::target::{Endpoint, NO_SESSIONS};

impl Study {
    pub(super) fn planned_targets(
        &self,
        choices: &Choices,
        resolved: &Resolved,
    ) -> Result<Vec<PlannedTarget>, StudyError> {
        let mut targets: Vec<PlannedTarget> = Vec::new();
        if choices.targets.is_empty() {
            for own in self.targets.iter().filter(|t| !t.on_request) {
                let server = (own.product(), own.program);
                let target = planned(own.name.get_ref(), server, own.backend);
                let settings = self.settings(&target, resolved)?;
                targets.push(PlannedTarget { settings, ..target });
            }
        }
        for choice in &choices.targets {
            if targets.iter().any(|t| t.name == choice.name) {
                return Err(StudyError::Choice(format!(
                    "target `{}` is given twice (give each a name of its own: --target NAME=URL)",
                    choice.name
                )));
            }
            if let (Some(limit), Some(endpoint)) =
                (resolved.defaults.memory_limit, &choice.endpoint)
                && endpoint.product() != Product::Files
            {
                return Err(StudyError::Choice(format!(
                    "memory_limit of {limit} cannot be set for target `{}`: the server at its URL \
                     is not ours to limit (leave memory_limit out, or the URL: a private server is \
                     started)",
                    choice.name
                )));
            }
            let target = match self.workload {
                StudyWorkload::Sessions => self.chosen_store(choice)?,
                StudyWorkload::AppCache => self.chosen_cache(choice)?,
                StudyWorkload::Ramp => self.chosen_server(choice)?,
            };
            let mut settings = self.settings(&target, resolved)?;
            if choice.endpoint.is_some() {
                settings.retain(|key, _| key.starts_with(CM_PREFIX));
            }
            let address = choice.endpoint.as_ref().map(ToString::to_string);
            targets.push(PlannedTarget { address, named: true, settings, ..target });
        }
        settings_used(&targets, resolved)?;
        if choices.control {
            targets.push(self.control_target(&targets)?);
        }
        Ok(targets)
    }

    /// A store of sessions.
    fn chosen_store(&self, choice: &TargetChoice) -> Result<PlannedTarget, StudyError> {
        let server = self.server_of(choice)?;
        let unfit = match &choice.endpoint {
            Some(endpoint) => endpoint.no_sessions(),
            None => (!server.0.keeps_sessions()).then_some(NO_SESSIONS),
        };
        match unfit {
            Some(why) => Err(StudyError::Choice(format!("target `{}`: {why}", choice.name))),
            None => Ok(planned(&choice.name, server, None)),
        }
    }

    /// A server of keys and values.
    fn chosen_server(&self, choice: &TargetChoice) -> Result<PlannedTarget, StudyError> {
        let name = &choice.name;
        let (product, program) = self.server_of(choice)?;
        if product.keeps_keys() {
            return Ok(planned(name, (product, program), None));
        }
        Err(StudyError::Choice(format!(
            "target `{name}`: {} keeps no values by key here (expected redis or memcached, or a \
             URL of a server that speaks as one of them)",
            product.name()
        )))
    }

    /// The product at a URL; else what is started: the study's target of that name goes first.
    fn server_of(&self, choice: &TargetChoice) -> Result<(Product, Option<Program>), StudyError> {
        let name = &choice.name;
        let of_study = self.target(name).filter(|_| choice.endpoint.is_none());
        let of_study = of_study.map(|t| (t.product(), t.program));
        of_study.or_else(|| choice.server()).ok_or_else(|| {
            let known = quoted_list(self.target_names());
            StudyError::Choice(format!(
                "unknown target `{name}` (known: {known}; give another store as \
                 --target {name}=URL)"
            ))
        })
    }

    /// A backend of an application cache: its name says whose layout it is, also at a URL.
    fn chosen_cache(&self, choice: &TargetChoice) -> Result<PlannedTarget, StudyError> {
        let name = &choice.name;
        let of_study = self.target(name).and_then(|t| t.backend);
        let Some(backend) = of_study.or_else(|| Backend::of_name(name)) else {
            let own = self.target_names().filter(|n| Backend::of_name(n).is_none());
            let known = quoted_list(own.chain(Backend::ALL.map(Backend::name)));
            return Err(StudyError::Choice(format!(
                "unknown target `{name}` (known: {known}; a store of yours needs one of these \
                 names as well: --target cm-redis=URL)"
            )));
        };
        let unfit = choice.endpoint.as_ref().and_then(|e| unfit_for(backend, e));
        match unfit {
            Some(why) => Err(StudyError::Choice(format!("target `{name}`: {why}"))),
            None => Ok(planned(name, (first_product(backend), None), Some(backend))),
        }
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

    /// The study's settings of a target, those of `--set PRODUCT.NAME` and `--set cm.NAME` put over
    /// them.
    fn settings(
        &self,
        target: &PlannedTarget,
        resolved: &Resolved,
    ) -> Result<BTreeMap<String, String>, StudyError> {
        let same_kind = |t: &&StudyTarget| match (t.backend, target.backend) {
            (Some(own), Some(backend)) => own.products() == backend.products(),
            _ => t.product() == target.product,
        };
        let found = self.target(&target.name).or_else(|| self.targets.iter().find(same_kind));
        let mut settings = found.map(|t| t.settings.clone()).unwrap_or_default();
        for product in target.products() {
            let set = resolved.settings.get(product).into_iter().flatten();
            settings.extend(set.map(|(name, value)| match target.backend {
                Some(_) => (format!("{}.{name}", product.name()), value.clone()),
                None => (name.clone(), value.clone()),
            }));
        }
        if target.backend.is_some_and(Backend::uses_cm_redis) {
            settings.extend(resolved.cm_settings.clone());
        }
        for (key, value) in settings.iter().filter(|_| target.backend.is_some()) {
            let is_of = |p: &Product| key.starts_with(&format!("{}.", p.name()));
            if target.products().iter().any(is_of) {
                continue;
            }
            if !key.starts_with(CM_PREFIX) {
                return Err(StudyError::Choice(format!(
                    "setting `{key}` of target `{}` is of none of its stores (expected \
                     `PRODUCT.NAME`, as in `redis.save`)",
                    target.name
                )));
            }
            check_cm_setting(key, value)?;
        }
        Ok(settings)
    }
}

fn planned(
    name: &str,
    (product, program): (Product, Option<Program>),
    backend: Option<Backend>,
) -> PlannedTarget {
    PlannedTarget {
        name: name.into(),
        product,
        program,
        backend,
        address: None,
        settings: BTreeMap::new(),
        control_of: None,
        named: false,
    }
}

/// Refuses settings that no chosen target would get.
fn settings_used(targets: &[PlannedTarget], resolved: &Resolved) -> Result<(), StudyError> {
    let chosen = || quoted_list(targets.iter().map(|t| t.name.as_str()));
    for (product, settings) in &resolved.settings {
        let mut of_product = targets.iter().filter(|t| t.products().contains(product)).peekable();
        let has_target = of_product.peek().is_some();
        let Some((name, value)) = settings.first_key_value() else { continue };
        if of_product.any(|t| t.address.is_none()) {
            continue;
        }
        let product = product.name();
        let why = if has_target {
            format!(
                "the {product} server is at a URL and not ours to configure (chosen: {}; set it \
                 there yourself, or leave the URL out: a private server is started)",
                chosen()
            )
        } else {
            format!(
                "no chosen target has a {product} server (chosen: {}; leave the setting out, or \
                 choose such a target by --target)",
                chosen()
            )
        };
        return Err(no_use(&format!("{product}.{name}"), value, &why));
    }
    let has_cm = targets.iter().any(|t| t.backend.is_some_and(Backend::uses_cm_redis));
    match resolved.cm_settings.first_key_value() {
        Some((key, value)) if !has_cm => {
            let using = Backend::ALL.into_iter().filter(|b| b.uses_cm_redis()).map(Backend::name);
            let why = format!(
                "no chosen target uses Cm_Cache_Backend_Redis (chosen: {}; leave the setting out, \
                 or choose one of {} by --target)",
                chosen(),
                quoted_list(using)
            );
            Err(no_use(key, value, &why))
        }
        _ => Ok(()),
    }
}

fn no_use(key: &str, value: &str, why: &str) -> StudyError {
    StudyError::Choice(format!("--set {key}=`{value}` would change nothing: {why}"))
}

fn first_product(backend: Backend) -> Product {
    backend.products().first().copied().unwrap_or(Product::Files)
}

/// Why a backend cannot be measured on a store that is there already.
fn unfit_for(backend: Backend, endpoint: &Endpoint) -> Option<String> {
    let name = backend.name();
    let products = backend.products();
    if products.len() > 1 {
        let parts: Vec<&str> = products.iter().map(|p| p.name()).collect();
        return Some(format!(
            "{name} consists of {} (expected no URL: private ones are started)",
            parts.join(" and ")
        ));
    }
    if backend.own_names().is_none() {
        return Some(format!(
            "what {name} writes cannot be told from what others wrote (expected no URL: a \
             private store is started)"
        ));
    }
    let (given, needed) = (endpoint.product(), first_product(backend));
    if given != needed {
        let (given, needed) = (given.name(), needed.name());
        return Some(format!("{name} keeps its records in {needed} (expected no {given} URL)"));
    }
    endpoint.no_sessions().map(|_| {
        "records are kept on a single server by RESP2 (expected neither a cluster nor \
         `protocol=3`)"
            .into()
    })
}
