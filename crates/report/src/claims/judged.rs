//! Result of a claim, judgement of claims about a ratio, and their words.

use stats::Doubt;

use crate::cases::{Case, CombinedVerdict, together};
use crate::show;
use crate::view::{ClaimVerdict, Value};

/// Verdict, measured ratio and note.
pub(super) struct Judged(pub(super) ClaimVerdict, pub(super) Option<Value>, pub(super) String);

pub(super) fn not_run(why: String) -> Judged {
    Judged(ClaimVerdict::NotRun, None, why)
}

/// An undecided claim with its reason.
pub(super) fn undecided(ratio: Option<Value>, why: impl Into<String>) -> Judged {
    Judged(ClaimVerdict::Undecided, ratio, why.into())
}

/// A claim that the ratio of `a` to `b` is within a range.
#[derive(Clone, Copy)]
pub(super) struct RatioClaim<'a> {
    pub(super) a: &'a str,
    pub(super) b: &'a str,
    pub(super) min: f64,
    pub(super) max: f64,
}

impl RatioClaim<'_> {
    /// Judges the claim by a ratio from enough blocks with its bounds.
    pub(super) fn judge(&self, ratio: Value, (lo, hi): (f64, f64)) -> Judged {
        let Self { a, b, min, max } = *self;
        let times = show::ratio(ratio.center);
        if min <= lo && hi <= max {
            let note = if ratio.center >= 1.0 {
                format!("holds: {a} is {times} as fast as {b}")
            } else {
                format!("holds: {a} has {times} the rate of {b}")
            };
            return Judged(ClaimVerdict::Confirmed, Some(ratio), note);
        }
        if hi < min || max < lo {
            let note = self.remaining_truth(ratio.center, (lo, hi));
            return Judged(ClaimVerdict::Refuted, Some(ratio), note);
        }
        let edge = show::ratio(if lo < min { min } else { max });
        undecided(Some(ratio), format!("the interval includes {edge}: more blocks narrow it"))
    }

    /// True if the verdict requires that the two differ: a confirmed claim that one is ahead, or a
    /// refuted claim that they are equal.
    pub(super) fn requires_difference(&self, verdict: ClaimVerdict) -> bool {
        let claims_equality = self.min < 1.0 && 1.0 < self.max;
        match verdict {
            ClaimVerdict::Confirmed => !claims_equality,
            ClaimVerdict::Refuted => claims_equality,
            _ => false,
        }
    }

    /// The part of a refuted claim that is still true.
    fn remaining_truth(&self, center: f64, (lo, hi): (f64, f64)) -> String {
        let Self { a, b, min, max } = *self;
        if min < 1.0 && 1.0 < max {
            let (first, second, by) =
                if center > 1.0 { (a, b, center) } else { (b, a, 1.0 / center) };
            return format!("not equal here: {first} is {} as fast as {second}", show::ratio(by));
        }
        // Express ratios from the side that the claim calls faster.
        let a_first = min >= 1.0;
        let turn = |x: f64| if a_first { x } else { 1.0 / x };
        let (first, second) = if a_first { (a, b) } else { (b, a) };
        let (low, high) = if a_first { (lo, hi) } else { (turn(hi), turn(lo)) };
        let (least, most) = if a_first { (min, max) } else { (turn(max), turn(min)) };
        let by = show::ratio(turn(center));
        if low > 1.0 {
            let limit = if low > most {
                format!("at most {}", show::ratio(most))
            } else {
                format!("at least {}", show::ratio(least))
            };
            return format!(
                "direction confirmed: {first} is faster, but by {by} rather than {limit}"
            );
        }
        if high < 1.0 {
            let turned = show::ratio(1.0 / turn(center));
            return format!("opposite direction: {second} is faster here, {turned}");
        }
        self.no_difference(center)
    }

    /// Text: neither is significantly ahead.
    pub(super) fn no_difference(&self, center: f64) -> String {
        let Self { a, b, min, .. } = *self;
        let (first, second, by) = if min >= 1.0 { (a, b, center) } else { (b, a, 1.0 / center) };
        let by = show::ratio(by);
        format!("no significant difference here: {first} is {by} as fast as {second}")
    }
}

/// Judges all cases together. `doubt` is the reason why they are undecided, if they share one;
/// `describe` ends the sentence about the deciding case.
pub(super) fn all_cases(
    cases: &[Case],
    range: (f64, f64),
    (doubt, of_each): (Option<Doubt>, &str),
    describe: impl Fn(&Case) -> String,
) -> Result<Judged, Judged> {
    let Some(CombinedVerdict { verdict, words, case }) = together(cases, range, doubt) else {
        return Err(not_run(format!("the claim names no {of_each}")));
    };
    Ok(Judged(verdict, Some(case.ratio), format!("{words}{}", describe(case))))
}

/// The same for measured ratios: the place of each, its value and its number of blocks. The first
/// that cannot be judged decides.
pub(super) fn all_measured(
    ratios: impl Iterator<Item = Result<(String, (Value, usize)), Judged>>,
    range: (f64, f64),
    of_each: &str,
    describe: impl Fn(&Case) -> String,
) -> Result<Judged, Judged> {
    let (mut cases, mut doubt) = (Vec::new(), None);
    for measured in ratios {
        let (place, (ratio, blocks)) = measured?;
        let own_doubt = Doubt::about(blocks);
        let ends = ratio.interval().filter(|_| own_doubt.is_none());
        doubt = doubt.or(own_doubt);
        cases.push(Case { ratio, ends, place, caveat: String::new() });
    }
    all_cases(&cases, range, (doubt, of_each), describe)
}

/// Judges a single value that must be within a range; `note` describes it.
pub(super) fn by_range(value: Value, (min, max): (f64, f64), note: &str) -> Judged {
    let (verdict, word) = match value.interval() {
        Some((lo, hi)) if hi < min || max < lo => (ClaimVerdict::Refuted, "does not hold"),
        Some((lo, hi)) if min <= lo && hi <= max => (ClaimVerdict::Confirmed, "holds"),
        _ => (ClaimVerdict::Undecided, "cannot be decided"),
    };
    Judged(verdict, Some(value), format!("{word}: {note}"))
}

/// A range of ratios, with or without an upper end.
pub(super) fn range(min: f64, max: Option<f64>) -> String {
    let min = show::ratio(min);
    max.map_or_else(
        || format!("at least {min}"),
        |max| format!("from {min} to {}", show::ratio(max)),
    )
}

/// Operations and numbers of clients of a claim.
pub(super) fn loads(operations: &[String], clients: &[u32]) -> String {
    let clients: Vec<String> = clients.iter().map(ToString::to_string).collect();
    format!("({} at {} clients)", operations.join(", "), clients.join(" and "))
}

/// A statement that the claim cannot be decided, with the reason if it is known.
pub(super) fn cannot_be_decided(doubt: Option<Doubt>) -> String {
    let why = doubt.map_or_else(String::new, |doubt| format!(" ({doubt})"));
    format!("cannot be decided{why}")
}
