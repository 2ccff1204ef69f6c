use super::*;
use crate::app_cache::Backend;
use crate::phase::Stop;
use crate::plan::{Plan, Scale};
use crate::product::Product;
use crate::study::TargetChoice;
use crate::study::planning::tests::choices;

const APP_CACHE: &str = include_str!("../../../../studies/app-cache.toml");

fn plan(sets: &[(&str, &str)], targets: &[&str]) -> Result<Plan, StudyError> {
    let targets: Result<_, _> = targets.iter().map(|t| TargetChoice::parse(t)).collect();
    Study::parse("app-cache", APP_CACHE).unwrap().plan(&Choices {
        sets: sets.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect(),
        targets: targets?,
        ..choices()
    })
}

fn message(sets: &[(&str, &str)], targets: &[&str]) -> String {
    plan(sets, targets).unwrap_err().to_string()
}

fn caches<'a>(plan: &'a Plan) -> Vec<&'a AppCache> {
    let cache = |cell: &'a Cell| match &cell.workload {
        Workload::AppCache(cache) => cache,
        other => panic!("{other:?}"),
    };
    plan.cells.iter().map(cache).collect()
}

#[test]
fn every_profile_runs_on_every_backend_of_the_source() {
    let plan = plan(&[("profile", "weighted,cold,mollenhour")], &[]).unwrap();
    let ids: Vec<&str> = plan.cells.iter().map(|c| c.id.as_str()).collect();
    assert_eq!(
        ids,
        [
            "zend-file/weighted/4",
            "cm-redis/weighted/4",
            "two-levels-file/weighted/4",
            "two-levels-redis/weighted/4",
            "zend-file/cold/4",
            "cm-redis/cold/4",
            "two-levels-file/cold/4",
            "two-levels-redis/cold/4",
            "zend-file/mollenhour/4",
            "cm-redis/mollenhour/4",
            "two-levels-file/mollenhour/4",
            "two-levels-redis/mollenhour/4",
        ]
    );
    let target = plan.target("two-levels-redis").unwrap();
    assert_eq!(target.products(), [Product::Memcached, Product::Redis]);
    assert_eq!(target.settings_of(Product::Memcached)["memory"], "2048");
    assert_eq!(target.settings_of(Product::Redis)["save"], "");
}

#[test]
fn the_original_profile_has_the_values_of_the_benchmark() {
    let full = Study::parse("app-cache", APP_CACHE).unwrap().plan(&Choices {
        scale: Scale::Full,
        sets: vec![("profile".into(), "mollenhour".into())],
        ..choices()
    });
    let full = full.unwrap();
    let cache = caches(&full)[0];
    assert_eq!((cache.keys, cache.tags, cache.tags_of_record), (200_000, 2_000, (0, 15)));
    assert_eq!((cache.record_bytes, cache.write_chance), ((1, 1024), 1000));
    assert_eq!((cache.clean_chance, cache.as_original, cache.magento), (1000, true, Magento::One));
    assert_eq!(cache.phases.len(), 1);
    assert_eq!(cache.phases[0].stop, Stop::Count(50_000));
    assert!(cache.phases[0].mix.is_empty());
}

fn at(scale: Scale, profile: &str, sets: &[(&str, &str)]) -> Plan {
    let own = [("profile", profile)];
    let sets = own.iter().chain(sets).map(|(k, v)| ((*k).into(), (*v).into())).collect();
    let targets = vec![TargetChoice::parse("zend-file").unwrap()];
    let choices = Choices { scale, sets, targets, ..choices() };
    Study::parse("app-cache", APP_CACHE).unwrap().plan(&choices).unwrap()
}

#[test]
fn each_size_is_a_separate_cell() {
    let plan = plan(&[("profile", "by-records")], &["zend-file", "cm-redis"]).unwrap();
    let ids: Vec<&str> = plan.cells.iter().map(|c| c.id.as_str()).collect();
    assert_eq!(
        ids,
        [
            "zend-file/by-records/1000x100/4",
            "cm-redis/by-records/1000x100/4",
            "zend-file/by-records/3000x300/4",
            "cm-redis/by-records/3000x300/4",
            "zend-file/by-records/10000x1000/4",
            "cm-redis/by-records/10000x1000/4",
        ]
    );
    let last = &plan.cells[5].workload;
    assert_eq!((last.profile(), last.study_profile()), ("by-records/10000x1000", "by-records"));
    assert_eq!((caches(&plan)[5].keys, caches(&plan)[5].tags), (10_000, 1_000));
    assert_eq!(plan.profiles, ["by-records"]);
    let weighted = at(Scale::Quick, "weighted", &[]);
    assert_eq!(weighted.cells[0].workload.study_profile(), "weighted");
    assert_eq!(caches(&weighted)[0].sizes_of, None);
}

#[test]
fn sizes_vary_either_records_or_records_per_tag() {
    for scale in [Scale::Quick, Scale::Standard, Scale::Full] {
        let plan = at(scale, "by-records", &[]);
        let (first, last) = (caches(&plan)[0], caches(&plan)[plan.cells.len() - 1]);
        assert!(first.keys * 10 <= last.keys);
        assert!(caches(&plan).iter().all(|c| same(c.records_of_tag(), first.records_of_tag())));
        let plan = at(scale, "by-tag-size", &[]);
        let cells = caches(&plan);
        let of_tags: Vec<f64> = cells.iter().map(|c| c.records_of_tag()).collect();
        assert!(same(of_tags[0], 10.0) && same(of_tags[2], 1000.0), "{of_tags:?}");
        assert!(cells.iter().all(|c| c.keys == cells[0].keys));
    }
    let full = at(Scale::Full, "by-records", &[]);
    let keys: Vec<u64> = caches(&full).iter().map(|c| c.keys).collect();
    assert_eq!(keys, [10_000, 50_000, 200_000, 1_000_000]);
    // The published study reports 744 records per tag; no record has exactly one tag.
    let original = at(Scale::Full, "mollenhour", &[]);
    assert!(same(caches(&original)[0].records_of_tag(), 743.75));
    assert!(same(caches(&at(Scale::Full, "weighted", &[]))[0].records_of_tag(), 750.0));
}

fn same(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-9 * b
}

#[test]
fn sizes_can_be_set_and_invalid_ones_are_rejected() {
    let sizes = ("sizes", "300x30, 900x90");
    let set = at(Scale::Quick, "by-records", &[sizes]);
    let ids: Vec<&str> = set.cells.iter().map(|c| c.id.as_str()).collect();
    assert_eq!(ids, ["zend-file/by-records/300x30/4", "zend-file/by-records/900x90/4"]);
    let records = ("profile", "by-records");
    let wrong = |sets: &[(&str, &str)]| message(&[&[records], sets].concat(), &[]);
    for text in ["", "300", "300x", "300x30,", "300-30", "-3x30", "300x99999999999999999999"] {
        assert_eq!(
            wrong(&[("sizes", text)]),
            format!(
                "--set sizes=`{text}` is invalid (expected numbers of records and tags, as in \
                 `2000x200,20000x2000`)"
            )
        );
    }
    for (text, problem) in [
        ("300x30", "growth needs at least two sizes (expected two or more)"),
        ("300x30,0x30", "size `0x30` (expected 1 to 100000000 records and tags)"),
        ("300x30,300x30", "duplicate size `300x30`"),
        ("300x30,300x3", "size `300x3` has fewer tags than max_tags `15`"),
        ("300x30,900x30", "sizes `300x30` and `900x30` vary both the number of records and the"),
    ] {
        let text = wrong(&[("sizes", text)]);
        let expected = format!("--set: profile `by-records`: {problem}");
        assert!(text.starts_with(&expected), "{text}");
    }
    assert!(wrong(&[("max_tags", "101")]).contains("size `1000x100` has fewer tags"));
    let text = wrong(&[("keys", "500")]);
    assert!(text.starts_with("--set keys has no effect: `by-records` has its own sizes"), "{text}");
    let text = message(&[sizes], &[]);
    assert!(text.contains("applies to `0` of the chosen profiles"), "{text}");
    assert!(text.ends_with("profiles with sizes: `by-records` and `by-tag-size`)"), "{text}");
    let both = message(&[("profile", "by-records,by-tag-size"), sizes], &[]);
    assert!(both.contains("applies to `2` of the chosen profiles"), "{both}");
    let with_another = plan(&[("profile", "weighted,by-records"), ("keys", "500")], &[]).unwrap();
    let keys: Vec<u64> = caches(&with_another).iter().map(|c| c.keys).collect();
    assert_eq!((keys[0], keys[4]), (500, 1000));
}

#[test]
fn settings_reach_the_plan() {
    let sets = [("keys", "500"), ("tags", "9"), ("max_tags", "3"), ("magento", "off")];
    let small = plan(&sets, &[]).unwrap();
    let cache = caches(&small)[0];
    assert_eq!((cache.keys, cache.tags, cache.tags_of_record.1), (500, 9, 3));
    assert_eq!(cache.magento, Magento::None);
    let small = plan(&[("memcached.threads", "2"), ("redis.maxmemory", "1gb")], &[]).unwrap();
    let target = small.target("two-levels-redis").unwrap();
    assert_eq!(target.settings_of(Product::Memcached)["threads"], "2");
    assert_eq!(target.settings_of(Product::Redis)["maxmemory"], "1gb");
    assert!(small.target("zend-file").unwrap().settings.is_empty());
}

#[test]
fn a_fast_fill_is_planned_if_the_backend_supports_it() {
    let fills = |sets: &[(&str, &str)]| {
        let one = [("profile", "weighted")];
        let plan = plan(&[&one[..], sets].concat(), &[]).unwrap();
        caches(&plan).iter().map(|cache| cache.fill).collect::<Vec<_>>()
    };
    assert_eq!(fills(&[("fill", "save")]), [Fill::Save; 4]);
    // Zend's files, with or without memcached in front, only support saves.
    let fast = [Fill::Save, Fill::Fast, Fill::Save, Fill::Fast];
    assert_eq!(fills(&[]), fast, "the study's default");
    assert_eq!(fills(&[("fill", "save"), ("fill", "fast")]), fast);
    assert_eq!(fills(&[("fill", "fast"), ("fill", "save")]), [Fill::Save; 4]);
    assert_eq!(
        message(&[("fill", "quick")], &[]),
        "--set fill=`quick` is invalid (expected `save` or `fast`)"
    );
    let text = APP_CACHE.replace("fill = \"fast\"", "");
    let study = Study::parse("s.toml", &text).unwrap();
    let saved = study.plan(&choices()).unwrap();
    assert!(caches(&saved).iter().all(|cache| cache.fill == Fill::Save));
}

#[test]
fn invalid_settings_name_the_expected_values() {
    let text = message(&[("sessions", "7")], &[]);
    assert!(text.starts_with("unknown key `sessions` in --set for study `app-cache`"), "{text}");
    assert!(text.contains("`keys`") && text.contains("`memcached.NAME`"), "{text}");
    assert!(!text.contains("`think_ms`"), "{text}");
    assert_eq!(
        message(&[("magento", "yes")], &[]),
        "--set magento=`yes` is invalid (expected `on`, `off`, `1` or `2`)"
    );
    let (none, one, two) = (Magento::None, Magento::One, Magento::Two);
    for (value, magento) in [("on", one), ("true", one), ("off", none), ("false", none), ("2", two)]
    {
        let plan = plan(&[("magento", value)], &[]).unwrap();
        assert_eq!(caches(&plan)[0].magento, magento, "{value}");
    }
    for (key, value, expected) in [
        ("measure_ms", "0", "1 to 86400000"),
        ("warmup_ms", "-1", "0 to 3600000"),
        ("timeout_ms", "1s", "1 to 3600000"),
        ("clients", "1,,8", "1 to 4096, or several as in `1,8`"),
        ("budget_s", "nan", "0 to 604800 seconds"),
        ("cm.removal", "", "`del` or `unlink`"),
    ] {
        assert_eq!(
            message(&[(key, value)], &[]),
            format!("--set {key}=`{value}` is invalid (expected {expected})")
        );
    }
    assert!(message(&[("min_tags", "20")], &[]).contains("min_tags <= max_tags <= tags"));
    assert!(message(&[("min_rec_size", "2000")], &[]).contains("min_rec_size <= max_rec_size"));
    assert!(message(&[("clean_chance", "0")], &[]).contains("expected 1 to 1000000"));
}

#[test]
fn a_cold_profile_has_no_warm_up() {
    let both = plan(&[("profile", "weighted,cold")], &["zend-file"]).unwrap();
    let [warm, cold] = caches(&both)[..] else { panic!("two cells") };
    assert_eq!((warm.page_cache, cold.page_cache), (PageCache::Warm, PageCache::Cold));
    assert!(warm.phases.iter().all(|p| p.warmup_ns == 100_000_000), "{warm:?}");
    assert!(cold.phases.iter().all(|p| p.warmup_ns == 0), "{cold:?}");
    assert_eq!(
        plan(&[], &[]).unwrap().profiles,
        ["weighted", "small-shop"],
        "cold runs only if chosen"
    );
    let text = serde_json::to_string(&both.cells).unwrap();
    assert_eq!(text.matches(r#""page_cache":"cold""#).count(), 1, "warm is omitted");
    let text = serde_json::to_string(&both).unwrap();
    assert_eq!(serde_json::from_str::<Plan>(&text).unwrap(), both);
}

#[test]
fn memory_limits_apply_to_private_servers_and_files() {
    let limited = plan(&[("memory_limit", "96MiB")], &["cm-redis", "zend-file=file:///d"]);
    let limited = limited.unwrap();
    assert!(caches(&limited).iter().all(|c| c.memory.unwrap().limit_bytes == 96 << 20));
    assert!(caches(&plan(&[], &[]).unwrap()).iter().all(|c| c.memory.is_none()));
    for wrong in ["lots", "63MiB", "0", "2TiB"] {
        assert_eq!(
            message(&[("memory_limit", wrong)], &[]),
            format!(
                "--set memory_limit=`{wrong}` is invalid (expected 64MiB to 1TiB, as in `256MiB`)"
            )
        );
    }
    let theirs = plan(&[("memory_limit", "1GiB")], &["cm-redis=redis://127.0.0.1:7000"]).unwrap();
    let text = theirs.check().unwrap_err();
    assert!(
        text.starts_with("cachedyno does not limit, save or kill the server of target `cm-redis`"),
        "{text}"
    );
    let in_study =
        APP_CACHE.replacen("magento = true", "magento = true\nmemory_limit = \"1GiB\"", 1);
    let of_study = Study::parse("app-cache", &in_study).unwrap().plan(&choices()).unwrap();
    assert_eq!(caches(&of_study)[0].memory.unwrap().limit_bytes, 1 << 30);
}

#[test]
fn the_target_name_selects_the_layout() {
    let plan = plan(&[], &["cm-redis-lua", "cm-redis=redis://127.0.0.1:7000/2"]).unwrap();
    let backends: Vec<_> = plan.targets.iter().map(|t| t.backend).collect();
    assert_eq!(backends, [Some(Backend::CmRedisLua), Some(Backend::CmRedis)]);
    assert_eq!(plan.targets[1].address.as_deref(), Some("127.0.0.1:7000 database 2"));
    let text = message(&[], &["redis://127.0.0.1:7000"]);
    assert!(
        text.starts_with(
            "unknown target `redis` (known: `magento2-file`, `magento2-redis`, `zend-file`"
        ),
        "{text}"
    );
    let text = message(&[], &["two-levels-file=memcached://127.0.0.1:7000"]);
    assert!(text.contains("uses memcached and files (expected no URL"), "{text}");
    let text = message(&[], &["zend-file=redis://127.0.0.1:7000"]);
    assert!(text.contains("stores its records in files (expected no redis URL)"), "{text}");
    let text = message(&[], &["laravel-redis=redis://127.0.0.1:7000"]);
    assert!(text.contains("is indistinguishable from other data"), "{text}");
}

#[test]
fn faults_in_a_study_are_located() {
    let fault = |from: &str, to: &str| {
        assert!(APP_CACHE.contains(from), "{from}");
        let line = APP_CACHE[..APP_CACHE.find(from).unwrap()].lines().count() + 1;
        let text = APP_CACHE.replacen(from, to, 1);
        (Study::parse("s.toml", &text).unwrap_err().to_string(), line)
    };
    let (text, line) = fault("magento = true", "think_ms = 1.0");
    assert_eq!(
        text,
        format!(
            "study `s.toml`, line {line}: unknown field `think_ms`, expected one of `tags`, \
             `min_tags`, `max_tags`, `min_rec_size`, `max_rec_size`, `write_chance`, \
             `clean_chance`, `magento`, `page_reads`, `page_writes`, `fill`, `memory_limit`"
        )
    );
    assert!(fault("magento = true", "").0.ends_with("missing field `magento`"));
    assert!(fault("backend = \"zend-file\"", "backend = \"zend\"").0.contains("`laravel-redis`"));
    assert!(fault("backend = \"zend-file\"", "product = \"files\"").0.contains("is not a key in"));
    assert!(fault("workload = \"app-cache\"", "workload = \"shop\"").0.contains("`sessions`"));
    assert!(
        fault("{ clean = 1.0 }", "{ change = 1.0 }")
            .0
            .contains("`write`, `clean`, `page` and `purchase`")
    );
    assert!(
        fault("mix = {}", "mix = { read = 1.0 }")
            .0
            .contains("the original's list determines the operations")
    );
    assert!(fault("page_cache = \"cold\"", "page_cache = \"icy\"").0.contains("`warm` or `cold`"));
    let (text, at) = fault("magento = true", "magento = true\nmemory_limit = \"1MiB\"");
    assert!(text.contains(&format!("line {}: memory_limit `1MiB` is invalid", at + 1)), "{text}");
    assert!(fault("tags = 2000 ", "tags = 10 ").0.contains("min_tags <= max_tags <= tags"));
    let (text, line) = fault("write_chance = 1000", "write_chance = 0");
    let expected = "write_chance `0` is invalid (expected 1 to 1000000)";
    assert_eq!(text, format!("study `s.toml`, line {line}: {expected}"));
    let (text, line) = fault("{ keys = 1000, tags = 100 },", "{ keys = 1000, tags = 2 },");
    assert_eq!(
        text,
        format!(
            "study `s.toml`, line {}: size `1000x2` has fewer tags than max_tags `15`",
            line - 2
        )
    );
    let text = fault("{ keys = 1000, tags = 100 },", "{ keys = 1000, tags = 50 },").0;
    assert!(text.contains("vary both the number of records and the records per tag"), "{text}");
    assert!(fault("{ keys = 1000, tags = 100 }", "{ keys = 1000 }").0.contains("field `tags`"));
    assert!(fault("{ keys = 1000, tags", "{ key = 1000, tags").0.contains("field `key`"));
    let text = fault("quick = [\n  { keys = 1000,", "fast = [\n  { keys = 1000,").0;
    assert!(text.contains("unknown variant `fast`"), "{text}");
    let quick = &APP_CACHE[APP_CACHE.find("quick = [").unwrap()..];
    let quick = &quick[..quick.find("standard = [").unwrap()];
    let (text, _) = fault(quick, "");
    assert!(text.ends_with("profile `by-records` has no sizes for scale `quick`"), "{text}");
    let text = fault(quick, "quick = [{ keys = 1000, tags = 100 }]\n").0;
    assert!(text.ends_with("growth needs at least two sizes (expected two or more)"), "{text}");
    let text = fault("source = [\"cm-redis\", \"zend-file\"]", "source = [\"nfs\"]").0;
    assert!(text.contains("unknown target `nfs`"), "{text}");
}

#[test]
fn cm_redis_has_its_own_settings() {
    let sets = [("cm.removal", "unlink"), ("cm.compression", "zstd")];
    let chosen = plan(&sets, &["cm-redis", "two-levels-redis", "zend-file"]).unwrap();
    let cm = |name: &str| chosen.target(name).unwrap().cm_settings();
    assert_eq!(cm("cm-redis")["removal"], "unlink");
    assert_eq!(cm("two-levels-redis").len(), 2);
    assert!(chosen.target("zend-file").unwrap().settings.is_empty());
    // On an existing server, settings of the software apply; the study's server settings do not.
    let there = plan(&sets, &["cm-redis=redis://localhost/1"]).unwrap();
    let settings = &there.target("cm-redis").unwrap().settings;
    assert_eq!(settings.keys().collect::<Vec<_>>(), ["cm.compression", "cm.removal"]);

    let bad = message(&[("cm.removal", "flush")], &[]);
    assert!(
        bad.contains("--set cm.removal=`flush` is invalid (expected `del` or `unlink`)"),
        "{bad}"
    );
    let unknown = message(&[("cm.lua", "on")], &[]);
    assert!(unknown.contains("unknown setting `cm.lua` (known: `cm.removal`, "), "{unknown}");
}

#[test]
fn settings_of_unused_products_are_rejected() {
    let odd = APP_CACHE.replacen("settings = { \"redis.save\"", "settings = { \"reddis.save\"", 1);
    let study = Study::parse("app-cache", &odd).unwrap();
    let e = study.plan(&choices());
    let e = e.unwrap_err().to_string();
    assert!(
        e.contains("setting `reddis.save` of target `cm-redis` belongs to none of its stores"),
        "{e}"
    );
}

#[test]
fn files_determine_the_data_set() {
    let files = DataFiles {
        directory: "/data".into(),
        md5: String::new(),
        keys: 77,
        tags: 9,
        lists: 2,
        ops: 500,
        ops_of_longest: 700,
    };
    let with = |sets: &[(&str, &str)]| {
        Study::parse("app-cache", APP_CACHE).unwrap().plan(&Choices {
            sets: sets.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect(),
            files: Some(files.clone()),
            ..choices()
        })
    };
    let read = with(&[("profile", "mollenhour"), ("clients", "2")]).unwrap();
    let cache = caches(&read)[0];
    assert_eq!((cache.keys, cache.tags, cache.phases[0].stop), (77, 9, Stop::Count(500)));
    assert_eq!(cache.files.as_ref(), Some(&files));
    // Randomly chosen operations do not need lists.
    assert!(with(&[]).is_ok());
    let e = with(&[("profile", "by-records")]).unwrap_err().to_string();
    assert!(e.contains("contains one data set, but profile `by-records` measures several"), "{e}");
    for key in ["keys", "tags", "ops", "max_tags", "clean_chance", "write_chance"] {
        let e = with(&[("profile", "mollenhour"), ("clients", "2"), (key, "5")]).unwrap_err();
        let prefix = format!(
            "--set {key}=`5` conflicts with --data-set `/data`, whose files determine it (leave"
        );
        assert!(e.to_string().starts_with(&prefix), "{e}");
    }
}

#[test]
fn missing_lists_are_named() {
    let files = DataFiles {
        directory: "/data".into(),
        md5: String::new(),
        keys: 77,
        tags: 9,
        lists: 0,
        ops: 0,
        ops_of_longest: 0,
    };
    let sets = vec![("profile".into(), "weighted,mollenhour".into())];
    let choices = Choices { sets, files: Some(files), ..choices() };
    let e = Study::parse("app-cache", APP_CACHE).unwrap().plan(&choices).unwrap_err();
    assert_eq!(
        e.to_string(),
        "--data-set `/data` contains no lists of operations, which profile `mollenhour` needs \
         (expected `ops-client_0.json` to `ops-client_3.json` in it, or a profile with random \
         operations, as in --set profile=weighted)"
    );
}

#[test]
fn settings_that_apply_to_no_target_are_rejected() {
    let refused = |set: (&str, &str), targets: &[&str], words: &str| {
        let text = message(&[set], targets);
        let prefix = format!("--set {}=`{}` has no effect: ", set.0, set.1);
        assert!(text.starts_with(&prefix) && text.contains(words), "{text}");
    };
    let url = "cm-redis=redis://127.0.0.1:7000";
    let at_url = "cachedyno does not configure the redis server at a URL (chosen: `cm-redis`;";
    refused(("redis.maxmemory", "1gb"), &[url], at_url);
    let none = "no chosen target has a mysql server (chosen: `zend-file` and `cm-redis`;";
    refused(("mysql.x", "1"), &["zend-file", "cm-redis"], none);
    refused(("memcached.threads", "1"), &["cm-redis"], "no chosen target has a memcached server");
    let cm = "no chosen target uses Cm_Cache_Backend_Redis (chosen: `zend-file`; leave";
    refused(("cm.removal", "unlink"), &["zend-file"], cm);
    // It is enough that one target uses the setting.
    assert!(plan(&[("redis.save", "")], &[url, "two-levels-redis"]).is_ok());
    assert!(plan(&[("cm.removal", "del")], &["zend-file", url]).is_ok());
}

#[test]
fn a_target_chooses_its_own_layer() {
    let own = "backend = \"zend-file\"";
    let text = APP_CACHE.replacen(own, &format!("{own}\nmagento = 2"), 1);
    let choices = Choices {
        targets: ["zend-file", "cm-redis"].map(|t| TargetChoice::parse(t).unwrap()).into(),
        sets: vec![("magento".into(), "off".into()), ("profile".into(), "weighted".into())],
        ..choices()
    };
    let plan = Study::parse("app-cache", &text).unwrap().plan(&choices).unwrap();
    let layers: Vec<_> = caches(&plan).iter().map(|cache| cache.magento).collect();
    assert_eq!(layers, [Magento::Two, Magento::None]);
    let text = message(&[("magento", "2")], &["laravel-redis"]);
    assert!(text.contains("`laravel-redis` cannot be measured with `magento` 2"), "{text}");
    let wrong = APP_CACHE.replacen(own, &format!("{own}\nmagento = 3"), 1);
    let e = Study::parse("s.toml", &wrong).unwrap_err().to_string();
    assert!(e.contains("expected false, true, 1 or 2"), "{e}");
}

#[test]
fn a_small_shop_has_its_own_records_and_clients() {
    let cells = |sets: &[(&str, &str)]| {
        let plan = plan(sets, &["cm-redis"]).unwrap();
        let of = |cell: &Cell| match &cell.workload {
            Workload::AppCache(cache) => (cache.profile.clone(), cache.keys, cell.load.clients),
            other => panic!("{other:?}"),
        };
        plan.cells.iter().map(of).collect::<Vec<_>>()
    };
    let cell = |name: &str, keys, clients| (name.to_string(), keys, clients);
    assert_eq!(cells(&[]), [cell("weighted", 20_000, 4), cell("small-shop", 2_000, 1)]);
    // What the user sets applies to every profile.
    let set = [("keys", "500"), ("clients", "2")];
    assert_eq!(cells(&set), [cell("weighted", 500, 2), cell("small-shop", 500, 2)]);
    let wrong = APP_CACHE.replacen("[profiles.keys]\nquick = 2000\n", "[profiles.keys]\n", 1);
    let e = Study::parse("s.toml", &wrong).unwrap_err().to_string();
    assert!(e.contains("profile `small-shop` has no keys for scale `quick`"), "{e}");
    let wrong = APP_CACHE.replacen("profile = \"small-shop\" }", "profile = \"tiny\" }", 1);
    let e = Study::parse("s.toml", &wrong).unwrap_err().to_string();
    assert!(e.contains("unknown profile `tiny`"), "{e}");
}
