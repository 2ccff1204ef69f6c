//! What one target came to, where there is nothing to compare it with.

use model::{ErrorClass, Fact};

use super::validity::{as_kv, kv_run, open};
use crate::fixture::{change, run, usual};
use crate::standings::standings;
use crate::view::{Sentence, View};
use crate::{json, judge, markdown, text};

/// What is said of each profile and load, behind the name of these.
fn sentences(view: &View) -> Vec<String> {
    let said = view.answer.summary.iter().map(Sentence::text);
    said.filter_map(|said| Some(said.split_once(": ")?.1.to_string())).collect()
}

#[test]
fn the_only_target_is_told_with_rates_times_and_blocks_at_each_load() {
    let view = judge(&run(&["redis"], 5, usual));
    let said = sentences(&view);
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(said[0].starts_with("redis reached 8.10 k/s [7.93, 8.19] at write (p99 "), "{said:?}");
    assert!(said[0].contains(") and "), "{said:?}");
    assert!(said[0].ends_with(" over 5 blocks; no operation failed"), "{said:?}");
}

#[test]
fn every_output_for_people_begins_with_the_same_sentence() {
    let view = judge(&run(&["redis"], 5, usual));
    let sentence = &sentences(&view)[1];
    let told = format!("steady, 8 clients: {sentence}");
    let text = text::render(&view, 1_000, false).replace('\n', " ");
    let start: String = told.chars().take(100).collect();
    assert!(text.find(&start).unwrap() < text.find("standard scale").unwrap(), "{text}");
    let document = markdown::render(&view);
    let marked = told.replace('[', "\\[").replace(']', "\\]");
    assert!(document.find(&marked).unwrap() < document.find("\n## ").unwrap(), "{document}");
    assert!(json::render(&view).contains(sentence.strip_prefix("redis").unwrap()));
}

#[test]
fn nothing_is_said_against_the_best_where_there_is_no_other() {
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
fn a_target_next_to_others_is_compared_one_next_to_its_own_control_is_told() {
    for targets in [["redis", "files"], ["redis", "redis-again"]] {
        let view = judge(&run(&targets, 5, usual));
        let is_told = sentences(&view).iter().any(|said| said.starts_with("redis reached"));
        assert_eq!(is_told, targets[1] != "files");
    }
    let mut recorded = run(&["redis", "files"], 5, usual);
    recorded.trials.retain(|trial| trial.cell != "files/steady/8");
    let said = sentences(&judge(&recorded));
    assert!(!said[0].starts_with("redis reached"), "{said:?}");
    assert!(said[1].starts_with("redis reached"), "{said:?}");
}

#[test]
fn one_block_has_a_rate_and_no_interval() {
    let view = judge(&run(&["redis"], 1, usual));
    let said = &sentences(&view)[0];
    assert!(said.starts_with("redis reached 8.08 k/s at write (p99 "), "{said}");
    assert!(said.contains(" in one block, too few for an interval"), "{said}");
}

#[test]
fn failures_are_told_with_their_class() {
    let mut recorded = run(&["redis"], 5, usual);
    change(&mut recorded, "redis", "write", |point, i| {
        let counts = &mut point.operations[i].counts;
        counts.fail(ErrorClass::Timeout, "no answer");
        counts.wrong = 2;
    });
    let view = judge(&recorded);
    let said = &sentences(&view)[0];
    assert!(
        said.contains("; 5 of 30,015 operations failed (5 timed out), wrong values: 10"),
        "{said}"
    );
}

#[test]
fn a_planned_rate_stands_beside_what_was_answered_with_what_the_study_asks_for() {
    let mut recorded = kv_run();
    as_kv(&mut recorded, &open(), 1.0);
    for trial in &mut recorded.trials {
        let fact =
            |name: &str, value: f64| Fact { name: name.into(), value, source: "clients".into() };
        trial.facts = vec![fact("get.unavailable_ns", 2.25e9), fact("fill_ns", 1e9)];
    }
    let view = judge(&recorded);
    let said = sentences(&view);
    assert!(said[0].contains("/s requested"), "{said:?}");
    assert!(said[0].starts_with("redis: get unavailable: 2.25 s; "), "{said:?}");
}
