//! Starts and stops a real memcached.

#![expect(clippy::unwrap_used, reason = "test helpers panic and print like tests")]

mod common;
mod starting;

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use cachedyno_rig::{Pinning, RigError, SearchPath, Server, ServerSpec, process_cpu_ns};
use model::{Endpoint, ErrorClass, NetAddress, Product};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use common::{entries, eventually, guard, runs};
use starting::start;

fn spec(base: &Path, settings: &[(&str, &str)]) -> ServerSpec {
    let settings = settings.iter().map(|(n, v)| ((*n).to_string(), (*v).to_string()));
    ServerSpec { settings: settings.collect(), ..ServerSpec::new(base) }
}

fn socket(server: &Server) -> PathBuf {
    match server.endpoint() {
        Endpoint::Memcached(memcached) => match &memcached.servers[..] {
            [NetAddress::Unix(path)] => path.clone(),
            other => panic!("{other:?}"),
        },
        other => panic!("{other} is not memcached"),
    }
}

fn ask(server: &Server, command: &str) -> String {
    let mut stream = UnixStream::connect(socket(server)).unwrap();
    write!(stream, "{command}\r\nquit\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn memcached_runs_with_its_settings_and_leaves_nothing_behind() {
    if SearchPath::of_process().find(&["memcached"]).is_none() {
        eprintln!("skipped: memcached is not installed");
        return;
    }
    let base = tempfile::tempdir().unwrap();
    let guard = guard();
    let cpus = Pinning::for_this_process().server;
    let settings = [("memory", "16"), ("threads", "2"), ("evictions", "no"), ("growth", "1.5")];
    let more = [("item_size", "2m"), ("connections", "77")];
    let mut spec = spec(base.path(), &[&settings[..], &more].concat());
    spec.cpus = Some(cpus.clone());
    let server = start(Product::Memcached, &guard, &spec).unwrap();
    assert_eq!(server.died(), None);
    let stats = ask(&server, "stats settings");
    for line in [
        "maxbytes 16777216",
        "num_threads 2",
        "evictions off",
        "growth_factor 1.50",
        "item_size_max 2097152",
        "maxconns 77",
        "umask 700",
    ] {
        assert!(stats.contains(&format!("STAT {line}\r\n")), "no {line} in {stats}");
    }
    // It opens no port, so a second server can start at the same time.
    start(Product::Memcached, &guard, &spec).unwrap().stop().unwrap();
    assert!(process_cpu_ns(server.pid()).unwrap() > 0);
    let proc_status = fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let allowed = proc_status.lines().find_map(|l| l.strip_prefix("Cpus_allowed_list:")).unwrap();
    assert_eq!(allowed.trim().parse(), Ok(cpus[0]), "pinned to {cpus:?}");

    let (pid, sockets) = (server.pid(), socket(&server).parent().unwrap().to_path_buf());
    assert!(sockets.exists());
    server.stop().unwrap();
    assert!(!runs(pid) && !sockets.exists());
    assert!(entries(base.path()).is_empty());
}

/// Writes 40,000 values of 1,000 bytes, 40 MB, into 16 MiB of memory and a file of 128 MiB.
#[test]
fn values_beyond_the_memory_go_to_a_file_that_is_removed() {
    if SearchPath::of_process().find(&["memcached"]).is_none() {
        eprintln!("skipped: memcached is not installed");
        return;
    }
    let base = tempfile::tempdir().unwrap();
    let guard = guard();
    let settings = [("memory", "16"), ("flash", "128"), ("ext_page_size", "8")];
    let more = [("ext-threads", "2"), ("slab_automove_window", "3")];
    let spec = spec(base.path(), &[&settings[..], &more].concat());
    let server = start(Product::Memcached, &guard, &spec).unwrap();
    let number = |stats: &str, name: &str| {
        let line = stats.lines().find_map(|line| line.strip_prefix(&format!("STAT {name} ")));
        line.and_then(|number| number.trim().parse::<u64>().ok())
    };
    let Some(0) = number(&ask(&server, "stats"), "extstore_objects_written") else {
        eprintln!("skipped: memcached is built without extstore");
        return;
    };
    let mut stream = UnixStream::connect(socket(&server)).unwrap();
    let value = "v".repeat(1_000);
    for n in 0..40_000 {
        write!(stream, "set key:{n} 0 0 1000 noreply\r\n{value}\r\n").unwrap();
    }
    write!(stream, "quit\r\n").unwrap();
    stream.read_to_string(&mut String::new()).unwrap();
    let stats = ask(&server, "stats");
    assert!(number(&stats, "extstore_objects_written") > Some(1_000), "{stats}");
    let directory = fs::read_dir(base.path()).unwrap().next().unwrap().unwrap().path();
    assert!(directory.join("values").is_file(), "{}", directory.display());
    server.stop().unwrap();
    assert!(entries(base.path()).is_empty());
}

#[test]
fn the_reason_of_its_death_is_reported() {
    if SearchPath::of_process().find(&["memcached"]).is_none() {
        eprintln!("skipped: memcached is not installed");
        return;
    }
    let (base, guard) = (tempfile::tempdir().unwrap(), guard());
    let server = start(Product::Memcached, &guard, &spec(base.path(), &[])).unwrap();
    kill(Pid::from_raw(server.pid().cast_signed()), Signal::SIGKILL).unwrap();
    eventually("the server ends", || server.died().is_some());
    assert!(server.died().unwrap().contains("SIGKILL"));
}

#[test]
fn an_invalid_setting_is_reported_with_its_message() {
    if SearchPath::of_process().find(&["memcached"]).is_none() {
        eprintln!("skipped: memcached is not installed");
        return;
    }
    let (base, guard) = (tempfile::tempdir().unwrap(), guard());
    let result = start(Product::Memcached, &guard, &spec(base.path(), &[("growth", "0.5")]));
    let message = result.unwrap_err().to_string();
    assert!(message.contains("Factor must be greater than 1"), "{message}");
    assert!(entries(base.path()).is_empty());
}

#[test]
fn the_error_says_how_to_install_it() {
    let (base, guard) = (tempfile::tempdir().unwrap(), guard());
    let search = SearchPath::new([base.path().to_path_buf()]);
    let spec = ServerSpec { search, ..ServerSpec::new(base.path()) };
    let error: RigError = start(Product::Memcached, &guard, &spec).unwrap_err();
    assert_eq!(error.class(), ErrorClass::Missing);
    let message = error.to_string();
    assert_eq!(message, "memcached is not installed (apt-get install memcached)");
}
