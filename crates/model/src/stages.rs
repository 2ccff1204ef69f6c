//! Stages: the rate of an open load over time, or the clients of a closed one.

use serde::{Deserialize, Serialize};

use crate::arrivals::{Arrivals, Unit};

/// Share of a stage, from its start, that is the warm-up of its [`Point`](crate::Point): the store
/// settles, and new clients start.
pub const SETTLE_SHARE: f64 = 0.2;
/// Maximum total length of all stages, nanoseconds: thirty days.
const TIME_NS_MAX: u64 = 30 * 24 * 3_600 * 1_000_000_000;

/// A span of time in which the level of a load is constant or changes linearly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Stage {
    /// Length, nanoseconds, at least 1.
    pub length_ns: u64,
    /// Level at its start: active clients, or operations per second.
    pub from: u64,
    /// Level at its end.
    pub to: u64,
}

impl Stage {
    /// A stage with a constant level.
    pub fn level(level: u64, length_ns: u64) -> Self {
        Self { length_ns, from: level, to: level }
    }

    /// Stages of equal length at these levels, with pauses of level 0 between them.
    pub fn with_pauses(levels: &[u64], length_ns: u64, rest_ns: u64) -> Vec<Self> {
        let mut stages = Vec::new();
        for level in levels {
            if rest_ns > 0 && !stages.is_empty() {
                stages.push(Self::level(0, rest_ns));
            }
            stages.push(Self::level(*level, length_ns));
        }
        stages
    }

    /// Total length of stages, nanoseconds.
    pub fn length_of(stages: &[Self]) -> u64 {
        stages.iter().fold(0, |sum, stage| sum.saturating_add(stage.length_ns))
    }

    /// Highest level of all stages.
    pub fn highest(stages: &[Self]) -> u64 {
        stages.iter().map(|stage| stage.from.max(stage.to)).max().unwrap_or(0)
    }

    pub(crate) fn words(&self, unit: &Unit) -> String {
        let Self { length_ns, from, to } = *self;
        let seconds = length_ns as f64 / 1e9;
        if from == to {
            format!("{} for {seconds} s", unit.of(from))
        } else {
            format!("{from} to {} in {seconds} s", unit.of(to))
        }
    }
}

/// Error of parsing a list of stages.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StagesError {
    /// An invalid stage.
    #[error("`{part}` at character {at} of `{text}` {problem}")]
    Part {
        /// What was given.
        text: String,
        /// The part that is wrong.
        part: String,
        /// Where it starts, in characters from 1.
        at: usize,
        /// What is wrong, and what was expected.
        problem: String,
    },
    /// No stage sends a request.
    #[error("`{text}` sends nothing (expected a {noun} above 0 in one stage, as in 10s:{example})")]
    Nothing {
        /// What was given.
        text: String,
        /// Name of the level.
        noun: &'static str,
        /// Two example levels.
        example: &'static str,
    },
    /// The total length is too long.
    #[error("the stages of `{0}` take more than 30 days in total (expected less)")]
    TooLong(String),
}

/// Parses one or more stages, as in `10s:1000,30s:1000-50000,10s:50000`: each has a length and
/// either one level or the levels at its start and end. At least one level is above 0.
///
/// Errors: what is wrong, where, and what was expected.
pub fn parse_stages(text: &str, arrivals: Arrivals) -> Result<Vec<Stage>, StagesError> {
    let unit = arrivals.unit();
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
    if Stage::highest(&stages) == 0 {
        let (noun, example) = (unit.noun, unit.example);
        return Err(StagesError::Nothing { text: text.into(), noun, example });
    }
    if Stage::length_of(&stages) > TIME_NS_MAX {
        return Err(StagesError::TooLong(text.into()));
    }
    Ok(stages)
}

/// Parses a stage. Errors: the invalid part, the text before it, and the reason.
fn stage<'a>(part: &'a str, unit: &Unit) -> Result<Stage, (&'a str, &'a str, String)> {
    let Unit { noun, word, numbers: expected, most, example, .. } = unit;
    let Some((length, numbers)) = part.split_once(':') else {
        let problem = format!(
            "has no {noun} (expected LENGTH:{word} or LENGTH:FROM-TO, as in 30s:{example})"
        );
        return Err((part, "", problem));
    };
    let before = &part[..=length.len()];
    let length_ns = stats::parse_duration_ns(length)
        .map_err(|_| (length, "", "is not a length (expected a time such as 30s)".to_string()))?;
    if length_ns == 0 {
        return Err((length, "", "is not a length (expected more than 0, as in 30s)".into()));
    }
    let (from, to) = numbers.split_once('-').unwrap_or((numbers, numbers));
    let number = |text: &str| stats::parse_count(text).ok().filter(|number| number <= most);
    let Some((from, to)) = number(from).zip(number(to)) else {
        let problem = format!(
            "is not a {noun} (expected {expected} from 0 to {most}, or two such numbers, as in \
             {example})"
        );
        return Err((numbers, before, problem));
    };
    Ok(Stage { length_ns, from, to })
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    /// Total length in nanoseconds, highest level, and a description of each stage.
    fn read(text: &str, arrivals: Arrivals) -> (u64, u64, Vec<String>) {
        let stages = parse_stages(text, arrivals).unwrap();
        let words = stages.iter().map(|stage| stage.words(arrivals.unit())).collect();
        (Stage::length_of(&stages), Stage::highest(&stages), words)
    }

    fn error(text: &str, arrivals: Arrivals) -> String {
        parse_stages(text, arrivals).unwrap_err().to_string()
    }

    #[test]
    fn stages_are_parsed_in_order() {
        let (length_ns, highest, words) =
            read("10s:1000,500ms:1000-50000,2m:0", Arrivals::Constant);
        assert_eq!((length_ns, highest), (130 * S + S / 2, 50_000));
        assert_eq!(words, ["1000/s for 10 s", "1000 to 50000/s in 0.5 s", "0/s for 120 s"]);
    }

    #[test]
    fn stages_can_set_the_number_of_clients() {
        let (length_ns, highest, words) = read("10s:1,30s:1-100,1m:100", Arrivals::Closed);
        assert_eq!((length_ns, highest), (100 * S, 100));
        assert_eq!(
            words,
            ["1 client for 10 s", "1 to 100 clients in 30 s", "100 clients for 60 s"]
        );
        let message = error("10s:5,10s:20001", Arrivals::Closed);
        assert!(
            message.contains("`20001` at character 11") && message.contains("0 to 20000"),
            "{message}"
        );
        let message = error("10s:0", Arrivals::Closed);
        assert!(message.contains("a number of clients above 0"), "{message}");
    }

    #[test]
    fn invalid_parts_are_located() {
        for (text, part, at, problem) in [
            ("10s", "10s", 1, "has no rate"),
            ("", "", 1, "has no rate"),
            ("1s:5,", "", 6, "has no rate"),
            ("0s:5", "0s", 1, "more than 0"),
            ("5:1", "5", 1, "is not a length"),
            ("1s:1,x:5", "x", 6, "a time such as 30s"),
            ("1s:-3", "-3", 4, "is not a rate"),
            ("1s:1,2s:1-2-3", "1-2-3", 9, "is not a rate"),
            ("1s:100000001", "100000001", 4, "0 to 100000000"),
            ("1s:5é", "5é", 4, "is not a rate"),
            ("1s:NaN", "NaN", 4, "is not a rate"),
            ("1s:99999999999999999999", "99999999999999999999", 4, "is not a rate"),
        ] {
            let message = error(text, Arrivals::Poisson);
            let place = format!("`{part}` at character {at} of `{text}` ");
            assert!(message.starts_with(&place) && message.contains(problem), "{message}");
        }
        let parsed = |text| parse_stages(text, Arrivals::Poisson);
        assert!(matches!(parsed("1s:0,2s:0-0"), Err(StagesError::Nothing { .. })));
        assert!(matches!(parsed("20d:1,20d:1"), Err(StagesError::TooLong(_))));
    }
}
