//! A private control group in which the kernel throttles the disk of a target. Sources: the
//! kernel's pages "Block IO Controller" (version 1) and "Control Group v2".
//!
//! The kernel delays requests to the device, so what the page cache answers is not throttled. In
//! version 1, only requests that a process of the group sends itself are: reads, direct writes and
//! those of `fsync`. Buffered writes that the kernel flushes later are not, and neither is the file
//! system's journal. Version 2 also throttles flushes, on file systems with writeback by group such
//! as ext4 and XFS, if the memory controller is active too.
//!
//! Clients of files access the disk themselves, so our own process joins the group while they work.
//! A group of version 2 has all controllers at once: with a memory limit, the disk is throttled in
//! the group with that limit.

use crate::control_group::{Controller, ControllerGroup, GroupMembership, Place, Version, set};
use crate::error::{Result, RigError};
use crate::guard::Guard;
use crate::host::block_device;
use crate::memory_group::MemoryGroup;
use model::{DiskLimit, ErrorClass, Fact};
use std::fs;
use std::path::Path;

/// Usual mount points of version 1.
pub(crate) const V1_BLKIO: [&str; 1] = ["sys/fs/cgroup/blkio"];
/// Files of version 1 with limits of bytes and of operations per second.
const BPS: [&str; 2] = ["blkio.throttle.read_bps_device", "blkio.throttle.write_bps_device"];
const IOPS: [&str; 2] = ["blkio.throttle.read_iops_device", "blkio.throttle.write_iops_device"];
/// The limits of version 2.
const MAX: &str = "io.max";

static DISK: Controller =
    Controller { v1: "blkio", mounts: &V1_BLKIO, v2: "io", limit: MAX, error: limit_error };

/// A group with its limit. Dropping it removes it; its processes must have ended before.
#[derive(Debug)]
pub struct DiskGroup {
    group: ControllerGroup,
    /// Major and minor number of the device.
    device: String,
}

impl DiskGroup {
    /// Creates a group with the limit on the device with the files of `directory`. `memory` is the
    /// group with the memory limit of the same processes.
    ///
    /// Errors: the files are on no block device; the controller is missing, or we cannot create
    /// groups; our own group has a limit. The message suggests a fix.
    pub fn new(
        guard: &Guard,
        limit: DiskLimit,
        directory: &Path,
        memory: Option<&MemoryGroup>,
    ) -> Result<Self> {
        let device = block_device(directory).ok_or_else(|| {
            let directory = directory.display();
            let problem = format!(
                "the files of `{directory}` are on no block device (expected a directory on a \
                 disk, not in memory, on a network or in a container's own layer)"
            );
            limit_error(ErrorClass::Other, &problem)
        })?;
        let place = Place::find(Path::new("/"), std::process::id(), &DISK)?;
        if place.version == Version::V1 {
            refuse_own_limit(&place.own)?;
        }
        let group = ControllerGroup::new(guard, place, memory.map(MemoryGroup::path))?;
        throttle(group.version, &group.path, &device, limit)?;
        Ok(Self { group, device })
    }

    /// Its directory in the file system of control groups; `None` if it is that of the memory
    /// limit.
    pub fn path(&self) -> Option<&Path> {
        self.group.own_path()
    }

    /// Moves this process into the group until the returned membership ends; `None` if the group
    /// is that of the memory limit.
    pub fn enter(&self) -> Result<Option<GroupMembership<'_>>> {
        self.group.enter()
    }

    /// What went through the throttle so far, by name.
    pub fn usage(&self) -> Vec<Fact> {
        let text = |file| fs::read_to_string(self.group.path.join(file)).unwrap_or_default();
        let counts = match self.group.version {
            Version::V1 => {
                let bytes = text("blkio.throttle.io_service_bytes");
                let operations = text("blkio.throttle.io_serviced");
                counts_of_version_1(&self.device, &bytes, &operations)
            }
            Version::V2 => counts_of_version_2(&self.device, &text("io.stat")),
        };
        let source = "disk group".to_string();
        let fact = |(name, value): (&str, u64)| Fact {
            name: name.into(),
            value: value as f64,
            source: source.clone(),
        };
        NAMES.into_iter().zip(counts).map(fact).collect()
    }

    /// Removes it now and reports errors; after an error the guard tries again at the end.
    pub fn remove(self) -> Result<()> {
        self.group.remove()
    }
}

/// Names of the counts, in the order of the functions below.
const NAMES: [&str; 4] =
    [Fact::DISK_READ_BYTES, Fact::DISK_WRITTEN_BYTES, Fact::DISK_READS, Fact::DISK_WRITES];

/// Lines such as `254:0 Read 4096`.
fn counts_of_version_1(device: &str, bytes: &str, operations: &str) -> [u64; 4] {
    let count = |text: &str, name: &str| {
        let start = format!("{device} {name} ");
        let value = text.lines().find_map(|line| line.strip_prefix(&start)?.trim().parse().ok());
        value.unwrap_or(0)
    };
    let both = |text| [count(text, "Read"), count(text, "Write")];
    let ([read, written], [reads, writes]) = (both(bytes), both(operations));
    [read, written, reads, writes]
}

/// A line such as `254:0 rbytes=4096 wbytes=0 rios=1 wios=0 dbytes=0 dios=0`.
fn counts_of_version_2(device: &str, text: &str) -> [u64; 4] {
    let mut lines = text.lines().filter_map(|line| line.split_once(' '));
    let line = lines.find(|(own, _)| *own == device).map_or("", |(_, counts)| counts);
    ["rbytes", "wbytes", "rios", "wios"].map(|name| {
        let mut pairs = line.split(' ').filter_map(|pair| pair.split_once('='));
        pairs.find(|(key, _)| *key == name).and_then(|(_, value)| value.parse().ok()).unwrap_or(0)
    })
}

/// Sets the limits of a group that was created here.
fn throttle(version: Version, group: &Path, device: &str, limit: DiskLimit) -> Result<()> {
    let DiskLimit { bytes_per_s, operations_per_s } = limit;
    let needed = if version == Version::V1 { BPS[0] } else { MAX };
    if !group.join(needed).exists() {
        let problem = format!(
            "the control group `{}` has no `{needed}` (expected a kernel with \
             CONFIG_BLK_DEV_THROTTLING, and with version 2 also the io controller for cachedyno's \
             group, as with `systemd-run --scope -p Delegate=yes -p IOAccounting=yes`)",
            group.display()
        );
        return Err(limit_error(ErrorClass::Missing, &problem));
    }
    if version == Version::V2 {
        let pair = |names: [&str; 2], value: Option<u64>| {
            value.map(|value| names.map(|name| format!("{name}={value}")).join(" "))
        };
        let limits = [
            Some(device.to_string()),
            pair(["rbps", "wbps"], bytes_per_s),
            pair(["riops", "wiops"], operations_per_s),
        ];
        return set(group, MAX, &limits.into_iter().flatten().collect::<Vec<_>>().join(" "));
    }
    for (files, value) in [(BPS, bytes_per_s), (IOPS, operations_per_s)] {
        let Some(value) = value else { continue };
        for file in files {
            set(group, file, &format!("{device} {value}"))?;
        }
    }
    Ok(())
}

/// In version 1, a group below our own is not subject to its limits.
fn refuse_own_limit(own: &Path) -> Result<()> {
    let has_limit = |file: &&&str| {
        fs::read_to_string(own.join(file)).is_ok_and(|limits| !limits.trim().is_empty())
    };
    let Some(file) = BPS.iter().chain(&IOPS).find(has_limit) else { return Ok(()) };
    let problem = format!(
        "the control group `{}` has its own limit, which a group below it would escape (expected \
         cachedyno in a group without `{file}`)",
        own.display()
    );
    Err(limit_error(ErrorClass::Missing, &problem))
}

fn limit_error(class: ErrorClass, problem: &str) -> RigError {
    RigError::DiskLimit { class, problem: problem.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(text: &str) -> DiskLimit {
        DiskLimit::parse(text).unwrap()
    }

    fn written(group: &Path, file: &str) -> String {
        fs::read_to_string(group.join(file)).unwrap()
    }

    #[test]
    fn each_version_has_its_own_files() {
        let group = tempfile::tempdir().unwrap();
        let group = group.path();
        let missing = throttle(Version::V1, group, "8:0", limit("1MiB/s")).unwrap_err();
        assert_eq!(missing.class(), ErrorClass::Missing);
        assert!(missing.to_string().contains("CONFIG_BLK_DEV_THROTTLING"), "{missing}");
        for file in BPS.iter().chain(&IOPS).chain(&[MAX]) {
            fs::write(group.join(file), "").unwrap();
        }
        throttle(Version::V1, group, "8:0", limit("1MiB/s")).unwrap();
        assert_eq!(BPS.map(|file| written(group, file)), ["8:0 1048576", "8:0 1048576"]);
        assert_eq!(IOPS.map(|file| written(group, file)), ["", ""]);
        throttle(Version::V1, group, "8:0", limit("500iops")).unwrap();
        assert_eq!(IOPS.map(|file| written(group, file)), ["8:0 500", "8:0 500"]);
        throttle(Version::V2, group, "8:0", limit("1MiB/s,500iops")).unwrap();
        let all = "8:0 rbps=1048576 wbps=1048576 riops=500 wiops=500";
        assert_eq!(written(group, MAX), all);
        let refused = refuse_own_limit(group).unwrap_err().to_string();
        assert!(refused.contains("would escape") && refused.contains(BPS[0]), "{refused}");
    }

    #[test]
    fn requests_of_the_device_are_counted() {
        let bytes = "8:0 Read 4096\n8:0 Write 0\n254:0 Read 8192\n254:0 Write 512\nTotal 12800\n";
        let operations = "254:0 Read 2\n254:0 Write 1\n";
        assert_eq!(counts_of_version_1("254:0", bytes, operations), [8192, 512, 2, 1]);
        assert_eq!(counts_of_version_1("9:9", bytes, operations), [0; 4]);
        let stat = "8:0 rbytes=1 wbytes=2\n254:0 rbytes=8192 wbytes=512 rios=2 wios=1 dios=0\n";
        assert_eq!(counts_of_version_2("254:0", stat), [8192, 512, 2, 1]);
    }
}
