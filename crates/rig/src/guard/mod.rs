//! A second process that cleans up after this one, however it ends.
//!
//! The guard holds the read end of a pipe; this process holds the only write end (closed on exec)
//! and sends the directories and processes that it owns. When the pipe closes, because of a normal
//! exit, a crash or `kill -9`, the guard kills the remaining processes, waits until they have ended
//! and removes the directories. It runs in its own session and ignores SIGINT, SIGTERM and SIGHUP.
//!
//! - `protocol`: the messages sent through the pipe.
//! - `cleaner`: the guard process.

mod cleaner;
mod protocol;

pub use cleaner::guard_main;

use crate::child;
use crate::error::{Result, RigError};
use crate::owner::Owner;
use crate::procfs::Identity;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use protocol::Line;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Hidden argument that turns the program into the guard: it then calls [`guard_main`].
pub const GUARD_ARGUMENT: &str = "rig-guard";

/// The only line that the guard prints on standard output, when it is ready.
const READY: &str = "cachedyno guard ready";

const READY_WITHIN: Duration = Duration::from_secs(10);

/// Handle to the guard process, shared by all clones. Dropping the last one makes the guard remove
/// everything that is still owned, and waits until it has exited.
#[derive(Clone, Debug)]
pub struct Guard(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// `None` only while dropping.
    pipe: Mutex<Option<ChildStdin>>,
    child: Mutex<Child>,
    owner: Option<Owner>,
}

impl Guard {
    /// Starts this program again as the guard, with [`GUARD_ARGUMENT`].
    pub fn start() -> Result<Self> {
        let mut command = child::command(child::own_program());
        command.arg(GUARD_ARGUMENT);
        Self::start_as(command)
    }

    /// Starts `command` as the guard: a program that calls [`guard_main`] with its standard input.
    pub fn start_as(mut command: Command) -> Result<Self> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .current_dir("/")
            .spawn()
            .map_err(|e| failed("could not be started", &e))?;
        let ready = child.stdout.take().map(|out| wait_until_ready(BufReader::new(out)));
        if let Some(Err(reason)) = ready {
            // It is unusable and owns nothing yet.
            let _ = child.kill();
            let _ = child.wait();
            return Err(RigError::Guard { problem: "did not get ready", reason });
        }
        let pipe = Mutex::new(child.stdin.take());
        let owner = Owner::of_this_process(child.id());
        Ok(Self(Arc::new(Inner { pipe, child: Mutex::new(child), owner })))
    }

    /// Identity of this process and the guard, recorded for later runs; `None` if `/proc` cannot be
    /// read.
    pub(crate) fn owner(&self) -> Option<&Owner> {
        self.0.owner.as_ref()
    }

    /// Process id of the guard, which is idle during the run.
    pub fn pid(&self) -> u32 {
        self.0.child.lock().unwrap_or_else(PoisonError::into_inner).id()
    }

    /// Makes the guard remove `directory` if this process does not. The guard only removes
    /// directories that contain the marker file `.cachedyno-owned`; the path must be absolute.
    pub fn own_directory(&self, directory: &Path) -> Result<()> {
        self.send(&Line::OwnDirectory(directory.into()))
    }

    /// Releases a directory that was removed or is no longer ours.
    pub fn disown_directory(&self, directory: &Path) -> Result<()> {
        self.send(&Line::DisownDirectory(directory.into()))
    }

    /// Makes the guard kill the process `pid` and the group that it leads, if this process does
    /// not. The start time is sent too, so a later process that reuses the id is never killed. A
    /// process that has already ended is ignored.
    pub fn own_process(&self, pid: u32) -> Result<()> {
        match Identity::of(pid) {
            Some(identity) => self.send(&Line::OwnProcess(identity)),
            None => Ok(()),
        }
    }

    /// Releases a process that has ended and was waited for.
    pub fn disown_process(&self, pid: u32) -> Result<()> {
        self.send(&Line::DisownProcess(pid))
    }

    /// A single write of less than a page is atomic, and data in the pipe survives this process.
    fn send(&self, line: &Line) -> Result<()> {
        let mut pipe = self.0.pipe.lock().unwrap_or_else(PoisonError::into_inner);
        match pipe.as_mut().map(|p| p.write_all(&line.encode())) {
            Some(Err(e)) => Err(failed("has ended", &e)),
            Some(Ok(())) | None => Ok(()),
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        drop(self.pipe.get_mut().unwrap_or_else(PoisonError::into_inner).take());
        // An error of the wait cannot be reported from here.
        let _ = self.child.get_mut().unwrap_or_else(PoisonError::into_inner).wait();
    }
}

fn failed(problem: &'static str, error: &std::io::Error) -> RigError {
    RigError::Guard { problem, reason: error.to_string() }
}

/// Waits for the line [`READY`]. The program may print other lines first (a test harness does).
fn wait_until_ready(mut out: BufReader<ChildStdout>) -> std::result::Result<(), String> {
    let deadline = Instant::now() + READY_WITHIN;
    let mut line = String::new();
    loop {
        if out.buffer().is_empty() {
            let remaining = deadline.saturating_duration_since(Instant::now());
            let timeout = PollTimeout::try_from(remaining).unwrap_or(PollTimeout::ZERO);
            let mut fds = [PollFd::new(out.get_ref().as_fd(), PollFlags::POLLIN)];
            match poll(&mut fds, timeout) {
                Ok(0) => return Err(format!("no reply within {READY_WITHIN:?}")),
                Err(nix::errno::Errno::EINTR) => continue,
                Err(e) => return Err(e.to_string()),
                Ok(_) => {}
            }
        }
        line.clear();
        match out.read_line(&mut line) {
            Ok(0) => return Err("it exited immediately".into()),
            Ok(_) if line.trim_end().ends_with(READY) => return Ok(()),
            Ok(_) => {}
            Err(e) => return Err(e.to_string()),
        }
    }
}
