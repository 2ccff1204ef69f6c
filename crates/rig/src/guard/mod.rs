//! A second process that cleans up after this one, whatever ends it.
//!
//! The guard holds the reading end of a pipe whose only writing end is ours (closed on exec).
//! Through it we tell which directories and processes we own. When the pipe closes, by a normal
//! end, a crash or `kill -9`, the guard kills the processes that are left, waits for their end and
//! removes the directories. It has a session of its own and ignores SIGINT, SIGTERM and SIGHUP.
//!
//! - `protocol`: the lines of the pipe.
//! - `cleaner`: the guard's own side.

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

/// The hidden argument with which the program becomes the guard; it then calls [`guard_main`].
pub const GUARD_ARGUMENT: &str = "rig-guard";

/// The guard's one line on its standard output, once it is ready.
const READY: &str = "cachedyno guard ready";

const READY_WITHIN: Duration = Duration::from_secs(10);

/// Our side of the guard. Clones share one guard process; when the last is dropped, the guard
/// removes whatever is still owned, and its end is waited for.
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
        let program = std::env::current_exe().map_err(|e| failed("could not be started", &e))?;
        let mut command = child::command(program);
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
            // It cannot be used; without a pipe it has nothing to clean and ends.
            let _ = child.kill();
            let _ = child.wait();
            return Err(RigError::Guard { problem: "did not get ready", reason });
        }
        let pipe = Mutex::new(child.stdin.take());
        let owner = Owner::of_this_process(child.id());
        Ok(Self(Arc::new(Inner { pipe, child: Mutex::new(child), owner })))
    }

    /// This process and the guard, as they are told to later runs; `None` where `/proc` does not
    /// tell.
    pub(crate) fn owner(&self) -> Option<&Owner> {
        self.0.owner.as_ref()
    }

    /// Process id of the guard, which does nothing while the run goes on.
    pub fn pid(&self) -> u32 {
        self.0.child.lock().unwrap_or_else(PoisonError::into_inner).id()
    }

    /// From now on the guard removes `directory` if we do not. Only a directory that holds the
    /// marker file `.cachedyno-owned` is ever removed; the path must be absolute.
    pub fn own_directory(&self, directory: &Path) -> Result<()> {
        self.tell(&Line::OwnDirectory(directory.into()))
    }

    /// The directory is gone, or no longer ours.
    pub fn disown_directory(&self, directory: &Path) -> Result<()> {
        self.tell(&Line::DisownDirectory(directory.into()))
    }

    /// From now on the guard kills the process `pid`, and what is left of the group that it leads,
    /// if we do not. Its start time goes along, so that a process that gets the same id later is
    /// never killed. A process that ended already is nobody's and is passed over.
    pub fn own_process(&self, pid: u32) -> Result<()> {
        match Identity::of(pid) {
            Some(identity) => self.tell(&Line::OwnProcess(identity)),
            None => Ok(()),
        }
    }

    /// The process has ended and was waited for.
    pub fn disown_process(&self, pid: u32) -> Result<()> {
        self.tell(&Line::DisownProcess(pid))
    }

    /// One write of less than a page is never torn, and what is in the pipe outlives us.
    fn tell(&self, line: &Line) -> Result<()> {
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
        // It was our child to the end; there is nobody to tell if it cannot be waited for.
        let _ = self.child.get_mut().unwrap_or_else(PoisonError::into_inner).wait();
    }
}

fn failed(problem: &'static str, error: &std::io::Error) -> RigError {
    RigError::Guard { problem, reason: error.to_string() }
}

/// A program may print other lines first (a test harness does).
fn wait_until_ready(mut out: BufReader<ChildStdout>) -> std::result::Result<(), String> {
    let deadline = Instant::now() + READY_WITHIN;
    let mut line = String::new();
    loop {
        if out.buffer().is_empty() {
            let left = deadline.saturating_duration_since(Instant::now());
            let timeout = PollTimeout::try_from(left).unwrap_or(PollTimeout::ZERO);
            let mut fds = [PollFd::new(out.get_ref().as_fd(), PollFlags::POLLIN)];
            match poll(&mut fds, timeout) {
                Ok(0) => return Err(format!("no word from it within {READY_WITHIN:?}")),
                Err(nix::errno::Errno::EINTR) => continue,
                Err(e) => return Err(e.to_string()),
                Ok(_) => {}
            }
        }
        line.clear();
        match out.read_line(&mut line) {
            Ok(0) => return Err("it ended at once".into()),
            Ok(_) if line.trim_end().ends_with(READY) => return Ok(()),
            Ok(_) => {}
            Err(e) => return Err(e.to_string()),
        }
    }
}
