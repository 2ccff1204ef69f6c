//! Searches: from probes in a record to the answer, and every reason why there is none.

use model::study::claims::{Conditions, Within};
use model::study::{Claim, Expectation};
use model::{
    Arrivals, Beyond, Cell, Counts, Due, ErrorClass, Failure, Kv, KvOperation, Load, NullRate,
    OperationResult, Phase, Point, Schedule, Search, Stop, Trial, Workload,
};
use stats::search::{Purpose, Step};
use stats::{Histogram, Verdict};
use std::collections::BTreeMap;

use crate::fixture;
use crate::recorded::Recorded;
use crate::view::{
    BeyondView, ClaimVerdict, ProbeReason, ProbeVerdict, ProbeView, SearchOutcome, Validity,
};
use crate::{judge, markdown, text};

const CELL: &str = "redis/get=1/50";

/// A simulated store.
#[derive(Clone, Copy)]
pub(super) struct Store {
    /// Requests per second at which one in a hundred exceeds the limit of 1 ms.
    pub(super) knee_per_s: f64,
    /// Requests per second above which it falls behind.
    pub(super) capacity_per_s: f64,
    /// Median service time above the knee; 0.1 ms when idle.
    pub(super) busy_ns: u64,
    pub(super) server_cpu_share: f64,
}

pub(super) const STORE: Store = Store {
    knee_per_s: 100_000.0,
    capacity_per_s: 130_000.0,
    busy_ns: 900_000,
    server_cpu_share: 0.97,
};

/// The recorded point of a probe of that store.
fn probe(store: Store, number: u32, step: Step) -> Point {
    let (planned, seconds) = (step.rate_per_s as f64, step.length_ns as f64 / 1e9);
    let is_peak = step.purpose == Purpose::Peak;
    let answered = if is_peak { store.capacity_per_s } else { planned.min(store.capacity_per_s) };
    let share = (0.01 * (planned / store.knee_per_s).powi(20)).min(1.0);
    let spans = (seconds * 10.0).round().max(1.0) as usize;
    let due = (planned / 10.0) as u64;
    let over = (due as f64 * share).round() as u64;
    let ns = if is_peak || planned > store.knee_per_s { store.busy_ns } else { 100_000 };
    let (mut service, mut response) = (Histogram::new(), Histogram::new());
    service.record_many(ns, 1_000);
    response.record_many(ns, 990);
    response.record_many(3 * ns, 10);
    let length_ns = (seconds * planned.max(answered) / answered * 1e9) as u64;
    let counts = Counts { ok: (answered * seconds) as u64, ..Counts::default() };
    let whole = OperationResult {
        operation: "get".into(),
        counts,
        rate_per_s: answered,
        calls_rate_per_s: None,
        service,
        response,
        lag: Histogram::new(),
        lock_wait: Histogram::new(),
        slowest: None,
    };
    let beyond = Beyond { limit_ns: 1_000_000, over_per_interval: vec![over; spans] };
    Point {
        phase: "get".into(),
        stage: Some(number),
        probe: Some(step),
        begun_ns: u64::from(number) * 1_500_000_000,
        length_ns,
        operations: vec![whole],
        generator_cpu_ns: length_ns / 2,
        server_cpu_ns: Some((length_ns as f64 * store.server_cpu_share) as u64),
        due: (!is_peak).then(|| Due {
            due_per_interval: vec![due; spans],
            beyond: vec![beyond],
            late: 0,
        }),
        ..Point::default()
    }
}

/// A record without probes.
fn planned(targets: &[&str], rounds: u32) -> Recorded {
    let mut recorded = fixture::run(targets, 1, fixture::usual);
    let plan = &mut recorded.header.plan;
    let phase = Phase {
        name: "get".into(),
        mix: BTreeMap::from([("get".to_string(), 1.0)]),
        warmup_ns: 250_000_000,
        stop: Stop::AfterNs(1_000_000_000),
        control: None,
    };
    let kv = Kv {
        profile: "get=1".into(),
        operations: vec![KvOperation { name: "get".into(), command: None }],
        keys: 1_000,
        distribution: "uniform".into(),
        key_prefix: "key:".into(),
        key_bytes: None,
        value_bytes: "100".into(),
        ttl_s: 0,
        filled_share: 1.0,
        verify_one_in: 64,
        threads: 1,
        think_ns: 0,
        phases: vec![phase],
        ..Kv::default()
    };
    plan.study = "find-max".into();
    plan.title = "Highest rate with p99<1ms: get=1".into();
    let search = Search { slos: vec!["p99<1ms".parse().unwrap()], probe_ns: 1_000_000_000, rounds };
    let load = Load::planned(Arrivals::Poisson, Schedule::Search(search), 50);
    let cell = |target: &&str| Cell {
        id: format!("{target}/get=1/50"),
        target: (*target).into(),
        workload: Workload::Kv(kv.clone()),
        load: load.clone(),
    };
    plan.cells = targets.iter().map(cell).collect();
    recorded.trials.clear();
    recorded
}

/// Searches a store to the end, each probe changed by `with`.
pub(super) fn searched(store: Store, with: impl Fn(&mut Point)) -> Recorded {
    searched_in(2, store, with)
}

/// The same with this number of confirmation rounds.
pub(super) fn searched_in(rounds: u32, store: Store, with: impl Fn(&mut Point)) -> Recorded {
    of(&[("redis", store)], 1, rounds, with)
}

/// Several stores in several blocks; each store sustains 1 % more than the previous one.
pub(super) fn of(
    stores: &[(&str, Store)],
    blocks: u32,
    rounds: u32,
    with: impl Fn(&mut Point),
) -> Recorded {
    let targets: Vec<&str> = stores.iter().map(|(target, _)| *target).collect();
    let mut recorded = planned(&targets, rounds);
    for block in 0..blocks {
        for (target, store) in stores {
            let knee_per_s = store.knee_per_s * (1.0 + 0.01 * f64::from(block));
            let store = Store { knee_per_s, ..*store };
            let cell = format!("{target}/get=1/50");
            let mut trial = Trial { block, cell, ..Trial::default() };
            trial.version = Some("Redis 7.0.15".into());
            while let Some(step) = recorded.header.plan.next_probe(&trial) {
                let mut point = probe(store, trial.points.len() as u32, step);
                with(&mut point);
                trial.points.push(point);
            }
            trial.took_ns = trial.points.len() as u64 * 1_500_000_000;
            trial.started_unix_ms = 1_790_000_000_000;
            recorded.trials.push(trial);
        }
    }
    let seal = recorded.seal.as_mut().unwrap();
    (seal.blocks, seal.stopped_because) = (blocks, "as many blocks as asked for".into());
    recorded
}

fn outcome(recorded: &Recorded) -> (Validity, SearchOutcome, String) {
    let view = judge(recorded);
    let search = view.searches.into_iter().next().unwrap();
    (view.validity, search.outcome, search.sentence)
}

/// Verdict of a probe and its reason.
fn verdict_and_reason(probe: &ProbeView) -> (ProbeVerdict, ProbeReason) {
    (probe.verdict.unwrap(), probe.reason.unwrap())
}

#[test]
fn the_answer_is_the_knee_with_its_interval_next_to_the_peak() {
    let recorded = searched(STORE, |_| {});
    let view = judge(&recorded);
    let search = &view.searches[0];
    assert_eq!(
        (view.validity, search.outcome),
        (Validity::Valid, SearchOutcome::Found),
        "{:?}",
        view.reasons
    );
    let answer = search.answer.unwrap();
    assert!((answer.center / 1e5 - 1.0).abs() < 0.02, "{answer:?}");
    assert!(answer.lo.unwrap() <= answer.center && answer.center <= answer.hi.unwrap());
    assert_eq!(search.peak_per_s, Some(130_000.0));
    assert!(search.sentence.starts_with("redis sustains "), "{}", search.sentence);
    assert!(search.sentence.contains("] with p99 < 1 ms"), "{}", search.sentence);
    assert!(search.sentence.contains(", using 97 % of one core; "), "{}", search.sentence);
    let cost = search.costs["server_cpu_ns_per_op"];
    // 97 % of a CPU for 100,000 requests per second.
    assert!((cost.center / 9_700.0 - 1.0).abs() < 0.03 && cost.lo < cost.hi, "{cost:?}");
    // Settled cool-downs have no lines, and probes no rows.
    assert!(search.probes.iter().all(|p| p.purpose != Purpose::CoolDown));
    assert!(view.cells.is_empty());
    let shown = text::render(&view, 100, false);
    assert!(shown.contains("peak, ignoring the limits: 130,000/s"), "{shown}");
    insta::assert_snapshot!("a_search_at_100_columns", shown);
    assert!(markdown::render(&view).contains("## Probes"));
}

#[test]
fn a_store_that_misses_the_limit_at_every_rate_is_reported() {
    let slow = Store { knee_per_s: 100.0, ..STORE };
    let (validity, outcome, sentence) = outcome(&searched(slow, |_| {}));
    assert_eq!((validity, outcome), (Validity::Invalid, SearchOutcome::Missed));
    assert!(sentence.contains("does not keep p99 < 1 ms even at 2,600/s"), "{sentence}");
}

#[test]
fn busy_clients_of_an_idle_store_are_the_limit() {
    let idle = Store { busy_ns: 110_000, server_cpu_share: 0.3, ..STORE };
    let (validity, outcome, sentence) = outcome(&searched(idle, |_| {}));
    assert_eq!((validity, outcome), (Validity::Invalid, SearchOutcome::Clients), "{sentence}");
    assert!(sentence.contains("at least") && sentence.contains("--clients"), "{sentence}");
    // A server without idle CPU is the limit, however fast it answers.
    let busy = Store { busy_ns: 110_000, ..STORE };
    assert_eq!(self::outcome(&searched(busy, |_| {})).1, SearchOutcome::Found);
}

#[test]
fn a_generator_near_its_limit_is_reported_unless_the_server_was_saturated() {
    let null = NullRate {
        cell: CELL.into(),
        phase: "get".into(),
        rate_per_s: Some(150_000.0),
        not_checked: None,
        server_cpus: 1,
    };
    let mut recorded = searched(STORE, |_| {});
    recorded.header.null_rates = vec![null];
    let view = judge(&recorded);
    assert_eq!(view.validity, Validity::Valid, "{:?}", view.reasons);
    assert!(view.footnotes.iter().any(|n| n.contains("at the peak")), "{:?}", view.footnotes);
    let with_rest = Store { server_cpu_share: 0.5, ..STORE };
    let mut restful = searched(with_rest, |_| {});
    restful.header.null_rates.clone_from(&recorded.header.null_rates);
    let (validity, outcome, sentence) = outcome(&restful);
    assert_eq!((validity, outcome), (Validity::Invalid, SearchOutcome::Generator), "{sentence}");
    assert!(sentence.contains("--threads"), "{sentence}");
}

/// Makes all requests of the n-th probe exceed the limit; `more` adds a disturbance.
fn missing(nth: u32, more: impl Fn(&mut Point)) -> impl Fn(&mut Point) {
    move |point: &mut Point| {
        if point.stage != Some(nth) {
            return;
        }
        if let Some(due) = &mut point.due {
            due.beyond[0].over_per_interval.clone_from(&due.due_per_interval);
        }
        more(point);
    }
}

/// Other processes used the server's CPUs for this percentage of the time.
fn take(phase: &mut Point, percent: u64) {
    phase.disturbance.server_ns = Some(phase.length_ns * percent / 100);
}

#[test]
fn a_disturbed_probe_counts_like_any_other() {
    let quiet = judge(&searched(STORE, missing(2, |_| {}))).searches.remove(0);
    let view = judge(&searched(STORE, missing(2, |phase| take(phase, 2))));
    assert_eq!(view.validity, Validity::Valid, "{:?}", view.reasons);
    let search = view.searches.into_iter().next().unwrap();
    assert_eq!((&search.sentence, search.answer), (&quiet.sentence, quiet.answer));
    let first = &search.probes[1];
    assert_eq!(verdict_and_reason(first), (ProbeVerdict::Missed, ProbeReason::OthersHadCpus));
    assert!((first.taken_share - 0.02).abs() < 1e-6);
    let beyond = BeyondView { limit: "p99<1ms".into(), share: 1.0 };
    assert_eq!(first.beyond, [beyond]);
    let note = "in 1 of ";
    assert!(view.footnotes.iter().any(|n| n.starts_with(note)), "{:?}", view.footnotes);
}

#[test]
fn a_search_with_disturbed_failing_probes_is_not_steady() {
    let taken = |percent| judge(&searched(STORE, move |point| take(point, percent)));
    // The share of requests that is allowed to exceed the limit.
    assert_eq!(taken(1).validity, Validity::Valid, "{:?}", taken(1).reasons);
    let view = taken(2);
    assert_eq!(view.validity, Validity::NotSteady);
    assert!(view.reasons[0].contains("so the store may sustain more"), "{:?}", view.reasons);
    let search = view.searches.into_iter().next().unwrap();
    assert_eq!(search.answer, judge(&searched(STORE, |_| {})).searches[0].answer);
}

#[test]
fn an_undecided_hold_run_is_reported() {
    let uneven = |point: &mut Point| {
        if point.probe.is_some_and(|step| step.purpose == Purpose::Hold) {
            let due = point.due.as_mut().unwrap();
            // The allowed number on average, alternating between none and twice as many.
            let twice = due.due_per_interval[0] / 50;
            let over = due.beyond[0].over_per_interval.iter_mut().enumerate();
            over.for_each(|(i, over)| *over = if i % 2 == 0 { twice } else { 0 });
        }
    };
    let search = judge(&searched(STORE, uneven)).searches.remove(0);
    let expected = "; a longer run at 95,200/s (20 s) passed, but not with 95 % confidence";
    assert!(search.sentence.contains(expected), "{}", search.sentence);
}

#[test]
fn the_duration_of_the_hold_runs_is_reported() {
    let search = judge(&searched(STORE, |_| {})).searches.remove(0);
    let expected = "; 95,200/s was sustained for 10 s, which says nothing about rarer stalls";
    assert!(search.sentence.ends_with(expected), "{}", search.sentence);
    assert_eq!(search.held_s, Some(10.0));
    let stalls = |point: &mut Point| {
        let step = point.probe.filter(|step| step.purpose == Purpose::Hold);
        if let Some(due) = point.due.as_mut().filter(|_| step.is_some()) {
            let requests = due.due_per_interval[0];
            for over in due.beyond[0].over_per_interval.iter_mut().step_by(20) {
                *over = requests;
            }
        }
    };
    let (validity, outcome, sentence) = outcome(&searched(STORE, stalls));
    assert_eq!((validity, outcome), (Validity::Invalid, SearchOutcome::NotHeld), "{sentence}");
    assert!(sentence.contains("the store stalls from time to time"), "{sentence}");
    // A rate without a passing hold run excludes no stalls.
    assert_eq!(judge(&searched(STORE, stalls)).searches[0].held_s, None);
}

#[test]
fn probes_that_disagree_are_not_steady() {
    // Long probes sustain half the rate of short ones.
    let changes = |point: &mut Point| {
        let Some(step) = point.probe.filter(|s| s.purpose == Purpose::Hold) else { return };
        let beyond = step.rate_per_s > 60_000;
        if let Some(due) = point.due.as_mut().filter(|_| beyond) {
            due.beyond[0].over_per_interval.clone_from(&due.due_per_interval);
        }
    };
    let view = judge(&searched(STORE, changes));
    let answer = view.searches[0].answer;
    assert!(answer.is_some_and(|v| v.hi.unwrap() > 1.5 * v.lo.unwrap()), "{answer:?}");
    assert_eq!(view.validity, Validity::NotSteady);
    assert!(view.reasons.iter().any(|r| r.contains("probes disagree")), "{:?}", view.reasons);
}

#[test]
fn a_probe_with_late_replies_has_a_growing_queue() {
    let late = |point: &mut Point| {
        if point.stage == Some(2) {
            point.length_ns += 100_000_000;
        }
    };
    let first = &judge(&searched(STORE, late)).searches[0].probes[1];
    assert_eq!(verdict_and_reason(first), (ProbeVerdict::Missed, ProbeReason::QueueGrew));
}

#[test]
fn a_late_generator_gives_no_verdict_on_the_store() {
    let late = |point: &mut Point| {
        if let Some(due) = &mut point.due {
            due.beyond[0].over_per_interval.clone_from(&due.due_per_interval);
            due.late = due.due_per_interval.iter().sum();
        }
    };
    let recorded = searched(STORE, late);
    let view = judge(&recorded);
    let search = &view.searches[0];
    assert_eq!((view.validity, search.outcome), (Validity::Invalid, SearchOutcome::NotJudged));
    assert!(search.sentence.contains("is unknown: even at 2,600/s"), "{}", search.sentence);
    assert!(search.sentence.contains("--threads"), "{}", search.sentence);
    let judged = search.probes.iter().filter(|p| p.purpose == Purpose::Bracket).count();
    let count = format!("in {judged} of {judged} failed probes the generator itself");
    assert!(view.reasons.iter().any(|r| r.starts_with(&count)), "{:?}", view.reasons);
}

#[test]
fn a_server_without_replies_is_reported_with_the_cause() {
    let refusing = |point: &mut Point| {
        point.operations.clear();
        let message = "the server answered `ERR max number of clients reached`".to_string();
        point.failure = Some(Failure { class: ErrorClass::Refused, message });
    };
    let (validity, outcome, sentence) = outcome(&searched(STORE, refusing));
    assert_eq!((validity, outcome), (Validity::Invalid, SearchOutcome::Nothing));
    assert!(sentence.contains("max number of clients reached"), "{sentence}");
}

/// Lets the server of a probe be killed.
fn dies(point: &mut Point) {
    point.operations.clear();
    let message = "the server died (signal 9)".to_string();
    point.failure = Some(Failure { class: ErrorClass::Closed, message });
}

#[test]
fn a_server_that_dies_above_the_answer_is_reported_with_the_reason() {
    let mortal = |point: &mut Point| {
        if point.probe.is_some_and(|p| p.rate_per_s > 105_000) {
            dies(point);
        }
    };
    let view = judge(&searched(STORE, mortal));
    let search = &view.searches[0];
    assert_eq!(
        (view.validity, search.outcome),
        (Validity::Valid, SearchOutcome::Found),
        "{:?}",
        view.reasons
    );
    let broke = search.probes.iter().find(|p| p.verdict == Some(ProbeVerdict::Broke)).unwrap();
    assert!(broke.failure.as_ref().unwrap().contains("the server died"), "{broke:?}");
    assert!(!view.failures.is_empty());
    let is_expected = |n: &String| {
        n.contains("probes failed at rates above the answer, the lowest at 106,000/s: ")
            && n.ends_with("the server died (signal 9)")
    };
    assert!(view.footnotes.iter().any(is_expected), "{:?}", view.footnotes);
}

/// The search still finds the knee, with another bracket or other probes at that rate.
#[test]
fn a_server_that_dies_below_the_answer_is_a_failed_trial() {
    let first = |purpose| {
        let points = searched(STORE, |_| {}).trials.remove(0).points;
        points.iter().position(|p| p.probe.unwrap().purpose == purpose).unwrap() as u32
    };
    for purpose in [Purpose::Bracket, Purpose::CoolDown] {
        let number = first(purpose);
        let mortal = |point: &mut Point| {
            if point.stage == Some(number) {
                dies(point);
            }
        };
        let view = judge(&searched(STORE, mortal));
        let search = &view.searches[0];
        assert_eq!(search.outcome, SearchOutcome::Found, "{}", search.sentence);
        assert_eq!(view.validity, Validity::Invalid, "{purpose:?}");
        let expected = "probes failed at rates no higher than the answer, the lowest at ";
        let reasons = &view.reasons;
        let is_expected = |r: &String| r.starts_with("1 of ") && r.contains(expected);
        assert!(reasons.iter().any(is_expected), "{reasons:?}");
    }
}

#[test]
fn a_server_that_dies_repeatedly_ends_the_search_with_partial_results() {
    let mortal = |point: &mut Point| {
        if point.stage > Some(6) {
            point.operations.clear();
            let message = "cannot connect".to_string();
            point.failure = Some(Failure { class: ErrorClass::Refused, message });
        }
    };
    let (validity, outcome, sentence) = outcome(&searched(STORE, mortal));
    assert_eq!((validity, outcome), (Validity::Invalid, SearchOutcome::Broken));
    assert!(sentence.contains("until then, ") && sentence.contains("/s passed"), "{sentence}");
}

#[test]
fn wrong_values_invalidate_a_search() {
    let lying = |point: &mut Point| point.operations[0].counts.wrong = 1;
    let view = judge(&searched(STORE, lying));
    assert_eq!(view.validity, Validity::Invalid);
    assert!(view.reasons.iter().any(|r| r.contains("wrong")), "{:?}", view.reasons);
}

#[test]
fn an_interrupted_search_reports_partial_results() {
    let mut recorded = searched(STORE, |_| {});
    recorded.trials[0].points.truncate(8);
    recorded.seal = None;
    let (validity, outcome, sentence) = outcome(&recorded);
    assert_eq!((validity, outcome), (Validity::Invalid, SearchOutcome::EndedEarly));
    assert!(sentence.contains("(the run was killed, or its record"), "{sentence}");
    assert!(sentence.contains("so far, 91,000/s passed and 109,000/s failed"), "{sentence}");
    // A failed trial reports its reason.
    let message = "the trial reached its deadline of 3.00 s".to_string();
    recorded.trials[0].failure = Some(Failure { class: ErrorClass::Timeout, message });
    let sentence = self::outcome(&recorded).2;
    assert!(sentence.contains("its deadline of 3.00 s); so far, 91,000/s passed"), "{sentence}");
    recorded.trials.clear();
    assert!(self::outcome(&recorded).2.contains("its rate is unknown"));
}

#[test]
fn several_blocks_have_separate_answers_and_a_joint_one() {
    let two = [("redis", STORE), ("valkey", Store { knee_per_s: 80_000.0, ..STORE })];
    let view = judge(&of(&two, 4, 2, |_| {}));
    assert_eq!(view.validity, Validity::Valid, "{:?}", view.reasons);
    let [redis, valkey] = &view.searches[..] else { panic!("{:?}", view.searches) };
    assert_eq!((&*redis.target, redis.blocks, valkey.blocks), ("redis", 4, 4));
    let answers: Vec<f64> = redis.by_block.iter().map(|b| b.answer.unwrap().center).collect();
    assert!(answers.is_sorted() && (answers[3] / answers[0] - 1.03).abs() < 0.01, "{answers:?}");
    let whole = redis.answer.unwrap();
    assert_eq!((whole.lo, whole.hi), (Some(answers[0]), Some(answers[3])));
    assert!(
        redis.sentence.contains(" with p99 < 1 ms in 4 blocks, using 97 % of one core"),
        "{}",
        redis.sentence
    );
    let [compared] = &view.comparisons[..] else { panic!("{:?}", view.comparisons) };
    assert_eq!((&*compared.metric, compared.verdict), ("highest_per_s", Verdict::Faster));
    assert!((compared.ratio.center - 1.25).abs() < 0.02, "{compared:?}");
    let shown = text::render(&view, 100, false);
    let won = "redis sustains more than valkey (highest rate within the limits 1.2";
    assert!(shown.contains(won), "{shown}");
    assert!(shown.contains("\nProbes\nredis\n") && shown.contains("\n\nvalkey\n"), "{shown}");
}

#[test]
fn a_search_of_two_blocks_decides_no_comparison() {
    let view = judge(&of(&[("redis", STORE), ("valkey", STORE)], 2, 2, |_| {}));
    assert_eq!(view.validity, Validity::Unreplicated, "{:?}", view.reasons);
    assert!(view.reasons[0].ends_with("--blocks 3"), "{:?}", view.reasons);
    // A single block has an interval over its rounds, but its ratio has none.
    let view = judge(&of(&[("redis", STORE), ("valkey", STORE)], 1, 2, |_| {}));
    assert_eq!(view.validity, Validity::Valid, "{:?}", view.reasons);
    assert_eq!(
        (view.comparisons[0].verdict, view.comparisons[0].ratio.lo),
        (Verdict::Undecided, None)
    );
}

#[test]
fn the_answer_covers_complete_blocks() {
    let mut recorded = of(&[("redis", STORE)], 4, 2, |_| {});
    recorded.trials[3].points.truncate(9);
    let seal = recorded.seal.as_mut().unwrap();
    (seal.blocks, seal.status) = (3, model::SealStatus::Interrupted);
    let view = judge(&recorded);
    assert_eq!(view.validity, Validity::Valid, "{:?}", view.reasons);
    let search = &view.searches[0];
    assert_eq!(
        (search.outcome, search.blocks, search.by_block.len()),
        (SearchOutcome::Found, 3, 4)
    );
    assert_eq!(search.by_block[3].outcome, SearchOutcome::EndedEarly);
    // If a block found no rate, there is no joint answer.
    let mut recorded = of(&[("redis", STORE)], 3, 2, |_| {});
    recorded.trials[1].points.truncate(1);
    dies(&mut recorded.trials[1].points[0]);
    let view = judge(&recorded);
    assert_eq!(
        (view.validity, view.searches[0].outcome),
        (Validity::Invalid, SearchOutcome::Nothing)
    );
    assert!(view.searches[0].sentence.ends_with("(in 1 of 3 blocks)"), "{:?}", view.reasons);
}

#[test]
fn a_claim_compares_the_answer_with_the_most_answered() {
    let mut recorded = of(&[("redis", STORE)], 4, 2, |_| {});
    let claim = |id: &str, max: f64| Claim {
        id: id.into(),
        text: "The rate within a limit is lower.".into(),
        source: "A source".into(),
        source_value: None,
        profiles: vec!["get=1".into()],
        conditions: Conditions::default(),
        expect: Expectation::Within(Within {
            target: "redis".into(),
            operation: None,
            of: "within_limits_share".into(),
            min: 0.0,
            max: Some(max),
        }),
    };
    recorded.header.plan.claims = vec![claim("lower", 1.0), claim("half", 0.5)];
    let view = judge(&recorded);
    let fact = view.happened.facts.iter().find(|fact| fact.name == "within_limits_share").unwrap();
    assert!((fact.value.center - 100.0 / 130.0).abs() < 0.03, "{fact:?}");
    assert_eq!((fact.by_block.len(), &*fact.source), (4, "clients"));
    let verdicts: Vec<_> = view.claims.iter().map(|claim| (&*claim.id, claim.verdict)).collect();
    assert_eq!(verdicts, [("lower", ClaimVerdict::Confirmed), ("half", ClaimVerdict::Refuted)]);
}
