//! Sizing for the failure of a server: which record of a failover counts, and what it allows.

use model::study::{Choices, Study};
use model::{PEAK, Scale, Workload};

use super::happened::at_share;
use super::quick;
use super::sizing::{answered, found, lack, only_deployment, question, rate, set};
use crate::fixture;
use crate::recorded::Recorded;
use crate::sizing::{Amount, Outcome, Question, RateAsked};

/// A primary with a replica, whose death at half of the highest rate lets p99 exceed 10 ms for
/// `late_ms`.
fn survived(late_ms: u64) -> Recorded {
    survived_of(late_ms, 1e5)
}

/// The same with this highest rate of the healthy store.
fn survived_of(late_ms: u64, peak_per_s: f64) -> Recorded {
    let mut recorded = at_share(500, late_ms);
    let points = recorded.trials.iter_mut().flat_map(|trial| &mut trial.points);
    for point in points.filter(|point| point.phase == PEAK) {
        for operation in &mut point.operations {
            operation.rate_per_s = peak_per_s;
        }
    }
    recorded.header.run = "0000fa11".into();
    for setting in [("save", ""), ("appendonly", "no"), ("replicas", "1"), ("sentinels", "3")] {
        set(&mut recorded, setting);
    }
    recorded
}

/// A question that one failure is to leave answered.
fn asked(per_s: u64, limit: &str) -> Question {
    let slos = vec![limit.parse().unwrap()];
    question(RateAsked { survive: 1, slos, ..rate(per_s) }, 1024)
}

#[test]
fn the_share_that_survives_a_failure_limits_the_rate() {
    let records = [found("redis", 1024, 1e5), survived(300)];
    let view = answered(&asked(40_000, "p99<10ms"), &records);
    let own = only_deployment(&view);
    // A primary with its replica instead of a spare server without data.
    assert_eq!((own.servers, own.shards, own.spare_shards, own.replicas), (2, 1, 0, 1));
    let of_rate = own.rate.as_ref().unwrap();
    let (lowest, _) = of_rate.measured_per_s.interval().unwrap();
    assert!((of_rate.usable_per_s - lowest * 0.5).abs() < 1e-6, "{of_rate:?}");
    assert_eq!((of_rate.survived_share, view.missing.len()), (Some(0.5), 0));
    let origin = own.measurements.last().unwrap();
    assert_eq!(origin.run, "0000fa11");
    for part in ["50 % of its highest rate, through the death of its primary", "on one host"] {
        assert!(origin.what.contains(part), "no `{part}` in {}", origin.what);
    }
    assert!(view.sentence.contains("also after one has failed"), "{}", view.sentence);
    let too_much = answered(&asked(60_000, "p99<10ms"), &records);
    let survives = "50 %, at which it survives the failure of a server, of at least";
    assert!(lack(&too_much).0.contains(survives), "{too_much:#?}");
    // Nothing is known of a stricter limit, of TLS, or of two failures.
    let view = answered(&asked(40_000, "p99<2ms"), &records);
    let (outcome, spare) = (view.outcome, only_deployment(&view).spare_shards);
    assert_eq!((outcome, spare), (Outcome::PartlyCovered, 1));
    assert!(view.sentence.contains("which was not measured"), "{}", view.sentence);
    let command = "cachedyno run failover --set value_bytes=1024 --set limit_ms=2";
    assert_eq!(view.missing[0].commands, [command]);
    let twice = Question {
        rate: asked(40_000, "p99<10ms").rate.map(|rate| RateAsked { survive: 2, ..rate }),
        ..asked(40_000, "p99<10ms")
    };
    let view = answered(&twice, &records);
    assert!(view.missing[0].text.contains("after 2 servers fail at once was not measured"));
    assert!(view.missing[0].commands.is_empty());
}

#[test]
fn the_rate_that_survived_limits_a_faster_store() {
    // Half of 20,000/s survived; half of 100,000/s was never offered when the server failed.
    let records = [found("redis", 1024, 1e5), survived_of(300, 2e4)];
    let view = answered(&asked(9_000, "p99<10ms"), &records);
    let own = only_deployment(&view);
    let of_rate = own.rate.as_ref().unwrap();
    assert!((of_rate.usable_per_s - 1e4).abs() < 1e-6, "{of_rate:?}");
    assert_eq!((of_rate.survived_share, of_rate.survived_per_s), (Some(0.5), Some(1e4)));
    let note = "no more than 10.0 k/s of each primary counts";
    assert!(own.notes.iter().any(|own| own.starts_with(note)), "{:?}", own.notes);
    let view = answered(&asked(11_000, "p99<10ms"), &records);
    let part = "10.0 k/s: the highest rate at which the failure of a server was survived, fewer";
    assert!(lack(&view).0.contains(part), "{view:#?}");
}

#[test]
fn a_higher_rate_of_a_healthy_store_does_not_raise_the_one_that_survived() {
    // 10,000/s were answered, and no more were offered; half of 8,000/s survived.
    let offered = || fixture::recorded(quick::plan(quick::SIZING, "latency"), 3, |_, _, _| 1e4);
    let lack_of = |records: &[Recorded]| {
        let view = answered(&asked(12_000, "p99<10ms"), records);
        assert_eq!(view.outcome, Outcome::NotCovered);
        view.missing[0].clone()
    };
    let healthy = lack_of(&[offered()]);
    assert!(healthy.text.contains("no more is known, because no higher rate was offered"));
    let survived = lack_of(&[offered(), survived_of(300, 8e3)]);
    let part = "4.00 k/s: the highest rate at which the failure of a server was survived";
    assert!(survived.text.contains(part), "{survived:#?}");
    assert!(survived.text.contains("scaling beyond one server was not measured"), "{survived:#?}");
}

/// Changes the load of a record of keys and values.
fn with_load(mut recorded: Recorded, change: impl Fn(&mut model::Kv)) -> Recorded {
    for cell in &mut recorded.header.plan.cells {
        let Workload::Kv(kv) = &mut cell.workload else { unreachable!("keys and values") };
        change(kv);
    }
    recorded
}

#[test]
fn a_failure_counts_only_with_values_of_the_size() {
    let of_size = |bytes: u64| with_load(survived(300), |kv| kv.value_bytes = bytes.to_string());
    let share = |failovers: &[Recorded]| {
        let records = [&[found("redis", 1024, 1e5)][..], failovers].concat();
        let view = answered(&asked(30_000, "p99<10ms"), &records);
        let of_rate = only_deployment(&view).rate.clone().unwrap();
        assert_eq!(of_rate.survived_share.is_none(), view.missing.len() == 1, "{view:#?}");
        (of_rate.survived_share, view.missing.first().map(|lack| lack.text.clone()))
    };
    let (none, text) = share(&[of_size(1000)]);
    assert_eq!(none, None);
    assert!(text.unwrap().ends_with("was not measured with values of 1 KiB"));
    assert_eq!(share(&[of_size(1024)]).0, Some(0.5));
    assert_eq!(share(&[of_size(2048)]).0, None);
    // Between two sizes the larger one counts.
    assert_eq!(share(&[of_size(1000), of_size(2048)]).0, Some(0.5));
}

#[test]
fn other_keys_and_operations_of_the_failover_are_noted() {
    let gets = |kv: &mut model::Kv| {
        for phase in &mut kv.phases {
            phase.mix = [("get".to_string(), 1.0)].into();
        }
        kv.keys = 50_000;
    };
    let notes = |keys: u64, failover: Recorded| {
        let asked = Question { amount: Some(Amount::Keys(keys)), ..asked(30_000, "p99<10ms") };
        only_deployment(&answered(&asked, &[found("redis", 1024, 1e5), failover])).notes.join("; ")
    };
    let same = notes(50_000, with_load(survived(300), gets));
    assert!(!same.contains("the failure of a server was measured"), "{same}");
    let more = notes(5_000_000, with_load(survived(300), gets));
    assert!(more.contains("measured with 50,000 keys of each primary, not 5,000,000"), "{more}");
    let sets = |kv: &mut model::Kv| {
        gets(kv);
        for phase in &mut kv.phases {
            phase.mix = [("get".to_string(), 0.5), ("set".to_string(), 0.5)].into();
        }
    };
    let other = notes(50_000, with_load(survived(300), sets));
    assert!(other.contains("measured under get=0.5,set=0.5, not get=1"), "{other}");
}

/// A search on a cluster of three shards.
fn cluster() -> Recorded {
    let mut recorded = found("redis-cluster", 1024, 1e5);
    set(&mut recorded, ("shards", "3"));
    recorded
}

#[test]
fn a_failover_by_sentinels_is_named_for_a_cluster() {
    let view = answered(&asked(40_000, "p99<10ms"), &[cluster(), survived(300)]);
    let own = only_deployment(&view);
    assert_eq!((own.servers, own.replicas), (6, 1));
    let note = "the failure of a server was measured with one primary, replaced by Sentinels, and \
                each primary is to survive the same share of its rate, and at most the same rate; \
                here the nodes of a cluster replace it themselves";
    assert!(own.notes.iter().any(|own| own.starts_with(note)), "{:#?}", own.notes);
    // Three primaries that each survive 50,000/s.
    assert_eq!(own.rate.as_ref().unwrap().survived_per_s, Some(1.5e5));
    // And the other way round.
    let mut failover = survived(300);
    for target in &mut failover.header.plan.targets {
        target.settings.remove("sentinels");
    }
    set(&mut failover, ("shards", "3"));
    let view = answered(&asked(10_000, "p99<10ms"), &[found("redis", 1024, 1e5), failover]);
    let own = only_deployment(&view);
    assert!((own.rate.as_ref().unwrap().usable_per_s - 5e4 / 3.0).abs() < 1.0, "{own:#?}");
    let note = "with 3 primaries of a cluster, and each primary";
    assert!(own.notes.iter().any(|own| own.contains(note)), "{:#?}", own.notes);
}

#[test]
fn without_a_share_that_survived_lower_ones_are_to_be_measured() {
    let records = [found("redis", 1024, 1e5), survived(1_900)];
    let view = answered(&asked(1, "p99<10ms"), &records);
    let (text, commands) = lack(&view);
    let parts = ["no measured share of its highest rate survived that (run 0000fa11)", "`redis`"];
    assert!(parts.iter().all(|part| text.contains(part)), "{text}");
    let command = "cachedyno run failover --set value_bytes=1024 --set limit_ms=10 \
                   --set shares=10,20,30,40";
    assert_eq!(commands, [command]);
}

/// The cells of the plan that a printed command of the study of failovers runs.
fn planned(command: &str) -> Vec<String> {
    let words: Vec<&str> = command.split(' ').collect();
    let flags = words.strip_prefix(&["cachedyno", "run", "failover"]).unwrap();
    let set = |flag: &[&str]| {
        assert_eq!((flag.len(), flag[0]), (2, "--set"), "{command}");
        let (key, value) = flag[1].split_once('=').unwrap();
        (key.to_string(), value.to_string())
    };
    let sets = flags.chunks(2).map(set).collect();
    let choices = Choices { sets, ..Choices::new(Scale::Quick, 7) };
    let plan = Study::parse("failover", quick::FAILOVER).unwrap().plan(&choices).unwrap();
    let settings = |target: &str| format!("{:?}", plan.target(target).unwrap().settings);
    plan.cells.iter().map(|cell| format!("{} {}", cell.id, settings(&cell.target))).collect()
}

#[test]
fn clusters_have_a_study_of_their_failure_also_with_tls() {
    let command = |mut recorded: Recorded, tls: bool, sets: &[(&str, &str)]| {
        for own in sets {
            set(&mut recorded, *own);
        }
        let asked = Question { tls, ..asked(30_000, "p99<10ms") };
        let view = answered(&asked, &[recorded]);
        assert_eq!((view.outcome, view.missing.len()), (Outcome::PartlyCovered, 1), "{view:#?}");
        view.missing[0].commands.clone()
    };
    let rest = "--set value_bytes=1024 --set limit_ms=10";
    let tls = [("listen", "tls")];
    let secure = command(found("redis-tls", 1024, 1e5), true, &tls);
    let start = "cachedyno run failover --set profile=cluster-proof";
    assert_eq!(secure, [format!("{start} --set redis.listen=tls {rest}")]);
    let cells = planned(&secure[0]);
    assert_eq!(cells.len(), 3, "{cells:?}");
    let is_secure = |cell: &&String| cell.contains(r#""listen": "tls""#);
    assert!(cells.iter().all(|cell| is_secure(&cell) && cell.contains(r#""shards": "3""#)));
    assert_eq!(command(cluster(), false, &[]), [format!("{start} {rest}")]);
    let six = command(cluster(), false, &[("shards", "6"), ("io-threads", "2")]);
    let sets = "--set redis.shards=6 --set redis.io-threads=2";
    assert_eq!(six, [format!("{start} {sets} {rest}")]);
    assert_eq!(planned(&six[0]).len(), 3);
    // One server behind a proxy has no replicas.
    let proxied = [("shards", "1"), ("proxy", "nutcracker")];
    assert!(command(found("redis", 1024, 1e5), false, &proxied).is_empty());
}
