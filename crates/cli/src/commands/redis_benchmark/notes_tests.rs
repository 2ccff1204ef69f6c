//! Tests of doubts and corrected figures.

use super::super::arguments::Data;
use super::super::catalogue::tests;
use super::*;

fn options(keyspace: Option<u64>, tests: &str) -> Options {
    let names = tests.split(',').map(String::from).collect();
    let data = Data { bytes: 3, keyspace, tests: Some(names), ..Data::default() };
    Options { data, ..Options::default() }
}

/// What is said besides that writes are not read back.
fn said(options: &Options) -> Vec<String> {
    let all = before(options, &tests(&options.data).0).into_iter();
    all.filter(|doubt| !doubt.contains(UNREAD)).collect()
}

const UNREAD: &str = "acknowledged writes are not read back";

fn test(title: &str) -> Test {
    let tests = tests(&Data::default()).0;
    tests.into_iter().find(|test| test.title == title).unwrap()
}

fn corrected(counts: Counts) -> Corrected {
    let mut response = Histogram::new();
    (1..=10_000).for_each(|us| response.record(us * 100));
    let title = "GET".to_string();
    Corrected { title, response, counts, cpu_ns: 850.0, busy_share: 0.5, unsent: 0 }
}

#[test]
fn one_key_for_all_is_doubtful() {
    assert!(said(&options(None, "set"))[0].starts_with("without -r every request is about one"));
    assert_eq!(said(&options(Some(9), "set")), [""; 0]);
    assert_eq!(said(&options(None, "ping,lpush")), [""; 0]);
}

#[test]
fn writes_that_are_not_read_back_are_doubtful() {
    let told = |names| {
        let options = options(Some(9), names);
        before(&options, &tests(&options.data).0).iter().any(|doubt| doubt.starts_with(UNREAD))
    };
    assert!(told("get,lpush") && !told("get,ping"));
}

#[test]
fn a_user_without_a_password_is_doubtful() {
    let mut of_user = options(Some(9), "set");
    of_user.server.user = Some("me".into());
    assert!(said(&of_user)[0].starts_with("--user has no effect"));
    of_user.server.password = Some(model::Secret::new("pw"));
    assert_eq!(said(&of_user), [""; 0]);
}

#[test]
fn pipelines_and_lengths_are_explained() {
    let mut piped = options(Some(9), "set");
    piped.offered.pipeline = 16;
    assert!(said(&piped)[0].contains("the first byte of the first for all 16"));
    let mut sized = options(Some(9), "get");
    sized.data.bytes_given = true;
    assert!(said(&sized)[0].starts_with("-d has no effect on GET"));
    sized.data.tests = Some(vec!["get".into(), "set".into()]);
    assert_eq!(said(&sized), [""; 0]);
}

#[test]
fn reads_of_nothing_are_doubtful() {
    let none = corrected(Counts { miss: 10, ..Counts::default() });
    let doubts = none.doubts(&test("GET"));
    assert!(doubts[0].starts_with("every GET found nothing"), "{doubts:?}");
    assert!(doubts[0].contains("`-t set`"), "{doubts:?}");
    let some = corrected(Counts { ok: 3, miss: 1, ..Counts::default() });
    assert_eq!(some.doubts(&test("GET")), ["1 of 4 GET found nothing (25 %)"]);
    let all = corrected(Counts { ok: 3, ..Counts::default() });
    assert_eq!(all.doubts(&test("GET")), [""; 0]);
}

#[test]
fn a_busy_generator_is_doubtful() {
    let busy = Corrected { busy_share: 0.97, unsent: 7, ..corrected(Counts::default()) };
    let doubts = busy.doubts(&test("SET"));
    assert!(doubts[0].contains("cachedyno itself was busy for 97 % of the time"), "{doubts:?}");
    assert!(doubts[1].starts_with("7 requests of GET were due"), "{doubts:?}");
}

#[test]
fn figures_line_up() {
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
