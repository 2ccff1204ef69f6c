//! Processes listed in /proc.

use std::fs::{self, DirEntry};
use std::io;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Polls every few milliseconds until `ask` returns a value; panics with `what` on timeout.
pub(crate) fn wait_until<T>(what: &str, within: Duration, mut ask: impl FnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(started.elapsed() < within, "timed out after {within:?} waiting until {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

pub(crate) fn pids() -> Vec<u32> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries.filter_map(|e| e.ok()?.file_name().to_str()?.parse().ok()).collect()
}

/// Name, state and parent of a process; `None` if it does not exist.
fn stat(pid: u32) -> Option<(String, char, u32)> {
    stat_in(Path::new(&format!("/proc/{pid}")))
}

fn stat_in(directory: &Path) -> Option<(String, char, u32)> {
    let text = fs::read_to_string(directory.join("stat")).ok()?;
    let (before, after) = text.rsplit_once(')')?;
    let name = before.split_once('(')?.1.to_string();
    let mut fields = after.split_whitespace();
    Some((name, fields.next()?.chars().next()?, fields.next()?.parse().ok()?))
}

/// A running child of `parent`, by program name.
pub(crate) fn child_named(parent: u32, name: &str) -> Option<u32> {
    pids().into_iter().find(|pid| {
        stat(*pid).is_some_and(|(own, state, ppid)| ppid == parent && own == name && state != 'Z')
    })
}

/// A running child of `parent` with `word` among its arguments.
pub(crate) fn child_with(parent: u32, word: &str) -> Option<u32> {
    let children = pids().into_iter().filter(|pid| stat(*pid).is_some_and(|(.., p)| p == parent));
    children.into_iter().find(|pid| command_line(*pid).split(' ').any(|own| own == word))
}

/// Stops a server with SIGSTOP and waits until all its threads have stopped and its clients have
/// stalled.
pub(crate) fn freeze(pid: u32) {
    kill(Pid::from_raw(pid.cast_signed()), Signal::SIGSTOP).unwrap();
    let is_stopped = |task: io::Result<DirEntry>| {
        stat_in(&task.unwrap().path()).is_some_and(|(_, state, _)| state == 'T')
    };
    wait_until("the server has stopped", Duration::from_secs(5), || {
        fs::read_dir(format!("/proc/{pid}/task")).unwrap().all(is_stopped).then_some(())
    });
    thread::sleep(Duration::from_millis(100));
}

/// Arguments of a process, joined by blanks; empty if it does not exist.
pub(crate) fn command_line(pid: u32) -> String {
    let bytes = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&bytes).replace('\0', " ")
}

/// Running processes whose command line, environment or working directory contains `path`.
pub(crate) fn mentioning(path: &Path) -> Vec<String> {
    let wanted = path.to_str().unwrap();
    let names = |pid: &u32| {
        let read = |file: &str| fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        let directory = fs::read_link(format!("/proc/{pid}/cwd")).unwrap_or_default();
        directory.starts_with(path)
            || [read("cmdline"), read("environ")]
                .iter()
                .any(|bytes| String::from_utf8_lossy(bytes).contains(wanted))
    };
    let alive = |pid: &u32| stat(*pid).is_some_and(|(_, state, _)| state != 'Z');
    let found = pids().into_iter().filter(alive).filter(names);
    found.map(|pid| format!("{pid} {}", command_line(pid))).collect()
}
