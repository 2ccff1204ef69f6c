//! Private servers on another machine: the driver's side of a worker that lends its machine.
//!
//! Every question has one answer and waits for it.

use model::{Condition, Endpoint, ErrorClass, Failure, PlannedTarget, Product};
use rig::{FreeSpace, Scratch};
use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::FleetError;
use super::connecting::connect;
use super::endpoint::resolved;
use super::joining::lock;
use super::link::{Arrived, Link};
use super::member::list;
use super::rig_messages::{Asked, FromRig, Lent, Numbered, RigReading, ToRig};
use super::token::Token;

/// How long servers may take to start, and everything else.
const START_WITHIN: Duration = Duration::from_secs(90);
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// What the machine answers.
struct Answers {
    inbox: Receiver<Arrived<Numbered<FromRig>>>,
    /// Number of the last question.
    asked: u64,
    /// Why no more answers come, once the connection is over.
    lost: Option<Failure>,
}

/// A machine on which private servers run.
pub struct RigOn {
    link: Link,
    answers: Mutex<Answers>,
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
    /// Connects to a worker that lends its machine. `directory` is private to this run; `notice`
    /// gets lines for the user.
    pub fn connect(
        address: &str,
        (token, version): (&Token, &str),
        directory: Scratch,
        notice: &mut dyn FnMut(&str),
    ) -> Result<Self, FleetError> {
        let (zero, stop) = (Instant::now(), AtomicBool::new(false));
        let (link, inbox) = connect(("--rig-on", address), token, zero, &stop, notice)?;
        link.trust();
        let mut rig = Self {
            link,
            answers: Mutex::new(Answers { inbox, asked: 0, lost: None }),
            address: address.into(),
            lent: Lent::default(),
            started: AtomicU64::new(0),
            directory,
        };
        let hello = ToRig::Hello { version: version.into(), secret: token.secret.clone() };
        match rig.ask(&hello, ANSWER_WITHIN) {
            Ok(FromRig::Lent(lent)) => rig.lent = lent,
            Ok(other) => return Err(FleetError(format!("--rig-on {address}: {}", wrong(&other)))),
            Err(failure) if rig.lost().is_some() => return Err(FleetError(failure.message)),
            Err(Failure { message, .. }) => {
                return Err(FleetError(format!(
                    "--rig-on {address} refused this driver: {message}"
                )));
            }
        }
        Ok(rig)
    }

    fn ask(&self, question: &ToRig, within: Duration) -> Result<FromRig, Failure> {
        let Answers { inbox, asked, lost } = &mut *lock(&self.answers);
        if let Some(failure) = lost {
            return Err(failure.clone());
        }
        *asked += 1;
        self.link.send(&Numbered { number: *asked, message: question });
        let failure = |message| Failure { class: ErrorClass::Other, message };
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
                Ok(Arrived::Gone(why)) => {
                    let address = &self.address;
                    let lost_it = if self.lent.host.is_empty() {
                        format!("cannot use --rig-on {address}: {why}")
                    } else {
                        format!("lost the machine of the servers at {address}: {why}")
                    };
                    let gone = Failure { class: ErrorClass::Lost, message: lost_it };
                    return Err(lost.insert(gone).clone());
                }
                Err(_) => {
                    return Err(failure(format!(
                        "the machine of the servers at {} has not answered for {} s",
                        self.address,
                        within.as_secs()
                    )));
                }
            }
        }
    }

    /// Why the connection is over; `None` while it is not. The machine then stops its servers by
    /// itself.
    pub(crate) fn lost(&self) -> Option<String> {
        lock(&self.answers).lost.as_ref().map(|failure| failure.message.clone())
    }

    /// Host name of the machine.
    pub fn host(&self) -> &str {
        &self.lent.host
    }

    /// Facts about the machine, for the record, with a warning if it is this one and servers may
    /// run on CPUs of the `generator`.
    pub fn conditions(&self, generator: &[usize]) -> Vec<Condition> {
        let Lent { host, conditions, cpus, .. } = &self.lent;
        let shared: Vec<usize> =
            cpus.iter().copied().filter(|cpu| generator.contains(cpu)).collect();
        let is_shared = self.is_here() && !shared.is_empty();
        let warning = is_shared.then(|| {
            format!(
                "servers and clients share CPU {} of this machine, which --rig-on is to avoid: \
                 start the worker on another machine, or on other CPUs, with its --cpus",
                list(&shared)
            )
        });
        let own = Condition {
            group: format!("cpu of the servers' machine {host}"),
            name: "CPUs for servers".into(),
            value: list(cpus),
            warning,
        };
        conditions.iter().cloned().chain([own]).collect()
    }

    /// True if the machine is this one: only then an own port can have its address.
    fn is_here(&self) -> bool {
        let addresses = resolved(&self.address, "--rig-on").unwrap_or_default();
        addresses.iter().any(|address| TcpListener::bind((address.ip(), 0)).is_ok())
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
        let stopped = self.rig.stop(self.number);
        // What is lost fails the trial elsewhere, and leaves nothing behind there.
        if self.rig.lost().is_some() { Ok(()) } else { stopped }
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
