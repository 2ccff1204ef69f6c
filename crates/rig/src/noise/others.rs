//! Who else was at work: CPU time by process. Source: proc(5), `/proc/<pid>/stat`.

use model::Busy;
use std::collections::BTreeMap;

use crate::procfs::{Work, ns_per_tick, processes};

/// Most processes that are told.
const TOLD_MAX: usize = 3;

/// CPU time of all processes until now, but those left out.
#[derive(Clone, Debug, Default)]
pub(super) struct Others(BTreeMap<(u32, u64), Work>);

impl Others {
    /// Reads it; `ours` and this process are left out.
    pub(super) fn now(ours: &[u32]) -> Self {
        let own = std::process::id();
        let strange = |pid: u32| pid != own && !ours.contains(&pid);
        let read = processes().filter(|pid| strange(*pid)).filter_map(Work::of);
        Self(read.map(|work| ((work.identity.pid, work.identity.start_ticks), work)).collect())
    }

    /// Those that used most since, most first; none that used nothing.
    pub(super) fn busiest_until(&self, after: &Self) -> Vec<Busy> {
        let used = after.0.iter().filter_map(|(identity, work)| {
            let before = self.0.get(identity).map_or(0, |work| work.cpu_ticks);
            let ticks = work.cpu_ticks.saturating_sub(before);
            let cpu_ns = (ticks as f64 * ns_per_tick()) as u64;
            (ticks > 0).then(|| Busy { name: work.name.clone(), cpu_ns })
        });
        let mut used: Vec<Busy> = used.collect();
        used.sort_by_key(|busy| std::cmp::Reverse(busy.cpu_ns));
        used.truncate(TOLD_MAX);
        used
    }
}
