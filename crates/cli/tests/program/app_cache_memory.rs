//! Application caches with a cold page cache, and with a memory limit.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::sys::signal::Signal;
use nix::sys::statfs::{TMPFS_MAGIC, statfs};
use serde_json::Value;

use super::app_cache::small;
use super::common::{
    Place, RedisServer, Started, Tmpfs, among, child_named, installed, skipped, target, wait_until,
};
use super::orphaned::{doctor, kill_with_guard};

const MIB: u64 = 1 << 20;

/// The usual mount points of control groups, version 1 and version 2.
const MOUNTS: [&str; 2] = ["/sys/fs/cgroup/memory", "/sys/fs/cgroup"];

/// Collects every control group of cachedyno below `directory`.
fn groups_below(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|t| t.is_dir()) {
            if entry.file_name().to_string_lossy().starts_with("cachedyno-") {
                found.push(entry.path());
            }
            groups_below(&entry.path(), found);
        }
    }
}

/// Directory of a process's control group; `None` if it is not one of cachedyno's.
fn group_of(pid: u32) -> Option<PathBuf> {
    let text = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
    let name = text.lines().find_map(|l| l.split_once("/cachedyno-").map(|(_, name)| name))?;
    let mut found = Vec::new();
    for mount in MOUNTS {
        groups_below(Path::new(mount), &mut found);
    }
    found.into_iter().find(|path| path.ends_with(format!("cachedyno-{name}")))
}

/// Whether this test can create a control group with a memory limit: a child of its own group in
/// version 1, a sibling in version 2.
fn can_limit_memory() -> bool {
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let own = |controller: &str| {
        groups.lines().find_map(|line| {
            let (_, rest) = line.split_once(':')?;
            let (controllers, path) = rest.split_once(':')?;
            (controllers == controller).then(|| path.trim_start_matches('/').to_string())
        })
    };
    let parents = [
        own("memory").map(|path| (Path::new(MOUNTS[0]).join(path), "memory.limit_in_bytes")),
        own("").and_then(|path| {
            let own = Path::new(MOUNTS[1]).join(&path);
            let parent = if path.is_empty() { Some(own.as_path()) } else { own.parent() };
            Some((parent?.to_path_buf(), "memory.max"))
        }),
    ];
    let works = parents.into_iter().flatten().any(|(parent, limit)| {
        let probe =
            parent.join(format!("cdtest-{}-{:?}", std::process::id(), std::thread::current().id()));
        let created = fs::create_dir(&probe).is_ok();
        let limits = created && fs::write(probe.join(limit), "67108864").is_ok();
        let _ = fs::remove_dir(&probe);
        limits
    });
    works
        || skipped(
            "cannot create a control group with a memory limit (needs root and a writable /sys/fs/cgroup)",
        )
}

fn assert_removed(group: &Path) {
    let gone = || (!group.exists()).then_some(());
    wait_until("the control group is removed", Duration::from_secs(20), gone);
}

#[test]
fn a_cold_profile_reports_how_the_page_cache_was_emptied() {
    if !installed(&["redis-server"]) {
        return;
    }
    let place = Place::new();
    if statfs(&place.disk()).unwrap().filesystem_type() == TMPFS_MAGIC {
        skipped("the directory for temporary files is on tmpfs");
        return;
    }
    let targets = ["--target", "zend-file", "--target", "cm-redis", "--set", "profile=cold"];
    let summary = Place::finish(small(&place, &targets)).measured().json();
    assert_eq!(summary["failures"], Value::Array(Vec::new()));
    let record = place.record();
    let cells = record.header()["plan"]["cells"].clone();
    for cell in cells.as_array().unwrap() {
        assert_eq!(cell["workload"]["page_cache"], "cold");
        assert!(among(&cell["workload"]["phases"], |p| p["warmup_ns"] != 0).is_empty(), "{cell}");
    }
    let trials = record.trials();
    let emptied: Vec<&str> = trials.iter().map(|t| t["emptied"].as_str().unwrap()).collect();
    assert_eq!(emptied.len(), 2);
    let by_root = fs::OpenOptions::new().write(true).open("/proc/sys/vm/drop_caches").is_ok();
    let (expected, words) = if by_root {
        ("machine", "the page cache of the machine was emptied, with names and inodes")
    } else {
        ("files", "stayed, because only root can empty all of it")
    };
    assert_eq!(emptied, [expected; 2]);
    let notes = among(&summary["footnotes"], |n| n.as_str().unwrap().contains(words));
    assert_eq!(notes.len(), 1, "{}", summary["footnotes"]);
    place.assert_nothing_left();
}

#[test]
fn files_in_memory_cannot_be_measured_cold() {
    let place = Place::new();
    let Some(small_disk) = Tmpfs::new(&place, 16_384) else { return };
    let arguments = ["app-cache", "--scale", "quick", "--format", "json", "--target", "zend-file"];
    let sets = ["profile=cold", "keys=100", "tags=20", "measure_ms=20", "blocks_max=1"];
    let sets: Vec<&str> = sets.iter().flat_map(|set| ["--set", *set]).collect();
    let arguments = [&arguments[..], &sets].concat();
    let run = place.run_at(&place.records(), small_disk.path(), &arguments);
    let summary = Place::finish(run).code(4).json();
    let reason = summary["failures"][0]["reason"].as_str().unwrap();
    for part in ["the page cache cannot be emptied", "not in tmpfs"] {
        assert!(reason.contains(part), "{reason}");
    }
    assert!(
        summary["cells"].as_array().unwrap().is_empty(),
        "a warm measurement was reported as cold"
    );
}

#[test]
fn servers_and_clients_of_files_stay_within_a_memory_limit() {
    if !installed(&["memcached"]) || !can_limit_memory() {
        return;
    }
    let place = Place::new();
    let sets = ["--set", "memory_limit=128MiB", "--set", "measure_ms=700"];
    let run = Started::new(small(&place, &[&["--target", "two-levels-file"], &sets[..]].concat()));
    let parent = run.pid();
    let group = wait_until("the clients are in a control group", Duration::from_secs(60), || {
        group_of(parent)
    });
    let server = child_named(parent, "memcached").and_then(group_of);
    let limit = ["memory.limit_in_bytes", "memory.max"].map(|f| fs::read_to_string(group.join(f)));
    let summary = run.finish_within(Duration::from_secs(120)).measured().json();
    assert_eq!(server.as_ref(), Some(&group), "server and clients share the group");
    let limit = limit.into_iter().flatten().next().unwrap();
    assert_eq!(limit.trim(), (128 * MIB).to_string());
    assert_eq!(summary["failures"], Value::Array(Vec::new()));
    let trials = place.record().trials();
    let memory = &trials[0]["memory"];
    assert_eq!(memory["limit_bytes"], 128 * MIB);
    assert_eq!(memory["oom_kills"], 0);
    if let Some(peak) = memory["peak_bytes"].as_u64() {
        assert!((MIB..=128 * MIB).contains(&peak), "{memory}");
    }
    assert!(memory["page_cache_bytes"].as_u64().unwrap() >= 300 * 4096, "{memory}");
    let words = "servers, clients and page cache were limited to 128 MiB of memory";
    let notes = among(&summary["footnotes"], |n| n.as_str().unwrap().contains(words));
    assert_eq!(notes.len(), 1, "{}", summary["footnotes"]);
    assert_removed(&group);
    place.assert_nothing_left();
}

#[test]
fn a_killed_run_leaves_no_control_group() {
    if !installed(&["memcached"]) || !can_limit_memory() {
        return;
    }
    let place = Place::new();
    let sets = ["--set", "memory_limit=128MiB", "--set", "measure_ms=60000"];
    let run = Started::new(small(&place, &[&["--target", "two-levels-file"], &sets[..]].concat()));
    let parent = run.pid();
    let group = wait_until("the clients are in a control group", Duration::from_secs(60), || {
        group_of(parent)
    });
    std::thread::sleep(Duration::from_millis(300));
    assert!(group.exists());
    run.signal(Signal::SIGKILL);
    assert_eq!(run.finish_within(Duration::from_secs(10)).code, None);
    place.assert_nothing_left();
    assert_removed(&group);
}

#[test]
fn doctor_removes_a_leftover_control_group() {
    if !installed(&["memcached"]) || !can_limit_memory() {
        return;
    }
    let place = Place::new();
    let sets = ["--set", "memory_limit=128MiB", "--set", "measure_ms=60000"];
    let run = Started::new(small(&place, &[&["--target", "two-levels-file"], &sets[..]].concat()));
    let parent = run.pid();
    let group = wait_until("the clients are in a control group", Duration::from_secs(60), || {
        group_of(parent)
    });
    let during_run = doctor(&place, &place.disk(), &["--clean"]).code(0).stdout;
    assert!(!during_run.contains(group.to_str().unwrap()) && group.exists(), "{during_run}");
    kill_with_guard(&place, run, &place.disk());
    assert!(group.exists());
    let listed = doctor(&place, &place.disk(), &[]).code(0).stdout;
    assert!(listed.contains(&format!("`{}`: control group, ", group.display())), "{listed}");
    doctor(&place, &place.disk(), &["--clean"]).code(0);
    assert_removed(&group);
    place.assert_nothing_left();
}

#[test]
fn a_server_killed_for_memory_fails_the_trial() {
    if !installed(&["redis-server"]) || !can_limit_memory() {
        return;
    }
    let place = Place::new();
    // More than twice the limit, with random content that hardly compresses.
    let sizes = ["keys=6000", "min_rec_size=30000", "max_rec_size=32000", "memory_limit=64MiB"];
    let sets: Vec<&str> = sizes.iter().flat_map(|set| ["--set", *set]).collect();
    let run = small(&place, &[&["--target", "cm-redis"], &sets[..]].concat());
    let summary = Place::finish(run).code(4).json();
    let [failure] = &summary["failures"].as_array().unwrap()[..] else {
        panic!("not exactly one failed trial: {summary}")
    };
    let reason = failure["reason"].as_str().unwrap();
    assert_eq!(failure["class"], "killed", "{failure}");
    for part in
        ["redis-server used up its memory_limit of 64 MiB and died", "SIGKILL", "a client saw"]
    {
        assert!(reason.contains(part), "no `{part}` in {reason}");
    }
    let trials = place.record().trials();
    assert!(trials[0]["memory"]["oom_kills"].as_u64() >= Some(1), "{}", trials[0]);
    place.assert_nothing_left();
}

#[test]
fn a_target_is_skipped_if_its_limit_cannot_be_enforced() {
    if can_limit_memory() {
        skipped("memory can be limited here");
        return;
    }
    let place = Place::new();
    let run = small(&place, &["--target", "zend-file", "--set", "memory_limit=128MiB"]);
    let summary = Place::finish(run).code(3).json();
    let reason = target(&summary, "zend-file")["not_run"].as_str().unwrap();
    for part in ["memory cannot be limited", "(a study with `memory_limit` can omit it)"] {
        assert!(reason.contains(part), "{reason}");
    }
    place.assert_nothing_left();
}

#[test]
fn an_invalid_memory_limit_is_refused() {
    let place = Place::new();
    for limit in ["memory_limit=lots", "memory_limit=63MiB"] {
        let finished = Place::finish(small(&place, &["--set", limit]));
        finished.usage_error(&["memory_limit=`", "expected 64MiB to 1TiB, as in `256MiB`"]);
    }
    let mut sessions = place.fast(&["--target", "files"]);
    sessions.args(["--set", "memory_limit=1GiB"]);
    Place::finish(sessions).usage_error(&["unknown key `memory_limit`"]);
    if !installed(&["redis-server", "setpriv"]) {
        return;
    }
    let server = RedisServer::new();
    let url = format!("cm-redis={}", server.url());
    let limit = ["--target", &url, "--set", "memory_limit=1GiB"];
    Place::finish(small(&place, &limit)).usage_error(&["target `cm-redis`", "does not limit"]);
}
