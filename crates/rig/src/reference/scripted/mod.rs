//! A server with known times and faults.
//!
//! It remembers what it is given (strings by key, without times to live), so that data is wrong
//! only where its [`Script`] says so. When a reply is due is computed from when its request was
//! read, by a queue as in textbooks; the reply leaves at that time: the thread sleeps for the
//! coarse part and looks at the clock for the last 60 µs. During a stall it reads, answers and
//! takes nothing; what arrives waits in the sockets.
//!
//! It records when each request was read and when its reply left ([`Stamp`]), by `CLOCK_MONOTONIC`,
//! so that a generator on the same machine can be compared with it.
//!
//! One thread does everything. Parts: `script` says what it does, `parse` reads that, `schedule`
//! computes the times, `store` keeps values, `engine` waits, `connection` reads and writes.

mod connection;
mod engine;
mod parse;
mod record;
mod requests;
mod schedule;
mod script;
mod settings;
mod store;

pub use parse::ScriptError;
pub use record::{Stamp, Tally};
pub use script::{ConnectionStall, Drip, Fault, Script, Service, Stall};
pub use settings::ScriptedSettings;

use super::listen::{Listen, Listener};
use super::wake::{Wake, refused, spawn};
use crate::cpu::{allowed_by_the_system, cpu_set};
use crate::error::Result;
use engine::Engine;
use record::Record;
use stats::Histogram;
use std::sync::mpsc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// Name of this server in errors.
const NAME: &str = "scripted-server";

/// A running scripted server; stops when it is dropped.
#[derive(Debug)]
pub struct ScriptedServer {
    address: Listen,
    wake: Arc<Wake>,
    record: Arc<Mutex<Record>>,
    thread: Option<JoinHandle<()>>,
}

impl ScriptedServer {
    /// Starts it; it takes connections when this returns. An error names the CPU that cannot be
    /// used, or what the system refused.
    pub fn start(settings: &ScriptedSettings) -> Result<Self> {
        cpu_set(&settings.cpus, &allowed_by_the_system())?;
        let listener = Listener::bind(&settings.listen)?;
        let refused = refused(NAME);
        let address = listener.address().clone();
        let wake = Arc::new(Wake::new().map_err(&refused)?);
        let record = Arc::new(Mutex::new(Record::new(settings.log)));
        let engine = Engine::new(settings, listener, wake.clone(), record.clone());
        let engine = engine.map_err(refused)?;
        let (pinned, told) = mpsc::channel();
        let cpus = settings.cpus.clone();
        // From here on, dropping it ends the thread.
        let thread = spawn(NAME, "scripted".into(), cpus, pinned, move || engine.run())?;
        let server = Self { address, wake, record, thread: Some(thread) };
        told.iter().collect::<Result<()>>()?;
        Ok(server)
    }

    /// Where it listens: with the port that was free.
    pub fn address(&self) -> &Listen {
        &self.address
    }

    /// What it has done so far.
    pub fn tally(&self) -> Tally {
        self.record().tally
    }

    /// A stamp of each request so far, in the order in which they were read. Copying a long log
    /// delays replies: take it when the load is over.
    pub fn log(&self) -> Vec<Stamp> {
        self.record().stamps.clone()
    }

    /// How long after they were due replies left: how exact the server itself was. Replies that a
    /// full socket or a drip held back count by when they could have left.
    pub fn lateness(&self) -> Histogram {
        self.record().lateness.clone()
    }

    /// Stops it and waits for its end. What it has done is still told, and is whole only then: a
    /// reply reaches its client a moment before it is noted.
    pub fn stop(&mut self) {
        self.wake.stop();
        if let Some(thread) = self.thread.take() {
            // One that panicked has said so on standard error.
            let _ = thread.join();
        }
    }

    fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ScriptedServer {
    fn drop(&mut self) {
        self.stop();
    }
}
