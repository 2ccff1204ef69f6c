//! The driver's side: workers join, and are known by number and host.

use model::Condition;
use rig::{Guard, Pinning};
use rustls::{Connection, ServerConfig, ServerConnection};
use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use super::endpoint::resolved;
use super::link::{Arrived, Link};
use super::local::Placed;
use super::machines::Machines;
use super::messages::{Hello, PROTOCOL, ToDriver, ToWorker};
use super::token::{Token, is_same};
use super::{FleetError, counted_workers};

/// How long a connection may take to say who it is.
const HELLO_WITHIN: Duration = Duration::from_secs(5);
/// Connections that have not said who they are, at most.
const STRANGERS_MAX: usize = 256;
const PAUSE: Duration = Duration::from_millis(10);
/// How often connections are looked for once the fleet is complete.
const SELDOM: Duration = Duration::from_millis(200);
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

/// What arrived, with the number of its connection.
pub(super) type Mail = (usize, Arrived<ToDriver>);

/// A worker of the fleet.
pub(super) struct Member {
    /// Number of its connection.
    pub(super) connection: usize,
    pub(super) name: String,
    pub(super) link: Link,
    /// Its host and CPUs.
    place: (String, Vec<usize>),
    /// True if another one may run on one of its CPUs.
    pub(super) shares_cpus: bool,
}

impl Member {
    /// Its host with each of its CPUs.
    fn cpus(&self) -> impl Iterator<Item = (String, usize)> {
        let (host, cpus) = &self.place;
        cpus.iter().map(|cpu| (host.clone(), *cpu))
    }
}

/// Workers that offer loads together. Dropping it sends them away and ends those started here.
pub struct Fleet {
    pub(super) members: Vec<Member>,
    pub(super) inbox: Mutex<Receiver<Mail>>,
    /// Why a worker has left, once one has.
    pub(super) gone: Mutex<Option<String>>,
    /// Number of the last load.
    pub(super) jobs: AtomicU64,
    pub(super) placed: Placed,
    /// Token file to remove.
    token_file: Option<PathBuf>,
    /// Facts about machines of workers; empty if it is this one.
    machines: Machines,
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
        if let Some(path) = &self.token_file {
            // Nobody can join with it any more.
            let _ = std::fs::remove_file(path);
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
                placed.start_on_ray(guard, (workers, *cpus), (own(&listener)?.port(), &path))?;
                (listener, None, *within)
            }
            Gathering::Listen { address, token_file, within, .. } => {
                let listener = listen(address)?;
                token.write(token_file)?;
                let (address, path) = (own(&listener)?, token_file.display());
                notice(&format!(
                    "waiting for {}: start each with `cachedyno worker --join {address} \
                     --token-file {path}`",
                    counted_workers(workers)
                ));
                (listener, Some(token_file.clone()), *within)
            }
        };
        let (mailbox, inbox) = channel();
        let mut fleet = Self {
            members: Vec::new(),
            inbox: Mutex::new(inbox),
            gone: Mutex::default(),
            jobs: AtomicU64::new(0),
            placed,
            token_file,
            machines: Machines::default(),
            is_over: Arc::default(),
        };
        let terms = Terms { secret: token.secret, version: version.into() };
        let mut door = Door { listener, config, mailbox, terms };
        door.admit(&mut fleet, (workers, within), stop, notice)?;
        fleet.note_shared_cpus(notice);
        let is_over = Arc::clone(&fleet.is_over);
        thread::spawn(move || door.turn_away(workers, &is_over));
        Ok(fleet)
    }

    /// Finds the workers that share CPUs with others.
    fn note_shared_cpus(&mut self, notice: &mut dyn FnMut(&str)) {
        let mut users: BTreeMap<(String, usize), usize> = BTreeMap::new();
        for cpu in self.members.iter().flat_map(Member::cpus) {
            *users.entry(cpu).or_default() += 1;
        }
        for member in &mut self.members {
            let shares_cpus = member.cpus().any(|cpu| users[&cpu] > 1);
            member.shares_cpus = shares_cpus;
        }
        let sharing = self.members.iter().filter(|member| member.shares_cpus).count();
        let cpus = users.values().filter(|users| **users > 1).count();
        if sharing > cpus {
            let plural = if cpus == 1 { "" } else { "s" };
            notice(&format!(
                "{sharing} workers share {cpus} CPU{plural}: they wait for each other, and offer \
                 no more load than {cpus} would"
            ));
        }
    }

    /// Process ids of workers on this machine that share CPUs.
    pub(super) fn siblings(&self) -> Vec<u32> {
        let are_alike = self.members.iter().any(|member| member.shares_cpus);
        if are_alike { self.placed.pids() } else { Vec::new() }
    }

    /// Facts about the machines of workers, for the record.
    pub fn conditions(&self) -> Vec<Condition> {
        self.machines.conditions()
    }

    /// Process ids of workers on this machine.
    pub fn pids(&self) -> Vec<u32> {
        self.placed.pids()
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
        FleetError(format!("cannot wait for workers at `{address}`: {e} (expected a free port)"))
    })
}

fn own(listener: &TcpListener) -> Result<SocketAddr, FleetError> {
    listener.local_addr().map_err(|e| FleetError(format!("cannot wait for workers: {e}")))
}

/// What a worker must show to join.
struct Terms {
    secret: String,
    version: String,
}

/// Where workers come in.
struct Door {
    listener: TcpListener,
    config: Arc<ServerConfig>,
    mailbox: Sender<Mail>,
    terms: Terms,
}

/// A connection that has not said who it is.
struct Stranger {
    link: Link,
    from: SocketAddr,
    since: Instant,
}

impl Door {
    /// Lets workers in until there are enough.
    fn admit(
        &self,
        fleet: &mut Fleet,
        (workers, within): (u32, Duration),
        stop: &AtomicBool,
        notice: &mut dyn FnMut(&str),
    ) -> Result<(), FleetError> {
        let until = Instant::now() + within;
        let (mut strangers, mut known, mut next) = (BTreeMap::new(), Vec::<u64>::new(), 0);
        while fleet.members.len() < workers as usize {
            let joined = fleet.members.len();
            if stop.load(Ordering::Relaxed) {
                return Err(FleetError("interrupted while workers joined".into()));
            }
            if let Some(how) = fleet.placed.death() {
                return Err(FleetError(format!("the workers cannot join: {how}")));
            }
            if Instant::now() > until {
                return Err(FleetError(format!(
                    "{joined} of {} joined within {} s (expected all of them; --fleet-wait sets \
                     the time)",
                    counted_workers(workers),
                    within.as_secs()
                )));
            }
            if strangers.len() < STRANGERS_MAX {
                next += usize::from(self.greet(next, &mut strangers));
            }
            strangers.retain(|_, stranger: &mut Stranger| stranger.since.elapsed() < HELLO_WITHIN);
            let mail = lock(&fleet.inbox).recv_timeout(PAUSE);
            let Ok((connection, arrived)) = mail else { continue };
            match arrived {
                Arrived::Message(ToDriver::Hello(hello)) => {
                    let Some(stranger) = strangers.remove(&connection) else { continue };
                    if let Some(why) = self.terms.refusal(&hello, &known) {
                        let from = stranger.from;
                        notice(&format!("a worker at {from} was refused: {why}"));
                        stranger.link.send(&ToWorker::Refused { why });
                        continue;
                    }
                    known.push(hello.id);
                    let member = welcome(stranger.link, connection, joined, &hello);
                    if fleet.placed.pids().is_empty() {
                        fleet.machines.add(&member.name, hello.machine);
                    }
                    fleet.members.push(member);
                }
                Arrived::Gone(why) | Arrived::Message(ToDriver::Leaves { why }) => {
                    if let Some(stranger) = strangers.remove(&connection) {
                        let from = stranger.from;
                        notice(&format!("a connection of {from} ended before it joined: {why}"));
                    } else if let Some(at) =
                        fleet.members.iter().position(|m| m.connection == connection)
                    {
                        let gone = fleet.members.remove(at);
                        return Err(FleetError(format!("{} left the fleet: {why}", gone.name)));
                    }
                }
                Arrived::Message(_) | Arrived::Clock(_) => {
                    strangers.remove(&connection);
                }
            }
        }
        Ok(())
    }

    /// Tells those that come later that the fleet is complete, until it is over.
    fn turn_away(&mut self, workers: u32, is_over: &AtomicBool) {
        let (mailbox, inbox) = channel();
        self.mailbox = mailbox;
        let (mut strangers, mut next) = (BTreeMap::new(), 0);
        while !is_over.load(Ordering::Relaxed) {
            if strangers.len() < STRANGERS_MAX {
                next += usize::from(self.greet(next, &mut strangers));
            }
            strangers.retain(|_, stranger: &mut Stranger| stranger.since.elapsed() < HELLO_WITHIN);
            let Ok((connection, arrived)) = inbox.recv_timeout(SELDOM) else { continue };
            let Some(stranger) = strangers.remove(&connection) else { continue };
            if let Arrived::Message(ToDriver::Hello(hello)) = arrived {
                let full = || format!("the fleet has all of its workers ({workers})");
                let why = self.terms.refusal(&hello, &[]).unwrap_or_else(full);
                stranger.link.send(&ToWorker::Refused { why });
            }
        }
    }

    /// Accepts a connection, if one is waiting.
    fn greet(&self, number: usize, strangers: &mut BTreeMap<usize, Stranger>) -> bool {
        let Ok((stream, from)) = self.listener.accept() else { return false };
        let Ok(connection) = ServerConnection::new(Arc::clone(&self.config)) else { return false };
        let mailbox = self.mailbox.clone();
        let link = Link::open(stream, Connection::Server(connection), Instant::now(), {
            move |arrived| {
                // Nobody listens once the fleet is gone.
                let _ = mailbox.send((number, arrived));
            }
        });
        let Ok(link) = link else { return false };
        strangers.insert(number, Stranger { link, from, since: Instant::now() });
        true
    }
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

fn welcome(link: Link, connection: usize, joined: usize, hello: &Hello) -> Member {
    link.trust();
    let number = joined as u32 + 1;
    link.send(&ToWorker::Welcome { number });
    let name = format!("worker {number} on {}", hello.host);
    let place = (hello.host.clone(), hello.cpus.clone());
    Member { connection, name, link, place, shares_cpus: false }
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
            cpus: vec![0],
            machine: Vec::new(),
        }
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
