//! One record, read for sizing.

use model::{Cell, Kv, Workload};

use super::deployment::Deployment;
use super::origin::Origin;
use super::question::Mix;
use crate::recorded::Recorded;
use crate::view::View;

/// Reads one record.
pub(super) struct Reader<'a> {
    pub(super) recorded: &'a Recorded,
    pub(super) view: &'a View,
    /// Its start in text form.
    pub(super) when: &'a str,
}

impl Reader<'_> {
    /// Where the measurements of a cell come from.
    pub(super) fn origin(&self, cell: &Cell) -> Origin {
        Origin {
            run: self.recorded.header.run.clone(),
            cell: cell.id.clone(),
            started_unix_ms: self.recorded.header.started_unix_ms,
            when: self.when.into(),
        }
    }

    /// What was measured in a cell; `None` if it never reported its version.
    pub(super) fn deployment(&self, cell: &Cell) -> Option<Deployment> {
        let target = self.view.setup.targets.iter().find(|t| t.name == cell.target)?;
        Deployment::of(&self.recorded.header, cell, target.product.as_deref())
    }
}

/// The workload of a cell of keys and values.
pub(super) fn kv_of(cell: &Cell) -> Option<&Kv> {
    match &cell.workload {
        Workload::Kv(kv) => Some(kv),
        _ => None,
    }
}

/// One size of all values, bytes; `None` if sizes differ.
pub(super) fn value_bytes(kv: &Kv) -> Option<u64> {
    stats::parse_bytes(&kv.value_bytes).ok().filter(|bytes| *bytes > 0)
}

/// The mix of a phase of keys and values.
pub(super) fn mix(kv: &Kv, phase: &str) -> Option<Mix> {
    if kv.follows {
        return Mix::new(kv.operations.iter().map(|operation| (operation.name.clone(), 1.0)));
    }
    let phase = kv.phases.iter().find(|own| own.name == phase)?;
    Mix::new(phase.mix.iter().map(|(name, weight)| (name.clone(), *weight)))
}
