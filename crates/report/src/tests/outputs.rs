//! Every output of the same constructed run, and of difficult views.

use model::{Condition, ErrorClass, Failure};

use crate::fixture::{advice, change, pages, ratio, run, usual};
use crate::recorded::Recorded;
use crate::view::View;
use crate::{compare, csv, html, json, judge, markdown, text};

pub(super) fn recorded() -> Recorded {
    let mut recorded = run(&["files", "redis", "mysql"], 5, usual);
    let plan = &mut recorded.header.plan;
    plan.advice = Some(advice());
    plan.claims = vec![
        ratio("redis", "files", "read", 8, (1.13, 1.53)),
        ratio("redis", "mysql", "write", 8, (5.0, f64::INFINITY)),
        ratio("redis", "valkey", "read", 8, (0.9, 1.1)),
    ];
    recorded.targets[1].configuration =
        vec![("appendonly".into(), "no".into()), ("save".into(), String::new())];
    recorded.header.conditions.facts = vec![
        Condition {
            group: "host".into(),
            name: "kernel".into(),
            value: "6.1.0".into(),
            warning: None,
        },
        Condition {
            group: "memory".into(),
            name: "transparent huge pages".into(),
            value: "always".into(),
            warning: Some("forks stall the server; set `madvise`".into()),
        },
    ];
    recorded
}

fn failed() -> Recorded {
    let mut recorded = recorded();
    for trial in &mut recorded.trials {
        let message = "the server ended".to_string();
        trial.failure = Some(Failure { class: ErrorClass::Closed, message });
    }
    recorded
}

fn every_output(view: &View) -> Vec<String> {
    vec![
        text::render(view, 80, true),
        text::render(view, 140, false),
        csv::render(view),
        csv::render_blocks(view),
        markdown::render(view),
        json::render(view),
        html::render(view).unwrap(),
        compare::render(view, view, 100, true),
    ]
}

#[test]
fn text_at_80_columns() {
    let text = text::render(&judge(&recorded()), 80, false);
    assert!(text.lines().all(|l| l.chars().count() <= 80), "{text}");
    insta::assert_snapshot!(text);
}

#[test]
fn text_at_140_columns() {
    let text = text::render(&judge(&recorded()), 140, false);
    assert!(text.lines().all(|l| l.chars().count() <= 140), "{text}");
    insta::assert_snapshot!(text);
}

#[test]
fn tables_at_40_columns_are_lists_with_unbroken_words() {
    let text = text::render(&judge(&recorded()), 40, false);
    let start = text.find("steady, 1 client").unwrap();
    let end = text.find("\nClaims\n").unwrap();
    let results = &text[start..end];
    assert!(results.lines().all(|l| l.chars().count() <= 40), "{results}");
    assert!(results.contains("\n* redis\n    rate: 8.10 k/s ±1.62 %\n    p50: "), "{results}");
    assert!(text.contains("\nShopware\n    size (requests): small (1)\n"), "{text}");
}

#[test]
fn pages_at_100_columns() {
    insta::assert_snapshot!(text::render(
        &judge(&pages(&["files", "redis"], 4, usual)),
        100,
        false
    ));
}

#[test]
fn a_run_that_failed_at_80_columns() {
    let mut recorded = failed();
    recorded.trials.truncate(2);
    insta::assert_snapshot!(text::render(&judge(&recorded), 80, false));
}

#[test]
fn colour_adds_nothing_but_colour() {
    let view = judge(&recorded());
    assert_eq!(plain(&text::render(&view, 120, true)), text::render(&view, 120, false));
}

/// A text without its colours.
pub(super) fn plain(coloured: &str) -> String {
    let (mut plain, mut rest) = (String::new(), coloured);
    while let Some((before, after)) = rest.split_once('\u{1b}') {
        plain += before;
        rest = after.split_once('m').unwrap().1;
    }
    plain + rest
}

#[test]
fn comma_separated_values() {
    let text = csv::render(&judge(&recorded()));
    let columns: Vec<usize> = text.lines().map(|l| l.split(',').count()).collect();
    assert!(columns.iter().all(|n| *n == columns[0]), "{columns:?}");
    assert_eq!(columns.len(), 1 + 18);
    assert!(text.split_inclusive('\n').all(|l| l.ends_with("\r\n")));
    insta::assert_snapshot!(text.replace("\r\n", "\n"));
}

#[test]
fn blocks_as_comma_separated_values() {
    let text = csv::render_blocks(&judge(&recorded()));
    assert_eq!(text.lines().count(), 1 + 18 * 5);
    let head: Vec<&str> = text.lines().take(4).collect();
    insta::assert_snapshot!(head.join("\n"));
}

#[test]
fn as_markdown() {
    insta::assert_snapshot!(markdown::render(&judge(&recorded())));
}

#[test]
fn json_has_the_documented_keys() {
    let value: serde_json::Value =
        serde_json::from_str(&json::render(&judge(&recorded()))).unwrap();
    for key in ["format", "run", "study", "scale", "validity", "reasons", "conditions"] {
        assert!(value.get(key).is_some(), "{key}");
    }
    assert_eq!((&value["format"], &value["validity"]), (&1.into(), &"valid".into()));
    let cell = &value["cells"][4];
    assert_eq!((&cell["target"], &cell["operation"]), (&"redis".into(), &"read".into()));
    assert_eq!(cell["product"], "Redis 7.0.15");
    assert_eq!(cell["load"]["arrivals"], "closed");
    assert_eq!(cell["load"]["clients"], 1);
    for metric in ["rate_per_s", "service_ns_p50", "service_ns_p90", "response_ns_p90"] {
        assert!(cell["metrics"][metric]["lo"].is_f64(), "{metric}");
    }
    let p99 = &cell["metrics"]["service_ns_p99"];
    assert!(p99["center"].is_f64() && p99["lo"].is_null(), "5 s are too short: {p99}");
    assert!(cell["metrics"]["server_cpu_ns_per_op"]["center"].is_f64());
    assert_eq!(cell["counts"]["ok"], 10_000);
    assert_eq!(cell["counts"]["wrong"], 0);
    assert!(cell.get("charts").is_none());
    let comparison = &value["comparisons"][0];
    for key in ["workload", "operation", "load", "a", "b", "ratio", "verdict", "metric"] {
        assert!(comparison.get(key).is_some(), "{key}");
    }
    let claim = &value["claims"][0];
    assert_eq!(claim["verdict"], "refuted");
    for key in ["id", "text", "source", "expected", "measured", "note"] {
        assert!(claim.get(key).is_some(), "{key}");
    }
    let single: serde_json::Value =
        serde_json::from_str(&json::render(&judge(&run(&["files"], 1, usual)))).unwrap();
    assert!(single["cells"][0]["metrics"]["rate_per_s"]["lo"].is_null());
}

#[test]
fn the_page_contains_its_data_safely_escaped() {
    let mut recorded = recorded();
    let name = "</script><script>alert(1)</script>&\u{2028}";
    recorded.header.plan.targets[0].name = name.into();
    for cell in recorded.header.plan.cells.iter_mut().filter(|c| c.target == "files") {
        cell.target = name.into();
    }
    let page = html::render(&judge(&recorded)).unwrap();
    assert!(!page.contains("<script>alert(1)"));
    let start = r#"<script type="application/json" id="cachedyno-view">"#;
    assert_eq!(page.matches(start).count(), 1);
    let data = page.split_once(start).unwrap().1.split_once("</script>").unwrap().0;
    assert!(!data.contains(['<', '>', '&', '\u{2028}']));
    let value: serde_json::Value = serde_json::from_str(data).unwrap();
    assert_eq!(value["targets"][0]["name"], name);
    assert!(value["cells"][0]["charts"]["time_curve"].as_array().unwrap().len() > 10);
    assert_eq!(value["cells"][0]["charts"]["by_block"].as_array().unwrap().len(), 5);
}

#[test]
fn awkward_views_render_everywhere() {
    let mut empty = recorded();
    empty.trials.clear();
    let mut one = run(&["files"], 1, usual);
    one.header.plan.advice = Some(advice());
    for recorded in [empty, failed(), one] {
        let view = judge(&recorded);
        for output in every_output(&view) {
            assert!(!output.is_empty());
            // The page's own script may contain the word.
            let of_data = output.split("<script type=\"module\"").next().unwrap();
            assert!(!of_data.contains("NaN"), "{of_data}");
        }
    }
    let nothing = judge(&failed());
    assert_eq!((nothing.cells.len(), nothing.failures.len()), (0, 30));
    assert!(text::render(&nothing, 80, false).contains("INVALID"));
}

#[test]
fn a_resumed_run_says_so_with_the_duration_of_its_trials() {
    let mut recorded = recorded();
    let seal = recorded.seal.as_mut().unwrap();
    seal.resumed = true;
    seal.finished_unix_ms += 3_600_000;
    for trial in &mut recorded.trials {
        trial.took_ns = 2_000_000_000;
    }
    let view = judge(&recorded);
    let expected = "5 blocks, 60 s of trials (resumed), run 0123abcd";
    for output in [text::render(&view, 140, false), markdown::render(&view)] {
        assert!(output.contains(expected), "{output}");
    }
    assert!(json::render(&view).contains("\"resumed\""));
}

#[test]
fn settings_of_targets_are_shown() {
    let mut recorded = recorded();
    let given = [("appendonly", "yes"), ("save", "")].map(|(k, v)| (k.into(), v.into()));
    recorded.header.plan.targets[1].settings = given.into();
    let view = judge(&recorded);
    let expected = "appendonly yes, save empty";
    assert!(text::render(&view, 80, false).contains(&format!("settings given: {expected}\n")));
    assert!(markdown::render(&view).contains(&format!(" | {expected} |\n")));
}

#[test]
fn notes_are_matched_to_rows_at_any_width() {
    let view = judge(&recorded());
    for columns in [40, 60, 76] {
        let text = text::render(&view, columns, false);
        assert!(!text.contains("best  notes"), "{text}");
        let words: Vec<&str> = text.split_whitespace().collect();
        let joined = words.join(" ");
        let notes = "notes on write: files 1; read: files 1; change: files 1";
        // A list has them in its items.
        let (count, listed) = if columns < 70 { (0, 6) } else { (2, 0) };
        assert_eq!(joined.matches(notes).count(), count, "at {columns}, a line a table: {text}");
        assert_eq!(joined.matches(" notes: 1 ").count(), listed, "at {columns}: {text}");
    }
    assert!(!text::render(&view, 80, false).contains("notes on "));
    let mut view = view;
    for row in view.cells.iter_mut().filter(|r| r.operation == "read") {
        row.footnotes.push(3);
    }
    let text = text::render(&view, 76, false);
    assert!(text.contains("notes on write: files 1; read: all 4, files 1; change"), "{text}");
}

#[test]
fn undecided_rows_have_their_reasons_except_for_the_most_frequent_one() {
    let mut view = judge(&recorded());
    let mut reads = view.comparisons.iter_mut().filter(|c| c.operation == "read");
    reads.next().unwrap().doubt = Some("too coarse".into());
    for comparison in &mut view.comparisons {
        comparison.verdict = stats::Verdict::Undecided;
        comparison.doubt.get_or_insert_with(|| "too wide".into());
    }
    let expected = "undecided, if not named below: too wide\n\
                undecided at steady, 1 client: read of files: too coarse\n";
    let text = text::render(&view, 140, false);
    assert!(text.contains(expected), "{text}");
    assert!(markdown::render(&view).contains(&expected.replacen('\n', "\n\n", 1)));
}

#[test]
fn two_runs_next_to_each_other() {
    let a = judge(&recorded());
    let faster = |target: &str, operation: &str, clients: u32| {
        usual(target, operation, clients) * if target == "redis" { 1.5 } else { 1.0 }
    };
    let mut other = run(&["files", "redis", "memcached"], 5, faster);
    other.header.conditions.facts = recorded().header.conditions.facts;
    other.header.conditions.facts[0].value = "6.12.0".into();
    other.header.plan.targets[1].settings.insert("io-threads".into(), "4".into());
    insta::assert_snapshot!(compare::render(&a, &judge(&other), 100, false));
}

#[test]
fn the_ratio_of_two_runs_has_the_recovered_interval() {
    let value = |center: f64, lo: f64, hi: f64| crate::view::Value::new(center, Some(lo), Some(hi));
    // Half-widths of 3 and 4 on logarithms make one of 5.
    let above = value(1.0, (-3f64).exp(), 3f64.exp());
    let below = value(2.0, 2.0 * (-4f64).exp(), 2.0 * 4f64.exp());
    let got = compare::common::ratio(&above, &below);
    assert!((got.center - 0.5).abs() < 1e-12);
    assert!((got.lo.unwrap().ln() - (0.5f64.ln() - 5.0)).abs() < 1e-9);
    assert!((got.hi.unwrap().ln() - (0.5f64.ln() + 5.0)).abs() < 1e-9);
}

#[test]
fn waiting_for_locks_has_its_own_table() {
    let mut recorded = pages(&["files", "redis"], 4, usual);
    assert!(!text::render(&judge(&recorded), 100, false).contains("Locks of sessions"));
    change(&mut recorded, "redis", "page", |phase, i| {
        let page = &mut phase.operations[i];
        page.counts.lock_waits = page.counts.total() / 4;
        page.counts.lock_broken = 3;
        page.lock_wait.record(20_000_000);
    });
    let text = text::render(&judge(&recorded), 100, false);
    let line = text.lines().find(|l| l.starts_with("redis") && l.contains("25 %")).unwrap();
    let words: Vec<&str> = line.split_whitespace().rev().take(8).collect();
    // Four blocks with three lost locks each; nobody gave up.
    assert_eq!(&words[..2], ["12", "0"], "{line}");
    assert_eq!(line.matches("20.0 ms").count(), 3, "{line}");
}
