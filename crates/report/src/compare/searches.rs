//! Searches for the highest rate within limits: the rate found, and the peak.

use model::Load;
use stats::search::{A_ROUND, Purpose, Step};

use super::common::{COST, Common, Compared, Group, HIGHEST, Measured, paired, slower};
use crate::view::{SearchOutcome, SearchView, Value, View};

/// All searches of the same target, or those of two runs that have one each.
pub(super) fn common(a: &View, b: &View) -> Common {
    let (of_a, of_b): (Vec<&SearchView>, Vec<&SearchView>) =
        (a.searches.iter().collect(), b.searches.iter().collect());
    let is_one = of_a.len() == 1 && of_b.len() == 1;
    let (pairs, alone) = paired(&of_a, &of_b, |one, two| is_one || one.target == two.target);
    let mut notes = Vec::new();
    for (one, two) in &pairs {
        for (run, search) in [("A", one), ("B", two)] {
            if search.outcome != SearchOutcome::Found {
                notes.push(format!("{run}: {}", search.sentence));
            }
        }
        let target = &one.target;
        if asked(one) != asked(two) {
            let words = "they searched for different things, which decides nothing";
            notes.push(format!("{target}: {words}"));
            continue;
        }
        notes.extend(overlap(one, two).map(|words| format!("{target}: {words}")));
        notes.extend(slower([a, b], target, [one, two].map(|search| cost(search))));
    }
    Common {
        names: ["search", "searches"],
        header: &["of the search"],
        groups: pairs.iter().map(|(a, b)| group(a, b)).collect(),
        notes,
        alone,
    }
}

fn group(a: &SearchView, b: &SearchView) -> Group {
    let repeated = if asked(a) == asked(b) { repeated(a).min(repeated(b)) } else { 0 };
    let compared = |name: &str, kind, read: &dyn Fn(&SearchView) -> Measured| {
        let names = vec![name.into()];
        Compared { names, kind, a: read(a), b: read(b), by_wall: None, repeated }
    };
    let peak = |search: &SearchView| Measured::of(search.peak_per_s.map(Value::alone));
    let mut lines =
        vec![compared("rate found", &HIGHEST, &found), compared("peak", &HIGHEST, &peak)];
    // A server that somebody else runs does not tell its CPU.
    if cost(a).or(cost(b)).is_some() {
        lines.push(compared("server CPU/op", &COST, &|search| Measured::of(cost(search))));
    }
    let words = asked(a).map(|(_, asked)| asked);
    Group { title: format!("{}, {}", a.target, words.join(", ")), lines }
}

fn cost(search: &SearchView) -> Option<Value> {
    search.costs.get("server_cpu_ns_per_op").copied()
}

/// The rate found; a lower bound where clients or generator were the limit.
fn found(search: &SearchView) -> Measured {
    Measured { value: search.answer, at_least: search.outcome != SearchOutcome::Found }
}

/// What its interval is over: blocks, or of one how many times the rates around the answer were
/// tried.
fn repeated(search: &SearchView) -> u32 {
    if search.blocks > 1 {
        return search.blocks;
    }
    let confirmed = search.probes.iter().filter(|probe| probe.purpose == Purpose::Confirm).count();
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

/// What was asked of the store, each by its name.
pub(super) fn asked(search: &SearchView) -> [(&'static str, String); 3] {
    let limits = search.limits.join(" and ");
    [("workload", search.workload.clone()), ("load", load(&search.load)), ("limits", limits)]
}

/// Clients, and how requests are spaced: `50 clients, Poisson`.
fn load(load: &Load) -> String {
    let peak = load.at_probe(Step { purpose: Purpose::Peak, rate_per_s: 0, length_ns: 0 });
    format!("{peak}, {}", load.arrivals.spacing().unwrap_or_default())
}
