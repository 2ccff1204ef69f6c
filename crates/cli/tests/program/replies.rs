//! Stores that send wrong replies.

use std::time::Duration;

use serde_json::Value;

use super::common::{Defect, Fake, Place, Started, among, count, peak_memory_kib, row};

/// The summary of a run on a faulty server, with files as a second target.
fn run_on_fake(place: &Place, fake: &Fake, more: &[&str]) -> Value {
    let target = format!("liar={}", fake.url());
    let arguments = ["--set", "clients=1", "--target", &target, "--target", "files"];
    let finished = Place::finish(place.fast(&[&arguments[..], more].concat())).code(4);
    let summary = finished.json();
    assert_eq!(summary["validity"], "invalid");
    assert_eq!(row(&summary, "files", "read")["counts"]["wrong"], 0);
    assert_eq!(fake.keys(), 0, "keys left in the store");
    place.assert_nothing_left();
    summary
}

/// Asserts that exactly one in `n` values read is counted as wrong.
#[track_caller]
fn assert_one_in(summary: &Value, n: u64) {
    let read = row(summary, "liar", "read");
    let (ok, wrong) = (count(read, "ok"), count(read, "wrong"));
    assert!(wrong > 0 && (ok + wrong).abs_diff(wrong * n) < n, "{ok} ok, {wrong} wrong");
    assert_eq!((count(read, "error"), count(read, "miss")), (0, 0));
    assert_eq!(count(row(summary, "liar", "write"), "wrong"), 0);
    let reasons = among(&summary["reasons"], |r| {
        r.as_str().unwrap().contains(&format!("`liar/steady/1` read: {wrong} wrong value"))
    });
    assert_eq!(reasons.len(), 1, "{}", summary["reasons"]);
}

#[test]
fn altered_values_are_counted_and_make_the_run_invalid() {
    let (place, fake) = (Place::new(), Fake::new(Defect::AlteredOneIn(7)));
    let summary = run_on_fake(&place, &fake, &["--set", "verify_one_in=1", "--set", "warmup_ms=0"]);
    assert_one_in(&summary, 7);
    let mixed = row(&summary, "liar", "mixed");
    assert!(count(mixed, "wrong") > 0, "{mixed}");
}

#[test]
fn a_wrong_length_is_detected_without_comparing_bytes() {
    let (place, fake) = (Place::new(), Fake::new(Defect::ShortenedOneIn(5)));
    let settings = ["--set", "verify_one_in=1000000", "--set", "warmup_ms=0"];
    assert_one_in(&run_on_fake(&place, &fake, &settings), 5);
}

/// Asserts that a malformed reply fails the trial.
fn assert_malformed(bytes: &'static [u8], words: &str) {
    let (place, fake) = (Place::new(), Fake::new(Defect::BytesAfter(50, bytes)));
    let summary = run_on_fake(&place, &fake, &[]);
    let failures = among(&summary["failures"], |_| true);
    assert_eq!(failures.len(), 1, "{failures:?}");
    assert_eq!(failures[0]["class"], "malformed reply");
    let reason = failures[0]["reason"].as_str().unwrap();
    assert!(reason.contains(words), "{reason}");
    let trials = place.record().trials();
    let failed = trials.iter().find(|t| t["cell"] == "liar/steady/1").unwrap();
    assert_eq!(failed["failure"]["class"], "protocol");
}

#[test]
fn malformed_replies_fail_the_trial() {
    assert_malformed(b"HTTP/1.1 400 Bad Request\r\n\r\n", "starts with byte 0x48");
    assert_malformed(b"$5\r\nabcdefgh\r\n", "a string continues beyond its 5 bytes");
    assert_malformed(b":12\r\n", "`GET` returned an integer");
}

#[test]
fn a_gigantic_length_is_rejected_without_using_memory() {
    let bytes = b"$1000000000000\r\nabc";
    let (place, fake) = (Place::new(), Fake::new(Defect::BytesAfter(50, bytes)));
    let target = format!("liar={}", fake.url());
    let mut run = Started::new(place.fast(&["--set", "clients=1", "--target", &target]));
    let mut peak_kib = 0;
    while run.is_running() {
        peak_kib = peak_kib.max(peak_memory_kib(run.pid()).unwrap_or(0));
        std::thread::sleep(Duration::from_millis(2));
    }
    let summary = run.finish_within(Duration::from_secs(60)).code(4).json();
    let failures = among(&summary["failures"], |_| true);
    assert_eq!(failures[0]["class"], "malformed reply");
    let reason = failures[0]["reason"].as_str().unwrap();
    assert!(reason.contains("a length of `1000000000000`"), "{reason}");
    assert!(peak_kib > 0 && peak_kib < 200 << 10, "{peak_kib} KiB");
    place.assert_nothing_left();
}
