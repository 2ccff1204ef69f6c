//! Products that stores are of.

use serde::{Deserialize, Serialize};

use crate::action::Act;

/// Which kind of store a target is; decides the driver and the server that a rig starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Product {
    /// One file a session in a directory.
    Files,
    /// A server of the Redis protocol.
    Redis,
    /// A server of the MySQL protocol (MariaDB's serves as well).
    Mysql,
    /// A server of PostgreSQL.
    Postgres,
    /// A database of SQLite in a directory.
    Sqlite,
    /// Servers of memcached's protocol, for keys and values, and in front of other stores.
    Memcached,
}

impl Product {
    /// True for what is a server.
    pub fn has_server(self) -> bool {
        match self {
            Self::Files | Self::Sqlite => false,
            Self::Redis | Self::Mysql | Self::Postgres | Self::Memcached => true,
        }
    }

    /// The bare name that starts a private server of this product.
    pub fn name(self) -> &'static str {
        match self {
            Self::Files => "files",
            Self::Redis => "redis",
            Self::Mysql => "mysql",
            Self::Postgres => "postgres",
            Self::Sqlite => "sqlite",
            Self::Memcached => "memcached",
        }
    }

    /// Why sessions cannot be kept in it; `None` when they can.
    pub fn no_sessions(self) -> Option<&'static str> {
        match self {
            Self::Files | Self::Redis | Self::Mysql | Self::Postgres | Self::Sqlite => None,
            Self::Memcached => {
                Some("memcached is no session store here (expected another; `bench` measures it)")
            }
        }
    }

    /// True for what sessions can be kept in.
    pub fn keeps_sessions(self) -> bool {
        self.no_sessions().is_none()
    }

    /// True for what speaks a key-value protocol.
    pub fn keeps_keys(self) -> bool {
        match self {
            Self::Redis | Self::Memcached => true,
            Self::Files | Self::Mysql | Self::Postgres | Self::Sqlite => false,
        }
    }

    /// True for what that can be done to.
    pub fn supports(self, act: Act) -> bool {
        match act {
            Act::Save | Act::KillPrimary => self == Self::Redis,
        }
    }

    /// True for what keeps tables, of which it shows an account those that it has rights on.
    pub fn keeps_tables(self) -> bool {
        match self {
            Self::Mysql | Self::Postgres => true,
            Self::Files | Self::Redis | Self::Sqlite | Self::Memcached => false,
        }
    }

    /// The limit of connections of its server; `None` where there is none.
    pub fn connections(self) -> Option<ConnectionLimit> {
        match self {
            Self::Files | Self::Sqlite => None,
            Self::Redis => Some(ConnectionLimit {
                used_up: "max number of clients reached",
                option: "maxclients",
                setting: "maxclients",
                usual: 10_000,
            }),
            Self::Mysql => Some(ConnectionLimit {
                used_up: "too many connections",
                option: "max_connections",
                setting: "max_connections",
                usual: 151,
            }),
            Self::Postgres => Some(ConnectionLimit {
                used_up: "too many clients already",
                option: "max_connections",
                setting: "max_connections",
                usual: 100,
            }),
            Self::Memcached => Some(ConnectionLimit {
                used_up: "too many open connections",
                option: "-c",
                setting: "connections",
                usual: 1_024,
            }),
        }
    }

    /// The setting, in MiB, of the memory beyond which a server evicts unless it is told
    /// otherwise; `None` where it takes what it needs.
    pub fn memory_setting(self) -> Option<&'static str> {
        match self {
            Self::Files | Self::Redis | Self::Mysql | Self::Postgres | Self::Sqlite => None,
            Self::Memcached => Some("memory"),
        }
    }

    /// URLs of it, as examples for people, separated by commas.
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
            Self::Memcached => "memcached://host:port,host:port, memcached+unix:///socket",
        }
    }

    /// URLs of all products, as examples for people, separated by commas.
    pub fn all_urls() -> String {
        Self::ALL.map(Self::urls).join(", ")
    }

    /// How its servers stand in a URL; `None` where there are none.
    pub(crate) fn url(self) -> Option<UrlForm> {
        let form = |scheme, with_tls, database| Some(UrlForm { scheme, with_tls, database });
        match self {
            Self::Files | Self::Sqlite => None,
            Self::Redis => form("redis", "rediss", Some("db")),
            Self::Mysql => form("mysql", "mysql", Some("database")),
            // Its other spelling: no TLS is spoken.
            Self::Postgres => form("postgres", "postgresql", Some("database")),
            Self::Memcached => form("memcached", "memcacheds", None),
        }
    }

    /// Every product, in the order in which they are listed to users.
    pub const ALL: [Self; 6] =
        [Self::Files, Self::Redis, Self::Mysql, Self::Postgres, Self::Sqlite, Self::Memcached];
}

/// The limit of connections of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionLimit {
    /// What it says when they are used up, in lower case.
    pub used_up: &'static str,
    /// What the server calls the limit.
    pub option: &'static str,
    /// The setting of a private server.
    pub setting: &'static str,
    /// How many there are unless it is set.
    pub usual: u64,
}

/// How servers stand in a URL.
pub(crate) struct UrlForm {
    pub(crate) scheme: &'static str,
    /// The scheme where TLS is spoken.
    pub(crate) with_tls: &'static str,
    /// The key of the database in the query of a socket's URL; `None` where there are no databases.
    pub(crate) database: Option<&'static str>,
}
