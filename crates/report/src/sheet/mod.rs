//! The sheet: the content of every output for people as a list of typed blocks. It is built once
//! from the view; terminal, Markdown and page only render it.
//!
//! The head of an output (title, answer, validity, facts of the run) comes from [`View::answer`]
//! and related fields; everything below is here. To add a table, write a module that builds a
//! [`Section`] and list it in [`sections`].

mod advice;
mod beyond_memory;
mod break_even;
mod capabilities;
mod deletions;
mod effort;
mod failover;
mod failures;
mod growth;
mod happened;
mod locks;
mod overview;
mod planned;
mod probes;
mod problems;
mod published;
mod ramps;
mod requirements;
mod results;
mod shards;
mod source;
mod stores;
mod through_cache;
mod tiers;
mod workers;

use crate::section::{Part, Section};
use crate::view::View;

pub(crate) use beyond_memory::{memory, miss_costs};
pub(crate) use failures::few;
pub(crate) use overview::section as overview;
pub(crate) use requirements::section as requirements;
pub(crate) use shards::section as shards;
pub(crate) use stores::{left_behind, not_run, throttled};
pub(crate) use tiers::section as tiers;

/// All sections with content, in reading order.
pub(crate) fn sections(view: &View) -> Vec<Section> {
    let is_measured = !(view.cells.is_empty() && view.searches.is_empty() && view.ramps.is_empty());
    let mut all = vec![
        stores::not_run(view),
        stores::throttled(view),
        tiers::section(view),
        requirements::section(view),
        Section::part("chart", "At a glance", (Part::Answer, is_measured)),
        ramps::section(view),
        probes::section(view),
        failover::section(view),
        results::section(view),
        shards(view),
        workers::section(view),
        problems::section(view),
        failures::section(view),
        advice::section(view),
        break_even::section(view),
        capabilities::section(view),
        Section::part("claims", "Claims", (Part::Claims, !view.claims.is_empty())),
        source::section(view),
        published::section(view),
        through_cache::section(view),
        memory(view),
        beyond_memory::section(view),
        locks::section(view),
        deletions::section(view),
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
