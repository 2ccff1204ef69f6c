//! Addresses of stores and how to reach them.
//!
//! A target's URL is one of `redis://[user][:password]@host:port/db`,
//! `redis+unix:///socket?db=N&user=NAME&password=TEXT`, `redis+cluster://host:port`,
//! `memcached://[user:password@]host:port[,host:port…]`, `memcached+unix:///socket`,
//! `mysql://user:password@host:port/database`, `mysql+unix:///socket?database=NAME&user=NAME`,
//! the same with `postgres`, `file:///directory`, `sqlite:///directory`. An `s`, as in `rediss://`
//! and `memcacheds://`, enables TLS. The query `protocol` selects version 2 or 3 for Redis, and
//! `text` or `meta` for memcached.
//! Passwords are only in [`Secret`], which cannot be serialized and prints as `***`.

use std::fmt;
use std::path::{Path, PathBuf};
use std::slice;
use url::Url;

use crate::product::Product;

mod address;
mod database;
mod mask;
mod memcached;
mod parts;
mod percent;
mod redis;

use parts::{known_queries, part, password, query, tcp, unix, user};
use percent::is_invalid_utf8;

pub use address::{NetAddress, Secret, TlsFiles};
pub(crate) use address::{is_cluster_address, is_tls_address, servers_of};
pub use database::Database;
pub(crate) use mask::is_store_scheme;
pub use mask::{mask_text, without_password};
pub use memcached::{Memcached, MemcachedProtocol};
pub use parts::UrlError;
pub use redis::RedisOptions;

/// Endpoint of a store, with its credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// A directory on the disk under test.
    Files {
        /// Absolute directory; sessions go into a new subdirectory of it.
        directory: PathBuf,
    },
    /// A server with the Redis protocol.
    Redis {
        /// Address of the server.
        address: NetAddress,
        /// ACL user; `None` for the default user.
        user: Option<String>,
        /// Password of `AUTH`; `None` sends no `AUTH`.
        password: Option<Secret>,
        /// Number of the database, selected with `SELECT` if not 0.
        database: u32,
        /// TLS, cluster mode, protocol version and Sentinels.
        options: RedisOptions,
    },
    /// Servers with the memcached protocol.
    Memcached(Memcached),
    /// A database on a server with the MySQL protocol.
    Mysql(Database),
    /// A database on a PostgreSQL server.
    Postgres(Database),
    /// A SQLite database on the disk under test.
    Sqlite {
        /// Absolute directory; the database goes into a new subdirectory of it.
        directory: PathBuf,
    },
    /// The disk under test itself, by direct I/O.
    Disk {
        /// Absolute directory; the file goes into a new subdirectory of it.
        directory: PathBuf,
    },
}

impl Endpoint {
    /// Reads a target URL.
    pub fn parse(text: &str) -> Result<Self, UrlError> {
        let is_path = ["file:", "sqlite:", "disk:"].iter().any(|scheme| text.starts_with(scheme));
        if !is_path && is_invalid_utf8(text) {
            return Err(UrlError::Part {
                url: mask_text(text),
                part: "percent-encoding",
                problem: "not UTF-8".into(),
                expected: "UTF-8 text",
            });
        }
        if let Some(memcached) = memcached::parse(text) {
            return memcached.map(Self::Memcached);
        }
        let url = Url::parse(text).map_err(|_| UrlError::NotUrl(mask_text(text)))?;
        match url.scheme() {
            "file" => Ok(Self::Files { directory: directory(text, &url)? }),
            "sqlite" => Ok(Self::Sqlite { directory: directory(text, &url)? }),
            "disk" => Ok(Self::Disk { directory: directory(text, &url)? }),
            "redis" | "rediss" | "redis+unix" | "redis+cluster" | "rediss+cluster" => {
                parse_redis(&url)
            }
            "mysql" | "mysql+unix" => Database::of(&url, (3306, "root")).map(Self::Mysql),
            "postgres" | "postgresql" | "postgres+unix" => {
                Database::of(&url, (5432, "postgres")).map(Self::Postgres)
            }
            other if text.contains("://") => Err(UrlError::Scheme(other.into())),
            _ => Err(UrlError::NotUrl(mask_text(text))),
        }
    }

    /// A single server of the Redis protocol without login: database 0, RESP2, no TLS.
    pub fn redis(address: NetAddress) -> Self {
        Self::Redis {
            address,
            user: None,
            password: None,
            database: 0,
            options: RedisOptions::default(),
        }
    }

    /// The same over TLS.
    #[must_use]
    pub fn with_tls(mut self, files: TlsFiles) -> Self {
        match &mut self {
            Self::Redis { options, .. } => options.tls = Some(files),
            Self::Memcached(memcached) => memcached.tls = Some(files),
            Self::Mysql(_)
            | Self::Postgres(_)
            | Self::Files { .. }
            | Self::Sqlite { .. }
            | Self::Disk { .. } => {}
        }
        self
    }

    /// Masks the endpoint's password in text from the server.
    pub fn masked(&self, text: &str) -> String {
        match self.password().map(Secret::reveal) {
            None | Some("") => text.to_string(),
            Some(password) => text.replace(password, "***"),
        }
    }

    /// The product at this endpoint.
    pub fn product(&self) -> Product {
        match self {
            Self::Files { .. } => Product::Files,
            Self::Redis { .. } => Product::Redis,
            Self::Memcached(_) => Product::Memcached,
            Self::Mysql(_) => Product::Mysql,
            Self::Postgres(_) => Product::Postgres,
            Self::Sqlite { .. } => Product::Sqlite,
            Self::Disk { .. } => Product::Disk,
        }
    }

    /// Adds a password from the environment or a file, unless the URL has one.
    #[must_use]
    pub fn with_password(mut self, secret: Option<Secret>) -> Self {
        match &mut self {
            Self::Redis { password, .. }
            | Self::Mysql(Database { password, .. })
            | Self::Postgres(Database { password, .. })
            | Self::Memcached(Memcached { password, .. }) => *password = password.take().or(secret),
            Self::Files { .. } | Self::Sqlite { .. } | Self::Disk { .. } => {}
        }
        self
    }

    /// Its password.
    pub fn password(&self) -> Option<&Secret> {
        match self {
            Self::Redis { password, .. }
            | Self::Mysql(Database { password, .. })
            | Self::Postgres(Database { password, .. })
            | Self::Memcached(Memcached { password, .. }) => password.as_ref(),
            Self::Files { .. } | Self::Sqlite { .. } | Self::Disk { .. } => None,
        }
    }

    /// True if there is a user but no password, so that no login is sent. Only for products with
    /// logins without a user, whose password is easily mistaken for a user.
    pub fn lacks_password(&self) -> bool {
        match self {
            Self::Redis { user, password, .. }
            | Self::Memcached(Memcached { user, password, .. }) => {
                password.is_none() && user.as_deref().is_some_and(|user| user != "default")
            }
            Self::Files { .. }
            | Self::Mysql(_)
            | Self::Postgres(_)
            | Self::Sqlite { .. }
            | Self::Disk { .. } => false,
        }
    }

    /// A serverless store in a directory; `None` for a product with a server.
    pub fn in_directory(product: Product, directory: PathBuf) -> Option<Self> {
        match product {
            Product::Files => Some(Self::Files { directory }),
            Product::Sqlite => Some(Self::Sqlite { directory }),
            Product::Disk => Some(Self::Disk { directory }),
            Product::Redis | Product::Mysql | Product::Postgres | Product::Memcached => None,
        }
    }

    /// The directory of a serverless store.
    pub fn directory(&self) -> Option<&Path> {
        match self {
            Self::Files { directory } | Self::Sqlite { directory } | Self::Disk { directory } => {
                Some(directory)
            }
            Self::Redis { .. } | Self::Mysql(_) | Self::Postgres(_) | Self::Memcached(_) => None,
        }
    }

    /// Addresses of its servers; empty for a directory.
    pub fn addresses(&self) -> &[NetAddress] {
        match self {
            Self::Files { .. } | Self::Sqlite { .. } | Self::Disk { .. } => &[],
            Self::Redis { address, .. }
            | Self::Mysql(Database { address, .. })
            | Self::Postgres(Database { address, .. }) => slice::from_ref(address),
            Self::Memcached(memcached) => &memcached.servers,
        }
    }

    /// Addresses of the servers behind it, if it is a proxy; otherwise empty.
    pub fn behind(&self) -> &[NetAddress] {
        match self {
            Self::Redis { options, .. } => &options.behind,
            _ => &[],
        }
    }

    /// The same single server by another address. A directory has none and stays as it is.
    #[must_use]
    pub fn at(mut self, new: NetAddress) -> Self {
        match &mut self {
            Self::Files { .. } | Self::Sqlite { .. } | Self::Disk { .. } => {}
            Self::Redis { address, .. }
            | Self::Mysql(Database { address, .. })
            | Self::Postgres(Database { address, .. }) => *address = new,
            Self::Memcached(memcached) => memcached.servers = vec![new],
        }
        self
    }

    /// TLS settings; `None` without TLS.
    pub fn tls(&self) -> Option<&TlsFiles> {
        match self {
            Self::Redis { options, .. } => options.tls.as_ref(),
            Self::Memcached(memcached) => memcached.tls.as_ref(),
            Self::Files { .. }
            | Self::Mysql(_)
            | Self::Postgres(_)
            | Self::Sqlite { .. }
            | Self::Disk { .. } => None,
        }
    }

    /// TLS settings, to be completed with values that are not in the URL.
    pub fn tls_mut(&mut self) -> Option<&mut TlsFiles> {
        match self {
            Self::Redis { options, .. } => options.tls.as_mut(),
            Self::Memcached(memcached) => memcached.tls.as_mut(),
            Self::Files { .. }
            | Self::Mysql(_)
            | Self::Postgres(_)
            | Self::Sqlite { .. }
            | Self::Disk { .. } => None,
        }
    }

    /// The same with TLS where it has none and the reverse, and without a login: nothing secret is
    /// for a server that may be another one. `None` if its protocol has no TLS here, or it is on
    /// a unix socket.
    pub fn other_transport(&self) -> Option<Self> {
        let mut other = self.clone();
        let (tls, login) = match &mut other {
            Self::Redis { options, user, password, .. } => (&mut options.tls, (user, password)),
            Self::Memcached(own) => (&mut own.tls, (&mut own.user, &mut own.password)),
            _ => return None,
        };
        (*login.0, *login.1) = (None, None);
        *tls = match tls {
            Some(_) => None,
            None => Some(TlsFiles { is_insecure: true, ..TlsFiles::default() }),
        };
        let is_tcp = |address: &NetAddress| matches!(address, NetAddress::Tcp(..));
        other.addresses().iter().all(is_tcp).then_some(other)
    }

    /// Scheme of its URL; empty for a product without TLS here.
    pub fn scheme(&self) -> &'static str {
        let is_cluster = |options: &RedisOptions| options.is_cluster;
        match (self, self.tls().is_some()) {
            (Self::Redis { options, .. }, false) if is_cluster(options) => "redis+cluster://",
            (Self::Redis { options, .. }, true) if is_cluster(options) => "rediss+cluster://",
            (Self::Redis { .. }, false) => "redis://",
            (Self::Redis { .. }, true) => "rediss://",
            (Self::Memcached(_), false) => "memcached://",
            (Self::Memcached(_), true) => "memcacheds://",
            _ => "",
        }
    }

    /// Why it cannot be a session store; `None` if it can.
    pub fn no_sessions(&self) -> Option<&'static str> {
        match self {
            Self::Redis { options, .. } if options.is_cluster || options.is_resp3 => Some(
                "sessions are stored on a single server with RESP2 (expected neither a cluster nor \
                 `protocol=3`; `bench` offers both)",
            ),
            _ => self.product().no_sessions(),
        }
    }
}

/// The address without credentials, for records, pages and errors.
impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Files { directory } | Self::Sqlite { directory } | Self::Disk { directory } => {
                write!(f, "directory {}", directory.display())
            }
            Self::Redis { address, database, options, .. } => {
                write!(f, "{address} database {database}{}", options.words())
            }
            Self::Memcached(memcached) => memcached.fmt(f),
            Self::Mysql(database) | Self::Postgres(database) => database.fmt(f),
        }
    }
}

/// The directory of `file:///directory`, or of the same with another scheme.
fn directory(text: &str, url: &Url) -> Result<PathBuf, UrlError> {
    let expected = "three slashes and an absolute directory";
    // Only the `file` scheme has rules for paths.
    let file = text.split_once(':').and_then(|(_, rest)| Url::parse(&format!("file:{rest}")).ok());
    let directory = file.and_then(|file| file.to_file_path().ok());
    directory.ok_or_else(|| part(url, "path", "not a local absolute path", expected))
}

/// Parses `redis://`, `rediss://`, `redis+cluster://`, `rediss+cluster://` and `redis+unix://`.
fn parse_redis(url: &Url) -> Result<Endpoint, UrlError> {
    let is_unix = url.scheme() == "redis+unix";
    known_queries(
        url,
        if is_unix { "db, user, password, protocol" } else { "cluster, protocol, behind" },
    )?;
    let options = RedisOptions::of(url)?;
    let (address, database) = if is_unix {
        (unix(url)?, redis::database(url, &query(url, "db").unwrap_or_default())?)
    } else {
        (tcp(url, 6379)?, redis::database(url, url.path().trim_matches('/'))?)
    };
    if options.is_cluster && database != 0 {
        return Err(part(
            url,
            "database",
            &format!("`{database}`"),
            "0, as a cluster has no other",
        ));
    }
    let from_query = |name| if is_unix { query(url, name) } else { None };
    Ok(Endpoint::Redis {
        address,
        user: user(url).or_else(|| from_query("user")),
        password: password(url).or_else(|| from_query("password").map(Secret::new)),
        database,
        options,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_parsed() {
        assert_eq!(
            Endpoint::parse("redis://:p%40ss@127.0.0.1:7000/3").unwrap(),
            Endpoint::Redis {
                address: NetAddress::Tcp("127.0.0.1".into(), 7000),
                user: None,
                password: Some(Secret::new("p@ss")),
                database: 3,
                options: RedisOptions::default(),
            }
        );
        assert_eq!(
            Endpoint::parse("mysql://shop:a+b%26c@db/sessions").unwrap(),
            Endpoint::Mysql(Database {
                address: NetAddress::Tcp("db".into(), 3306),
                user: "shop".into(),
                password: Some(Secret::new("a+b&c")),
                name: "sessions".into()
            })
        );
        assert_eq!(
            Endpoint::parse("redis+unix:///run/redis.sock?db=2&password=p%40s").unwrap(),
            Endpoint::Redis {
                address: NetAddress::Unix("/run/redis.sock".into()),
                user: None,
                password: Some(Secret::new("p@s")),
                database: 2,
                options: RedisOptions::default(),
            }
        );
        assert_eq!(
            Endpoint::parse("file:///mnt/a%20disk").unwrap(),
            Endpoint::Files { directory: "/mnt/a disk".into() }
        );
        assert_eq!(
            Endpoint::parse("sqlite:///mnt/a%20disk").unwrap(),
            Endpoint::Sqlite { directory: "/mnt/a disk".into() }
        );
    }

    #[test]
    fn errors_name_the_wrong_part() {
        let message = |text: &str| Endpoint::parse(text).unwrap_err().to_string();
        assert!(message("nonsense").starts_with("`nonsense` is not a URL (expected file://"));
        assert!(message("http://a").starts_with("unknown scheme `http`"));
        assert!(message("redis://h/x").contains("database of `redis://h/x` is `x`"));
        assert!(message("mysql://u@h").contains("is missing"));
        let with_tls = message("postgres://u:hush@h/d?sslmode=require");
        assert!(
            with_tls.contains("TLS is not supported") && !with_tls.contains("hush"),
            "{with_tls}"
        );
        assert!(message("sqlite://h/srv").contains("path of `sqlite://h/srv` is not a local"));
        assert!(message("redis://:hush%ffx@h").contains("percent-encoding of `redis://***@h`"));
        assert!(Endpoint::parse("redis://:a%EF%BF%BD%C3%A4@h").is_ok());
        assert!(Endpoint::parse("file:///srv/%ff").is_ok());
        assert!(message("mysql://u:secret@h/a;b").contains("`mysql://***@h/a;b`"));
    }

    #[test]
    fn a_password_is_never_printed() {
        let e = Endpoint::parse("redis://:hush@h/1").unwrap();
        assert!(!format!("{e:?} {e}").contains("hush"));
    }

    #[test]
    fn a_password_from_elsewhere_does_not_replace_one_in_the_url() {
        let e = Endpoint::parse("redis://:url@h").unwrap().with_password(Some(Secret::new("env")));
        assert!(matches!(e, Endpoint::Redis { password: Some(p), .. } if p.reveal() == "url"));
    }
}
