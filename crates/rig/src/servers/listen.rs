//! Where a private server listens: a Unix socket, a port of 127.0.0.1 or of its own network, or
//! such a port with TLS, of its own or of a proxy before it.
//!
//! Other users of the host reach a port, so a server on one requires a password, which is random
//! for each start. Its certificate is made for the start as well, signs itself and names the host
//! by which clients connect.

use crate::error::{Result, RigError};
use crate::random::random;
use crate::scratch::Scratch;
use model::{Endpoint, NetAddress, Secret, TlsFiles};
use std::fs::OpenOptions;
use std::io::Write as _;
use std::net::{Ipv4Addr, TcpListener};
use std::ops::Range;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// The setting of a plan: `unix` (default), `tcp`, `tls` or `stunnel`. No server knows it.
pub(super) const LISTEN: &str = "listen";
/// Its values for a port.
pub(super) const TCP: &str = "tcp";
pub(super) const TLS: &str = "tls";
pub(super) const STUNNEL: &str = "stunnel";
/// The setting of a plan with the program before several servers. No server knows it.
pub(super) const PROXY: &str = "proxy";
/// The kernel does not assign these to outgoing connections, which could otherwise connect to
/// themselves at the port of a dead server.
const PORTS: Range<u16> = 10_000..32_768;
/// Maximum number of ports to try; some can be in use.
const PORTS_TRIED: usize = 100;

/// A free port, a password, and the lines of redis.conf with both.
pub(super) struct Port {
    pub(super) lines: Vec<u8>,
    pub(super) endpoint: Endpoint,
    pub(super) password: String,
}

impl Port {
    /// Prepares a port of an address with TLS or without; certificate and key are files in `files`.
    pub(super) fn open(
        address: Ipv4Addr,
        is_tls: bool,
        program: &str,
        files: &Scratch,
    ) -> Result<Self> {
        let (number, password) = (port_for(program, 0)?, random_password());
        let mut lines = format!("bind {address}\nrequirepass {password}\n").into_bytes();
        let at = NetAddress::Tcp(address.to_string(), number);
        let endpoint = Endpoint::redis(at).with_password(Some(Secret::new(&password)));
        if !is_tls {
            lines.extend(format!("port {number}\n").bytes());
            return Ok(Self { lines, endpoint, password });
        }
        let paths = Certificate::of(&[address])?.write(files)?;
        lines.extend(tls_lines(number, &paths));
        let [certificate, _] = paths;
        Ok(Self { lines, endpoint: over_tls(endpoint, certificate), password })
    }
}

/// Lines of redis.conf for a port with TLS only, and files with the certificate and its key.
pub(super) fn tls_lines(port: u16, [certificate, key]: &[PathBuf; 2]) -> Vec<u8> {
    let mut lines = format!("port 0\ntls-port {port}\ntls-auth-clients no\n").into_bytes();
    let names = ["tls-cert-file", "tls-key-file", "tls-ca-cert-file"];
    for (name, path) in names.into_iter().zip([certificate, key, certificate]) {
        lines.extend(format!("{name} ").bytes());
        lines.extend(quoted(path));
        lines.push(b'\n');
    }
    lines
}

/// Names of the files with a certificate and its key.
pub(super) const CERTIFICATE: &str = "certificate.pem";
pub(super) const KEY: &str = "key.pem";

/// A new certificate for this host and its key, both PEM (RFC 7468).
pub(super) struct Certificate {
    certificate: String,
    key: String,
}

impl Certificate {
    /// For the loopback and other addresses of this host.
    pub(super) fn of(addresses: &[Ipv4Addr]) -> Result<Self> {
        let others = addresses.iter().filter(|address| **address != Ipv4Addr::LOCALHOST);
        let others = others.map(Ipv4Addr::to_string);
        let own = [Ipv4Addr::LOCALHOST.to_string(), "localhost".into()];
        let names: Vec<String> = own.into_iter().chain(others).collect();
        let made = rcgen::generate_simple_self_signed(names).map_err(|e| RigError::Start {
            program: "TLS".into(),
            reason: format!("no certificate could be made: {e}"),
        })?;
        let (certificate, key) = (made.cert.pem(), made.signing_key.serialize_pem());
        Ok(Self { certificate, key })
    }

    /// Writes both as files of a server, and returns the paths.
    pub(super) fn write(&self, files: &Scratch) -> Result<[PathBuf; 2]> {
        let write = |name: &str, text: &str| {
            let path = files.path().join(name);
            write_private(&path, text)?;
            Ok(path)
        };
        Ok([write(CERTIFICATE, &self.certificate)?, write(KEY, &self.key)?])
    }
}

/// An endpoint whose clients trust the certificate in this file.
pub(super) fn over_tls(endpoint: Endpoint, certificate: PathBuf) -> Endpoint {
    endpoint.with_tls(TlsFiles { ca_file: Some(certificate), ..TlsFiles::default() })
}

/// Where clients connect to a server that is not for Redis, and its password.
pub(super) struct AtPort {
    pub(super) address: Ipv4Addr,
    pub(super) port: u16,
    pub(super) password: String,
}

impl AtPort {
    /// A free port of an address, with a random password.
    pub(super) fn new(program: &str, address: Ipv4Addr) -> Result<Self> {
        Ok(Self { address, port: port_for(program, 0)?, password: random_password() })
    }

    /// Address and password of an endpoint.
    pub(super) fn login(self) -> (NetAddress, Secret) {
        (NetAddress::Tcp(self.address.to_string(), self.port), Secret::new(self.password))
    }
}

/// Writes a new file that only this user can read.
pub(super) fn write_private(path: &Path, text: &str) -> Result<()> {
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    file.and_then(|mut file| file.write_all(text.as_bytes())).map_err(RigError::io("write", path))
}

/// A random password.
pub(super) fn random_password() -> String {
    let [a, b, c, d] = [random(), random(), random(), random()];
    format!("{a:08x}{b:08x}{c:08x}{d:08x}")
}

/// As [`free_port`], for a server that is started there. If another program takes
/// the ports first, the server fails to start with an error.
pub(super) fn port_for(program: &str, further: u16) -> Result<u16> {
    free_port(further).ok_or_else(|| RigError::Start {
        program: program.into(),
        reason: format!("no free port was found among {} to {}", PORTS.start, PORTS.end - 1),
    })
}

/// A random port of 127.0.0.1 without a listener, and without one `further` above it. The kernel
/// gives none of them to outgoing connections. `None` if a hundred are in use.
pub fn free_port(further: u16) -> Option<u16> {
    let drawn = || PORTS.start + (random() % u32::from(PORTS.end - further - PORTS.start)) as u16;
    let has_none = |port: u16| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok();
    let is_free = |port: &u16| has_none(*port) && (further == 0 || has_none(port + further));
    (0..PORTS_TRIED).map(|_| drawn()).find(is_free)
}

/// Quotes a path for redis.conf, where any byte can be written as `\xNN`.
pub(super) fn quoted(path: &Path) -> Vec<u8> {
    let mut text = vec![b'"'];
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'"' | b'\\' | 0..=31 => text.extend_from_slice(format!("\\x{byte:02x}").as_bytes()),
            other => text.push(*other),
        }
    }
    text.push(b'"');
    text
}
