//! Programs that stand in for a product's own server.

use serde::{Deserialize, Serialize};

/// A program that is started in place of `redis-server`. It descends from it: it speaks its
/// protocol and takes its configuration file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Program {
    /// Valkey.
    #[serde(rename = "valkey-server")]
    Valkey,
    /// KeyDB.
    #[serde(rename = "keydb-server")]
    Keydb,
}

impl Program {
    /// Every program, in the order in which they are listed to users.
    pub const ALL: [Self; 2] = [Self::Valkey, Self::Keydb];

    /// Name of the program.
    pub fn name(self) -> &'static str {
        match self {
            Self::Valkey => "valkey-server",
            Self::Keydb => "keydb-server",
        }
    }

    /// The Debian package that brings it, and who offers that.
    pub fn package(self) -> &'static str {
        match self {
            Self::Valkey => "valkey-server, in Debian from 13 on",
            Self::Keydb => "keydb-server, from KeyDB's own repository",
        }
    }

    /// The bare name that starts a private server of it.
    pub fn target(self) -> &'static str {
        match self {
            Self::Valkey => "valkey",
            Self::Keydb => "keydb",
        }
    }
}
