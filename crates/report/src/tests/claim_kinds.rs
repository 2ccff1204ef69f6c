//! Kinds of claims about orders, several numbers of clients, scores and growth, and the conditions
//! of a claim.

use model::study::Claim;
use model::{PageCache, Workload};
use serde_json::{Value, json};

use super::growth::{BY_RECORDS, grown, usual as usual_cost};
use super::quick;
use super::ramp::ramped;
use crate::fixture::{self, advice, run, usual};
use crate::recorded::Recorded;
use crate::view::ClaimView;
use crate::{judge, markdown, text};

fn claim(expect: &Value, conditions: &Value) -> Claim {
    let claim = json!({
        "id": "x", "text": "a statement", "source": "a test",
        "conditions": conditions, "expect": expect,
    });
    serde_json::from_value(claim).unwrap()
}

fn all(mut recorded: Recorded, claims: Vec<Claim>) -> Vec<ClaimView> {
    recorded.header.plan.claims = claims;
    judge(&recorded).claims
}

/// Verdict and note of a claim on a run of sessions.
fn of_sessions(expect: &Value) -> (&'static str, String) {
    let mut recorded = run(&["files", "redis", "mysql"], 5, usual);
    recorded.header.plan.advice = Some(advice());
    let found = all(recorded, vec![claim(expect, &json!({}))]);
    assert_eq!(found.len(), 1);
    assert!(!found[0].expected.is_empty());
    (found[0].verdict.name(), found[0].note.clone())
}

#[test]
fn an_order_names_several_targets() {
    let order = |targets: &Value, clients: u32| {
        of_sessions(&json!({
            "kind": "order", "targets": targets, "operations": ["read", "change"],
            "clients": [clients],
        }))
    };
    assert_eq!(order(&json!(["redis", "files", "mysql"]), 8).0, "confirmed");
    let (verdict, note) = order(&json!(["files", "redis", "mysql"]), 8);
    assert_eq!(verdict, "refuted");
    assert!(note.contains("against redis, where files has 0.476×"), "{note}");
}

#[test]
fn the_highest_among_some_is_not_compared_with_others() {
    let highest = |among: &Value| {
        of_sessions(&json!({
            "kind": "highest", "target": "files", "operations": ["read"], "clients": [8],
            "among": among,
        }))
    };
    assert_eq!(highest(&json!([])).0, "refuted");
    assert_eq!(highest(&json!(["files", "mysql"])).0, "confirmed");
}

#[test]
fn rates_rise_with_clients_or_do_not() {
    let rises = |targets: &Value, min: f64| {
        of_sessions(&json!({
            "kind": "rises", "targets": targets, "operations": ["read"], "clients": [1, 8],
            "min": min,
        }))
    };
    assert_eq!(rises(&json!(["files", "redis"]), 1.5).0, "confirmed");
    let (verdict, note) = rises(&json!(["redis", "mysql"]), 1.5);
    assert_eq!(verdict, "refuted");
    assert!(note.contains("read on mysql from 1 to 8 clients"), "{note}");
    assert!(note.ends_with("where the rate changes by 1.00×"), "{note}");
}

#[test]
fn one_target_gains_on_another() {
    let gains = |a: &str, b: &str, min: f64| {
        of_sessions(&json!({
            "kind": "gains", "a": a, "b": b, "operations": ["read", "write"], "clients": [1, 8],
            "min": min,
        }))
    };
    assert_eq!(gains("redis", "files", 1.5).0, "confirmed");
    assert_eq!(gains("files", "redis", 1.03).0, "refuted");
    assert_eq!(gains("redis", "files", 3.0).0, "refuted");
}

#[test]
fn a_crossover_is_a_number_of_clients() {
    let crossover = |a: &str, b: &str, (min, max): (f64, f64)| {
        of_sessions(&json!({
            "kind": "crossover", "a": a, "b": b, "operations": ["read"], "clients": [1, 8],
            "min": min, "max": max,
        }))
    };
    // Redis is 1 % ahead with one client already.
    let (verdict, note) = crossover("redis", "files", (1.0, 8.0));
    assert_eq!(verdict, "undecided", "{note}");
    assert!(note.ends_with("; in 5 of 5 blocks redis is ahead from 1 on"), "{note}");
    let (verdict, note) = crossover("mysql", "redis", (1.0, 4.0));
    assert_eq!(verdict, "refuted", "{note}");
    assert!(note.ends_with("; in 5 of 5 blocks redis is still ahead at 8"), "{note}");

    let crossing = |target: &str, operation: &str, clients: u32| match (target, clients) {
        ("redis", 1) => 0.5 * usual("files", operation, 1),
        _ => usual(target, operation, clients),
    };
    let expect = json!({
        "kind": "crossover", "a": "redis", "b": "files", "operations": ["read"],
        "clients": [1, 8], "min": 2, "max": 5,
    });
    let mut recorded = run(&["files", "redis"], 5, crossing);
    recorded.header.plan.claims = vec![claim(&expect, &json!({}))];
    let view = judge(&recorded);
    let found = &view.claims[0];
    assert_eq!((found.verdict.name(), found.unit.name()), ("confirmed", "clients"), "{found:?}");
    let shown = found.shown.as_deref().unwrap();
    assert!(shown.starts_with("2.7 clients [") || shown.starts_with("2.6 clients ["), "{shown}");
    assert!(text::render(&view, 200, false).contains(shown));
    assert!(markdown::render(&view).contains(shown));
}

#[test]
fn scores_of_the_advice_are_compared() {
    let score = |a: &str, b: &str, clients: u32, min: f64| {
        of_sessions(&json!({
            "kind": "ratio", "of": "score", "a": a, "b": b, "clients": clients, "min": min,
        }))
    };
    assert_eq!(score("redis", "files", 8, 1.5).0, "confirmed");
    assert_eq!(score("files", "redis", 8, 1.0).0, "refuted");
    let (verdict, note) = score("redis", "files", 4, 1.0);
    assert_eq!(verdict, "not run");
    assert!(note.contains("no block with all weighted operations with 4 clients"), "{note}");
}

#[test]
fn the_widest_difference_may_be_between_two_targets() {
    let rates = |target: &str, operation: &str, clients: u32| {
        usual(target, operation, clients)
            * match (target, operation) {
                ("redis", "change") => 1.5,
                ("mysql", "read") => 0.2,
                _ => 1.0,
            }
    };
    let widest = |among: &Value| {
        let expect = json!({
            "kind": "widest", "operation": "change", "than": ["read", "write"], "clients": 8,
            "among": among,
        });
        let recorded = run(&["files", "redis", "mysql"], 5, rates);
        all(recorded, vec![claim(&expect, &json!({}))]).remove(0)
    };
    assert_eq!(widest(&json!(["redis", "files"])).verdict.name(), "confirmed");
    let found = widest(&json!([]));
    assert_eq!(found.verdict.name(), "refuted", "reads on mysql differ most: {}", found.note);
}

#[test]
fn growth_is_an_exponent() {
    let growth = |target: &str, (min, max): (f64, f64)| {
        let expect = json!({
            "kind": "growth", "target": target, "operation": "clean", "clients": 4, "min": min,
            "max": max,
        });
        let found = all(grown(&BY_RECORDS, 5, usual_cost), vec![claim(&expect, &json!({}))]);
        assert_eq!(found.len(), 1, "once for all sizes");
        found.into_iter().next().unwrap()
    };
    let files = growth("files", (0.8, 1.2));
    assert_eq!((files.verdict.name(), files.unit.name()), ("confirmed", "exponent"));
    assert!(files.shown.unwrap().starts_with("1.0"));
    assert_eq!(growth("files", (-0.2, 0.2)).verdict.name(), "refuted");
    assert_eq!(growth("redis", (-0.2, 0.2)).verdict.name(), "confirmed");
    assert_eq!(growth("mysql", (0.0, 1.0)).verdict.name(), "not run");
}

#[test]
fn a_ceiling_is_a_time() {
    let ceiling = |target: &str, (min_ms, max_ms): (f64, f64)| {
        let expect = json!({
            "kind": "ceiling", "target": target, "operation": "set", "min_ms": min_ms,
            "max_ms": max_ms,
        });
        all(ramped(4, |_| ()), vec![claim(&expect, &json!({}))]).remove(0)
    };
    let found = ceiling("redis", (1e-6, 1e6));
    assert_eq!((found.verdict.name(), found.unit.name()), ("confirmed", "ns"), "{}", found.note);
    assert_eq!(ceiling("redis", (1e5, 1e6)).verdict.name(), "refuted");
    assert_eq!(ceiling("valkey", (1.0, 2.0)).verdict.name(), "not run");
}

#[test]
fn conditions_that_a_profile_does_not_meet_are_named() {
    let unmet = |conditions: &Value| {
        let expect = json!({
            "kind": "ratio", "a": "files", "b": "redis", "operation": "read", "clients": 8,
            "min": 0.0,
        });
        let mut recorded = super::cache::caches(3, super::cache::rates);
        for cell in &mut recorded.header.plan.cells {
            let Workload::AppCache(cache) = &mut cell.workload else { panic!("no cache") };
            cache.page_cache = PageCache::Cold;
        }
        let found = all(recorded, vec![claim(&expect, conditions)]).remove(0);
        (found.verdict.name() == "not run").then_some(found.note)
    };
    assert_eq!(unmet(&json!({ "records": [1, 10_000], "page_cache": "cold" })), None);
    assert_eq!(unmet(&json!({ "memory_limit": false })), None);
    let note = unmet(&json!({ "records": [100_000, 1_000_000] })).unwrap();
    assert_eq!(note, "it is about 100,000 to 1,000,000 records; `steady` has 10,000");
    let note = unmet(&json!({ "page_cache": "warm" })).unwrap();
    assert_eq!(note, "it is about files that are in memory; `steady` reads them from disk");
    let note = unmet(&json!({ "memory_limit": true })).unwrap();
    assert!(note.starts_with("it is about limited memory: "), "{note}");
}

#[test]
fn a_load_shorter_than_some_lifetimes_is_not_judged() {
    let expect = json!({
        "kind": "ratio", "of": "knee", "a": "redis", "b": "memcached", "min": 0.0,
    });
    let found = all(ramped(4, |_| ()), vec![claim(&expect, &json!({ "lifetimes": 1e3 }))]);
    assert_eq!(found[0].verdict.name(), "not run");
    assert!(
        found[0].note.starts_with("it needs a load of 1000 lifetimes of "),
        "{}",
        found[0].note
    );
}

#[test]
fn an_operation_is_compared_between_two_profiles() {
    let rates = |_: &str, _: &str, _: u32| 1e5;
    let mut recorded =
        fixture::recorded(quick::plan(quick::SIZING, "printed-throughput,throughput"), 4, rates);
    let printed: Vec<String> = (recorded.header.plan.cells.iter())
        .filter(|cell| cell.workload.profile() == "printed-throughput")
        .map(|cell| cell.id.clone())
        .collect();
    for trial in recorded.trials.iter_mut().filter(|trial| printed.contains(&trial.cell)) {
        for operation in trial.points.iter_mut().flat_map(|point| &mut point.operations) {
            operation.rate_per_s *= 3.0;
        }
    }
    let of = |than: &str, min: f64| {
        let expect = json!({
            "kind": "profiles", "targets": ["redis", "redis-tls"], "operation": "get",
            "than": than, "clients": 50, "min": min,
        });
        let claim =
            Claim { profiles: vec!["printed-throughput".into()], ..claim(&expect, &json!({})) };
        let mut found = all(recorded.clone(), vec![claim]);
        assert_eq!(found.len(), 1);
        found.remove(0)
    };
    let found = of("throughput", 1.0);
    assert_eq!(found.verdict.name(), "confirmed", "{found:?}");
    assert!((found.measured.unwrap().center - 3.0).abs() < 0.1, "{found:?}");
    assert_eq!(
        found.expected,
        "get / that of profile throughput at least 1.00× on redis and redis-tls (50 clients)"
    );
    assert_eq!(of("throughput", 5.0).verdict.name(), "refuted");
    let missing = of("tls", 1.0);
    assert_eq!(missing.verdict.name(), "not run", "{missing:?}");
    assert_eq!(missing.note, "profile tls: get with 50 clients on redis was not measured");
}
