//! CPU time of other processes, by process. Source: proc(5), `/proc/<pid>/stat`.

use model::Busy;
use std::collections::BTreeMap;

use crate::procfs::{ProcessActivity, ns_per_tick, processes};

/// Maximum number of processes that are reported.
const REPORTED_MAX: usize = 3;

/// CPU time so far of all processes except our own, by process id and start time.
#[derive(Clone, Debug, Default)]
pub(super) struct OtherProcesses(BTreeMap<(u32, u64), ProcessActivity>);

impl OtherProcesses {
    /// Reads the CPU times; excludes `ours` and this process.
    pub(super) fn now(ours: &[u32]) -> Self {
        let own = std::process::id();
        let is_other = |pid: u32| pid != own && !ours.contains(&pid);
        let activities = processes().filter(|pid| is_other(*pid)).filter_map(ProcessActivity::of);
        let key = |of: &ProcessActivity| (of.identity.pid, of.identity.start_ticks);
        Self(activities.map(|activity| (key(&activity), activity)).collect())
    }

    /// The processes that used the most CPU time between the two readings, in descending order;
    /// excludes processes that used none.
    pub(super) fn busiest_until(&self, after: &Self) -> Vec<Busy> {
        let used = after.0.iter().filter_map(|(key, activity)| {
            let before = self.0.get(key).map_or(0, |activity| activity.cpu_ticks);
            let ticks = activity.cpu_ticks.saturating_sub(before);
            let cpu_ns = (ticks as f64 * ns_per_tick()) as u64;
            (ticks > 0).then(|| Busy { name: activity.name.clone(), cpu_ns })
        });
        let mut used: Vec<Busy> = used.collect();
        used.sort_by_key(|busy| std::cmp::Reverse(busy.cpu_ns));
        used.truncate(REPORTED_MAX);
        used
    }
}
