//! What a statement comes to, and how one about a ratio is judged.

use crate::show;
use crate::view::{ClaimVerdict, Value};

/// Verdict, measured ratio and note.
pub(crate) struct Judged(pub(crate) ClaimVerdict, pub(crate) Option<Value>, pub(crate) String);

pub(crate) fn not_run(why: String) -> Judged {
    Judged(ClaimVerdict::NotRun, None, why)
}

/// That nothing follows from a ratio, and why.
pub(crate) fn undecided(ratio: Option<Value>, why: impl Into<String>) -> Judged {
    Judged(ClaimVerdict::Undecided, ratio, why.into())
}

/// A statement about the ratio of what `a` and `b` do: that it lies within a range.
#[derive(Clone, Copy)]
pub(crate) struct Said<'a> {
    pub(crate) a: &'a str,
    pub(crate) b: &'a str,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

impl Said<'_> {
    /// Judges it by a ratio from enough blocks, with the ends of its interval.
    pub(crate) fn judge(&self, ratio: Value, (lo, hi): (f64, f64)) -> Judged {
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
            let note = self.what_holds(ratio.center, (lo, hi));
            return Judged(ClaimVerdict::Refuted, Some(ratio), note);
        }
        let edge = show::ratio(if lo < min { min } else { max });
        undecided(Some(ratio), format!("the interval includes {edge}: more blocks narrow it"))
    }

    /// Whether a verdict says that the two differ: of a statement that one is ahead that it holds,
    /// of one that they are alike that it does not.
    pub(crate) fn rests_on_difference(&self, verdict: ClaimVerdict) -> bool {
        let says_alike = self.min < 1.0 && 1.0 < self.max;
        match verdict {
            ClaimVerdict::Confirmed => !says_alike,
            ClaimVerdict::Refuted => says_alike,
            _ => false,
        }
    }

    /// What still holds of it where its range is missed.
    fn what_holds(&self, center: f64, (lo, hi): (f64, f64)) -> String {
        let Self { a, b, min, max } = *self;
        if min < 1.0 && 1.0 < max {
            let (first, second, by) =
                if center > 1.0 { (a, b, center) } else { (b, a, 1.0 / center) };
            return format!("not alike here: {first} is {} as fast as {second}", show::ratio(by));
        }
        // Which of the two the statement holds to be faster, and the ratios seen from there.
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
            return format!("direction holds: {first} is faster, but by {by} rather than {limit}");
        }
        if high < 1.0 {
            let turned = show::ratio(1.0 / turn(center));
            return format!("direction does not hold: {second} is faster here, {turned}");
        }
        self.no_difference(center)
    }

    /// That none of the two is shown to be ahead.
    pub(crate) fn no_difference(&self, center: f64) -> String {
        let Self { a, b, min, .. } = *self;
        let (first, second, by) = if min >= 1.0 { (a, b, center) } else { (b, a, 1.0 / center) };
        let by = show::ratio(by);
        format!("no difference is shown here: {first} is {by} as fast as {second}")
    }
}
