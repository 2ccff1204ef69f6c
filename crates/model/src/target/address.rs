//! Network addresses, passwords and TLS settings of servers.

use std::fmt;
use std::path::PathBuf;

/// A password. Prints as `***`; only [`Secret::reveal`] returns the text.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a password.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the password, only for sending it to the server.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// Network address of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NetAddress {
    /// Host name or address, and port.
    Tcp(String, u16),
    /// Path of a unix socket.
    Unix(PathBuf),
}

impl fmt::Display for NetAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(host, port) => write!(f, "{host}:{port}"),
            Self::Unix(path) => write!(f, "unix socket {}", path.display()),
        }
    }
}

/// TLS settings: trusted authorities, client certificate and verification. By default the system's
/// authorities are trusted, and the server's certificate must match its host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsFiles {
    /// PEM file of trusted authorities; `None` for the system's.
    pub ca_file: Option<PathBuf>,
    /// PEM file of the client's own certificate.
    pub certificate: Option<PathBuf>,
    /// PEM file of the client's private key.
    pub key: Option<PathBuf>,
    /// The server's name for SNI and verification; `None` for the host.
    pub name: Option<String>,
    /// True to skip verification of the server's certificate.
    pub is_insecure: bool,
}

impl TlsFiles {
    /// Description for records, after a comma.
    pub(super) fn words(&self) -> &'static str {
        if self.is_insecure { ", TLS without verification" } else { ", TLS" }
    }
}

/// Whether an [`Endpoint`](super::Endpoint) in its readable form uses TLS.
pub(crate) fn is_tls_address(address: &str) -> bool {
    parts(address).any(|part| part.starts_with("TLS"))
}

/// Whether an [`Endpoint`](super::Endpoint) in its readable form is a Redis Cluster.
pub(crate) fn is_cluster_address(address: &str) -> bool {
    parts(address).any(|part| part == "cluster")
}

/// Number of servers in a readable [`Endpoint`](super::Endpoint), at least 1.
pub(crate) fn servers_of(address: &str) -> usize {
    address.split(", ").next().unwrap_or_default().split(" and ").count()
}

/// What follows the address of a readable endpoint, each after a comma.
fn parts(address: &str) -> impl Iterator<Item = &str> {
    address.split(", ").skip(1)
}
