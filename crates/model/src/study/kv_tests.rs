use super::*;
use crate::BackgroundWrite::Save;
use crate::study::planning::tests::choices;
use crate::study::{Choices, TargetChoice};
use crate::{Plan, Scale};

const BEYOND_RAM: &str = include_str!("../../../../studies/beyond-ram.toml");

fn planned(sets: &[(&str, &str)], targets: &[&str]) -> Result<Plan, StudyError> {
    let sets = sets.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
    let targets = targets.iter().map(|text| TargetChoice::parse(text).unwrap()).collect();
    Study::parse("b", BEYOND_RAM).unwrap().plan(&Choices { sets, targets, ..choices() })
}

fn kv<'a>(plan: &'a Plan, target: &str) -> &'a Kv {
    kv_of(plan.cells.iter().find(|cell| cell.target == target).unwrap())
}

fn kv_of(cell: &Cell) -> &Kv {
    match &cell.workload {
        Workload::Kv(kv) => kv,
        other => panic!("{other:?}"),
    }
}

#[test]
fn each_profile_measures_its_own_targets() {
    let plan = planned(&[("profile", "swap,stores")], &[]).unwrap();
    let ids: Vec<&str> = plan.cells.iter().map(|cell| cell.id.as_str()).collect();
    assert_eq!(
        ids,
        [
            "redis/swap-0.9/50",
            "redis/swap-1.1/50",
            "redis/swap-1.5/50",
            "redis/stores/50",
            "redis-lru/stores/50",
            "memcached-flash/stores/50"
        ]
    );
    // A target of no chosen profile is left out, unless the user named it.
    let save = planned(&[("profile", "save")], &[]).unwrap();
    let names: Vec<&str> = save.targets.iter().map(|target| target.name.as_str()).collect();
    assert_eq!(names, ["redis"]);
    let error = planned(&[("profile", "save")], &["redis-lru"]).unwrap_err().to_string();
    assert!(error.starts_with("target `redis-lru` is measured by none of the chosen"), "{error}");
    // Another program in place of a listed store is measured like it.
    let valkey = planned(&[("profile", "swap")], &["valkey"]).unwrap();
    assert!(valkey.cells.iter().all(|cell| cell.target == "valkey") && valkey.cells.len() == 3);
}

#[test]
fn settings_can_be_shares_of_the_memory() {
    let plan = planned(&[("profile", "stores"), ("memory", "100MiB")], &[]).unwrap();
    let setting = |target: &str, name: &str| plan.target(target).unwrap().settings[name].clone();
    assert_eq!(setting("redis-lru", "maxmemory"), (70 << 20).to_string());
    assert_eq!(setting("memcached-flash", "memory"), "70");
    assert_eq!(setting("memcached-flash", "flash"), "800");
    let drops: Vec<bool> = plan.cells.iter().map(|cell| plan.drops_keys(cell)).collect();
    assert_eq!(drops, [false, true, true]);
    let wrong = planned(&[("profile", "stores"), ("redis.maxmemory", "0% of memory")], &[]);
    assert_eq!(
        wrong.unwrap_err().to_string(),
        "setting `maxmemory` of target `redis` is `0% of memory` (expected 1 to 10000% of memory)"
    );
    let sessions = include_str!("../../../../studies/sessions.toml");
    let sets = vec![("redis.maxmemory".to_string(), "50% of memory".to_string())];
    let sessions = Study::parse("s", sessions).unwrap();
    let error = sessions.plan(&Choices { sets, ..choices() }).unwrap_err().to_string();
    assert!(error.contains("(expected an amount: this study limits no memory)"), "{error}");
}

#[test]
fn keys_and_values_of_a_profile_replace_those_of_the_study() {
    let plan = planned(&[("profile", "pipelined")], &[]).unwrap();
    let small = kv(&plan, "redis");
    // 84 bytes beside the value: the entry, and 32 for the name.
    assert_eq!((small.value_bytes.as_str(), small.keys), ("3", (96 << 20) / 108));
    assert_eq!(small.distribution, "uniform");
    let plan = planned(&[("profile", "stores-zipf")], &["redis"]).unwrap();
    assert_eq!(kv(&plan, "redis").distribution, "zipf:0.99");
}

#[test]
fn faults_of_a_profile_are_located() {
    for (from, to, problem) in [
        ("targets = [\"redis\"]", "targets = [\"rediss\"]", "unknown target `rediss`"),
        ("value_bytes = [3]", "value_bytes = [0]", "value_bytes must be 1 to 16777216"),
        ("zipf = 0.99", "zipf = 9", "zipf must be a number above 0, up to 5"),
        ("data = [2.0]", "data = []", "data must be numbers above 0, up to 64"),
        ("save_at = 0.25", "save_at = 1.0", "save_at must be a share from 0 to below 1"),
    ] {
        assert!(BEYOND_RAM.contains(from), "{from}");
        let error = Study::parse("b", &BEYOND_RAM.replacen(from, to, 1)).unwrap_err();
        let StudyError::Located { problem: found, .. } = &error else { panic!("{error}") };
        assert!(found.contains(problem), "{found}");
    }
}

#[test]
fn a_rewrite_is_measured_on_the_store_with_a_log() {
    let plan = planned(&[("profile", "rewrite,stores")], &[]).unwrap();
    let of = |profile: &str| {
        let own = plan.cells.iter().filter(|cell| cell.workload.profile() == profile);
        own.map(|cell| cell.target.clone()).collect::<Vec<_>>()
    };
    assert_eq!(of("rewrite"), ["redis-aof"]);
    // A target on request is measured only where a profile or the user names it.
    assert_eq!(of("stores"), ["redis", "redis-lru", "memcached-flash"]);
    let thp = planned(&[("profile", "save-thp")], &[]).unwrap();
    assert_eq!(thp.target("redis-thp").unwrap().settings["disable-thp"], "no");
    assert_eq!((thp.cells.len(), kv(&thp, "redis")), (2, kv(&thp, "redis-thp")));
    let Kv { phases, actions, .. } = kv(&plan, "redis-aof");
    let [Action { phase, at_ns: 2_000_000_000, what: Act::Rewrite, .. }] = &actions[..] else {
        panic!("{actions:?}")
    };
    assert_eq!(phase, &phases[0].name);
    let named = planned(&[("profile", "stores")], &["redis", "redis-aof"]).unwrap();
    assert_eq!(named.cells.len(), 2);
    let error = planned(&[("profile", "rewrite")], &["memcached"]).unwrap_err().to_string();
    assert!(error.contains("measured by none of the chosen"), "{error}");
    let wrong = BEYOND_RAM.replacen("rewrite_at = 0.25", "rewrite_at = 1.5", 1);
    let error = Study::parse("b", &wrong).unwrap_err().to_string();
    assert!(error.contains("rewrite_at must be a share from 0 to below 1"), "{error}");
}

#[test]
fn swap_can_have_a_directory_of_its_own() {
    let sets = [("profile", "save-swap"), ("swap_dir", "/mnt/swap")];
    let plan = planned(&sets, &[]).unwrap();
    assert_eq!(plan.swap_dir.as_deref(), Some(std::path::Path::new("/mnt/swap")));
    assert!(plan.cells.iter().all(|c| c.workload.swaps() && c.workload.requests(Save)));
    let error = planned(&[("profile", "save"), sets[1]], &[]).unwrap_err().to_string();
    assert!(error.contains("none of the chosen profiles swaps"), "{error}");
    let error = planned(&[sets[0], ("swap_dir", "swap")], &[]).unwrap_err().to_string();
    assert!(error.contains("(expected an absolute directory on a disk)"), "{error}");
    assert_eq!(planned(&sets[..1], &[]).unwrap().swap_dir, None);
}

#[test]
fn collections_have_a_stated_size() {
    let plan = planned(&[("profile", "hashes,lists-swap")], &[]).unwrap();
    let ids: Vec<&str> = plan.cells.iter().map(|cell| cell.id.as_str()).collect();
    assert_eq!(ids, ["redis/hashes/50", "redis/lists-swap/50"]);
    let kvs: Vec<&Kv> = plan.cells.iter().map(kv_of).collect();
    let fill = kvs[0].fill().unwrap();
    assert!(fill.starts_with("HSET __key__ field:0 __data__ field:1 __data__ "), "{fill}");
    assert_eq!(fill.matches("__data__").count(), 10);
    assert_eq!(kvs[1].fill().unwrap().matches("__data__").count(), 100);
    let names = |kv: &Kv| kv.operations.iter().map(|o| o.name.clone()).collect::<Vec<_>>();
    let phases = |kv: &Kv| kv.phases.iter().map(|phase| phase.name.clone()).collect::<Vec<_>>();
    assert_eq!(
        (names(kvs[0]), phases(kvs[0])),
        (vec!["fill".into(), "hget".into(), "hset".into()], vec!["hset".into(), "hget".into()])
    );
    // Redis 7 reports 861 bytes a hash: ten fields of 7 and 64 bytes, each with its lengths, and
    // the key.
    let key_bytes = (96 << 20) / kvs[0].keys;
    assert_eq!(key_bytes, 860);
    for (from, to, problem) in [
        ("operations = [\"hset\", \"hget\"]", "operations = [\"set\"]", "commands of its"),
        ("create = \"HSET __key__\"", "create = \"HSET k\"", "create must have the argument"),
        ("element = \"__data__\"", "element = \"x\"", "element must have the argument"),
        ("elements = 10\n", "elements = 1001\n", "elements must be 1 to 1000"),
        ("hget = \"HGET __key__", "hget = \"HGET k", "command `hget` must have a name"),
        ("hget = ", "fill = ", "command `fill` must have a name"),
    ] {
        assert!(BEYOND_RAM.contains(from), "{from}");
        let error = Study::parse("b", &BEYOND_RAM.replacen(from, to, 1)).unwrap_err().to_string();
        assert!(error.contains(problem), "{error}");
    }
}

#[test]
fn the_disk_itself_has_whole_blocks_and_is_no_store() {
    let plan = planned(&[("profile", "stores,device"), ("memory", "64MiB")], &[]).unwrap();
    let ids: Vec<&str> = plan.cells.iter().map(|cell| cell.id.as_str()).collect();
    assert_eq!(ids.iter().filter(|id| id.contains("stores")).count(), 3, "{ids:?}");
    assert_eq!(ids[3..], ["disk/device-1/50", "disk/device-4/50"]);
    assert_eq!(kv(&plan, "disk").keys, (64 << 20) / 4096);
    // Each client is a thread, and fills as fast as it can.
    assert_eq!((kv(&plan, "disk").threads, kv(&plan, "redis").threads), (50, 1));
    let files = planned(&[("profile", "stores")], &["files"]).unwrap();
    assert_eq!((kv(&files, "files").threads, kv(&files, "files").fill_per_s), (50, 0));
    let odd = planned(&[("profile", "device"), ("value_bytes", "5000")], &["disk"]);
    let odd = odd.unwrap_err().to_string();
    assert!(odd.contains("have 5000 bytes (expected a multiple of 4096:"), "{odd}");
    let in_order = planned(&[("profile", "device-in-order")], &[]).unwrap();
    assert_eq!(kv(&in_order, "disk").distribution, "sequential");
}

#[test]
fn a_scale_has_its_own_profiles_and_a_deadline_beyond_them() {
    let study = Study::parse("b", BEYOND_RAM).unwrap();
    let standard = study.plan(&Choices { scale: Scale::Standard, ..choices() }).unwrap();
    assert_eq!(standard.profiles, ["save", "swap", "stores", "device"]);
    let quick = study.plan(&Choices { scale: Scale::Quick, ..choices() }).unwrap();
    assert_eq!(quick.profiles, ["save", "swap", "stores"]);
    // Eight times a second, 0.2 s of warm-up, and a minute for the rest.
    assert_eq!(kv_of(&quick.cells[0]).deadline_ns, 68_200_000_000);
    let unknown = BEYOND_RAM.replace(r#""stores", "device"]"#, r#""stores", "devices"]"#);
    let error = Study::parse("b", &unknown).unwrap_err().to_string();
    assert!(error.contains("unknown profile `devices`"), "{error}");
}

#[test]
fn a_server_at_a_url_keeps_its_memory() {
    let plan = planned(&[("profile", "stores")], &["redis", "kvrocks=redis://h:1"]).unwrap();
    assert!(kv(&plan, "redis").memory.is_some());
    assert_eq!(kv(&plan, "kvrocks").memory, None);
    assert_eq!(kv(&plan, "kvrocks").keys, kv(&plan, "redis").keys);
    plan.check().unwrap();
    let save = planned(&[("profile", "save")], &["kvrocks=redis://h:1"]).unwrap();
    assert!(save.check().unwrap_err().contains("does not limit, save or kill"));
}

const SIZING: &str = include_str!("../../../../studies/sizing.toml");

fn sized(sets: &[(&str, &str)]) -> Result<Plan, StudyError> {
    let sets = sets.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
    Study::parse("s", SIZING).unwrap().plan(&Choices { sets, ..choices() })
}

#[test]
fn each_combination_of_a_profiles_lists_is_a_workload() {
    let sets = [("profile", "grid"), ("value_bytes", "64,1024"), ("clients", "1,50")];
    let plan = sized(&sets).unwrap();
    let of_redis = plan.cells.iter().filter(|cell| cell.target == "redis");
    let ids: Vec<&str> = of_redis.map(|cell| cell.id.as_str()).collect();
    assert_eq!(
        ids,
        [
            "redis/grid-64B-P1/1",
            "redis/grid-64B-P16/1",
            "redis/grid-1024B-P1/1",
            "redis/grid-1024B-P16/1",
            "redis/grid-64B-P1/50",
            "redis/grid-64B-P16/50",
            "redis/grid-1024B-P1/50",
            "redis/grid-1024B-P16/50"
        ]
    );
    let wide = plan.cells.iter().find(|cell| cell.id == "redis/grid-1024B-P16/50").unwrap();
    assert_eq!((kv_of(wide).value_bytes.as_str(), wide.load.pipeline), ("1024", 16));
    assert_eq!(wide.workload.study_profile(), "grid");
    assert_eq!(kv_of(wide).memory, None, "without `data`, memory is not limited");
}

#[test]
fn a_profile_can_have_a_single_key_its_own_clients_and_a_rate() {
    let plan = sized(&[("profile", "printed-latency,latency"), ("keys", "700")]).unwrap();
    let printed = plan.cells.iter().find(|cell| cell.id == "redis/printed-latency/4").unwrap();
    assert_eq!((kv_of(printed).keys, printed.load.pipeline), (1, 50));
    let planned = plan.cells.iter().find(|cell| cell.id == "redis/latency/50").unwrap();
    assert_eq!((kv_of(planned).keys, planned.load.steady_per_s()), (700, Some(10_000)));
    let plan = sized(&[("profile", "latency"), ("rate", "500"), ("pipeline", "1")]).unwrap();
    assert_eq!(plan.cells[0].load.steady_per_s(), Some(500));
    for (key, value, expected) in [
        ("keys", "700", "none of the chosen profiles has a number of keys (expected one that does"),
        ("rate", "500", "none of the chosen profiles has a rate (expected one that does, such as"),
    ] {
        let error = sized(&[("profile", "printed-latency"), (key, value)]).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn contradicting_keys_of_a_profile_are_located() {
    for (from, to, problem) in [
        ("keys = 50000\n", "", "profile `latency`: without `data`, `[defaults]` needs `keys`"),
        ("rate = 10000", "rate = 0", "rate must be 1 to 100000000 requests per second"),
        ("pipeline = [50]", "pipeline = [0]", "pipeline must be 1 to 1000"),
        ("pipeline = [1]\nrate", "pipeline = [2]\nrate", "pipeline must be [1] with `rate`"),
        ("keys = 1\n", "keys = 1\ndata = [1.0]\n", "`keys` contradicts `data`"),
        ("keys = 1\n", "keys = 0\n", "keys 0 is invalid (expected 1 to 1000000000, or a share as"),
        ("operations = [\"get\"]", "operations = [\"get\"]\nswap = true", "`swap` needs `data`"),
        ("reconnect = true", "reconnect = true\ndata = [1.0]", "needs `memory` in the"),
        ("\"75% of memory\"", "\"75%\"", "keys \"75%\" is invalid (expected"),
        ("limits = [\"p99<10ms\"]", "limits = []", "limits must be 1 to 16"),
        ("limits = [\"p99<10ms\"]", "limits = [\"p99\"]", "has no `<` (expected"),
        ("limits = [\"p99<10ms\"]", "limits = [\"p99<10ms\"]\nrate = 5", "contradicts `rate`"),
    ] {
        assert!(SIZING.contains(from), "{from}");
        let error = Study::parse("s", &SIZING.replacen(from, to, 1)).unwrap_err().to_string();
        assert!(error.contains(problem), "{problem}: {error}");
    }
}

/// Memory of a key with a value of 1,024 bytes: 92 bytes for entry and name, and a class of 1,280.
const KIB_ENTRY: u64 = 92 + 1_280;

#[test]
fn keys_can_be_a_share_of_the_memory_of_a_tier() {
    let tier = ("tier.redis", "memory=100MiB");
    let keys = |sets: &[(&str, &str)]| {
        let plan = sized(&[&[("profile", "throughput")], sets].concat()).unwrap();
        ["redis", "redis-tls"].map(|target| kv(&plan, target).keys)
    };
    assert_eq!(keys(&[tier]), [(75 << 20) / KIB_ENTRY, 50_000]);
    assert_eq!(keys(&[tier, ("keys", "700")]), [700, 700]);
    let plan = sized(&[("profile", "tiers")]).unwrap();
    assert_eq!(kv(&plan, "redis-C1").keys, 750_000_000 / KIB_ENTRY);
}

#[test]
fn a_profile_with_limits_is_a_search() {
    let within = [("profile", "within-limit"), ("measure_ms", "4000"), ("pipeline", "50")];
    let plan = sized(&within).unwrap();
    let cell = plan.cells.iter().find(|cell| cell.id == "redis/within-limit/50").unwrap();
    let search = cell.load.search().unwrap();
    assert_eq!((search.probe_ns, search.rounds, cell.load.pipeline), (2_000_000_000, 5, 1));
    assert_eq!(search.slos.iter().map(ToString::to_string).collect::<Vec<_>>(), ["p99<10ms"]);
    let own = kv_of(cell);
    assert_eq!((own.phases.len(), own.threads), (1, 1));
    // Probes take far longer than the phase in which the plan describes them.
    assert!(own.deadline_ns > 60_000_000_000 + cell.load.search_ns(own.phases[0].warmup_ns));
    let stricter = sized(&[within[0], ("limits", "p99<1ms, error<1%")]).unwrap();
    let search = stricter.cells[0].load.search().unwrap();
    assert_eq!(
        search.slos.iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["p99<1ms", "error<1%"]
    );
    for (sets, expected) in [
        ([within[0], ("limits", "p99")], "(expected up to 16 limits, as in `p99<1ms,p999<10ms`)"),
        ([("profile", "tls"), ("limits", "p99<1ms")], "none of the chosen profiles has limits"),
    ] {
        let error = sized(&sets).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    let error = sized(&[within[0], ("measure_ms", "800")]).unwrap_err().to_string();
    assert_eq!(
        error,
        "measure_ms `800` is too short for the probes of profile `within-limit` (expected 1000 \
         or more: --set measure_ms=1000)"
    );
}

#[test]
fn a_user_sets_the_threads_of_the_generator() {
    let threads = |sets: &[(&str, &str)]| {
        let sets = [sets, &[("profile", "printed-latency,throughput")]].concat();
        let plan = sized(&sets).unwrap();
        let of_redis = plan.cells.iter().filter(|cell| cell.target == "redis");
        of_redis.map(|cell| kv_of(cell).threads).collect::<Vec<_>>()
    };
    assert_eq!((threads(&[]), threads(&[("threads", "32")])), (vec![1, 1], vec![4, 32]));
}
