//! The targets of a run: those of the study or those that the user chose.

use std::collections::BTreeMap;

use super::choices::{Choices, TargetChoice, is_name_or_label};
use super::set::bad;
use super::wire::{Study, StudyTarget};
use super::{StudyError, quoted_list};
use crate::app_cache::{Backend, CM_PREFIX, CM_SETTINGS};
use crate::cache_aside::pair;
use crate::disk_limit::DiskLimit;
use crate::plan::PlannedTarget;
use crate::product::Product;
use crate::program::Program;
use crate::target::Endpoint;
use crate::tier::Tier;

/// Kind of store that a workload requires.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Stores {
    /// Session stores.
    Sessions,
    /// Stores with a key-value protocol.
    Keys,
    /// All that stores entries with a name: those of [`Stores::Keys`], files, tables of a database,
    /// blocks of a disk.
    Entries,
    /// Backends of an application cache.
    Caches,
    /// SQL servers, alone or behind a cache.
    Databases,
}

impl Stores {
    /// Products whose servers can be used.
    pub(super) fn servers(self) -> impl Iterator<Item = Product> {
        Product::ALL.into_iter().filter(move |product| product.has_server() && self.fits(*product))
    }

    fn fits(self, product: Product) -> bool {
        match self {
            Self::Sessions => product.keeps_sessions(),
            Self::Keys => product.keeps_keys(),
            Self::Entries | Self::Caches => true,
            Self::Databases => product.keeps_tables() || product.keeps_keys(),
        }
    }

    /// Returns why a study's target is not a store of this kind, if so.
    pub(super) fn fault(self, target: &StudyTarget) -> Option<String> {
        let StudyTarget { name, product, program, backend, cache, .. } = target;
        if self == Self::Databases {
            let problem = fault_of_database(target)?;
            return Some(format!("target `{}`: {problem}", name.get_ref()));
        }
        let of_server = product.map(|_| "product").or(program.map(|_| "program"));
        let of_cache = backend
            .map(|_| "backend")
            .or(target.magento.map(|_| "magento"))
            .or(cache.map(|_| "cache"));
        let (what, needed, fits, alien) = match self {
            Self::Sessions => ("sessions", "product", product.map(|p| self.fits(p)), of_cache),
            Self::Keys | Self::Entries => {
                ("keys and values", "product", product.map(|p| self.fits(p)), of_cache)
            }
            Self::Caches => {
                let alien = of_server.or(cache.map(|_| "cache"));
                ("application caches", "backend", backend.map(|_| true), alien)
            }
            // Checked above.
            Self::Databases => return None,
        };
        let product = target.product().name();
        let problem = match (alien, fits, program) {
            (Some(key), ..) => {
                format!("`{key}` is not a key in studies of {what} (expected `{needed}`)")
            }
            (_, None, _) => format!("missing field `{needed}`"),
            (_, Some(false), _) => format!("{product} does not store {what}"),
            (_, _, Some(program)) if target.product() != Program::PRODUCT => {
                let expected = Program::PRODUCT.name();
                format!("{} is not a {product} server (expected {expected})", program.name())
            }
            _ => return None,
        };
        Some(format!("target `{}`: {problem}", name.get_ref()))
    }
}

/// Why a target is not a database, alone or behind a cache; `None` if it is.
fn fault_of_database(target: &StudyTarget) -> Option<String> {
    let StudyTarget { product, program, backend, cache, .. } = target;
    let alien = program.map(|_| "program").or(backend.map(|_| "backend"));
    if let Some(key) = alien {
        return Some(format!("`{key}` is not a key in studies of databases (expected `product`)"));
    }
    let Some(product) = product else { return Some("missing field `product`".into()) };
    if !product.keeps_tables() {
        return Some(format!("{} is not a database (expected mysql or postgres)", product.name()));
    }
    let cache = cache.filter(|cache| pair(*cache, *product).is_none())?;
    Some(format!("{} is not a cache (expected redis or memcached)", cache.name()))
}

/// Settings of servers and software from the user.
#[derive(Default)]
pub(super) struct Settings {
    pub(super) servers: BTreeMap<Product, BTreeMap<String, String>>,
    /// Settings of `Cm_Cache_Backend_Redis`, with their prefix.
    pub(super) cm: BTreeMap<String, String>,
    /// Limits of disks, by label or name of a target.
    pub(super) disks: BTreeMap<String, DiskLimit>,
    /// Tiers, by label or name of a target.
    pub(super) tiers: BTreeMap<String, Tier>,
}

/// Key of a disk's limit in `--set`, followed by a label or a target's name.
pub(super) const DISK_LIMIT: &str = "disk_limit";

impl Study {
    /// The targets of a run: those that the user named, else the study's, and of those on request
    /// the ones that a chosen profile has `listed`.
    pub(super) fn planned_targets(
        &self,
        choices: &Choices,
        settings: &Settings,
        (stores, listed): (Stores, &[&str]),
    ) -> Result<Vec<PlannedTarget>, StudyError> {
        let mut targets: Vec<PlannedTarget> = Vec::new();
        if choices.targets.is_empty() {
            let is_listed = |t: &&StudyTarget| listed.contains(&t.name.get_ref().as_str());
            for own in self.targets.iter().filter(|t| !t.on_request || is_listed(t)) {
                let server = (own.product(), own.program);
                let target = planned(own.name.get_ref(), server, own.backend);
                let target = PlannedTarget { cache: own.cache, ..target };
                let settings = self.settings(&target, settings)?;
                targets.push(PlannedTarget { settings, ..target });
            }
        }
        for choice in &choices.targets {
            if targets.iter().any(|t| t.name == choice.name) {
                return Err(StudyError::Choice(format!(
                    "target `{name}` is given twice (give each its own name or label: --target \
                     NAME=URL, --target LABEL:{store})",
                    name = choice.name,
                    store = choice.store()
                )));
            }
            let target = match stores {
                Stores::Sessions | Stores::Keys | Stores::Entries => {
                    self.chosen_server(choice, stores)?
                }
                Stores::Caches => self.chosen_cache(choice)?,
                Stores::Databases => self.chosen_database(choice)?,
            };
            let mut settings = self.settings(&target, settings)?;
            if choice.endpoint.is_some() {
                settings.retain(|key, _| key.starts_with(CM_PREFIX));
            }
            let address = choice.endpoint.as_ref().map(ToString::to_string);
            let directory = choice.directory.clone();
            targets.push(PlannedTarget { address, directory, named: true, settings, ..target });
        }
        settings_used(&targets, settings)?;
        limit_disks(&mut targets, &settings.disks)?;
        self.put_tiers(&mut targets, &settings.tiers)?;
        if choices.control {
            targets.push(self.control_target(&targets)?);
        }
        Ok(targets)
    }

    /// Plans a server or files: at a URL, its product; otherwise the study's target of that name,
    /// or else the server that a bare name starts.
    fn chosen_server(
        &self,
        choice: &TargetChoice,
        stores: Stores,
    ) -> Result<PlannedTarget, StudyError> {
        let of_study = self.target(&choice.name).filter(|_| choice.endpoint.is_none());
        let of_study = of_study.map(|t| (t.product(), t.program));
        let Some(server) = of_study.or_else(|| choice.server()) else {
            let (name, known) = (&choice.name, quoted_list(self.target_names()));
            return Err(StudyError::Choice(format!(
                "unknown target `{name}` (known: {known}; give another store as --target \
                 {name}=URL)"
            )));
        };
        let unfit = match (stores, &choice.endpoint) {
            (Stores::Keys, _) => (!server.0.keeps_keys()).then(|| {
                format!(
                    "{} does not store keys and values (expected redis or memcached, or the URL of \
                     a compatible server)",
                    server.0.name()
                )
            }),
            (Stores::Entries, _) => None,
            (_, Some(endpoint)) => endpoint.no_sessions().map(String::from),
            (_, None) => server.0.no_sessions().map(String::from),
        };
        match unfit {
            Some(why) => Err(StudyError::Choice(format!("target `{}`: {why}", choice.name))),
            None => Ok(planned(&choice.name, server, None)),
        }
    }

    /// Plans a backend of an application cache; its name selects the layout, also at a URL.
    fn chosen_cache(&self, choice: &TargetChoice) -> Result<PlannedTarget, StudyError> {
        let name = &choice.name;
        let of_study = self.target(name).and_then(|t| t.backend);
        let Some(backend) = of_study.or_else(|| Backend::of_name(choice.store())) else {
            let own = self.target_names().filter(|n| Backend::of_name(n).is_none());
            let known = quoted_list(own.chain(Backend::ALL.map(Backend::name)));
            return Err(StudyError::Choice(format!(
                "unknown target `{name}` (known: {known}; your own store needs one of these names \
                 too: --target cm-redis=URL)"
            )));
        };
        let unfit = choice.endpoint.as_ref().and_then(|e| unfit_for(backend, e));
        match unfit {
            Some(why) => Err(StudyError::Choice(format!("target `{name}`: {why}"))),
            None => Ok(planned(name, (first_product(backend), None), Some(backend))),
        }
    }

    /// Plans a database of the study, alone or behind a cache.
    fn chosen_database(&self, choice: &TargetChoice) -> Result<PlannedTarget, StudyError> {
        let name = &choice.name;
        let known = || quoted_list(self.target_names());
        let Some(own) = self.target(name) else {
            let known = known();
            return Err(StudyError::Choice(format!("unknown target `{name}` (known: {known})")));
        };
        if choice.endpoint.is_some() {
            return Err(StudyError::Choice(format!(
                "target `{name}`: this study fills a database and overloads it (expected no URL: \
                 private servers are started)"
            )));
        }
        let target = planned(name, (own.product(), own.program), None);
        Ok(PlannedTarget { cache: own.cache, ..target })
    }

    fn control_target(&self, targets: &[PlannedTarget]) -> Result<PlannedTarget, StudyError> {
        let wanted = self.control.get_ref();
        let original = targets.iter().find(|t| &t.name == wanted).or_else(|| targets.first());
        let none = || StudyError::Choice("--aa needs a target to measure twice".into());
        let original = original.ok_or_else(none)?;
        Ok(PlannedTarget {
            name: format!("{}-again", original.name),
            control_of: Some(original.name.clone()),
            ..original.clone()
        })
    }

    /// The study's settings of a target, overridden by `--set PRODUCT.NAME` and `--set cm.NAME`.
    fn settings(
        &self,
        target: &PlannedTarget,
        set: &Settings,
    ) -> Result<BTreeMap<String, String>, StudyError> {
        let same_kind = |t: &&StudyTarget| match (t.backend, target.backend) {
            (Some(own), Some(backend)) => own.products() == backend.products(),
            _ => t.product() == target.product && t.cache == target.cache,
        };
        let found = self.target(&target.name).or_else(|| self.targets.iter().find(same_kind));
        let mut settings = found.map(|t| t.settings.clone()).unwrap_or_default();
        for product in target.products() {
            let set = set.servers.get(product).into_iter().flatten();
            settings.extend(set.map(|(name, value)| {
                if target.prefixes_settings() {
                    (format!("{}.{name}", product.name()), value.clone())
                } else {
                    (name.clone(), value.clone())
                }
            }));
        }
        if target.backend.is_some_and(Backend::uses_cm_redis) {
            settings.extend(set.cm.clone());
        }
        for (key, value) in settings.iter().filter(|_| target.prefixes_settings()) {
            let is_of = |p: &Product| key.starts_with(&format!("{}.", p.name()));
            if target.products().iter().any(is_of) {
                continue;
            }
            if !key.starts_with(CM_PREFIX) {
                return Err(StudyError::Choice(format!(
                    "setting `{key}` of target `{}` belongs to none of its stores (expected \
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
        cache: None,
        address: None,
        directory: None,
        disk_limit: None,
        tier: Tier::default(),
        published: None,
        settings: BTreeMap::new(),
        control_of: None,
        named: false,
    }
}

/// Rejects settings that apply to no chosen target.
fn settings_used(targets: &[PlannedTarget], set: &Settings) -> Result<(), StudyError> {
    let chosen = || quoted_list(targets.iter().map(|t| t.name.as_str()));
    for (product, settings) in &set.servers {
        let of_product = || targets.iter().filter(|t| t.products().contains(product));
        let Some((name, value)) = settings.first_key_value() else { continue };
        if of_product().any(|t| t.address.is_none()) {
            continue;
        }
        let (product, chosen, has_target) = (product.name(), chosen(), of_product().count() > 0);
        let why = if has_target {
            format!(
                "cachedyno does not configure the {product} server at a URL (chosen: {chosen}; \
                 configure it yourself, or leave out the URL to start a private server)"
            )
        } else {
            format!(
                "no chosen target has a {product} server (chosen: {chosen}; leave the setting out, \
                 or choose such a target with --target)"
            )
        };
        return Err(no_effect(&format!("{product}.{name}"), value, &why));
    }
    let has_cm = targets.iter().any(|t| t.backend.is_some_and(Backend::uses_cm_redis));
    match set.cm.first_key_value() {
        Some((key, value)) if !has_cm => {
            let using = Backend::ALL.into_iter().filter(|b| b.uses_cm_redis()).map(Backend::name);
            let why = format!(
                "no chosen target uses Cm_Cache_Backend_Redis (chosen: {}; leave the setting out, \
                 or choose one of {} with --target)",
                chosen(),
                quoted_list(using)
            );
            Err(no_effect(key, value, &why))
        }
        _ => Ok(()),
    }
}

/// Limits the disks of the targets that have a label or a name. Errors: there is no such target, or
/// it is a server whose disk another machine or user has.
fn limit_disks(
    targets: &mut [PlannedTarget],
    limits: &BTreeMap<String, DiskLimit>,
) -> Result<(), StudyError> {
    for (of, limit) in limits {
        let key = format!("{DISK_LIMIT}.{of}");
        let is_meant = |t: &PlannedTarget| is_name_or_label(of, &t.name);
        let chosen = quoted_list(targets.iter().map(|t| t.name.as_str()));
        let mut meant = targets.iter_mut().filter(|t| is_meant(t)).peekable();
        if meant.peek().is_none() {
            let why = format!(
                "no chosen target has this label or name (chosen: {chosen}; choose one, as in \
                 --target {of}:NAME=DIRECTORY)"
            );
            return Err(no_effect(&key, &limit.to_string(), &why));
        }
        for target in meant {
            if target.is_at_url() {
                let why = format!(
                    "`{}` is a server at a URL, whose disk cachedyno does not limit (leave out \
                     the URL to start a private server)",
                    target.name
                );
                return Err(no_effect(&key, &limit.to_string(), &why));
            }
            target.disk_limit = Some(*limit);
        }
    }
    Ok(())
}

pub(super) fn no_effect(key: &str, value: &str, why: &str) -> StudyError {
    StudyError::Choice(format!("--set {key}=`{value}` has no effect: {why}"))
}

fn first_product(backend: Backend) -> Product {
    backend.products().first().copied().unwrap_or(Product::Files)
}

/// Returns why a backend cannot be measured on an existing store, if so.
fn unfit_for(backend: Backend, endpoint: &Endpoint) -> Option<String> {
    let name = backend.name();
    let products = backend.products();
    if products.len() > 1 {
        let parts: Vec<&str> = products.iter().map(|p| p.name()).collect();
        return Some(format!(
            "{name} uses {} (expected no URL: private stores are started)",
            parts.join(" and ")
        ));
    }
    if backend.own_names().is_none() {
        return Some(format!(
            "data of {name} is indistinguishable from other data (expected no URL: a private \
             store is started)"
        ));
    }
    let (given, needed) = (endpoint.product(), first_product(backend));
    if given != needed {
        let (given, needed) = (given.name(), needed.name());
        return Some(format!("{name} stores its records in {needed} (expected no {given} URL)"));
    }
    endpoint.no_sessions().map(|_| {
        "records are stored on a single server with RESP2 (expected neither a cluster nor \
         `protocol=3`)"
            .into()
    })
}

/// Checks that a setting of `Cm_Cache_Backend_Redis` exists and accepts the value.
pub(super) fn check_cm_setting(key: &str, value: &str) -> Result<(), StudyError> {
    let name = key.strip_prefix(CM_PREFIX).unwrap_or(key);
    let Some((_, values)) = CM_SETTINGS.iter().find(|(known, _)| *known == name) else {
        let known = CM_SETTINGS.map(|(known, _)| format!("{CM_PREFIX}{known}"));
        let known = quoted_list(known.iter().map(String::as_str));
        return Err(StudyError::Choice(format!("unknown setting `{key}` (known: {known})")));
    };
    if values.contains(&value) {
        return Ok(());
    }
    let values: Vec<String> = values.iter().map(|value| format!("`{value}`")).collect();
    Err(bad(key, value, &values.join(" or ")))
}
