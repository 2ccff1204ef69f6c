use super::*;
use crate::app_cache::memory::{Content, Fault, Memory, workload};
use crate::app_cache::{DataSet, Lists};
use model::Magento as Layer;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Filled clients in their first phase.
fn filled(plan: &AppCache, store: &Memory, clients: u32) -> Vec<AppCacheClient> {
    let ledger = Arc::new(Ledger::drawn(plan, 42, clients));
    let open = |client| {
        let share = Share { seed: 42, client, clients, prefix: String::new() };
        AppCacheClient::new(Box::new(store.clone()), plan.clone(), share, ledger.clone())
    };
    let mut made: Vec<AppCacheClient> = (0..clients).map(open).collect();
    for client in &mut made {
        while client.fill_next().unwrap() {}
        client.start_phase(0);
    }
    made
}

fn operate(client: &mut AppCacheClient, n: u64) -> Result<(usize, Outcome), StoreError> {
    client.restore();
    let call = client.prepare(n, 0);
    client.draw();
    client.call()?;
    Ok((call.operation, client.check().0))
}

/// Counts of results by operation and outcome.
fn run(clients: &mut [AppCacheClient], count: u64) -> BTreeMap<(usize, String), u64> {
    let mut counts = BTreeMap::new();
    for n in 0..count {
        for client in clients.iter_mut() {
            let (operation, outcome) = operate(client, n).unwrap();
            *counts.entry((operation, format!("{outcome:?}"))).or_default() += 1;
        }
    }
    counts
}

fn outcomes(counts: &BTreeMap<(usize, String), u64>) -> Vec<(usize, &str)> {
    counts.keys().map(|(operation, outcome)| (*operation, outcome.as_str())).collect()
}

#[test]
fn clients_fill_all_records_together() {
    let store = Memory::default();
    let plan = workload(&[&[]]);
    filled(&plan, &store, 7);
    assert_eq!(store.content().records.len(), 300);
    let with_own = store.content().records.values().filter(|r| r.lifetime_s != Some(7200)).count();
    assert!((30..75).contains(&with_own), "{with_own}");
    let prefix = super::super::magento::prefix_of("/var/www/magento/app/etc");
    let common = format!("{prefix}MAGE");
    assert!(store.content().records.values().all(|r| r.tags.last() == Some(&common)));
}

#[test]
fn a_fast_fill_stores_the_same_as_saves() {
    for magento in [Layer::One, Layer::None] {
        let (saved, filled_fast) = (Memory::default(), Memory::default());
        let plan = AppCache { magento, ..workload(&[&[]]) };
        filled(&plan, &saved, 3);
        let clients = filled(&AppCache { fill: Fill::Fast, ..plan }, &filled_fast, 3);
        assert_eq!(saved.content().records, filled_fast.content().records);
        let effort = clients.iter().map(|client| client.shop.effort().round_trips).sum::<u64>();
        assert_eq!(effort, 300, "nothing is loaded back");
    }
}

#[test]
fn a_list_does_not_restore_cleaned_records() {
    let store = Memory::default();
    let plan = workload(&[&[]]);
    let mut clients = filled(&plan, &store, 3);
    let counts = run(&mut clients, 2000);
    let found = outcomes(&counts);
    assert_eq!(found, [(READ, "Miss"), (READ, "Ok"), (WRITE, "Ok"), (CLEAN, "Ok")]);
    let expected = 6000.0 / 101.0;
    assert!((counts[&(CLEAN, "Ok".into())] as f64 - expected).abs() < 30.0, "{counts:?}");
}

#[test]
fn weighted_phases_keep_the_data_constant() {
    let store = Memory::default();
    let plan = workload(&[&[("clean", 1.0)], &[("read", 5.0), ("write", 2.0), ("clean", 1.0)]]);
    let mut clients = filled(&plan, &store, 1);
    let before = store.content().records.len();
    assert_eq!(outcomes(&run(&mut clients, 200)), [(CLEAN, "Ok")]);
    clients[0].start_phase(1);
    // The last clean's records are restored before the first call.
    assert_eq!(outcomes(&run(&mut clients, 3000)), [(READ, "Ok"), (WRITE, "Ok"), (CLEAN, "Ok")]);
    clients[0].restore();
    assert_eq!(store.content().records.len(), before);
}

#[test]
fn without_magento_records_match_the_data_set() {
    let store = Memory::default();
    let plan = AppCache { magento: Layer::None, ..workload(&[&[]]) };
    let mut clients = filled(&plan, &store, 2);
    let content = store.content();
    let stored = &content.records["cfcd208495d565ef66e7dff9f98764da"];
    assert_eq!(stored.value.len(), clients[0].ledger.data().bytes(0));
    assert!(stored.tags.iter().all(|tag| tag.starts_with("TAG_") && tag.len() == 6));
    drop(content);
    let counts = run(&mut clients, 500);
    assert!(!outcomes(&counts).iter().any(|(_, o)| *o == "Wrong" || *o == "Stale"), "{counts:?}");
}

#[test]
fn ids_and_tags_get_a_prefix() {
    let store = Memory::default();
    let plan = AppCache { magento: Layer::None, ..workload(&[&[("clean", 1.0)]]) };
    let ledger = Arc::new(Ledger::drawn(&plan, 42, 1));
    let share = Share { seed: 42, client: 0, clients: 1, prefix: "run:".into() };
    let mut client = AppCacheClient::new(Box::new(store.clone()), plan, share, ledger);
    while client.fill_next().unwrap() {}
    client.start_phase(0);
    let named = |text: &String| text.starts_with("run:") && text.len() > 4;
    let all_named = |content: &Content| {
        content.records.iter().all(|(id, r)| named(id) && r.tags.iter().all(named))
    };
    assert!(all_named(&store.content()));
    let before = store.content().records.len();
    operate(&mut client, 0).unwrap();
    assert!(store.content().records.len() < before);
    client.restore();
    assert_eq!(store.content().records.len(), before);
    assert!(all_named(&store.content()));
}

#[test]
fn the_requirements_of_backends_are_met() {
    let plan = AppCache { tags: 1200, ..workload(&[&[("read", 1.0)]]) };
    let store = Memory::default();
    let ledger = Arc::new(Ledger::drawn(&plan, 5, 1));
    let share = Share { seed: 5, client: 0, clients: 1, prefix: String::new() };
    let mut client =
        AppCacheClient::new(Box::new(store.clone()), plan.clone(), share, ledger.clone());
    client.introduce_tags().unwrap();
    assert!(store.content().tags_used.is_empty(), "only if new tags race");
    store.content().has_requirements = true;
    client.introduce_tags().unwrap();
    // The tags of the data set, and the one added by Magento.
    assert_eq!(store.content().tags_used.len(), 1201);
    assert!(store.content().records.is_empty());
    while client.fill_next().unwrap() {}
    client.start_phase(0);
    for n in 0..50 {
        operate(&mut client, n).unwrap();
    }
    let content = store.content();
    assert!(!content.learned_tags.is_empty());
    assert!(content.learned_tags.iter().all(|(id, tags)| content.records[id].tags == *tags));
}

#[test]
fn effort_is_counted_by_call() {
    let store = Memory::default();
    let plan = workload(&[&[("read", 1.0)], &[("write", 1.0)], &[("clean", 1.0)]]);
    let mut clients = filled(&plan, &store, 1);
    let asked = [(1, 1), (2, 4), (2, 0)];
    for (phase, (round_trips, commands)) in asked.into_iter().enumerate() {
        clients[0].start_phase(phase);
        for n in 0..3 {
            clients[0].prepare(n, 0);
            clients[0].draw();
            let effort = clients[0].call().unwrap().effort;
            assert_eq!(effort, Effort { round_trips, commands, files: 0 });
            clients[0].check();
        }
    }
}

/// Counts of outcomes with a store that becomes faulty after the fill.
fn faulty(fault: Fault, magento: Layer, mix: &[(&str, f64)]) -> BTreeMap<String, u64> {
    let store = Memory::default();
    let plan = AppCache { magento, record_bytes: (12, 64), ..workload(&[mix]) };
    let mut clients = filled(&plan, &store, 2);
    store.misbehave(fault);
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for ((_, outcome), count) in run(&mut clients, 1000) {
        *counts.entry(outcome).or_default() += count;
    }
    counts
}

#[test]
fn every_fault_is_detected() {
    let mix = [("read", 5.0), ("write", 5.0)];
    for (fault, outcome) in [
        (Fault::KeepsOld, "Stale"),
        (Fault::Truncates, "Wrong"),
        (Fault::Garbles, "Wrong"),
        (Fault::Swaps, "Wrong"),
        (Fault::Forgets, "Lost"),
    ] {
        let counts = faulty(fault, Layer::None, &mix);
        assert!(counts.get(outcome).is_some_and(|n| *n > 300), "{fault:?}: {counts:?}");
        // Magento's write check detects most of them on its own, and removes the record.
        let counts = faulty(fault, Layer::One, &mix);
        assert!(counts.get(outcome).is_some_and(|n| *n > 300), "{fault:?}: {counts:?}");
    }
    let counts = faulty(Fault::KeepsCleaned, Layer::One, &[]);
    assert!(counts.get("Stale").is_some_and(|n| *n > 100), "{counts:?}");
    assert_eq!(counts.get("Wrong"), None);
}

/// Counts of what all records contain at the end, by kind.
fn held(clients: &mut [AppCacheClient]) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for client in clients {
        for n in 0..client.share.of(300) {
            if let Some((held, _)) = client.read_back(n, 300).unwrap() {
                *counts.entry(format!("{held:?}")).or_default() += 1;
            }
        }
    }
    counts
}

/// The same after two clients used such a store, which becomes faulty after the fill.
fn held_after(
    mix: &[(&str, f64)],
    magento: Layer,
    fault: Fault,
    has: impl Fn(&mut Content),
) -> BTreeMap<String, u64> {
    let store = Memory::default();
    has(&mut store.content());
    let plan = AppCache { magento, record_bytes: (12, 64), ..workload(&[mix]) };
    let mut clients = filled(&plan, &store, 2);
    store.misbehave(fault);
    run(&mut clients, 1000);
    held(&mut clients)
}

const WRITES: [(&str, f64); 2] = [("read", 1.0), ("write", 1.0)];
const CLEANS: [(&str, f64); 3] = [("read", 5.0), ("write", 4.0), ("clean", 1.0)];

#[test]
fn lost_saves_are_missing_at_the_end() {
    for mix in [&WRITES[..], &CLEANS] {
        for magento in [Layer::None, Layer::One] {
            let counts = held_after(mix, magento, Fault::LosesOneIn(10), |_| {});
            assert!(
                counts["Missing"] > 5 && counts["Last"] > 100,
                "{magento:?} {mix:?}: {counts:?}"
            );
            // The old record may not exist; Magento's layer removes values that differ.
            let counts = held_after(mix, magento, Fault::KeepsOldOneIn(10), |_| {});
            let lost = ["Missing", "Older"].map(|kind| counts.get(kind).copied().unwrap_or(0));
            assert!(
                lost[0] + lost[1] > 5 && counts["Last"] > 100,
                "{magento:?} {mix:?}: {counts:?}"
            );
            assert!(magento == Layer::None || lost[1] == 0, "{mix:?}: {counts:?}");
        }
    }
}

#[test]
fn records_that_a_layout_may_lose_are_not_missing() {
    let lost = |mix: &[(&str, f64)], has: fn(&mut Content)| {
        [Layer::None, Layer::One].map(|magento| {
            let counts = held_after(mix, magento, Fault::LosesOneIn(10), has);
            assert!(counts["Last"] > 100, "{counts:?}");
            counts.contains_key("Missing")
        })
    };
    assert_eq!(lost(&WRITES, |c| c.load_effect = LoadEffect::Removes), [false, false]);
    assert_eq!(lost(&CLEANS, |c| c.load_effect = LoadEffect::Copies), [true, true]);
    // New tags race only if cleans remove tags.
    assert_eq!(lost(&CLEANS, |c| c.has_requirements = true), [false, false]);
    assert_eq!(lost(&WRITES, |c| c.has_requirements = true), [true, true]);
    // The value loaded back may be a copy of the old one.
    let missing = |effect| {
        let has = |c: &mut Content| c.load_effect = effect;
        let counts = held_after(&WRITES, Layer::One, Fault::KeepsOldOneIn(10), has);
        counts.get("Missing").copied().unwrap_or(0)
    };
    assert!(missing(LoadEffect::Nothing) > 4 * missing(LoadEffect::Copies));
}

#[test]
fn a_sample_finds_garbled_values_at_its_rate() {
    let store = Memory::default();
    let plan =
        AppCache { verify_one_in: 8, record_bytes: (12, 64), ..workload(&[&[("read", 1.0)]]) };
    let mut clients = filled(&plan, &store, 1);
    for stored in store.content().records.values_mut() {
        *stored.value.last_mut().unwrap() ^= 0x80;
    }
    let counts = run(&mut clients, 4000);
    let wrong = counts[&(READ, "Wrong".to_string())];
    assert!((400..600).contains(&wrong), "{counts:?}");
}

#[test]
fn after_failed_writes_nothing_is_stale() {
    let store = Memory::default();
    let plan = AppCache { magento: Layer::None, ..workload(&[&[("read", 1.0), ("write", 1.0)]]) };
    let mut clients = filled(&plan, &store, 2);
    store.misbehave(Fault::FailsToSave);
    for n in 0..2000 {
        for client in &mut clients {
            match operate(client, n) {
                Ok((operation, outcome)) => {
                    assert_eq!((operation, outcome), (READ, Outcome::Ok));
                }
                Err(e) => assert_eq!(e.class, ErrorClass::Timeout),
            }
        }
    }
}

#[test]
fn a_shop_goes_on_without_records_that_are_too_large() {
    let store = Memory::default();
    store.misbehave(Fault::RefusesAbove(32));
    let mix = [("read", 1.0), ("write", 1.0), ("clean", 0.1)];
    let plan = AppCache { magento: Layer::None, ..workload(&[&mix]) };
    let mut clients = filled(&plan, &store, 2);
    let stored = store.content().records.len();
    assert!((100..200).contains(&stored), "{stored} of 300");
    let mut counts: BTreeMap<(usize, String), u64> = BTreeMap::new();
    let mut refused = 0;
    for n in 0..2000 {
        for client in &mut clients {
            match operate(client, n) {
                Ok((call, outcome)) => {
                    *counts.entry((call, format!("{outcome:?}"))).or_default() += 1;
                }
                Err(e) => {
                    assert_eq!(e.class, ErrorClass::TooLarge);
                    refused += 1;
                }
            }
        }
    }
    let of = |operation, outcome: Outcome| {
        counts.get(&(operation, format!("{outcome:?}"))).copied().unwrap_or(0)
    };
    assert!(refused > 500 && of(READ, Outcome::Miss) > 500, "{counts:?}");
    assert!(of(READ, Outcome::Ok) > 500 && of(WRITE, Outcome::Ok) > 500, "{counts:?}");
    assert_eq!(of(READ, Outcome::Lost), 0, "a refused record is not lost");
}

#[test]
fn a_failed_clean_explains_misses() {
    let store = Memory::default();
    let plan = workload(&[&[("clean", 1.0)], &[("read", 1.0)]]);
    let mut clients = filled(&plan, &store, 1);
    store.misbehave(Fault::FailsToClean);
    for n in 0..400 {
        assert!(operate(&mut clients[0], n).is_err());
    }
    store.content().records.retain(|_, stored| stored.tags.len() == 1);
    clients[0].to_restore = None;
    clients[0].start_phase(1);
    let counts = run(&mut clients, 500);
    assert_eq!(outcomes(&counts), [(READ, "Miss"), (READ, "Ok")]);
}

#[test]
fn an_error_of_restoring_is_reported_by_the_next_call() {
    let store = Memory::default();
    let plan = workload(&[&[("clean", 1.0)]]);
    let mut clients = filled(&plan, &store, 1);
    assert!(operate(&mut clients[0], 0).is_ok());
    store.misbehave(Fault::FailsToSave);
    assert_eq!(operate(&mut clients[0], 1).unwrap_err().message, "on purpose");
}

#[test]
fn a_client_without_a_list_fails() {
    let store = Memory::default();
    let plan = workload(&[&[]]);
    let lists = Lists::Read(vec![vec![Operation::Clean(0)]]);
    let ledger = Arc::new(Ledger::new(DataSet::drawn(&plan, 1), lists, &plan, 2));
    for (client, ends) in [(0, true), (1, false)] {
        let share = Share { seed: 1, client, clients: 2, prefix: String::new() };
        let ledger = ledger.clone();
        let mut client = AppCacheClient::new(Box::new(store.clone()), plan.clone(), share, ledger);
        client.start_phase(0);
        assert_eq!(operate(&mut client, 5).is_ok(), ends);
    }
}

#[test]
fn overlapping_clients_never_report_a_fault_of_a_correct_store() {
    let store = Memory::default();
    for magento in [Layer::None, Layer::One] {
        let mix = [("read", 6.0), ("write", 3.0), ("clean", 1.0)];
        // Few records, so clients collide.
        let plan = AppCache { keys: 20, tags: 8, magento, ..workload(&[&mix, &[]]) };
        let mut clients = filled(&plan, &store, 4);
        std::thread::scope(|scope| {
            for client in &mut clients {
                scope.spawn(move || {
                    for phase in 0..2 {
                        client.start_phase(phase);
                        for n in 0..5000 {
                            let (_, outcome) = operate(client, n).unwrap();
                            assert!(matches!(outcome, Outcome::Ok | Outcome::Miss), "{outcome:?}");
                        }
                    }
                });
            }
        });
        let counts = held(&mut clients);
        assert!(counts.keys().all(|kind| kind == "Last"), "{counts:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn any_interleaving_on_a_correct_store_is_correct(
        order in prop::collection::vec(0..3usize, 1..600)
    ) {
        // Three steps of a client: prepare, call, check.
        let store = Memory::default();
        let mix = [("read", 3.0), ("write", 2.0), ("clean", 1.0)];
        let plan = AppCache { keys: 4, tags: 3, tags_of_record: (0, 3), magento: Layer::None,
            ..workload(&[&mix]) };
        let mut clients = filled(&plan, &store, 3);
        let mut stage = [0u8; 3];
        let mut count = [0u64; 3];
        for who in order {
            let client = &mut clients[who];
            match stage[who] {
                0 => {
                    client.restore();
                    client.prepare(count[who], 0);
                    client.draw();
                }
                1 => drop(client.call().unwrap()),
                _ => {
                    let outcome = client.check().0;
                    prop_assert!(matches!(outcome, Outcome::Ok | Outcome::Miss), "{:?}", outcome);
                    count[who] += 1;
                }
            }
            stage[who] = (stage[who] + 1) % 3;
        }
    }
}

/// Runs all calls of an operation; returns their kinds and outcomes.
fn operate_all(client: &mut AppCacheClient, n: u64) -> Vec<(usize, Outcome)> {
    client.restore();
    let calls = 0..client.calls(n);
    let one = |call| {
        let plan = client.prepare(n, call);
        client.draw();
        client.call().unwrap();
        (plan.operation, client.check().0)
    };
    calls.map(one).collect()
}

#[test]
fn a_page_view_is_some_loads_and_then_saves() {
    let store = Memory::default();
    let mut clients = filled(&workload(&[&[("page", 1.0)]]), &store, 1);
    for n in 0..50 {
        let calls = operate_all(&mut clients[0], n);
        let kinds: Vec<usize> = calls.iter().map(|(kind, _)| *kind).collect();
        assert_eq!(kinds, [READ, READ, READ, WRITE], "page_reads and page_writes of the workload");
        assert!(calls.iter().all(|(_, outcome)| *outcome == Outcome::Ok), "{calls:?}");
    }
    let client = &clients[0];
    let page = client.choose(7).unwrap();
    let call = |call| page.call(call, &client.workload, &client.ledger);
    assert_ne!(call(0), call(1), "each load chooses a record of its own");
    assert_eq!(client.choose(7), Some(page), "a pure function of n");
}

#[test]
fn a_purchase_cleans_and_writes_all_records_of_the_tag_again() {
    let store = Memory::default();
    let mut clients = filled(&workload(&[&[("purchase", 1.0)]]), &store, 2);
    let (before, mut rewritten) = (store.content().records.len(), 0);
    for n in 0..40 {
        for client in &mut clients {
            let calls = operate_all(client, n);
            assert_eq!(calls[0], (CLEAN, Outcome::Ok));
            rewritten += calls.len() - 1;
            assert!(calls[1..].iter().all(|call| *call == (WRITE, Outcome::Ok)), "{calls:?}");
            assert!(!client.restore(), "nothing is left to restore");
            assert_eq!(store.content().records.len(), before);
        }
    }
    // 300 records with 7.4 of 40 tags on average.
    assert!((80 * 40..80 * 70).contains(&rewritten), "{rewritten}");
}

#[test]
fn an_interrupted_purchase_is_restored() {
    let store = Memory::default();
    let mut clients = filled(&workload(&[&[("purchase", 1.0)]]), &store, 1);
    let before = store.content().records.len();
    let client = &mut clients[0];
    let n = (0..100).find(|n| client.calls(*n) > 3).unwrap();
    client.prepare(n, 0);
    client.call().unwrap();
    client.check();
    client.prepare(n, 1);
    client.draw();
    store.misbehave(Fault::FailsToSave);
    assert!(client.call().is_err());
    store.content().fault = None;
    assert!(client.restore());
    assert_eq!(store.content().records.len(), before);
}
