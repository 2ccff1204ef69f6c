//! Effect of an operation's position in a pair, separated from the operation, on simulated
//! stores.

use model::study::claims::{Figure, Slower};
use model::study::{Claim, Expectation};
use model::{Control, ErrorClass, OperationResult, Phase, Stop, Trial, Workload};

use super::ramp::{claim, found, operation, point, ramped, series};
use crate::recorded::Recorded;
use crate::view::{ClaimView, PlaceView, View};
use crate::{html, json, judge, markdown, text};

const PAIR: &str = "pair";
const SWAPPED: &str = "swapped";
const APART: &str = "apart";

/// A store: the latency ratio of first to second in a pair, and the latency ratio of sets to
/// gets, in pairs and with independent arrivals.
#[derive(Clone, Copy)]
struct Times {
    place: f64,
    in_pairs: f64,
    apart: f64,
}

fn controls() -> [(&'static str, Vec<&'static str>); 3] {
    [(PAIR, vec!["set", "get"]), (SWAPPED, vec!["get", "set"]), (APART, Vec::new())]
}

/// Ramps whose sets take longer than their gets, with control phases for the effect of position.
fn controlled(blocks: u32, times: Times, with: impl Fn(&mut Trial)) -> Recorded {
    let mut recorded = ramped(blocks, |trial| {
        // Blocks differ slightly, in both directions.
        let noise = if trial.block % 2 == 0 { 1.01 } else { 0.99 };
        let points: Vec<_> = controls()
            .into_iter()
            .map(|(name, sequence)| {
                let time = |operation: &str| {
                    let by_get = if sequence.is_empty() { times.apart } else { times.in_pairs };
                    let own = if operation == "set" { by_get * noise } else { 1.0 };
                    let place = if sequence.first() == Some(&operation) {
                        times.place * noise
                    } else {
                        1.0
                    };
                    50e3 * own * place
                };
                let of = |name: &str, mean: f64, rate| operation(name, mean, (rate, rate));
                let all: Vec<OperationResult> = vec![
                    of("set", time("set"), 12_000.0),
                    of("get", time("get"), 12_000.0),
                    of(name, 60e3, 24_000.0),
                ];
                trial.series.push(series(name));
                point(name, all)
            })
            .collect();
        trial.points.splice(1..1, points);
        with(trial);
    });
    for cell in &mut recorded.header.plan.cells {
        let Workload::Kv(kv) = &mut cell.workload else { panic!("keys and values") };
        let points = controls().map(|(name, sequence)| {
            let sequence = sequence.into_iter().map(String::from).collect();
            Phase {
                name: name.into(),
                stop: Stop::AfterNs(1_000_000_000),
                control: Some(Control { sequence, permille: 250, keys: 1_000 }),
                ..kv.phases[0].clone()
            }
        });
        kv.phases.splice(1..1, points);
    }
    recorded.header.plan.claims = vec![slower(1.5, Some(2.67))];
    recorded
}

fn slower(min: f64, max: Option<f64>) -> Claim {
    claim(Expectation::Slower(Slower {
        operation: "set".into(),
        than: "get".into(),
        of: Figure::P99,
        targets: vec!["redis".into(), "memcached".into()],
        shares: vec![0.25, 0.75],
        min,
        max,
    }))
}

fn judged(times: Times) -> View {
    judge(&controlled(4, times, |_| ()))
}

fn verdict(view: &View) -> &ClaimView {
    assert_eq!(view.claims.len(), 1);
    &view.claims[0]
}

fn place<'a>(view: &'a View, target: &str) -> &'a PlaceView {
    found(view, target).place.as_ref().unwrap()
}

fn near(value: f64, expected: f64) -> bool {
    (value / expected - 1.0).abs() < 0.02
}

#[test]
fn a_set_that_is_only_slower_because_it_comes_first_is_refuted() {
    let view = judged(Times { place: 5.0, in_pairs: 1.0, apart: 1.0 });
    let claim = verdict(&view);
    assert_eq!(claim.verdict.name(), "refuted", "{}", claim.note);
    // The ramp's own pairs contradict this for redis, but do not decide.
    assert!(claim.note.contains("in the ramp's pairs, whose order is always the same"));
    let found = place(&view, "redis");
    let ratio = |name: &str| found.metrics[name].center;
    assert!(near(ratio("first_by_second.ns_p99"), 5.0), "{:?}", found.metrics);
    assert!(near(ratio("set_by_get.apart.ns_p99"), 1.0));
    assert!(near(ratio("set_by_get.both_orders.ns_p99"), 1.0));
    assert!(near(ratio("get.first.ns_p50") / ratio("get.second.ns_p50"), 5.0));
    assert!(found.sentence.contains("the first of a pair takes 5.00×"), "{}", found.sentence);
    assert!(found.sentence.contains("for either operation"), "{}", found.sentence);
    // A claim of any difference is not confirmed either.
    let mut recorded = controlled(4, Times { place: 5.0, in_pairs: 1.0, apart: 1.0 }, |_| ());
    recorded.header.plan.claims = vec![slower(1.0, None)];
    assert_ne!(verdict(&judge(&recorded)).verdict.name(), "confirmed");
}

#[test]
fn a_set_that_takes_twice_as_long_is_confirmed_at_any_position() {
    let view = judged(Times { place: 1.0, in_pairs: 2.0, apart: 2.0 });
    assert_eq!(verdict(&view).verdict.name(), "confirmed", "{}", verdict(&view).note);
    assert!(near(verdict(&view).measured.unwrap().center, 2.0));
    let sentence = &place(&view, "memcached").sentence;
    assert!(sentence.contains("so the position has no significant effect"), "{sentence}");
    let view = judged(Times { place: 3.0, in_pairs: 2.0, apart: 2.0 });
    assert_eq!(verdict(&view).verdict.name(), "confirmed", "{}", verdict(&view).note);
    let view = judged(Times { place: 0.5, in_pairs: 2.0, apart: 2.0 });
    assert_eq!(verdict(&view).verdict.name(), "confirmed", "{}", verdict(&view).note);
    assert!(near(place(&view, "redis").metrics["first_by_second.ns_p99"].center, 0.5));
}

#[test]
fn disagreeing_controls_are_inconclusive() {
    for (in_pairs, apart) in [(2.0, 1.0), (1.0, 2.0)] {
        let view = judged(Times { place: 2.0, in_pairs, apart });
        assert_eq!(verdict(&view).verdict.name(), "undecided", "{}", verdict(&view).note);
    }
}

#[test]
fn without_controls_a_claim_is_undecided() {
    let mut recorded = ramped(4, |_| ());
    recorded.header.plan.claims = vec![slower(1.0, None)];
    let view = judge(&recorded);
    assert_eq!(verdict(&view).verdict.name(), "undecided");
    assert!(verdict(&view).note.starts_with("no control phases"));
    assert!(found(&view, "redis").place.is_none());
    assert!(!text::render(&view, 100, false).contains("Position in a pair"));
    // An older record has a claim without a range.
    let stored = serde_json::to_value(slower(1.0, None)).unwrap();
    let mut before = stored.clone();
    let expect = before["expect"].as_object_mut().unwrap();
    expect.remove("min").unwrap();
    expect.remove("of").unwrap();
    assert_eq!(serde_json::from_value::<Claim>(before).unwrap(), slower(1.0, None));
}

#[test]
fn controls_with_misses_or_failures_are_inconclusive() {
    let times = Times { place: 1.0, in_pairs: 2.0, apart: 2.0 };
    let spoil = |with: fn(&mut OperationResult)| {
        judge(&controlled(4, times, |trial| {
            let phase = trial.points.iter_mut().find(|p| p.phase == APART).unwrap();
            with(phase.operations.last_mut().unwrap());
        }))
    };
    let missed = spoil(|whole| whole.counts.miss += 3_000);
    assert_eq!(verdict(&missed).verdict.name(), "undecided");
    assert!(verdict(&missed).note.contains("found nothing"), "{}", verdict(&missed).note);
    let failed = spoil(|whole| {
        for _ in 0..3_000 {
            whole.counts.fail(ErrorClass::Timeout, "no answer");
        }
    });
    assert_eq!(verdict(&failed).verdict.name(), "undecided");
    assert!(place(&failed, "redis").doubt.as_ref().unwrap().contains("failed (12000 timed out"));
    let few = judge(&controlled(2, times, |_| ()));
    assert_eq!(verdict(&few).verdict.name(), "undecided");
    assert!(place(&few, "redis").doubt.is_some());
}

#[test]
fn every_output_shows_the_effect_of_the_position() {
    let view = judged(Times { place: 5.0, in_pairs: 1.0, apart: 1.0 });
    let sentence = &place(&view, "redis").sentence;
    let shown = text::render(&view, 100, false);
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words(&shown).contains(&words(sentence)), "{shown}");
    for columns in [80, 100, 120] {
        let shown = text::render(&view, columns, false);
        let table = shown.split("Position in a pair").nth(1).unwrap();
        assert!(table.lines().take(9).all(|l| l.chars().count() <= columns), "{table}");
    }
    let plain = markdown::render(&view);
    assert!(plain.contains("| target | operation | p50 first | second | independent |"), "{plain}");
    assert!(plain.contains("the first of a pair takes"));
    let summary: serde_json::Value = serde_json::from_str(&json::render(&view)).unwrap();
    let found = &summary["ramps"][0]["place"];
    assert!(near(found["metrics"]["first_by_second.ns_p99"]["center"].as_f64().unwrap(), 5.0));
    assert_eq!(found["sentence"], **sentence);
    assert!(html::render(&view).unwrap().contains("the first of a pair takes"));
}
