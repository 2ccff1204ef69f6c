//! Limits in the syntax of the command line: `p99<1ms`, `error<0.01%`.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A limit, and the share of requests that may exceed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Slo {
    /// A percentile of response time, such as `p99.9<5ms`.
    Percentile {
        /// The percentile in thousandths of a percent: 1,000 to 99,999; 99,900 for p99.9.
        thousandths: u32,
        /// Response time, nanoseconds, above 0.
        limit_ns: u64,
    },
    /// A share of failed requests, such as `error<0.01%`.
    Errors {
        /// Millionths of a percent of all requests: 1 to 99,999,999; 10,000 for 0.01 %.
        millionths: u32,
    },
}

/// 100 % in thousandths of a percent.
const WHOLE: u32 = 100_000;
/// 100 % in millionths of a percent.
const WHOLE_FINE: u32 = 100_000_000;

impl Slo {
    /// Share of requests that may exceed the limit, between 0 and 1.
    pub fn allowed(&self) -> f64 {
        match self {
            Self::Percentile { thousandths, .. } => {
                f64::from(WHOLE - thousandths) / f64::from(WHOLE)
            }
            Self::Errors { millionths } => f64::from(*millionths) / f64::from(WHOLE_FINE),
        }
    }

    /// Name of the limited metric: `p99` or `error`.
    pub fn metric(&self) -> String {
        match self {
            Self::Percentile { thousandths, .. } => format!("p{}", f64::from(*thousandths) / 1e3),
            Self::Errors { .. } => "error".into(),
        }
    }

    /// Limit on response time, nanoseconds; `None` for a limit on failures.
    pub fn time_ns(&self) -> Option<u64> {
        match self {
            Self::Percentile { limit_ns, .. } => Some(*limit_ns),
            Self::Errors { .. } => None,
        }
    }

    /// Response time from which a request exceeds the limit, nanoseconds; `u64::MAX` for a limit on
    /// failures.
    pub fn limit_ns(&self) -> u64 {
        self.time_ns().unwrap_or(u64::MAX)
    }
}

/// Converts a time to the largest unit in which it is at least 1.
fn in_unit(ns: u64) -> (f64, &'static str) {
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "µs")];
    let unit = units.into_iter().find(|(size, _)| ns >= u64::from(*size));
    let (size, unit): (u32, _) = unit.unwrap_or((1, "ns"));
    (ns as f64 / f64::from(size), unit)
}

impl Slo {
    /// Formats the limit for a sentence: `p99 < 1 ms`, `error < 0.01 %`.
    pub fn words(&self) -> String {
        match self {
            Self::Percentile { limit_ns, .. } => {
                let (number, unit) = in_unit(*limit_ns);
                format!("{} < {number} {unit}", self.metric())
            }
            Self::Errors { millionths } => format!("error < {} %", f64::from(*millionths) / 1e6),
        }
    }
}

/// Formats the limit in command-line syntax.
impl fmt::Display for Slo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Percentile { limit_ns, .. } => {
                let (number, unit) = in_unit(*limit_ns);
                write!(f, "{}<{number}{unit}", self.metric())
            }
            Self::Errors { millionths } => write!(f, "error<{}%", f64::from(*millionths) / 1e6),
        }
    }
}

/// Error for text that is not a valid limit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{part}` at character {at} of `{text}` {problem}")]
pub struct SloError {
    /// The text to parse.
    text: String,
    /// The part that is wrong.
    part: String,
    /// Position of that part, in characters from 1.
    at: usize,
    /// The problem and the expected form.
    problem: String,
}

const FORMS: &str = "p99<1ms, p99.9<5ms or error<0.01%";

impl FromStr for Slo {
    type Err = SloError;

    fn from_str(text: &str) -> Result<Self, SloError> {
        let wrong = |part: &str, before: &str, problem: String| SloError {
            text: text.into(),
            part: part.trim().into(),
            at: before.chars().count() + part.chars().take_while(|c| c.is_whitespace()).count() + 1,
            problem,
        };
        let Some((metric, limit)) = text.split_once('<') else {
            let problem = format!("has no `<` (expected {FORMS})");
            return Err(wrong(text, "", problem));
        };
        let before = &text[..=metric.len()];
        let name = metric.trim();
        if name == "error" || name == "errors" {
            let expected = "is not a valid share (expected percent between 0 and 100, as in 0.01%)";
            let percent = limit.trim().strip_suffix('%');
            let number = percent.unwrap_or(limit).trim();
            let millionths = scaled(number, 6).filter(|m| (1..WHOLE_FINE).contains(m));
            return match (millionths, percent) {
                (Some(millionths), Some(_)) => Ok(Self::Errors { millionths }),
                (Some(_), None) => {
                    let problem = format!("has no % (expected percent, as in `error<{number}%`)");
                    Err(wrong(limit, before, problem))
                }
                (None, _) => Err(wrong(limit, before, expected.into())),
            };
        }
        if let "max" | "mean" = name {
            let why = if name == "max" {
                "grows with the number of requests, so no rate can be shown to meet it: limit a \
                 high percentile, as in p99.99; `bench --rate --require` checks max at one rate"
            } else {
                "does not limit single requests, since fast ones offset slow ones: limit a \
                 percentile, as in p50; `bench --rate --require` checks mean at one rate"
            };
            return Err(wrong(metric, "", why.into()));
        }
        let thousandths = name.strip_prefix('p').and_then(|digits| scaled(digits, 3));
        let thousandths = thousandths.filter(|t| (1_000..WHOLE).contains(t)).ok_or_else(|| {
            let problem = "cannot be limited here (expected `error`, or a percentile from p1 to \
                p99.999, as in p99)";
            wrong(metric, "", problem.into())
        })?;
        let limit_ns = stats::parse_duration_ns(limit.trim());
        let limit_ns = limit_ns.ok().filter(|ns| *ns > 0).ok_or_else(|| {
            let problem = "is not a valid time (expected more than 0 with a unit, as in 1ms)";
            wrong(limit, before, problem.into())
        })?;
        Ok(Self::Percentile { thousandths, limit_ns })
    }
}

/// Parses a decimal number with at most `decimals` decimal places, and multiplies it by
/// 10^`decimals`.
fn scaled(text: &str, decimals: usize) -> Option<u32> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits = |t: &str| t.chars().all(|c| c.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(part) || part.len() > decimals {
        return None;
    }
    format!("{whole}{part:0<decimals$}").parse().ok()
}

impl TryFrom<String> for Slo {
    type Error = SloError;

    fn try_from(text: String) -> Result<Self, SloError> {
        text.parse()
    }
}

/// The stored form, with the time in nanoseconds so that it is exact.
impl From<Slo> for String {
    fn from(slo: Slo) -> Self {
        match slo {
            Slo::Percentile { thousandths, limit_ns } => {
                format!("p{}<{limit_ns}ns", f64::from(thousandths) / 1e3)
            }
            Slo::Errors { .. } => slo.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_parsed() {
        let read = |text: &str| text.parse::<Slo>().unwrap();
        assert_eq!(read("p99<1ms"), Slo::Percentile { thousandths: 99_000, limit_ns: 1_000_000 });
        assert_eq!(
            read(" p99.95 < 2.5ms "),
            Slo::Percentile { thousandths: 99_950, limit_ns: 2_500_000 }
        );
        assert_eq!(read("error<0.01%"), Slo::Errors { millionths: 10_000 });
        assert!((read("p99.9<1s").allowed() - 0.001).abs() < 1e-12);
        assert!((read("p50<1s").allowed() - 0.5).abs() < 1e-12);
        assert!((read("error<0.01%").allowed() - 0.0001).abs() < 1e-12);
        assert_eq!(read("error<5%").limit_ns(), u64::MAX);
        assert_eq!(read("p99<250us").to_string(), "p99<250µs");
        assert_eq!(read("p99.9<2500us").to_string(), "p99.9<2.5ms");
        assert_eq!(read("p99<1ms").words(), "p99 < 1 ms");
        assert_eq!(read("error<0.01%").words(), "error < 0.01 %");
    }

    #[test]
    fn stored_limits_round_trip_exactly() {
        for text in ["p99<1234567ns", "p99.999<1us", "error<0.000001%", "error<50%"] {
            let slo: Slo = text.parse().unwrap();
            let stored = serde_json::to_string(&slo).unwrap();
            assert_eq!(serde_json::from_str::<Slo>(&stored).unwrap(), slo, "{stored}");
        }
    }

    #[test]
    fn parse_errors_locate_the_wrong_part() {
        for (text, part, at, problem) in [
            ("p99", "p99", 1, "has no `<`"),
            ("", "", 1, "has no `<`"),
            ("p99<", "", 5, "is not a valid time"),
            ("p99<1", "1", 5, "a unit, as in 1ms"),
            ("p99 < 0ms", "0ms", 7, "more than 0"),
            ("p99<-1ms", "-1ms", 5, "is not a valid time"),
            ("p100<1ms", "p100", 1, "p1 to p99.999"),
            ("p99.9999<1ms", "p99.9999", 1, "p1 to p99.999"),
            ("p<1ms", "p", 1, "p1 to p99.999"),
            ("é<1ms", "é", 1, "cannot be limited"),
            ("max<50ms", "max", 1, "as in p99.99; `bench --rate --require` checks max"),
            ("mean < 1ms", "mean", 1, "as in p50; `bench --rate --require` checks mean"),
            ("latency<1ms", "latency", 1, "expected `error`"),
            ("error<1", "1", 7, "has no % (expected percent, as in `error<1%`)"),
            ("errors < 0.01 ", "0.01", 10, "`error<0.01%`"),
            ("error<100", "100", 7, "as in 0.01%"),
            ("error<0%", "0%", 7, "between 0 and 100"),
            ("error<100%", "100%", 7, "between 0 and 100"),
            ("error<NaN%", "NaN%", 7, "is not a valid share"),
            ("p99<99999999999999999999s", "99999999999999999999s", 5, "is not a"),
        ] {
            let error = text.parse::<Slo>().unwrap_err().to_string();
            let place = format!("`{part}` at character {at} of `{text}` ");
            assert!(error.starts_with(&place) && error.contains(problem), "{error}");
        }
    }
}
