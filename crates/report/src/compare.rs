//! Comparison of two runs: the results that both have, their ratios, and every difference in
//! conditions.
//!
//! Runs share no blocks, so values are not paired. The interval of a ratio is derived from the
//! intervals of the two values on a logarithmic scale (method of variance estimates recovery: Zou
//! and Donner, Statistics in Medicine 27 (2008) 1693, for a difference of independent estimates).
//!
//! - `common`: ratio, verdict and rendering.
//! - `rows`, `ramps`, `searches`: the results of each kind that both runs have.
//! - `conditions`: differences in conditions.

pub(crate) mod common;
mod conditions;
mod ramps;
mod rows;
mod searches;

use crate::show;
use crate::text::table::{Paint, paragraph};
use crate::text::{facts, painted};
use crate::view::{Validity, View};
use common::{Common, Judge};
use conditions::differences;
use stats::Verdict;
use std::fmt;

/// Message if no line can be compared.
const NOTHING: &str = "The runs have nothing in common that can be compared: lines are \
                                 matched by the names of targets, profile, operation and load.";

/// Two views as text for a terminal of `columns` columns, with or without colours: differences in
/// conditions, then the results, ramps and searches that both have, each with the ratio of the
/// second run to the first. Words repeat everything that colour conveys.
pub fn render(a: &View, b: &View, columns: usize, colour: bool) -> String {
    let paint = Paint { on: colour };
    let (kinds, judge) = common(a, b);
    let has_common = kinds.iter().any(|common| !common.groups.is_empty());
    let outcome = if has_common { outcome(&kinds, judge, [a, b]) } else { NOTHING.into() };
    let outcome = paint.title(&outcome, columns);
    let mut parts =
        vec![outcome + &heading("A", a, columns, paint) + &heading("B", b, columns, paint)];
    let differences = differences(a, b);
    if !differences.is_empty() {
        let lines: String = differences.iter().map(|d| paragraph("  ! ", 4, d, columns)).collect();
        parts.push(paint.title("The conditions of the runs differ:", columns) + &lines);
    }
    let shown = kinds.iter().filter(|common| !common.groups.is_empty());
    parts.extend(shown.map(|common| common.render(judge, columns, paint)));
    let mut last = String::new();
    if has_common {
        let words = format!(
            "B/A is a ratio of values; the verdict describes B. Values within {} of each other \
             are equal. Verdicts are corrected for the number of comparisons.",
            show::percent(judge.zone)
        );
        last = paragraph("", 0, &words, columns);
    }
    last.extend(kinds.iter().map(|common| common.left_out(columns)));
    parts.push(last);
    parts.join("\n")
}

/// The results that both runs have, and the judge for their ratios.
fn common(a: &View, b: &View) -> ([Common; 3], Judge) {
    let kinds = [rows::common(a, b), ramps::common(a, b), searches::common(a, b)];
    let comparisons = kinds.iter().flat_map(Common::compared).count();
    let zone = a.asked.equivalence_zone.max(b.asked.equivalence_zone);
    (kinds, Judge { zone, widening: stats::widening(comparisons) })
}

/// Comparison of a second run with a first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Against {
    /// Lines in which the second run is slower, sustains less or costs more.
    pub slower: Vec<Quotient>,
    /// Lines that cannot be decided.
    pub undecided: Vec<Quotient>,
    /// Lines in which the second run is equal or better.
    pub others: Vec<Quotient>,
}

/// A line of a comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quotient {
    /// The result that both runs have: `steady, 8 clients, read redis`.
    pub what: String,
    /// The second run's value divided by the first's, with its interval: `0.91× [0.88, 0.94]`.
    pub ratio: String,
}

impl fmt::Display for Quotient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.ratio)
    }
}

/// Compares `b` with `a` in every result that both have.
pub fn against(a: &View, b: &View) -> Against {
    let (kinds, judge) = common(a, b);
    let mut found = Against::default();
    for (group, line) in kinds.iter().flat_map(Common::compared) {
        let place = match line.verdict(judge) {
            Verdict::Slower => &mut found.slower,
            Verdict::Undecided => &mut found.undecided,
            Verdict::Faster | Verdict::Equal => &mut found.others,
        };
        let what = format!("{}, {}", group.title, line.names.join(" "));
        place.push(Quotient { what, ratio: line.ratio_words() });
    }
    found
}

/// In how many results the second run is faster, slower, equal or undecided, and whether both runs
/// may be used.
fn outcome(kinds: &[Common], judge: Judge, [a, b]: [&View; 2]) -> String {
    let verdicts: Vec<Verdict> =
        kinds.iter().flat_map(Common::compared).map(|(_, line)| line.verdict(judge)).collect();
    let count = |verdict, word: &str| {
        let found = verdicts.iter().filter(|one| **one == verdict).count();
        (found > 0).then(|| format!("{word} in {found}"))
    };
    let all = [
        count(Verdict::Faster, "better"),
        count(Verdict::Slower, "worse"),
        count(Verdict::Equal, "equal"),
        count(Verdict::Undecided, "undecided"),
    ];
    let counts: Vec<String> = all.into_iter().flatten().collect();
    let of = match verdicts.len() {
        0 => return "Nothing is compared: the loads or limits differ.".into(),
        1 => "1 result".into(),
        n => format!("{n} results"),
    };
    let bad = [("A", a), ("B", b)].into_iter().filter(|(_, v)| v.validity == Validity::Invalid);
    let bad: Vec<&str> = bad.map(|(name, _)| name).collect();
    let warning = match bad[..] {
        [] => String::new(),
        [one] => format!("; {one} is INVALID: use this for diagnosis only"),
        _ => "; both are INVALID: use this for diagnosis only".into(),
    };
    format!("B against A, of {of}: {}{warning}", counts.join(", "))
}

fn heading(name: &str, view: &View, columns: usize, paint: Paint) -> String {
    let word = view.validity.heading();
    let text = format!("{word}, {}", facts(view));
    // The paragraph is wrapped before colouring, because escape codes have no width.
    let text = paragraph(&format!("{name}: "), 3, &text, columns);
    text.replacen(word, &painted(view.validity, paint), 1)
}
