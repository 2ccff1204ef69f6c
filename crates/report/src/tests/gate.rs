//! Requirements, failing comparisons, and test cases.

use model::Requirement;
use quick_xml::Reader;
use quick_xml::events::Event;

use super::outputs::recorded;
use crate::compare::against;
use crate::fixture::{change, run, usual};
use crate::recorded::Recorded;
use crate::{judge, junit, text};

fn requiring(recorded: Recorded, limits: &[&str]) -> Recorded {
    let mut recorded = recorded;
    let requirements = limits.iter().map(|limit| limit.parse::<Requirement>().unwrap());
    recorded.header.plan.requirements = requirements.collect();
    recorded
}

/// Names of all elements in order; panics on invalid XML.
fn elements(xml: &str) -> Vec<String> {
    let (mut reader, mut names) = (Reader::from_str(xml), Vec::new());
    loop {
        match reader.read_event().unwrap() {
            Event::Start(start) | Event::Empty(start) => {
                names.push(String::from_utf8(start.name().as_ref().to_vec()).unwrap());
                assert!(start.attributes().all(|attribute| attribute.is_ok()), "{xml}");
            }
            Event::Eof => return names,
            _ => {}
        }
    }
}

#[test]
fn each_result_meets_a_requirement_or_misses_it() {
    let recorded = requiring(recorded(), &["p50<200us", "mean<1s", "rate>1k", "error<1%"]);
    let view = judge(&recorded);
    let slow = view.cells.iter().filter(|row| !row.required[0].is_met).count();
    assert!((1..view.cells.len()).contains(&slow), "{slow}");
    assert!(view.cells.iter().all(|row| row.required[1..].iter().all(|one| one.is_met)));
    for shown in [text::summary(&view, 100, false), text::render(&view, 100, false)] {
        let all = view.cells.len();
        assert!(shown.contains(&format!("p50 < 200 µs: missed by {slow} of {all} results")));
        assert!(shown.contains(&format!("rate > 1.00 k/s: met by all {all} results")), "{shown}");
    }
}

#[test]
fn failures_exceed_every_limit() {
    let mut recorded = requiring(recorded(), &["p99<1h", "mean<1h", "max<1h", "error<1%"]);
    change(&mut recorded, "redis", "read", |phase, i| {
        phase.operations[i].counts.error = phase.operations[i].counts.ok / 10;
    });
    let view = judge(&recorded);
    let read = view.cells.iter().find(|r| (&*r.target, &*r.operation) == ("redis", "read"));
    assert!(read.unwrap().required.iter().all(|one| !one.is_met), "{:?}", read.unwrap().required);
}

#[test]
fn a_second_run_is_slower_if_corrected_intervals_agree() {
    let half = |target: &str, operation: &str, clients: u32| {
        usual(target, operation, clients) * if operation == "read" { 0.5 } else { 1.0 }
    };
    let targets = ["files", "redis"];
    let (base, head) = (judge(&run(&targets, 5, usual)), judge(&run(&targets, 5, half)));
    let found = against(&base, &head);
    assert!(!found.slower.is_empty());
    assert!(found.slower.iter().all(|line| line.what.contains("read ")), "{found:?}");
    assert!(found.slower[0].ratio.starts_with("0.50"), "{found:?}");
    assert!(against(&head, &base).slower.is_empty());
    assert!(against(&base, &base).slower.is_empty());
    let xml = junit::of_comparison(&base, &head, &found);
    let names = elements(&xml);
    let failures = names.iter().filter(|name| *name == "failure").count();
    assert_eq!(failures, found.slower.len(), "{xml}");
}

#[test]
fn test_cases_are_valid_xml_with_any_names() {
    let mut recorded = requiring(recorded(), &["p50<200us"]);
    recorded.header.plan.claims[0].id = "<&\"'\u{1}\u{7f}>".into();
    let xml = junit::render(&judge(&recorded));
    let names = elements(&xml);
    let count = |name: &str| names.iter().filter(|known| *known == name).count();
    assert_eq!(count("testcase"), 1 + 18 + 3, "{xml}");
    assert!(xml.contains("tests=\"22\""), "{xml}");
    // A refuted claim, and one that was not run.
    assert!(count("failure") > 1 && count("skipped") == 1, "{xml}");
    assert!(xml.contains("&lt;&amp;") && !xml.contains('\u{1}'), "{xml}");
}
