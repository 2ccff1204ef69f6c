use super::*;
use crate::study::TargetChoice;
use crate::{Arrivals, Generation, Program, Scale, Schedule, Sessions, Stop};

const SESSIONS: &str = include_str!("../../../../studies/sessions.toml");

fn study() -> Study {
    Study::parse("sessions", SESSIONS).unwrap()
}

pub(in crate::study) fn choices() -> Choices {
    Choices::new(Scale::Quick, 7)
}

fn with_set(key: &str, value: &str) -> Result<Plan, StudyError> {
    study().plan(&Choices { sets: vec![(key.into(), value.into())], ..choices() })
}

/// The workload of the first cell.
fn sessions(plan: &Plan) -> &Sessions {
    match &plan.cells[0].workload {
        Workload::Sessions(sessions) => sessions,
        _ => panic!("not a session workload"),
    }
}

fn cell_ids(plan: &Plan) -> Vec<&str> {
    plan.cells.iter().map(|c| c.id.as_str()).collect()
}

#[test]
fn the_default_plan_has_every_target_at_every_load() {
    let plan = study().plan(&choices()).unwrap();
    assert_eq!(
        cell_ids(&plan),
        [
            "files/steady/1",
            "redis/steady/1",
            "mysql/steady/1",
            "files/steady/8",
            "redis/steady/8",
            "mysql/steady/8",
        ]
    );
    assert_eq!(sessions(&plan).filled, 2000);
}

#[test]
fn every_scale_and_profile_plans() {
    for scale in [Scale::Quick, Scale::Standard, Scale::Full] {
        let sets = vec![("profile".to_string(), "all".to_string())];
        let plan = study().plan(&Choices { scale, sets, ..choices() }).unwrap();
        assert_eq!(plan.profiles, ["steady", "maxcluster-2019", "page", "visitors", "gc"]);
        // Three profiles with two loads, one with three and one with five; three targets each.
        assert_eq!(plan.cells.len(), 42);
    }
}

#[test]
fn the_2019_profile_at_full_scale_is_a_million_sessions_a_client() {
    let sets = vec![("profile".into(), "maxcluster-2019".into())];
    let plan = study().plan(&Choices { scale: Scale::Full, sets, ..choices() }).unwrap();
    let workload = sessions(&plan);
    assert_eq!(workload.phases[0].stop, Stop::Count(1_000_000));
    assert_eq!((workload.filled, workload.phases[0].warmup_ns), (0, 0));
}

#[test]
fn one_profile_deletes_expired_sessions() {
    let set = |key: &str, value: &str| (key.to_string(), value.to_string());
    let sets = vec![set("profile", "page,gc"), set("gc_divisor", "50"), set("ttl_s", "900")];
    let plan = study().plan(&Choices { sets, ..choices() }).unwrap();
    let of = |profile: &str| {
        let sessions = plan.cells.iter().find_map(|cell| match &cell.workload {
            Workload::Sessions(sessions) if sessions.profile == profile => Some(sessions),
            _ => None,
        });
        sessions.unwrap()
    };
    let (page, gc) = (of("page"), of("gc"));
    assert_eq!((page.ttl_s, page.gc.is_none()), (900, true));
    assert_eq!(gc.ttl_s, 60);
    let planned = gc.gc.as_ref().unwrap();
    assert_eq!((planned.divisor, planned.phases.as_slice()), (50, &["with-gc".to_string()][..]));
    assert_eq!(gc.phases[0].mix, gc.phases[1].mix);
    let set = vec![set("profile", "gc"), set("gc_maxlifetime_s", "7")];
    let plan = study().plan(&Choices { sets: set, ..choices() }).unwrap();
    assert_eq!(sessions(&plan).ttl_s, 7);
    assert!(with_set("gc_divisor", "0").unwrap_err().to_string().contains("1 to 1000000"));
}

#[test]
fn settings_reach_the_plan() {
    assert_eq!(with_set("clients", "4,2,4").unwrap().cells.len(), 6);
    let plan = with_set("generation", "inside").unwrap();
    assert_eq!(sessions(&plan).generation, Generation::Inside);
    let plan = with_set("mysql.innodb_flush_log_at_trx_commit", "2").unwrap();
    assert_eq!(plan.target("mysql").unwrap().settings["innodb_flush_log_at_trx_commit"], "2");
    assert!(!plan.target("redis").unwrap().settings.contains_key("innodb_flush_log_at_trx_commit"));
}

#[test]
fn settings_of_unmeasured_stores_are_rejected() {
    let message = |key: &str, target: &str| {
        let sets = vec![(key.to_string(), "1".to_string())];
        let targets = vec![TargetChoice::parse(target).unwrap()];
        study().plan(&Choices { sets, targets, ..choices() }).unwrap_err().to_string()
    };
    let text = message("mysql.x", "redis");
    assert!(text.starts_with("--set mysql.x=`1` has no effect: no chosen target"), "{text}");
    let text = message("redis.hz", "prod=redis://127.0.0.1:7000/2");
    assert!(
        text.contains("does not configure the redis server at a URL (chosen: `prod`;"),
        "{text}"
    );
}

#[test]
fn valkey_uses_the_settings_of_redis_by_default() {
    let targets = ["redis", "valkey"].map(|t| TargetChoice::parse(t).unwrap()).to_vec();
    let sets = vec![("redis.appendonly".into(), "yes".into())];
    let plan = study().plan(&Choices { sets, targets, ..choices() }).unwrap();
    let (redis, valkey) = (plan.target("redis").unwrap(), plan.target("valkey").unwrap());
    assert_eq!((redis.program, valkey.program), (None, Program::of_target("valkey")));
    assert_eq!(valkey.settings["appendonly"], "yes");
    assert_eq!(redis.settings, valkey.settings);
}

#[test]
fn the_control_repeats_the_redis_target() {
    let plan = study().plan(&Choices { control: true, ..choices() }).unwrap();
    let control = plan.target("redis-again").unwrap();
    assert_eq!(control.control_of.as_deref(), Some("redis"));
    assert_eq!(plan.cells.len(), 8);
}

#[test]
fn chosen_targets_replace_those_of_the_study() {
    let targets = ["files", "prod=redis://:hush@127.0.0.1:7000/2"];
    let targets = targets.iter().map(|t| TargetChoice::parse(t).unwrap()).collect();
    let plan = study().plan(&Choices { targets, ..choices() }).unwrap();
    assert_eq!(plan.targets.len(), 2);
    assert_eq!(plan.targets[1].address.as_deref(), Some("127.0.0.1:7000 database 2"));
    assert!(plan.targets.iter().all(|t| t.named));
    assert!(!toml::to_string(&plan.targets[1]).unwrap().contains("hush"));
}

#[test]
fn unknown_names_list_the_known_ones() {
    let message = |key, value| with_set(key, value).unwrap_err().to_string();
    assert!(
        message("colour", "red")
            .starts_with("unknown key `colour` in --set for study `sessions` (known: `profile`, ")
    );
    assert!(
        message("profile", "fast")
            .contains("known: `steady`, `maxcluster-2019`, `page`, `visitors` and `gc`")
    );
    assert_eq!(
        message("clients", "0"),
        "--set clients=`0` is invalid (expected 1 to 4096, or several as in `1,8`)"
    );
    assert_eq!(
        message("generation", "maybe"),
        "--set generation=`maybe` is invalid (expected `inside` or `outside`)"
    );
    assert!(message("sizes", "2000x200,20000x2000").contains("unknown key `sizes` in --set"));
    assert!(message("files.x", "1").contains("unknown key `files.x`"));
    let unknown = Choices { targets: vec![TargetChoice::parse("oracle").unwrap()], ..choices() };
    let text = study().plan(&unknown).unwrap_err().to_string();
    assert!(text.starts_with("unknown target `oracle` (known: `files`, `redis` and `mysql`;"));
}

#[test]
fn set_limits_adjust_the_number_of_blocks() {
    let blocks = |sets: &[(&str, &str)]| {
        let sets = sets.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect();
        let effort = study().plan(&Choices { sets, ..choices() })?.effort;
        Ok::<_, StudyError>((effort.blocks_min, effort.blocks_max))
    };
    assert_eq!(blocks(&[("blocks_max", "1")]), Ok((1, 1)));
    assert_eq!(blocks(&[("blocks_min", "9")]), Ok((9, 9)));
    assert_eq!(blocks(&[("blocks_min", "2"), ("blocks_max", "4")]), Ok((2, 4)));
    let budget = Choices { budget_s: Some(5.0), ..choices() };
    assert_eq!(study().plan(&budget).unwrap().effort.blocks_min, 1, "an explicit budget applies");
    assert!(blocks(&[("blocks_min", "3"), ("blocks_max", "1")]).is_err());
}

#[test]
fn duplicate_targets_are_rejected() {
    let targets = ["redis", "redis=redis://h"].map(|t| TargetChoice::parse(t).unwrap()).to_vec();
    assert!(study().plan(&Choices { targets, ..choices() }).is_err());
}

#[test]
fn a_label_and_a_directory_belong_to_a_target() {
    let parsed = |text: &str| {
        let choice = TargetChoice::parse(text).unwrap();
        (choice.name, choice.directory, choice.endpoint.is_some())
    };
    let own = |name: &str, place: Option<&str>| (name.to_string(), place.map(Into::into), false);
    assert_eq!(parsed("nvme:files"), own("nvme:files", None));
    assert_eq!(parsed("nvme:files=/mnt/a b"), own("nvme:files", Some("/mnt/a b")));
    assert_eq!(parsed("files=/mnt"), own("files", Some("/mnt")));
    assert!(parsed("far:redis=redis://h/1").2);
    let targets = ["redis", "a:redis", "b:redis=/b", "c:valkey=/c", "d:x=redis://h/1"];
    let targets = targets.map(|t| TargetChoice::parse(t).unwrap()).to_vec();
    let plan = study().plan(&Choices { targets, ..choices() }).unwrap();
    let places: Vec<_> = plan.targets.iter().map(|t| (&*t.name, t.directory.is_some())).collect();
    let expected = [
        ("redis", false),
        ("a:redis", false),
        ("b:redis", true),
        ("c:valkey", true),
        ("d:x", false),
    ];
    assert_eq!(places, expected);
    assert_eq!(plan.targets[1].settings, plan.targets[0].settings, "a label changes no settings");
    assert_eq!(plan.targets[3].program, Program::of_target("valkey"));
}

#[test]
fn wrong_labels_and_directories_are_explained() {
    let message = |text: &str| TargetChoice::parse(text).unwrap_err().to_string();
    for name in ["a:b:c", ":files", "nvme:", "a b:files", "n/m:files"] {
        let text = message(name);
        assert!(text.starts_with("invalid --target name"), "{text}");
        assert!(text.contains("as in `nvme:zend-file`"), "{text}");
    }
    // Could be a URL whose slashes were forgotten, with a password.
    let text = message("redis:hush=/b");
    assert!(text.contains("label `redis`") && text.contains("`redis://`"), "{text}");
    assert!(!text.contains("hush"), "{text}");
    for (target, place) in
        [("a:files=./b", "`./b`"), ("files=~/b", "`~/b`"), ("a:x=/b\n", "/b\\n`")]
    {
        let text = message(target);
        assert!(text.contains(place) && text.contains("is not an absolute directory"), "{text}");
    }
    let text = message("a:files=b");
    assert!(text.contains("is not a URL") && text.contains("a:files=/mnt/nvme"), "{text}");
    let unknown = Choices { targets: vec![TargetChoice::parse("a:oracle").unwrap()], ..choices() };
    let text = study().plan(&unknown).unwrap_err().to_string();
    assert!(text.starts_with("unknown target `a:oracle` (known: `files`"), "{text}");
    let twice = ["a:files=/a", "a:files=/b"].map(|t| TargetChoice::parse(t).unwrap()).to_vec();
    let text = study().plan(&Choices { targets: twice, ..choices() }).unwrap_err().to_string();
    assert!(text.contains("given twice") && text.contains("LABEL:files"), "{text}");
}

#[test]
fn values_in_a_file_are_limited_to_the_ranges_of_set() {
    let read = |from: &str, to: &str| {
        assert!(SESSIONS.contains(from), "{from}");
        Study::parse("s.toml", &SESSIONS.replacen(from, to, 1))
    };
    for (from, to, problem) in [
        ("clients = [1, 8]", "clients = [1, 0]", "clients `1,0` is invalid (expected 1 to 4096"),
        ("timeout_ms = 10000", "timeout_ms = 0", "timeout_ms `0` is invalid (expected 1 to"),
        ("blocks_max = 60", "blocks_max = 0", "blocks_max `0` is invalid (expected 1 to 10000)"),
        ("budget_s = 0.0", "budget_s = nan", "budget_s `nan` is invalid (expected 0 to 604800"),
        ("think_ms = 5.0", "think_ms = -1.0", "think_ms `-1.0` is invalid (expected 0 to 60000"),
        ("sessions = 20000", "sessions = 0", "sessions `0` is invalid (expected 1 to 100000000)"),
    ] {
        let line = SESSIONS[..SESSIONS.find(from).unwrap()].lines().count();
        let text = read(from, to).unwrap_err().to_string();
        let starts_at = |at| text.starts_with(&format!("study `s.toml`, line {at}: {problem}"));
        assert!(starts_at(line) || starts_at(line + 1), "{line}: {text}");
    }
    let same = read("timeout_ms = 10000", "timeout_ms = 0x2710").unwrap();
    assert_eq!(same.plan(&choices()).unwrap().timeout_ns, 10_000_000_000);
    assert!(read("sessions = 20000", "sessions = 20_000").is_ok());
}

#[test]
fn faults_in_a_study_are_located() {
    let fault = |from: &str, to: &str| {
        assert!(SESSIONS.contains(from), "{from}");
        Study::parse("s.toml", &SESSIONS.replacen(from, to, 1)).unwrap_err().to_string()
    };
    let line_of = |text: &str| SESSIONS[..SESSIONS.find(text).unwrap()].lines().count() + 1;
    assert!(
        fault("ttl_s = 300", "tttl_s = 300").contains("unknown field `tttl_s`, expected one of")
    );
    let text = fault("ttl_s = 300", "tttl_s = 300");
    assert!(
        text.starts_with(&format!("study `s.toml`, line {}:", line_of("ttl_s = 300"))),
        "{text}"
    );
    let text = fault("{ read = 1.0 }", "{ delete = 1.0 }");
    assert!(
        text.contains("unknown operation `delete` (known: `write`, `read` and `change`)"),
        "{text}"
    );
    assert!(fault("control = \"redis\"", "control = \"r\"").contains("unknown target `r`"));
    assert!(fault("name = \"sessions\"", "name = \"../up\"").contains("invalid name `../up`"));
    assert!(fault("name = \"files\"", "name = \"a;b\"").contains("target name `a;b`"));
    assert!(fault("format = 1", "format = 9").contains("format `9` (this version reads 1)"));
    assert!(fault("size = \"small\"", "size = \"tiny\"").contains("unknown size `tiny`"));
    assert!(
        fault("name = \"page\"\nabout", "name = \"steady\"\nabout")
            .contains("duplicate profile `steady`")
    );
    let text = fault("gc = [\"with-gc\"]", "gc = [\"later\"]");
    assert!(text.contains("unknown phase `later` (known: `with-gc` and `without-gc`)"), "{text}");
    let text = fault("gc = [\"with-gc\"]", "gc = [\"with-gc\"]\none_session = true");
    assert!(text.contains("expected no operation `new`"), "{text}");
    let text = fault("order = \"random\"\nstop", "order = \"random\"\ngc = [\"mixed\"]\nstop");
    assert!(text.contains("expected layout `page` and stop `time`"), "{text}");
    assert!(fault("a = \"redis\"", "a = \"rediss\"").contains("unknown target `rediss`"));
    let text = fault("text = \"Eight", "text = \"\\u001b[31mEight");
    assert!(text.contains("`text` contains a control character (expected plain text)"), "{text}");
}

#[test]
fn unsupported_loads_are_located() {
    let mut plan = study().plan(&choices()).unwrap();
    assert_eq!(plan.check(), Ok(()));
    let slos = vec!["p99<1ms".parse().unwrap()];
    let search = crate::Search { slos, probe_ns: 1, rounds: 2 };
    let searched = |arrivals| Load::planned(arrivals, Schedule::Search(search.clone()), 8);
    plan.cells[3].load = searched(Arrivals::Closed);
    let why = plan.check().unwrap_err();
    assert!(why.contains("load.arrivals` is `closed` (expected `poisson` or"), "{why}");
    plan.cells[3].load = searched(Arrivals::Poisson);
    let why = plan.check().unwrap_err();
    let expected =
        "`plan.cells[3].load` is `search for the highest rate with p99 < 1 ms, Poisson, over";
    assert!(
        why.starts_with(expected) && why.contains("8 clients` (expected a closed load"),
        "{why}"
    );
}
