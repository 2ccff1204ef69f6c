use super::*;
use crate::app_cache::memory::workload;
use model::AppCache;

fn original() -> AppCache {
    AppCache { keys: 10_000, tags: 2000, ..workload(&[&[]]) }
}

fn lists(write_chance: u64, clean_chance: u64) -> Lists {
    Lists::Drawn { seed: 11, write_chance, clean_chance }
}

#[test]
fn the_mix_matches_the_original() {
    let data = DataSet::drawn(&original(), 11);
    let lists = lists(1000, 1000);
    let (mut cleans, mut writes) = (0u32, 0u32);
    let mut tags = std::collections::HashSet::new();
    for client in 0..20 {
        for n in 0..50_000 {
            match lists.operation(&data, client, n).unwrap() {
                Operation::Clean(tag) => {
                    cleans += 1;
                    tags.insert(tag);
                    assert!(tag < 2000);
                }
                Operation::Write(record) => {
                    writes += 1;
                    assert!(record < 10_000);
                }
                Operation::Read(record) => assert!(record < 10_000),
            }
        }
    }
    // 0.0999 % and 0.0998 % of a million, within four standard deviations.
    assert!(cleans.abs_diff(999) < 127, "{cleans}");
    assert!(writes.abs_diff(998) < 127, "{writes}");
    assert!(tags.len() > 700, "{}", tags.len());
}

#[test]
fn lists_differ_by_client_and_are_reproducible() {
    let data = DataSet::drawn(&original(), 11);
    let lists = lists(1, 1);
    let of = |client| -> Vec<_> { (0..50).map(|n| lists.operation(&data, client, n)).collect() };
    assert_eq!(of(0), of(0));
    assert_ne!(of(0), of(1));
}

#[test]
fn a_chance_of_zero_means_always() {
    let data = DataSet::drawn(&original(), 11);
    let always = |lists: Lists, is: fn(Operation) -> bool| {
        (0..100).all(|n| is(lists.operation(&data, 0, n).unwrap()))
    };
    assert!(always(lists(5, 0), |o| matches!(o, Operation::Clean(_))));
    assert!(always(lists(0, u64::MAX), |o| matches!(o, Operation::Write(_))));
    assert!(always(lists(u64::MAX, u64::MAX), |o| matches!(o, Operation::Read(_))));
}

#[test]
fn a_list_from_a_file_repeats_after_its_end() {
    let data = DataSet::drawn(&original(), 11);
    let lists = Lists::Read(vec![vec![Operation::Read(3), Operation::Clean(4)], Vec::new()]);
    let at = |client, n| lists.operation(&data, client, n);
    assert_eq!((at(0, 0), at(0, 3)), (Some(Operation::Read(3)), Some(Operation::Clean(4))));
    assert_eq!((at(1, 0), at(2, 0)), (None, None));
}
