//! Starting server threads, and waking one that waits for its sockets.

use crate::cpu::pin_current_thread;
use crate::error::{Result, RigError};
use nix::errno::Errno;
use nix::sys::eventfd::{EfdFlags, EventFd};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::thread::{self, JoinHandle};

/// Starts a server thread that pins itself, sends the result to `pinned` and then runs `work`.
pub(crate) fn spawn(
    server: &'static str,
    name: String,
    cpus: Vec<usize>,
    pinned: Sender<Result<()>>,
    work: impl FnOnce() + Send + 'static,
) -> Result<JoinHandle<()>> {
    let run = move || {
        // The receiver is gone only if another thread could not be started.
        let _ = pinned.send(pin_current_thread(&cpus));
        drop(pinned);
        work();
    };
    let spawn_error =
        |source| RigError::Io { doing: "start a thread of", what: server.into(), source };
    thread::Builder::new().name(name).spawn(run).map_err(spawn_error)
}

/// Converts an error of setting up the polling of a server's sockets.
pub(crate) fn polling_error(server: &'static str) -> impl Fn(Errno) -> RigError {
    move |e| RigError::Io {
        doing: "wait for the connections of",
        what: server.into(),
        source: e.into(),
    }
}

/// Wakes or stops one thread, which waits for the descriptor to become readable.
#[derive(Debug)]
pub(crate) struct Wake {
    event: EventFd,
    stop: AtomicBool,
}

impl Wake {
    pub(crate) fn new() -> nix::Result<Self> {
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        Ok(Self { event: EventFd::from_flags(flags)?, stop: AtomicBool::new(false) })
    }

    /// Wakes the thread. Calls before it reacts count as one.
    pub(crate) fn wake(&self) {
        // Fails only after 2⁶⁴ − 2 unread calls; the descriptor is then readable anyway.
        let _ = self.event.write(1);
    }

    /// Stops the thread.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Release);
        self.wake();
    }

    /// Clears pending wake-ups; true if the thread must stop.
    pub(crate) fn clear_and_check_stop(&self) -> bool {
        // Fails if no wake-up is pending.
        let _ = self.event.read();
        self.stop.load(Ordering::Acquire)
    }
}

impl AsFd for Wake {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}
