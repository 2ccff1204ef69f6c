use super::facts::{bytes, chosen};
use super::*;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;

/// A fake root directory with these files.
fn root(files: &[(&str, &str)]) -> (tempfile::TempDir, Root) {
    let base = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = base.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let root = Root(base.path().into());
    (base, root)
}

fn by_name(conditions: Conditions) -> BTreeMap<String, Condition> {
    conditions.facts.into_iter().map(|c| (c.name.clone(), c)).collect()
}

const GOOD: [(&str, &str); 20] = [
    ("proc/cpuinfo", "processor\t: 0\nmodel name\t: Fast CPU\nflags\t\t: fpu sse\n"),
    ("proc/sys/kernel/osrelease", "6.1.0\n"),
    ("proc/loadavg", "0.10 0.20 0.30 1/100 77\n"),
    ("proc/stat", "cpu  10 0 10 9980 0 0 0 0 0 0\n"),
    ("proc/pressure/cpu", "some avg10=0.00 avg60=0.00 avg300=0.00 total=1\n"),
    ("sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n"),
    ("sys/devices/system/cpu/online", "0-1\n"),
    ("sys/devices/system/cpu/smt/active", "0\n"),
    ("sys/devices/system/cpu/vulnerabilities/meltdown", "Not affected\n"),
    ("sys/devices/system/cpu/vulnerabilities/spectre_v1", "Mitigation: barriers\n"),
    ("sys/devices/system/cpu/vulnerabilities/mds", "Vulnerable: no microcode\n"),
    ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n"),
    (
        "proc/meminfo",
        "MemTotal: 8388608 kB\nMemAvailable: 4194304 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB\n",
    ),
    ("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"),
    ("proc/sys/vm/overcommit_memory", "0\n"),
    ("proc/self/limits", "Limit  Soft Hard Units\nMax open files   20000   20000   files\n"),
    ("proc/sys/net/core/somaxconn", "4096\n"),
    ("proc/self/cgroup", "0::/a/b\n"),
    ("sys/fs/cgroup/a/b/cpu.max", "max 100000\n"),
    ("sys/fs/cgroup/a/memory.max", "max\n"),
];

/// Facts of the good host with some files replaced; an empty text removes the file.
fn with(changes: &[(&'static str, &'static str)]) -> BTreeMap<String, Condition> {
    let files: BTreeMap<_, _> = GOOD.into_iter().chain(changes.iter().copied()).collect();
    let files: Vec<_> = files.into_iter().filter(|(_, text)| !text.is_empty()).collect();
    let (_base, root) = root(&files);
    by_name(conditions_of(&root, Path::new("/"), &[0, 1]))
}

#[test]
fn a_good_host_has_no_warnings() {
    let facts = with(&[]);
    let host: Vec<_> = facts.values().filter(|c| c.group != "disk").collect();
    assert!(host.len() >= 16, "{host:#?}");
    for condition in host {
        assert_eq!(condition.warning, None, "{}", condition.name);
    }
    assert_eq!(facts["model"].value, "Fast CPU");
    assert_eq!(facts["mitigations"].value, "1 mitigated, 1 vulnerable, 1 not affected");
    assert_eq!(facts["size"].value, "8.0 GiB");
    assert_eq!(facts["available"].value, "4.0 GiB");
    assert_eq!(facts["control group CPU quota"].value, "none");
    assert_eq!(facts["CPUs"].value, "2 online on 2 cores, 2 allowed to this process");
}

#[test]
fn each_disturbance_has_a_warning() {
    for (path, text, name) in [
        ("proc/loadavg", "3.00 1.00 1.00 3/90 1", "load average"),
        ("proc/stat", "cpu  10 0 10 80 0 0 0 5 0 0", "steal"),
        ("proc/pressure/cpu", "", "pressure stall information"),
        ("sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet", "clock source"),
        ("sys/devices/system/cpu/smt/active", "1", "simultaneous multithreading"),
        ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave", "frequency governor"),
        ("proc/meminfo", "MemTotal: 8 kB\nMemAvailable: 4 kB\n", "available"),
        ("proc/meminfo", "SwapTotal: 8 kB\nSwapFree: 4 kB\n", "swap"),
        (
            "sys/kernel/mm/transparent_hugepage/enabled",
            "[always] madvise never",
            "transparent huge pages",
        ),
        ("proc/sys/vm/overcommit_memory", "2", "overcommit"),
        ("proc/self/limits", "Max open files  256  256 files", "open files"),
        ("proc/sys/net/core/somaxconn", "128", "listen backlog (somaxconn)"),
        ("sys/fs/cgroup/a/cpu.max", "150000 100000", "control group CPU quota"),
        ("sys/fs/cgroup/a/b/memory.max", "1073741824", "control group memory limit"),
    ] {
        let facts = with(&[(path, text)]);
        assert!(facts[name].warning.is_some(), "{path}: {:?}", facts[name]);
    }
    assert_eq!(
        with(&[("sys/fs/cgroup/a/cpu.max", "150000 100000")])["control group CPU quota"].value,
        "1.50 CPUs"
    );
}

#[test]
fn control_groups_of_version_1_are_read() {
    let facts = with(&[
        ("proc/self/cgroup", "4:memory:/x\n1:cpu,cpuacct:/y\n0::/\n"),
        ("sys/fs/cgroup/cpu/y/cpu.cfs_quota_us", "50000"),
        ("sys/fs/cgroup/cpu/y/cpu.cfs_period_us", "100000"),
        ("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1"),
        ("sys/fs/cgroup/memory/x/memory.limit_in_bytes", "4294967296"),
        ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712"),
    ]);
    assert_eq!(facts["control group CPU quota"].value, "0.50 CPUs");
    assert_eq!(facts["control group memory limit"].value, "4.0 GiB");
    assert_eq!(facts["control group memory limit"].warning, None);
}

fn disk(table: &str, make: impl Fn(&Path)) -> BTreeMap<String, Condition> {
    let (base, root) = root(&[("proc/self/mountinfo", table)]);
    make(base.path());
    let mut facts = Facts::default();
    disk::facts(&root, (DISK, Path::new("/data/of a/shop")), &mut facts);
    by_name(Conditions { facts: facts.0 })
}

#[test]
fn the_innermost_and_last_mount_is_used() {
    let facts = disk(
        "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n\
         2 1 8:2 / /data rw - xfs /dev/sdb1 rw\n\
         3 2 8:3 / /data/of\\040a rw,noatime - tmpfs none rw,size=1k\n\
         4 3 8:4 / /data/of rw - btrfs /dev/sdc rw\n",
        |_| {},
    );
    assert_eq!(facts["file system"].value, "tmpfs");
    assert!(facts["file system"].warning.as_ref().unwrap().contains("in memory"));
    assert_eq!(facts["mount options"].value, "rw,noatime,size=1k");
    assert_eq!(facts["device"].value, "none (no block device)");
}

#[test]
fn a_partition_uses_the_queue_of_its_disk() {
    let facts = disk("1 0 8:1 / / rw,sync - ext4 /dev/sda1 rw\n", |base| {
        let disk = base.join("sys/devices/pci/sda");
        fs::create_dir_all(disk.join("queue")).unwrap();
        fs::create_dir_all(disk.join("device")).unwrap();
        fs::create_dir_all(disk.join("sda1")).unwrap();
        fs::write(disk.join("queue/rotational"), "1\n").unwrap();
        fs::write(disk.join("queue/scheduler"), "none [mq-deadline] bfq\n").unwrap();
        fs::write(disk.join("device/model"), "Slow Disk  \n").unwrap();
        fs::create_dir_all(base.join("sys/class/block")).unwrap();
        symlink(disk.join("sda1"), base.join("sys/class/block/sda1")).unwrap();
    });
    assert_eq!(facts["device"].value, "sda (Slow Disk)");
    assert_eq!(facts["rotational"].value, "yes");
    assert!(facts["rotational"].warning.is_some());
    assert_eq!(facts["scheduler"].value, "mq-deadline");
    assert!(facts["mount options"].warning.is_some());
}

#[test]
fn facts_of_this_host_are_read() {
    let directory = tempfile::tempdir().unwrap();
    let facts = conditions(directory.path()).facts;
    let value = |name: &str| facts.iter().find(|c| c.name == name).map(|c| c.value.as_str());
    for name in ["kernel", "model", "CPUs", "size", "open files", "file system", "free space"] {
        assert!(value(name).is_some_and(|v| !v.is_empty()), "{name}: {facts:#?}");
    }
    for condition in &facts {
        println!(
            "{:8} {:28} {} {:?}",
            condition.group, condition.name, condition.value, condition.warning
        );
    }
}

#[test]
fn sizes_and_choices_are_formatted() {
    assert_eq!(bytes(0), "0 bytes");
    assert_eq!(bytes(1536), "1.5 KiB");
    assert_eq!(bytes(5 << 40), "5.0 TiB");
    assert_eq!(chosen("a [b] c"), "b");
    assert_eq!(chosen("b"), "b");
}

#[test]
fn file_systems_without_swap_files_are_known() {
    let base = tempfile::tempdir().unwrap();
    fs::create_dir_all(base.path().join("proc/self")).unwrap();
    for (kind, refuses) in [("ext4", false), ("xfs", false), ("overlay", true), ("tmpfs", true)] {
        let mount = format!("1 0 0:1 / / rw - {kind} none rw\n");
        fs::write(base.path().join("proc/self/mountinfo"), mount).unwrap();
        let found = super::disk::refuses_swap(&Root(base.path().into()), Path::new("/"));
        assert_eq!(found, refuses.then(|| kind.to_string()));
    }
}
