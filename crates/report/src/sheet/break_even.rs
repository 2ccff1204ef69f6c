//! Break-even of page views and purchases: a sentence for each pair of targets.

use crate::section::{Block, Section};
use crate::view::View;

/// How a break-even is computed.
const NOTE: &str = "a page view is a number of reads and a few writes; a purchase cleans by a tag \
                    and writes the removed records again; both are timed as a whole, and the \
                    break-even is where their sums are equal";

pub(crate) fn section(view: &View) -> Section {
    let mut blocks = Vec::new();
    let mut place = None;
    for found in &view.advised.break_even {
        let own = (&found.workload, &found.load);
        if place.replace(own) != Some(own) {
            blocks.push(Block::note(format!("{}, {}:", found.workload, found.load)));
        }
        blocks.push(Block::item(found.sentence.clone()));
    }
    if !blocks.is_empty() {
        blocks.push(Block::note(NOTE));
    }
    Section { id: "break-even", title: "Break-even of purchases", blocks }
}
