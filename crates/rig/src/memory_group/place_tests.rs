use super::*;
use std::io;
use std::path::PathBuf;
use tempfile::TempDir;

const PID: u32 = 4711;

/// `/proc` and `/sys` of a host, file by file.
fn host(files: &[(&str, &str)]) -> TempDir {
    let root = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    root
}

fn found(root: &TempDir) -> Result<Place> {
    Place::find(root.path(), PID, &MEMORY)
}

fn refusal(root: &TempDir) -> String {
    found(root).unwrap_err().to_string()
}

/// Creates a group directory with the given empty files, as the kernel would.
fn made(place: &Place, files: &[&str]) -> PathBuf {
    let group = place.parent.join("cachedyno-00000001");
    fs::create_dir(&group).unwrap();
    for file in files {
        fs::write(group.join(file), "").unwrap();
    }
    group
}

fn text(group: &Path, file: &str) -> String {
    fs::read_to_string(group.join(file)).unwrap()
}

fn plan(limit_bytes: u64, swap_bytes: u64) -> MemoryPlan {
    MemoryPlan { limit_bytes, swap_bytes }
}

const SCOPE: &str = "sys/fs/cgroup/system.slice/run.scope";

/// Version 2 with our process in a scope; `delegated` are the controllers that the slice delegates.
fn version_2(delegated: &str, own_max: &str) -> TempDir {
    host(&[
        ("proc/self/cgroup", "0::/system.slice/run.scope\n"),
        ("sys/fs/cgroup/cgroup.subtree_control", "cpu memory pids"),
        ("sys/fs/cgroup/system.slice/cgroup.subtree_control", delegated),
        ("sys/fs/cgroup/system.slice/memory.max", "1073741824\n"),
        (&format!("{SCOPE}/cgroup.subtree_control"), ""),
        (&format!("{SCOPE}/cgroup.procs"), "12\n4711\n"),
        (&format!("{SCOPE}/memory.max"), own_max),
    ])
}

#[test]
fn version_1_creates_groups_below_our_own() {
    let root = host(&[
        ("proc/self/cgroup", "4:memory:/a/b\n0::/\n"),
        ("sys/fs/cgroup/memory/cgroup.procs", "1\n"),
        ("sys/fs/cgroup/memory/a/b/cgroup.procs", "4711\n"),
        ("sys/fs/cgroup/unified/cgroup.procs", "4711\n"),
    ]);
    let place = found(&root).unwrap();
    let own = root.path().join("sys/fs/cgroup/memory/a/b");
    assert_eq!((place.version, &place.own, &place.parent), (Version::V1, &own, &own));
    let files = ["memory.limit_in_bytes", "memory.memsw.limit_in_bytes", "memory.swappiness"];
    let group = made(&place, &files);
    place.limit(&group, plan(64 << 20, 0)).unwrap();
    assert_eq!(files.map(|f| text(&group, f)), ["67108864", "67108864", ""]);
    // Without swap accounting the second limit does not exist.
    fs::remove_file(group.join("memory.memsw.limit_in_bytes")).unwrap();
    place.limit(&group, plan(64 << 20, 0)).unwrap();
    assert_eq!(text(&group, "memory.swappiness"), "0");

    fs::write(group.join("memory.max_usage_in_bytes"), "67100000\n").unwrap();
    fs::write(group.join("memory.oom_control"), "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n")
        .unwrap();
    let stat =
        "cache 9\ninactive_file 4096\nactive_file 8192\nhierarchical_memory_limit 49999872\n";
    fs::write(group.join("memory.stat"), stat).unwrap();
    let taken = MemoryUse {
        limit_bytes: 64 << 20,
        peak_bytes: Some(67_100_000),
        page_cache_bytes: 12_288,
        oom_kills: 2,
        swap: None,
    };
    assert_eq!(place.usage(&group, plan(64 << 20, 0), (0, 0)).unwrap(), taken);
    place.limit(&group, plan(50_000_100, 0)).unwrap();
    let error = place.limit(&group, plan(64 << 20, 0)).unwrap_err().to_string();
    assert!(
        error.contains("64 MiB is more than the 47.7 MiB that a parent group allows"),
        "{error}"
    );
}

#[test]
fn in_a_container_the_mount_is_our_group() {
    let root = host(&[
        ("proc/self/cgroup", "4:memory:/docker/0123\n"),
        ("sys/fs/cgroup/memory/cgroup.procs", "1\n4711\n"),
    ]);
    let place = found(&root).unwrap();
    assert_eq!(place.parent, root.path().join("sys/fs/cgroup/memory"));
}

#[test]
fn version_2_creates_groups_next_to_our_own() {
    let root = version_2("memory pids\n", "max\n");
    let place = found(&root).unwrap();
    assert_eq!(place.version, Version::V2);
    assert_eq!(place.own, root.path().join(SCOPE));
    assert_eq!(place.parent, root.path().join("sys/fs/cgroup/system.slice"));
    let group = made(&place, &["memory.max", "memory.swap.max"]);
    place.limit(&group, plan(256 << 20, 0)).unwrap();
    assert_eq!(text(&group, "memory.max"), "268435456");
    assert_eq!(text(&group, "memory.swap.max"), "0");
    let error = place.limit(&group, plan(2 << 30, 0)).unwrap_err().to_string();
    assert!(error.contains("2 GiB is more than the 1 GiB that a parent group allows"), "{error}");

    fs::write(group.join("memory.events"), "oom 1\noom_kill 1\noom_group_kill 0\n").unwrap();
    fs::write(group.join("memory.stat"), "anon 7\ninactive_file 1\nactive_file 2\n").unwrap();
    let taken = place.usage(&group, plan(256 << 20, 0), (0, 0)).unwrap();
    // `memory.peak` came with Linux 5.19.
    assert_eq!((taken.peak_bytes, taken.page_cache_bytes, taken.oom_kills), (None, 3, 1));
    fs::write(group.join("memory.peak"), "268435456\n").unwrap();
    assert_eq!(
        place.usage(&group, plan(256 << 20, 0), (0, 0)).unwrap().peak_bytes,
        Some(268_435_456)
    );
}

#[test]
fn version_2_creates_groups_below_the_root() {
    let root = host(&[
        ("proc/self/cgroup", "0::/\n"),
        ("sys/fs/cgroup/cgroup.procs", "1\n4711\n"),
        ("sys/fs/cgroup/cgroup.subtree_control", "memory\n"),
    ]);
    assert_eq!(found(&root).unwrap().parent, root.path().join("sys/fs/cgroup"));
}

#[test]
fn a_missing_delegation_is_an_error_with_a_fix() {
    let text = refusal(&version_2("cpu pids\n", "max\n"));
    assert!(
        text.contains("run.scope`, which contains processes, nor its parent delegates"),
        "{text}"
    );
    assert!(text.contains("systemd-run --scope"), "{text}");
    assert!(text.ends_with("(a study with `memory_limit` can omit it)"), "{text}");
    // The mount itself, as in a container, has no visible parent.
    let root = host(&[
        ("proc/self/cgroup", "0::/\n"),
        ("sys/fs/cgroup/cgroup.procs", "4711\n"),
        ("sys/fs/cgroup/cgroup.subtree_control", "\n"),
    ]);
    assert!(refusal(&root).contains("nor its parent delegates"), "{}", refusal(&root));
}

#[test]
fn a_limit_of_our_own_group_is_not_escaped() {
    let text = refusal(&version_2("memory\n", "536870912\n"));
    assert!(text.contains("has its own limit of 512 MiB"), "{text}");
}

#[test]
fn swap_that_cannot_be_limited_is_rejected() {
    let root = version_2("memory\n", "max\n");
    let place = found(&root).unwrap();
    let group = made(&place, &["memory.max"]);
    place.limit(&group, plan(64 << 20, 0)).unwrap();
    fs::write(root.path().join("proc/swaps"), "Filename Type Size\n/dev/sdb partition 9\n")
        .unwrap();
    let error = place.limit(&group, plan(64 << 20, 0)).unwrap_err().to_string();
    assert!(error.contains("cannot limit the swap of a group"), "{error}");
}

#[test]
fn missing_control_groups_are_reported() {
    let nothing = host(&[]);
    assert!(refusal(&nothing).contains("control groups do not exist"), "{}", refusal(&nothing));
    // A group that does not list our process is not ours.
    let other = host(&[
        ("proc/self/cgroup", "4:memory:/a\n"),
        ("sys/fs/cgroup/memory/a/cgroup.procs", "12\n"),
        ("sys/fs/cgroup/memory/cgroup.procs", "1\n"),
    ]);
    assert!(refusal(&other).contains("not visible from here"), "{}", refusal(&other));
}

#[test]
fn a_denied_group_creation_names_the_expected_permission() {
    let root = version_2("memory\n", "max\n");
    let place = found(&root).unwrap();
    let error = place.creation_error(&io::ErrorKind::PermissionDenied.into());
    assert_eq!(error.class(), ErrorClass::Missing);
    assert!(error.to_string().contains("expected root, or delegated groups"), "{error}");
}

const LIMIT: u64 = 64 << 20;
const SWAP: u64 = 256 << 20;

#[test]
fn version_1_limits_memory_and_swap_together() {
    let root = host(&[
        ("proc/self/cgroup", "4:memory:/\n"),
        ("proc/vmstat", "pswpin 10\npswpout 30\n"),
        ("sys/fs/cgroup/memory/cgroup.procs", "4711\n"),
    ]);
    let place = found(&root).unwrap();
    let files = ["memory.limit_in_bytes", "memory.memsw.limit_in_bytes", "memory.swappiness"];
    let group = made(&place, &files);
    place.limit(&group, plan(LIMIT, SWAP)).unwrap();
    assert_eq!(files.map(|f| text(&group, f)), ["67108864", "335544320", ""]);
    // Without swappiness a group is killed before it swaps.
    fs::write(group.join("memory.swappiness"), "0\n").unwrap();
    place.limit(&group, plan(LIMIT, SWAP)).unwrap();
    assert_eq!(text(&group, "memory.swappiness"), "60");

    fs::write(group.join("memory.oom_control"), "oom_kill 0\n").unwrap();
    let above = "hierarchical_memory_limit 67108864\nhierarchical_memsw_limit 134217728\n";
    fs::write(group.join("memory.stat"), [above, "swap 8192\n"].concat()).unwrap();
    let page = page_bytes();
    let taken = SwapUse {
        limit_bytes: SWAP,
        peak_bytes: None,
        used_bytes: 8192,
        read_bytes: 2 * page,
        written_bytes: 25 * page,
        of_machine: true,
    };
    assert_eq!(place.usage(&group, plan(LIMIT, SWAP), (8, 5)).unwrap().swap, Some(taken));
    let error = place.limit(&group, plan(LIMIT, SWAP)).unwrap_err();
    assert_eq!(error.class(), ErrorClass::Full);
    let (error, why) = (error.to_string(), "256 MiB of swap is more than the 64 MiB that a parent");
    assert!(error.contains(why), "{error}");

    fs::remove_file(group.join("memory.memsw.limit_in_bytes")).unwrap();
    let error = place.limit(&group, plan(LIMIT, SWAP)).unwrap_err().to_string();
    assert!(error.contains("expected `swapaccount=1` on its command line"), "{error}");
}

#[test]
fn version_2_limits_swap_separately() {
    let root = version_2("memory\n", "max\n");
    let place = found(&root).unwrap();
    let files = ["memory.max", "memory.swap.max", "memory.zswap.max"];
    let group = made(&place, &files);
    place.limit(&group, plan(LIMIT, SWAP)).unwrap();
    assert_eq!(files.map(|f| text(&group, f)), ["67108864", "268435456", "0"]);

    fs::write(group.join("memory.events"), "oom_kill 0\n").unwrap();
    fs::write(group.join("memory.stat"), "pswpin 3\npswpout 4\n").unwrap();
    fs::write(group.join("memory.swap.current"), "8192\n").unwrap();
    fs::write(group.join("memory.swap.peak"), "12288\n").unwrap();
    let page = page_bytes();
    let taken = SwapUse {
        limit_bytes: SWAP,
        peak_bytes: Some(12_288),
        used_bytes: 8192,
        read_bytes: 3 * page,
        written_bytes: 4 * page,
        of_machine: false,
    };
    assert_eq!(place.usage(&group, plan(LIMIT, SWAP), (8, 5)).unwrap().swap, Some(taken));

    let refusal = || place.limit(&group, plan(LIMIT, SWAP)).unwrap_err().to_string();
    let slice = root.path().join("sys/fs/cgroup/system.slice/memory.swap.max");
    fs::write(&slice, "0\n").unwrap();
    let why = "256 MiB of swap is more than the 0 B that a parent group allows";
    assert!(refusal().contains(why), "{}", refusal());
    place.limit(&group, plan(LIMIT, 0)).unwrap();
    fs::write(&slice, "max\n").unwrap();
    fs::create_dir_all(root.path().join("proc/sys/vm")).unwrap();
    fs::write(root.path().join("proc/sys/vm/swappiness"), "0\n").unwrap();
    assert!(refusal().contains("`sysctl vm.swappiness=60`"), "{}", refusal());
    fs::remove_file(group.join("memory.swap.max")).unwrap();
    assert!(refusal().contains("`swapaccount=1`"), "{}", refusal());
}
