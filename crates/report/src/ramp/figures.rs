//! A ramp over all blocks: highest rates, values at shares of the knee, and all stages.

use model::{Counts, OperationResult, Plan, Point, Slowest, Workload};
use stats::knee::{ERROR_SHARE, Way};
use stats::{Histogram, Times};
use std::collections::{BTreeMap, BTreeSet};

use super::ladder::{Ladder, Ramp, StageResult, ramps, unsent_of};
use crate::blocks::over_blocks;
use crate::distribution::{Merged, OfBlock};
use crate::metrics::{METRICS, Whole, over_points};
use crate::ramp::helps::helps;
use crate::ramp::limited::{Limited, limited};
use crate::ramp::saturation::saturation;
use crate::recorded::Recorded;
use crate::show::{self, classes, grouped};
use crate::view::{
    ALL, RampBlock, RampCharts, RampOperation, RampOutcome, RampPoint, RampStage, RampView,
    StageInTime, StageWay, Value,
};

/// Shares of the knee for which latency and cost are reported.
const SHARES: [f64; 5] = [0.25, 0.5, 0.75, 0.9, 1.0];

/// Maximum number of trials with drawn samples, so that the page opens quickly.
const DRAWN_MAX: usize = 12;

/// All ramps of a record with their results.
pub(crate) fn judged(recorded: &Recorded) -> Vec<(Ramp<'_>, RampView)> {
    let ramps = ramps(recorded);
    let drawn = (DRAWN_MAX / ramps.len().max(1)).max(1);
    let plan = &recorded.header.plan;
    let view = |ramp: &Ramp<'_>| RampView {
        helps: helps(plan, &ramps, ramp),
        ..ramp.view(recorded, drawn)
    };
    let views: Vec<RampView> = ramps.iter().map(view).collect();
    ramps.into_iter().zip(views).collect()
}

type Metrics = BTreeMap<String, Value>;

impl Ramp<'_> {
    fn view(&self, recorded: &Recorded, drawn: usize) -> RampView {
        let seed = recorded.header.plan.seed;
        let limit_ns = recorded.header.plan.limit_ns;
        let limited = limited(self, recorded);
        let metrics = self.highest(limit_ns, limited.is_none(), seed);
        let outcome = self.outcome(limited.as_ref());
        let open = self.ladders.iter().any(is_open);
        RampView {
            workload: self.cell.workload.profile().into(),
            operation: self.phase.into(),
            target: self.cell.target.clone(),
            load: self.cell.load.clone(),
            in_pairs: matches!(&self.cell.workload, Workload::Kv(kv) if kv.follows),
            blocks: self.whole().count() as u32,
            times: if open { "response" } else { "service" }.into(),
            sentence: self.sentence(outcome, &metrics, limited.as_ref(), limit_ns),
            outcome,
            place: self.place(recorded),
            helps: None,
            at: SHARES.iter().filter_map(|share| self.at(*share, seed)).collect(),
            stages: self.stages(&recorded.header.plan),
            charts: Some(self.charts(recorded, drawn)),
            metrics,
            limit_ns,
        }
    }

    fn outcome(&self, limited: Option<&Limited>) -> RampOutcome {
        let mut whole = self.whole().peekable();
        if whole.peek().is_none() {
            return RampOutcome::Broken;
        }
        let knees: Vec<_> = whole.map(|ladder| ladder.knee).collect();
        if knees.iter().any(|knee| knee.held.is_none()) {
            RampOutcome::NeverHeld
        } else if limited.is_some() {
            RampOutcome::Generator
        } else if knees.iter().any(|knee| knee.missed.is_none()) {
            RampOutcome::NeverMissed
        } else {
            RampOutcome::Found
        }
    }

    /// The highest rates, and CPUs at the knee. `own` is true if the store itself was the limit in
    /// the first stage above the knee.
    fn highest(&self, limit_ns: Option<u64>, own: bool, seed: u64) -> Metrics {
        let mut metrics = Metrics::new();
        let mut put = |name: &str, values: Vec<Option<f64>>| {
            let value = over_blocks(values.into_iter().flatten(), seed);
            metrics.extend(value.map(|(value, _)| (name.to_string(), value)));
        };
        let each = |read: &dyn Fn(&Ladder<'_>) -> Option<f64>| self.whole().map(read).collect();
        put("reached_per_s", each(&|c| Some(c.reached())));
        put("peak_per_s", each(&|c| c.peak()));
        put("knee_per_s", each(&|c| Some(c.last_passing()?.rate())));
        put("missed_per_s", each(&|c| Some(c.first_failing()?.rule.asked_per_s)));
        put("server_cpus", each(&|c| c.last_passing()?.server_cpus()));
        put("generator_cpus", each(&|c| Some(c.last_passing()?.generator_cpus())));
        if let Some(limit_ns) = limit_ns {
            put("within_limit_per_s", each(&|c| Some(c.within(limit_ns)?.rate())));
        }
        let missed = metrics.get("missed_per_s").copied();
        let all_missed = self.whole().all(|ladder| ladder.knee.missed.is_some());
        if let Some(knee) = metrics.get_mut("knee_per_s") {
            // The knee may be anywhere between two stages: extend the interval to the failed one.
            let beyond = missed.filter(|_| all_missed && own);
            *knee = knee.up_to(beyond);
        }
        metrics
    }

    fn sentence(
        &self,
        outcome: RampOutcome,
        metrics: &Metrics,
        limited: Option<&Limited>,
        limit_ns: Option<u64>,
    ) -> String {
        let target = &self.cell.target;
        let per_s = |name: &str| metrics.get(name).map(|v| format!("{}/s", grouped(v.center)));
        let reached = per_s("reached_per_s").unwrap_or_default();
        let knee = metrics.get("knee_per_s").map(rate_words).unwrap_or_default();
        let least = metrics.get("knee_per_s").map_or_else(String::new, least_words);
        let cpus = metrics.get("server_cpus").map_or_else(String::new, |v| {
            format!(", using {} of one core", show::percent(v.center))
        });
        let within = limit_ns.map_or_else(String::new, |ns| {
            let limit = show::ns(ns as f64);
            match metrics.get("within_limit_per_s").map(rate_words) {
                Some(rate) => format!("; with p99 below {limit} {rate}"),
                None => format!("; not even its lowest stage kept p99 below {limit}"),
            }
        });
        let is_more = |of: &str| metrics.get(of).map_or(0.0, |value| value.center);
        let peak = if is_more("reached_per_s") > is_more("knee_per_s") {
            format!("; highest rate reached {reached}")
        } else {
            String::new()
        };
        match outcome {
            RampOutcome::Found => format!("{target} sustains {knee}{cpus}{within}{peak}"),
            RampOutcome::NeverMissed => format!(
                "{target} sustains at least {least}{cpus}{within}; {}it was never saturated: raise \
                 the rates",
                self.unsaturated()
            ),
            RampOutcome::Generator => format!(
                "{target} sustains at least {least}{cpus}{within}; {}",
                limited.map_or("", |l| &l.why)
            ),
            RampOutcome::NeverHeld => self.never_held(&reached, &knee),
            RampOutcome::Broken => self.broken(),
        }
    }

    /// Blocks in which it was never saturated: `in 1 of 3 blocks `, or empty for all blocks.
    fn unsaturated(&self) -> String {
        let all = self.whole().count();
        let never = self.whole().filter(|ladder| ladder.knee.missed.is_none()).count();
        if never == all { String::new() } else { format!("in {never} of {all} blocks ") }
    }

    /// Why even the lowest stage failed in a block: failed requests or too high a load.
    fn never_held(&self, reached: &str, knee: &str) -> String {
        let target = &self.cell.target;
        let all = self.whole().count();
        let without = self.whole().filter(|ladder| ladder.knee.held.is_none()).count();
        if without < all {
            return format!(
                "{target} sustained no stage in {without} of {all} blocks, so no lower bound is \
                 known ({knee} in the others): lower the first rates, or measure on a quieter \
                 machine; highest rate reached {reached}"
            );
        }
        let lowest = self.whole().filter_map(|ladder| ladder.stages.get(*ladder.up.first()?));
        let mut counts = Counts::default();
        lowest.filter_map(StageResult::whole).for_each(|whole| counts.merge(&whole.counts));
        if counts.error as f64 > ERROR_SHARE * counts.total() as f64 {
            return format!(
                "{target} failed even in the lowest stage: {} of {} operations ({}); peak \
                 throughput {reached}",
                counts.error,
                counts.total(),
                classes(&counts)
            );
        }
        format!(
            "{target} could not keep up even in the lowest stage: lower the rates; peak \
             throughput {reached}"
        )
    }

    /// How far incomplete ramps got.
    fn broken(&self) -> String {
        let target = &self.cell.target;
        let held = self.ladders.iter().filter_map(Ladder::last_passing).map(StageResult::rate);
        let until = held.reduce(f64::max).map_or_else(
            || "before it passed a stage".to_string(),
            |rate| format!("after sustaining {}/s", grouped(rate)),
        );
        let why = self.ladders.iter().find_map(|ladder| ladder.trial.failure.as_ref());
        let why = why.map_or_else(String::new, |failure| format!(": {failure}"));
        format!("{target} failed in every block, {until}{why}")
    }

    /// Latency and cost at a share of each block's knee.
    fn at(&self, share: f64, seed: u64) -> Option<RampPoint> {
        let operations = self.operations();
        let mut values: BTreeMap<String, Vec<f64>> = BTreeMap::new();
        for ladder in self.whole() {
            let Some(held) = ladder.last_passing() else { continue };
            let rate = share * held.rate();
            let mut put = |name: String, read: &dyn Fn(&StageResult<'_>) -> Option<f64>| {
                let value = ladder.at_rate(rate, read);
                values.entry(name).or_default().extend(value);
            };
            put("rate_per_s".into(), &|_| Some(rate));
            for (name, q) in [("p50", 0.5), ("p99", 0.99)] {
                put(format!("ns_{name}"), &|s| s.quantile(q));
                for operation in &operations {
                    put(format!("{operation}.ns_{name}"), &|s| s.quantile_of(operation, q));
                }
            }
            for metric in &METRICS {
                put(metric.key.into(), &|s| metric.read(&s.whole_point()));
            }
        }
        let value = |(name, values): (String, Vec<f64>)| {
            Some((name, over_blocks(values.into_iter(), seed)?.0))
        };
        let metrics: Metrics = values.into_iter().filter_map(value).collect();
        metrics.contains_key("ns_p99").then_some(RampPoint { share, metrics })
    }

    /// Names of operations, without the total.
    pub(crate) fn operations(&self) -> BTreeSet<&str> {
        let stages = self.ladders.iter().flat_map(|ladder| &ladder.stages);
        let names = stages.flat_map(|s| &s.result.operations).map(|o| o.operation.as_str());
        names.filter(|name| *name != self.phase).collect()
    }

    /// The stages over all blocks: on the way up in ascending order, on the way down in order of
    /// time.
    fn stages(&self, plan: &Plan) -> Vec<RampStage> {
        let mut places: BTreeMap<(Way, usize), Vec<&StageResult<'_>>> = BTreeMap::new();
        let has_whole = self.whole().next().is_some();
        for ladder in self.ladders.iter().filter(|ladder| ladder.is_whole() || !has_whole) {
            for (place, i) in ladder.up.iter().enumerate() {
                places.entry((Way::Up, place)).or_default().push(&ladder.stages[*i]);
            }
            let down = ladder.stages.iter().filter(|stage| stage.way == Way::Down);
            for (place, stage) in down.enumerate() {
                places.entry((Way::Down, place)).or_default().push(stage);
            }
        }
        let numbered = places.into_iter().zip(1..);
        numbered.map(|(((way, _), seen), number)| stage((number, way), &seen, plan)).collect()
    }

    fn charts(&self, recorded: &Recorded, drawn: usize) -> RampCharts {
        let block = |(i, ladder): (usize, &Ladder<'_>)| {
            let samples = recorded.samples_of(ladder.trial);
            RampBlock {
                block: ladder.trial.block,
                failed: !ladder.is_whole(),
                stages: ladder.stages.iter().map(in_time).collect(),
                saturation: (i < drawn).then(|| saturation(samples)).flatten(),
            }
        };
        RampCharts { blocks: self.ladders.iter().enumerate().map(block).collect() }
    }
}

fn is_open(ladder: &Ladder<'_>) -> bool {
    ladder.stages.iter().any(|stage| stage.result.planned_per_s.is_some())
}

/// `94,000/s [91,000, 97,000]`.
fn rate_words(value: &Value) -> String {
    let rate = grouped(value.center);
    match show::bounds(value) {
        Some((lo, hi)) => format!("{rate}/s [{}, {}]", grouped(lo), grouped(hi)),
        None => format!("{rate}/s"),
    }
}

/// A lower bound: the lower end of its interval.
fn least_words(knee: &Value) -> String {
    let center = grouped(knee.center);
    match knee.lo.map(grouped) {
        Some(lo) if lo != center => format!("{lo}/s (lower end of the interval)"),
        _ => format!("{center}/s"),
    }
}

fn stage((number, way): (u32, Way), all: &[&StageResult<'_>], plan: &Plan) -> RampStage {
    let seed = plan.seed;
    let mut metrics = Metrics::new();
    let mut put = |name: &str, read: &dyn Fn(&StageResult<'_>) -> Option<f64>| {
        let values = all.iter().filter_map(|stage| read(stage));
        metrics.extend(over_blocks(values, seed).map(|(value, _)| (name.to_string(), value)));
    };
    put("planned_per_s", &|s| s.result.planned_per_s);
    put("asked_per_s", &|s| Some(s.rule.asked_per_s));
    put("rate_per_s", &|s| Some(s.rule.answered_per_s));
    let wholes: Vec<Whole<'_>> = all.iter().map(|seen| seen.whole_point()).collect();
    metrics.extend(over_points(&wholes, seed));
    let parts = |stage: &Point| -> Vec<String> {
        let names = stage.operations.iter().map(|o| o.operation.clone());
        names.filter(|name| *name != stage.phase).collect()
    };
    let names: BTreeSet<String> = all.iter().flat_map(|s| parts(s.result)).collect();
    let of = |name: &str| -> Vec<OfStage<'_>> {
        let results = all.iter().flat_map(|s| s.result.operations.iter().map(|o| (s.result, o)));
        results.filter(|(_, o)| o.operation == name).collect()
    };
    let mut operations: BTreeMap<String, RampOperation> =
        names.iter().map(|name| (name.clone(), operation(&of(name), plan))).collect();
    let wholes: Vec<OfStage<'_>> =
        all.iter().filter_map(|s| Some((s.result, s.whole()?))).collect();
    operations.insert(ALL.into(), operation(&wholes, plan));
    RampStage {
        number,
        way: if way == Way::Up { StageWay::Up } else { StageWay::Down },
        clients: all.iter().map(|s| s.result.clients).max().unwrap_or(0),
        blocks: all.len() as u32,
        held: all.iter().filter(|s| s.rule.holds()).count() as u32,
        unsent: all.iter().map(|s| s.result.unsent).sum(),
        metrics,
        operations,
    }
}

/// Selects a latency histogram of an operation.
type Read = fn(&OperationResult) -> &Histogram;
/// Selects the longest latency per interval.
type Course = fn(&Slowest) -> &[u64];

/// An operation of a stage.
type OfStage<'a> = (&'a Point, &'a OperationResult);

fn operation(results: &[OfStage<'_>], plan: &Plan) -> RampOperation {
    let mut found = RampOperation::default();
    for (_, one) in results {
        found.counts.merge(&one.counts);
    }
    // The length is the same in every block.
    let length_ns = results.first().map_or(0, |(stage, _)| stage.length_ns);
    let open = results.iter().any(|(stage, _)| stage.planned_per_s.is_some());
    let kinds: [(&str, Read, Course, bool); 3] = [
        ("service", |o| &o.service, |s| &s.service, true),
        ("response", |o| &o.response, Slowest::response, open),
        ("lag", |o| &o.lag, |_| &[], open),
    ];
    for (kind, read, course, _) in kinds.into_iter().filter(|(.., applies)| *applies) {
        let times = |(stage, o): &OfStage<'_>| {
            if kind == "lag" {
                // Failed requests were sent too, so they have a lag.
                return Times::all(read(o)).into();
            }
            let times = o.counts.times(read(o), plan.timeout_ns);
            let times = times.and_failed(unsent_of(stage, o), plan.timeout_ns);
            OfBlock::new(times, o.slowest.as_ref().map(course), length_ns)
        };
        let percentiles = Merged::of(results.iter().map(times)).percentiles();
        let kept = percentiles.into_iter().filter(|(name, ..)| KEPT.contains(name));
        found.metrics.extend(kept.map(|(name, value, _)| (format!("{kind}_ns_{name}"), value)));
    }
    found
}

/// Percentiles of a stage; it is too short for rarer ones.
const KEPT: [&str; 3] = ["p50", "p99", "p999"];

fn in_time(stage: &StageResult<'_>) -> StageInTime {
    let from_ns = stage.result.begun_ns;
    StageInTime {
        from_s: from_ns as f64 / 1e9,
        to_s: (from_ns + stage.result.length_ns) as f64 / 1e9,
        planned_per_s: stage.result.planned_per_s,
        clients: stage.result.clients,
        answered_per_s: stage.rule.answered_per_s,
        ns_p99: stage.quantile(0.99).map(|ns| ns as u64),
        holds: stage.rule.holds(),
    }
}
