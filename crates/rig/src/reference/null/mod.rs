//! A server that answers at the least cost.
//!
//! By default it remembers nothing: `GET` is answered by a value of the wanted length, whatever was
//! written, and every other command by what it would mostly say. Type and length of a reply are
//! then right, its content is not. With [`NullSettings::remember`] it keeps the last value of so
//! many keys, and content is right too, at the cost of a table; times to live and conditions such
//! as `NX` are not looked at.
//!
//! Each thread has an epoll of its own, on which its connections are registered once,
//! edge-triggered. All requests of one read are answered by one write, and nothing is allocated for
//! a request. Another thread, asleep most of the time, takes connections and deals them out.
//!
//! Parts: `worker` waits, `connection` reads and writes, `answers` knows what is said, `commands`
//! finds a command's name, `memory` remembers; `mailbox` is what threads share.

mod answers;
mod commands;
mod connection;
mod mailbox;
mod memory;
mod settings;
mod worker;

pub use settings::NullSettings;

use super::listen::{Listen, Listener};
use super::wake::{Wake, refused, spawn};
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

/// Pause when there are no file descriptors left for another connection.
const PAUSE: Duration = Duration::from_millis(10);

/// What a null server has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Served {
    /// Connections taken.
    pub connections: u64,
    /// Requests answered (or, where memcached's protocol wants that, rightly not answered).
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
    /// Starts it; it takes connections when this returns. An error names the setting that cannot
    /// be used, or what the system refused.
    pub fn start(settings: &NullSettings) -> Result<Self> {
        settings.check()?;
        let listener = Listener::bind(&settings.listen)?;
        let answers = Arc::new(Answers::new(settings));
        let refused = refused(NAME);
        // From here on, dropping it ends the threads that run.
        let mut server = Self {
            address: listener.address().clone(),
            accepting: Arc::new(Wake::new().map_err(&refused)?),
            connections: Arc::default(),
            mailboxes: Vec::new(),
            threads: Vec::new(),
        };
        let (pinned, told) = mpsc::channel();
        for number in 0..settings.threads {
            let wake = Wake::new().map_err(&refused)?;
            let (sockets, requests) = (Mutex::default(), AtomicU64::new(0));
            let mailbox = Arc::new(Mailbox { wake, sockets, requests });
            let worker = Worker::new(mailbox.clone(), answers.clone()).map_err(&refused)?;
            server.mailboxes.push(mailbox);
            let cpus = match settings.cpus.len() {
                0 => Vec::new(),
                cpus => vec![settings.cpus[number % cpus]],
            };
            let name = format!("null-{number}");
            server.threads.push(spawn(NAME, name, cpus, pinned.clone(), move || worker.run())?);
        }
        let taker = Taker {
            listener,
            wake: server.accepting.clone(),
            taken: server.connections.clone(),
            mailboxes: server.mailboxes.clone(),
        };
        let (name, cpus) = ("null-accept".into(), settings.cpus.clone());
        server.threads.push(spawn(NAME, name, cpus, pinned, move || taker.run())?);
        told.iter().collect::<Result<()>>()?;
        Ok(server)
    }

    /// Where it listens: with the port that was free.
    pub fn address(&self) -> &Listen {
        &self.address
    }

    /// What it has done so far.
    pub fn served(&self) -> Served {
        let requests = self.mailboxes.iter().map(|m| m.requests.load(Ordering::Acquire));
        Served { connections: self.connections.load(Ordering::Relaxed), requests: requests.sum() }
    }
}

impl Drop for NullServer {
    fn drop(&mut self) {
        self.accepting.stop();
        self.mailboxes.iter().for_each(|mailbox| mailbox.wake.stop());
        for thread in self.threads.drain(..) {
            // One that panicked has said so on standard error.
            let _ = thread.join();
        }
    }
}

/// Takes connections and deals them out.
struct Taker {
    listener: Listener,
    wake: Arc<Wake>,
    taken: Arc<AtomicU64>,
    mailboxes: Vec<Arc<Mailbox>>,
}

impl Taker {
    fn run(self) {
        loop {
            let mut both = [
                PollFd::new(self.listener.as_fd(), PollFlags::POLLIN),
                PollFd::new(self.wake.as_fd(), PollFlags::POLLIN),
            ];
            match poll(&mut both, PollTimeout::NONE) {
                Ok(_) | Err(Errno::EINTR) => {}
                // Without memory for a system call there is nothing to serve with.
                Err(_) => return,
            }
            if self.wake.answered() {
                return;
            }
            match self.take() {
                // The client has given up, or another was faster.
                Err(e) if matches!(e.kind(), ErrorKind::ConnectionAborted) => {}
                Err(_) => thread::sleep(PAUSE),
                Ok(()) => {}
            }
        }
    }

    /// Takes all connections that wait.
    fn take(&self) -> io::Result<()> {
        loop {
            let socket = match self.listener.accept() {
                Ok(socket) => socket,
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(e) => return Err(e),
            };
            let number = self.taken.fetch_add(1, Ordering::Relaxed) as usize;
            let mailbox = &self.mailboxes[number % self.mailboxes.len()];
            let mut waiting = mailbox.sockets.lock().unwrap_or_else(PoisonError::into_inner);
            waiting.push(socket);
            drop(waiting);
            mailbox.wake.ring();
        }
    }
}
