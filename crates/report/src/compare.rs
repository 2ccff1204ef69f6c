//! Two runs next to each other: what both measured, the ratio of what they gave, and every
//! condition in which the runs differ.
//!
//! Runs share no blocks, so nothing is paired. The interval of the ratio is recovered from those
//! of the two values on logarithms (method of variance estimates recovery: Zou and Donner,
//! Statistics in Medicine 27 (2008) 1693, for a difference of independent estimates).
//!
//! - `common`: ratio, verdict, and how they are shown.
//! - `rows`, `ramps`, `searches`: what the runs have in common of each.
//! - `conditions`: in what they differ besides.

pub(crate) mod common;
mod conditions;
mod ramps;
mod rows;
mod searches;

use crate::show;
use crate::text::table::{Paint, paragraph};
use crate::text::{facts, painted};
use crate::view::View;
use conditions::differences;

/// Two views as text for a terminal of `columns` columns, with or without colours: what differs in
/// the conditions, then rows of results, ramps and searches that both have, each with the ratio by
/// which the second run is the better. What colour says, words say as well.
pub fn render(a: &View, b: &View, columns: usize, colour: bool) -> String {
    let paint = Paint { on: colour };
    let mut parts = vec![heading("A", a, columns, paint) + &heading("B", b, columns, paint)];
    let differences = differences(a, b);
    if !differences.is_empty() {
        let lines: String = differences.iter().map(|d| paragraph("  ! ", 4, d, columns)).collect();
        parts.push(paint.title("The runs differ in more than time:", columns) + &lines);
    }
    let kinds = [rows::common(a, b), ramps::common(a, b), searches::common(a, b)];
    let zone = a.asked.equivalence_zone.max(b.asked.equivalence_zone);
    let has_common = kinds.iter().any(|common| !common.groups.is_empty());
    let shown = kinds.iter().filter(|common| !common.groups.is_empty());
    parts.extend(shown.map(|common| common.render(zone, columns, paint)));
    let mut last = if has_common {
        let words = format!(
            "B by A: above 1, B is the better. Within {} of 1 counts as equal. Each line is judged \
             by itself: of 20 without any difference, one may look like one.",
            show::percent(zone)
        );
        paragraph("", 0, &words, columns)
    } else {
        paragraph("", 0, "The runs have nothing in common that can be compared.", columns)
    };
    last.extend(kinds.iter().map(|common| common.left_out(columns)));
    parts.push(last);
    parts.join("\n")
}

fn heading(name: &str, view: &View, columns: usize, paint: Paint) -> String {
    let word = view.validity.heading();
    let text = format!("{word}, {}", facts(view));
    // The paragraph is set without colour, so that its width is that of its words.
    let text = paragraph(&format!("{name}: "), 3, &text, columns);
    text.replacen(word, &painted(view.validity, paint), 1)
}
