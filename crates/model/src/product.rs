//! Products that stores are of.

use serde::{Deserialize, Serialize};

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
    /// Servers of memcached's protocol, for keys and values, and in front of other stores.
    Memcached,
}

impl Product {
    /// The bare name that starts a private server of this product.
    pub fn name(self) -> &'static str {
        match self {
            Self::Files => "files",
            Self::Redis => "redis",
            Self::Mysql => "mysql",
            Self::Memcached => "memcached",
        }
    }

    /// True for what sessions can be kept in.
    pub fn keeps_sessions(self) -> bool {
        self != Self::Memcached
    }

    /// True for what speaks a key-value protocol.
    pub fn keeps_keys(self) -> bool {
        matches!(self, Self::Redis | Self::Memcached)
    }

    /// Every product, in the order in which they are listed to users.
    pub const ALL: [Self; 4] = [Self::Files, Self::Redis, Self::Mysql, Self::Memcached];
}
