//! A real control group that throttles a disk. Skipped where the kernel or the right is missing.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "test helpers panic and print like tests"
)]

#[expect(dead_code, reason = "shared with tests of other kinds")]
mod common;

use cachedyno_rig::{DiskGroup, GroupMembership, RigError, empty_page_cache};
use common::guard;
use model::{DiskLimit, ErrorClass, Fact, MemoryPlan};
use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::time::{Duration, Instant};

/// Two seconds at the limit below.
const FILE_BYTES: usize = 2 << 20;

fn limit(text: &str) -> DiskLimit {
    DiskLimit::parse(text).unwrap()
}

/// `None`, with a printed reason, where a disk cannot be throttled.
fn made(directory: &Path, text: &str) -> Option<DiskGroup> {
    match DiskGroup::new(&guard(), limit(text), directory, None) {
        Ok(group) => Some(group),
        Err(e) => {
            let lacks =
                e.class() == ErrorClass::Missing || e.to_string().contains("on no block device");
            assert!(lacks, "{e}");
            assert!(e.to_string().contains("(expected "), "the reason without a cure: {e}");
            println!("skipped: {e}");
            None
        }
    }
}

fn fact(group: &DiskGroup, name: &str) -> f64 {
    group.usage().into_iter().find(|fact| fact.name == name).unwrap().value
}

#[test]
fn reads_that_miss_the_page_cache_wait_and_others_do_not() {
    let base = tempfile::tempdir().unwrap();
    let Some(group) = made(base.path(), "1MiB/s") else { return };
    let file = base.path().join("file");
    fs::write(&file, vec![7; FILE_BYTES]).unwrap();
    empty_page_cache(Some(base.path())).unwrap();
    let read = || {
        let begun = Instant::now();
        let mut bytes = Vec::new();
        fs::File::open(&file).unwrap().read_to_end(&mut bytes).unwrap();
        assert_eq!(bytes.len(), FILE_BYTES);
        begun.elapsed()
    };
    let inside = group.enter().unwrap().unwrap();
    let cold = read();
    let warm_from = fact(&group, Fact::DISK_READ_BYTES);
    read();
    inside.leave().unwrap();
    // A limit can only delay, and another reader of the directory can have cached a part.
    assert!(cold > Duration::from_secs(1), "{cold:?} for {FILE_BYTES} bytes at 1 MiB/s");
    assert!(warm_from >= FILE_BYTES as f64 * 0.9, "{warm_from} bytes counted");
    assert!(fact(&group, Fact::DISK_READS) >= 1.0);
    let warm = fact(&group, Fact::DISK_READ_BYTES) - warm_from;
    assert!(warm < 1.0, "{warm} bytes: the page cache is not throttled");
    let path = group.path().unwrap().to_path_buf();
    assert!(path.exists());
    group.remove().unwrap();
    assert!(!path.exists());
}

#[test]
fn a_memory_limit_and_a_disk_limit_hold_together() {
    let base = tempfile::tempdir().unwrap();
    let plan = MemoryPlan { limit_bytes: 256 << 20, swap_bytes: 0 };
    let memory = match cachedyno_rig::MemoryGroup::new(&guard(), plan, base.path()) {
        Ok(memory) => memory,
        Err(e) => {
            println!("skipped: {e}");
            return;
        }
    };
    if made(base.path(), "500iops").is_none() {
        return;
    }
    let disk = DiskGroup::new(&guard(), limit("500iops"), base.path(), Some(&memory)).unwrap();
    let of_memory = memory.enter().unwrap();
    let of_disk = disk.enter().unwrap();
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap();
    for path in [Some(memory.path()), disk.path()].into_iter().flatten() {
        let name = path.file_name().unwrap().to_str().unwrap();
        assert!(groups.contains(name), "{name} in {groups}");
    }
    of_disk.map_or(Ok(()), GroupMembership::leave).unwrap();
    of_memory.leave().unwrap();
    disk.remove().unwrap();
    memory.remove().unwrap();
}

#[test]
fn files_in_memory_cannot_be_throttled() {
    if !Path::new("/dev/shm").is_dir() {
        println!("skipped: there is no /dev/shm");
        return;
    }
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    let error = DiskGroup::new(&guard(), limit("1MiB/s"), directory.path(), None).unwrap_err();
    assert!(matches!(error, RigError::DiskLimit { .. }));
    let text = error.to_string();
    assert!(text.contains("on no block device (expected a directory on a disk"), "{text}");
}
