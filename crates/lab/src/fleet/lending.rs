//! A worker that lends its machine: starts private servers for a driver on another one.
//!
//! Servers listen on the address at which the driver connects. Their passwords are random for each
//! start and reach the driver by TLS only.

use model::{Condition, ErrorClass, Failure};
use rig::{FreeSpace, Guard, ProcessTree, Server, ServerSpec, StolenCpuReader, Templates};
use rustls::{Connection, ServerConfig, ServerConnection};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::thread;
use std::time::{Duration, Instant};

use super::FleetError;
use super::endpoint::{SentEndpoint, resolved};
use super::link::{Arrived, Link};
use super::rig_messages::{Asked, FromRig, Lent, Numbered, RigReading, ToRig};
use super::token::{Token, is_same};

const LOOK_EVERY: Duration = Duration::from_millis(50);
/// How long a driver may take to say who it is.
const HELLO_WITHIN: Duration = Duration::from_secs(5);
/// Most connections that wait to be refused.
const WAITING_MAX: usize = 64;

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
        .map_err(|e| FleetError(format!("cannot listen on `{}`: {e}", lending.address)))?;
    token.write(lending.token_file)?;
    let path = lending.token_file.display();
    notice(&format!(
        "waiting for a driver: start it with --rig-on {} --rig-token {path}",
        lending.address
    ));
    while !stop.load(Ordering::Relaxed) {
        match listener.accept() {
            Ok((stream, from)) => {
                let connection = ServerConnection::new(Arc::clone(&config));
                let Ok(connection) = connection else { continue };
                let mut lender = Lender::new(lending, host, &token);
                let mut others =
                    Others { listener: &listener, config: &config, from, waiting: Vec::new() };
                notice(&format!("serving the driver at {from}"));
                let ended = lender.serve(stream, Connection::Server(connection), stop, &mut others);
                match ended {
                    Ok(()) => notice(&format!("the driver at {from} is done")),
                    Err(FleetError(why)) => notice(&format!("the driver at {from} is gone: {why}")),
                }
            }
            Err(_) => thread::sleep(LOOK_EVERY),
        }
    }
    // Nobody can connect with it any more.
    let _ = std::fs::remove_file(lending.token_file);
    Ok(())
}

/// Drivers that connect while another one uses the machine.
struct Others<'a> {
    listener: &'a TcpListener,
    config: &'a Arc<ServerConfig>,
    /// Address of the driver that uses the machine.
    from: SocketAddr,
    waiting: Vec<Other>,
}

/// One of them.
struct Other {
    link: Link,
    inbox: Receiver<Arrived<Numbered<ToRig>>>,
    since: Instant,
}

impl Others<'_> {
    /// Refuses those that have said who they are.
    fn turn_away(&mut self) {
        if self.waiting.len() < WAITING_MAX
            && let Ok((stream, _)) = self.listener.accept()
            && let Ok(connection) = ServerConnection::new(Arc::clone(self.config))
            && let Ok((link, inbox)) =
                Link::receiving(stream, Connection::Server(connection), Instant::now())
        {
            self.waiting.push(Other { link, inbox, since: Instant::now() });
        }
        let from = self.from;
        self.waiting.retain(|Other { link, inbox, since }| match inbox.try_recv() {
            Ok(Arrived::Message(Numbered { number, .. })) => {
                let message = format!("it is in use by the driver at {from}");
                let message = FromRig::Failed(Failure { class: ErrorClass::Denied, message });
                link.send(&Numbered { number, message });
                false
            }
            Ok(Arrived::Clock(_)) | Err(TryRecvError::Empty) => since.elapsed() < HELLO_WITHIN,
            Ok(Arrived::Gone(_)) | Err(TryRecvError::Disconnected) => false,
        });
    }
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
    /// By number of the start. Dropping them ends them.
    servers: BTreeMap<u64, Vec<Server>>,
    stolen: Option<StolenCpuReader>,
    is_known: bool,
}

impl<'a> Lender<'a> {
    fn new(lending: &'a Lending<'a>, host: Ipv4Addr, token: &'a Token) -> Self {
        let (templates, servers) = (Templates::default(), BTreeMap::new());
        Self { lending, host, token, templates, servers, stolen: None, is_known: false }
    }

    /// Answers a driver until it says that it is done. Errors: it has gone or is not known.
    fn serve(
        &mut self,
        stream: TcpStream,
        connection: Connection,
        stop: &AtomicBool,
        others: &mut Others<'_>,
    ) -> Result<(), FleetError> {
        let opened = Link::receiving(stream, connection, Instant::now());
        let (link, inbox) = opened.map_err(|e| FleetError(e.to_string()))?;
        let since = Instant::now();
        loop {
            if !self.is_known && since.elapsed() > HELLO_WITHIN {
                return Err(FleetError("it did not say who it is".into()));
            }
            // The others wait for a driver that is not known yet to be refused.
            if self.is_known {
                others.turn_away();
            }
            let Some(arrived) = next(&inbox, stop)? else { continue };
            match arrived {
                Arrived::Message(Numbered { message: ToRig::Goodbye, .. }) => return Ok(()),
                Arrived::Message(Numbered { number, message }) => {
                    link.send(&Numbered { number, message: self.answer(message) });
                    if !self.is_known {
                        // The answer leaves before the link closes.
                        return Err(FleetError("it was refused".into()));
                    }
                    link.trust();
                }
                Arrived::Clock(_) => {}
                Arrived::Gone(why) => return Err(FleetError(why)),
            }
        }
    }

    fn answer(&mut self, question: ToRig) -> FromRig {
        let refused =
            |message: String| FromRig::Failed(Failure { class: ErrorClass::Denied, message });
        match question {
            ToRig::Hello { secret, .. } if !is_same(&secret, &self.token.secret) => {
                refused("the token is of another worker".into())
            }
            ToRig::Hello { version, .. } if version != self.lending.version => refused(format!(
                "the worker is cachedyno {} and the driver {version} (expected the same version)",
                self.lending.version
            )),
            ToRig::Hello { .. } => {
                self.is_known = true;
                let Lending { host, conditions, disk, .. } = self.lending;
                let (host, conditions) = (host.clone(), conditions.clone());
                FromRig::Lent(Lent { host, conditions, free: FreeSpace::on(disk) })
            }
            _ if !self.is_known => refused("the driver did not say who it is".into()),
            ToRig::Start(asked) => self.start(&asked).unwrap_or_else(FromRig::Failed),
            ToRig::Read => self.read().map_or_else(FromRig::Failed, FromRig::Reading),
            ToRig::Stop { number } => {
                self.servers.remove(&number);
                self.stolen = None;
                FromRig::Stopped
            }
            ToRig::Goodbye => FromRig::Stopped,
        }
    }

    fn start(&mut self, asked: &Asked) -> Result<FromRig, Failure> {
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
        self.servers.insert(*number, servers);
        self.stolen = None;
        Ok(FromRig::Started { endpoint })
    }

    fn all(&self) -> impl Iterator<Item = &Server> {
        self.servers.values().flatten()
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
            .get_or_insert_with(|| StolenCpuReader::new(&[], cpus, ProcessTree::new(&pids)));
        let taken_ns = stolen.read().from_servers_ns;
        let free = FreeSpace::on(&self.lending.disk);
        Ok(RigReading { cpu_ns: tree.cpu_ns(), taken_ns, free })
    }
}

fn next(
    inbox: &Receiver<Arrived<Numbered<ToRig>>>,
    stop: &AtomicBool,
) -> Result<Option<Arrived<Numbered<ToRig>>>, FleetError> {
    match inbox.recv_timeout(LOOK_EVERY) {
        Ok(arrived) => Ok(Some(arrived)),
        Err(RecvTimeoutError::Timeout) if stop.load(Ordering::Relaxed) => {
            Err(FleetError("interrupted".into()))
        }
        Err(RecvTimeoutError::Timeout) => Ok(None),
        Err(RecvTimeoutError::Disconnected) => Ok(Some(Arrived::Gone("it has gone".into()))),
    }
}
