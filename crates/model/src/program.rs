//! Servers that speak as Redis does and have other names: a row each, here and nowhere else.
//!
//! One that takes the place of `redis-server` is a row of [`Program::ALL`], any other of
//! [`BY_URL`].

use serde::de::{Deserialize, Deserializer, Error as _};
use serde::ser::{Serialize, Serializer};

use crate::product::Product;

/// A server that speaks as Redis does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kin {
    /// What it calls itself.
    pub title: &'static str,
    /// File of its program.
    pub program: &'static str,
    /// The field of `INFO server` with its version. `None` where that stands in Redis' own field,
    /// so that only the file of its program tells what it is.
    pub version_field: Option<&'static str>,
}

/// Those that take other arguments than Redis, and are measured where they run. Sources of the
/// fields: `src/server/server_family.cc`, `libs/server/Metrics/Info/GarnetInfoMetrics.cs` and
/// `src/server/server.cc` of theirs.
pub const BY_URL: [Kin; 3] = [
    Kin { title: "Dragonfly", program: "dragonfly", version_field: Some("dragonfly_version") },
    Kin { title: "Garnet", program: "GarnetServer", version_field: Some("garnet_version") },
    Kin { title: "Kvrocks", program: "kvrocks", version_field: Some("kvrocks_version") },
];

impl Kin {
    /// Every one of them.
    pub fn all() -> impl Iterator<Item = Self> {
        Program::ALL.into_iter().map(|program| program.kin).chain(BY_URL)
    }
}

/// A program that is started in place of `redis-server`. It descends from it: it speaks its
/// protocol and takes its configuration file. Files and records have the name of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Program {
    /// What it is called.
    pub kin: Kin,
    /// The bare name that starts a private server of it, and with which a URL may begin by mistake.
    pub target: &'static str,
    /// The Debian package that brings it, and who offers that.
    pub package: &'static str,
    /// Settings that it takes besides those of Redis, whose values are numbers.
    pub numbers: &'static str,
    /// The same whose values are words.
    pub words: &'static str,
    /// True where it carries commands out on one thread, as Redis does.
    pub has_one_thread: bool,
}

impl Program {
    /// The product in place of whose server it is started.
    pub const PRODUCT: Product = Product::Redis;

    /// Every program, in the order in which they are listed to users. Sources: `redis.conf` and
    /// `INFO server` of Valkey 8.1, KeyDB 6.3 and Redict 7.3.
    pub const ALL: [Self; 3] = [
        Self {
            kin: Kin {
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
            kin: Kin { title: "KeyDB", program: "keydb-server", version_field: None },
            target: "keydb",
            package: "keydb-server, from KeyDB's own repository",
            numbers: "min-clients-per-thread server-threads",
            words: "active-client-balancing enable-async-commands server-thread-affinity",
            has_one_thread: false,
        },
        Self {
            kin: Kin {
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
        self.kin.program
    }

    /// The program that a bare name starts.
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
