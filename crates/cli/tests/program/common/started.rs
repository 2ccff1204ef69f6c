//! A running `cachedyno` with a deadline.

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use serde_json::Value;

use super::proc::wait_until;

/// A process and its output; killed if the test fails.
pub(crate) struct Started {
    child: Child,
    stdout: Option<JoinHandle<String>>,
    stderr: Option<JoinHandle<String>>,
    since: Instant,
}

/// A process that has ended.
#[derive(Debug)]
pub(crate) struct Finished {
    /// Exit code; `None` if a signal killed it.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) took: Duration,
}

impl Started {
    pub(crate) fn new(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = child.stdout.take().map(collect);
        let stderr = child.stderr.take().map(collect);
        Self { child, stdout, stderr, since: Instant::now() }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id().cast_signed()), signal).unwrap();
    }

    /// Signals the whole process group, as Ctrl-C in a terminal does.
    pub(crate) fn signal_group(&self, signal: Signal) {
        killpg(Pid::from_raw(self.child.id().cast_signed()), signal).unwrap();
    }

    /// Waits for the process to end; panics on timeout.
    pub(crate) fn finish_within(mut self, within: Duration) -> Finished {
        let status = wait_until("cachedyno ends", within, || self.child.try_wait().unwrap());
        let text = |reader: Option<JoinHandle<String>>| reader.unwrap().join().unwrap();
        Finished {
            code: status.code(),
            took: self.since.elapsed(),
            stdout: text(self.stdout.take()),
            stderr: text(self.stderr.take()),
        }
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn collect(mut from: impl Read + Send + 'static) -> JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        from.read_to_end(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

impl Finished {
    /// Panics with the whole output unless the exit code is `expected`.
    #[track_caller]
    pub(crate) fn code(self, expected: i32) -> Self {
        assert_eq!(self.code, Some(expected), "{self:#?}");
        self
    }

    /// Panics unless the run completed, VALID or not. Short runs may be disturbed by noise.
    #[track_caller]
    pub(crate) fn measured(self) -> Self {
        assert!(matches!(self.code, Some(0 | 4)), "{self:#?}");
        self
    }

    /// Asserts exit code 2 and one error line that contains all of `parts`.
    #[track_caller]
    pub(crate) fn usage_error(self, parts: &[&str]) -> Self {
        self.code(2).error(parts)
    }

    /// Asserts one error line that contains all of `parts`.
    #[track_caller]
    pub(crate) fn error(self, parts: &[&str]) -> Self {
        let lines: Vec<&str> = self.stderr.lines().filter(|l| l.starts_with("error:")).collect();
        assert_eq!(lines.len(), 1, "{self:#?}");
        for part in parts {
            assert!(lines[0].contains(part), "no `{part}` in {self:#?}");
        }
        assert_eq!(self.stdout, "", "an error prints no result");
        self
    }

    /// The summary printed as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        let parsed = serde_json::from_str(&self.stdout);
        parsed.unwrap_or_else(|e| panic!("invalid JSON: {e}: {self:#?}"))
    }
}
