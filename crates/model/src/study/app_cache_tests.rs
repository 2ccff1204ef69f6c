use super::*;
use crate::app_cache::{Backend, DataFiles, Fill};
use crate::plan::{Product, Scale};
use crate::study::{Choices, TargetChoice};

const APP_CACHE: &str = include_str!("../../../../studies/app-cache.toml");

fn plan(sets: &[(&str, &str)], targets: &[&str]) -> Result<Plan, StudyError> {
    let targets: Result<_, _> = targets.iter().map(|t| TargetChoice::parse(t)).collect();
    Study::parse("app-cache", APP_CACHE).unwrap().plan(&Choices {
        scale: Scale::Quick,
        budget_s: None,
        sets: sets.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect(),
        targets: targets?,
        control: false,
        seed: 7,
        timeout_ms: None,
        files: None,
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
    let plan = plan(&[("profile", "all")], &[]).unwrap();
    let ids: Vec<&str> = plan.cells.iter().map(|c| c.id.as_str()).collect();
    assert_eq!(
        ids,
        [
            "zend-file/weighted/4",
            "cm-redis/weighted/4",
            "two-levels-file/weighted/4",
            "two-levels-redis/weighted/4",
            "zend-file/mollenhour/4",
            "cm-redis/mollenhour/4",
            "two-levels-file/mollenhour/4",
            "two-levels-redis/mollenhour/4",
        ]
    );
    let target = plan.target("two-levels-redis").unwrap();
    assert_eq!(target.products(), [Product::Memcached, Product::Redis]);
    assert_eq!(target.settings_of(Product::Memcached)["memory"], "1024");
    assert_eq!(target.settings_of(Product::Redis)["save"], "");
}

#[test]
fn the_original_profile_has_the_originals_values() {
    let full = Study::parse("app-cache", APP_CACHE).unwrap().plan(&Choices {
        scale: Scale::Full,
        budget_s: None,
        sets: vec![("profile".into(), "mollenhour".into())],
        targets: Vec::new(),
        control: false,
        seed: 7,
        timeout_ms: None,
        files: None,
    });
    let full = full.unwrap();
    let cache = caches(&full)[0];
    assert_eq!((cache.keys, cache.tags, cache.tags_of_record), (200_000, 2_000, (0, 15)));
    assert_eq!((cache.record_bytes, cache.write_chance), ((1, 1024), 1000));
    assert_eq!((cache.clean_chance, cache.as_original, cache.magento), (1000, true, true));
    assert_eq!(cache.phases.len(), 1);
    assert_eq!(cache.phases[0].stop, Stop::Count(50_000));
    assert!(cache.phases[0].mix.is_empty());
}

#[test]
fn settings_reach_the_plan() {
    let sets = [("keys", "500"), ("tags", "9"), ("max_tags", "3"), ("magento", "off")];
    let small = plan(&sets, &[]).unwrap();
    let cache = caches(&small)[0];
    assert_eq!((cache.keys, cache.tags, cache.tags_of_record.1), (500, 9, 3));
    assert!(!cache.magento);
    let small = plan(&[("memcached.threads", "2"), ("redis.maxmemory", "1gb")], &[]).unwrap();
    let target = small.target("two-levels-redis").unwrap();
    assert_eq!(target.settings_of(Product::Memcached)["threads"], "2");
    assert_eq!(target.settings_of(Product::Redis)["maxmemory"], "1gb");
    assert!(small.target("zend-file").unwrap().settings.is_empty());
}

#[test]
fn a_fast_fill_is_planned_where_a_backend_can() {
    let fills = |sets: &[(&str, &str)]| {
        let plan = plan(sets, &[]).unwrap();
        caches(&plan).iter().map(|cache| cache.fill).collect::<Vec<_>>()
    };
    assert_eq!(fills(&[]), [Fill::Save; 4]);
    // Zend's files and memcached before them have no way but saves.
    let fast = [Fill::Save, Fill::Fast, Fill::Save, Fill::Fast];
    assert_eq!(fills(&[("fill", "fast")]), fast);
    assert_eq!(fills(&[("fill", "fast"), ("fill", "save")]), [Fill::Save; 4]);
    assert_eq!(
        message(&[("fill", "quick")], &[]),
        "--set fill=`quick` does not fit (expected `save` or `fast`)"
    );
    let text = APP_CACHE.replace("magento = true", "magento = true\nfill = \"fast\"");
    let study = Study::parse("s.toml", &text).unwrap();
    assert_eq!(study.defaults.fill, Fill::Fast);
    let older = serde_json::to_string(caches(&plan(&[], &[]).unwrap())[0]).unwrap();
    let older = older.replace(",\"fill\":\"save\"", "");
    let older: AppCache = serde_json::from_str(&older).unwrap();
    assert_eq!(older.fill, Fill::Save);
}

#[test]
fn wrong_settings_say_what_is_expected() {
    let text = message(&[("sessions", "7")], &[]);
    assert!(text.starts_with("unknown key `sessions` in --set for study `app-cache`"), "{text}");
    assert!(text.contains("`keys`") && text.contains("`memcached.NAME`"), "{text}");
    assert!(!text.contains("`think_ms`"), "{text}");
    assert_eq!(
        message(&[("magento", "yes")], &[]),
        "--set magento=`yes` does not fit (expected `on` or `off`)"
    );
    assert!(message(&[("min_tags", "20")], &[]).contains("min_tags <= max_tags <= tags"));
    assert!(message(&[("min_rec_size", "2000")], &[]).contains("min_rec_size <= max_rec_size"));
    assert!(message(&[("clean_chance", "0")], &[]).contains("expected 1 to 1000000"));
}

#[test]
fn a_name_says_whose_layout_a_store_has() {
    let plan = plan(&[], &["cm-redis-lua", "cm-redis=redis://127.0.0.1:7000/2"]).unwrap();
    let backends: Vec<_> = plan.targets.iter().map(|t| t.backend).collect();
    assert_eq!(backends, [Some(Backend::CmRedisLua), Some(Backend::CmRedis)]);
    assert_eq!(plan.targets[1].address.as_deref(), Some("127.0.0.1:7000 database 2"));
    let text = message(&[], &["redis://127.0.0.1:7000"]);
    assert!(text.starts_with("unknown target `redis` (known: `zend-file`, `cm-file`"), "{text}");
    let text = message(&[], &["two-levels-file=memcached://127.0.0.1:7000"]);
    assert!(text.contains("consists of memcached and files (expected no URL"), "{text}");
    let text = message(&[], &["zend-file=redis://127.0.0.1:7000"]);
    assert!(text.contains("keeps its records in files (expected no redis URL)"), "{text}");
    let text = message(&[], &["laravel-redis=redis://127.0.0.1:7000"]);
    assert!(text.contains("cannot be told from what others wrote"), "{text}");
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
            "study `s.toml`, line {line}: `think_ms` is no key of a study of workload `app-cache` \
             (known only to these: `tags`, `min_tags`, `max_tags`, `min_rec_size`, \
             `max_rec_size`, `write_chance`, `clean_chance`, `magento` and `fill`)"
        )
    );
    assert!(fault("magento = true", "").0.ends_with("missing field `magento`"));
    assert!(fault("backend = \"zend-file\"", "backend = \"zend\"").0.contains("`laravel-redis`"));
    assert!(fault("backend = \"zend-file\"", "product = \"files\"").0.contains("is no key of"));
    assert!(fault("workload = \"app-cache\"", "workload = \"shop\"").0.contains("`sessions`"));
    assert!(fault("{ clean = 1.0 }", "{ change = 1.0 }").0.contains("`write` and `clean`"));
    assert!(fault("mix = {}", "mix = { read = 1.0 }").0.contains("the original's list decides"));
    assert!(fault("max_tags = 15", "max_tags = 2001").0.contains("min_tags <= max_tags <= tags"));
    let text = fault("source = [\"cm-redis\", \"zend-file\"]", "source = [\"nfs\"]").0;
    assert!(text.contains("unknown target `nfs`"), "{text}");
}

#[test]
fn the_module_for_redis_has_settings_of_its_own() {
    let sets = [("cm.removal", "unlink"), ("cm.compression", "zstd"), ("redis.save", "60 1")];
    let chosen = plan(&sets, &["cm-redis", "two-levels-redis", "zend-file"]).unwrap();
    let cm = |name: &str| chosen.target(name).unwrap().cm_settings();
    assert_eq!(cm("cm-redis")["removal"], "unlink");
    assert_eq!(cm("two-levels-redis").len(), 2);
    assert!(chosen.target("zend-file").unwrap().settings.is_empty());
    // What belongs to the software stays with a server of the user's own; its settings do not.
    let there = plan(&sets, &["cm-redis=redis://localhost/1"]).unwrap();
    let settings = &there.target("cm-redis").unwrap().settings;
    assert_eq!(settings.keys().collect::<Vec<_>>(), ["cm.compression", "cm.removal"]);

    let bad = message(&[("cm.removal", "flush")], &[]);
    assert!(
        bad.contains("--set cm.removal=`flush` does not fit (expected one of `del` and `unlink`)"),
        "{bad}"
    );
    let unknown = message(&[("cm.lua", "on")], &[]);
    assert!(unknown.contains("unknown setting `cm.lua` (known: `cm.removal`, "), "{unknown}");
}

#[test]
fn a_setting_of_no_store_of_a_target_is_refused() {
    let odd = APP_CACHE.replacen("settings = { \"redis.save\"", "settings = { \"reddis.save\"", 1);
    let study = Study::parse("app-cache", &odd).unwrap();
    let e = study.plan(&Choices {
        scale: Scale::Quick,
        budget_s: None,
        sets: Vec::new(),
        targets: Vec::new(),
        control: false,
        seed: 7,
        timeout_ms: None,
        files: None,
    });
    let e = e.unwrap_err().to_string();
    assert!(
        e.contains("setting `reddis.save` of target `cm-redis` is of none of its stores"),
        "{e}"
    );
}

#[test]
fn files_decide_what_the_data_set_is() {
    let files = DataFiles {
        directory: "/data".into(),
        md5: String::new(),
        keys: 77,
        tags: 9,
        lists: 2,
        ops: 500,
    };
    let with = |sets: &[(&str, &str)]| {
        Study::parse("app-cache", APP_CACHE).unwrap().plan(&Choices {
            scale: Scale::Quick,
            budget_s: None,
            sets: sets.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect(),
            targets: Vec::new(),
            control: false,
            seed: 7,
            timeout_ms: None,
            files: Some(files.clone()),
        })
    };
    let read = with(&[("profile", "mollenhour"), ("clients", "2")]).unwrap();
    let cache = caches(&read)[0];
    assert_eq!((cache.keys, cache.tags, cache.phases[0].stop), (77, 9, Stop::Count(500)));
    assert_eq!(cache.files.as_ref(), Some(&files));
    let fewer = with(&[("profile", "mollenhour"), ("clients", "2"), ("ops", "40")]).unwrap();
    assert_eq!(caches(&fewer)[0].phases[0].stop, Stop::Count(40));
    // Operations drawn by weights need no lists.
    assert!(with(&[]).is_ok());
    let e = with(&[("tags", "5")]).unwrap_err().to_string();
    assert!(e.contains("--set tags=`5` cannot be: --data-set `/data` decides it"), "{e}");
}
