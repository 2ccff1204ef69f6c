//! A private control group in which the kernel limits the CPU time of a target. Sources: the
//! kernel's pages "CFS Bandwidth Control" (version 1) and "Control Group v2".
//!
//! The quota is enforced in periods of 100 ms: once the processes have used it, all of them stop
//! until the next period. On which CPUs they run is not the group's: servers are pinned when they
//! start, which needs no permission.

use crate::control_group::{Controller, ControllerGroup, Place, Version, set, word};
use crate::error::{Result, RigError};
use crate::guard::Guard;
use model::{ErrorClass, Fact};
use std::fs;
use std::path::Path;

/// Usual mount points of version 1.
pub(crate) const V1_CPU: [&str; 2] = ["sys/fs/cgroup/cpu", "sys/fs/cgroup/cpu,cpuacct"];
/// Files of version 1 with quota and period, microseconds.
const QUOTA: &str = "cpu.cfs_quota_us";
const PERIOD: &str = "cpu.cfs_period_us";
/// The limit of version 2: quota and period.
const MAX: &str = "cpu.max";
const STAT: &str = "cpu.stat";
/// The kernel's default.
const PERIOD_US: f64 = 100_000.0;

static CPU: Controller =
    Controller { v1: "cpu", mounts: &V1_CPU, v2: "cpu", limit: MAX, error: limit_error };

/// A group with its quota. Dropping it removes it; its processes must have ended before.
#[derive(Debug)]
pub struct CpuGroup(ControllerGroup);

impl CpuGroup {
    /// Creates a group with a quota, in CPUs: 0.5 is half of the time of one CPU. `joined` is
    /// another group of the same processes.
    ///
    /// Errors: the controller is missing, or we cannot create groups; a parent group has a lower
    /// quota. The message suggests a fix.
    pub fn new(guard: &Guard, quota: f64, joined: Option<&Path>) -> Result<Self> {
        let place = Place::find(Path::new("/"), std::process::id(), &CPU)?;
        let group = ControllerGroup::new(guard, place, joined)?;
        limit(group.version, &group.path, quota)?;
        Ok(Self(group))
    }

    /// Its directory in the file system of control groups; `None` if it is the joined one.
    pub fn path(&self) -> Option<&Path> {
        self.0.own_path()
    }

    /// The directory with its files.
    pub fn stat_path(&self) -> &Path {
        &self.0.path
    }

    /// Periods so far, those in which the quota was used up, and the time for which the processes
    /// were stopped then.
    pub fn usage(&self) -> Vec<Fact> {
        let text = fs::read_to_string(self.0.path.join(STAT)).unwrap_or_default();
        let counts = [
            (Fact::CPU_PERIODS, word(&text, "nr_periods")),
            (Fact::CPU_PERIODS_THROTTLED, word(&text, "nr_throttled")),
            (Fact::CPU_THROTTLED_NS, throttled_ns(&text)),
        ];
        let fact = |(name, value): (&str, Option<u64>)| {
            let source = "CPU group".to_string();
            Some(Fact { name: name.into(), value: value? as f64, source })
        };
        counts.into_iter().filter_map(fact).collect()
    }

    /// Removes it now and reports errors; after an error the guard tries again at the end.
    pub fn remove(self) -> Result<()> {
        self.0.remove()
    }
}

/// Time for which the processes of a group with a quota were stopped so far, nanoseconds; summed
/// over the CPUs on which they would have run. `None` if the kernel does not tell.
pub fn cpu_throttled_ns(group: &Path) -> Option<u64> {
    throttled_ns(&fs::read_to_string(group.join(STAT)).ok()?)
}

/// Nanoseconds in version 1, microseconds in version 2.
fn throttled_ns(stat: &str) -> Option<u64> {
    word(stat, "throttled_time").or_else(|| word(stat, "throttled_usec").map(|us| us * 1_000))
}

/// Sets the quota of a group that was created here.
fn limit(version: Version, group: &Path, quota: f64) -> Result<()> {
    let needed = if version == Version::V1 { QUOTA } else { MAX };
    if !group.join(needed).exists() {
        let problem = format!(
            "the control group `{}` has no `{needed}` (expected a kernel with \
             CONFIG_CFS_BANDWIDTH, and with version 2 also the cpu controller for cachedyno's \
             group, as with `systemd-run --scope -p Delegate=yes -p CPUAccounting=yes`)",
            group.display()
        );
        return Err(limit_error(ErrorClass::Missing, &problem));
    }
    let quota_us = (quota * PERIOD_US).round() as u64;
    let done = match version {
        Version::V1 => set(group, PERIOD, &PERIOD_US).and_then(|()| set(group, QUOTA, &quota_us)),
        Version::V2 => set(group, MAX, &format!("{quota_us} {PERIOD_US}")),
    };
    done.map_err(|error| {
        let problem = format!(
            "a quota of {quota} CPUs was refused: {error} (expected at most that of the group \
             that cachedyno is in)"
        );
        limit_error(ErrorClass::Missing, &problem)
    })
}

fn limit_error(class: ErrorClass, problem: &str) -> RigError {
    RigError::Tier { what: "CPU time", class, problem: problem.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(group: &Path, file: &str) -> String {
        fs::read_to_string(group.join(file)).unwrap()
    }

    #[test]
    fn each_version_has_its_own_files() {
        let group = tempfile::tempdir().unwrap();
        let group = group.path();
        let missing = limit(Version::V1, group, 0.5).unwrap_err();
        assert_eq!(missing.class(), ErrorClass::Missing);
        assert!(missing.to_string().contains("CONFIG_CFS_BANDWIDTH"), "{missing}");
        for file in [QUOTA, PERIOD, MAX] {
            fs::write(group.join(file), "").unwrap();
        }
        limit(Version::V1, group, 0.5).unwrap();
        assert_eq!([QUOTA, PERIOD].map(|file| written(group, file)), ["50000", "100000"]);
        limit(Version::V2, group, 2.0).unwrap();
        assert_eq!(written(group, MAX), "200000 100000");
    }

    #[test]
    fn throttled_time_is_read_in_both_units() {
        let group = tempfile::tempdir().unwrap();
        assert_eq!(cpu_throttled_ns(group.path()), None);
        for stat in [
            "nr_periods 12\nnr_throttled 3\nthrottled_time 5000\n",
            "usage_usec 9\nnr_periods 12\nnr_throttled 3\nthrottled_usec 5\n",
        ] {
            fs::write(group.path().join(STAT), stat).unwrap();
            assert_eq!(cpu_throttled_ns(group.path()), Some(5_000), "{stat}");
        }
    }
}
