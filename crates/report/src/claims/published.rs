//! Claims about tables that the source publishes: arithmetic of its figures, without a
//! measurement.

use model::study::PublishedTable;

use super::context::Context;
use super::judged::{Judged, all_cases};
use crate::cases::Case;
use crate::show;
use crate::view::Value;

/// A ratio of published figures.
pub(super) struct PublishedRatio {
    pub(super) ratio: f64,
    /// Row and table.
    pub(super) place: String,
    /// The figures.
    pub(super) figures: String,
}

/// The tables with these ids.
pub(super) fn tables<'a>(
    context: &Context<'a>,
    ids: &'a [String],
) -> impl Iterator<Item = &'a PublishedTable> {
    let plan = context.plan;
    ids.iter().filter_map(|id| plan.tables.iter().find(|table| table.id == *id))
}

/// Judges all ratios together and lists those outside of the range.
pub(super) fn judged(ratios: &[PublishedRatio], (min, max): (f64, f64)) -> Result<Judged, Judged> {
    let case = |of: &PublishedRatio| Case {
        ratio: Value::alone(of.ratio),
        ends: Some((of.ratio, of.ratio)),
        place: of.place.clone(),
        caveat: String::new(),
    };
    let cases: Vec<Case> = ratios.iter().map(case).collect();
    all_cases(&cases, (min, max), (None, "figures that can be compared"), |decisive| {
        let is_decisive = |of: &&PublishedRatio| of.place == decisive.place;
        let figures = ratios.iter().find(is_decisive).map_or("", |of| &of.figures);
        let fails = |of: &&PublishedRatio| !(min..=max).contains(&of.ratio) && !is_decisive(of);
        let others: Vec<String> = ratios
            .iter()
            .filter(fails)
            .map(|of| format!("{} ({})", of.place, show::ratio(of.ratio)))
            .collect();
        let others = match others.as_slice() {
            [] => String::new(),
            others => format!("; also in {}", show::listed(others)),
        };
        format!(", {figures}{others}")
    })
}
