//! Workloads of studies. Each is a module: its keys, their ranges, and how they become cells.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use toml::de::DeTable;

use super::choices::Choices;
use super::planning::Run;
use super::set::{self, Key};
use super::targets::Stores;
use super::wire::Study;
use super::{Fault, StudyError, app_cache, ramp, sessions};
use crate::plan::{Cell, Plan, Scale};

/// What a study's stores are used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StudyWorkload {
    /// Sessions of a shop.
    Sessions,
    /// The application cache of a shop: records with tags.
    AppCache,
    /// Keys and values under a load that is raised until the store breaks.
    Ramp,
}

impl Study {
    /// What parses but makes no sense. Errors: what does not parse.
    pub(super) fn check(&self, document: &DeTable<'_>) -> Result<Option<Fault>, StudyError> {
        match self.workload {
            StudyWorkload::Sessions => self.first_fault::<sessions::Defaults>(document),
            StudyWorkload::AppCache => self.first_fault::<app_cache::Defaults>(document),
            StudyWorkload::Ramp => self.first_fault::<ramp::Defaults>(document),
        }
    }

    /// Lists everything that a run with these choices will do.
    pub fn plan(&self, choices: &Choices) -> Result<Plan, StudyError> {
        match self.workload {
            StudyWorkload::Sessions => self.planned::<sessions::Defaults>(choices),
            StudyWorkload::AppCache => self.planned::<app_cache::Defaults>(choices),
            StudyWorkload::Ramp => self.planned::<ramp::Defaults>(choices),
        }
    }
}

/// What a module says of its workload; it is the table `[defaults]` that implements this.
pub(super) trait Keys: DeserializeOwned + 'static {
    /// The table `size` of a scale.
    type Size: DeserializeOwned + 'static;
    /// A table of `[[profiles]]`.
    type Profile: DeserializeOwned;
    /// Keys of `--set`: those of both tables, and others.
    const SET: &'static [Key<Self, Self::Size>];
    /// What its stores must be.
    const STORES: Stores;
    /// Operations that claims can be about.
    const OPERATIONS: &'static [&'static str];
    /// Whether its load is raised, as claims about ramps need it.
    const IS_RAISED: bool = false;

    /// What makes no sense in a file, but for single values out of range.
    fn fault(own: &Own<Self>) -> Option<Fault>;

    /// Values that contradict each other, in a file or after `--set`.
    fn contradiction(&self) -> Option<String> {
        None
    }

    /// What is measured: profile by profile, load by load, on each target. Errors: choices that
    /// contradict each other, or that would change nothing.
    fn cells(run: &Run<'_, Self>) -> Result<Vec<Cell>, StudyError>;

    /// The limit of latency that a highest rate is told for, nanoseconds.
    fn limit_ns(&self) -> Option<u64> {
        None
    }
}

/// The parts of a study file that are its workload's own.
#[derive(Deserialize)]
#[serde(bound = "K: Keys")]
pub(super) struct Own<K: Keys> {
    pub(super) defaults: K,
    pub(super) scales: BTreeMap<Scale, OfScale<K::Size>>,
    pub(super) profiles: Vec<K::Profile>,
}

/// What is a workload's own of a scale.
#[derive(Deserialize)]
pub(super) struct OfScale<S> {
    pub(super) size: S,
}

impl<K: Keys> Own<K> {
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
