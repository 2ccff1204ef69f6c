use super::*;
use crate::study::planning::tests::choices;
use crate::study::{Choices, Study, TargetChoice};
use crate::{Plan, PlannedTarget, Product, Program, Scale, Stop};

const RAMP_STUDY: &str = include_str!("../../../../studies/ramp.toml");

fn study() -> Study {
    Study::parse("ramp", RAMP_STUDY).unwrap()
}

fn with_sets(sets: &[(&str, &str)]) -> Result<Plan, StudyError> {
    let sets = sets.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
    study().plan(&Choices { sets, ..choices() })
}

fn message(sets: &[(&str, &str)]) -> String {
    with_sets(sets).unwrap_err().to_string()
}

fn kv(plan: &Plan) -> &Kv {
    match &plan.cells[0].workload {
        Workload::Kv(kv) => kv,
        other => panic!("{other:?}"),
    }
}

fn permille(plan: &Plan) -> Vec<u32> {
    match &plan.cells[0].load.schedule {
        Schedule::Shares(shares) => shares.permille.clone(),
        _ => panic!("{}", plan.cells[0].load),
    }
}

#[test]
fn the_default_plan_raises_and_lowers_the_rate_on_two_targets() {
    let plan = with_sets(&[]).unwrap();
    let ids: Vec<&str> = plan.cells.iter().map(|c| c.id.as_str()).collect();
    assert_eq!(ids, ["redis/open/64", "memcached/open/64"]);
    assert_eq!(plan.limit_ns, Some(1_000_000));
    let shares = permille(&plan);
    let top = shares.iter().position(|s| *s == 1_200).unwrap();
    assert!(shares[..=top].is_sorted() && shares[top..].is_sorted_by(|a, b| a > b));
    assert_eq!((shares[0], shares.last()), (20, Some(&20)));
    let kv = kv(&plan);
    let phases: Vec<_> = kv.phases.iter().map(|p| (p.name.as_str(), p.stop)).collect();
    let ramp_ns = 600_000_000 * shares.len() as u64;
    let control = Stop::AfterNs(600_000_000);
    let expected = [
        ("peak", Stop::AfterNs(800_000_000)),
        ("pair", control),
        ("swapped", control),
        ("apart", control),
        ("ramp", Stop::AfterNs(ramp_ns)),
    ];
    assert_eq!(phases, expected);
    assert_eq!((kv.key_bytes.as_deref(), kv.value_bytes.as_str()), (Some("uuid"), "json"));
    assert_eq!((kv.follows, kv.think_ns, kv.ttl_s), (true, 0, 20));
    let names: Vec<&str> = kv.operations.iter().map(|o| o.name.as_str()).collect();
    assert_eq!(names, ["set", "get"]);
}

#[test]
fn each_published_stage_adds_a_client_to_each_group() {
    let sets = vec![("profile".into(), "putra-2024".into())];
    let plan = study().plan(&Choices { scale: Scale::Full, sets, ..choices() }).unwrap();
    let load = &plan.cells[0].load;
    let Schedule::Stages(stages) = &load.schedule else { panic!("{load}") };
    assert_eq!((load.arrivals, load.clients, stages.len()), (Arrivals::Closed, 2_400, 120));
    let expected = |n: u64| Stage::level(20 * n, 60_000_000_000);
    assert_eq!((stages[0], stages[30]), (expected(1), expected(31)));
    assert_eq!(
        plan.cells[0].load.to_string(),
        "20 clients for 60 s, then 40 clients for 60 s, … then 2400 clients for 60 s, 120 stages in \
         all"
    );
    let kv = kv(&plan);
    assert_eq!((kv.think_ns, kv.think_is_drawn, kv.phases.len()), (49_000_000, true, 4));
    assert_eq!(kv.phases[3].stop, Stop::AfterNs(7_200_000_000_000));
}

#[test]
fn every_scale_and_profile_plans() {
    for scale in [Scale::Quick, Scale::Standard, Scale::Full] {
        let sets = vec![("profile".to_string(), "all".to_string())];
        let plan = study().plan(&Choices { scale, sets, ..choices() }).unwrap();
        assert_eq!((plan.profiles.len(), plan.cells.len()), (3, 6));
        assert!(plan.cells.iter().all(|cell| cell.load.is_staged()));
    }
}

#[test]
fn a_profile_can_search_for_the_highest_rate_within_limits() {
    let plan = with_sets(&[("profile", "search"), ("clients", "8,16")]).unwrap();
    let ids: Vec<&str> = plan.cells.iter().map(|c| c.id.as_str()).collect();
    assert_eq!(
        ids,
        ["redis/search/8", "memcached/search/8", "redis/search/16", "memcached/search/16"]
    );
    let slos = vec!["p99<1ms".parse().unwrap()];
    let search = Schedule::Search(Search { slos, probe_ns: 600_000_000, rounds: 5 });
    assert_eq!(plan.cells[0].load, Load::planned(Arrivals::Poisson, search, 8));
    assert_eq!(kv(&plan).phases.len(), 1);
    assert_eq!(plan.check(), Ok(()));
    for (sets, expected) in [
        (&[("stage_ms", "400")][..], "`400` is too short for the probes"),
        (&[("rates", "1000")], "whose stages have no fixed rates"),
        (&[("step", "2")], "whose stages set the rate"),
    ] {
        let error = with_sets(&[&[("profile", "search")], sets].concat()).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    for (from, to, expected) in [
        ("limits = [\"p99<1ms\"]\n", "", "profile `search` has no limits"),
        ("limits = [\"p99<1ms\"]\n", "limits = []\n", "limits must be 1 to 16"),
        ("limits = [\"p99<1ms\"]\n", "limits = [\"p99<1\"]\n", "`p99<1`"),
        ("pace = \"search\"\n", "pace = \"clients\"\ngroups = 2\n", "`limits` needs `pace"),
        ("pace = \"search\"\n", "pace = \"search\"\ngroups = 2\n", "`groups` needs `pace"),
    ] {
        let text = RAMP_STUDY.replace(from, to);
        assert_ne!(text, RAMP_STUDY);
        let error = Study::parse("r.toml", &text).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn optional_targets_are_measured_when_named() {
    let targets = ["redis-io4", "memcached-1", "valkey=redis://127.0.0.1:7000/1"];
    let targets = targets.iter().map(|t| TargetChoice::parse(t).unwrap()).collect();
    let plan = study().plan(&Choices { targets, ..choices() }).unwrap();
    let settings = |name: &str| plan.target(name).unwrap().settings.clone();
    assert_eq!(settings("redis-io4")["io-threads"], "4");
    assert_eq!(settings("memcached-1")["threads"], "1");
    assert!(settings("valkey").is_empty());
    assert_eq!(plan.target("valkey").unwrap().program, None, "a server at a URL is not started");
    let unfit = |text: &str| {
        let targets = vec![TargetChoice::parse(text).unwrap()];
        study().plan(&Choices { targets, ..choices() }).unwrap_err().to_string()
    };
    assert!(unfit("files").contains("files does not store keys and values"), "{}", unfit("files"));
    assert!(unfit("db=mysql://root@localhost/x").contains("mysql does not store keys and values"));
    assert!(unfit("other").contains("unknown target `other` (known: `redis`, `memcached`, "));
}

#[test]
fn programs_started_instead_of_redis_are_planned_and_recorded() {
    let targets = ["redis", "valkey", "keydb"];
    let targets = targets.iter().map(|t| TargetChoice::parse(t).unwrap()).collect();
    let plan = study().plan(&Choices { targets, control: true, ..choices() }).unwrap();
    let stored = |name: &str| serde_json::to_string(plan.target(name).unwrap()).unwrap();
    for (name, program, text) in [
        ("redis", None, r#""program":null"#),
        ("redis-again", None, r#""program":null"#),
        ("valkey", Program::of_target("valkey"), r#""program":"valkey-server""#),
        ("keydb", Program::of_target("keydb"), r#""program":"keydb-server""#),
    ] {
        let target = plan.target(name).unwrap();
        assert_eq!((target.product, target.program), (Product::Redis, program), "{name}");
        assert_eq!(target.settings, plan.target("redis").unwrap().settings, "{name}");
        assert!(stored(name).contains(text), "{}", stored(name));
        assert_eq!(serde_json::from_str::<PlannedTarget>(&stored(name)).unwrap(), *target);
    }
}

#[test]
fn programs_of_another_product_are_rejected() {
    let own = "program = \"valkey-server\"";
    let error = |from: &str, to: &str| {
        assert!(RAMP_STUDY.contains(from), "{from}");
        let text = RAMP_STUDY.replacen(from, to, 1);
        Study::parse("r.toml", &text).unwrap_err().to_string()
    };
    let text = error("name = \"memcached\"\n", &format!("name = \"memcached\"\n{own}\n"));
    let expected = "target `memcached`: valkey-server is not a memcached server (expected redis)";
    assert!(text.ends_with(expected), "{text}");
    let text = error(own, "program = \"sh\"");
    assert!(
        text.contains("unknown program `sh` (known: `valkey-server`, `keydb-server`"),
        "{text}"
    );
    let cache = include_str!("../../../../studies/app-cache.toml");
    let cache = cache.replacen("[[targets]]\n", &format!("[[targets]]\n{own}\n"), 1);
    let text = Study::parse("c.toml", &cache).unwrap_err().to_string();
    assert!(text.contains("`program` is not a key in studies of application caches"), "{text}");
}

#[test]
fn rates_order_and_lengths_can_be_chosen() {
    let plan = with_sets(&[("rates", "1000,5000,9000"), ("order", "up"), ("stage_ms", "100")]);
    let plan = plan.unwrap();
    let stages = [1_000, 5_000, 9_000].map(|rate| Stage::level(rate, 100_000_000));
    let expected = Load::planned(Arrivals::Poisson, Schedule::Stages(stages.into()), 64);
    assert_eq!(plan.cells[0].load, expected);
    assert_eq!(
        with_sets(&[("order", "up")]).unwrap().cells[0].load.to_string(),
        format!("up to 120 % of the peak in 16 steps of 0.6 s, Poisson, over 64 clients")
    );
    let plan = with_sets(&[("clients", "8,128"), ("value_bytes", "1024"), ("limit", "250us")]);
    let plan = plan.unwrap();
    assert_eq!((plan.cells.len(), plan.limit_ns), (4, Some(250_000)));
    assert_eq!(kv(&plan).value_bytes, "1024");
    let plan = with_sets(&[("value_bytes", "1024"), ("value_bytes", "json")]).unwrap();
    assert_eq!(kv(&plan).value_bytes, "json");
    let sets = [("profile", "putra-2024"), ("stages", "3"), ("step", "2"), ("think_ms", "10")];
    let plan = with_sets(&sets).unwrap();
    assert_eq!(plan.cells[0].id, "redis/putra-2024/120");
    assert_eq!(kv(&plan).think_ns, 10_000_000);
}

#[test]
fn a_shuffled_order_contains_each_rate_once_and_depends_on_the_seed() {
    let shuffled = |seed| {
        let sets = vec![("order".into(), "shuffled".into())];
        permille(&study().plan(&Choices { sets, seed, ..choices() }).unwrap())
    };
    let mut once = shuffled(7);
    assert_eq!(once, shuffled(7));
    assert_ne!(once, shuffled(8));
    assert!(!once.is_sorted());
    once.sort_unstable();
    assert_eq!(once, permille(&with_sets(&[("order", "up")]).unwrap()));
}

#[test]
fn shuffled_stages_are_separated_by_cool_downs() {
    for sets in [&[("order", "shuffled"), ("rates", "100,200,300")][..], &[("order", "shuffled")]] {
        let plan = with_sets(sets).unwrap();
        let load = &plan.cells[0].load;
        assert_eq!(load.to_string().contains("pauses of 0.6 s between them"), sets.len() == 1);
        assert_eq!(kv(&plan).phases.last().unwrap().stop, Stop::AfterNs(load.stages_ns()));
        let Schedule::Stages(stages) = load.clone().at_peak(1e6).schedule else { panic!("{load}") };
        assert_eq!(load.stages_ns(), stages.len() as u64 * 600_000_000);
        assert!(stages.iter().enumerate().all(|(i, stage)| (stage.from == 0) == (i % 2 == 1)));
    }
}

#[test]
fn errors_state_the_expected_values() {
    for (sets, expected) in [
        (&[("rates", "5,3")][..], "from low to high"),
        (&[("rates", "0")], "as in `1000,2000,5000`"),
        (&[("rates", "")], "--set rates=`` is invalid"),
        (&[("order", "down")], "`up-down`, `up` or `shuffled`"),
        (&[("limit", "1")], "1us to 60s, as in `1ms`"),
        (&[("limit", "2m")], "1us to 60s"),
        (&[("stage_ms", "99")], "100 to 86400000 milliseconds"),
        (&[("threads", "0")], "1 to 1024 threads"),
        (&[("value_bytes", "31")], "`json`, or 32 to 16777216 bytes"),
        (&[("clients", "0")], "expected 1 to 4096, or several"),
        (&[("tags", "5")], "unknown key `tags`"),
        (&[("mysql.x", "5")], "unknown key `mysql.x`"),
        (
            &[("profile", "open"), ("stages", "5")],
            "--set stages=`5` has no effect on profile `open`",
        ),
        (
            &[("rates", "30"), ("stage_ms", "500")],
            "a stage at `30`/s has only 12 request(s) in 0.4 s",
        ),
        (&[("profile", "putra-2024"), ("rates", "5")], "has no effect on profile `putra-2024`"),
        (&[("profile", "putra-2024"), ("step", "900")], "ends with `360000` clients"),
    ] {
        let message = message(sets);
        assert!(message.contains(expected), "{sets:?}: {message}");
    }
    // Other studies do not have these keys.
    let sessions = include_str!("../../../../studies/sessions.toml");
    let sessions = Study::parse("sessions", sessions).unwrap();
    for key in ["order", "rates", "limit", "stage_ms"] {
        let sets = vec![(key.to_string(), "1".to_string())];
        let error = sessions.plan(&Choices { sets, ..choices() }).unwrap_err().to_string();
        assert!(error.starts_with(&format!("unknown key `{key}`")), "{error}");
        assert!(!error.contains("`stage_ms`,"), "{error}");
    }
}

#[test]
fn faults_of_a_file_are_located() {
    for (from, to, line_has, problem) in [
        ("permille = [20, 50,", "permille = [20, 20,", "permille", "ascending numbers"),
        ("groups = 20", "groups = 0", "groups", "1 to 1000"),
        ("stage_ms = 600", "stage_ms = 99", "stage_ms", "`99` is invalid (expected 100 to"),
        ("threads = 1", "threads = 0", "threads", "`0` is invalid (expected 1 to 1024 threads)"),
        ("groups = 20", "permille = [1]", "putra-2024", "has no groups"),
        ("pace = \"clients\"", "pace = \"open\"", "putra-2024", "has no permille"),
        (
            "limit = \"1ms\"",
            "limit = \"fast\"",
            "limit",
            "limit `fast` is invalid (expected 1us to 60s",
        ),
        ("stages = 20", "stages = 0", "stages = 0", "`0` is invalid (expected 1 to 1000)"),
        (
            "pace = \"clients\"\n",
            "pace = \"clients\"\nstop = \"time\"\n",
            "stop",
            "unknown field `stop`, expected one of `name`",
        ),
        (
            "product = \"memcached\"",
            "product = \"files\"",
            "name",
            "files does not store keys and values",
        ),
        ("ttl_s = 20 ", "", "[defaults]", "missing field `ttl_s`"),
    ] {
        assert!(RAMP_STUDY.contains(from), "{from}");
        let text = RAMP_STUDY.replacen(from, to, 1);
        let error = Study::parse("r.toml", &text).unwrap_err();
        let StudyError::Located { line, problem: found, .. } = &error else { panic!("{error}") };
        assert!(found.contains(problem), "{found}");
        assert!(text.lines().nth(line - 1).unwrap().contains(line_has), "{line}: {found}");
    }
}

#[test]
fn shares_of_a_peak_become_stages() {
    let shares = Shares { permille: vec![100, 1_200], stage_ns: 5, rest_ns: 0 };
    let ramp = Load::planned(Arrivals::Poisson, Schedule::Shares(shares), 3);
    let stages = vec![Stage::level(1_000, 5), Stage::level(12_000, 5)];
    let at_peak = ramp.clone().at_peak(10_000.0);
    assert_eq!(at_peak, Load { schedule: Schedule::Stages(stages), ..ramp.clone() });
    assert_eq!((ramp.highest_per_s(), at_peak.highest_per_s()), (None, Some(12_000)));
    assert_eq!(ramp.in_phase(PEAK), Load::closed(3));
    assert_eq!(ramp.in_phase(RAMP), ramp);
    let stored = serde_json::to_string(&ramp).unwrap();
    assert_eq!(serde_json::from_str::<Load>(&stored).unwrap(), ramp);
    assert!(stored.contains(r#""schedule":{"shares":{"permille":[100,1200]"#), "{stored}");
}

#[test]
fn controls_have_their_own_order_share_and_keys() {
    let plan = with_sets(&[("keys", "500")]).unwrap();
    let (kv, load) = (kv(&plan), &plan.cells[0].load);
    let seen = |name: &str| {
        let phase = kv.phases.iter().find(|phase| phase.name == name).unwrap();
        let control = phase.control.clone();
        (control.map(|c| (c.sequence, c.permille, c.keys)), kv.operations_of_one_paced(phase))
    };
    let order = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(seen("pair"), (Some((order(&["set", "get"]), 250, 500)), 2));
    assert_eq!(seen("swapped"), (Some((order(&["get", "set"]), 250, 500)), 2));
    assert_eq!(seen("apart"), (Some((order(&[]), 250, 500)), 1));
    assert_eq!((seen("peak"), seen("ramp")), ((None, 2), (None, 2)));
    let steady = Schedule::Steady(10_000);
    assert_eq!(load.part(250, 40_000.0, 2), Load { schedule: steady, ..load.clone() });
    // Under a closed load, each single operation has its own client.
    let closed = Load::closed(100);
    assert_eq!([1, 2].map(|n| closed.part(100, 0.0, n)), [10, 20].map(Load::closed));
    let text = RAMP_STUDY.replace("control_permille = 250", "control_permille = 501");
    let error = Study::parse("r.toml", &text).unwrap_err().to_string();
    assert!(error.contains("control_permille must be 1 to 500"), "{error}");
    let text =
        RAMP_STUDY.replace("control_permille = 250\n", "").replace("control_permille = 100\n", "");
    let plan = Study::parse("r.toml", &text).unwrap().plan(&choices()).unwrap();
    assert_eq!(plan.cells[0].workload.phases().len(), 2);
}

#[test]
fn claims_about_ramps_are_checked() {
    let plan = with_sets(&[]).unwrap();
    assert!(plan.claims.len() > 10);
    assert!(plan.claims.iter().all(|claim| claim.expect.is_of_ramps()));
    for (from, to, problem) in [
        ("a = \"memcached\"", "a = \"other\"", "unknown target `other`"),
        ("over = \"redis\"", "over = \"mysql\"", "unknown target `mysql`"),
        ("of = \"reached\"", "of = \"reachd\"", "unknown variant `reachd`"),
        ("of = \"reached\"", "of = \"cpu\"", "a ratio of `cpu` needs `shares` of the lower knee"),
        ("kind = \"slower\"", "kind = \"slow\"", "unknown kind of claim (known: `ratio`, `order`"),
        (
            "of = \"mean\"",
            "of = \"cpu\"",
            "for a claim of kind `slower` (expected `p99` or `mean`)",
        ),
        ("max = 1.31", "max = 1.0", "invalid range of a claim, 1.07 to 1"),
        ("than = \"get\"", "than = \"touch\"", "unknown operation `touch`"),
        ("share = 0.5 }", "share = 0.0 }", "`0` in a claim (expected a number above 0)"),
        ("min = 1.25 }", "min = nan }", "`NaN` in a claim"),
    ] {
        assert!(RAMP_STUDY.contains(from), "{from}");
        let text = RAMP_STUDY.replacen(from, to, 1);
        let error = Study::parse("r.toml", &text).unwrap_err().to_string();
        assert!(error.contains(problem) && error.contains("line "), "{error}");
    }
    let sessions = include_str!("../../../../studies/sessions.toml");
    let expect = "expect = { kind = \"pick\", target = \"redis\", over = \"files\", share = 0.5 }";
    let from = sessions.lines().find(|line| line.starts_with("expect")).unwrap();
    let error = Study::parse("s.toml", &sessions.replacen(from, expect, 1)).unwrap_err();
    assert!(error.to_string().contains("a claim about ramps in a study without ramps"), "{error}");
}

#[test]
fn limits_beyond_the_timeout_are_rejected() {
    let ladder = with_sets(&[("timeout_ms", "500"), ("limit", "600ms")]).unwrap();
    let message = ladder.check().unwrap_err();
    assert!(message.contains("`600 ms` exceeds the timeout of 500 ms"), "{message}");
    let search = with_sets(&[("profile", "search")]).unwrap();
    let message = Plan { timeout_ns: 500_000, ..search }.check().unwrap_err();
    assert!(message.contains("`1.00 ms` exceeds the timeout of 500 µs"), "{message}");
}
