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
//! finds a command's name, `memory` remembers.

mod answers;
mod commands;
mod connection;
mod memory;
mod worker;

use super::listen::{Listen, Listener, Socket};
use super::wake::Wake;
use crate::cpu::{allowed_by_the_system, cpu_set, pin_current_thread};
use crate::error::{Result, RigError};
use answers::Answers;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::io::{self, ErrorKind};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use worker::Worker;

/// Name of this server in errors.
const NAME: &str = "null-server";
/// Most threads.
const THREADS_MAX: usize = 1024;
/// Longest value.
const VALUE_BYTES_MAX: usize = 64 << 20;
/// Most keys that are remembered.
const REMEMBER_MAX: usize = 1 << 28;
/// Pause when there are no file descriptors left for another connection.
const PAUSE: Duration = Duration::from_millis(10);

/// What kind of null server to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NullSettings {
    /// Where it listens.
    pub listen: Listen,
    /// Threads that answer, 1 to 1024.
    pub threads: usize,
    /// CPUs for the threads, one each, in turn; empty for all that the caller may use.
    pub cpus: Vec<usize>,
    /// Length of the values in replies, 0 to 64 MiB.
    pub value_bytes: usize,
    /// Every key is missing: reads are answered by nil. Not together with `remember`.
    pub miss: bool,
    /// Keys whose last value is kept, up to 2²⁸; 0 keeps none.
    pub remember: usize,
}

impl Default for NullSettings {
    /// One thread on any CPU, a free port of 127.0.0.1, values of 1 KiB, nothing remembered.
    fn default() -> Self {
        Self {
            listen: Listen::default(),
            threads: 1,
            cpus: Vec::new(),
            value_bytes: 1024,
            miss: false,
            remember: 0,
        }
    }
}

impl NullSettings {
    fn check(&self) -> Result<()> {
        let wrong = |name: &str, problem, expected| {
            Err(RigError::Setting { program: NAME, name: name.into(), problem, expected })
        };
        match self {
            Self { threads: 0, .. } => wrong("threads", "is 0", "1 to 1024"),
            Self { threads, .. } if *threads > THREADS_MAX => {
                wrong("threads", "is too large", "1 to 1024")
            }
            Self { value_bytes, .. } if *value_bytes > VALUE_BYTES_MAX => {
                wrong("value", "is too large", "0 B to 64 MiB")
            }
            Self { remember, .. } if *remember > REMEMBER_MAX => {
                wrong("remember", "is too large", "0 to 268435456")
            }
            Self { miss: true, remember: 1.., .. } => {
                wrong("miss", "contradicts `remember`", "one of them")
            }
            _ => cpu_set(&self.cpus, &allowed_by_the_system()).map(drop),
        }
    }
}

/// What a null server has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Served {
    /// Connections taken.
    pub connections: u64,
    /// Requests answered (or, where memcached's protocol wants that, rightly not answered).
    pub requests: u64,
}

/// What the thread that takes connections shares with one that answers.
#[derive(Debug)]
struct Mailbox {
    wake: Wake,
    /// Connections that the thread has not taken over yet.
    sockets: Mutex<Vec<Socket>>,
    /// Written by the answering thread alone.
    requests: AtomicU64,
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
        let refused = |e: Errno| RigError::Io {
            doing: "wait for the connections of",
            what: NAME.into(),
            source: e.into(),
        };
        // From here on, dropping it ends the threads that run.
        let mut server = Self {
            address: listener.address().clone(),
            accepting: Arc::new(Wake::new().map_err(refused)?),
            connections: Arc::default(),
            mailboxes: Vec::new(),
            threads: Vec::new(),
        };
        let (pinned, told) = mpsc::channel();
        for number in 0..settings.threads {
            let wake = Wake::new().map_err(refused)?;
            let (sockets, requests) = (Mutex::default(), AtomicU64::new(0));
            let mailbox = Arc::new(Mailbox { wake, sockets, requests });
            let worker = Worker::new(mailbox.clone(), answers.clone()).map_err(refused)?;
            server.mailboxes.push(mailbox);
            let cpus = match settings.cpus.len() {
                0 => Vec::new(),
                cpus => vec![settings.cpus[number % cpus]],
            };
            server.spawn(format!("null-{number}"), cpus, &pinned, move || worker.run())?;
        }
        let taker = Taker {
            listener,
            wake: server.accepting.clone(),
            taken: server.connections.clone(),
            mailboxes: server.mailboxes.clone(),
        };
        server.spawn("null-accept".into(), settings.cpus.clone(), &pinned, move || taker.run())?;
        drop(pinned);
        told.iter().collect::<Result<()>>()?;
        Ok(server)
    }

    /// Starts a thread that pins itself, tells whether that was allowed, and then works.
    fn spawn(
        &mut self,
        name: String,
        cpus: Vec<usize>,
        pinned: &Sender<Result<()>>,
        work: impl FnOnce() + Send + 'static,
    ) -> Result<()> {
        let pinned = pinned.clone();
        let run = move || {
            // Who asks is gone only when another thread could not be started.
            let _ = pinned.send(pin_current_thread(&cpus));
            drop(pinned);
            work();
        };
        let started = thread::Builder::new().name(name).spawn(run);
        let refused =
            |source| RigError::Io { doing: "start a thread of", what: NAME.into(), source };
        self.threads.push(started.map_err(refused)?);
        Ok(())
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
