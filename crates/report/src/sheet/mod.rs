//! The sheet: what every output for people shows of a result, in its order, as typed blocks. It is
//! made once, of the view; the terminal, Markdown and the page render it and decide nothing.
//!
//! The head of an output (title, answer, verdict, facts of the run) is [`View::answer`] and its
//! neighbours; all below is here. To add a table, write a module that makes a [`Section`] and name
//! it in [`sections`].

mod advice;
mod effort;
mod failures;
mod growth;
mod happened;
mod locks;
mod overview;
mod probes;
mod problems;
mod ramps;
mod requirements;
mod results;
mod stores;

use crate::section::{Part, Section};
use crate::view::View;

pub(crate) use failures::few;
pub(crate) use overview::section as overview;
pub(crate) use requirements::section as requirements;
pub(crate) use stores::not_run;

/// All sections that have something to show, in the order in which they are read.
pub(crate) fn sections(view: &View) -> Vec<Section> {
    let is_measured = !(view.cells.is_empty() && view.searches.is_empty() && view.ramps.is_empty());
    let mut all = vec![
        stores::not_run(view),
        requirements::section(view),
        Section::part("chart", "At a glance", (Part::Answer, is_measured)),
        ramps::section(view),
        probes::section(view),
        results::section(view),
        problems::section(view),
        failures::section(view),
        advice::section(view),
        Section::part("claims", "Claims", (Part::Claims, !view.claims.is_empty())),
        locks::section(view),
        effort::section(view),
        growth::section(view),
        happened::section(view),
        Section::part("charts", "More charts", (Part::Charts, is_measured)),
        stores::section(view),
        stores::disturbances(view),
        Section::part(
            "conditions",
            "Conditions",
            (Part::Conditions, !view.setup.conditions.facts.is_empty()),
        ),
        Section::part("notes", "Notes", (Part::Notes, !view.footnotes.is_empty())),
    ];
    all.retain(|section| !section.blocks.is_empty());
    all
}
