//! Results of a single target, without comparisons.

use model::{ErrorClass, Fact};

use super::validity::{as_kv, kv_run, open};
use crate::fixture::{change, run, usual};
use crate::standings::standings;
use crate::view::{Sentence, View};
use crate::{json, judge, markdown, text};

/// Text of each profile and load after its name.
fn sentences(view: &View) -> Vec<String> {
    let found = view.answer.summary.iter().map(Sentence::text);
    found.filter_map(|found| Some(found.split_once(": ")?.1.to_string())).collect()
}

#[test]
fn a_single_target_has_rates_times_and_blocks_at_each_load() {
    let view = judge(&run(&["redis"], 5, usual));
    let found = sentences(&view);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(
        found[0].starts_with("redis reached 8.10 k/s [7.93, 8.19] at write (p99 "),
        "{found:?}"
    );
    assert!(found[0].contains(") and "), "{found:?}");
    assert!(found[0].ends_with(" over 5 blocks; no operation failed"), "{found:?}");
}

#[test]
fn every_output_for_people_starts_with_the_same_sentence() {
    let view = judge(&run(&["redis"], 5, usual));
    let sentence = &sentences(&view)[1];
    let expected = format!("steady, 8 clients: {sentence}");
    let text = text::render(&view, 1_000, false).replace('\n', " ");
    let start: String = expected.chars().take(100).collect();
    assert!(text.find(&start).unwrap() < text.find("standard scale").unwrap(), "{text}");
    let document = markdown::render(&view);
    let marked = expected.replace('[', "\\[").replace(']', "\\]");
    assert!(document.find(&marked).unwrap() < document.find("\n## ").unwrap(), "{document}");
    assert!(json::render(&view).contains(sentence.strip_prefix("redis").unwrap()));
}

#[test]
fn a_single_target_is_not_compared_with_the_best() {
    let view = judge(&run(&["redis"], 5, usual));
    let tables = standings(&view);
    assert!(tables.iter().all(|table| !table.compares()));
    for shown in [text::render(&view, 140, false), markdown::render(&view)] {
        for absent in ["against the best", "alone", "best of its operation", "the last words"] {
            assert!(!shown.contains(absent), "{absent} in {shown}");
        }
    }
}

#[test]
fn a_target_is_compared_with_others_but_not_with_its_own_control() {
    for targets in [["redis", "files"], ["redis", "redis-again"]] {
        let view = judge(&run(&targets, 5, usual));
        let has_results = sentences(&view).iter().any(|found| found.starts_with("redis reached"));
        assert_eq!(has_results, targets[1] != "files");
    }
    let mut recorded = run(&["redis", "files"], 5, usual);
    recorded.trials.retain(|trial| trial.cell != "files/steady/8");
    let found = sentences(&judge(&recorded));
    assert!(!found[0].starts_with("redis reached"), "{found:?}");
    assert!(found[1].starts_with("redis reached"), "{found:?}");
}

#[test]
fn one_block_has_a_rate_and_no_interval() {
    let view = judge(&run(&["redis"], 1, usual));
    let found = &sentences(&view)[0];
    assert!(found.starts_with("redis reached 8.08 k/s at write (p99 "), "{found}");
    assert!(found.contains(" in one block, too few for an interval"), "{found}");
}

#[test]
fn failures_have_their_class() {
    let mut recorded = run(&["redis"], 5, usual);
    change(&mut recorded, "redis", "write", |point, i| {
        let counts = &mut point.operations[i].counts;
        counts.fail(ErrorClass::Timeout, "no answer");
        counts.wrong = 2;
    });
    let view = judge(&recorded);
    let found = &sentences(&view)[0];
    assert!(
        found.contains("; 5 of 30,015 operations failed (5 timed out), wrong values: 10"),
        "{found}"
    );
}

#[test]
fn a_planned_rate_is_next_to_the_answered_one_with_the_studys_facts() {
    let mut recorded = kv_run();
    as_kv(&mut recorded, &open(), 1.0);
    for trial in &mut recorded.trials {
        let fact =
            |name: &str, value: f64| Fact { name: name.into(), value, source: "clients".into() };
        trial.facts = vec![fact("get.unavailable_ns", 2.25e9), fact("fill_ns", 1e9)];
    }
    let view = judge(&recorded);
    let found = sentences(&view);
    assert!(found[0].contains("/s requested"), "{found:?}");
    assert!(found[0].starts_with("redis: get unavailable: 2.25 s; "), "{found:?}");
}
