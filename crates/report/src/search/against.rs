//! The answers of two targets, compared.

use super::sought::Sought;
use crate::highest::{Highest, Side, compared};
use crate::recorded::Recorded;
use crate::view::{Comparison, SearchView};

/// Every pair of targets of which the same was asked.
pub(crate) fn comparisons(
    recorded: &Recorded,
    searches: &[Sought<'_>],
    views: &[SearchView],
) -> Vec<Comparison> {
    let side = |i: usize| Side { cell: searches[i].cell, bears_more: views[i].bears_more() };
    let mut pairs = Vec::new();
    for (i, a) in searches.iter().enumerate() {
        for (j, b) in searches.iter().enumerate().skip(i + 1) {
            let (one, two) = (&views[i], &views[j]);
            if (&one.workload, &one.load) == (&two.workload, &two.load) {
                let (operation, sides) = (one.operation.as_str(), [side(i), side(j)]);
                let (metric, values) = ("highest_per_s", a.paired(b));
                pairs.push(Highest { metric, operation, sides, values });
            }
        }
    }
    compared(&recorded.header.plan, pairs)
}
