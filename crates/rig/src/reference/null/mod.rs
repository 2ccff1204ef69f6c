//! A server that replies at the lowest possible cost.
//!
//! By default it stores nothing: `GET` returns a value of the configured length, whatever was
//! written, and every other command its most common reply. The type and length of a reply are
//! then correct, its content is not. With [`NullSettings::remember`] it keeps the last value of
//! that many keys, and the content is correct too, at the cost of a table lookup. Times to live
//! and conditions such as `NX` are ignored.
//!
//! Each worker thread has its own epoll, on which its connections are registered once,
//! edge-triggered. It answers all requests of one read with one write and allocates nothing per
//! request. A separate thread, mostly asleep, accepts connections and distributes them.
//!
//! Parts: `worker` is the event loop, `connection` reads and writes, `answers` builds the replies,
//! `commands` identifies commands, `memory` stores values, `mailbox` connects the threads.

mod answers;
mod commands;
mod connection;
mod mailbox;
mod memory;
mod settings;
mod worker;

pub use settings::NullSettings;

use super::listen::{Listen, Listener};
use super::wake::{Wake, polling_error, spawn};
use crate::error::Result;
use answers::Answers;
use mailbox::Mailbox;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use settings::NAME;
use std::io::{self, ErrorKind};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use worker::Worker;

/// Pause after a failed accept, for example if no file descriptors are left.
const PAUSE: Duration = Duration::from_millis(10);

/// Connection and request counts of a null server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServedCounts {
    /// Connections accepted.
    pub connections: u64,
    /// Requests handled, including memcached's quiet requests, which get no reply.
    pub requests: u64,
}

/// A running null server; stops when it is dropped.
#[derive(Debug)]
pub struct NullServer {
    address: Listen,
    accepting: Arc<Wake>,
    connections: Arc<AtomicU64>,
    mailboxes: Vec<Arc<Mailbox>>,
    threads: Vec<JoinHandle<()>>,
}

impl NullServer {
    /// Starts the server, which accepts connections when this returns. An error names the invalid
    /// setting or the failed system call.
    pub fn start(settings: &NullSettings) -> Result<Self> {
        settings.check()?;
        let listener = Listener::bind(&settings.listen)?;
        let answers = Arc::new(Answers::new(settings));
        let polling_error = polling_error(NAME);
        // From here on, dropping the server stops its threads.
        let mut server = Self {
            address: listener.address().clone(),
            accepting: Arc::new(Wake::new().map_err(&polling_error)?),
            connections: Arc::default(),
            mailboxes: Vec::new(),
            threads: Vec::new(),
        };
        let (pinned, pin_results) = mpsc::channel();
        for number in 0..settings.threads {
            let wake = Wake::new().map_err(&polling_error)?;
            let (sockets, requests) = (Mutex::default(), AtomicU64::new(0));
            let mailbox = Arc::new(Mailbox { wake, sockets, requests });
            let worker = Worker::new(mailbox.clone(), answers.clone()).map_err(&polling_error)?;
            server.mailboxes.push(mailbox);
            let cpus = match settings.cpus.len() {
                0 => Vec::new(),
                cpus => vec![settings.cpus[number % cpus]],
            };
            let name = format!("null-{number}");
            server.threads.push(spawn(NAME, name, cpus, pinned.clone(), move || worker.run())?);
        }
        let acceptor = Acceptor {
            listener,
            wake: server.accepting.clone(),
            accepted: server.connections.clone(),
            mailboxes: server.mailboxes.clone(),
        };
        let (name, cpus) = ("null-accept".into(), settings.cpus.clone());
        server.threads.push(spawn(NAME, name, cpus, pinned, move || acceptor.run())?);
        pin_results.iter().collect::<Result<()>>()?;
        Ok(server)
    }

    /// The listening address, with the actual port.
    pub fn address(&self) -> &Listen {
        &self.address
    }

    /// Connections and requests so far.
    pub fn served(&self) -> ServedCounts {
        let requests = self.mailboxes.iter().map(|m| m.requests.load(Ordering::Acquire));
        ServedCounts {
            connections: self.connections.load(Ordering::Relaxed),
            requests: requests.sum(),
        }
    }
}

impl Drop for NullServer {
    fn drop(&mut self) {
        self.accepting.stop();
        self.mailboxes.iter().for_each(|mailbox| mailbox.wake.stop());
        for thread in self.threads.drain(..) {
            // A panic was already printed to standard error.
            let _ = thread.join();
        }
    }
}

/// Accepts connections and distributes them over the workers.
struct Acceptor {
    listener: Listener,
    wake: Arc<Wake>,
    accepted: Arc<AtomicU64>,
    mailboxes: Vec<Arc<Mailbox>>,
}

impl Acceptor {
    fn run(self) {
        loop {
            let mut both = [
                PollFd::new(self.listener.as_fd(), PollFlags::POLLIN),
                PollFd::new(self.wake.as_fd(), PollFlags::POLLIN),
            ];
            match poll(&mut both, PollTimeout::NONE) {
                Ok(_) | Err(Errno::EINTR) => {}
                // Fails only if the system is out of memory: the thread cannot go on.
                Err(_) => return,
            }
            if self.wake.clear_and_check_stop() {
                return;
            }
            match self.accept_all() {
                // The client closed the connection before it was accepted.
                Err(e) if matches!(e.kind(), ErrorKind::ConnectionAborted) => {}
                Err(_) => thread::sleep(PAUSE),
                Ok(()) => {}
            }
        }
    }

    /// Accepts all pending connections.
    fn accept_all(&self) -> io::Result<()> {
        loop {
            let socket = match self.listener.accept() {
                Ok(socket) => socket,
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(e) => return Err(e),
            };
            let number = self.accepted.fetch_add(1, Ordering::Relaxed) as usize;
            let mailbox = &self.mailboxes[number % self.mailboxes.len()];
            let mut waiting = mailbox.sockets.lock().unwrap_or_else(PoisonError::into_inner);
            waiting.push(socket);
            drop(waiting);
            mailbox.wake.wake();
        }
    }
}
