//! Stores that did not keep what they acknowledged.

use model::ReadBack;

use crate::fixture::{run, usual};
use crate::judge;
use crate::view::{Validity, View};

/// A run with this read-back result in its first trial of Redis.
fn with(read_back: ReadBack) -> View {
    let mut recorded = run(&["files", "redis"], 5, usual);
    let trial = recorded.trials.iter_mut().find(|t| t.cell.starts_with("redis")).unwrap();
    trial.read_back = Some(read_back);
    judge(&recorded)
}

#[test]
fn one_older_value_makes_a_run_invalid() {
    let lost =
        ReadBack { read: 1_024, older: 1, example: Some("abc".into()), ..ReadBack::default() };
    let view = with(lost);
    assert_eq!(view.validity, Validity::Invalid);
    let reason = &view.reasons[0];
    assert!(
        reason.contains("the store lost acknowledged writes: of 1024 sessions read"),
        "{reason}"
    );
    assert!(reason.contains("1 contain an older value than the last acknowledged one"), "{reason}");
    assert!(reason.ends_with("(such as `abc`)"), "{reason}");
}

#[test]
fn evicted_records_are_not_lost() {
    let evicted = ReadBack { read: 1_024, missing: 40, may_be_missing: 60, ..ReadBack::default() };
    assert_eq!(with(evicted).validity, Validity::Valid);
    let more = ReadBack { read: 1_024, missing: 90, may_be_missing: 60, ..ReadBack::default() };
    let view = with(more);
    assert_eq!(view.validity, Validity::Invalid);
    assert!(view.reasons[0].contains("30 are missing"), "{:?}", view.reasons);
}

#[test]
fn unreadable_records_give_a_footnote() {
    let unread = |read_back: ReadBack| {
        let view = with(ReadBack { unread: Some("timed out".into()), ..read_back });
        assert_eq!(view.validity, Validity::Valid);
        let notes = view.footnotes.into_iter().filter(|n| n.contains("not read back"));
        notes.collect::<Vec<_>>().join("|")
    };
    let some = unread(ReadBack { read: 100, ..ReadBack::default() });
    assert!(
        some.ends_with("not read back, but 100 sessions of them in block 1: timed out"),
        "{some}"
    );
    let none = unread(ReadBack::default());
    assert!(none.ends_with("`: acknowledged writes were not read back: timed out"), "{none}");
}
