//! Limits of this process and of its control group. Sources: cgroups(7), the kernel's
//! "Control Group v2" page, proc(5).

use super::facts::{Facts, Root, bytes, warn_if};

const GROUP: &str = "limits";
const GIB: u64 = 1 << 30;

/// Usual mount points of each version and controller.
const V1_CPU: [&str; 2] = ["sys/fs/cgroup/cpu", "sys/fs/cgroup/cpu,cpuacct"];
pub(crate) const V1_MEMORY: [&str; 1] = ["sys/fs/cgroup/memory"];
pub(crate) const V2: [&str; 2] = ["sys/fs/cgroup", "sys/fs/cgroup/unified"];

pub(super) fn facts(root: &Root, facts: &mut Facts) {
    open_files(root, facts);
    if let Some(backlog) = root.number("proc/sys/net/core/somaxconn") {
        let warning = warn_if(
            backlog < 511,
            "simultaneous connection attempts are refused or delayed; \
             `sysctl net.core.somaxconn=4096`",
        );
        facts.judged(GROUP, "listen backlog (somaxconn)", backlog.to_string(), warning);
    }
    let groups = root.text("proc/self/cgroup").unwrap_or_default();
    cpu_quota(root, &groups, facts);
    memory_limit(root, &groups, facts);
}

fn open_files(root: &Root, facts: &mut Facts) {
    let text = root.text("proc/self/limits").unwrap_or_default();
    let Some(line) = text.lines().find_map(|l| l.strip_prefix("Max open files")) else { return };
    let mut words = line.split_ascii_whitespace();
    let (Some(soft), Some(hard)) = (words.next(), words.next()) else { return };
    let warning = warn_if(
        soft.parse::<u64>().is_ok_and(|limit| limit < 1024),
        "many clients or files at once fail with `too many open files`; `ulimit -n 65536`",
    );
    facts.judged(GROUP, "open files", format!("{soft} (at most {hard})"), warning);
}

/// CPUs allowed by the tightest quota of our group and its parents.
fn cpu_quota(root: &Root, groups: &str, facts: &mut Facts) {
    let v2 = |directory: &str| {
        let text = root.text(&format!("{directory}/cpu.max"))?;
        let (quota, period) = text.split_once(' ')?;
        Some(quota.parse::<f64>().ok()? / period.parse::<f64>().ok()?)
    };
    let v1 = |directory: &str| {
        // -1 means no quota, and does not parse as a number.
        let quota = root.number(&format!("{directory}/cpu.cfs_quota_us"))?;
        let period = root.number(&format!("{directory}/cpu.cfs_period_us"))?;
        Some(quota as f64 / period as f64)
    };
    let quotas = directories(groups, "cpu", &V1_CPU).into_iter().filter_map(|d| v1(&d));
    let quotas = quotas.chain(directories(groups, "", &V2).into_iter().filter_map(|d| v2(&d)));
    match quotas.reduce(f64::min) {
        None => facts.fact(GROUP, "control group CPU quota", "none"),
        Some(cpus) => {
            let warning = "when the quota is used up, everything stops until the next period, \
                           usually 100 ms; assign whole CPUs (cpuset) instead of a quota";
            let value = format!("{cpus:.2} CPUs");
            facts.judged(GROUP, "control group CPU quota", value, Some(warning.into()));
        }
    }
}

fn memory_limit(root: &Root, groups: &str, facts: &mut Facts) {
    let limits = directories(groups, "memory", &V1_MEMORY)
        .into_iter()
        .map(|d| format!("{d}/memory.limit_in_bytes"))
        .chain(directories(groups, "", &V2).into_iter().map(|d| format!("{d}/memory.max")))
        .filter_map(|path| root.number(&path))
        // Version 1 reports the largest number of whole pages if there is no limit.
        .filter(|limit| *limit < 1 << 62);
    match limits.min() {
        None => facts.fact(GROUP, "control group memory limit", "none"),
        Some(limit) => {
            let warning = warn_if(
                limit < 2 * GIB,
                "a server that exceeds it is killed, and the page cache counts too; raise the \
                 limit of the container or slice",
            );
            facts.judged(GROUP, "control group memory limit", bytes(limit), warning);
        }
    }
}

/// Directories of our group and all its parents, for a controller of version 1 or, with an empty
/// name, for version 2; empty if we are not in such a group. In a container the group's path can be
/// invisible; our group is then the mount itself, which is the last entry.
pub(crate) fn directories(groups: &str, controller: &str, mounts: &[&str]) -> Vec<String> {
    let path = groups.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let controllers = parts.next()?;
        let path = parts.next()?;
        controllers.split(',').any(|c| c == controller).then_some(path)
    });
    let Some(path) = path else { return Vec::new() };
    let mut directories = Vec::new();
    for mount in mounts {
        let mut path = path.trim_end_matches('/');
        while let Some((parent, _)) = path.rsplit_once('/') {
            directories.push(format!("{mount}{path}"));
            path = parent;
        }
        directories.push((*mount).to_string());
    }
    directories
}
