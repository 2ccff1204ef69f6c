//! Tests of warnings and corrected figures.

use super::super::arguments::Data;
use super::super::catalogue::tests;
use super::*;

fn options(keyspace: Option<u64>, tests: &str) -> Options {
    let names = tests.split(',').map(String::from).collect();
    let data = Data { bytes: 3, keyspace, tests: Some(names), ..Data::default() };
    Options { data, ..Options::default() }
}

/// The warnings except the one about writes that are not read back.
fn other_warnings(options: &Options) -> Vec<String> {
    let all = before(options, &tests(&options.data).0).into_iter();
    all.filter(|warning| !warning.contains(UNREAD)).collect()
}

const UNREAD: &str = "acknowledged writes are not read back";

fn test(title: &str) -> Test {
    let tests = tests(&Data::default()).0;
    tests.into_iter().find(|test| test.title == title).unwrap()
}

fn corrected(counts: Counts) -> CorrectedFigures {
    let mut response = Histogram::new();
    (1..=10_000).for_each(|us| response.record(us * 100));
    let title = "GET".to_string();
    CorrectedFigures { title, response, counts, cpu_ns: 850.0, busy_share: 0.5, unsent: 0 }
}

#[test]
fn using_one_key_causes_a_warning() {
    assert!(
        other_warnings(&options(None, "set"))[0]
            .starts_with("without -r every request uses the same key")
    );
    assert_eq!(other_warnings(&options(Some(9), "set")), [""; 0]);
    assert_eq!(other_warnings(&options(None, "ping,lpush")), [""; 0]);
}

#[test]
fn unverified_writes_cause_a_warning() {
    let warns = |names| {
        let options = options(Some(9), names);
        before(&options, &tests(&options.data).0).iter().any(|warning| warning.starts_with(UNREAD))
    };
    assert!(warns("get,lpush") && !warns("get,ping"));
}

#[test]
fn a_user_without_a_password_causes_a_warning() {
    let mut of_user = options(Some(9), "set");
    of_user.server.user = Some("me".into());
    assert!(other_warnings(&of_user)[0].starts_with("--user has no effect"));
    of_user.server.password = Some(model::Secret::new("pw"));
    assert_eq!(other_warnings(&of_user), [""; 0]);
}

#[test]
fn pipelines_and_lengths_are_explained() {
    let mut piped = options(Some(9), "set");
    piped.load.pipeline = 16;
    assert!(other_warnings(&piped)[0].contains("the first byte of the first reply for all 16"));
    let mut sized = options(Some(9), "get");
    sized.data.bytes_given = true;
    assert!(other_warnings(&sized)[0].starts_with("-d has no effect on GET"));
    sized.data.tests = Some(vec!["get".into(), "set".into()]);
    assert_eq!(other_warnings(&sized), [""; 0]);
}

#[test]
fn misses_cause_a_warning() {
    let none = corrected(Counts { miss: 10, ..Counts::default() });
    let warnings = none.warnings(&test("GET"));
    assert!(warnings[0].starts_with("every GET found nothing"), "{warnings:?}");
    assert!(warnings[0].contains("`-t set`"), "{warnings:?}");
    let some = corrected(Counts { ok: 3, miss: 1, ..Counts::default() });
    assert_eq!(some.warnings(&test("GET")), ["1 of 4 GET found nothing (25 %)"]);
    let all = corrected(Counts { ok: 3, ..Counts::default() });
    assert_eq!(all.warnings(&test("GET")), [""; 0]);
}

#[test]
fn a_busy_generator_causes_a_warning() {
    let busy = CorrectedFigures { busy_share: 0.97, unsent: 7, ..corrected(Counts::default()) };
    let warnings = busy.warnings(&test("SET"));
    assert!(warnings[0].contains("cachedyno itself was busy for 97 % of the time"), "{warnings:?}");
    assert!(warnings[1].starts_with("7 requests of GET were due"), "{warnings:?}");
}

#[test]
fn table_columns_are_aligned() {
    let counts = Counts { ok: 9_990, miss: 10, ..Counts::default() };
    let text = table(&[corrected(counts)]);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[0].chars().count(), lines[1].chars().count());
    assert!(lines[0].starts_with("per request") && lines[1].starts_with("GET        "), "{text}");
    let cells: Vec<&str> = lines[1].split("  ").filter(|cell| !cell.is_empty()).collect();
    let expected =
        ["500 µs", "990 µs", "999 µs", "1.00 ms", "1.00 ms", "9990", "10", "0", "0", "850 ns"];
    assert_eq!(cells[1..].iter().map(|cell| cell.trim()).collect::<Vec<_>>(), expected);
    assert_eq!(table(&[]), "");
}
