//! Faulty servers: the run ends with an error, in time and with limited memory.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::common::{Ran, Server, ours, tools};
use super::memory::peak_memory_kib;

/// Far less than the size of a gigantic or an endless reply.
const MEMORY_KIB_MAX: u64 = 200 << 10;
/// A server is considered hung after 30 s.
const PATIENCE: Duration = Duration::from_secs(60);

/// A scripted server on a TCP port.
struct Scripted {
    child: Child,
    port: String,
}

impl Scripted {
    fn new(script: &str) -> Self {
        let mut child = Command::new(ours())
            .args(["scripted-server", "--for", "120s", "--script", script])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        Self { port: line.trim().rsplit(':').next().unwrap().into(), child }
    }
}

impl Drop for Scripted {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts cachedyno against a port.
fn start(port: &str, arguments: &[&str]) -> Child {
    let mut command = Command::new(ours());
    command.args(["redis-benchmark", "-p", port, "-q", "-c", "5"]).args(arguments);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// Waits for the process, which must exit in time and with code 1.
fn failed(mut child: Child) -> Ran {
    let since = Instant::now();
    let mut peak_kib = 0;
    while child.try_wait().unwrap().is_none() {
        peak_kib = peak_kib.max(peak_memory_kib(child.id()).unwrap_or(0));
        if since.elapsed() > PATIENCE {
            child.kill().unwrap();
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let ran = Ran::of(&child.wait_with_output().unwrap()).code(1);
    assert!(peak_kib < MEMORY_KIB_MAX, "{peak_kib} KiB");
    ran
}

#[test]
fn every_fault_is_an_error() {
    let late = "faults-on=get,faults-after=100";
    for (script, words) in [
        (format!("error=1:OOM no room,{late}"), "Error from server: OOM no room"),
        (format!("error=1:LOADING it,{late}"), "Error from server: LOADING it"),
        (format!("error=1:MOVED 1 127.0.0.1:1,{late}"), "127.0.0.1:1"),
        (format!("malformed=1,{late}"), "a reply starts with byte 0x3f"),
        (format!("endless=1,{late}"), "a line is longer than 65536 bytes"),
        (format!("reset=1,{late}"), "connection reset by peer"),
        ("reset-after=50".into(), "connection reset by peer"),
        ("max-connections=3".into(), "ERR max number of clients reached"),
        ("close-on-accept".into(), "the server closed the connection"),
        ("error=1:LOADING it".into(), "LOADING it"),
        ("malformed=1".into(), "a reply starts with byte 0x3f"),
    ] {
        let server = Scripted::new(&script);
        failed(start(&server.port, &["-n", "2000", "-t", "get"])).with_stderr(words);
    }
}

#[test]
fn a_server_silent_for_half_a_minute_is_an_error() {
    if !tools() {
        return;
    }
    let late = "faults-on=get,faults-after=100";
    let servers: Vec<Scripted> = ["hang=1", "gigantic=1"]
        .iter()
        .map(|fault| Scripted::new(&format!("{fault},{late}")))
        .collect();
    let stopped = Server::new();
    let mut running: Vec<Child> =
        servers.iter().map(|s| start(&s.port, &["-n", "2000", "-t", "get"])).collect();
    let last = start(&stopped.port.to_string(), &["-n", "100000000", "-t", "get"]);
    std::thread::sleep(Duration::from_secs(1));
    stopped.signal(Signal::SIGSTOP);
    running.push(last);
    for child in running {
        failed(child).with_stderr("Error: the server has not answered for 30 s");
    }
}

#[test]
fn a_killed_server_is_an_error() {
    if !tools() {
        return;
    }
    let server = Server::new();
    let child = start(&server.port.to_string(), &["-n", "100000000", "-t", "get"]);
    std::thread::sleep(Duration::from_millis(700));
    server.signal(Signal::SIGKILL);
    failed(child).with_stderr("Error: connection to 127.0.0.1:");
}

impl Server {
    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.pid().cast_signed()), signal).unwrap();
    }
}
