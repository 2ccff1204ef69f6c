//! Scores by the study's weights and by others, which the page must reproduce.

use model::study::ShopSize;
use serde_json::json;
use stats::Verdict;
use std::collections::BTreeMap;

use crate::fixture::{Rates, advice, run, usual};
use crate::ranking::{rank_all, scores};
use crate::recorded::Recorded;
use crate::view::{RankingView, TargetRates, View};
use crate::{json, judge, markdown, text};

/// Each store is the best at something.
fn rates(target: &str, operation: &str, clients: u32) -> f64 {
    let rate = match (target, operation) {
        ("files", "read") => 41_000.0,
        ("files", _) => 9_000.0,
        ("redis", "read") => 24_000.0,
        ("redis", "change") => 19_500.0,
        ("redis", _) => 15_000.0,
        ("memcached", "read") => 23_700.0,
        ("memcached", "change") => 19_900.0,
        ("memcached", _) => 17_000.0,
        _ => 6_000.0,
    };
    rate * f64::from(clients).sqrt()
}

const ALL: [&str; 4] = ["files", "redis", "memcached", "mysql"];

/// Blocks that differ by operation and target, two of them skewed; one Redis block is missing,
/// and no write of `MySQL` was measured.
fn uneven(blocks: u32, rates: Rates) -> Recorded {
    let mut recorded = run(&ALL, blocks, rates);
    recorded.header.plan.advice = Some(advice());
    recorded.trials.retain(|t| t.block != 2 || !t.cell.starts_with("redis"));
    for trial in &mut recorded.trials {
        let is_mysql = trial.cell.starts_with("mysql");
        trial.points.retain(|p| !is_mysql || p.phase != "write");
        for (i, phase) in trial.points.iter_mut().enumerate() {
            let at = f64::from(trial.block * 7 + trial.position * 3) + i as f64;
            let skew = if trial.block % 4 == 1 && i == 1 { 0.81 } else { 1.0 };
            let rate = &mut phase.operations[0].rate_per_s;
            *rate = (*rate * skew * (1.0 + 0.03 * at.sin())).round();
        }
    }
    recorded
}

fn ten_digits(value: f64) -> f64 {
    format!("{value:.9e}").parse().unwrap()
}

/// The order by some weights, as the page shows it.
fn order(weights: &BTreeMap<String, f64>, rates: &[TargetRates]) -> serde_json::Value {
    let ranking = rank_all(0.03, &[&scores(weights, rates)]).remove(0);
    let of_best = |v: crate::view::Value| {
        let turned = |v: Option<f64>| v.map(|v| ten_digits(1.0 / v));
        json!({ "center": turned(Some(v.center)), "lo": turned(v.hi), "hi": turned(v.lo) })
    };
    let place = |r: &crate::ranking::Ranked| json!({ "target": r.target, "ratio": r.behind.map(|b| of_best(b.ratio)) });
    ranking.iter().map(place).collect()
}

/// The page's test reads this snapshot and must compute the same figures from the same rates.
#[test]
fn scores_by_any_weights_match_the_page() {
    let mut cases = Vec::new();
    for blocks in [1, 2, 7, 12] {
        let view = judge(&uneven(blocks, rates));
        let [_, large] = &view.advised.rankings[..] else {
            panic!("two sizes: {:?}", view.advised.rankings)
        };
        let by = |weights: [f64; 3]| {
            let names = ["change", "read", "write"].map(String::from);
            let weights: BTreeMap<_, _> = names.into_iter().zip(weights).collect();
            json!({ "weights": weights, "order": order(&weights, &large.rates) })
        };
        let study = &view.advised.advice_weights;
        let mut orders = vec![json!({ "weights": study, "order": order(study, &large.rates) })];
        let others = [[9.0, 1.0, 3.0], [1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.0, 7.25, 0.001]];
        orders.extend(others.map(by));
        cases.push(json!({ "blocks": blocks, "rates": large.rates, "orders": orders }));
    }
    insta::assert_snapshot!(serde_json::to_string_pretty(&cases).unwrap());
}

fn large(recorded: &Recorded) -> RankingView {
    judge(recorded).advised.rankings.into_iter().find(|r| r.clients == 8).unwrap()
}

#[test]
fn a_ranking_has_every_target_with_all_operations_best_first() {
    let found = large(&uneven(7, rates));
    let names: Vec<&str> = found.targets.iter().map(|r| r.target.as_str()).collect();
    // Weighted 0.6 for reads, 0.3 for changes; of MySQL no write is known.
    assert_eq!(names, ["files", "memcached", "redis"]);
    assert_eq!((&found.sizes[..], &*found.workload), (&["medium to large".into()][..], "steady"));
    assert!(found.targets[0].ratio.is_none() && found.targets[0].verdict.is_none());
    for other in &found.targets[1..] {
        let ratio = other.ratio.unwrap();
        assert!(ratio.lo.unwrap() < ratio.center && ratio.center < ratio.hi.unwrap());
        assert!(ratio.center < 1.0, "{ratio:?}");
    }
    let rates: Vec<&str> = found.rates.iter().map(|r| r.target.as_str()).collect();
    assert_eq!(rates, ALL, "the page may be asked without writes");
    assert_eq!(
        found.rates[1].by_operation["read"].keys().copied().collect::<Vec<_>>(),
        [0, 1, 3, 4, 5, 6]
    );
}

#[test]
fn an_order_of_two_blocks_is_undecided() {
    let mut recorded = run(&ALL, 2, rates);
    recorded.header.plan.advice = Some(advice());
    let view = judge(&recorded);
    for ranking in &view.advised.rankings {
        assert_eq!(ranking.doubt.as_deref(), Some("2 blocks; 3 are needed"));
        assert!(ranking.targets[1..].iter().all(|r| r.verdict == Some(Verdict::Undecided)));
    }
    for output in [text::render(&view, 140, false), markdown::render(&view)] {
        let lines: Vec<&str> =
            output.lines().filter(|l| l.contains("medium to large (8): ")).collect();
        let [line] = lines[..] else { panic!("{lines:?}") };
        assert!(line.contains("(8): not decided (2 blocks; 3 are needed): files, "), "{line}");
        assert!(!line.contains("undecided"), "{line}");
    }
    let clear: Rates = |target, _, _| if target == "files" { 40_000.0 } else { 400.0 };
    let mut recorded = run(&["files", "redis"], 3, clear);
    recorded.header.plan.advice = Some(advice());
    let view = judge(&recorded);
    assert!(view.advised.rankings.iter().all(|r| r.doubt.is_none()));
    let shown = text::render(&view, 140, false);
    assert!(shown.contains("order, medium to large (8): files, redis 0.0"), "{shown}");
}

#[test]
fn sizes_of_one_load_share_a_ranking() {
    let mut recorded = uneven(5, rates);
    let sizes = &mut recorded.header.plan.advice.as_mut().unwrap().sizes;
    sizes.insert("small".into(), ShopSize::Clients(8));
    let view = judge(&recorded);
    let [only] = &view.advised.rankings[..] else { panic!("{:?}", view.advised.rankings) };
    assert_eq!(only.sizes, ["medium to large", "small"]);
}

#[test]
fn the_order_is_below_the_advice_and_its_rates_only_on_the_page() {
    let mut recorded = uneven(7, rates);
    let shown = text::render(&judge(&recorded), 140, false);
    let line = shown.lines().find(|l| l.starts_with("  order, medium to large (8): ")).unwrap();
    assert!(line.contains("): no clear best: files, memcached 0.970× ["), "{line}");
    assert!(line.contains("] (undecided), redis 0.959× [") && line.ends_with(']'), "{line}");
    let summary: serde_json::Value =
        serde_json::from_str(&json::render(&judge(&recorded))).unwrap();
    let ranking = &summary["rankings"][1];
    assert_eq!(ranking["targets"][1]["target"], "memcached");
    assert_eq!(ranking["targets"][1]["verdict"], "undecided");
    assert_eq!(ranking["targets"][2]["verdict"], "slower");
    assert!(ranking["targets"][1]["ratio"]["hi"].is_f64());
    assert!(ranking.get("rates").is_none());
    assert_eq!(summary["advice_weights"]["read"], 0.6);

    recorded.header.plan.advice = None;
    let view = judge(&recorded);
    assert!(view.advised.rankings.is_empty() && view.advised.advice_weights.is_empty());
    assert!(!text::render(&view, 140, false).contains("order, "));
}

/// Two targets whose rates without the clients' own work differ by 6 %; that work takes this share
/// of the faster one's wall time, and 2 % of the other's.
fn with_own_share(own_share: f64) -> View {
    let rates = |target: &str, operation: &str, clients: u32| {
        let rate = usual("files", operation, clients);
        if target == "redis" { rate * 1.06 } else { rate }
    };
    let mut recorded = run(&["files", "redis"], 6, rates);
    recorded.header.plan.advice = Some(advice());
    for trial in recorded.trials.iter_mut().filter(|t| t.cell.starts_with("redis")) {
        trial.points.iter_mut().for_each(|phase| phase.own_share = own_share);
    }
    judge(&recorded)
}

#[test]
fn a_verdict_must_also_hold_by_wall_time() {
    let read = |view: &View| {
        let read = view.comparisons.iter().find(|c| c.operation == "read").unwrap();
        (read.verdict, read.doubt.clone().unwrap_or_default())
    };
    let ranked = |view: &View| view.advised.rankings[0].targets[1].verdict.unwrap();
    let alike = with_own_share(0.02);
    assert_eq!((read(&alike), ranked(&alike)), ((Verdict::Slower, String::new()), Verdict::Slower));
    let apart = with_own_share(0.095);
    let (verdict, doubt) = read(&apart);
    assert_eq!([verdict, ranked(&apart)], [Verdict::Undecided; 2]);
    assert!(
        doubt.contains("a difference without the clients' own work between calls, "),
        "{doubt}"
    );
}
