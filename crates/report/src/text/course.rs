//! Numbers about stores, and what happened to them.

use model::Load;

use super::table::{Line, Paint, Table, paragraph};
use crate::view::{EventView, FactView, View};

/// Column names of [`cells`].
pub(crate) const HEADER: [&str; 4] = ["target", "number", "value", "says"];

/// Facts of each profile and load, then the events of each trial.
pub(crate) fn render(view: &View, columns: usize, paint: Paint) -> String {
    let mut text = String::new();
    for (title, facts) in groups(view) {
        let lines = facts.iter().map(|fact| Line::Cells(cells(fact), false)).collect();
        let table = Table { header: HEADER.to_vec(), right: &[], gap: 2, lines };
        text += &paint.title(&title, columns);
        text += &table.fit(paint, columns);
    }
    let told: String = happened(view)
        .iter()
        .map(|(trial, events)| paragraph(&format!("  {trial}: "), 4, events, columns))
        .collect();
    if !told.is_empty() {
        text += &(paint.bold("What happened, and when") + "\n" + &told);
    }
    text
}

/// Facts of the same profile and load under a title, in the view's order.
pub(crate) fn groups(view: &View) -> Vec<(String, Vec<&FactView>)> {
    let mut groups: Vec<((&str, &Load), Vec<&FactView>)> = Vec::new();
    for fact in &view.facts {
        let key = (fact.workload.as_str(), &fact.load);
        match groups.iter_mut().find(|(own, _)| *own == key) {
            Some((_, facts)) => facts.push(fact),
            None => groups.push((key, vec![fact])),
        }
    }
    let title =
        |(workload, load): (&str, &Load)| format!("Numbers about stores: {workload}, {load}");
    groups.into_iter().map(|(key, facts)| (title(key), facts)).collect()
}

/// A fact in the order of [`HEADER`].
pub(crate) fn cells(fact: &FactView) -> Vec<String> {
    vec![fact.target.clone(), fact.label.clone(), fact.shown.clone(), fact.source.clone()]
}

/// The events of each trial with its name, by time.
pub(crate) fn happened(view: &View) -> Vec<(String, String)> {
    let mut trials: Vec<(String, String)> = Vec::new();
    for event in &view.events {
        let EventView { target, workload, block, .. } = event;
        let name = format!("{target}, {workload}, block {}", block + 1);
        let told = clause(event);
        match trials.last_mut().filter(|(own, _)| *own == name) {
            Some((_, events)) => *events += &format!(", {told}"),
            None => trials.push((name, told)),
        }
    }
    trials
}

/// `save began at 2.1 s of set`.
fn clause(event: &EventView) -> String {
    let EventView { phase, at_s, what, subject, .. } = event;
    let whom = if subject.is_empty() { String::new() } else { format!("{subject} ") };
    let of_phase = phase.as_ref().map_or_else(String::new, |phase| format!(" of {phase}"));
    format!("{whom}{what} at {at_s:.2} s{of_phase}")
}
