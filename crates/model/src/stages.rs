//! Stages: the rate of an open load over time, or the clients of a closed one.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Share of a stage, from its beginning, that is the warm-up of its [`Point`](crate::Point): the
/// store settles, and clients that come begin.
pub const SETTLE_SHARE: f64 = 0.2;
/// Highest rate of a stage, requests per second.
pub const STAGE_RATE_MAX: u64 = 100_000_000;
/// Longest time of all stages together, nanoseconds: thirty days.
const TIME_NS_MAX: u64 = 30 * 24 * 3_600 * 1_000_000_000;

/// A span of time in which the rate is constant or changes evenly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RateStage {
    /// How long it lasts, nanoseconds, at least 1.
    pub length_ns: u64,
    /// Requests per second at its start, 0 to [`STAGE_RATE_MAX`].
    pub from_per_s: u64,
    /// Requests per second at its end.
    pub to_per_s: u64,
}

impl fmt::Display for RateStage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { length_ns, from_per_s: from, to_per_s: to } = self;
        let seconds = *length_ns as f64 / 1e9;
        if from == to {
            write!(f, "{from}/s for {seconds} s")
        } else {
            write!(f, "{from}/s to {to}/s in {seconds} s")
        }
    }
}

/// Most clients of a stage.
pub const STAGE_CLIENTS_MAX: u64 = 20_000;

/// A span of time in which the number of clients is constant or changes evenly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ClientStage {
    /// How long it lasts, nanoseconds, at least 1.
    pub length_ns: u64,
    /// Clients at its start, 0 to [`STAGE_CLIENTS_MAX`].
    pub from_clients: u32,
    /// Clients at its end.
    pub to_clients: u32,
}

impl fmt::Display for ClientStage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { length_ns, from_clients: from, to_clients: to } = self;
        let seconds = *length_ns as f64 / 1e9;
        if from == to {
            let plural = if *from == 1 { "" } else { "s" };
            write!(f, "{from} client{plural} for {seconds} s")
        } else {
            write!(f, "{from} to {to} clients in {seconds} s")
        }
    }
}

/// What changes from stage to stage.
struct Unit {
    noun: &'static str,
    /// What numbers are expected, without their highest.
    numbers: &'static str,
    most: u64,
    /// Two numbers, for examples.
    example: &'static str,
}

const RATE: Unit = Unit {
    noun: "rate",
    numbers: "requests per second",
    most: STAGE_RATE_MAX,
    example: "1000-50000",
};
const CLIENTS: Unit = Unit {
    noun: "number of clients",
    numbers: "clients",
    most: STAGE_CLIENTS_MAX,
    example: "10-200",
};

/// Text that is no list of stages.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StagesError {
    /// A stage that cannot be read.
    #[error("`{part}` at character {at} of `{text}` {problem}")]
    Part {
        /// What was given.
        text: String,
        /// The part that is wrong.
        part: String,
        /// Where it begins, in characters from 1.
        at: usize,
        /// What is wrong, and what was expected.
        problem: String,
    },
    /// No request in any stage.
    #[error("`{text}` sends nothing (expected a {noun} above 0 in one stage, as in 10s:{example})")]
    Nothing {
        /// What was given.
        text: String,
        /// What changes from stage to stage.
        noun: &'static str,
        /// Two such numbers.
        example: &'static str,
    },
    /// All of them together.
    #[error("the stages of `{0}` last more than 30 days together (expected less)")]
    TooLong(String),
}

/// One or more stages, as in `10s:1000,30s:1000-50000,10s:50000`: each a length and a rate per
/// second, or the rates at its start and its end. At least one rate is above 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateStages(Vec<RateStage>);

impl RateStages {
    /// One after the other; at least one.
    pub fn into_vec(self) -> Vec<RateStage> {
        self.0
    }

    /// How long they last together, nanoseconds.
    pub fn length_ns(&self) -> u64 {
        self.0.iter().map(|s| s.length_ns).sum()
    }

    /// The highest rate, at least 1.
    pub fn highest_per_s(&self) -> u64 {
        self.0.iter().map(|s| s.from_per_s.max(s.to_per_s)).max().unwrap_or(1)
    }
}

impl FromStr for RateStages {
    type Err = StagesError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let stage =
            |(length_ns, from_per_s, to_per_s)| RateStage { length_ns, from_per_s, to_per_s };
        Ok(Self(stages(text, &RATE)?.into_iter().map(stage).collect()))
    }
}

/// One or more stages, as in `10s:1,30s:1-100,10s:100`: each a length and a number of clients, or
/// the numbers at its start and its end. At least one number is above 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientStages(Vec<ClientStage>);

impl ClientStages {
    /// One after the other; at least one.
    pub fn into_vec(self) -> Vec<ClientStage> {
        self.0
    }

    /// How long they last together, nanoseconds.
    pub fn length_ns(&self) -> u64 {
        self.0.iter().map(|s| s.length_ns).sum()
    }

    /// The most clients, at least 1.
    pub fn most(&self) -> u32 {
        self.0.iter().map(|s| s.from_clients.max(s.to_clients)).max().unwrap_or(1)
    }
}

impl FromStr for ClientStages {
    type Err = StagesError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let stage = |(length_ns, from, to)| ClientStage {
            length_ns,
            from_clients: from as u32,
            to_clients: to as u32,
        };
        Ok(Self(stages(text, &CLIENTS)?.into_iter().map(stage).collect()))
    }
}

/// Length in nanoseconds, and the numbers at the start and the end of each stage.
fn stages(text: &str, unit: &Unit) -> Result<Vec<(u64, u64, u64)>, StagesError> {
    let (mut stages, mut at) = (Vec::new(), 1);
    for part in text.split(',') {
        let wrong = |(part, before, problem): (&str, &str, String)| StagesError::Part {
            text: text.into(),
            part: part.into(),
            at: at + before.chars().count(),
            problem,
        };
        stages.push(stage(part, unit).map_err(wrong)?);
        at += part.chars().count() + 1;
    }
    if stages.iter().all(|(_, from, to)| *from == 0 && *to == 0) {
        let (noun, example) = (unit.noun, unit.example);
        return Err(StagesError::Nothing { text: text.into(), noun, example });
    }
    let time_ns = stages.iter().fold(0, |sum: u64, (length_ns, ..)| sum.saturating_add(*length_ns));
    if time_ns > TIME_NS_MAX {
        return Err(StagesError::TooLong(text.into()));
    }
    Ok(stages)
}

/// A stage; or the piece of it that is wrong, what stands before that, and why.
fn stage<'a>(part: &'a str, unit: &Unit) -> Result<(u64, u64, u64), (&'a str, &'a str, String)> {
    let Unit { noun, numbers: expected, most, example } = unit;
    let Some((length, numbers)) = part.split_once(':') else {
        let word = if *noun == RATE.noun { "RATE" } else { "CLIENTS" };
        let problem = format!(
            "has no {noun} (expected LENGTH:{word} or LENGTH:FROM-TO, as in 30s:{example})"
        );
        return Err((part, "", problem));
    };
    let before = &part[..=length.len()];
    let length_ns = stats::parse_duration_ns(length)
        .map_err(|_| (length, "", "is no length (expected a time such as 30s)".to_string()))?;
    if length_ns == 0 {
        return Err((length, "", "is no length (expected more than 0, as in 30s)".into()));
    }
    let (from, to) = numbers.split_once('-').unwrap_or((numbers, numbers));
    let number = |text: &str| text.parse().ok().filter(|number| number <= most);
    let Some((from, to)) = number(from).zip(number(to)) else {
        let problem = format!(
            "is no {noun} (expected {expected} from 0 to {most}, or two such numbers, as in \
             {example})"
        );
        return Err((numbers, before, problem));
    };
    Ok((length_ns, from, to))
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    #[test]
    fn stages_are_read_in_order() {
        let stages: RateStages = "10s:1000,500ms:1000-50000,2m:0".parse().unwrap();
        assert_eq!((stages.length_ns(), stages.highest_per_s()), (130 * S + S / 2, 50_000));
        let told: Vec<String> = stages.0.iter().map(ToString::to_string).collect();
        let expected = ["1000/s for 10 s", "1000/s to 50000/s in 0.5 s", "0/s for 120 s"];
        assert_eq!(told, expected);
    }

    #[test]
    fn clients_change_in_the_same_way() {
        let stages: ClientStages = "10s:1,30s:1-100,1m:100".parse().unwrap();
        assert_eq!((stages.length_ns(), stages.most()), (100 * S, 100));
        let told: Vec<String> = stages.0.iter().map(ToString::to_string).collect();
        assert_eq!(told, ["1 client for 10 s", "1 to 100 clients in 30 s", "100 clients for 60 s"]);
        let error = "10s:5,10s:20001".parse::<ClientStages>().unwrap_err().to_string();
        assert!(
            error.contains("`20001` at character 11") && error.contains("0 to 20000"),
            "{error}"
        );
        let error = "10s:0".parse::<ClientStages>().unwrap_err().to_string();
        assert!(error.contains("a number of clients above 0"), "{error}");
    }

    #[test]
    fn nonsense_is_located() {
        for (text, part, at, problem) in [
            ("10s", "10s", 1, "has no rate"),
            ("", "", 1, "has no rate"),
            ("1s:5,", "", 6, "has no rate"),
            ("0s:5", "0s", 1, "more than 0"),
            ("5:1", "5", 1, "is no length"),
            ("1s:1,x:5", "x", 6, "a time such as 30s"),
            ("1s:-3", "-3", 4, "is no rate"),
            ("1s:1,2s:1-2-3", "1-2-3", 9, "is no rate"),
            ("1s:100000001", "100000001", 4, "0 to 100000000"),
            ("1s:5é", "5é", 4, "is no rate"),
            ("1s:NaN", "NaN", 4, "is no rate"),
            ("1s:99999999999999999999", "99999999999999999999", 4, "is no rate"),
        ] {
            let error = text.parse::<RateStages>().unwrap_err().to_string();
            let place = format!("`{part}` at character {at} of `{text}` ");
            assert!(error.starts_with(&place) && error.contains(problem), "{error}");
        }
        assert!(matches!("1s:0,2s:0-0".parse::<RateStages>(), Err(StagesError::Nothing { .. })));
        assert!(matches!("20d:1,20d:1".parse::<RateStages>(), Err(StagesError::TooLong(_))));
    }
}
