//! Dispatch to the modules of workloads, which define keys, their ranges and the planned cells.

use toml::de::DeTable;

use super::choices::Choices;
use super::wire::{Study, StudyWorkload};
use super::{Fault, StudyError, app_cache, cache_aside, failover, kv, ramp, sessions};
use crate::plan::Plan;

impl Study {
    /// Returns the first fault of a study that parses. Fails if it does not parse.
    pub(super) fn check(&self, document: &DeTable<'_>) -> Result<Option<Fault>, StudyError> {
        match self.workload {
            StudyWorkload::Sessions => self.first_fault::<sessions::Defaults>(document),
            StudyWorkload::AppCache => self.first_fault::<app_cache::Defaults>(document),
            StudyWorkload::Ramp => self.first_fault::<ramp::Defaults>(document),
            StudyWorkload::Kv => self.first_fault::<kv::Defaults>(document),
            StudyWorkload::Failover => self.first_fault::<failover::Defaults>(document),
            StudyWorkload::CacheAside => self.first_fault::<cache_aside::Defaults>(document),
        }
    }

    /// Plans everything that a run with these choices does.
    pub fn plan(&self, choices: &Choices) -> Result<Plan, StudyError> {
        match self.workload {
            StudyWorkload::Sessions => self.planned::<sessions::Defaults>(choices),
            StudyWorkload::AppCache => self.planned::<app_cache::Defaults>(choices),
            StudyWorkload::Ramp => self.planned::<ramp::Defaults>(choices),
            StudyWorkload::Kv => self.planned::<kv::Defaults>(choices),
            StudyWorkload::Failover => self.planned::<failover::Defaults>(choices),
            StudyWorkload::CacheAside => self.planned::<cache_aside::Defaults>(choices),
        }
    }
}
