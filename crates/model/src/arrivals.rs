//! Arrival processes and the units of load levels.

use serde::{Deserialize, Serialize};

/// Highest rate of a stage, requests per second.
pub(crate) const STAGE_RATE_MAX: u64 = 100_000_000;
/// Maximum clients of a stage.
pub(crate) const STAGE_CLIENTS_MAX: u64 = 20_000;

/// When a client sends its next operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arrivals {
    /// After the previous reply and the think time.
    Closed,
    /// When it is due, whether or not earlier ones were answered; evenly spaced.
    Constant,
    /// When it is due, whether or not earlier ones were answered; a Poisson process.
    Poisson,
}

impl Arrivals {
    /// Description of the spacing of planned arrivals.
    pub fn spacing(self) -> Option<&'static str> {
        match self {
            Self::Closed => None,
            Self::Constant => Some("evenly spaced"),
            Self::Poisson => Some("Poisson"),
        }
    }

    /// Unit of load levels.
    pub(crate) fn unit(self) -> &'static Unit {
        match self {
            Self::Closed => &CLIENTS,
            Self::Constant | Self::Poisson => &RATE,
        }
    }
}

/// Unit of a load's levels.
pub(crate) struct Unit {
    pub(crate) noun: &'static str,
    /// Suffixes for a level of 1 and for all others.
    pub(crate) suffixes: [&'static str; 2],
    /// Placeholder for a level in error messages.
    pub(crate) word: &'static str,
    /// Description of expected numbers, without their maximum.
    pub(crate) numbers: &'static str,
    pub(crate) most: u64,
    /// Two numbers, for examples.
    pub(crate) example: &'static str,
}

const RATE: Unit = Unit {
    noun: "rate",
    suffixes: ["/s", "/s"],
    word: "RATE",
    numbers: "requests per second",
    most: STAGE_RATE_MAX,
    example: "1000-50000",
};
const CLIENTS: Unit = Unit {
    noun: "number of clients",
    suffixes: [" client", " clients"],
    word: "CLIENTS",
    numbers: "clients",
    most: STAGE_CLIENTS_MAX,
    example: "10-200",
};

impl Unit {
    /// A level with its unit: `1000/s`, `1 client`.
    pub(crate) fn of(&self, level: u64) -> String {
        format!("{level}{}", self.suffixes[usize::from(level != 1)])
    }
}
