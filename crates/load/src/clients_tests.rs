use super::*;
use crate::meter::{Finished, Reading};
use crate::{Engine, Settings};
use model::{Connections, Generation, Layout, Names, Order, Phase, Sessions, Stop, StoredVersion};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use workloads::{Answer, Call, LockWait, Outcome, StoreError};

const MS: u64 = 1_000_000;

/// A client whose calls take a given time and have given outcomes.
struct Scripted {
    takes: Duration,
    drawing_takes: Duration,
    calls: usize,
    filled: u32,
    n: u64,
    behave: fn(u64) -> Result<Outcome, StoreError>,
    outcome: Outcome,
}

impl Scripted {
    fn boxed(takes: Duration, behave: fn(u64) -> Result<Outcome, StoreError>) -> Box<dyn Client> {
        let (drawing_takes, outcome) = (Duration::ZERO, Outcome::Ok);
        Box::new(Self { takes, drawing_takes, calls: 1, filled: 0, n: 0, behave, outcome })
    }
}

impl Client for Scripted {
    fn operations(&self) -> &'static [&'static str] {
        &["open", "close"]
    }
    fn fill_next(&mut self) -> Result<bool, StoreError> {
        self.filled += 1;
        Ok(self.filled <= 3)
    }
    fn start_phase(&mut self, _phase: usize) {
        assert_eq!(self.filled, 4, "a phase started before the fill ended");
    }
    fn calls(&self, _n: u64) -> usize {
        self.calls
    }
    fn prepare(&mut self, n: u64, call: usize) -> Call {
        self.n = n;
        Call { operation: call, think_ns: if call == 1 { 2 * MS } else { 0 } }
    }
    fn draw(&mut self) {
        thread::sleep(self.drawing_takes);
    }
    fn call(&mut self) -> Result<Answer, StoreError> {
        thread::sleep(self.takes);
        self.outcome = (self.behave)(self.n)?;
        let lock = LockWait { attempts: 2, waited_ns: 5 };
        Ok(Answer { lock: Some(lock), ..Answer::default() })
    }
    fn check(&mut self) -> (Outcome, bool) {
        (self.outcome, true)
    }
    fn read_back(
        &mut self,
        n: u64,
        _of: u64,
    ) -> Result<Option<(StoredVersion, String)>, StoreError> {
        let held = if n == 1 { StoredVersion::Older } else { StoredVersion::Last };
        Ok((n < 3).then(|| (held, format!("session {n}"))))
    }
}

struct Steps(u64);

impl Meter for Steps {
    fn read(&mut self) -> Reading {
        self.0 += 10;
        Reading { server_cpu_ns: Some(self.0), ..Reading::default() }
    }
}

fn workload(stop: Stop, warmup_ns: u64) -> Sessions {
    let mix = BTreeMap::from([("read".to_string(), 1.0)]);
    Sessions {
        profile: "test".into(),
        layout: Layout::Plain,
        connections: Connections::Persistent,
        names: Names::Hex,
        order: Order::Random,
        generation: Generation::Outside,
        filled: 0,
        value_bytes: 100,
        ttl_s: 300,
        verify_one_in: 1,
        think_ns: 0,
        gc: None,
        phases: vec![Phase { name: "read".into(), mix, warmup_ns, stop, control: None }],
    }
}

fn settings<'a>(workload: &Sessions, cpus: &'a [usize], stop: &'a AtomicBool) -> Settings<'a> {
    let generation = workload.generation;
    Settings { generation, cpus, timeout_ns: 0, stall_ns: 0, stop }
}

fn run(workload: &Sessions, clients: Vec<Box<dyn Client>>) -> Finished {
    let stop = AtomicBool::new(false);
    let engine = Engine {
        phases: &workload.phases,
        planned: None,
        settings: settings(workload, &[], &stop),
    };
    engine.run(clients, &mut Steps(0), &mut |_| {})
}

#[test]
fn a_counted_phase_does_exactly_its_count() {
    let plan = workload(Stop::Count(40), 0);
    let short = Duration::from_millis(1);
    let clients = (0..3).map(|_| Scripted::boxed(short, |_| Ok(Outcome::Ok))).collect();
    let finished = run(&plan, clients);
    assert!(finished.failure.is_none() && !finished.interrupted);
    let [PhaseRecord { points, series, .. }] = &finished.phases[..] else { panic!("one phase") };
    let [phase] = &points[..] else { panic!("one point") };
    let [read] = &phase.operations[..] else { panic!("one operation") };
    assert_eq!((read.operation.as_str(), read.counts.ok, read.counts.verified), ("read", 120, 120));
    assert_eq!((read.service.count(), read.response.count()), (120, 120));
    assert_eq!(series.done_per_interval.iter().sum::<u64>(), 120);
    let slowest = read.slowest.as_ref().unwrap();
    let longest_ns = slowest.response().iter().max().unwrap();
    assert!(read.service.max_ns().abs_diff(*longest_ns) <= longest_ns / 1_000, "{slowest:?}");
    assert!(read.service.quantile_ns(0.0) >= MS);
    // Each of the three clients fills three records before the first phase.
    let fill = finished.fill.as_ref().unwrap();
    let filled = fill.points[0].whole().unwrap();
    assert_eq!((filled.operation.as_str(), filled.counts.ok, filled.service.count()), (FILL, 9, 9));
    assert!(filled.rate_per_s > 0.0 && fill.series.done_per_interval.iter().sum::<u64>() == 9);
    // The usage between a reading before the phase and one after it.
    assert!(phase.server_cpu_ns.is_some_and(|ns| (5..=10).contains(&ns)), "{phase:?}");
    assert_eq!((read.counts.lock_waits, read.counts.lock_attempts), (120, 240));
    // At most three clients with one call per millisecond, however long the gaps between calls.
    let calls_rate_per_s = read.calls_rate_per_s.unwrap();
    assert!(calls_rate_per_s <= 3_000.0 && calls_rate_per_s >= read.rate_per_s * 0.99);
}

#[test]
fn rates_of_clients_that_do_not_overlap_do_not_add_up() {
    // Both take 40 ms for their ten operations, but the second starts when the first has ended.
    let plan = workload(Stop::Count(10), 0);
    let late = Scripted::boxed(Duration::from_millis(4), |n| {
        if n == 0 {
            thread::sleep(Duration::from_millis(40));
        }
        Ok(Outcome::Ok)
    });
    let early = Scripted::boxed(Duration::from_millis(4), |_| Ok(Outcome::Ok));
    let phase = &run(&plan, vec![early, late]).phases[0].points[0];
    assert!(phase.length_ns >= 80 * MS);
    assert!(phase.operations[0].rate_per_s <= 20.0 / 0.080, "{}", phase.operations[0].rate_per_s);
}

#[test]
fn a_wait_that_starts_in_the_warm_up_is_counted_in_full() {
    // The first call takes five times as long as the warm-up; the other client is always busy.
    let plan = workload(Stop::AfterNs(40 * MS), 20 * MS);
    let starved = Scripted::boxed(Duration::from_millis(1), |n| {
        if n == 0 {
            thread::sleep(Duration::from_millis(100));
        }
        Ok(Outcome::Ok)
    });
    let busy = Scripted::boxed(Duration::from_millis(1), |_| Ok(Outcome::Ok));
    let PhaseRecord { points, series, .. } = &run(&plan, vec![starved, busy]).phases[0];
    let (phase, read) = (&points[0], &points[0].operations[0]);
    assert!(read.service.max_ns() >= 100 * MS, "{}", read.service.max_ns());
    // From the common start of the measurement to the end of the long call.
    assert!((80 * MS..250 * MS).contains(&phase.length_ns), "{}", phase.length_ns);
    let busiest = series.done_per_interval.iter().take(8).max().unwrap();
    assert!(*busiest <= 6, "one client does at most one call a millisecond: {busiest}");
}

#[test]
fn a_wrong_value_in_the_warm_up_is_counted() {
    let plan = workload(Stop::AfterNs(20 * MS), 20 * MS);
    let client = Scripted::boxed(Duration::from_millis(1), |n| match n {
        0 => Ok(Outcome::Wrong),
        _ => Ok(Outcome::Ok),
    });
    let counts = run(&plan, vec![client]).phases[0].points[0].operations[0].counts.clone();
    assert_eq!(counts.wrong, 1);
}

#[test]
fn a_failure_in_the_warm_up_is_not_recorded() {
    let plan = workload(Stop::AfterNs(20 * MS), 20 * MS);
    let client = Scripted::boxed(Duration::from_millis(1), |n| match n {
        0 => Err(StoreError {
            class: ErrorClass::Timeout,
            message: "no answer".into(),
            fatal: false,
        }),
        _ => Ok(Outcome::Ok),
    });
    let counts = run(&plan, vec![client]).phases[0].points[0].operations[0].counts.clone();
    assert_eq!(counts.error, 0, "{counts:?}");
    assert!(counts.ok > 0);
}

#[test]
fn warm_up_is_not_recorded() {
    let plan = workload(Stop::AfterNs(60 * MS), 60 * MS);
    let finished = run(&plan, vec![Scripted::boxed(Duration::from_millis(2), |_| Ok(Outcome::Ok))]);
    let PhaseRecord { points, series, .. } = &finished.phases[0];
    let phase = &points[0];
    let count = phase.operations[0].counts.ok;
    assert!((2..=31).contains(&count), "{count}");
    assert_eq!(series.done_per_interval.iter().sum::<u64>(), count);
    assert!(phase.length_ns >= 60 * MS);
    let rate = phase.operations[0].rate_per_s;
    assert!(rate > 0.0 && rate <= 501.0, "{rate}");
}

#[test]
fn a_page_has_its_calls_and_a_total_without_think_time() {
    let plan = workload(Stop::Count(5), 0);
    let client = Scripted {
        takes: Duration::from_millis(1),
        drawing_takes: Duration::ZERO,
        calls: 2,
        filled: 0,
        n: 0,
        behave: |_| Ok(Outcome::Ok),
        outcome: Outcome::Ok,
    };
    let finished = run(&plan, vec![Box::new(client)]);
    let names: Vec<&str> =
        finished.phases[0].points[0].operations.iter().map(|o| o.operation.as_str()).collect();
    assert_eq!(names, ["open", "close", "read"]);
    let [open, close, whole] = &finished.phases[0].points[0].operations[..] else { panic!() };
    let sum = open.service.mean_ns() + close.service.mean_ns();
    assert!((whole.service.mean_ns() / sum - 1.0).abs() < 0.01);
    let per_page_ns = 1e9 / whole.rate_per_s;
    assert!(per_page_ns > sum + 1.9 * MS as f64, "the rate includes think time");
}

#[test]
fn timed_drawing_counts_for_the_response_time_but_not_the_service_time() {
    let mut plan = workload(Stop::Count(5), 0);
    let client = || Scripted {
        takes: Duration::from_millis(1),
        drawing_takes: Duration::from_millis(5),
        calls: 1,
        filled: 0,
        n: 0,
        behave: |_| Ok(Outcome::Ok),
        outcome: Outcome::Ok,
    };
    let outside = run(&plan, vec![Box::new(client())]);
    plan.generation = Generation::Inside;
    let inside = run(&plan, vec![Box::new(client())]);
    let of = |f: &Finished| f.phases[0].points[0].operations[0].clone();
    assert!(of(&inside).response.mean_ns() > of(&inside).service.mean_ns() + 4.0 * MS as f64);
    assert_eq!(of(&outside).response, of(&outside).service);
    assert!(of(&outside).rate_per_s > 2.0 * of(&inside).rate_per_s);
    assert!(outside.phases[0].points[0].own_share > 0.5);
}

/// Restores for a given time before every call.
struct Restoring(Scripted, Duration);
impl Client for Restoring {
    fn operations(&self) -> &'static [&'static str] {
        self.0.operations()
    }
    fn fill_next(&mut self) -> Result<bool, StoreError> {
        self.0.fill_next()
    }
    fn start_phase(&mut self, phase: usize) {
        self.0.start_phase(phase);
    }
    fn restore(&mut self) -> bool {
        thread::sleep(self.1);
        true
    }
    fn calls(&self, _n: u64) -> usize {
        1
    }
    fn prepare(&mut self, n: u64, call: usize) -> Call {
        self.0.prepare(n, call)
    }
    fn draw(&mut self) {}
    fn call(&mut self) -> Result<Answer, StoreError> {
        self.0.call()
    }
    fn check(&mut self) -> (Outcome, bool) {
        self.0.check()
    }
    fn read_back(
        &mut self,
        _n: u64,
        _of: u64,
    ) -> Result<Option<(StoredVersion, String)>, StoreError> {
        Ok(None)
    }
}

fn restoring(takes_ms: u64, restores_ms: u64) -> Box<dyn Client> {
    let inner = Scripted {
        takes: Duration::from_millis(takes_ms),
        drawing_takes: Duration::ZERO,
        calls: 1,
        filled: 0,
        n: 0,
        behave: |_| Ok(Outcome::Ok),
        outcome: Outcome::Ok,
    };
    Box::new(Restoring(inner, Duration::from_millis(restores_ms)))
}

#[test]
fn restoring_counts_for_neither_the_rate_nor_the_generators_share() {
    let measured = |plan: &Sessions, restores_ms: u64| {
        let phase = run(plan, vec![restoring(1, restores_ms)]).phases.remove(0).points.remove(0);
        let by_service = 1e9 / phase.operations[0].service.mean_ns();
        let share = phase.operations[0].rate_per_s / by_service;
        assert!(phase.own_share < 0.3 && (0.5..1.05).contains(&share), "{share}: {phase:?}");
        let [restored] = phase.restored[..] else { panic!("one client: {phase:?}") };
        let again = restored.answered as f64 / (restored.free_ns as f64 / 1e9);
        assert!((again / phase.operations[0].rate_per_s - 1.0).abs() < 1e-9, "{restored:?}");
        let span_ns = restored.restoring_ns + restored.free_ns;
        assert!(restored.restoring_ns >= 30 * MS && span_ns <= phase.length_ns);
        phase.length_ns
    };
    assert!(measured(&workload(Stop::Count(10), 0), 5) >= 60 * MS);
    // Also if restoring starts in the warm-up and takes half of the measurement.
    measured(&workload(Stop::AfterNs(80 * MS), 5 * MS), 40);
}

#[test]
fn with_restoring_clients_the_rate_follows_from_the_mean_over_all_operations() {
    // One client restores for the whole phase and makes a single call, which takes a twentieth of
    // the other client's time.
    let plan = workload(Stop::AfterNs(60 * MS), 0);
    let phase =
        run(&plan, vec![restoring(1, 60), restoring(20, 1)]).phases.remove(0).points.remove(0);
    let fewest = phase.restored.iter().map(|restored| restored.answered).min();
    assert_eq!(fewest, Some(1), "{:?}", phase.restored);
    let by_mean_time = 2e9 / phase.operations[0].service.mean_ns();
    let rate = phase.operations[0].rate_per_s;
    assert!(rate <= by_mean_time * 1.001, "{rate} of {by_mean_time}: {:?}", phase.restored);
}

#[test]
fn a_counted_call_from_the_warm_up_has_all_of_its_time_in_the_rate() {
    let plan = workload(Stop::AfterNs(40 * MS), 10 * MS);
    let phase = run(&plan, vec![restoring(30, 1)]).phases.remove(0).points.remove(0);
    let [restored] = phase.restored[..] else { panic!("one client: {phase:?}") };
    assert!(restored.free_ns >= restored.answered * 30 * MS, "{restored:?}");
}

/// Operations of random length; each client ends with the one in flight.
#[test]
fn the_last_operation_of_a_timed_phase_does_not_lower_the_rate() {
    // One operation in ten takes 30 ms, the others 2 ms: one of four clients is nearly always in a
    // long one when the time is up.
    let behave = |_: u64| {
        static CALLS: AtomicU64 = AtomicU64::new(0);
        let n = CALLS.fetch_add(1, Ordering::Relaxed);
        let is_long = workloads::values::mix(&[n, 5]).is_multiple_of(10);
        thread::sleep(Duration::from_millis(if is_long { 28 } else { 0 }));
        Ok(Outcome::Ok)
    };
    let plan = workload(Stop::AfterNs(100 * MS), 0);
    let (mut by_rate, mut by_time) = (0.0, 0.0);
    for _ in 0..10 {
        let clients = (0..4).map(|_| Scripted::boxed(Duration::from_millis(2), behave)).collect();
        let phase = run(&plan, clients).phases.remove(0).points.remove(0);
        let whole = &phase.operations[0];
        by_rate += whole.rate_per_s;
        by_time += 4e9 / whole.service.mean_ns();
    }
    let share = by_rate / by_time;
    assert!(share > 0.97, "{share}: the rate is below that of four busy clients");
}

#[test]
fn each_outcome_is_counted_separately() {
    let plan = workload(Stop::Count(7), 0);
    let client = Scripted::boxed(Duration::ZERO, |n| match n {
        0 => Ok(Outcome::Miss),
        1 => Ok(Outcome::Wrong),
        2 => Ok(Outcome::Stale),
        3 => Ok(Outcome::LockLost),
        4 => Err(StoreError::soft(ErrorClass::Lock, "taken")),
        5 => Ok(Outcome::Lost),
        _ => Ok(Outcome::Ok),
    });
    let counts = run(&plan, vec![client]).phases[0].points[0].operations[0].counts.clone();
    assert_eq!((counts.ok, counts.miss, counts.wrong, counts.stale), (1, 2, 1, 1));
    assert_eq!(counts.lost, 1, "it is one of the misses");
    assert_eq!((counts.error, counts.lock_broken, counts.lock_timeouts), (2, 1, 1));
    assert_eq!(counts.total(), 7);
}

#[test]
fn a_fatal_failure_stops_all_clients_and_keeps_its_reason() {
    let plan = workload(Stop::AfterNs(3_600_000 * MS), 0);
    let short = Duration::from_millis(1);
    let dies = Scripted::boxed(short, |n| match n {
        0..3 => Ok(Outcome::Ok),
        _ => Err(StoreError::fatal(ErrorClass::Closed, "gone")),
    });
    let finished = run(&plan, vec![Scripted::boxed(short, |_| Ok(Outcome::Ok)), dies]);
    let failure = finished.failure.unwrap();
    assert_eq!((failure.class, failure.message.as_str()), (ErrorClass::Closed, "gone"));
    let partial = &finished.phases[0].points[..];
    assert!(partial.len() == 1 && partial[0].failure == Some(failure), "{partial:?}");
}

#[test]
fn endless_soft_failures_stop_the_clients_too() {
    let plan = workload(Stop::AfterNs(3_600_000 * MS), 0);
    let full = || Scripted::boxed(Duration::ZERO, |_| Err(StoreError::soft(ErrorClass::Full, "x")));
    let failure = run(&plan, vec![full()]).failure.unwrap();
    assert_eq!(failure.message, "100 failures in a row, last: x");
}

#[test]
fn a_panic_fails_the_trial_and_leaves_no_client_waiting() {
    let plan = workload(Stop::AfterNs(3_600_000 * MS), 0);
    let clients = vec![
        Scripted::boxed(Duration::from_millis(1), |_| Ok(Outcome::Ok)),
        Scripted::boxed(Duration::from_millis(1), |_| panic!("on purpose")),
    ];
    assert_eq!(run(&plan, clients).failure.unwrap().class, ErrorClass::Other);
}

#[test]
fn the_user_can_stop_a_trial() {
    let plan = workload(Stop::AfterNs(3_600_000 * MS), 0);
    let stop = AtomicBool::new(false);
    let engine =
        Engine { phases: &plan.phases, planned: None, settings: settings(&plan, &[0], &stop) };
    let mut reports = 0;
    let clients = vec![Scripted::boxed(Duration::from_millis(1), |_| Ok(Outcome::Ok))];
    let finished = engine.run(clients, &mut Steps(0), &mut |p| {
        if p.phase == "read" && p.rate_per_s > 0.0 {
            reports += 1;
            stop.store(reports > 1, Ordering::Relaxed);
        }
    });
    assert!(finished.interrupted && finished.phases.is_empty() && reports > 1);
}

/// Calls made by the clients in [`Gate`]'s test.
static CALLS: AtomicU64 = AtomicU64::new(0);

/// Records the number of calls before each phase, and refuses one phase.
struct Gate {
    calls: Vec<u64>,
    refuses: usize,
}

impl Meter for Gate {
    fn read(&mut self) -> Reading {
        Reading::default()
    }

    fn before_phase(&mut self) -> Result<(), Failure> {
        self.calls.push(CALLS.load(Ordering::SeqCst));
        if self.calls.len() == self.refuses {
            return Err(Failure { class: ErrorClass::Other, message: "not now".into() });
        }
        Ok(())
    }
}

#[test]
fn all_clients_are_idle_before_each_phase() {
    let mut plan = workload(Stop::Count(20), 0);
    plan.phases = vec![plan.phases[0].clone(); 3];
    let client = || {
        Scripted::boxed(Duration::from_micros(50), |_| {
            CALLS.fetch_add(1, Ordering::SeqCst);
            Ok(Outcome::Ok)
        })
    };
    let stop = AtomicBool::new(false);
    let settings = settings(&plan, &[], &stop);
    let engine = Engine { phases: &plan.phases, planned: None, settings };
    let mut gate = Gate { calls: Vec::new(), refuses: 0 };
    let finished = engine.run(vec![client(), client()], &mut gate, &mut |_| {});
    assert!(finished.failure.is_none());
    assert_eq!(gate.calls, [0, 40, 80]);

    let mut gate = Gate { calls: Vec::new(), refuses: 2 };
    let finished = engine.run(vec![client(), client()], &mut gate, &mut |_| {});
    assert_eq!(finished.failure.unwrap().message, "not now");
    assert_eq!(finished.phases.len(), 1);
    assert_eq!(gate.calls, [120, 160], "no further phase of a failed trial is prepared");
    assert_eq!(CALLS.load(Ordering::SeqCst), 160);
}
