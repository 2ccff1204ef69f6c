//! Ramps in both runs: highest rates, and the cost of an operation at the knee.
//!
//! A store's limit can be anywhere between two stages. So the interval of a highest rate that is
//! the rate of a stage extends up to the next stage.

use super::common::{COST, Common, Compared, Group, HIGHEST, Measured, paired, slower};
use crate::ramp::lower_bound_reason;
use crate::show;
use crate::view::{RampOutcome, RampView, SAME_RATE, StageWay, Value, View};

/// Explanation of the intervals.
const NOTE: &str = "the intervals of the knee and of the highest rate within the limit extend to \
                    the next stage, since the limit can be anywhere between two stages";

/// All ramps of the same target, profile and load.
pub(super) fn common(a: &View, b: &View) -> Common {
    let (of_a, of_b): (Vec<&RampView>, Vec<&RampView>) =
        (a.ramps.iter().collect(), b.ramps.iter().collect());
    let (pairs, alone) = paired(&of_a, &of_b, same);
    let mut notes: Vec<String> = Vec::new();
    for (one, two) in &pairs {
        notes.extend([("A", one), ("B", two)].iter().filter_map(|(run, ramp)| doubt(run, ramp)));
        let costs = [one, two].map(|ramp| cost(ramp));
        notes.extend(slower([a, b], &one.target, costs));
    }
    if !pairs.is_empty() {
        notes.push(NOTE.into());
    }
    Common {
        names: ["ramp", "ramps"],
        header: &["of the ramp"],
        groups: pairs.iter().map(|(a, b)| group(a, b)).collect(),
        notes,
        alone,
    }
}

fn same(a: &RampView, b: &RampView) -> bool {
    a.target == b.target
        && (&a.workload, &a.operation, &a.load) == (&b.workload, &b.operation, &b.load)
}

/// Why a ramp is inconclusive.
fn doubt(run: &str, ramp: &RampView) -> Option<String> {
    if ramp.outcome == RampOutcome::Found {
        return None;
    }
    Some(match lower_bound_reason(ramp) {
        Some(why) => {
            let target = &ramp.target;
            format!("{run}: {target} sustains more than measured: {why}, so it is inconclusive")
        }
        None => format!("{run}: {}", ramp.sentence),
    })
}

fn group(a: &RampView, b: &RampView) -> Group {
    let decides = ![a, b].iter().any(|ramp| ramp.is_lower_bound());
    let repeated = if decides { a.blocks.min(b.blocks) } else { 0 };
    let highest = |name: &str, read: &dyn Fn(&RampView) -> Option<Value>| {
        let measured =
            |ramp: &RampView| Measured { value: read(ramp), at_least: ramp.is_lower_bound() };
        let (a, b) = (measured(a), measured(b));
        Compared { names: vec![name.into()], kind: &HIGHEST, a, b, by_wall: None, repeated }
    };
    let mut lines = vec![
        highest("knee", &|ramp| ramp.metrics.get("knee_per_s").copied()),
        highest("answered at most", &|ramp| ramp.metrics.get("reached_per_s").copied()),
    ];
    if let Some(limit_ns) = a.limit_ns.or(b.limit_ns) {
        let same = a.limit_ns == b.limit_ns;
        let limit = if same { show::ns(limit_ns as f64) } else { "its own limit".into() };
        let mut line = highest(&format!("p99 below {limit}"), &within_limit);
        line.repeated = if same { repeated } else { 0 };
        lines.push(line);
    }
    // The CPU usage of a server that cachedyno did not start is unknown.
    let (a_cost, b_cost) = (Measured::of(cost(a)), Measured::of(cost(b)));
    if a_cost.value.or(b_cost.value).is_some() {
        let names = vec!["server CPU/op at knee".into()];
        lines.push(Compared { names, kind: &COST, a: a_cost, b: b_cost, by_wall: None, repeated });
    }
    let title = format!("{}, {}, {}", a.target, a.workload, a.load);
    Group { title, lines }
}

/// Server CPU time per operation at the knee.
fn cost(ramp: &RampView) -> Option<Value> {
    ramp.at_knee().and_then(|at| at.metrics.get("server_cpu_ns_per_op")).copied()
}

/// The highest rate within the limit, with an interval up to the next stage. Without a next stage
/// the interval has no upper end.
fn within_limit(ramp: &RampView) -> Option<Value> {
    let within = *ramp.metrics.get("within_limit_per_s")?;
    let up = ramp.stages.iter().filter(|stage| stage.way == StageWay::Up);
    let mut up = up.filter_map(|stage| ramp.rate_of(stage));
    let own = up.find(|rate| rate.center >= within.center * (1.0 - SAME_RATE));
    let next = own.and_then(|_| up.next());
    Some(within.up_to(next))
}
