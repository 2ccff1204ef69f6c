//! Searches for the highest rate within limits: the rate found, and the peak.

use model::Load;
use stats::search::{A_ROUND, Purpose, Step};

use super::common::{COST, Common, Compared, Group, HIGHEST, Measured, paired, slower};
use crate::view::{SearchOutcome, SearchView, Value, View};

/// Pairs of searches with the same target. If each run has one search, these two form a pair.
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
        if parameters(one) != parameters(two) {
            let words = "the workload, load or limits differ, so nothing is compared";
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
    let repeated = if parameters(a) == parameters(b) { repeated(a).min(repeated(b)) } else { 0 };
    let compared = |name: &str, kind, read: &dyn Fn(&SearchView) -> Measured| {
        let names = vec![name.into()];
        Compared { names, kind, a: read(a), b: read(b), by_wall: None, repeated }
    };
    let peak = |search: &SearchView| Measured::of(search.peak_per_s.map(Value::alone));
    let mut lines =
        vec![compared("rate found", &HIGHEST, &found), compared("peak", &HIGHEST, &peak)];
    // The CPU usage of a server that cachedyno did not start is unknown.
    if cost(a).or(cost(b)).is_some() {
        lines.push(compared("server CPU/op", &COST, &|search| Measured::of(cost(search))));
    }
    let words = parameters(a).map(|(_, parameters)| parameters);
    Group { title: format!("{}, {}", a.target, words.join(", ")), lines }
}

fn cost(search: &SearchView) -> Option<Value> {
    search.costs.get("server_cpu_ns_per_op").copied()
}

/// The rate found; a lower bound if clients or generator were the limit.
fn found(search: &SearchView) -> Measured {
    Measured { value: search.answer, at_least: search.outcome != SearchOutcome::Found }
}

/// Number of repetitions behind the interval: blocks, or the confirmation rounds of a single block.
fn repeated(search: &SearchView) -> u32 {
    if search.blocks > 1 {
        return search.blocks;
    }
    let confirmed = search.probes.iter().filter(|probe| probe.purpose == Purpose::Confirm).count();
    (confirmed / A_ROUND) as u32
}

/// Whether the intervals of both rates overlap; `None` if a rate has no interval or is only a lower
/// bound.
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

/// Parameters of a search by name.
pub(super) fn parameters(search: &SearchView) -> [(&'static str, String); 3] {
    let limits = search.limits.join(" and ");
    [("workload", search.workload.clone()), ("load", load(&search.load)), ("limits", limits)]
}

/// Clients and arrivals: `50 clients, Poisson`.
fn load(load: &Load) -> String {
    let peak = load.at_probe(Step { purpose: Purpose::Peak, rate_per_s: 0, length_ns: 0 });
    format!("{peak}, {}", load.arrivals.spacing().unwrap_or_default())
}
