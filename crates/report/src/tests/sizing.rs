//! Answers to questions of sizing: what is answered, what is refused, and what is left out.

use model::{EventKind, Fact, Sample, Series, StoreCounters, Trial, TrialEvent, Workload};

use super::quick;
use super::search::{STORE, Store, of as searched};
use crate::fixture;
use crate::judge;
use crate::recorded::Recorded;
use crate::sizing::{
    Amount, DeploymentView, Evidence, Mix, Outcome, Question, RateAsked, SizingView, size, text,
};

/// A search that found about 100,000/s on `target` with p99 < 1 ms, over three blocks: values of
/// `value_bytes`, 128 bytes more for each key.
pub(super) fn found(target: &str, value_bytes: u64, knee_per_s: f64) -> Recorded {
    let mut recorded = searched(&[(target, Store { knee_per_s, ..STORE })], 3, 2, |_| {});
    for cell in &mut recorded.header.plan.cells {
        let Workload::Kv(kv) = &mut cell.workload else { unreachable!("keys and values") };
        kv.value_bytes = value_bytes.to_string();
    }
    for trial in &mut recorded.trials {
        trial.facts.push(bytes_per_key(value_bytes as f64 + 128.0));
        trial.fill.clone_from(&trial.points.first().cloned());
    }
    recorded.header.run = format!("{value_bytes:08x}");
    for setting in [("save", ""), ("appendonly", "no"), ("listen", "tcp")] {
        set(&mut recorded, setting);
    }
    recorded
}

fn bytes_per_key(value: f64) -> Fact {
    Fact { name: Fact::BYTES_PER_KEY.into(), value, source: "INFO".into() }
}

pub(super) fn set(recorded: &mut Recorded, (name, value): (&str, &str)) {
    for target in &mut recorded.header.plan.targets {
        target.settings.insert(name.into(), value.into());
    }
}

pub(super) fn evidence(records: &[Recorded]) -> Evidence {
    let mut all = Evidence::default();
    for recorded in records {
        all.add(Evidence::of(recorded, &judge(recorded), "2026-11-27 20:00"));
    }
    all
}

pub(super) fn rate(per_s: u64) -> RateAsked {
    let slos = vec!["p99<1ms".parse().unwrap()];
    RateAsked { per_s, slos, headroom: 0.8, survive: 0, mix: None }
}

pub(super) fn question(rate: RateAsked, value_bytes: u64) -> Question {
    Question {
        rate: Some(rate),
        amount: None,
        value_bytes: Some(value_bytes),
        writes_per_s: None,
        tls: false,
    }
}

pub(super) fn answered(question: &Question, records: &[Recorded]) -> SizingView {
    size(question, &evidence(records), None, None)
}

pub(super) fn only_deployment(view: &SizingView) -> &DeploymentView {
    assert_eq!(view.deployments.len(), 1, "{view:#?}");
    &view.deployments[0]
}

/// The only lack, with its commands.
pub(super) fn lack(view: &SizingView) -> (&str, &[String]) {
    assert_eq!((view.outcome, view.missing.len()), (Outcome::NotCovered, 1), "{view:#?}");
    (&view.missing[0].text, &view.missing[0].commands)
}

#[test]
fn a_deployment_uses_a_share_of_the_lower_end_of_the_measured_rate() {
    let records = [found("redis", 1024, 1e5)];
    let asked = Question { amount: Some(Amount::Keys(5_000_000)), ..question(rate(40_000), 1024) };
    let view = answered(&asked, &records);
    let own = only_deployment(&view);
    let of_rate = own.rate.as_ref().unwrap();
    let (lowest, _) = of_rate.measured_per_s.interval().unwrap();
    assert!((lowest / 1e5 - 1.0).abs() < 0.1 && of_rate.is_highest, "{of_rate:?}");
    assert!((of_rate.usable_per_s - lowest * 0.8).abs() < 1e-6);
    let memory = own.memory.as_ref().unwrap();
    assert_eq!((own.servers, memory.data_bytes), (1, 5_000_000 * 1152));
    assert_eq!(memory.maxmemory_bytes, memory.total_bytes);
    let origin = &own.measurements[0];
    assert_eq!((&*origin.run, &*origin.cell), ("00000400", "redis/get=1/50"));
    assert!(own.notes.iter().any(|n| n.contains("1,000 keys, and is to keep 5,000,000")));
    insta::assert_snapshot!("a_deployment_at_100_columns", text::render(&view, 100, false));
    // The rate itself, not only the share of it, would have been enough.
    let view = answered(&question(rate(90_000), 1024), &records);
    assert_eq!(view.outcome, Outcome::NotCovered);
}

#[test]
fn servers_that_may_fail_are_further_ones_that_leave_enough() {
    let records = [found("redis", 1024, 1e5)];
    let survive = |survive| {
        let rate = RateAsked { survive, ..rate(40_000) };
        let asked = Question { amount: Some(Amount::Keys(1_000)), ..question(rate, 1024) };
        let view = answered(&asked, &records);
        let own = only_deployment(&view);
        let memory = own.memory.as_ref().unwrap();
        (own.servers, own.shards, memory.maxmemory_bytes, memory.total_bytes)
    };
    // Each of them keeps all keys, since the others may fail.
    assert_eq!(survive(0), (1, 1, 1_152_000, 1_152_000));
    assert_eq!(survive(1), (2, 1, 1_152_000, 2_304_000));
    assert_eq!(survive(2), (3, 1, 1_152_000, 3_456_000));
}

#[test]
fn a_stricter_limit_covers_a_looser_one_but_not_the_reverse() {
    let records = [found("redis", 1024, 1e5)];
    let covered = |limit: &str| {
        let slos = vec![limit.parse().unwrap()];
        answered(&question(RateAsked { slos, ..rate(40_000) }, 1024), &records).outcome
    };
    for limit in ["p99<1ms", "p99<2ms", "p95<1ms", "error<1%", "error<2%"] {
        assert_eq!(covered(limit), Outcome::Covered, "{limit}");
    }
    for limit in ["p99<999us", "p99.9<1ms", "error<0.9%"] {
        assert_eq!(covered(limit), Outcome::NotCovered, "{limit}");
    }
}

#[test]
fn a_value_between_two_measured_sizes_is_planned_with_the_larger() {
    let records = [found("redis", 100, 1e5), found("redis", 4096, 5e4)];
    let view = answered(&question(rate(30_000), 1024), &records);
    let own = only_deployment(&view);
    assert_eq!(own.rate.as_ref().unwrap().value_bytes, 4096);
    assert!(own.notes.iter().any(|note| note.contains("values of 1 KiB were not measured")));
    // 30,000/s of the smaller size would be possible, 45,000/s of the larger is not.
    let view = answered(&question(rate(45_000), 1024), &records);
    assert!(lack(&view).0.contains("fewer than 45.0 k/s"), "{view:#?}");
    for outside in [99, 4097] {
        let view = answered(&question(rate(1_000), outside), &records);
        let (text, commands) = lack(&view);
        assert!(text.contains("(measured: 100 B and 4 KiB;"), "{text}");
        let value = format!("--value {outside}");
        assert!(commands[0].contains(&value) && commands[0].contains("--slo 'p99<1ms'"));
    }
}

#[test]
fn tls_is_only_covered_by_measurements_with_it() {
    let asked = Question { tls: true, ..question(rate(40_000), 1024) };
    let plain = found("redis", 1024, 1e5);
    let view = answered(&asked, std::slice::from_ref(&plain));
    let (text, commands) = lack(&view);
    assert!(text.contains("with TLS (without: redis)"), "{text}");
    assert!(commands[0].contains("--set listen=tls"), "{commands:?}");
    let mut secure = found("redis", 1024, 6e4);
    set(&mut secure, ("listen", "tls"));
    let records = [plain, secure];
    assert!(only_deployment(&answered(&asked, &records)).tls);
    // Without the condition both are deployments.
    assert_eq!(answered(&question(rate(40_000), 1024), &records).deployments.len(), 2);
}

#[test]
fn the_slowest_mix_counts_unless_one_is_chosen() {
    let mut sets = found("redis", 1024, 6e4);
    for cell in &mut sets.header.plan.cells {
        let Workload::Kv(kv) = &mut cell.workload else { unreachable!("keys and values") };
        kv.phases[0].mix = [("set".to_string(), 1.0)].into();
    }
    sets.header.run = "000000aa".into();
    let records = [found("redis", 1024, 1e5), sets];
    let usable = |mix: Option<&str>| {
        let mix = mix.and_then(|name| Mix::new([(name, 1.0)]));
        let view = answered(&question(RateAsked { mix, ..rate(1_000) }, 1024), &records);
        let own = only_deployment(&view).clone();
        (own.rate.unwrap().usable_per_s, own.notes.join(" "))
    };
    let (slowest, notes) = usable(None);
    assert!(slowest < 5e4 && notes.contains("also get=1 at"), "{slowest} {notes}");
    assert!(usable(Some("get")).0 > 7e4);
    let mix = Mix::new([("get", 0.5), ("set", 0.5)]);
    let view = answered(&question(RateAsked { mix, ..rate(1_000) }, 1024), &records);
    let (text, commands) = lack(&view);
    assert!(text.contains("(measured: get=1 and set=1)"), "{text}");
    assert!(commands[0].contains("--op get=0.5,set=0.5"), "{commands:?}");
}

#[test]
fn a_later_run_replaces_an_earlier_one_of_the_same() {
    let (mut old, new) = (found("redis", 1024, 2e5), found("redis", 1024, 1e5));
    old.header.run = "0000aaaa".into();
    old.header.started_unix_ms -= 1;
    let view = answered(&question(rate(1_000), 1024), &[old, new]);
    assert_eq!(only_deployment(&view).measurements[0].run, "00000400");
    let left = &view.left_out[0];
    assert_eq!((&*left.run, &*left.reason), ("0000aaaa", "run 00000400 measured the same later"));
}

#[test]
fn unusable_records_are_left_out_with_the_reason() {
    let asked = question(rate(1_000), 1024);
    let reason = |change: &dyn Fn(&mut Recorded)| {
        let mut recorded = found("redis", 1024, 1e5);
        change(&mut recorded);
        let view = answered(&asked, &[recorded]);
        assert!(lack(&view).0.contains("see what was left out"), "{view:#?}");
        view.left_out[0].reason.clone()
    };
    assert!(reason(&|r| r.seal = None).starts_with("killed before its end"));
    let interrupted = |r: &mut Recorded| {
        r.seal.as_mut().unwrap().status = model::SealStatus::Interrupted;
    };
    assert!(reason(&interrupted).starts_with("interrupted"));
    let wrong = |r: &mut Recorded| {
        let point = r.trials[0].points.last_mut().unwrap();
        point.operations[0].counts.wrong = 1;
    };
    assert!(reason(&wrong).starts_with("INVALID: "));
    let one_key = |r: &mut Recorded| {
        for cell in &mut r.header.plan.cells {
            let Workload::Kv(kv) = &mut cell.workload else { unreachable!("keys and values") };
            kv.keys = 1;
        }
    };
    assert_eq!(reason(&one_key), "all of its requests are for one key");
    let mut view = judge(&found("redis", 1024, 1e5));
    view.mark_changed(vec!["trials.jsonl".into()]);
    let evidence = Evidence::of(&found("redis", 1024, 1e5), &view, "");
    let view = size(&asked, &evidence, None, None);
    assert_eq!(view.left_out[0].reason, "changed after it was sealed: trials.jsonl");
}

/// The profile `shards` of the study, with rates by target.
fn shards(rates: fixture::Rates) -> Recorded {
    fixture::recorded(quick::plan(quick::SIZING, "shards"), 6, rates)
}

/// Each server of a cluster answers 80 % of the rate of one alone.
fn scales(target: &str, _: &str, _: u32) -> f64 {
    let shards = target.strip_prefix("redis-").and_then(|n| n.split('-').next()?.parse().ok());
    1e5 * shards.map_or(1.0, |shards: f64| if shards > 1.0 { 0.8 * shards } else { 0.95 })
}

/// Servers that share one CPU: more of them answer less.
fn flat(target: &str, _: &str, _: u32) -> f64 {
    let shards = target.strip_prefix("redis-").and_then(|n| n.split('-').next()?.parse().ok());
    1e5 * shards.map_or(1.0, |shards: f64| 1.0 - 0.05 * shards)
}

#[test]
fn several_servers_carry_what_a_cluster_was_measured_to_carry() {
    let records = [found("redis", 1024, 1e5), shards(scales)];
    let asked = |per_s, survive| question(RateAsked { survive, ..rate(per_s) }, 1024);
    let deployments = |per_s, survive| {
        let view = answered(&asked(per_s, survive), &records);
        let of = |p: &DeploymentView| {
            (p.target.clone(), p.servers, p.shards, p.spare_shards, p.replicas)
        };
        view.deployments.iter().map(of).collect::<Vec<_>>()
    };
    assert_eq!(deployments(40_000, 0)[0], ("redis".into(), 1, 1, 0, 0));
    // 0.8 of 3 × 0.8 × 100,000/s; the cluster with replicas needs none to survive one failure.
    let three = deployments(150_000, 1);
    assert!(three.contains(&("redis-3-shards".into(), 4, 3, 1, 0)), "{three:?}");
    assert!(three.contains(&("redis-3-shards-replicated".into(), 6, 3, 0, 1)), "{three:?}");
    assert_eq!(deployments(300_000, 0), [("redis-6-shards".into(), 6, 6, 0, 0)]);
    let view = answered(&asked(300_000, 0), &records);
    let own = only_deployment(&view);
    assert!(own.measurements[1].what.starts_with("rate of redis-6-shards by that of redis"));
    assert!(own.notes.iter().any(|note| note.contains("all on one host")), "{:?}", own.notes);
    // More than six were not measured.
    let view = answered(&asked(500_000, 0), &records);
    assert_eq!(view.outcome, Outcome::NotCovered);
    let lack = &view.missing[0];
    assert!(lack.text.contains("more than 6 servers were not measured"), "{}", lack.text);
    assert!(lack.commands[0].contains("--set shards=8"), "{:?}", lack.commands);
}

#[test]
fn servers_that_share_cpus_do_not_count_as_more() {
    let records = [found("redis", 1024, 1e5), shards(flat)];
    let view = answered(&question(rate(200_000), 1024), &records);
    assert_eq!(view.outcome, Outcome::NotCovered);
    let lack = &view.missing[0];
    assert!(lack.text.starts_with("`redis` (Redis 7.0.15) carries "), "{}", lack.text);
    assert!(lack.text.contains("6 servers carry "), "{}", lack.text);
    assert!(lack.text.contains("so its CPUs can be the limit"), "{}", lack.text);
    assert!(lack.commands.iter().any(|c| c.contains("redis+cluster://HOST:PORT")));
}

#[test]
fn without_clusters_nothing_is_inferred_for_them() {
    let view = answered(&question(rate(200_000), 1024), &[found("redis", 1024, 1e5)]);
    let (text, commands) = lack(&view);
    assert!(text.contains("scaling beyond one server was not measured"), "{text}");
    assert!(commands[0].contains("find-max redis") && commands[0].contains("--set shards=3"));
}

#[test]
fn cheap_plans_come_first_and_unpriced_ones_last() {
    let mut secure = found("redis-tls", 1024, 6e4);
    set(&mut secure, ("listen", "tls"));
    let evidence = evidence(&[found("redis", 1024, 1e5), secure]);
    let names = |prices: &str| {
        let prices = model::Prices::parse(&format!("currency = \"EUR\"\n[per_hour]\n{prices}"));
        let view = size(&question(rate(36_000), 1024), &evidence, Some(&prices.unwrap()), None);
        let of =
            |p: &DeploymentView| (p.target.clone(), p.cost.as_ref().and_then(|c| c.per_million));
        view.deployments.iter().map(of).collect::<Vec<_>>()
    };
    let both = names("redis = 1.296\nredis-tls = 0.1296\n");
    assert_eq!(both[0].0, "redis-tls");
    // 0.1296 per hour of 36,000 × 3,600 requests.
    assert!((both[0].1.unwrap() - 0.001).abs() < 1e-9, "{both:?}");
    assert_eq!(names("redis-tls = 9\n")[1], ("redis".into(), None));
}

/// A save of 10 s in a phase with 50,000 writes per second, which copied 60 % of the data.
fn saved() -> Recorded {
    let mut recorded =
        fixture::recorded(quick::plan(quick::BEYOND_RAM, "save"), 3, |_, _, _| 50_000.0);
    let keys = match &recorded.header.plan.cells[0].workload {
        Workload::Kv(kv) => kv.keys,
        _ => unreachable!("keys and values"),
    };
    let mut samples = Vec::new();
    for trial in &mut recorded.trials {
        with_save(trial, keys);
        let store = StoreCounters {
            saving: Some(0),
            keys: Some(keys),
            fragmentation: Some(1.1),
            ..StoreCounters::default()
        };
        let sample = Sample { at_ns: 1, store: Some(store), ..Sample::default() };
        samples.push(((trial.block, trial.cell.clone()), vec![sample]));
    }
    recorded.samples.extend(samples);
    recorded
}

fn with_save(trial: &mut Trial, keys: u64) {
    let data_bytes = 1_200.0 * keys as f64;
    let copied =
        Fact { name: "save_copied_bytes".into(), value: 0.6 * data_bytes, source: "INFO".into() };
    trial.facts = vec![bytes_per_key(1_200.0), copied];
    let mut fill = trial.points[0].clone();
    fill.operations[0].counts.ok = keys;
    trial.fill = Some(fill);
    let event = |at_ns, kind| TrialEvent { at_ns, kind, subject: String::new() };
    trial.events = vec![
        event(2_000_000_000, EventKind::SaveBegan),
        event(11_999_999_999, EventKind::SaveEnded),
    ];
    // Fifteen seconds of 5,000 operations per 100 ms.
    for point in &mut trial.points {
        point.length_ns = 15_000_000_000;
        for operation in &mut point.operations {
            operation.counts.ok = 750_000;
        }
    }
    for series in &mut trial.series {
        *series = Series {
            phase: series.phase.clone(),
            interval_ns: 100_000_000,
            done_per_interval: vec![5_000; 150],
            ..Series::default()
        };
    }
}

#[test]
fn memory_during_a_save_is_resident_memory_and_copies() {
    let ask = |amount, value_bytes, writes| Question {
        rate: None,
        amount: Some(amount),
        value_bytes,
        writes_per_s: Some(writes),
        tls: false,
    };
    let records = [saved()];
    let view = answered(&ask(Amount::Bytes(50_000_000_000), None, 20_000), &records);
    let memory = only_deployment(&view).memory.clone().unwrap();
    // 50 million values of 1,000 bytes, each in 1,200 bytes.
    assert_eq!(memory.maxmemory_bytes, 60_000_000_000);
    let saving = memory.while_saving.unwrap();
    assert!((saving.writes_per_s - 50_000.0).abs() < 1.0, "{saving:?}");
    assert!((saving.copied_share - 0.6).abs() < 1e-9, "{saving:?}");
    assert!((saving.machine_bytes as f64 / 1.7 / 6e10 - 1.0).abs() < 1e-9, "{saving:?}");
    let view = answered(&ask(Amount::Keys(1_000), Some(1_000), 60_000), &records);
    let (text, commands) = lack(&view);
    assert!(text.starts_with("60.0 k/s of writes on one server during a save were not"), "{text}");
    assert_eq!(commands, ["cachedyno run beyond-ram --set profile=save --set value_bytes=1000"]);
    let view = answered(&ask(Amount::Keys(1_000), Some(900), 1), &records);
    assert!(lack(&view).0.contains("(measured: 1000 B;"), "{view:#?}");
}

#[test]
fn no_records_are_no_answer() {
    let view = answered(&question(rate(1_000), 1024), &[]);
    assert!(lack(&view).0.starts_with("there are no records"));
    let other = fixture::run(&["files", "redis"], 3, fixture::usual);
    let view = answered(&question(rate(1_000), 1024), &[other]);
    assert!(lack(&view).0.starts_with("no record has a rate within p99 < 1 ms"));
    let view = size(&question(rate(1_000), 1024), &Evidence::default(), None, Some("my records"));
    assert!(lack(&view).1[0].ends_with("--blocks 3 --out 'my records'"));
}
