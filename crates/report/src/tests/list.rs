//! The list of earlier runs: states from summaries, and line lengths.

use super::happened::at_share;
use super::outputs::plain;
use super::search::{STORE, searched_in};
use crate::fixture::{run, set_intervals, usual};
use crate::list::{Entry, RunSummary, render};
use crate::recorded::Recorded;
use crate::{json, judge};
use model::Listed;

fn entry(run: &str, study: &str, targets: &[&str]) -> Entry {
    let record = Listed {
        run: run.into(),
        study: study.into(),
        scale: "standard",
        status: "complete",
        targets: targets.iter().map(ToString::to_string).collect(),
        ..Listed::default()
    };
    Entry { record, started: "2026-11-22 18:02".into(), summary: None }
}

/// An entry with the summary of this run's record.
fn judged(run: &str, recorded: &Recorded) -> Entry {
    let plan = &recorded.header.plan;
    let targets: Vec<&str> = plan.targets.iter().map(|t| t.name.as_str()).collect();
    let summary = json::render(&judge(recorded));
    let slos =
        plan.cells.iter().find_map(|cell| cell.load.search()).into_iter().flat_map(|s| &s.slos);
    let mut entry = entry(run, &plan.study, &targets);
    entry.summary = Some(RunSummary::read(summary.as_bytes()).unwrap());
    entry.record.limits = slos.map(ToString::to_string).collect();
    entry
}

fn unsteady() -> Recorded {
    let mut recorded = run(&["files", "redis"], 3, usual);
    set_intervals(&mut recorded, &[10, 200, 400, 20, 300, 500, 30, 700, 90, 1000]);
    recorded
}

fn failed() -> Recorded {
    let mut recorded = run(&["files"], 3, usual);
    recorded.trials.clear();
    recorded
}

/// Eleven names, as in the study of application caches.
const CACHES: [&str; 11] = [
    "zend-file",
    "cm-file",
    "cm-redis",
    "cm-redis-lua",
    "two-levels-file",
    "two-levels-redis",
    "symfony-redis",
    "symfony-files",
    "laravel-redis",
    "laravel-files",
    "laravel-memcached",
];

fn all() -> Vec<Entry> {
    let mut killed = entry("66666666", "sessions", &["x"]);
    (killed.record.status, killed.record.may_hold_leftovers) = ("unsealed", vec!["x".into()]);
    let mut interrupted = judged("55555555", &run(&["files"], 3, usual));
    interrupted.record.status = "interrupted";
    vec![
        judged("11111111", &run(&["files", "redis", "mysql"], 5, usual)),
        judged("22222222", &unsteady()),
        judged("33333333", &failed()),
        judged("44444444", &searched_in(5, STORE, |_| {})),
        interrupted,
        killed,
        entry("77777777", "app-cache", &CACHES),
    ]
}

/// The line of a run.
#[track_caller]
fn line<'a>(text: &'a str, run: &str) -> &'a str {
    text.lines().find(|l| l.starts_with(run)).unwrap_or_else(|| panic!("no {run} in {text}"))
}

#[test]
fn each_run_has_its_state() {
    let text = render(&all(), 100, false);
    let states = [
        ("11111111", "VALID"),
        ("22222222", "NOT-STEADY"),
        ("33333333", "INVALID"),
        ("44444444", "VALID"),
        ("55555555", "interrupted"),
        ("66666666", "unsealed"),
        ("77777777", "complete"),
    ];
    for (run, state) in states {
        let words: Vec<&str> = line(&text, run).split_whitespace().collect();
        assert_eq!(words[1..3], ["2026-11-22", "18:02"], "{text}");
        assert_eq!(words[5], state, "{text}");
    }
    assert_eq!(text.lines().count(), 1 + 7 + 1, "a header, and what may be left: {text}");
    assert!(line(&text, "44444444").ends_with("p99<1ms: redis 100,000/s"), "{text}");
    assert!(line(&text, "55555555").ends_with(" interrupted files"), "{text}");
    assert!(text.contains("! 66666666 was killed and may have left data in `x` ("), "{text}");
}

#[test]
fn a_summary_from_before_a_resume_is_ignored() {
    let mut recorded = run(&["files"], 3, usual);
    recorded.seal.as_mut().unwrap().status = model::SealStatus::Interrupted;
    let text = render(&[judged("11111111", &recorded)], 100, false);
    assert!(line(&text, "11111111").contains(" complete "), "{text}");
    assert!(RunSummary::read(b"{\"format\":1,\"run\":").is_none());
    assert!(RunSummary::read(b"{\"format\":1}").is_none());
}

#[test]
fn a_run_with_faults_leads_with_the_rate_that_survives() {
    let shown = |late_ms: u64| {
        let text = render(&[judged("11111111", &at_share(500, late_ms))], 140, false);
        line(&text, "11111111").to_string()
    };
    assert!(shown(700).ends_with("  survives a fault: redis 5,010/s"), "{}", shown(700));
    let none = shown(1_900);
    assert!(none.ends_with("  survives a fault: redis at no measured rate"), "{none}");
}

#[test]
fn a_search_without_a_rate_shows_only_its_limits() {
    let slow = super::search::Store { knee_per_s: 100.0, ..STORE };
    let text = render(&[judged("11111111", &searched_in(2, slow, |_| {}))], 100, false);
    assert!(line(&text, "11111111").contains(" INVALID "), "{text}");
    assert!(line(&text, "11111111").ends_with("  p99<1ms: redis"), "{text}");
}

#[test]
fn every_line_fits_the_terminal() {
    let all = all();
    for columns in 40..=140 {
        let text = render(&all, columns, false);
        let wide: Vec<&str> = text.lines().filter(|l| l.chars().count() > columns).collect();
        assert!(wide.is_empty(), "at {columns}: {wide:#?}");
        assert!(text.contains("`cachedyno show 66666666`"), "at {columns}: {text}");
        for entry in &all {
            assert!(text.lines().any(|l| l.starts_with(&entry.record.run)), "at {columns}: {text}");
        }
        assert_eq!(plain(&render(&all, columns, true)), text);
    }
}

#[test]
fn targets_that_do_not_fit_are_omitted_at_the_end() {
    let all = all();
    let at = |columns| line(&render(&all, columns, false), "77777777").to_string();
    assert!(at(80).ends_with(" zend-file, cm-file, …"), "{}", at(80));
    assert!(at(300).ends_with(&CACHES.join(", ")), "{}", at(300));
    let long = [entry("11111111", "sessions", &["a-store-with-a-long-name-of-its-own", "b"])];
    let text = render(&long, 80, false);
    let cut = line(&text, "11111111");
    assert!(cut.contains(" a-store-with-a-long-nam") && cut.ends_with('…'), "{text}");
    assert_eq!(cut.chars().count(), 80, "{text}");
    // On a narrower terminal each has its own line, and nothing is omitted.
    let listed = render(&all, 50, false);
    assert!(listed.contains("\n77777777\n    started (UTC): 2026-11-22 18:02\n"), "{listed}");
    assert!(!listed.contains('…'), "{listed}");
}

#[test]
fn rates_below_ten_keep_two_digits() {
    let shown = [0.0, 0.324, 0.996, 5.0, 5.43, 9.96, 123_456.0].map(crate::show::grouped);
    assert_eq!(shown, ["0", "0.32", "1", "5", "5.4", "10", "123,000"]);
}
