//! A worker that lends its machine: starts private servers for a driver on another one.
//!
//! Servers listen on the address at which the driver connects. Their passwords are random for each
//! start and reach the driver by TLS only.

use model::{Condition, ErrorClass, Failure};
use rig::{FreeSpace, Guard, ProcessTree, Server, ServerSpec, StolenCpuReader, Templates};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use super::FleetError;
use super::endpoint::{SentEndpoint, resolved};
use super::link::{Arrived, Link};
use super::rig_messages::{Asked, FromRig, Lent, Numbered, RigReading, ToRig};
use super::strangers::{Mail, Stranger, Strangers};
use super::token::{Token, is_same};

const LOOK_EVERY: Duration = Duration::from_millis(50);

/// What is lent.
pub struct Lending<'a> {
    /// `HOST:PORT` to listen on; servers listen on the same host.
    pub address: &'a str,
    /// File to write the token to.
    pub token_file: &'a Path,
    /// CPUs for servers.
    pub cpus: Vec<usize>,
    /// Directory for their data.
    pub disk: PathBuf,
    /// Ends servers should this process die.
    pub guard: Guard,
    /// Version of this program.
    pub version: &'a str,
    /// Its host name.
    pub host: String,
    /// Facts about this machine.
    pub conditions: Vec<Condition>,
}

/// Serves one driver after the other until `stop` is set. `notice` gets lines for the user.
pub fn lend(
    lending: &Lending<'_>,
    stop: &AtomicBool,
    notice: &mut dyn FnMut(&str),
) -> Result<(), FleetError> {
    let address = resolved(lending.address, "--listen")?;
    let Some(host) = address.iter().find_map(v4) else {
        return Err(FleetError(format!(
            "--listen `{}` is not an IPv4 address of this machine (expected one that the driver \
             reaches, such as 10.0.0.7:7000)",
            lending.address
        )));
    };
    if host.is_unspecified() {
        return Err(FleetError(format!(
            "--listen `{}` is every address of this machine (expected the one that the driver \
             reaches, such as 10.0.0.7:7000: servers listen on it)",
            lending.address
        )));
    }
    let (token, config) = Token::new()?;
    let listener = TcpListener::bind(&address[..])
        .and_then(|listener| listener.set_nonblocking(true).map(|()| listener))
        .map_err(|e| {
            FleetError(format!(
                "cannot listen on `{}`: {e} (expected an address of this machine and a free port)",
                lending.address
            ))
        })?;
    let _token_file = token.write(lending.token_file)?;
    let path = lending.token_file.display();
    // With port 0, the one that was chosen.
    let address = listener.local_addr().map_or(lending.address.into(), |own| own.to_string());
    notice(&format!("waiting for a driver: start it with --rig-on {address} --rig-token {path}"));
    let mut strangers = Strangers::<Numbered<ToRig>>::new(listener, config);
    while !stop.load(Ordering::Relaxed) {
        match strangers.hear(LOOK_EVERY) {
            Some(((number, Arrived::Message(first)), Some(stranger))) => {
                let from = stranger.from;
                if let Some(refusal) = refusal(&first.message, lending, &token) {
                    notice(&format!("the driver at {from} was refused: {refusal}"));
                    stranger.link.send(&denied(first.number, refusal));
                    continue;
                }
                notice(&format!("serving the driver at {from}"));
                let mut lender = Lender::new(lending, host, &token);
                match lender.serve((number, stranger), &first, &mut strangers, (stop, notice)) {
                    Ok(()) => notice(&format!("the driver at {from} is done")),
                    Err(_) if stop.load(Ordering::Relaxed) => {
                        notice(&format!("interrupted while the driver at {from} used it"));
                    }
                    Err(FleetError(why)) => notice(&format!("the driver at {from} is gone: {why}")),
                }
            }
            Some(((_, Arrived::Gone(why)), Some(Stranger { from, .. }))) => {
                notice(&format!("a connection of {from} ended before it was served: {why}"));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Why the sender of a first message is not served.
fn refusal(first: &ToRig, lending: &Lending<'_>, token: &Token) -> Option<String> {
    match first {
        ToRig::Hello { secret, .. } if !is_same(secret, &token.secret) => {
            Some("the token is of another worker".into())
        }
        ToRig::Hello { version, .. } if version != lending.version => Some(format!(
            "the worker is cachedyno {} and the driver {version} (expected the same version)",
            lending.version
        )),
        ToRig::Hello { .. } => None,
        _ => Some("the driver did not say who it is".into()),
    }
}

fn denied(number: u64, message: String) -> Numbered<FromRig> {
    let message = FromRig::Failed(Failure { class: ErrorClass::Denied, message });
    Numbered { number, message }
}

fn v4(address: &SocketAddr) -> Option<Ipv4Addr> {
    match address.ip() {
        IpAddr::V4(address) => Some(address),
        IpAddr::V6(_) => None,
    }
}

/// Servers of one driver.
struct Lender<'a> {
    lending: &'a Lending<'a>,
    host: Ipv4Addr,
    token: &'a Token,
    templates: Templates,
    /// By number of the start, with the name of the target. Dropping them ends them.
    servers: BTreeMap<u64, (String, Vec<Server>)>,
    stolen: Option<StolenCpuReader>,
}

impl<'a> Lender<'a> {
    fn new(lending: &'a Lending<'a>, host: Ipv4Addr, token: &'a Token) -> Self {
        let (templates, servers) = (Templates::default(), BTreeMap::new());
        Self { lending, host, token, templates, servers, stolen: None }
    }

    /// Answers a driver until it says that it is done, and refuses others meanwhile. Errors: it has
    /// gone.
    fn serve(
        &mut self,
        (connection, driver): (usize, Stranger),
        first: &Numbered<ToRig>,
        strangers: &mut Strangers<Numbered<ToRig>>,
        (stop, notice): (&AtomicBool, &mut dyn FnMut(&str)),
    ) -> Result<(), FleetError> {
        let Stranger { link, from, .. } = driver;
        link.trust();
        let inbox = strangers.part(&denied(first.number, "another driver came first".into()));
        let is_over = AtomicBool::new(false);
        let Self { lending, token, .. } = *self;
        thread::scope(|scope| {
            // A server may take long to start; nobody else waits for that.
            scope.spawn(|| {
                strangers.turn_away(&is_over, |Numbered { number, message }| {
                    let in_use = || format!("it is in use by the driver at {from}");
                    let why = refusal(&message, lending, token).unwrap_or_else(in_use);
                    Some(denied(number, why))
                });
            });
            let Lending { host, conditions, disk, .. } = lending;
            let (host, conditions) = (host.clone(), conditions.clone());
            let (cpus, free) = (lending.cpus.clone(), FreeSpace::on(disk));
            let lent = Lent { host, conditions, cpus, free };
            link.send(&Numbered { number: first.number, message: FromRig::Lent(lent) });
            let ended = self.answer_all(connection, &link, &inbox, (stop, notice));
            is_over.store(true, Ordering::Relaxed);
            ended
        })
    }

    /// Answers the questions of a driver.
    fn answer_all(
        &mut self,
        driver: usize,
        link: &Link,
        inbox: &Receiver<Mail<Numbered<ToRig>>>,
        (stop, notice): (&AtomicBool, &mut dyn FnMut(&str)),
    ) -> Result<(), FleetError> {
        loop {
            match inbox.recv_timeout(LOOK_EVERY) {
                Ok((from, Arrived::Message(Numbered { number, message }))) if from == driver => {
                    if let ToRig::Goodbye = message {
                        return Ok(());
                    }
                    let message = self.answer(message, notice);
                    link.send(&Numbered { number, message });
                }
                Ok((from, Arrived::Gone(why))) if from == driver => {
                    return Err(FleetError(why.to_string()));
                }
                Err(RecvTimeoutError::Timeout) if stop.load(Ordering::Relaxed) => {
                    return Err(FleetError("interrupted".into()));
                }
                // Others were refused when this driver came.
                Ok(_) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(FleetError("it has gone".into()));
                }
            }
        }
    }

    fn answer(&mut self, question: ToRig, notice: &mut dyn FnMut(&str)) -> FromRig {
        match question {
            ToRig::Start(asked) => {
                let name = asked.target.name.clone();
                match self.start(&asked) {
                    Ok(endpoint) => {
                        notice(&format!("started {name}"));
                        FromRig::Started { endpoint }
                    }
                    Err(failure) => {
                        notice(&format!("cannot start {name}: {}", failure.message));
                        FromRig::Failed(failure)
                    }
                }
            }
            ToRig::Read => self.read().map_or_else(FromRig::Failed, FromRig::Reading),
            ToRig::Stop { number } => {
                if let Some((name, servers)) = self.servers.remove(&number) {
                    drop(servers);
                    notice(&format!("stopped {name}"));
                }
                self.stolen = None;
                FromRig::Stopped
            }
            ToRig::Hello { .. } | ToRig::Goodbye => FromRig::Stopped,
        }
    }

    /// Starts servers, and returns their endpoint.
    fn start(&mut self, asked: &Asked) -> Result<SentEndpoint, Failure> {
        let Asked { number, product, target, cpus } = asked;
        let wrong = |message: String| Failure { class: ErrorClass::Missing, message };
        let own = &self.lending.cpus;
        let spec = ServerSpec {
            program: target.program,
            settings: target.settings_of(*product),
            cpus: Some(own[..(*cpus).min(own.len())].to_vec()),
            bind: Some(self.host),
            ..ServerSpec::new(&self.lending.disk)
        };
        let started = rig::start_server(*product, &self.lending.guard, &mut self.templates, &spec)?;
        let (endpoint, servers) = started.ok_or_else(|| wrong("it has no server".into()))?;
        let endpoint = SentEndpoint::of(&endpoint).map_err(|FleetError(e)| wrong(e))?;
        let servers = servers.into_iter().map(|(_, server)| server).collect();
        self.servers.insert(*number, (target.name.clone(), servers));
        self.stolen = None;
        Ok(endpoint)
    }

    fn all(&self) -> impl Iterator<Item = &Server> {
        self.servers.values().flat_map(|(_, servers)| servers)
    }

    fn read(&mut self) -> Result<RigReading, Failure> {
        if let Some(how) = self.all().find_map(Server::died) {
            let message = format!("a server on {} died ({how})", self.host);
            return Err(Failure { class: ErrorClass::Closed, message });
        }
        let pids: Vec<u32> = self.all().map(Server::pid).collect();
        let tree = ProcessTree::new(&pids);
        let cpus = &self.lending.cpus;
        let stolen = self
            .stolen
            .get_or_insert_with(|| StolenCpuReader::of_servers(&[], cpus, ProcessTree::new(&pids)));
        let taken_ns = stolen.read().from_servers_ns;
        let free = FreeSpace::on(&self.lending.disk);
        Ok(RigReading { cpu_ns: tree.cpu_ns(), taken_ns, free })
    }
}
