//! Claims judged over several cases, such as one target against each of the others.

use stats::Doubt;

use crate::view::{ClaimVerdict, Value};

/// One case of a claim.
pub(crate) struct Case {
    /// The measured ratio.
    pub(crate) ratio: Value,
    /// Both ends of its interval, if it can decide the claim.
    pub(crate) ends: Option<(f64, f64)>,
    /// Description of operation, load and target.
    pub(crate) place: String,
    /// Caveat to append to the sentence if the verdict depends on this case.
    pub(crate) caveat: String,
}

/// The verdict of all cases together.
pub(crate) struct CombinedVerdict<'a> {
    pub(crate) verdict: ClaimVerdict,
    /// Numbers of cases that hold, fail or are undecided, and the place of `case`.
    pub(crate) words: String,
    /// The case that determines the verdict: the strongest refutation, else the undecided case
    /// farthest from holding, else the one closest to the edge.
    pub(crate) case: &'a Case,
}

/// Result of one case against the range that a claim expects.
#[derive(Clone, Copy, PartialEq)]
enum Stand {
    Fails,
    Open,
    Holds,
}

/// Confirmed if every case's interval lies within the range, refuted if one lies outside; `None`
/// without cases. `doubt` is the reason why cases are undecided, if they share one.
pub(crate) fn together(
    cases: &[Case],
    (min, max): (f64, f64),
    doubt: Option<Doubt>,
) -> Option<CombinedVerdict<'_>> {
    let stand = |case: &Case| match case.ends {
        Some((lo, hi)) if hi < min || max < lo => Stand::Fails,
        Some((lo, hi)) if min <= lo && hi <= max => Stand::Holds,
        _ => Stand::Open,
    };
    // Logarithmic distance of a ratio from the nearer edge of the range; negative outside.
    let depth = |ratio: f64| (ratio / min).ln().min((max / ratio).ln());
    // The distance of an interval outside the range is that of its nearer end.
    let nearest = |case: &Case| case.ends.map_or(0.0, |(lo, hi)| depth(lo).max(depth(hi)));
    let count = |wanted: Stand| cases.iter().filter(|c| stand(c) == wanted).count();
    let least = |wanted: Stand, of: &dyn Fn(&Case) -> f64| {
        let some = cases.iter().filter(|c| stand(c) == wanted);
        some.min_by(|a, b| of(a).total_cmp(&of(b)))
    };
    let center = |case: &Case| depth(case.ratio.center);
    let (fails, open, all) = (count(Stand::Fails), count(Stand::Open), cases.len());
    let (verdict, words, case) = if fails > 0 {
        let words = format!("false in {}", part(fails, all));
        let others = others(&[("holds", count(Stand::Holds)), ("is undecided", open)]);
        (
            ClaimVerdict::Refuted,
            format!("{words}{others}; strongest case:"),
            least(Stand::Fails, &nearest)?,
        )
    } else if open > 0 {
        let why = doubt.map_or_else(String::new, |doubt| format!(" ({doubt})"));
        let words = format!("cannot be decided{why} in {}", part(open, all));
        let others = others(&[("holds", count(Stand::Holds))]);
        (
            ClaimVerdict::Undecided,
            format!("{words}{others}; worst case:"),
            least(Stand::Open, &center)?,
        )
    } else {
        let words = format!("holds in {}; closest case:", part(all, all));
        (ClaimVerdict::Confirmed, words, least(Stand::Holds, &center)?)
    };
    Some(CombinedVerdict { verdict, words: format!("{words} {}", case.place), case })
}

/// `1 case`, `all 8 cases` or `1 of 10 cases`.
fn part(some: usize, all: usize) -> String {
    match (some, all) {
        (1, 1) => "1 case".into(),
        (2, 2) => "both cases".into(),
        _ if some == all => format!("all {all} cases"),
        _ => format!("{some} of {all} cases"),
    }
}

/// `, holds in 4 and is undecided in 5`; outcomes without cases are omitted.
fn others(counts: &[(&str, usize)]) -> String {
    let some: Vec<String> =
        counts.iter().filter(|(_, n)| *n > 0).map(|(what, n)| format!("{what} in {n}")).collect();
    if some.is_empty() { String::new() } else { format!(", {}", some.join(" and ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(center: f64, lo: f64, hi: f64) -> Case {
        let ratio = Value::new(center, Some(lo), Some(hi));
        Case { ratio, ends: Some((lo, hi)), place: format!("case {center}"), caveat: String::new() }
    }

    #[test]
    fn a_refutation_names_its_case_and_counts_all() {
        // The farthest ratio is undecided because its interval contains 1; another one refutes.
        let cases = [
            case(0.264, 0.057, 1.219),
            case(0.8, 0.7, 0.9),
            case(0.95, 0.92, 0.98),
            case(4.0, 3.0, 5.0),
            case(2.0, 1.5, 3.0),
        ];
        let found = together(&cases, (1.0, f64::INFINITY), None).unwrap();
        assert_eq!(found.verdict, ClaimVerdict::Refuted);
        assert_eq!(found.case.ratio.hi, Some(0.9));
        let words = "false in 2 of 5 cases, holds in 2 and is undecided in 1; strongest \
                     case: case 0.8";
        assert_eq!(found.words, words);
    }

    #[test]
    fn an_undecided_claim_names_its_worst_case() {
        let cases = [case(0.5, 0.4, 0.6), case(0.99, 0.8, 1.2), case(0.9, 0.5, 1.6)];
        let found = together(&cases, (0.0, 1.0), None).unwrap();
        let words = "cannot be decided in 2 of 3 cases, holds in 1; worst case: case 0.99";
        assert_eq!((found.verdict, found.words.as_str()), (ClaimVerdict::Undecided, words));
        let found = together(&cases[..1], (0.0, 1.0), None).unwrap();
        assert_eq!(
            (found.verdict, found.words.as_str()),
            (ClaimVerdict::Confirmed, "holds in 1 case; closest case: case 0.5")
        );
        assert!(together(&[], (0.0, 1.0), None).is_none());
    }
}
