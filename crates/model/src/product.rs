//! Store products.

use serde::{Deserialize, Serialize};

/// What direct I/O needs values and their places to be a multiple of, bytes: the logical block of
/// every common disk divides it.
pub const DISK_BLOCK_BYTES: usize = 4096;

/// Product of a target, which determines the driver and the server to start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Product {
    /// One file per session in a directory.
    Files,
    /// A server with the Redis protocol.
    Redis,
    /// A server with the MySQL protocol, such as MariaDB.
    Mysql,
    /// A PostgreSQL server.
    Postgres,
    /// A SQLite database in a directory.
    Sqlite,
    /// The disk itself, with direct I/O on one file.
    Disk,
    /// Servers with the memcached protocol, for keys and values or in front of other stores.
    Memcached,
}

impl Product {
    /// True for products with a server.
    pub fn has_server(self) -> bool {
        match self {
            Self::Files | Self::Sqlite | Self::Disk => false,
            Self::Redis | Self::Mysql | Self::Postgres | Self::Memcached => true,
        }
    }

    /// Target name that starts a private server of this product.
    pub fn name(self) -> &'static str {
        match self {
            Self::Files => "files",
            Self::Redis => "redis",
            Self::Mysql => "mysql",
            Self::Postgres => "postgres",
            Self::Sqlite => "sqlite",
            Self::Disk => "disk",
            Self::Memcached => "memcached",
        }
    }

    /// Reason why it cannot be a session store; `None` if it can.
    pub fn no_sessions(self) -> Option<&'static str> {
        match self {
            Self::Files | Self::Redis | Self::Mysql | Self::Postgres | Self::Sqlite => None,
            Self::Memcached => {
                Some("memcached is not supported as a session store (`bench` measures it)")
            }
            Self::Disk => Some("the disk itself stores no sessions (expected files or sqlite)"),
        }
    }

    /// True for session stores.
    pub fn keeps_sessions(self) -> bool {
        self.no_sessions().is_none()
    }

    /// True for products with a key-value protocol.
    pub fn keeps_keys(self) -> bool {
        match self {
            Self::Redis | Self::Memcached => true,
            Self::Files | Self::Mysql | Self::Postgres | Self::Sqlite | Self::Disk => false,
        }
    }

    /// An amount of memory in the unit of the server's settings: megabytes for memcached, kilobytes
    /// for PostgreSQL, else bytes.
    pub(crate) fn memory_value(self, bytes: u64) -> String {
        match self {
            Self::Memcached => (bytes >> 20).max(1).to_string(),
            Self::Postgres => format!("{}kB", (bytes >> 10).max(1)),
            Self::Redis | Self::Files | Self::Mysql | Self::Sqlite | Self::Disk => {
                bytes.to_string()
            }
        }
    }

    /// True if planned actions are possible on this product.
    pub fn supports_actions(self) -> bool {
        self == Self::Redis
    }

    /// True for SQL databases, which show an account only the tables it has rights on.
    pub fn keeps_tables(self) -> bool {
        match self {
            Self::Mysql | Self::Postgres => true,
            Self::Files | Self::Redis | Self::Sqlite | Self::Disk | Self::Memcached => false,
        }
    }

    /// The connection limit of its server; `None` without one.
    pub fn connections(self) -> Option<ConnectionLimit> {
        match self {
            Self::Files | Self::Sqlite | Self::Disk => None,
            Self::Redis => Some(ConnectionLimit {
                limit_error: "max number of clients reached",
                option: "maxclients",
                setting: "maxclients",
                usual: 10_000,
            }),
            Self::Mysql => Some(ConnectionLimit {
                limit_error: "too many connections",
                option: "max_connections",
                setting: "max_connections",
                usual: 151,
            }),
            Self::Postgres => Some(ConnectionLimit {
                limit_error: "too many clients already",
                option: "max_connections",
                setting: "max_connections",
                usual: 100,
            }),
            Self::Memcached => Some(ConnectionLimit {
                limit_error: "too many open connections",
                option: "-c",
                setting: "connections",
                usual: 1_024,
            }),
        }
    }

    /// The setting for the memory limit in MiB, above which a server evicts by default; `None` if
    /// it has no such limit.
    pub fn memory_setting(self) -> Option<&'static str> {
        match self {
            Self::Files
            | Self::Redis
            | Self::Mysql
            | Self::Postgres
            | Self::Sqlite
            | Self::Disk => None,
            Self::Memcached => Some("memory"),
        }
    }

    /// Example URLs, separated by commas.
    fn urls(self) -> &'static str {
        match self {
            Self::Files => "file:///directory",
            Self::Redis => {
                "redis://host:port/db, rediss:// for TLS, redis+cluster://host:port, \
                 redis+unix:///socket?db=N"
            }
            Self::Mysql => {
                "mysql://user:password@host/database, \
                 mysql+unix:///socket?database=NAME&user=NAME"
            }
            Self::Postgres => {
                "postgres://user:password@host/database, \
                 postgres+unix:///socket?database=NAME&user=NAME"
            }
            Self::Sqlite => "sqlite:///directory",
            Self::Disk => "disk:///directory",
            Self::Memcached => "memcached://host:port,host:port, memcached+unix:///socket",
        }
    }

    /// Example URLs of all products, separated by commas.
    pub fn all_urls() -> String {
        Self::ALL.map(Self::urls).join(", ")
    }

    /// URL form of its servers; `None` without servers.
    pub(crate) fn url(self) -> Option<UrlForm> {
        let form = |scheme, with_tls, database| Some(UrlForm { scheme, with_tls, database });
        match self {
            Self::Files | Self::Sqlite | Self::Disk => None,
            Self::Redis => form("redis", "rediss", Some("db")),
            Self::Mysql => form("mysql", "mysql", Some("database")),
            // The second scheme is an alias: TLS is not supported.
            Self::Postgres => form("postgres", "postgresql", Some("database")),
            Self::Memcached => form("memcached", "memcacheds", None),
        }
    }

    /// All products, in display order.
    pub const ALL: [Self; 7] = [
        Self::Files,
        Self::Redis,
        Self::Mysql,
        Self::Postgres,
        Self::Sqlite,
        Self::Disk,
        Self::Memcached,
    ];
}

/// Connection limit of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionLimit {
    /// Error message when the limit is reached, in lower case.
    pub limit_error: &'static str,
    /// The server's name of the limit.
    pub option: &'static str,
    /// The setting of a private server.
    pub setting: &'static str,
    /// Default limit.
    pub usual: u64,
}

/// URL form of servers.
pub(crate) struct UrlForm {
    pub(crate) scheme: &'static str,
    /// The scheme with TLS.
    pub(crate) with_tls: &'static str,
    /// Query key of the database in a socket's URL; `None` without databases.
    pub(crate) database: Option<&'static str>,
}
