//! Private servers on another machine: the driver's side of a worker that lends its machine.
//!
//! Every question has one answer and waits for it.

use model::{Condition, Endpoint, ErrorClass, Failure, PlannedTarget, Product};
use rig::{FreeSpace, Scratch};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::FleetError;
use super::connecting::connect;
use super::joining::lock;
use super::link::{Arrived, Link};
use super::rig_messages::{Asked, FromRig, Lent, Numbered, RigReading, ToRig};
use super::token::Token;

/// How long servers may take to start, and everything else.
const START_WITHIN: Duration = Duration::from_secs(90);
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// A machine on which private servers run.
pub struct RigOn {
    link: Link,
    /// Answers, and the number of the last question.
    inbox: Mutex<(Receiver<Arrived<Numbered<FromRig>>>, u64)>,
    /// Address as the user wrote it.
    address: String,
    lent: Lent,
    started: AtomicU64,
    /// For TLS files of its servers.
    directory: Scratch,
}

impl std::fmt::Debug for RigOn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.address)
    }
}

impl std::fmt::Display for RigOn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.address)
    }
}

impl RigOn {
    /// Connects to a worker that lends its machine. `directory` is private to this run.
    pub fn connect(
        address: &str,
        (token, version): (&Token, &str),
        directory: Scratch,
    ) -> Result<Self, FleetError> {
        let (link, inbox) =
            connect(("--rig-on", address), token, Instant::now(), &AtomicBool::new(false))?;
        link.trust();
        let mut rig = Self {
            link,
            inbox: Mutex::new((inbox, 0)),
            address: address.into(),
            lent: Lent::default(),
            started: AtomicU64::new(0),
            directory,
        };
        let hello = ToRig::Hello { version: version.into(), secret: token.secret.clone() };
        match rig.ask(&hello, ANSWER_WITHIN) {
            Ok(FromRig::Lent(lent)) => rig.lent = lent,
            Ok(other) => return Err(FleetError(format!("--rig-on {address}: {}", wrong(&other)))),
            Err(failure) => return Err(FleetError(failure.message)),
        }
        Ok(rig)
    }

    fn ask(&self, question: &ToRig, within: Duration) -> Result<FromRig, Failure> {
        let (inbox, asked) = &mut *lock(&self.inbox);
        *asked += 1;
        self.link.send(&Numbered { number: *asked, message: question });
        let failed = |why: String| Failure {
            class: ErrorClass::Other,
            message: format!("the machine of the servers, {}: {why}", self.address),
        };
        let until = Instant::now() + within;
        loop {
            match inbox.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(Arrived::Message(answer)) if answer.number == *asked => {
                    return match answer.message {
                        FromRig::Failed(failure) => Err(failure),
                        answer => Ok(answer),
                    };
                }
                // To a question that had no answer in time.
                Ok(Arrived::Message(_) | Arrived::Clock(_)) => {}
                Ok(Arrived::Gone(why)) => return Err(failed(why)),
                Err(_) => return Err(failed(format!("no answer within {} s", within.as_secs()))),
            }
        }
    }

    /// Host name of the machine.
    pub fn host(&self) -> &str {
        &self.lent.host
    }

    /// Facts about the machine, for the record.
    pub fn conditions(&self) -> Vec<Condition> {
        self.lent.conditions.clone()
    }

    /// Free memory and disk of the machine before it started a server.
    pub(crate) fn free_at_first(&self) -> FreeSpace {
        self.lent.free
    }

    /// Starts the servers of a target on the first `cpus` CPUs, and returns their endpoint.
    pub(crate) fn start(
        self: &Arc<Self>,
        product: Product,
        target: &PlannedTarget,
        cpus: usize,
    ) -> Result<(Endpoint, RemoteServers), Failure> {
        let number = self.started.fetch_add(1, Ordering::Relaxed) + 1;
        let asked = Asked { number, product, target: target.clone(), cpus };
        match self.ask(&ToRig::Start(Box::new(asked)), START_WITHIN)? {
            FromRig::Started { endpoint } => {
                let endpoint = endpoint.received(self.directory.path());
                let failed = |FleetError(message)| Failure { class: ErrorClass::Other, message };
                let servers = RemoteServers { rig: Arc::clone(self), number, is_stopped: false };
                Ok((endpoint.map_err(failed)?, servers))
            }
            other => Err(Failure { class: ErrorClass::Other, message: wrong(&other) }),
        }
    }

    /// CPU time of the servers, and what others took from it; the failure is the death of one.
    pub(crate) fn read(&self) -> Result<RigReading, Failure> {
        match self.ask(&ToRig::Read, ANSWER_WITHIN)? {
            FromRig::Reading(reading) => Ok(reading),
            other => Err(Failure { class: ErrorClass::Other, message: wrong(&other) }),
        }
    }

    fn stop(&self, number: u64) -> Result<(), Failure> {
        self.ask(&ToRig::Stop { number }, START_WITHIN).map(|_| ())
    }
}

/// Servers that run on the machine. Dropping it stops them.
#[derive(Debug)]
pub(crate) struct RemoteServers {
    rig: Arc<RigOn>,
    number: u64,
    is_stopped: bool,
}

impl RemoteServers {
    /// The machine that they run on.
    pub(crate) fn rig(&self) -> Arc<RigOn> {
        Arc::clone(&self.rig)
    }

    /// Stops them.
    pub(crate) fn stop(mut self) -> Result<(), Failure> {
        self.is_stopped = true;
        self.rig.stop(self.number)
    }
}

impl Drop for RemoteServers {
    fn drop(&mut self) {
        if !self.is_stopped {
            // The worker stops them at the latest when the connection ends.
            let _ = self.rig.stop(self.number);
        }
    }
}

impl Drop for RigOn {
    fn drop(&mut self) {
        self.link.send(&Numbered { number: 0, message: ToRig::Goodbye });
    }
}

fn wrong(answer: &FromRig) -> String {
    format!("an unexpected answer: {answer:?}")
}
