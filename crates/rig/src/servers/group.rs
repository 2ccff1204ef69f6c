//! Servers that reach each other, which is not possible over Unix sockets: they listen on ports of
//! 127.0.0.1, or of networks of their own, and require a common password, which is random for each
//! start. With TLS they have a common certificate, and use it among each other too; we ask them on
//! Unix sockets.

use super::listen::{Certificate, over_tls, port_for, quoted, random_password, tls_lines};
use super::redis::{EXECUTABLE, spawn};
use crate::error::{Result, RigError};
use crate::guard::Guard;
use crate::scratch::Scratch;
use crate::server::{Role, Server, ServerSpec};
use model::{Endpoint, NetAddress, Secret};
use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Name of the socket on which we ask a server.
const SOCKET: &str = "server.sock";

/// Sentinels and nodes of a cluster discover each other by messages that they send every second or
/// two.
const READY_WITHIN: Duration = Duration::from_secs(30);

/// Common properties of the servers of a group.
pub(super) struct Group<'a> {
    pub(super) guard: &'a Guard,
    /// Spec with the settings of primaries and replicas.
    pub(super) spec: ServerSpec,
    pub(super) password: String,
    /// Distance of a second port on which the servers talk to each other; 0 for none.
    second_port: u16,
    /// The common certificate; `None` without TLS.
    tls: Option<Certificate>,
}

/// Lines of redis.conf that use TLS among servers.
const TLS_AMONG: &str = "tls-replication yes\ntls-cluster yes\n";

impl<'a> Group<'a> {
    /// A group whose servers have these settings of the spec's.
    pub(super) fn new(guard: &'a Guard, spec: &ServerSpec, is_own: impl Fn(&str) -> bool) -> Self {
        let settings = spec.settings.iter().filter(|(name, _)| is_own(name));
        let settings: BTreeMap<String, String> =
            settings.map(|(name, value)| (name.clone(), value.clone())).collect();
        let spec = ServerSpec { settings, ..spec.clone() };
        Self { guard, spec, password: random_password(), second_port: 0, tls: None }
    }

    /// The same with a second port, that far above the first, on which they talk to each other.
    pub(super) fn with_second_port(self, second_port: u16) -> Self {
        Self { second_port, ..self }
    }

    /// The same with TLS, if wanted.
    pub(super) fn with_tls(self, is_tls: bool) -> Result<Self> {
        let addresses = [self.spec.address(), self.spec.of_others().address()];
        let tls = is_tls.then(|| Certificate::of(&addresses)).transpose()?;
        Ok(Self { tls, ..self })
    }

    /// Starts the primary or replica of this number with further lines, and waits until it replies.
    pub(super) fn start(&self, number: usize, role: Role, line: &str) -> Result<(Role, Server)> {
        // By default the primary waits five seconds for more replicas before a transfer.
        let password = &self.password;
        let lines = format!("masterauth {password}\nrepl-diskless-sync-delay 0\n{line}");
        let spec = if number == 0 { self.spec.clone() } else { self.spec.of_others() };
        let server = (role, self.listen((&lines, &[]), &spec)?);
        self.wait(&server, "INFO replication", |info| info.contains("role:"))?;
        Ok(server)
    }

    /// Starts a Sentinel with these lines.
    pub(super) fn start_sentinel(&self, lines: &str) -> Result<Server> {
        let spec = ServerSpec { settings: BTreeMap::new(), ..self.spec.of_others() };
        self.listen((lines, &["--sentinel"]), &spec)
    }

    fn listen(&self, (lines, arguments): (&str, &[&str]), spec: &ServerSpec) -> Result<Server> {
        let port = port_for(EXECUTABLE.or(spec.program).name, self.second_port)?;
        let password = &self.password;
        let host = spec.address();
        let mut text = format!("bind {host}\nrequirepass {password}\n{lines}\n").into_bytes();
        let endpoint = Endpoint::redis(NetAddress::Tcp(host.to_string(), port));
        let mut endpoint = endpoint.with_password(Some(Secret::new(password)));
        let files = Scratch::for_sockets(self.guard)?;
        text.extend(b"unixsocketperm 700\nunixsocket ");
        text.extend(quoted(&files.socket(SOCKET)?));
        text.push(b'\n');
        match &self.tls {
            None => text.extend(format!("port {port}\n").bytes()),
            Some(certificate) => {
                let paths = certificate.write(&files)?;
                text.extend(tls_lines(port, &paths));
                text.extend(TLS_AMONG.bytes());
                let [certificate, _] = paths;
                endpoint = over_tls(endpoint, certificate);
            }
        }
        spawn(self.guard, spec, files, endpoint, (&text, arguments))
    }

    /// Waits until `is_ready` accepts the server's answer to a command. Errors name the server.
    pub(super) fn wait(
        &self,
        (role, server): &(Role, Server),
        command: &str,
        is_ready: impl Fn(&str) -> bool,
    ) -> Result<()> {
        let patience = self.spec.deadline.unwrap_or(READY_WITHIN);
        let waited =
            server.process.wait_until_ready(patience, |left| match ask(server, command, left) {
                Ok(answer) if is_ready(&answer) => Ok(()),
                Ok(answer) => Err(format!("it reports `{}`", answer.replace("\r\n", " "))),
                Err(e) => Err(format!("socket error: {e}")),
            });
        waited.map_err(|error| match error {
            RigError::Start { program, reason } => {
                let program = format!("{program} ({} on port {})", role.name(), port(server));
                RigError::Start { program, reason }
            }
            other => other,
        })
    }
}

/// The number in a setting, which was checked with all others; 0 without it.
pub(super) fn count(spec: &ServerSpec, name: &str) -> usize {
    spec.settings.get(name).and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// The address of a server of a group.
pub(super) fn address(server: &Server) -> Option<NetAddress> {
    match &server.endpoint {
        Endpoint::Redis { address, .. } => Some(address.clone()),
        _ => None,
    }
}

/// Its host and port, separated by a space as in commands and configuration files.
pub(super) fn place(server: &Server) -> String {
    match address(server) {
        Some(NetAddress::Tcp(host, port)) => format!("{host} {port}"),
        _ => String::new(),
    }
}

/// Its port.
pub(super) fn port(server: &Server) -> u16 {
    match address(server) {
        Some(NetAddress::Tcp(_, port)) => port,
        _ => 0,
    }
}

/// The answers of a server to its password and to a command, one after the other.
fn ask(server: &Server, command: &str, patience: Duration) -> std::io::Result<String> {
    let password = server.endpoint.password().map_or("", Secret::reveal);
    let mut stream = UnixStream::connect(server.sockets.path().join(SOCKET))?;
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(patience))?;
    stream.write_all(format!("AUTH {password}\r\n{command}\r\n").as_bytes())?;
    // It replies and then closes the connection.
    stream.shutdown(Shutdown::Write)?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}
