//! Threads of the servers: how they are started, and how one that waits for its sockets is told
//! that there is something else to do.

use crate::cpu::pin_current_thread;
use crate::error::{Result, RigError};
use nix::errno::Errno;
use nix::sys::eventfd::{EfdFlags, EventFd};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::thread::{self, JoinHandle};

/// Starts a thread of a server that pins itself, tells whether that was allowed, and then works.
pub(super) fn spawn(
    server: &'static str,
    name: String,
    cpus: Vec<usize>,
    pinned: Sender<Result<()>>,
    work: impl FnOnce() + Send + 'static,
) -> Result<JoinHandle<()>> {
    let run = move || {
        // Who asks is gone only when another thread could not be started.
        let _ = pinned.send(pin_current_thread(&cpus));
        drop(pinned);
        work();
    };
    let refused = |source| RigError::Io { doing: "start a thread of", what: server.into(), source };
    thread::Builder::new().name(name).spawn(run).map_err(refused)
}

/// What the system said when a server was to wait for its sockets.
pub(super) fn refused(server: &'static str) -> impl Fn(Errno) -> RigError {
    move |e| RigError::Io {
        doing: "wait for the connections of",
        what: server.into(),
        source: e.into(),
    }
}

/// Wakes one thread, and tells it to end. The thread waits for the descriptor to become readable.
#[derive(Debug)]
pub(super) struct Wake {
    event: EventFd,
    stop: AtomicBool,
}

impl Wake {
    pub(super) fn new() -> nix::Result<Self> {
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        Ok(Self { event: EventFd::from_flags(flags)?, stop: AtomicBool::new(false) })
    }

    /// Wakes the thread; many calls before it looks count as one.
    pub(super) fn ring(&self) {
        // It fails only when 2⁶⁴ − 2 calls were not looked at; then it is readable anyway.
        let _ = self.event.write(1);
    }

    /// Tells the thread to end.
    pub(super) fn stop(&self) {
        self.stop.store(true, Ordering::Release);
        self.ring();
    }

    /// Takes note of the calls so far; true when the thread must end.
    pub(super) fn answered(&self) -> bool {
        // Where nobody rang there is nothing to take note of.
        let _ = self.event.read();
        self.stop.load(Ordering::Acquire)
    }
}

impl AsFd for Wake {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}
