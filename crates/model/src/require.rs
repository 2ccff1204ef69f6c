//! Requirements of every result of a run, as typed by the user: `p99<2ms`, `max<50ms`,
//! `mean<300us`, `error<0.1%`, `rate>20k`.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

use crate::search::{Slo, SloError};

/// A requirement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Requirement {
    /// A latency percentile, or the share of failures.
    Slo(Slo),
    /// `mean<300us`: the mean latency, nanoseconds, above 0.
    Mean(u64),
    /// `max<50ms`: the longest latency, nanoseconds, above 0.
    Max(u64),
    /// `rate>20k`: operations per second, above 0.
    Rate(u64),
}

/// Error of parsing a requirement.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequirementError {
    /// Neither a percentile nor a share of failures.
    #[error(transparent)]
    Slo(#[from] SloError),
    /// An invalid time.
    #[error("`{0}` is not a time (expected more than 0 with a unit, as in max<50ms)")]
    Time(String),
    /// An invalid rate.
    #[error("`{0}` is not a rate (expected operations per second, above 0, as in rate>20k)")]
    Rate(String),
}

impl Requirement {
    /// Text for sentences: `p99 < 2 ms`, `rate > 20,000/s`.
    pub fn words(&self) -> String {
        match self {
            Self::Slo(slo) => slo.words(),
            Self::Mean(ns) => format!("mean < {}", stats::format_ns(*ns as f64)),
            Self::Max(ns) => format!("max < {}", stats::format_ns(*ns as f64)),
            Self::Rate(per_s) => format!("rate > {}", stats::format_rate(*per_s as f64)),
        }
    }
}

impl FromStr for Requirement {
    type Err = RequirementError;

    fn from_str(text: &str) -> Result<Self, RequirementError> {
        if let Some(("rate", rate)) = text.split_once('>').map(|(n, l)| (n.trim(), l.trim())) {
            let count = stats::parse_count(rate).ok().filter(|count| *count > 0);
            return count.map(Self::Rate).ok_or_else(|| RequirementError::Rate(rate.into()));
        }
        let Some((name @ ("mean" | "max"), limit)) =
            text.split_once('<').map(|(n, l)| (n.trim(), l.trim()))
        else {
            return Ok(Self::Slo(text.parse()?));
        };
        let ns = stats::parse_duration_ns(limit).ok().filter(|ns| *ns > 0);
        let ns = ns.ok_or_else(|| RequirementError::Time(limit.into()))?;
        Ok(if name == "mean" { Self::Mean(ns) } else { Self::Max(ns) })
    }
}

/// Formats it in command-line syntax, with exact times.
impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Slo(slo) => f.write_str(&String::from(*slo)),
            Self::Mean(ns) => write!(f, "mean<{ns}ns"),
            Self::Max(ns) => write!(f, "max<{ns}ns"),
            Self::Rate(per_s) => write!(f, "rate>{per_s}"),
        }
    }
}

impl TryFrom<String> for Requirement {
    type Error = RequirementError;

    fn try_from(text: String) -> Result<Self, RequirementError> {
        text.parse()
    }
}

impl From<Requirement> for String {
    fn from(requirement: Requirement) -> Self {
        requirement.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requirements_are_parsed_and_stored_exactly() {
        for (text, words) in [
            ("p99<2ms", "p99 < 2 ms"),
            ("error<0.1%", "error < 0.1 %"),
            ("mean < 300us", "mean < 300 µs"),
            ("max<50ms", "max < 50.0 ms"),
            ("rate > 20k", "rate > 20.0 k/s"),
        ] {
            let read: Requirement = text.parse().unwrap();
            assert_eq!(read.words(), words);
            assert_eq!(read.to_string().parse::<Requirement>().unwrap(), read);
        }
    }

    #[test]
    fn errors_name_the_expected_form() {
        for (text, problem) in [
            ("max<5", "`5` is not a time"),
            ("mean<0s", "more than 0"),
            ("rate>fast", "`fast` is not a rate"),
            ("rate<20k", "expected `error`, or a percentile"),
            ("p99", "has no `<`"),
        ] {
            let error = text.parse::<Requirement>().unwrap_err().to_string();
            assert!(error.contains(problem), "{error}");
        }
    }
}
