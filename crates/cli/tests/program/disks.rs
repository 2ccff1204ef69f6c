//! Several disks in one run: targets with labels and their own directories.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::Value;

use super::common::{
    Place, Started, among, count, installed, row, target, trials_so_far, wait_until,
};
use super::orphaned::{doctor, kill_with_guard};

/// Two directories with a foreign file each, and the targets of a store in them.
struct TwoDisks {
    place: Place,
    directories: [PathBuf; 2],
}

impl TwoDisks {
    fn new() -> Self {
        let place = Place::new();
        let directories = ["a", "b"].map(|name| place.path().join(name));
        for directory in &directories {
            fs::create_dir(directory).unwrap();
            fs::write(directory.join("foreign"), "foreign").unwrap();
        }
        Self { place, directories }
    }

    /// `nvme:STORE=…/a` and `hdd:STORE=…/b`.
    fn targets(&self, store: &str) -> [String; 4] {
        let [a, b] = self.directories.each_ref().map(|directory| directory.display());
        let flag = || "--target".to_string();
        [flag(), format!("nvme:{store}={a}"), flag(), format!("hdd:{store}={b}")]
    }

    /// Names other than the foreign file's.
    fn left(&self) -> Vec<String> {
        let names = self.directories.iter().flat_map(|directory| fs::read_dir(directory).unwrap());
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name != "foreign").collect()
    }
}

fn strs(words: &[String]) -> Vec<&str> {
    words.iter().map(String::as_str).collect()
}

fn facts<'a>(summary: &'a Value, name: &str) -> Vec<(&'a str, &'a str)> {
    let facts = among(&summary["conditions"]["facts"], |f| f["name"] == name);
    facts.iter().map(|f| (f["group"].as_str().unwrap(), f["value"].as_str().unwrap())).collect()
}

#[test]
fn two_directories_are_measured_in_one_run_and_left_empty() {
    let disks = TwoDisks::new();
    let targets = disks.targets("zend-file");
    let arguments = [&["--set", "profile=cold"], &strs(&targets)[..]].concat();
    let command = super::app_cache::small(&disks.place, &arguments);
    let finished = Place::finish(command);
    // A file system in memory cannot be read from disk, which the run reports.
    if finished.stdout.contains("are still cached") {
        eprintln!("skipped: the temporary directory is in memory");
        return;
    }
    let summary = finished.measured().json();
    for (name, directory) in ["nvme:zend-file", "hdd:zend-file"].iter().zip(&disks.directories) {
        assert!(count(row(&summary, name, "read"), "ok") > 0);
        let place = target(&summary, name)["place"].as_str().unwrap();
        assert!(place.contains(&directory.display().to_string()), "{place}");
    }
    let real = disks.directories.each_ref().map(|d| d.canonicalize().unwrap());
    let [a, b] = real.each_ref().map(|d| d.to_str().unwrap());
    let expected = [("disk of nvme:zend-file", a), ("disk of hdd:zend-file", b)];
    assert_eq!(facts(&summary, "directory"), expected, "and nothing about --disk");
    assert_eq!(facts(&summary, "file system").len(), 2);
    let shared = among(&summary["conditions"]["facts"], |f| {
        f["warning"].as_str().is_some_and(|text| text.contains("are on the same disk"))
    });
    assert_eq!(shared.len(), 1, "both directories are on one disk: {}", summary["conditions"]);
    assert_eq!(disks.left(), Vec::<String>::new());
    disks.place.assert_nothing_left();
}

#[test]
fn private_servers_have_their_data_in_the_directories_of_their_targets() {
    if !installed(&["redis-server"]) {
        return;
    }
    let disks = TwoDisks::new();
    let more = ["--set", "redis.appendonly=yes", "--set", "clients=1", "--target", "redis"];
    let targets = disks.targets("redis");
    let arguments = [&more, &strs(&targets)[..]].concat();
    let mut seen = [false; 3];
    let mut run = Started::new(
        disks
            .place
            .fast(&[&arguments[..], &["--set", "blocks_min=3", "--set", "blocks_max=3"]].concat()),
    );
    let disk = disks.place.disk();
    let all = [&disks.directories[0], &disks.directories[1], &disk];
    wait_until("a server has data in each directory", Duration::from_secs(60), || {
        for (seen, directory) in seen.iter_mut().zip(all) {
            *seen |= has_log(directory);
        }
        seen.iter().all(|seen| *seen).then_some(())
    });
    assert!(run.is_running() || seen.iter().all(|seen| *seen));
    let summary = run.finish_within(Duration::from_secs(120)).measured().json();
    let groups = facts(&summary, "directory").into_iter().map(|(group, _)| group);
    let groups: Vec<_> = groups.collect();
    assert_eq!(groups, ["disk", "disk of nvme:redis", "disk of hdd:redis"]);
    assert_eq!(disks.left(), Vec::<String>::new());
    disks.place.assert_nothing_left();
}

/// Whether a server's append-only log is below a new directory in `parent`.
fn has_log(parent: &Path) -> bool {
    let own = fs::read_dir(parent).unwrap().filter_map(|entry| Some(entry.ok()?.path()));
    own.filter(|path| path.is_dir()).any(|path| path.join("data/appendonlydir").exists())
}

#[test]
fn a_killed_run_leaves_no_data_in_any_directory() {
    let disks = TwoDisks::new();
    let targets = disks.targets("files");
    let long = ["--set", "clients=1", "--set", "blocks_min=400", "--set", "blocks_max=400"];
    let start = || {
        let run = Started::new(disks.place.fast(&[&strs(&targets)[..], &long].concat()));
        wait_until("a trial has ended", Duration::from_secs(60), || {
            (trials_so_far(&disks.place.records()) > 0).then_some(())
        });
        run
    };
    // The guard removes them.
    let run = start();
    run.signal(Signal::SIGKILL);
    run.finish_within(Duration::from_secs(20));
    wait_until("the guard has removed everything", Duration::from_secs(20), || {
        disks.left().is_empty().then_some(())
    });
    for record in disks.place.all_records() {
        fs::remove_dir_all(record).unwrap();
    }

    // Without the guard, the next run names each directory, and the cleaning command removes them.
    let run = start();
    kill_with_guard(&disks.place, run, &disks.directories[1]);
    assert!(!disks.left().is_empty());
    let quick = ["--set", "clients=1"];
    let next = Place::finish(disks.place.fast(&[&strs(&targets)[..], &quick].concat())).measured();
    for directory in &disks.directories {
        let command = format!("`cachedyno doctor --clean --disk {}`", directory.display());
        let is_left = fs::read_dir(directory).unwrap().count() > 1;
        assert_eq!(next.stderr.contains(&command), is_left, "{}", next.stderr);
        doctor(&disks.place, directory, &["--clean"]).code(0);
    }
    assert_eq!(disks.left(), Vec::<String>::new());
    for directory in &disks.directories {
        assert_eq!(fs::read_to_string(directory.join("foreign")).unwrap(), "foreign");
    }
}

#[test]
fn an_interrupted_run_is_resumed_in_the_same_directories() {
    let disks = TwoDisks::new();
    let targets = disks.targets("files");
    let more = ["--set", "clients=1", "--set", "blocks_min=12", "--set", "blocks_max=12"];
    let run = Started::new(disks.place.fast(&[&strs(&targets)[..], &more].concat()));
    wait_until("a trial has ended", Duration::from_secs(60), || {
        (trials_so_far(&disks.place.records()) > 0).then_some(())
    });
    run.signal(Signal::SIGINT);
    run.finish_within(Duration::from_secs(60)).code(130);
    let moved = disks.place.path().join("moved");
    fs::rename(&disks.directories[0], &moved).unwrap();
    let resume = ["--resume", "latest", "--format", "json"];
    let refused = Place::finish(disks.place.run(&resume)).code(2).stderr;
    assert!(
        refused.contains("`nvme:files`") && refused.contains("is not a directory"),
        "{refused}"
    );
    fs::rename(&moved, &disks.directories[0]).unwrap();
    let summary = Place::finish(disks.place.run(&resume)).measured().json();
    for name in ["nvme:files", "hdd:files"] {
        assert!(count(row(&summary, name, "read"), "ok") > 0);
    }
    assert_eq!(disks.left(), Vec::<String>::new());
}

#[test]
fn wrong_directories_are_usage_errors() {
    let place = Place::new();
    let file = place.write("file", "");
    for (target, problem) in [
        ("nvme:files=/no/such/place".to_string(), "`/no/such/place` is not a directory"),
        (format!("nvme:files={}", file.display()), "is not a directory"),
        ("nvme:files=./here".to_string(), "is not an absolute directory"),
        ("nvme:files=here".to_string(), "or an absolute directory"),
    ] {
        let stderr = Place::finish(place.fast(&["--target", &target])).code(2).stderr;
        assert!(stderr.contains(problem) && stderr.contains("expected"), "{target}: {stderr}");
    }
    assert!(place.all_records().is_empty());
}

/// Control groups of this user's runs in the hierarchy of disks, both versions.
fn disk_groups() -> Vec<String> {
    let mounts = ["/sys/fs/cgroup/blkio", "/sys/fs/cgroup"];
    let entries = mounts.iter().filter_map(|mount| fs::read_dir(mount).ok()).flatten();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with("cachedyno-")).collect()
}

#[test]
fn a_throttled_disk_is_marked_everywhere_and_counted() {
    let disks = TwoDisks::new();
    let targets = disks.targets("zend-file").map(|word| word.replace("hdd:", "slow:"));
    let limit = ["--set", "disk_limit.slow=4MiB/s,500iops", "--set", "profile=cold"];
    let arguments = [&limit[..], &["--set", "keys=100"], &strs(&targets)].concat();
    let finished = Place::finish(super::app_cache::small(&disks.place, &arguments));
    let summary = finished.json();
    let slow = target(&summary, "slow:zend-file");
    if let Some(why) = slow["not_run"].as_str() {
        // Not measured, with the reason and the cure, and the other target is.
        assert!(why.contains("disk_limit cannot be enforced") && why.contains("expected"), "{why}");
        assert_eq!(finished.code(3).json()["targets"][0]["not_run"], Value::Null);
        eprintln!("skipped: {why}");
        return;
    }
    let summary = finished.measured().json();
    assert_eq!(slow["disk_limit"], "4 MiB/s and 500 operations/s");
    assert_eq!(target(&summary, "nvme:zend-file")["disk_limit"], Value::Null);
    let read =
        among(&summary["facts"], |f| f["target"] == "slow:zend-file" && f["name"] == "disk_reads");
    assert!(read[0]["value"]["center"].as_f64().unwrap() > 0.0, "{read:?}");
    let warnings = among(&summary["conditions"]["facts"], |f| {
        f["warning"].as_str().is_some_and(|text| text.contains("on the same disk"))
    });
    assert_eq!(warnings.len(), 0, "a throttled disk differs: {warnings:?}");
    let text = disks.place.on_records(&["show", "latest"]).stdout;
    let said = "its disk was throttled by the kernel to 4 MiB/s and 500 operations/s: not a real";
    assert!(text.contains("slow:zend-file") && text.contains(said), "{text}");
    assert_eq!(disks.left(), Vec::<String>::new());
}

#[test]
fn a_killed_run_leaves_no_group_of_its_throttled_disk() {
    let disks = TwoDisks::new();
    let [_, target, ..] = disks.targets("redis");
    if !installed(&["redis-server"]) {
        return;
    }
    let more = ["--set", "disk_limit.nvme=100MiB/s", "--set", "redis.appendonly=yes"];
    let long = ["--set", "clients=1", "--set", "blocks_min=400", "--set", "blocks_max=400"];
    let arguments = [&["--target", &target], &more[..], &long].concat();
    let mut run = Started::new(disks.place.fast(&arguments));
    let own = format!("-{}.", run.pid());
    let is_own = |name: &String| name.contains(&own);
    let has_group =
        wait_until("a trial has a group, or it is impossible", Duration::from_secs(60), || {
            if disk_groups().iter().any(is_own) {
                Some(true)
            } else {
                (!run.is_running()).then_some(false)
            }
        });
    if !has_group {
        eprintln!("skipped: a disk cannot be throttled here");
        return;
    }
    run.signal(Signal::SIGKILL);
    run.finish_within(Duration::from_secs(20));
    wait_until("the guard has removed everything", Duration::from_secs(20), || {
        (disks.left().is_empty() && !disk_groups().iter().any(is_own)).then_some(())
    });
}

#[test]
fn wrong_limits_of_disks_are_usage_errors() {
    let place = Place::new();
    for (targets, set, problem) in [
        (["--target", "slow:files"], "disk_limit.slow=20", "as in `20MiB/s,500iops`"),
        (["--target", "slow:files"], "disk_limit.hdd=1MiB/s", "no chosen target has this label"),
        (["--target", "slow:files"], "disk_limit=1MiB/s", "disk_limit.LABEL"),
        (["--target", "x:redis=redis://h"], "disk_limit.x=1iops", "is a server at a URL"),
    ] {
        let arguments = [&targets[..], &["--set", set]].concat();
        let stderr = Place::finish(place.fast(&arguments)).code(2).stderr;
        assert!(stderr.contains(problem), "{set}: {stderr}");
    }
}
