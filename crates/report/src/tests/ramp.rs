//! Ramps on simulated stores with a known capacity: figures, comparisons, claims and outputs.

use model::study::claims::{Conditions, Diverges, Figure, Pick, Ratio, Steady};
use model::study::{Claim, Expectation};
use model::{
    Arrivals, Cell, Counts, ErrorClass, Failure, Kv, KvOperation, Load, OperationResult, PEAK,
    Phase, Point, ProcessUse, Product, Sample, Schedule, Series, Shares, Stop, StoreCounters,
    ThreadCpu, Trial, Workload,
};
use stats::Histogram;
use std::collections::BTreeMap;

use crate::fixture::run;
use crate::recorded::Recorded;
use crate::view::{RampView, Validity, View};
use crate::{csv, html, json, judge, markdown, text};

const STAGE_NS: u64 = 1_000_000_000;
const SETTLE_NS: u64 = 200_000_000;
const UP: [u32; 12] = [100, 200, 300, 400, 500, 600, 700, 800, 900, 1000, 1100, 1200];

/// A store: its capacity in operations per second, the ratio of set to get latency,
/// and CPU time per operation, nanoseconds.
#[derive(Clone, Copy)]
pub(super) struct Store {
    pub(super) capacity: f64,
    pub(super) set_by_get: f64,
    pub(super) cpu_ns: f64,
}

pub(super) const REDIS: Store = Store { capacity: 94_000.0, set_by_get: 1.6, cpu_ns: 10_000.0 };
const MEMCACHED: Store = Store { capacity: 112_000.0, set_by_get: 1.3, cpu_ns: 8_500.0 };

/// A run of both stores; `with` changes each trial.
pub(super) fn ramped(blocks: u32, with: impl Fn(&mut Trial)) -> Recorded {
    of(&[("redis", REDIS), ("memcached", MEMCACHED)], blocks, with)
}

/// A run of these stores, up and down again.
pub(super) fn of(stores: &[(&str, Store)], blocks: u32, with: impl Fn(&mut Trial)) -> Recorded {
    let names: Vec<&str> = stores.iter().map(|(name, _)| *name).collect();
    let mut recorded = run(&names, blocks, |_, _, _| 10_000.0);
    let model = recorded.trials[0].clone();
    recorded.trials.clear();
    let plan = &mut recorded.header.plan;
    plan.study = "ramp".into();
    plan.title = "Where stores break".into();
    plan.profiles = vec!["open".into()];
    plan.limit_ns = Some(1_000_000);
    plan.cells = stores.iter().map(|(name, _)| cell(name)).collect();
    for (target, (name, _)) in plan.targets.iter_mut().zip(stores) {
        target.product = if *name == "redis" { Product::Redis } else { Product::Memcached };
    }
    for block in 0..blocks {
        for (name, store) in stores {
            let drift = if *name == "redis" { 0.01 } else { 0.005 };
            let noise = 1.0 + drift * f64::from(block);
            let store = Store { capacity: store.capacity * noise, ..*store };
            let cell = format!("{name}/open/64");
            let mut points = vec![peak(store)];
            points.extend(ramp(store, &shares()));
            let series = [PEAK, "ramp"].map(series).to_vec();
            let mut trial = Trial { block, cell, points, series, ..model.clone() };
            with(&mut trial);
            recorded.trials.push(trial);
        }
    }
    recorded
}

/// Up and down again.
fn shares() -> Vec<u32> {
    UP.iter().chain(UP.iter().rev().skip(1)).copied().collect()
}

fn cell(target: &str) -> Cell {
    let phase = |name: &str| Phase {
        name: name.into(),
        mix: BTreeMap::from([("set".into(), 1.0), ("get".into(), 1.0)]),
        warmup_ns: 0,
        stop: Stop::AfterNs(STAGE_NS),
        control: None,
    };
    let operation = |name: &str| KvOperation { name: name.into(), command: None };
    Cell {
        id: format!("{target}/open/64"),
        target: target.into(),
        workload: Workload::Kv(Kv {
            profile: "open".into(),
            operations: vec![operation("set"), operation("get")],
            keys: 1_000_000,
            distribution: "uniform".into(),
            key_prefix: String::new(),
            key_bytes: Some("uuid".into()),
            value_bytes: "json".into(),
            ttl_s: 20,
            filled_share: 0.0,
            verify_one_in: 64,
            threads: 1,
            think_ns: 0,
            follows: true,
            phases: vec![phase(PEAK), phase("ramp")],
            ..Kv::default()
        }),
        load: Load::planned(
            Arrivals::Poisson,
            Schedule::Shares(Shares { permille: shares(), stage_ns: STAGE_NS, rest_ns: 0 }),
            64,
        ),
    }
}

/// `n` exponential times with this mean, as in an M/M/1 queue.
pub(super) fn exponential(mean_ns: f64, n: u64) -> Histogram {
    let mut times = Histogram::new();
    for i in 0..200 {
        let q = (f64::from(i) + 0.5) / 200.0;
        times.record_many((-(1.0 - q).ln() * mean_ns) as u64, (n / 200).max(1));
    }
    times
}

pub(super) fn operation(name: &str, mean_ns: f64, (due, answered): (f64, f64)) -> OperationResult {
    let n = (due * 0.8) as u64;
    let times = exponential(mean_ns, n);
    OperationResult {
        operation: name.into(),
        counts: Counts { ok: n, ..Counts::default() },
        rate_per_s: answered,
        calls_rate_per_s: None,
        service: times.clone(),
        response: times,
        lag: Histogram::new(),
        lock_wait: Histogram::new(),
        slowest: None,
    }
}

fn operations(store: Store, name: &str, due: f64) -> Vec<OperationResult> {
    let answered = due.min(store.capacity);
    // Beyond its capacity a store's queue grows as long as the stage lasts.
    let queued = if due < store.capacity { 1e9 / (store.capacity - due) } else { 60e6 };
    let get_ns = 2.0 * (50e3 + queued) / (1.0 + store.set_by_get);
    let half = (due / 2.0, answered / 2.0);
    vec![
        operation("set", get_ns * store.set_by_get, half),
        operation("get", get_ns, half),
        operation(name, 50e3 + queued, (due, answered)),
    ]
}

pub(super) fn point(name: &str, operations: Vec<OperationResult>) -> Point {
    Point {
        phase: name.into(),
        length_ns: STAGE_NS,
        clients: 64,
        generator_cpu_ns: STAGE_NS / 2,
        server_cpu_ns: Some(STAGE_NS / 2),
        begun_ns: if name == PEAK { STAGE_NS } else { 2 * STAGE_NS },
        operations,
        ..Point::default()
    }
}

pub(super) fn series(phase: &str) -> Series {
    Series { phase: phase.into(), interval_ns: 100_000_000, ..Series::default() }
}

fn peak(store: Store) -> Point {
    point(PEAK, operations(store, PEAK, 0.999 * store.capacity))
}

fn ramp(store: Store, shares: &[u32]) -> Vec<Point> {
    let stage = |(i, share): (usize, &u32)| {
        let planned = f64::from(*share) * store.capacity / 1e3;
        let length_ns = STAGE_NS - SETTLE_NS;
        let answered = planned.min(store.capacity);
        let begun_ns = (2 + i as u64) * STAGE_NS + SETTLE_NS;
        Point {
            stage: Some(i as u32),
            begun_ns,
            length_ns,
            planned_per_s: Some(planned),
            server_cpu_ns: Some(((answered * store.cpu_ns) as u64).min(length_ns)),
            generator_cpu_ns: (answered * 4_000.0 * 0.8) as u64,
            generator_run_delay_ns: 1_000_000,
            ..point("ramp", operations(store, "ramp", planned))
        }
    };
    shares.iter().enumerate().map(stage).collect()
}

pub(super) fn found<'a>(view: &'a View, target: &str) -> &'a RampView {
    view.ramps.iter().find(|ramp| ramp.target == target).unwrap()
}

fn stages_at(trial: &Trial) -> std::ops::Range<usize> {
    let from = trial.points.iter().position(|p| p.stage.is_some()).unwrap_or(trial.points.len());
    from..from + trial.points.iter().filter(|p| p.stage.is_some()).count()
}

/// The stages of its ramp.
pub(super) fn stages(trial: &mut Trial) -> &mut [Point] {
    let at = stages_at(trial);
    &mut trial.points[at]
}

/// Keeps at most this many stages.
pub(super) fn truncate_stages(trial: &mut Trial, count: usize) {
    let at = stages_at(trial);
    trial.points.drain((at.start + count).min(at.end)..at.end);
}

fn near(value: f64, expected: f64, share: f64) -> bool {
    (value / expected - 1.0).abs() < share
}

pub(super) fn claim(expect: Expectation) -> Claim {
    let text = String::from("a statement");
    Claim {
        id: "a-claim".into(),
        source: "a test".into(),
        source_value: None,
        profiles: Vec::new(),
        conditions: Conditions::default(),
        text,
        expect,
    }
}

#[test]
fn a_ramp_finds_what_a_store_sustains() {
    let view = judge(&ramped(4, |_| ()));
    assert_eq!((view.validity, view.reasons.len()), (Validity::Valid, 0), "{:?}", view.reasons);
    let redis = found(&view, "redis");
    assert_eq!((redis.outcome.name(), redis.blocks), ("found", 4));
    let capacity = REDIS.capacity * 1.015;
    let knee = redis.metrics["knee_per_s"];
    assert!(near(knee.center, capacity, 0.01), "{knee:?}");
    // It failed at 1.1 times its capacity: the interval extends up to there, and no further
    // than the blocks differ.
    assert!(knee.lo.unwrap() < capacity && near(knee.hi.unwrap(), 1.1 * capacity, 0.05));
    assert!(near(redis.metrics["reached_per_s"].center, capacity, 0.01));
    assert!(redis.metrics["server_cpus"].center > 0.9);
    assert!(redis.sentence.contains("redis sustains 95,"), "{}", redis.sentence);
    // p99 of an M/M/1 queue on top of 50 µs: 1 ms is reached where 4.6 × (1/(c − r) + 50 µs) is.
    let within = redis.metrics["within_limit_per_s"].center;
    assert!(near(within, 0.9 * capacity, 0.01), "{within}");
}

#[test]
fn values_at_shares_of_the_knee_are_interpolated() {
    let view = judge(&ramped(3, |_| ()));
    let redis = found(&view, "redis");
    let shares: Vec<f64> = redis.at.iter().map(|point| point.share).collect();
    assert_eq!(shares, [0.25, 0.5, 0.75, 0.9, 1.0]);
    let p99: Vec<f64> = redis.at.iter().map(|point| point.metrics["ns_p99"].center).collect();
    assert!(p99.is_sorted(), "{p99:?}");
    let half = &redis.at[1].metrics;
    let expected = 4.38 * (50e3 + 1e9 / (0.5 * REDIS.capacity * 1.01));
    assert!(near(half["ns_p99"].center, expected, 0.05), "{half:?} {expected}");
    assert!(half["set.ns_p99"].center > half["get.ns_p99"].center);
    assert!(near(half["server_cpu_ns_per_op"].center, REDIS.cpu_ns / 0.8, 0.01), "{half:?}");
}

#[test]
fn both_directions_are_side_by_side() {
    let slow_to_recover = |trial: &mut Trial| {
        for stage in &mut stages(trial)[UP.len()..] {
            let whole = stage.operations.last_mut().unwrap();
            whole.response = exponential(9e6, 1_000);
        }
    };
    let view = judge(&ramped(3, slow_to_recover));
    let stages = &found(&view, "redis").stages;
    let ways: Vec<&str> = stages.iter().map(|stage| stage.way.name()).collect();
    assert_eq!(ways, [["up"; 12].as_slice(), ["down"; 11].as_slice()].concat());
    assert_eq!(stages.iter().map(|s| s.held).collect::<Vec<_>>()[9..13], [3, 0, 0, 0]);
    let p99 = |i: usize| stages[i].time("all", "p99").unwrap().center;
    assert!(p99(22) > 20.0 * p99(0), "the way down was slow");
    let shown = text::render(&view, 120, false);
    let line = shown.lines().find(|line| line.trim_start().starts_with("9,")).unwrap();
    assert!(line.contains(" ms") && line.contains("µs"), "{line}");
}

#[test]
fn shuffled_stages_are_sorted_by_planned_rate() {
    let shuffle = |trial: &mut Trial| {
        truncate_stages(trial, UP.len());
        let stages = stages(trial);
        stages.swap(0, 9);
        stages.swap(3, 11);
    };
    let view = judge(&ramped(3, shuffle));
    let redis = found(&view, "redis");
    assert!(near(redis.metrics["knee_per_s"].center, REDIS.capacity * 1.01, 0.01));
    assert!(redis.stages.iter().all(|stage| stage.way.name() == "up"));
    let asked = redis.stages.iter().map(|stage| stage.metrics["asked_per_s"].center);
    assert!(asked.is_sorted());
}

#[test]
fn highest_rates_are_compared_over_blocks() {
    let view = judge(&ramped(4, |_| ()));
    let metrics: Vec<&str> = view.comparisons.iter().map(|c| c.metric.as_str()).collect();
    assert_eq!(metrics, ["reached_per_s", "knee_per_s", "within_limit_per_s"]);
    for compared in &view.comparisons {
        assert_eq!((compared.a.as_str(), compared.verdict.name()), ("redis", "slower"));
        assert!(near(compared.ratio.center, 94.0 / 112.0, 0.02), "{:?}", compared.ratio);
    }
    let two = judge(&ramped(2, |_| ()));
    assert!(two.comparisons.iter().all(|c| c.verdict.name() == "undecided"));
}

#[test]
fn an_unsaturated_ramp_gives_a_lower_bound() {
    let lower = |trial: &mut Trial| {
        if trial.cell.starts_with("memcached") {
            truncate_stages(trial, 9);
        }
    };
    let view = judge(&ramped(3, lower));
    let memcached = found(&view, "memcached");
    assert_eq!(memcached.outcome.name(), "never-missed");
    assert_eq!(memcached.metrics["knee_per_s"].hi, None);
    assert!(memcached.sentence.contains("at least"), "{}", memcached.sentence);
    let words = "; it was never saturated: raise the rates";
    assert!(memcached.sentence.ends_with(words), "{}", memcached.sentence);
    let in_one = |trial: &mut Trial| {
        if trial.block == 0 {
            lower(trial);
        }
    };
    let in_one = found(&judge(&ramped(3, in_one)), "memcached").sentence.clone();
    assert!(in_one.ends_with("; in 1 of 3 blocks it was never saturated: raise the rates"));
    let knees = view.comparisons.iter().find(|c| c.metric == "knee_per_s").unwrap();
    // Redis' lower knee is decidedly lower; equal or higher could not be decided.
    assert!(knees.verdict.name() == "slower" || knees.doubt.is_some(), "{knees:?}");
}

#[test]
fn the_generators_limit_is_not_the_stores_limit() {
    let starved = |trial: &mut Trial| {
        if trial.cell.starts_with("memcached") {
            for stage in stages(trial) {
                stage.server_cpu_ns = stage.server_cpu_ns.map(|ns| ns / 2);
                stage.generator_cpu_ns = stage.length_ns * 98 / 100;
            }
        }
    };
    let view = judge(&ramped(4, starved));
    let memcached = found(&view, "memcached");
    assert_eq!(memcached.outcome.name(), "generator");
    assert!(memcached.sentence.contains("the generator was the limit"), "{}", memcached.sentence);
    assert!(memcached.sentence.contains("--set threads=N"));
    assert_eq!(memcached.metrics["knee_per_s"].hi, None, "it may sustain any more");
    assert_eq!(found(&view, "redis").outcome.name(), "found");
    // A saturated server thread: then the server was the limit after all.
    let mut recorded = ramped(4, starved);
    recorded.samples = (0..4).map(|block| sampled("memcached/open/64", block, 27)).collect();
    assert_eq!(found(&judge(&recorded), "memcached").outcome.name(), "found");
}

#[test]
fn a_broken_store_is_reported_with_its_last_passing_stage() {
    let dies = |trial: &mut Trial| {
        if trial.cell.starts_with("redis") {
            truncate_stages(trial, 7);
            let message = "the server ended with signal 9".into();
            trial.failure = Some(Failure { class: ErrorClass::Closed, message });
        }
    };
    let view = judge(&ramped(3, dies));
    let redis = found(&view, "redis");
    assert_eq!((redis.outcome.name(), redis.blocks), ("broken", 0));
    assert!(redis.sentence.contains("after sustaining 67,"), "{}", redis.sentence);
    assert!(redis.sentence.contains("signal 9"));
    assert_eq!((redis.stages.len(), view.failures.len()), (7, 3));
    assert!(redis.charts.as_ref().unwrap().blocks.iter().all(|block| block.failed));
    assert_eq!(view.validity, Validity::Invalid);
    assert_eq!(found(&view, "memcached").outcome.name(), "found");
}

#[test]
fn failures_above_the_knee_are_allowed_but_wrong_values_are_not() {
    let with = |change: fn(&mut Counts)| {
        judge(&ramped(3, move |trial| {
            for operation in &mut stages(trial)[11].operations {
                change(&mut operation.counts);
            }
        }))
    };
    let failing = with(|counts| {
        for _ in 0..5_000 {
            counts.fail(ErrorClass::Timeout, "no answer");
        }
        counts.miss = 300;
    });
    assert_eq!(failing.validity, Validity::Valid, "{:?}", failing.reasons);
    let text = failing.footnotes.join("\n");
    assert!(text.contains("failed: 15000 timed out") && text.contains("found nothing"), "{text}");
    let wrong = with(|counts| counts.wrong = 1);
    assert_eq!(wrong.validity, Validity::Invalid);
    assert!(wrong.reasons[0].contains("wrong values"), "{:?}", wrong.reasons);
}

#[test]
fn stages_that_contradict_the_knee_are_reported() {
    fn stumble(trial: &mut Trial, which: &[usize]) {
        let which = if trial.block < 2 { which } else { &[] };
        for stage in which {
            let stage = &mut stages(trial)[*stage];
            stage.operations.last_mut().unwrap().rate_per_s *= 0.7;
        }
    }
    let clean = judge(&ramped(3, |_| {}));
    let once = judge(&ramped(3, |trial| stumble(trial, &[2])));
    assert_eq!(once.validity, Validity::Valid, "{:?}", once.reasons);
    let text = once.footnotes.join("\n");
    assert!(
        text.contains("`redis/open/64`: 2 stages in 2 of 3 blocks contradict the knee"),
        "{text}"
    );
    let knee = |view| found(view, "redis").metrics["knee_per_s"];
    assert_eq!(knee(&once), knee(&clean));
    let twice = judge(&ramped(3, |trial| stumble(trial, &[2, 4])));
    assert_eq!(twice.validity, Validity::NotSteady);
    assert!(twice.reasons[0].contains("4 stages in 2 of 3 blocks"), "{:?}", twice.reasons);
    assert_eq!(knee(&twice), knee(&clean));
    let never = judge(&ramped(3, |trial| {
        for stage in stages(trial) {
            stage.operations.last_mut().unwrap().rate_per_s *= 0.7;
        }
    }));
    assert_eq!(found(&never, "redis").outcome.name(), "never-held");
    assert_eq!(never.validity, Validity::Invalid);
    assert!(never.reasons[0].contains("lower the rates"), "{:?}", never.reasons);
}

#[test]
fn a_closed_ramp_has_its_knee_where_clients_slow_down() {
    let closed = |trial: &mut Trial| {
        for stage in stages(trial) {
            stage.clients = 20 * (stage.planned_per_s.unwrap() / 100.0) as u32;
            stage.planned_per_s = None;
        }
    };
    let view = judge(&ramped(3, closed));
    let redis = found(&view, "redis");
    assert_eq!((redis.times.as_str(), redis.outcome.name()), ("service", "found"));
    assert!(near(redis.metrics["knee_per_s"].center, REDIS.capacity * 1.01, 0.01));
    let shown = text::render(&view, 120, false);
    assert!(shown.contains("\nclients  answered/s") && !shown.contains("planned/s"), "{shown}");
}

fn verdicts(expect: Expectation, blocks: u32) -> (String, String) {
    let mut recorded = ramped(blocks, |_| ());
    recorded.header.plan.claims = vec![claim(expect)];
    let view = judge(&recorded);
    assert_eq!(view.claims.len(), 1);
    assert_eq!(view.claims[0].workload.as_deref(), Some("open"));
    assert!(!view.claims[0].expected.is_empty());
    (view.claims[0].verdict.to_string(), view.claims[0].note.clone())
}

fn ratio(of: Figure, min: f64) -> Ratio {
    let (a, b) = ("memcached".into(), "redis".into());
    Ratio { a, b, of, operation: None, clients: None, shares: Vec::new(), min, max: None }
}

/// A ratio of Redis to memcached at shares of the lower knee, from 0.8.
pub(super) fn at_shares(of: Figure, shares: &[f64], max: f64) -> Expectation {
    let (a, b) = ("redis".into(), "memcached".into());
    Expectation::Ratio(Ratio { a, b, shares: shares.to_vec(), max: Some(max), ..ratio(of, 0.8) })
}

fn capacity(min: f64, max: Option<f64>) -> Expectation {
    Expectation::Ratio(Ratio { max, ..ratio(Figure::Reached, min) })
}

#[test]
fn claims_of_capacity_are_judged() {
    assert_eq!(verdicts(capacity(1.07, Some(1.31)), 4).0, "confirmed");
    assert_eq!(verdicts(capacity(1.5, None), 4).0, "refuted");
    assert_eq!(verdicts(capacity(1.19, None), 4).0, "undecided");
    let (verdict, note) = verdicts(capacity(1.07, Some(1.31)), 2);
    assert_eq!((verdict.as_str(), note.contains("3 are needed")), ("undecided", true), "{note}");
}

#[test]
fn claims_of_times_and_costs_are_judged() {
    let (a, b) = (String::from("redis"), String::from("memcached"));
    let targets = vec![a.clone(), b.clone()];
    let diverges = |high, min| {
        Expectation::Diverges(Diverges {
            a: a.clone(),
            b: b.clone(),
            low: 0.15,
            high,
            min,
            operation: None,
        })
    };
    assert_eq!(verdicts(diverges(0.9, 1.25), 4).0, "confirmed");
    assert_eq!(verdicts(diverges(0.5, 1.25), 4).0, "refuted");
    let cpu = |max| at_shares(Figure::Cpu, &[0.25, 0.5, 0.75], max);
    assert_eq!(verdicts(cpu(1.25), 4).0, "confirmed");
    assert_eq!(verdicts(cpu(1.1), 4).0, "refuted");
    let steady = |cpu, within| {
        Expectation::Steady(Steady { targets: targets.clone(), cpu: Some(cpu), within })
    };
    assert_eq!(verdicts(steady(0.4, 2.0), 4).0, "confirmed");
    assert_eq!(verdicts(steady(0.99, 1.5), 4).0, "refuted");
    assert_eq!(verdicts(steady(0.15, 2.0), 4).0, "not run");
}

#[test]
fn advice_is_next_to_the_sources() {
    let pick = |target: &str, over: &str| {
        Expectation::Pick(Pick { target: target.into(), over: over.into(), share: 0.5 })
    };
    let (verdict, note) = verdicts(pick("memcached", "redis"), 4);
    assert_eq!(verdict, "confirmed");
    assert!(note.starts_with("memcached is preferable here too: memcached sustains 1.1"), "{note}");
    let (verdict, note) = verdicts(pick("redis", "memcached"), 4);
    assert_eq!(verdict, "refuted");
    assert!(note.starts_with("prefer memcached here"), "{note}");
    let (verdict, note) = verdicts(pick("valkey", "redis"), 4);
    assert_eq!((verdict.as_str(), note.as_str()), ("not run", "valkey was not measured"));
}

#[test]
fn a_claim_without_ramps_was_not_run() {
    let mut recorded = run(&["files"], 3, crate::fixture::usual);
    recorded.header.plan.claims = vec![claim(capacity(1.0, None))];
    let view = judge(&recorded);
    assert_eq!(view.claims[0].note, "no ramp was measured");
}

#[test]
fn every_output_has_the_ramp() {
    let view = judge(&ramped(3, |_| ()));
    insta::assert_snapshot!("ramp_text", text::render(&view, 100, false));
    insta::assert_snapshot!("ramp_markdown", markdown::render(&view));
    let table = csv::render(&view);
    let lines: Vec<&str> = table.lines().collect();
    let columns = lines[0].split(',').count();
    assert_eq!(lines.len(), 1 + 2 * 23 * 3);
    assert!(lines.iter().all(|line| line.split(',').count() == columns), "{table}");
    assert!(lines[0].contains(",stage,way,blocks_held,planned_per_s,"));
    assert!(lines.iter().any(|line| line.contains(",ramp.get,redis,") && line.contains(",down,")));
    let blocks = csv::render_blocks(&view);
    let lines: Vec<Vec<&str>> = blocks.lines().map(|line| line.split(',').collect()).collect();
    let of_ramps = view.ramps.iter().flat_map(|ramp| &ramp.charts.as_ref().unwrap().blocks);
    assert_eq!(lines.len(), 1 + of_ramps.map(|block| block.stages.len()).sum::<usize>());
    assert!(lines.iter().all(|line| line.len() == lines[0].len()), "{blocks}");
    let at = |name: &str| lines[0].iter().position(|column| *column == name).unwrap();
    let second = &view.ramps[0].charts.as_ref().unwrap().blocks[0].stages[1];
    let fields = &lines[2];
    assert_eq!((fields[at("stage_in_time")], fields[at("operation")]), ("2", "ramp"));
    assert_eq!(fields[at("clients")], second.clients.to_string());
    assert_eq!(fields[at("held")], second.holds.to_string());
    assert_eq!(fields[at("response_ns_p99")].parse(), Ok(second.ns_p99.unwrap()));
    let summary: serde_json::Value = serde_json::from_str(&json::render(&view)).unwrap();
    assert_eq!(summary["ramps"][0]["stages"][0]["way"], "up");
    assert!(summary["ramps"][0].get("charts").is_none());
}

#[test]
fn the_text_fits_its_terminal() {
    let view = judge(&ramped(3, |_| ()));
    for columns in [80, 100, 120] {
        let shown = text::render(&view, columns, false);
        let ramps = shown.split("Ramps\n").nth(1).unwrap();
        let wide: Vec<&str> = ramps.lines().filter(|l| l.chars().count() > columns).collect();
        assert!(wide.is_empty(), "{columns}: {wide:#?}");
    }
}

/// Samples of a trial of `seconds`, ten per second: a busy main thread and an idle one.
pub(super) fn sampled(cell: &str, block: u32, seconds: u64) -> ((u32, String), Vec<Sample>) {
    let sample = |i: u64| {
        let at_ns = i * 100_000_000;
        let thread = |id, name: &str, cpu_ns| ThreadCpu { id, name: name.into(), cpu_ns };
        let server = ProcessUse {
            cpu_ns: at_ns * 12 / 10,
            threads: vec![
                thread(11, "main", at_ns),
                thread(12, "io", at_ns / 5),
                thread(13, "idle", 0),
            ],
            resident_bytes: (50 << 20) + i * 1_000,
            voluntary_switches: 7 * i,
            ..ProcessUse::default()
        };
        let (cpu_ns, run_delay_ns) = (at_ns / 2, at_ns * 9);
        let generator = ProcessUse { cpu_ns, run_delay_ns, ..ProcessUse::default() };
        // One sample far above the others.
        let connections = Some(if i == 77 { 4_000 } else { 65 });
        let store = StoreCounters {
            used_bytes: Some(40 << 20),
            connections,
            expired: Some(if i < 200 { 0 } else { i * 10 }),
            evicted: Some(0),
            ..StoreCounters::default()
        };
        Sample { at_ns, server: Some(server), generator, store: Some(store), ..Sample::default() }
    };
    ((block, cell.into()), (0..=seconds * 10).map(sample).collect())
}

#[test]
fn reduced_samples_keep_every_peak() {
    let mut recorded = ramped(1, |_| ());
    recorded.samples = [sampled("redis/open/64", 0, 7_200)].into();
    let view = judge(&recorded);
    let charts = found(&view, "redis").charts.as_ref().unwrap();
    let saturation = charts.blocks[0].saturation.as_ref().unwrap();
    assert!(near(saturation.span_s, 24.0, 1e-9));
    let of = |panel: &str, name: &str| {
        saturation.series.iter().find(|s| s.panel == panel && s.name == name)
    };
    let main = of("cpu", "server thread main 11").unwrap();
    assert!(main.low.len() == 300 && main.low.iter().all(|v| near(v.unwrap(), 1.0, 1e-3)));
    assert!(of("cpu", "server thread idle 13").is_none(), "it was idle");
    assert!(near(of("cpu", "generator").unwrap().low[9].unwrap(), 0.5, 1e-3));
    let waiting = of("waiting", "generator").unwrap();
    assert!(near(waiting.low[9].unwrap(), 9.0, 1e-3), "separate from usage");
    let connections = of("connections", "open").unwrap();
    assert_eq!((connections.low[0], connections.high[0]), (Some(65.0), Some(4_000.0)));
    assert!(of("keys", "evicted").is_none(), "nothing was evicted");
    assert!(near(of("keys", "expired").unwrap().low[20].unwrap(), 100.0, 1e-3));
    assert!(of("memory", "used by the data").unwrap().high.is_empty(), "low is high");
    assert!(found(&view, "memcached").charts.as_ref().unwrap().blocks[0].saturation.is_none());
}

#[test]
fn slightly_late_samples_leave_no_gap() {
    let mut recorded = ramped(1, |_| ());
    let (trial, mut samples) = sampled("redis/open/64", 0, 27);
    for (i, sample) in samples.iter_mut().enumerate() {
        sample.at_ns += (i as u64 * 7 % 5) * 18_000_000;
    }
    recorded.samples = [(trial, samples)].into();
    let view = judge(&recorded);
    let charts = found(&view, "redis").charts.as_ref().unwrap();
    let saturation = charts.blocks[0].saturation.as_ref().unwrap();
    let resident = saturation.series.iter().find(|s| s.name == "resident").unwrap();
    assert_eq!(resident.low.len(), 135);
    assert!(resident.low.iter().all(Option::is_some), "{:?}", resident.low);
}

/// A run of two hours: four targets, 120 stages each, ten samples per second.
#[test]
fn the_page_of_a_long_run_stays_small() {
    let store = |capacity| Store { capacity, ..REDIS };
    let names = ["redis", "memcached", "redis-io", "memcached-one"];
    let stores: Vec<(&str, Store)> = names.map(|name| (name, store(90_000.0))).into();
    let shares: Vec<u32> = (1..=60).map(|i| i * 20).chain((1..60).rev().map(|i| i * 20)).collect();
    let mut recorded = of(&stores, 1, |trial| {
        truncate_stages(trial, 0);
        trial.points.extend(ramp(store(90_000.0), &shares));
    });
    recorded.samples =
        names.iter().map(|name| sampled(&format!("{name}/open/64"), 0, 1_800)).collect();
    let page = html::render(&judge(&recorded)).unwrap();
    assert!(page.len() < 3_000_000, "{} bytes", page.len());
    assert!(page.contains("server thread main 11"));
}
