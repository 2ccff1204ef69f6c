//! A server with known times and faults.
//!
//! It stores strings by key (without times to live), so data is wrong only if its [`Script`] says
//! so. A textbook queue model computes each reply's due time from the time its request was read.
//! The thread sleeps until shortly before that time and spins on the clock for the last 60 µs.
//! During a stall it neither reads, replies nor accepts; incoming data waits in the sockets.
//!
//! It records when each request was read and when its reply left ([`Stamp`]), by `CLOCK_MONOTONIC`,
//! for comparison with a generator on the same machine.
//!
//! One thread does everything. Parts: `script` defines the behaviour, `parse` parses it, `schedule`
//! computes due times, `store` keeps values, `engine` is the event loop, `connection` reads and
//! writes.

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
use super::wake::{Wake, polling_error, spawn};
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
    /// Starts the server, which accepts connections when this returns. An error names the CPU that
    /// cannot be used, or the failed system call.
    pub fn start(settings: &ScriptedSettings) -> Result<Self> {
        cpu_set(&settings.cpus, &allowed_by_the_system())?;
        let listener = Listener::bind(&settings.listen)?;
        let polling_error = polling_error(NAME);
        let address = listener.address().clone();
        let wake = Arc::new(Wake::new().map_err(&polling_error)?);
        let record = Arc::new(Mutex::new(Record::new(settings.log)));
        let engine = Engine::new(settings, listener, wake.clone(), record.clone());
        let engine = engine.map_err(polling_error)?;
        let (pinned, pin_results) = mpsc::channel();
        let cpus = settings.cpus.clone();
        // From here on, dropping the server stops its thread.
        let thread = spawn(NAME, "scripted".into(), cpus, pinned, move || engine.run())?;
        let server = Self { address, wake, record, thread: Some(thread) };
        pin_results.iter().collect::<Result<()>>()?;
        Ok(server)
    }

    /// The listening address, with the actual port.
    pub fn address(&self) -> &Listen {
        &self.address
    }

    /// Counts so far.
    pub fn tally(&self) -> Tally {
        self.record().tally
    }

    /// The stamps of all requests so far, in the order they were read. Copying a long log delays
    /// replies, so call this after the load.
    pub fn log(&self) -> Vec<Stamp> {
        self.record().stamps.clone()
    }

    /// Delay of replies after their due time: the server's own timing error. A reply held back by a
    /// full socket or a drip counts at the time it could have left.
    pub fn lateness(&self) -> Histogram {
        self.record().lateness.clone()
    }

    /// Stops the server and waits for its thread. Counts and stamps remain available. They are
    /// complete only then: a reply reaches its client shortly before it is recorded.
    pub fn stop(&mut self) {
        self.wake.stop();
        if let Some(thread) = self.thread.take() {
            // A panic was already printed to standard error.
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
