//! Control groups with a memory limit and their own swap, with a real server in them.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "test helpers panic and print like tests"
)]

mod common;
mod starting;

use cachedyno_rig::{Guard, MemoryGroup, Scratch, SearchPath, Server, ServerSpec, orphaned};
use common::{entries, eventually, guard, role, runs};
use model::{Endpoint, ErrorClass, MemoryPlan, NetAddress, Product};
use nix::sys::signal::{Signal, kill};
use nix::sys::statfs::{EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC, statfs};
use nix::unistd::{Pid, geteuid};
use starting::start;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const MIB: u64 = 1 << 20;
const BEYOND: MemoryPlan = MemoryPlan { limit_bytes: 64 * MIB, swap_bytes: 256 * MIB };

/// Fills a server beyond its memory limit, prints its ids and waits to be killed.
#[test]
#[ignore = "a role that other tests start as a separate process"]
fn role_owner() {
    let base = PathBuf::from(std::env::var_os("RIG_TEST_BASE").unwrap());
    let (guard, group, server) = started(&base, BEYOND);
    fill(&server, 100);
    let mut out = std::io::stdout();
    let (pid, guard) = (server.pid(), guard.pid());
    writeln!(out, "owned {pid} {guard} {}", group.path().display()).unwrap();
    out.flush().unwrap();
    std::thread::sleep(Duration::from_secs(600));
}

fn started(base: &Path, plan: MemoryPlan) -> (Guard, MemoryGroup, Server) {
    let guard = guard();
    let group = MemoryGroup::new(&guard, plan, base).unwrap();
    let spec = ServerSpec { group: Some(group.path().into()), ..ServerSpec::new(base) };
    let spec = ServerSpec { settings: [("save".into(), String::new())].into(), ..spec };
    let server = start(Product::Redis, &guard, &spec).unwrap();
    (guard, group, server)
}

fn connected(server: &Server) -> UnixStream {
    let Endpoint::Redis { address: NetAddress::Unix(path), .. } = server.endpoint() else {
        panic!("{} is not on a socket", server.endpoint())
    };
    UnixStream::connect(path).unwrap()
}

/// Writes values of 1 MiB; true if the server accepted all of them.
fn fill(server: &Server, values: usize) -> bool {
    let mut stream = connected(server);
    let value = vec![b'x'; MIB as usize];
    (0..values).all(|n| {
        let key = format!("key{n:04}");
        let head = format!("*3\r\n$3\r\nSET\r\n$7\r\n{key}\r\n${}\r\n", value.len());
        let request = [head.as_bytes(), &value, b"\r\n"].concat();
        let mut reply = [0; 5];
        stream.write_all(&request).is_ok()
            && stream.read_exact(&mut reply).is_ok()
            && &reply == b"+OK\r\n"
    })
}

/// Sizes of the active swap files below a directory, in bytes.
fn active_swap(directory: &Path) -> Vec<u64> {
    let swaps = fs::read_to_string("/proc/swaps").unwrap();
    let lines = swaps.lines().filter(|line| line.starts_with(directory.to_str().unwrap()));
    lines
        .map(|line| line.split_whitespace().nth(2).unwrap().parse::<u64>().unwrap() << 10)
        .collect()
}

/// Serialises the tests: all swap files have the same priority, so pages of one test would also be
/// in the swap files of others.
static EXCLUSIVE: Mutex<()> = Mutex::new(());

/// A directory on a disk that supports swap, for one test at a time. Otherwise prints that the test
/// is skipped and returns `None`.
fn swappable() -> Option<(TempDir, MutexGuard<'static, ()>)> {
    let exclusive = EXCLUSIVE.lock().unwrap_or_else(PoisonError::into_inner);
    let base = tempfile::tempdir().unwrap();
    let missing = if !geteuid().is_root() {
        "only root can enable swap"
    } else if ![EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC]
        .contains(&statfs(base.path()).unwrap().filesystem_type())
    {
        "the directory for temporary files is neither on ext4 nor on XFS"
    } else if SearchPath::of_process().find(&["redis-server"]).is_none() {
        "redis-server is not installed"
    } else {
        match MemoryGroup::new(&guard(), BEYOND, base.path()) {
            Ok(_) => return Some((base, exclusive)),
            Err(e) if e.class() == ErrorClass::Missing => {
                println!("skipped: {e}");
                return None;
            }
            Err(e) => panic!("{e}"),
        }
    };
    println!("skipped: {missing}");
    None
}

#[test]
fn a_server_with_swap_exceeds_its_memory_limit_and_stops_within_seconds() {
    let Some((base, _exclusive)) = swappable() else { return };
    let (_guard, group, server) = started(base.path(), BEYOND);
    assert_eq!(active_swap(base.path()), [256 * MIB]);
    assert!(fill(&server, 100), "{:?}", server.died());
    let used = group.usage().unwrap();
    let swap = used.swap.unwrap();
    assert_eq!((used.oom_kills, swap.limit_bytes), (0, 256 * MIB));
    assert!(swap.used_bytes > 30 * MIB && swap.written_bytes > 30 * MIB, "{used:?}");
    assert!(used.peak_bytes.unwrap_or(0) <= 64 * MIB, "{used:?}");
    // Swapped-out values are read back unchanged.
    let mut stream = connected(&server);
    stream.write_all(b"STRLEN key0000\r\nGETRANGE key0001 0 1\r\nQUIT\r\n").unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    assert_eq!(reply, ":1048576\r\n$2\r\nxx\r\n+OK\r\n");
    assert!(group.usage().unwrap().swap.unwrap().read_bytes > 0, "{:?}", group.usage());

    let started_at = Instant::now();
    server.stop().unwrap();
    group.remove().unwrap();
    assert!(started_at.elapsed() < Duration::from_secs(5), "{:?}", started_at.elapsed());
    assert_eq!(active_swap(base.path()), []);
    assert!(entries(base.path()).is_empty());
}

#[test]
fn without_swap_a_server_beyond_its_limit_is_killed() {
    let Some((base, _exclusive)) = swappable() else { return };
    let plan = MemoryPlan { swap_bytes: 0, ..BEYOND };
    let (_guard, group, server) = started(base.path(), plan);
    assert_eq!(active_swap(base.path()), []);
    assert!(!fill(&server, 100));
    eventually("the server has ended", || server.died().is_some());
    let used = group.usage().unwrap();
    assert!(used.oom_kills >= 1 && used.swap.is_none(), "{used:?}");
}

#[test]
fn a_server_that_fills_its_swap_is_killed() {
    let Some((base, _exclusive)) = swappable() else { return };
    let plan = MemoryPlan { swap_bytes: 64 * MIB, ..BEYOND };
    let (_guard, group, server) = started(base.path(), plan);
    assert!(!fill(&server, 300));
    eventually("the server has ended", || server.died().is_some());
    assert!(group.usage().unwrap().oom_kills >= 1, "{:?}", group.usage());
}

/// The server is busy with swapped-out data for longer than the test takes.
#[test]
fn a_heavily_swapping_server_is_stopped_within_seconds() {
    let Some((base, _exclusive)) = swappable() else { return };
    let (_guard, group, server) = started(base.path(), BEYOND);
    assert!(fill(&server, 200), "{:?}", server.died());
    // Each round reads back every page, and one round takes seconds.
    let mut stream = connected(&server);
    let round = "BITCOUNT key0000\r\n".to_string();
    let rounds: String =
        (0..2000).map(|n| round.replace("0000", &format!("{:04}", n % 200))).collect();
    stream.write_all(rounds.as_bytes()).unwrap();
    let before = group.usage().unwrap().swap.unwrap().read_bytes;
    eventually("it reads from swap", || {
        group.usage().unwrap().swap.unwrap().read_bytes > before + 50 * MIB
    });
    let started_at = Instant::now();
    server.stop().unwrap();
    group.remove().unwrap();
    assert!(started_at.elapsed() < Duration::from_secs(5), "{:?}", started_at.elapsed());
    assert_eq!(active_swap(base.path()), []);
}

/// Starts the role; returns it, the ids of its server and guard, and its control group.
fn owner(base: &Path) -> (Child, u32, u32, PathBuf) {
    let mut owner = role("role_owner")
        .env("RIG_TEST_BASE", base)
        .env("TMPDIR", base)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(owner.stdout.take().unwrap()).lines();
    let line = lines.map(Result::unwrap).find(|l| l.contains("owned ")).unwrap();
    let words: Vec<&str> = line.split_once("owned ").unwrap().1.split(' ').collect();
    (owner, words[0].parse().unwrap(), words[1].parse().unwrap(), words[2].into())
}

#[test]
fn a_killed_owner_leaves_no_swap() {
    let Some((base, _exclusive)) = swappable() else { return };
    let (mut owner, server, guard, group) = owner(base.path());
    assert_eq!(active_swap(base.path()), [256 * MIB]);
    owner.kill().unwrap();
    owner.wait().unwrap();
    eventually("the guard cleans up and ends", || !runs(guard));
    assert!(!runs(server) && !group.exists());
    assert_eq!(active_swap(base.path()), []);
    assert!(entries(base.path()).is_empty());
}

#[test]
fn swap_left_by_owner_and_guard_is_found_and_removed() {
    let Some((base, _exclusive)) = swappable() else { return };
    let (mut owner, server, guard, group) = owner(base.path());
    let both = [guard, owner.id()].map(|pid| Pid::from_raw(pid.cast_signed()));
    for signal in [Signal::SIGSTOP, Signal::SIGKILL] {
        for pid in both {
            kill(pid, signal).unwrap();
        }
    }
    owner.wait().unwrap();
    eventually("all have ended", || !runs(server) && !runs(guard));
    assert_eq!(active_swap(base.path()), [256 * MIB]);
    let mut found = orphaned::look(&[base.path().into()], true);
    found.retain(|found| found.path.starts_with(base.path()) || found.path == group);
    assert!(found.len() >= 2 && found.iter().all(|found| found.is_orphaned), "{found:?}");
    let mut bytes: Vec<u64> = found.iter().map(orphaned::Found::bytes).collect();
    bytes.sort_unstable();
    assert!(bytes.last() > Some(&(256 * MIB)), "{bytes:?}");
    assert!(found.iter().all(|found| found.remove().unwrap()));
    assert_eq!(active_swap(base.path()), []);
    assert!(entries(base.path()).is_empty() && !group.exists());
}

#[test]
fn a_swap_file_with_another_hard_link_stays_active() {
    let Some((base, _exclusive)) = swappable() else { return };
    let guard = guard();
    let group = MemoryGroup::new(&guard, BEYOND, base.path()).unwrap();
    let [directory] = &entries(base.path())[..] else { panic!("one directory") };
    let file = base.path().join(directory).join("swap");
    let scratch = Scratch::new(&guard, base.path()).unwrap();
    fs::hard_link(&file, scratch.path().join("link")).unwrap();
    let error = scratch.remove().unwrap_err().to_string();
    assert!(error.contains("Operation not permitted"), "{error}");
    assert_eq!(active_swap(base.path()), [256 * MIB]);
    assert!(Command::new("swapoff").arg(&file).status().unwrap().success());
    group.remove().unwrap();
    drop(guard);
    assert!(entries(base.path()).is_empty());
}

#[test]
fn the_error_explains_why_swap_is_impossible() {
    let Some((base, _exclusive)) = swappable() else { return };
    let rejection = |disk: &Path, swap_bytes| {
        let plan = MemoryPlan { swap_bytes, ..BEYOND };
        let error = MemoryGroup::new(&guard(), plan, disk).unwrap_err();
        (error.class(), error.to_string())
    };
    let (class, why) = rejection(base.path(), 1 << 42);
    assert_eq!(class, ErrorClass::Full);
    for part in
        ["cannot swap to `", "of its disk can be used", "90 % of", "4 TiB are needed", "`--disk`"]
    {
        assert!(why.contains(part), "no `{part}` in {why}");
    }
    let shared = Path::new("/dev/shm");
    if !shared.is_dir() {
        println!("partly skipped: /dev/shm does not exist");
        return;
    }
    let (class, why) = rejection(shared, MIB);
    assert_eq!(class, ErrorClass::Other);
    for part in ["cannot swap to `/dev/shm`: Invalid argument", "such as ext4 or XFS: `--disk`"] {
        assert!(why.contains(part), "no `{part}` in {why}");
    }
    let ours = entries(shared).into_iter().filter(|name| name.starts_with("cachedyno-"));
    assert_eq!(ours.count(), 0);
}
