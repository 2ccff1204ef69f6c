use super::*;
use model::{Arrivals, KvOperation, Schedule};
use std::collections::BTreeMap;

/// Keys with values of `value_bytes`, set and read by ten clients.
pub(crate) fn kv(keys: u64, value_bytes: &str) -> (Kv, Load) {
    let operation = |name: &str| KvOperation { name: name.into(), command: None };
    let kv = Kv {
        profile: "p".into(),
        operations: vec![operation("get"), operation("set")],
        keys,
        distribution: "uniform".into(),
        key_prefix: "key:".into(),
        key_bytes: None,
        value_bytes: value_bytes.into(),
        ttl_s: 0,
        filled_share: 1.0,
        verify_one_in: 1,
        threads: 1,
        think_ns: 0,
        phases: vec![phase(&[("get", 1.0), ("set", 1.0)], Stop::AfterNs(2_000_000_000))],
        ..Kv::default()
    };
    (kv, Load::closed(10))
}

fn phase(mix: &[(&str, f64)], stop: Stop) -> Phase {
    let mix: BTreeMap<String, f64> = mix.iter().map(|(n, w)| (n.to_string(), *w)).collect();
    Phase { name: "mixed".into(), mix, warmup_ns: 1_000_000_000, stop, control: None }
}

fn data_bytes((kv, load): &(Kv, Load)) -> u64 {
    of_kv(kv, load, "own-").unwrap().data_bytes
}

#[test]
fn a_key_takes_its_name_its_value_and_overhead() {
    // 20 bytes of name and 1,000 of value, plus a quarter for rounding, plus 100.
    assert_eq!(data_bytes(&kv(10, "1000")), 10 * (1275 + 100));
    let (mut kv, load) = kv(10, "1000");
    kv.ttl_s = 60;
    assert_eq!(data_bytes(&(kv.clone(), load.clone())), 10 * (1275 + 160));
    kv.filled_share = 0.0;
    kv.operations.retain(|o| o.name == "get");
    assert_eq!(data_bytes(&(kv, load)), 0, "reads alone");
}

#[test]
fn a_block_of_the_disk_itself_takes_no_more_than_its_value() {
    let (kv, load) = kv(10, "4096");
    let demand = of_kv(&kv, &load, "own-").unwrap().of_blocks(&kv).unwrap();
    let (bytes, sum) = demand.on_disk();
    assert_eq!(bytes, 10 * 4096);
    assert_eq!(sum, "10 blocks of 4 KiB, rounded up to blocks of 4 KiB");
}

#[test]
fn tags_in_links_take_blocks_of_their_own() {
    assert_eq!(tag_files(10, 5.0), 10 * (5 + 5 + 5 + 1));
    assert_eq!(tag_files(10, 10_000.0), 10 * (10_000 + 1_444 + 38 + 1));
    let (kv, load) = kv(10, "1000");
    let demand = of_kv(&kv, &load, "own-").unwrap();
    let (bytes, without) = demand.on_disk();
    let (with_tags, sum) = Demand { tag_files: 7, ..demand }.on_disk();
    assert_eq!(with_tags, bytes + 7 * BLOCK_BYTES);
    assert_eq!(sum, without + ", and 7 links and directories of tags");
}

#[test]
fn buffers_count_for_all_clients() {
    let (kv, load) = kv(10, "1000-3000");
    let demand = of_kv(&kv, &load, "own-").unwrap();
    assert_eq!(demand.buffer_bytes, 10 * (2 * 3000 + (32 << 10)));
    assert_eq!(demand.bytes_on_one_of(1), demand.data_bytes + demand.buffer_bytes);
}

#[test]
fn added_keys_count_if_they_have_a_bound() {
    let (mut kv, closed) = kv(10, "1000");
    let operation = |name: &str, command: Option<&str>| KvOperation {
        name: name.into(),
        command: command.map(Into::into),
    };
    kv.operations = vec![operation("get", None), operation("insert", None)];
    kv.phases = vec![phase(&[("get", 3.0), ("insert", 1.0)], Stop::AfterNs(2_000_000_000))];
    assert_eq!(data_bytes(&(kv.clone(), closed.clone())), 10 * 1375, "no bound");
    // On a shared server: ten clients, a quarter of the requests, three seconds.
    let at_most = |load: &Load| {
        let demand = of_kv(&kv, load, "own-").unwrap();
        demand.with_load().data_bytes / 1375
    };
    assert_eq!(at_most(&closed), 10 + 10 * 33_000 / 4 * 3);
    assert_eq!(at_most(&Load::closed(100)), 10 + 500_000 / 4 * 3);
    let open = Load::planned(Arrivals::Poisson, Schedule::Steady(100), 10);
    // A quarter of 100/s for three seconds, including warm-up.
    assert_eq!(data_bytes(&(kv.clone(), open.clone())), 85 * 1375);
    // The rate of the peak phase and of its control phases is unknown in advance.
    let mut peak = kv.clone();
    peak.phases[0].name = model::PEAK.into();
    assert_eq!(data_bytes(&(peak, open)), data_bytes(&(kv.clone(), Load::closed(10))));
    kv.phases[0].stop = Stop::Count(8);
    assert_eq!(data_bytes(&(kv.clone(), closed.clone())), 30 * 1375);
    kv.operations[1] = operation("insert", Some("LPUSH __key__ __data__"));
    assert_eq!(data_bytes(&(kv.clone(), closed.clone())) / 1375, 30);
    kv.operations[1] = operation("insert", Some("SET __key__ __data__"));
    assert_eq!(data_bytes(&(kv, closed)) / 1375, 10);
}

#[test]
fn keys_of_a_cluster_are_spread_unless_a_hash_tag_keeps_them_together() {
    let (mut kv, load) = kv(1000, "1000");
    let on_one = |kv: &Kv| {
        let demand = of_kv(kv, &load, "own-").unwrap();
        demand.bytes_on_one_of(5) - demand.buffer_bytes
    };
    assert_eq!(on_one(&kv), 1000 * 1375 / 4);
    kv.key_prefix = "{a}:".into();
    assert_eq!(on_one(&kv), 1000 * 1375);
}
