//! A store's endpoint with its credentials, as the driver sends it to workers over TLS. It is in no
//! record.

use model::{
    Database, Endpoint, Memcached, MemcachedProtocol, NetAddress, Product, RedisOptions, Secret,
    TlsFiles,
};
use serde::{Deserialize, Serialize};
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use super::FleetError;

/// An endpoint of a store.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct SentEndpoint {
    addresses: Vec<SentAddress>,
    user: Option<String>,
    password: Option<String>,
    tls: Option<SentTls>,
    protocol: SentProtocol,
}

#[derive(Clone, Serialize, Deserialize)]
enum SentProtocol {
    Redis {
        database: u32,
        is_cluster: bool,
        is_resp3: bool,
        seeds: Vec<SentAddress>,
        behind: Vec<SentAddress>,
    },
    Memcached {
        is_meta: bool,
    },
    Sql {
        is_postgres: bool,
        name: String,
    },
    /// A store of files, which only workers on the same machine have.
    Directory {
        product: Product,
        directory: PathBuf,
    },
}

#[derive(Clone, Serialize, Deserialize)]
enum SentAddress {
    Tcp(String, u16),
    Unix(PathBuf),
}

/// TLS settings with the contents of their files.
#[derive(Clone, Serialize, Deserialize)]
struct SentTls {
    authorities: Option<String>,
    certificate: Option<String>,
    key: Option<String>,
    name: Option<String>,
    is_insecure: bool,
}

impl std::fmt::Debug for SentEndpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SentEndpoint")
    }
}

impl SentAddress {
    fn of(address: &NetAddress) -> Self {
        match address {
            NetAddress::Tcp(host, port) => Self::Tcp(host.clone(), *port),
            NetAddress::Unix(path) => Self::Unix(path.clone()),
        }
    }

    fn received(self) -> NetAddress {
        match self {
            Self::Tcp(host, port) => NetAddress::Tcp(host, port),
            Self::Unix(path) => NetAddress::Unix(path),
        }
    }
}

fn sent(addresses: &[NetAddress]) -> Vec<SentAddress> {
    addresses.iter().map(SentAddress::of).collect()
}

fn received(addresses: Vec<SentAddress>) -> Vec<NetAddress> {
    addresses.into_iter().map(SentAddress::received).collect()
}

impl SentEndpoint {
    /// Reads the endpoint's files. Errors: a file cannot be read.
    pub(super) fn of(endpoint: &Endpoint) -> Result<Self, FleetError> {
        let (user, protocol) = match endpoint {
            Endpoint::Redis { user, database, options, .. } => (
                user,
                SentProtocol::Redis {
                    database: *database,
                    is_cluster: options.is_cluster,
                    is_resp3: options.is_resp3,
                    seeds: sent(&options.seeds),
                    behind: sent(&options.behind),
                },
            ),
            Endpoint::Memcached(memcached) => {
                let is_meta = memcached.protocol == MemcachedProtocol::Meta;
                (&memcached.user, SentProtocol::Memcached { is_meta })
            }
            Endpoint::Mysql(Database { user, name, .. })
            | Endpoint::Postgres(Database { user, name, .. }) => {
                let is_postgres = matches!(endpoint, Endpoint::Postgres(_));
                (&Some(user.clone()), SentProtocol::Sql { is_postgres, name: name.clone() })
            }
            Endpoint::Files { directory }
            | Endpoint::Sqlite { directory }
            | Endpoint::Disk { directory } => {
                let (product, directory) = (endpoint.product(), directory.clone());
                (&None, SentProtocol::Directory { product, directory })
            }
        };
        Ok(Self {
            addresses: sent(endpoint.addresses()),
            user: user.clone(),
            password: endpoint.password().map(|password| password.reveal().to_string()),
            tls: endpoint.tls().map(SentTls::of).transpose()?,
            protocol,
        })
    }

    /// The endpoint on the worker, with its files in `directory`.
    pub(super) fn received(self, directory: &Path) -> Result<Endpoint, FleetError> {
        let tls = self.tls.map(|tls| tls.received(directory)).transpose()?;
        let (user, password) = (self.user, self.password.map(Secret::new));
        let mut servers = received(self.addresses);
        let mut only =
            || servers.pop().ok_or_else(|| FleetError("a store without an address".into()));
        match self.protocol {
            SentProtocol::Redis { database, is_cluster, is_resp3, seeds, behind } => {
                let address = only()?;
                let (seeds, behind) = (received(seeds), received(behind));
                let options = RedisOptions { tls, is_cluster, is_resp3, seeds, behind };
                Ok(Endpoint::Redis { address, user, password, database, options })
            }
            SentProtocol::Memcached { is_meta } => {
                let protocol =
                    if is_meta { MemcachedProtocol::Meta } else { MemcachedProtocol::Text };
                Ok(Endpoint::Memcached(Memcached { servers, protocol, user, password, tls }))
            }
            SentProtocol::Directory { product, directory } => {
                Endpoint::in_directory(product, directory)
                    .ok_or_else(|| FleetError(format!("{} needs a server", product.name())))
            }
            SentProtocol::Sql { is_postgres, name } => {
                let (address, user) = (only()?, user.unwrap_or_default());
                let database = Database { address, user, password, name };
                let made = if is_postgres { Endpoint::Postgres } else { Endpoint::Mysql };
                Ok(made(database))
            }
        }
    }
}

impl SentTls {
    fn of(files: &TlsFiles) -> Result<Self, FleetError> {
        let text = |path: &Option<PathBuf>| {
            let read = |path: &PathBuf| {
                fs::read_to_string(path)
                    .map_err(|e| FleetError(format!("cannot read `{}`: {e}", path.display())))
            };
            path.as_ref().map(read).transpose()
        };
        Ok(Self {
            authorities: text(&files.ca_file)?,
            certificate: text(&files.certificate)?,
            key: text(&files.key)?,
            name: files.name.clone(),
            is_insecure: files.is_insecure,
        })
    }

    fn received(self, directory: &Path) -> Result<TlsFiles, FleetError> {
        let write = |name: &str, text: Option<String>| {
            let write = |text: String| {
                let path = directory.join(name);
                let mut options = OpenOptions::new();
                let file = options.write(true).create(true).truncate(true).mode(0o600).open(&path);
                file.and_then(|mut file| file.write_all(text.as_bytes()))
                    .map(|()| path.clone())
                    .map_err(|e| FleetError(format!("cannot write `{}`: {e}", path.display())))
            };
            text.map(write).transpose()
        };
        Ok(TlsFiles {
            ca_file: write("authorities.pem", self.authorities)?,
            certificate: write("client.pem", self.certificate)?,
            key: write("client-key.pem", self.key)?,
            name: self.name,
            is_insecure: self.is_insecure,
        })
    }
}

/// The addresses of a `HOST:PORT`.
pub(super) fn resolved(text: &str, flag: &str) -> Result<Vec<SocketAddr>, FleetError> {
    let found = text.to_socket_addrs().map(Iterator::collect::<Vec<_>>);
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        Ok(_) => Err(FleetError(format!("{flag} `{text}` has no address"))),
        Err(e) => Err(FleetError(format!(
            "{flag} `{text}` is not an address (expected HOST:PORT, such as 10.0.0.5:7000): {e}"
        ))),
    }
}
