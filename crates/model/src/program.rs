//! Servers that are compatible with Redis.
//!
//! Each has a single entry: drop-in replacements of `redis-server` in [`Program::ALL`], all others
//! in [`BY_URL`].

use serde::de::{Deserialize, Deserializer, Error as _};
use serde::ser::{Serialize, Serializer};

use crate::product::Product;

/// A server with the Redis protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RedisCompatible {
    /// Its name.
    pub title: &'static str,
    /// File name of its program.
    pub program: &'static str,
    /// The field of `INFO server` with its version. `None` if it uses Redis' field, so that only
    /// its program's file name identifies it.
    pub version_field: Option<&'static str>,
}

/// Servers with different arguments than Redis, which are only measured at a URL. Sources of the
/// fields: their files `src/server/server_family.cc`,
/// `libs/server/Metrics/Info/GarnetInfoMetrics.cs` and `src/server/server.cc`.
pub const BY_URL: [RedisCompatible; 3] = [
    RedisCompatible {
        title: "Dragonfly",
        program: "dragonfly",
        version_field: Some("dragonfly_version"),
    },
    RedisCompatible {
        title: "Garnet",
        program: "GarnetServer",
        version_field: Some("garnet_version"),
    },
    RedisCompatible {
        title: "Kvrocks",
        program: "kvrocks",
        version_field: Some("kvrocks_version"),
    },
];

impl RedisCompatible {
    /// All compatible servers.
    pub fn all() -> impl Iterator<Item = Self> {
        Program::ALL.into_iter().map(|program| program.server).chain(BY_URL)
    }
}

/// A fork of `redis-server` that can be started instead of it, with the same protocol and
/// configuration file. Files and records use the name of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Program {
    /// Its name, program and version field.
    pub server: RedisCompatible,
    /// Target name that starts a private server of it; also a possible wrong URL scheme.
    pub target: &'static str,
    /// Its Debian package and the package's source.
    pub package: &'static str,
    /// Additional settings with numeric values.
    pub numbers: &'static str,
    /// Additional settings with other values.
    pub words: &'static str,
    /// True if it executes commands on one thread, like Redis.
    pub has_one_thread: bool,
}

impl Program {
    /// The product whose server it replaces.
    pub const PRODUCT: Product = Product::Redis;

    /// All programs, in display order. Sources: `redis.conf` and `INFO server` of Valkey 8.1,
    /// KeyDB 6.3 and Redict 7.3.
    pub const ALL: [Self; 3] = [
        Self {
            server: RedisCompatible {
                title: "Valkey",
                program: "valkey-server",
                version_field: Some("valkey_version"),
            },
            target: "valkey",
            package: "valkey-server, in Debian from 13 on",
            numbers: "commandlog-execution-slower-than commandlog-large-reply-max-len \
                      commandlog-large-request-max-len commandlog-reply-larger-than \
                      commandlog-request-larger-than commandlog-slow-execution-max-len \
                      events-per-io-thread prefetch-batch-max-size",
            words: "",
            has_one_thread: true,
        },
        Self {
            server: RedisCompatible {
                title: "KeyDB",
                program: "keydb-server",
                version_field: None,
            },
            target: "keydb",
            package: "keydb-server, from KeyDB's own repository",
            numbers: "min-clients-per-thread server-threads",
            words: "active-client-balancing enable-async-commands server-thread-affinity",
            has_one_thread: false,
        },
        Self {
            server: RedisCompatible {
                title: "Redict",
                program: "redict-server",
                version_field: Some("redict_version"),
            },
            target: "redict",
            package: "redict-server, in Ubuntu from 25.04 on",
            numbers: "",
            words: "",
            has_one_thread: true,
        },
    ];

    /// Name of the program.
    pub fn name(self) -> &'static str {
        self.server.program
    }

    /// The program for a target name.
    pub fn of_target(target: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|program| program.target == target)
    }
}

impl Serialize for Program {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Program {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        let found = Self::ALL.into_iter().find(|program| program.name() == name);
        found.ok_or_else(|| {
            let known = Self::ALL.map(|program| format!("`{}`", program.name())).join(", ");
            D::Error::custom(format!("unknown program `{name}` (known: {known})"))
        })
    }
}
