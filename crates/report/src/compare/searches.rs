//! Searches for the highest rate within limits: the rate found, and the peak.

use model::Load;
use stats::search::A_ROUND;

use super::common::{COST, Common, Compared, Group, HIGHEST, Measured, slower};
use crate::view::{SearchView, Value, View};

/// Both searches, where both runs are some.
pub(super) fn common(a: &View, b: &View) -> Common {
    let mut common = Common {
        names: ["search", "searches"],
        header: &["of the search"],
        groups: Vec::new(),
        notes: Vec::new(),
        alone: [a, b].map(|view| usize::from(view.search.is_some())),
    };
    let (Some(one), Some(two)) = (&a.search, &b.search) else { return common };
    common.alone = [0, 0];
    let same = asked(a, one) == asked(b, two);
    let repeated = if same { rounds(one).min(rounds(two)) } else { 0 };
    let compared = |name: &str, read: &dyn Fn(&SearchView) -> Measured| {
        let names = vec![name.into()];
        Compared { names, kind: &HIGHEST, a: read(one), b: read(two), by_wall: None, repeated }
    };
    let peak = |search: &SearchView| {
        let value = |center| Value::alone(center);
        Measured::of(search.peak_per_s.map(value))
    };
    let mut lines = vec![compared("rate found", &found), compared("peak", &peak)];
    let costs = [one, two].map(|search| search.costs.get("server_cpu_ns_per_op").copied());
    // A server that somebody else runs does not tell its CPU.
    if costs.iter().any(Option::is_some) {
        let names = vec!["server CPU/op".into()];
        let [a, b] = costs.map(Measured::of);
        lines.push(Compared { names, kind: &COST, a, b, by_wall: None, repeated });
    }
    let words = asked(a, one).map(|(_, asked)| asked);
    let title = format!("{}, {}", target(a), words.join(", "));
    common.groups.push(Group { title, lines });
    for (run, search) in [("A", one), ("B", two)] {
        if search.outcome != "found" {
            common.notes.push(format!("{run}: {}", search.sentence));
        }
    }
    if !same {
        common.notes.push("they searched for different things, which decides nothing".into());
    } else if let Some(words) = overlap(one, two) {
        common.notes.push(words.into());
    }
    common.notes.extend(slower([a, b], target(a), costs).filter(|_| same));
    common
}

/// The rate found; a lower bound where clients or generator were the limit.
fn found(search: &SearchView) -> Measured {
    Measured { value: search.answer, at_least: search.outcome != "found" }
}

/// How many times the rates around the answer were tried: what its interval is over.
fn rounds(search: &SearchView) -> u32 {
    let confirmed = search.probes.iter().filter(|probe| probe.purpose == "confirm").count();
    (confirmed / A_ROUND) as u32
}

/// Whether the intervals of both rates have anything in common; `None` where one has none, or is
/// only the least that is known.
fn overlap(a: &SearchView, b: &SearchView) -> Option<&'static str> {
    let bounds = |search| {
        let Measured { value, at_least } = found(search);
        value.filter(|_| !at_least).and_then(|value| value.interval())
    };
    let ((a_lo, a_hi), (b_lo, b_hi)) = (bounds(a)?, bounds(b)?);
    Some(if a_lo <= b_hi && b_lo <= a_hi {
        "the intervals of the rates found overlap"
    } else {
        "the intervals of the rates found do not overlap"
    })
}

/// The one target of a search.
pub(super) fn target(view: &View) -> &str {
    view.setup.targets.first().map_or("", |target| &target.name)
}

/// What was asked of the store, each by its name.
pub(super) fn asked(view: &View, search: &SearchView) -> [(&'static str, String); 3] {
    let workload = view.cells.first().map_or("", |row| &row.workload);
    let limits = search.limits.join(" and ");
    [("workload", workload.into()), ("load", load(view)), ("limits", limits)]
}

/// Clients, and how requests are spaced: `50 clients, Poisson`.
fn load(view: &View) -> String {
    let mut rates = view.cells.iter().filter(|row| matches!(row.load, Load::Open { .. }));
    let Some(Load::Open { poisson, clients, pipeline, .. }) = rates.next().map(|row| &row.load)
    else {
        return view.cells.first().map_or_else(String::new, |row| row.load.to_string());
    };
    let closed = Load::Closed {
        clients: *clients,
        one_session: false,
        pipeline: *pipeline,
        stages: Vec::new(),
    };
    format!("{closed}, {}", if *poisson { "Poisson" } else { "evenly spaced" })
}
