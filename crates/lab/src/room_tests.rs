use super::*;
use model::{Cell, Workload};

const MIB: u64 = 1 << 20;

fn room(used_mib: u64, limit_mib: u64) -> MemoryStats {
    MemoryStats {
        server: "h:1".into(),
        used_bytes: Some(used_mib * MIB),
        limit_bytes: Some(limit_mib * MIB),
        system_bytes: Some(1000 * MIB),
        policy: Some("allkeys-lru".into()),
        keys: Some(7),
        evicted: Some(3),
        by_size_class: false,
    }
}

fn left(rooms: &[MemoryStats]) -> Result<Option<u64>, String> {
    left_bytes(&[room(10, 100)], rooms).map_err(|failure| failure.message)
}

#[test]
fn nine_tenths_of_the_tightest_limit_may_be_used() {
    assert_eq!(left(&[room(40, 100)]), Ok(Some(50 * MIB)));
    assert_eq!(left(&[room(90, 100)]), Ok(Some(0)));
    // The fullest server of a cluster decides.
    let other = MemoryStats { server: "h:2".into(), ..room(80, 100) };
    assert_eq!(left(&[room(40, 100), other]), Ok(Some(20 * MIB)));
    // Without a limit, and with one above the machine's memory.
    assert_eq!(left(&[room(40, 0)]), Ok(Some(860 * MIB)));
    assert_eq!(left(&[room(40, 5000)]), Ok(Some(860 * MIB)));
}

#[test]
fn only_a_limit_below_the_memory_of_the_machine_protects_it() {
    assert!(have_own_limit(&[room(40, 100)]));
    assert!(!have_own_limit(&[room(40, 100), room(40, 0)]));
    assert!(!have_own_limit(&[room(40, 5000)]));
    let unknown = MemoryStats { system_bytes: None, ..room(40, 100) };
    assert!(!have_own_limit(std::slice::from_ref(&unknown)));
    assert!(have_own_limit(&[MemoryStats { by_size_class: true, ..unknown }]));
}

#[test]
fn full_memory_or_an_eviction_ends_the_trial() {
    let full = left(&[room(91, 100)]).unwrap_err();
    for part in ["91 MiB of h:1", "90 MiB", "its maxmemory of 100 MiB", "allkeys-lru"] {
        assert!(full.contains(part), "no `{part}` in {full}");
    }
    let evicted = left(&[MemoryStats { evicted: Some(5), ..room(40, 100) }]).unwrap_err();
    assert!(evicted.contains("evicted 2 keys"), "{evicted}");
    // A restarted server counts from 0.
    assert_eq!(left(&[MemoryStats { evicted: Some(0), ..room(40, 100) }]), Ok(Some(50 * MIB)));
}

#[test]
fn missing_memory_figures_are_unknown() {
    assert_eq!(left(&[MemoryStats { used_bytes: None, ..room(40, 100) }]), Ok(None));
    assert_eq!(left(&[MemoryStats { limit_bytes: None, ..room(40, 100) }]), Ok(None));
    assert_eq!(left(&[MemoryStats { system_bytes: None, ..room(40, 0) }]), Ok(None));
    assert_eq!(
        left(&[MemoryStats { system_bytes: None, ..room(40, 100) }]),
        Ok(Some(50 * MIB)),
        "its own limit is enough"
    );
}

#[test]
fn polling_is_faster_when_less_memory_is_left() {
    assert_eq!(pause(0), ASKED_WITHIN.0);
    assert_eq!(pause(4 * MIB), Duration::from_millis(10));
    assert_eq!(pause(u64::MAX), ASKED_WITHIN.1);
}

pub(crate) fn demand(keys: u64) -> Demand {
    let (kv, load) = crate::demand::tests::kv(keys, "1000");
    let cell = Cell { id: "x".into(), target: "x".into(), workload: Workload::Kv(kv), load };
    Demand::of(&cell, "own-").unwrap()
}

#[test]
fn a_refusal_states_the_estimate_and_the_cure() {
    let endpoint = Endpoint::parse("redis://:hush@h:1/9").unwrap();
    let fits =
        |room: MemoryStats, keys| fits(&endpoint, &[room], demand(keys)).map_err(|f| f.message);
    assert_eq!(fits(room(40, 100), 10_000), Ok(()));
    let refused = fits(room(40, 100), 100_000).unwrap_err();
    for part in [
        "database 9",
        "40 MiB of h:1 are in use by 7 keys in all databases",
        "100000 keys",
        "at most 90 MiB",
        "90 % of its maxmemory of 100 MiB",
        "policy `allkeys-lru` evicts keys of every database",
        "--keys",
        "--value",
        "--i-own-this-server",
    ] {
        assert!(refused.contains(part), "no `{part}` in {refused}");
    }
    assert!(!refused.contains("hush"), "{refused}");
    let failing = MemoryStats { policy: Some("noeviction".into()), ..room(40, 100) };
    assert!(fits(failing, 100_000).unwrap_err().contains("makes all writes fail"));
    assert!(fits(room(40, 0), 1_000_000).unwrap_err().contains("it has no maxmemory"));
    let silent = MemoryStats { used_bytes: None, ..room(40, 100) };
    let refused = fits(silent, 1).unwrap_err();
    assert!(refused.contains("does not report how much memory is left"), "{refused}");
}
