use super::*;
use crate::app_cache::memory::workload;

fn ledger() -> Ledger {
    Ledger::drawn(&workload(&[&[("clean", 1.0)]]), 1, 3)
}

#[test]
fn a_write_makes_earlier_versions_stale() {
    let ledger = ledger();
    let first = ledger.begin_write(0, 7);
    assert_eq!(ledger.known(7, &[]).floor, 0, "it has not ended");
    ledger.end_write(0, 7, first);
    let second = ledger.begin_write(1, 7);
    ledger.end_write(1, 7, second);
    assert!(first.version < second.version);
    assert_eq!(ledger.known(7, &[]).floor, second.version);
    assert_eq!(ledger.known(8, &[]).floor, 0);
}

#[test]
fn either_of_two_overlapping_writes_may_be_found() {
    let ledger = ledger();
    let [slow, quick] = [ledger.begin_write(0, 7), ledger.begin_write(1, 7)];
    ledger.end_write(1, 7, quick);
    assert!(ledger.known(7, &[]).floor <= slow.version);
    ledger.end_write(0, 7, slow);
    assert!(ledger.known(7, &[]).floor <= slow.version);
}

#[test]
fn a_clean_makes_earlier_versions_stale() {
    let ledger = ledger();
    let before = ledger.begin_write(0, 7);
    ledger.end_write(0, 7, before);
    let clean = ledger.begin_clean(1, 4);
    assert_eq!(ledger.known(7, &[4]).floor, before.version);
    ledger.end_clean(1, 4, clean);
    assert_eq!(ledger.known(7, &[3, 4]).floor, clean.version);
    assert_eq!(ledger.known(7, &[3]).floor, before.version);
    let during = ledger.begin_write(0, 7);
    let clean = ledger.begin_clean(1, 4);
    ledger.end_clean(1, 4, clean);
    assert!(ledger.known(7, &[4]).floor <= during.version);
}

#[test]
fn after_a_failed_write_the_state_of_its_record_is_unknown() {
    let ledger = ledger();
    let first = ledger.begin_write(0, 7);
    ledger.end_write(0, 7, first);
    ledger.begin_write(1, 7);
    ledger.fail_write(1, 7);
    let later = ledger.begin_write(0, 7);
    ledger.end_write(0, 7, later);
    assert_eq!(ledger.known(7, &[]).floor, 0);
    assert_eq!(ledger.known(7, &[]).after(later).floor, 0);
    assert!(!ledger.is_lost(0, 7, &[], ledger.known(7, &[])));
}

#[test]
fn only_unexplained_misses_are_lost() {
    let ledger = ledger();
    let without_lifetime = (0..300).filter(|r| ledger.data().expires_s(*r).is_none());
    let [a, b] = without_lifetime.take(2).collect::<Vec<_>>()[..] else { panic!() };
    let lost = |record, tags: &[u64]| ledger.is_lost(2, record, tags, ledger.known(record, tags));
    assert!(lost(a, &[1]));
    // During a clean, after it, and after the record was written again.
    let clean = ledger.begin_clean(0, 1);
    assert!(!lost(a, &[1]) && lost(a, &[2]));
    ledger.end_clean(0, 1, clean);
    assert!(!lost(a, &[1]));
    let write = ledger.begin_write(0, b);
    ledger.end_write(0, b, write);
    let write = ledger.begin_write(0, a);
    assert!(!lost(a, &[1]) && lost(b, &[1]));
    ledger.end_write(0, a, write);
    assert!(lost(a, &[1]));
    let write = ledger.begin_write(0, a);
    ledger.take_back(0, a, write);
    assert!(!lost(a, &[1]) && lost(b, &[2]));
    // A read that started before all of that.
    assert!(!ledger.is_lost(2, a, &[1], Known::default()));
    let own = (0..300).find(|r| ledger.data().expires_s(*r).is_some()).unwrap();
    assert!(!lost(own, &[2]));
}

#[test]
fn carriers_are_the_records_with_the_tag() {
    let ledger = ledger();
    let mut tags = Vec::new();
    for tag in 0..40 {
        let expected: Vec<u32> = (0..300)
            .filter(|record| {
                ledger.data().tags_of_into(&mut tags, u64::from(*record));
                tags.contains(&tag)
            })
            .collect();
        assert_eq!(ledger.carriers(tag), expected);
        assert!(!expected.is_empty());
    }
    assert!(Ledger::drawn(&workload(&[&[]]), 1, 1).carriers(0).is_empty());
}
