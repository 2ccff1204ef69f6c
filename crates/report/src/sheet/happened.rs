//! Statistics and events of stores.

use model::Load;

use crate::section::{Block, Section};
use crate::table::{Cell, Column, Line, Table};
use crate::view::{EventView, FactView, View};

const MEANS: &str = "values are means over blocks [lowest, highest], unless they say otherwise; \
                     the table of faults has medians of the same numbers";

/// A table of statistics per profile and load, then the events of each trial.
pub(crate) fn section(view: &View) -> Section {
    let mut blocks = Vec::new();
    for (title, facts) in groups(view) {
        let cells = |fact: &&FactView| {
            let FactView { target, label, shown, source, .. } = fact;
            let words = [label, shown, source].map(|text| Cell::from(text.as_str()));
            Line::plain([Cell::target(target)].into_iter().chain(words))
        };
        let columns = ["target", "fact", "value", "source"].map(Column::words);
        blocks.push(Block::note(title));
        let lines = facts.iter().map(cells).collect();
        blocks.push(Block::table(Table::new(columns.into(), lines)));
    }
    if !blocks.is_empty() && !view.happened.failovers.is_empty() {
        blocks.push(Block::note(MEANS));
    }
    let events = happened(view).into_iter();
    if events.len() > 0 && !blocks.is_empty() {
        blocks.push(Block::title("Events".into()));
    }
    blocks.extend(events.map(|(trial, events)| Block::item(format!("{trial}: {events}"))));
    Section { id: "facts", title: "Facts and events", blocks }
}

/// Statistics by profile and load, each with a title, in the view's order. Details are on the page
/// and in the JSON.
fn groups(view: &View) -> Vec<(String, Vec<&FactView>)> {
    let mut groups: Vec<((&str, &Load), Vec<&FactView>)> = Vec::new();
    for fact in view.happened.facts.iter().filter(|fact| !fact.is_detail) {
        let key = (fact.workload.as_str(), &fact.load);
        match groups.iter_mut().find(|(own, _)| *own == key) {
            Some((_, facts)) => facts.push(fact),
            None => groups.push((key, vec![fact])),
        }
    }
    let titled = |((workload, load), facts)| (format!("{workload}, {load}"), facts);
    groups.into_iter().map(titled).collect()
}

/// Name and events of each trial, in order of time.
fn happened(view: &View) -> Vec<(String, String)> {
    let mut trials: Vec<(String, String)> = Vec::new();
    for event in &view.happened.events {
        let EventView { target, workload, block, .. } = event;
        let name = format!("{target}, {workload}, block {}", block + 1);
        let text = clause(event);
        match trials.last_mut().filter(|(own, _)| *own == name) {
            Some((_, events)) => *events += &format!(", {text}"),
            None => trials.push((name, text)),
        }
    }
    trials
}

/// `save began at 2.1 s of set`; the first role of a server has no time.
fn clause(event: &EventView) -> String {
    let EventView { phase, at_s, kind, what, subject, in_place_of, .. } = event;
    let whom = if subject.is_empty() { String::new() } else { format!("{subject} ") };
    if kind.is_first_role() {
        return format!("{whom}{what}");
    }
    let of_phase = phase.as_ref().map_or_else(String::new, |phase| format!(" of {phase}"));
    let replaced = in_place_of.as_ref().map_or_else(String::new, |of| format!(" in place of {of}"));
    format!("{whom}{what}{replaced} at {at_s:.2} s{of_phase}")
}
