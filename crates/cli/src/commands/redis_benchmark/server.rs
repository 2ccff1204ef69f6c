//! Connects to the servers before the tests and reads their configuration.

use std::time::Duration;

use drivers::redis::chosen::{ReadFrom, SelectedNodes};
use drivers::redis::cluster::SlotMap;
use drivers::redis::hello::{Login, hello};
use drivers::redis::{ClusterDeadline, Control, Tree};
use drivers::tls::{self, Check};
use load::wire::protocol::{Expect, Greeting, Shape};
use load::wire::route::{Route, Single};
use load::wire::{Address, Servers, Tls};
use model::{Endpoint, ErrorClass, Failure, NetAddress, RedisOptions, TlsFiles};

use super::arguments::{Options, Server};
use super::output::{Configuration, ServerInfo};
use crate::output::plain;

/// Timeout of a request before the tests.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Requests sent after the login, in RESP.
const TRACKING: &[u8] = b"*3\r\n$6\r\nCLIENT\r\n$8\r\nTRACKING\r\n$2\r\non\r\n";
const READONLY: &[u8] = b"*1\r\n$8\r\nREADONLY\r\n";

/// The servers under test.
pub(super) struct Deployment {
    pub(super) servers: Servers,
    pub(super) info: ServerInfo,
    /// Warnings about the servers, one sentence each.
    pub(super) warnings: Vec<String>,
    /// One connection to each server.
    pub(super) controls: Vec<Control>,
}

/// Connects to the servers and reads their configuration.
pub(super) fn open(server: &Server) -> Result<Deployment, String> {
    let mut warnings = Vec::new();
    let tls = tls_of(server, &mut warnings)?;
    let mut first = log_in(server, &place(server), tls.as_ref())?;
    if server.is_cluster {
        return open_cluster(server, first, tls, warnings);
    }
    let configuration = configuration(&mut first, &address_of(server), &mut warnings)?;
    let nodes = vec![first.address().clone()];
    let servers = servers(server, nodes, tls, Box::new(Single));
    Ok(Deployment {
        servers,
        info: ServerInfo::Server(configuration),
        warnings,
        controls: vec![first],
    })
}

fn open_cluster(
    server: &Server,
    mut first: Control,
    tls: Option<Tls>,
    mut warnings: Vec<String>,
) -> Result<Deployment, String> {
    let place = address_of(server);
    let wrong = |e: &dyn std::fmt::Display| {
        format!("cannot read the cluster's configuration from {place}: {e}")
    };
    let answer = first.ask(&[b"CLUSTER", b"SLOTS"]).map_err(|e| wrong(&e.message))?;
    let map = SlotMap::from_slots(&answer, &server.host).map_err(|e| wrong(&e))?;
    if map.uncovered() > 0 {
        warnings.push(format!("{} slots of the cluster have no server", map.uncovered()));
    }
    let (route, numbers) =
        SelectedNodes::new(map, server.read_from).map_err(|e| format!("{e} (see --rfr)"))?;
    let (mut nodes, mut info, mut controls) = (Vec::new(), Vec::new(), Vec::new());
    let in_turn = ClusterDeadline::new(TIMEOUT);
    for number in numbers {
        in_turn.check().map_err(|e| e.message)?;
        let node = &route.map().nodes()[number];
        let at = NetAddress::Tcp(node.host.clone(), node.port);
        let mut control = log_in(server, &at, tls.as_ref())?;
        let identity = match control.ask(&[b"CLUSTER", b"MYID"]) {
            Ok(Tree::Text(text)) => plain(&String::from_utf8_lossy(&text)).into(),
            _ => String::new(),
        };
        let configuration = configuration(&mut control, &at.to_string(), &mut warnings)?;
        nodes.push(control.address().clone());
        info.push((identity, at.to_string(), configuration));
        controls.push(control);
    }
    let servers = servers(server, nodes, tls, Box::new(route));
    Ok(Deployment { servers, info: ServerInfo::Cluster(info), warnings, controls })
}

fn servers(
    server: &Server,
    nodes: Vec<Address>,
    tls: Option<Tls>,
    route: Box<dyn Route>,
) -> Servers {
    let mut greeting = hello(&Login {
        user: server.user.as_deref(),
        password: server.password.as_ref(),
        // A cluster has only database 0.
        database: if server.is_cluster { 0 } else { server.database },
        resp3: server.is_resp3,
        ..Login::default()
    });
    let replicas = server.is_cluster && server.read_from != ReadFrom::Primaries;
    for (is_wanted, request) in [(server.is_tracking, TRACKING), (replicas, READONLY)] {
        if is_wanted {
            greeting.bytes.extend_from_slice(request);
            let expect = Expect { shape: Shape::Done, bytes: None, verify: false, key: 0 };
            greeting.replies.push(Greeting { expect, harmless: false, secret: false });
        }
    }
    Servers {
        nodes,
        tls,
        hello: greeting.bytes,
        hello_replies: greeting.replies,
        route,
        survey: None,
    }
}

fn place(server: &Server) -> NetAddress {
    match &server.socket {
        Some(path) => NetAddress::Unix(path.clone()),
        None => NetAddress::Tcp(server.host.clone(), server.port),
    }
}

/// The servers as the workers of a fleet connect to them. Errors: an option that workers lack.
pub(super) fn endpoint(server: &Server) -> Result<Endpoint, String> {
    let flags = &server.tls;
    let unsupported = [
        ("--enable-tracking", server.is_tracking),
        ("--rfr", server.is_cluster && server.read_from != ReadFrom::Primaries),
        ("--cacertdir", flags.ca_directory.is_some()),
        ("--tls-ciphers", flags.ciphers.is_some()),
        ("--tls-ciphersuites", flags.ciphersuites.is_some()),
    ];
    if let Some((flag, _)) = unsupported.iter().find(|(_, is_given)| *is_given) {
        return Err(format!("{flag} is not supported with --fleet (expected one of them)"));
    }
    let tls = (flags.is_on && server.socket.is_none()).then(|| TlsFiles {
        ca_file: flags.ca_file.clone(),
        certificate: flags.certificate.clone(),
        key: flags.key.clone(),
        name: flags.name.clone(),
        is_insecure: flags.is_insecure,
    });
    let options = RedisOptions {
        tls,
        is_cluster: server.is_cluster,
        is_resp3: server.is_resp3,
        // It can be a proxy, to which nothing but the tests must be sent, as without a fleet.
        behind: if server.is_cluster { Vec::new() } else { vec![place(server)] },
        ..RedisOptions::default()
    };
    Ok(Endpoint::Redis {
        address: place(server),
        user: server.user.clone(),
        password: server.password.clone(),
        database: if server.is_cluster { 0 } else { server.database },
        options,
    })
}

/// The server's address as given by the user.
pub(super) fn address_of(server: &Server) -> String {
    match &server.socket {
        Some(path) => path.display().to_string(),
        None => format!("{}:{}", server.host, server.port),
    }
}

/// Opens another connection to the first server without logging in.
pub(super) fn connect(server: &Server, tls: Option<&Tls>) -> Result<Control, Failure> {
    connect_to(&place(server), tls)
}

fn connect_to(address: &NetAddress, tls: Option<&Tls>) -> Result<Control, Failure> {
    Control::connect(&Endpoint::redis(address.clone()), tls, TIMEOUT)
}

fn log_in(server: &Server, address: &NetAddress, tls: Option<&Tls>) -> Result<Control, String> {
    let failed = |e: Failure| format!("could not connect to Redis: {}", e.message);
    let mut control = connect_to(address, tls).map_err(failed)?;
    let mut send = |words: &[&[u8]]| match control.ask(words).map_err(failed)? {
        Tree::Error(answer) => Err(error_reply(server, &address.to_string(), &answer)),
        _ => Ok(()),
    };
    let password = server.password.as_ref().map(|p| p.reveal().as_bytes());
    match (server.user.as_ref().map(String::as_bytes), password) {
        (Some(user), Some(password)) => send(&[b"AUTH", user, password])?,
        (None, Some(password)) => send(&[b"AUTH", password])?,
        (_, None) => {}
    }
    if server.database != 0 && !server.is_cluster {
        send(&[b"SELECT", server.database.to_string().as_bytes()])?;
    }
    Ok(control)
}

/// The text of an error reply. The password is masked, since some servers quote the request.
fn error_reply(server: &Server, address: &str, answer: &[u8]) -> String {
    let mut text = String::from_utf8_lossy(answer).into_owned();
    if let Some(password) = server.password.as_ref().filter(|p| !p.reveal().is_empty()) {
        text = text.replace(password.reveal(), "***");
    }
    format!("node {address} replied with error: {text}")
}

/// The server's persistence settings; `None` if it does not allow `CONFIG GET`. A proxy that does
/// not know the command closes the connection.
fn configuration(
    control: &mut Control,
    address: &str,
    warnings: &mut Vec<String>,
) -> Result<Option<Configuration>, String> {
    let mut read = |name: &[u8]| -> Result<Option<String>, String> {
        let answer = match control.ask(&[b"CONFIG", b"GET", name]) {
            Err(e) if e.class == ErrorClass::Closed => return Ok(None),
            answer => answer.map_err(|e| format!("{address}: {}", e.message))?,
        };
        match answer {
            Tree::List(pair) => Ok(match pair.get(1) {
                Some(Tree::Text(value)) => Some(plain(&String::from_utf8_lossy(value)).into()),
                _ => None,
            }),
            Tree::Error(words) if words.starts_with(b"NOAUTH") => {
                let words = String::from_utf8_lossy(&words).into_owned();
                Err(format!("node {address} replied with error: {words}"))
            }
            _ => Ok(None),
        }
    };
    let (save, appendonly) = (read(b"save")?, read(b"appendonly")?);
    let info = save.zip(appendonly).map(|(save, appendonly)| Configuration { save, appendonly });
    if info.is_none() {
        warnings.push(format!("{address} does not report its configuration (CONFIG GET)"));
    }
    Ok(info)
}

impl Deployment {
    /// Reconnects to the server if it has closed the connection for queries. A proxy does so on a
    /// command that it does not know.
    pub(super) fn reconnect(&mut self, server: &Server) {
        if let ([control], false) = (&mut self.controls[..], server.is_cluster)
            && !control.is_open()
            && let Ok(again) = log_in(server, &place(server), self.servers.tls.as_ref())
        {
            *control = again;
        }
    }

    /// Number of threads as reported: in a cluster one per server, unless set by the user.
    pub(super) fn threads(&self, options: &Options) -> u32 {
        match (&self.info, options.load.threads) {
            (ServerInfo::Cluster(nodes), 0) => nodes.len() as u32,
            (_, threads) => threads,
        }
    }
}

/// The requested TLS configuration. As in the original, a certificate from the user's own
/// authorities is accepted for any server name, but with a warning and only if no password is sent.
/// Certificates from the system's authorities must match the name.
fn tls_of(server: &Server, warnings: &mut Vec<String>) -> Result<Option<Tls>, String> {
    let flags = &server.tls;
    if !flags.is_on || server.socket.is_some() {
        return Ok(None);
    }
    let options = tls::Options {
        ca_file: flags.ca_file.clone(),
        ca_directory: flags.ca_directory.clone(),
        check: if flags.is_insecure { Check::Nothing } else { Check::Full },
        certificate: flags.certificate.clone(),
        key: flags.key.clone(),
        name: flags.name.clone(),
        ciphers: flags.ciphers.clone(),
        ciphersuites: flags.ciphersuites.clone(),
        ..tls::Options::default()
    };
    let make = |options: &tls::Options| {
        tls::client(options, &server.host).map_err(|e| format!("cannot use TLS: {e}"))
    };
    let full = make(&options)?;
    let Err(failure) = connect(server, Some(&full)) else { return Ok(Some(full)) };
    let (name, is_named) = (flags.name.as_deref().unwrap_or(&server.host), !flags.is_insecure);
    let own = flags.ca_file.is_some() || flags.ca_directory.is_some();
    if own && is_named {
        let any_name = make(&tls::Options { check: Check::Authority, ..options })?;
        if connect(server, Some(&any_name)).is_ok() {
            if server.password.is_some() {
                return Err(format!(
                    "the server's certificate is not for `{name}`, so no password is sent \
                     (expected --sni NAME with the name in the certificate, or --insecure)"
                ));
            }
            warnings.push(format!(
                "the server's certificate is not for `{name}` (set the expected name with \
                 --sni NAME)"
            ));
            return Ok(Some(any_name));
        }
    }
    let hint = match failure.class {
        ErrorClass::Timeout => " (does the server use TLS?)",
        _ => "",
    };
    Err(format!("could not connect to Redis: {}{hint}", failure.message))
}
