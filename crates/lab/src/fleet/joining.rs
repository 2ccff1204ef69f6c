//! The driver's side: workers join, and are known by number and host.

use model::{Condition, ErrorClass, Failure};
use rig::{Guard, Pinning};
use std::fmt;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use super::endpoint::resolved;
use super::link::{Arrived, End, Link};
use super::local::Placed;
use super::machines::Machines;
use super::member::{self, Member};
use super::messages::{Hello, PROTOCOL, ToDriver, ToWorker};
use super::strangers::{Mail, Stranger, Strangers};
use super::token::{Token, TokenFile, is_same};
use super::{FleetError, counted_workers};

const PAUSE: Duration = Duration::from_millis(10);
/// How long workers on this machine may take to join.
const LOCAL_WITHIN: Duration = Duration::from_secs(20);

/// Where the workers of a fleet come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Gathering {
    /// Processes on this machine, started by the driver.
    Local(u32),
    /// One on each of as many nodes of a Ray cluster, with this many CPUs.
    Ray {
        /// How many.
        workers: u32,
        /// CPUs of each.
        cpus: u32,
        /// How long to wait for all of them.
        within: Duration,
    },
    /// Started by anything else; they join an address.
    Listen {
        /// `HOST:PORT` to listen on.
        address: String,
        /// How many to wait for.
        workers: u32,
        /// File to write the token to.
        token_file: PathBuf,
        /// How long to wait for all of them.
        within: Duration,
    },
}

impl Gathering {
    /// Number of workers.
    pub fn workers(&self) -> u32 {
        match self {
            Self::Local(workers) | Self::Ray { workers, .. } | Self::Listen { workers, .. } => {
                *workers
            }
        }
    }
}

/// A worker that has left, and why.
pub(super) struct Gone {
    pub(super) name: String,
    pub(super) why: End,
}

impl fmt::Display for Gone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} left the fleet: {}", self.name, self.why)
    }
}

/// Workers that offer loads together. Dropping it sends them away and ends those started here.
pub struct Fleet {
    pub(super) members: Vec<Member>,
    pub(super) inbox: Mutex<Receiver<Mail<ToDriver>>>,
    /// The first worker that has left.
    pub(super) gone: Mutex<Option<Gone>>,
    /// Number of the last load.
    pub(super) jobs: AtomicU64,
    pub(super) placed: Placed,
    /// Token file that workers read.
    _token_file: Option<TokenFile>,
    /// Facts about machines of workers; empty if it is this one.
    machines: Machines,
    /// What is wrong with the CPUs of workers.
    warnings: Vec<String>,
    /// Set when the fleet ends.
    is_over: Arc<AtomicBool>,
}

impl std::fmt::Debug for Fleet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} workers", self.members.len())
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        for member in &self.members {
            member.link.send(&ToWorker::Goodbye);
        }
    }
}

impl Fleet {
    /// Waits until all workers have joined. `notice` gets a line for the user now and then.
    pub fn gather(
        gathering: &Gathering,
        version: &str,
        (guard, pinning): (&Guard, &Pinning),
        stop: &AtomicBool,
        notice: &mut dyn FnMut(&str),
    ) -> Result<Self, FleetError> {
        let (token, config) = Token::new()?;
        let workers = gathering.workers();
        let mut placed = Placed::default();
        let (listener, token_file, within) = match gathering {
            Gathering::Local(_) => {
                let listener = listen("127.0.0.1:0")?;
                let path = placed.keep(&token, guard)?;
                placed.start(guard, (workers, &pinning.generator), (own(&listener)?, &path))?;
                (listener, None, LOCAL_WITHIN)
            }
            Gathering::Ray { cpus, within, .. } => {
                let listener = listen("0.0.0.0:0")?;
                let path = placed.keep(&token, guard)?;
                let place = (own(&listener)?.port(), &*path);
                placed.start_on_ray(guard, (workers, *cpus, *within), place)?;
                (listener, None, *within)
            }
            Gathering::Listen { address, token_file, within, .. } => {
                let listener = listen(address)?;
                let written = token.write(token_file)?;
                let (address, path) = (to_join(own(&listener)?), token_file.display());
                notice(&format!(
                    "waiting for {}: start each with `cachedyno worker --join {address} \
                     --token-file {path}`",
                    counted_workers(workers)
                ));
                (listener, Some(written), *within)
            }
        };
        let mut fleet = Self {
            members: Vec::new(),
            inbox: Mutex::new(channel().1),
            gone: Mutex::default(),
            jobs: AtomicU64::new(0),
            placed,
            _token_file: token_file,
            machines: Machines::default(),
            warnings: Vec::new(),
            is_over: Arc::default(),
        };
        let terms = Terms { secret: token.secret, version: version.into() };
        let mut strangers = Strangers::new(listener, config);
        fleet.admit(&mut strangers, &terms, (workers, within), stop, notice)?;
        fleet.warnings = member::place(&mut fleet.members, &pinning.server);
        fleet.warnings.iter().for_each(|warning| notice(warning));
        let is_complete = format!("the fleet has all of its workers ({workers})");
        let inbox = strangers.part(&ToWorker::Refused { why: is_complete.clone() });
        fleet.inbox = Mutex::new(inbox);
        let is_over = Arc::clone(&fleet.is_over);
        thread::spawn(move || {
            strangers.turn_away(&is_over, |message| match message {
                ToDriver::Hello(hello) => {
                    let why = terms.refusal(&hello, &[]).unwrap_or_else(|| is_complete.clone());
                    Some(ToWorker::Refused { why })
                }
                _ => None,
            });
        });
        Ok(fleet)
    }

    /// Lets workers in until there are enough.
    fn admit(
        &mut self,
        strangers: &mut Strangers<ToDriver>,
        terms: &Terms,
        (workers, within): (u32, Duration),
        stop: &AtomicBool,
        notice: &mut dyn FnMut(&str),
    ) -> Result<(), FleetError> {
        let until = Instant::now() + within;
        let mut known = Vec::<u64>::new();
        while self.members.len() < workers as usize {
            if stop.load(Ordering::Relaxed) {
                return Err(FleetError("interrupted while workers joined".into()));
            }
            if let Some(how) = self.placed.death() {
                return Err(FleetError(format!("the workers cannot join: {how}")));
            }
            if Instant::now() > until {
                return Err(FleetError(format!(
                    "{} of {} joined within {} s (expected all of them; --fleet-wait sets the \
                     time)",
                    self.members.len(),
                    counted_workers(workers),
                    within.as_secs()
                )));
            }
            match strangers.hear(PAUSE) {
                Some(((connection, Arrived::Message(ToDriver::Hello(hello))), Some(stranger))) => {
                    let Stranger { link, from, is_local, .. } = stranger;
                    if let Some(why) = terms.refusal(&hello, &known) {
                        notice(&format!("a worker at {from} was refused: {why}"));
                        link.send(&ToWorker::Refused { why });
                        continue;
                    }
                    known.push(hello.id);
                    let number = self.free_number();
                    let member = welcome(link, (connection, is_local), number, &hello);
                    if !self.is_local() {
                        self.machines.add(&member.name, hello.machine);
                        let (name, joined) = (&member.name, self.members.len() + 1);
                        notice(&format!("{name} has joined ({joined} of {workers})"));
                    }
                    self.members.push(member);
                    self.members.sort_by_key(|member| member.number);
                }
                Some(((connection, arrived), stranger)) => {
                    let why = match arrived {
                        Arrived::Gone(end) => end.to_string(),
                        Arrived::Message(ToDriver::Leaves { why }) => why,
                        _ => continue,
                    };
                    let is_it = |member: &Member| member.connection == connection;
                    if let Some(Stranger { from, .. }) = stranger {
                        notice(&format!("a connection of {from} ended before it joined: {why}"));
                    } else if let Some(at) = self.members.iter().position(is_it) {
                        // Another one may join in its place.
                        let Member { name, .. } = self.members.remove(at);
                        notice(&format!("{name} left before all had joined: {why}"));
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The smallest number that no worker has.
    fn free_number(&self) -> u32 {
        let is_free = |number: &u32| self.members.iter().all(|member| member.number != *number);
        (1..=self.members.len() as u32 + 1).find(is_free).unwrap_or(1)
    }

    /// Process ids of the workers on this machine, for one of them if it shares CPUs with others.
    pub(super) fn siblings(&self, member: &Member, shares_cpus: bool) -> Vec<u32> {
        let has_siblings = shares_cpus && member.pid.is_some();
        if has_siblings { self.pids() } else { Vec::new() }
    }

    /// Which worker has left, and why; `None` while all are there.
    pub(crate) fn lost(&self) -> Option<String> {
        lock(&self.gone).as_ref().map(Gone::to_string)
    }

    /// Why removed keys can come back; `None` if they cannot. A worker that was stopped or cut off
    /// may send more requests when it continues. The driver kills only the workers it started.
    pub(crate) fn may_write_again(&self) -> Option<Failure> {
        let gone = lock(&self.gone);
        let is_silent = |gone: &&Gone| matches!(gone.why, End::Silent { .. });
        let gone = gone.as_ref().filter(is_silent).filter(|_| !self.is_local())?;
        let message = format!("{gone}, and may still write if it continues");
        Some(Failure { class: ErrorClass::Lost, message })
    }

    /// True if the driver started its workers, as processes on its own machine.
    fn is_local(&self) -> bool {
        !self.placed.pids().is_empty()
    }

    /// The first worker that is not on this machine; `None` if all are.
    pub(crate) fn elsewhere(&self) -> Option<&str> {
        let member = self.members.iter().find(|member| member.pid.is_none())?;
        Some(&member.name)
    }

    /// Facts about the workers and their machines, for the record.
    pub fn conditions(&self) -> Vec<Condition> {
        let mut all = self.machines.conditions();
        all.push(member::condition(&self.members, &self.warnings));
        all
    }

    /// Process ids of workers on this machine.
    pub fn pids(&self) -> Vec<u32> {
        self.members.iter().filter_map(|member| member.pid).collect()
    }

    /// Names of the workers.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.members.iter().map(|member| member.name.as_str())
    }
}

fn listen(address: &str) -> Result<TcpListener, FleetError> {
    let addresses = resolved(address, "--fleet listen:")?;
    let listener = TcpListener::bind(&addresses[..]);
    let listener = listener.and_then(|listener| listener.set_nonblocking(true).map(|()| listener));
    listener.map_err(|e| {
        FleetError(format!(
            "cannot wait for workers at `{address}`: {e} (expected an address of this machine and \
             a free port)"
        ))
    })
}

fn own(listener: &TcpListener) -> Result<SocketAddr, FleetError> {
    listener.local_addr().map_err(|e| FleetError(format!("cannot wait for workers: {e}")))
}

/// Where workers join a driver that listens on an address.
fn to_join(address: SocketAddr) -> String {
    let port = address.port();
    if address.ip().is_unspecified() {
        format!("{}:{port}", rig::host_name())
    } else {
        address.to_string()
    }
}

/// What a worker must show to join.
struct Terms {
    secret: String,
    version: String,
}

impl Terms {
    /// Why a worker may not join.
    fn refusal(&self, hello: &Hello, known: &[u64]) -> Option<String> {
        let (version, own) = (&hello.version, &self.version);
        if !is_same(&hello.secret, &self.secret) {
            // Limits the rate of guesses.
            thread::sleep(PAUSE);
            return Some("its token is of another fleet".into());
        }
        if hello.protocol != PROTOCOL || version != own {
            return Some(format!(
                "it is cachedyno {version} and the driver {own} (expected the same version)"
            ));
        }
        if known.contains(&hello.id) {
            return Some("it has joined already".into());
        }
        hello.cpus.is_empty().then(|| "it has no CPU".into())
    }
}

fn welcome(
    link: Link,
    (connection, is_local): (usize, bool),
    number: u32,
    hello: &Hello,
) -> Member {
    link.trust();
    link.send(&ToWorker::Welcome { number });
    let name = format!("worker {number} on {}", hello.host);
    let place = (hello.host.clone(), hello.cpus.clone());
    let pid = (is_local && is_worker(hello.pid)).then_some(hello.pid);
    Member { number, connection, name, link, pid, place, shares_cpus: false }
}

/// True if a process on this machine is a worker. A worker in a container reports the id that it
/// has there, which may be that of another process here.
fn is_worker(pid: u32) -> bool {
    let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    command.split(|byte| *byte == 0).nth(1).is_some_and(|word| word == b"worker")
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hello() -> Hello {
        Hello {
            protocol: PROTOCOL,
            version: "1.2".into(),
            secret: "abc".into(),
            host: "a".into(),
            id: 42,
            pid: 1,
            cpus: vec![0],
            machine: Vec::new(),
        }
    }

    #[test]
    fn a_process_of_another_program_is_no_worker() {
        assert!(!is_worker(std::process::id()));
        assert!(!is_worker(u32::MAX));
        let mut own = std::process::Command::new("sh");
        let mut own = own.args(["-c", "sleep 9 # worker"]).spawn().unwrap();
        assert!(!is_worker(own.id()), "a word of the command only");
        own.kill().unwrap();
        own.wait().unwrap();
    }

    #[test]
    fn a_worker_is_refused_for_its_token_version_cpus_or_twin() {
        let terms = Terms { secret: "abc".into(), version: "1.2".into() };
        let refusal = |change: fn(&mut Hello), known: &[u64]| {
            let mut hello = hello();
            change(&mut hello);
            terms.refusal(&hello, known).unwrap_or_default()
        };
        assert_eq!(refusal(|_| {}, &[1, 2]), "");
        assert!(refusal(|one| one.secret = "abd".into(), &[]).contains("another fleet"));
        assert!(refusal(|one| one.secret = "ab".into(), &[]).contains("another fleet"));
        let version = refusal(|one| one.version = "1.1".into(), &[]);
        assert_eq!(version, "it is cachedyno 1.1 and the driver 1.2 (expected the same version)");
        assert!(refusal(|one| one.protocol += 1, &[]).contains("expected the same version"));
        assert_eq!(refusal(|_| {}, &[42]), "it has joined already");
        assert_eq!(refusal(|one| one.cpus.clear(), &[]), "it has no CPU");
    }
}
