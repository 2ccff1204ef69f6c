//! Planned arrivals of the blocking-client engine.

use super::*;
use crate::meter::{Finished, Unmetered};
use crate::{Engine, Settings};
use model::{Arrivals, Generation, Load, Phase, Schedule, Shares, Stop, StoredVersion};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use workloads::{Answer, Call, Outcome, StoreError};

const MS: u64 = 1_000_000;

/// A client whose reads take a given time; every fourth one needs a second call.
struct Reader {
    takes: Duration,
    n: u64,
    reads: &'static AtomicU64,
}

impl Client for Reader {
    fn operations(&self) -> &'static [&'static str] {
        &["get", "query"]
    }
    fn fill_next(&mut self) -> Result<bool, StoreError> {
        Ok(false)
    }
    fn start_phase(&mut self, _: usize) {}
    fn calls(&self, _n: u64) -> usize {
        2
    }
    fn has_call(&mut self, _n: u64, call: usize) -> bool {
        call == 0 || (call == 1 && self.n.is_multiple_of(4))
    }
    fn prepare(&mut self, n: u64, call: usize) -> Call {
        self.n = n;
        Call { operation: call, think_ns: 0 }
    }
    fn draw(&mut self) {}
    fn call(&mut self) -> Result<Answer, StoreError> {
        thread::sleep(self.takes);
        self.reads.fetch_add(1, Ordering::Relaxed);
        Ok(Answer::default())
    }
    fn check(&mut self) -> (Outcome, bool) {
        let is_miss = self.n.is_multiple_of(4);
        (if is_miss { Outcome::NotCached } else { Outcome::Ok }, false)
    }
    fn read_back(&mut self, _: u64, _: u64) -> Result<Option<(StoredVersion, String)>, StoreError> {
        Ok(None)
    }
}

fn phase(name: &str, warmup_ns: u64, length_ns: u64) -> Phase {
    let (mix, stop) = (BTreeMap::from([("read".into(), 1.0)]), Stop::AfterNs(length_ns));
    Phase { name: name.into(), mix, warmup_ns, stop, control: None }
}

fn run(phases: &[Phase], load: &Load, takes: Duration, timeout_ns: u64) -> Finished {
    static READS: AtomicU64 = AtomicU64::new(0);
    let client = |_| Box::new(Reader { takes, n: 0, reads: &READS }) as Box<dyn Client>;
    let stop = AtomicBool::new(false);
    let generation = Generation::Outside;
    let planned = Some((load, 5));
    let settings = Settings { generation, cpus: &[], timeout_ns, stall_ns: 0, stop: &stop };
    let engine = Engine { phases, planned, settings };
    engine.run((0..load.clients).map(client).collect(), &mut Unmetered, &mut |_| {})
}

fn constant(rate_per_s: u64, clients: u32) -> Load {
    Load::planned(Arrivals::Constant, Schedule::Steady(rate_per_s), clients)
}

#[test]
fn every_arrival_of_the_measurement_counts_once() {
    let phases = [phase("read", 100 * MS, 400 * MS)];
    let finished = run(&phases, &constant(500, 3), Duration::ZERO, 1_000 * MS);
    let [PhaseRecord { points, .. }] = &finished.phases[..] else { panic!("{finished:?}") };
    let [point] = &points[..] else { panic!("one point") };
    let names: Vec<&str> = point.operations.iter().map(|o| o.operation.as_str()).collect();
    assert_eq!(names, ["get", "query", "read"]);
    let whole = point.whole().unwrap();
    assert_eq!((whole.counts.ok, whole.counts.miss, point.unsent), (200, 0, 0));
    assert_eq!((whole.response.count(), whole.lag.count()), (200, 200));
    let [get, query, _] = &point.operations[..] else { panic!("three operations") };
    assert_eq!(get.counts.miss, query.counts.total(), "a miss is followed by a query");
    assert_eq!((get.counts.total(), point.planned_per_s), (200, Some(500.0)));
    assert!((whole.rate_per_s - 500.0).abs() < 50.0, "{}", whole.rate_per_s);
}

/// One client serves 100 reads per second at most.
#[test]
fn a_backlog_counts_from_when_it_was_due_and_what_is_too_late_is_not_sent() {
    let phases = [phase("read", 0, 200 * MS)];
    let finished = run(&phases, &constant(1_000, 1), Duration::from_millis(10), 100 * MS);
    let point = &finished.phases[0].points[0];
    let whole = point.whole().unwrap();
    assert_eq!(whole.counts.total() + point.unsent, 200, "none is dropped silently");
    assert!(point.unsent > 100, "{}", point.unsent);
    assert!(whole.response.max_ns() > 150 * MS && whole.lag.max_ns() > 100 * MS);
    assert!(whole.service.quantile_ns(0.5) < 100 * MS);
}

#[test]
fn shares_of_the_peak_are_stages() {
    let shares = Shares { permille: vec![500, 2_000], stage_ns: 250 * MS, rest_ns: 0 };
    let load = Load::planned(Arrivals::Poisson, Schedule::Shares(shares), 2);
    let phases = [phase("peak", 0, 200 * MS), phase("ramp", 0, 500 * MS)];
    let finished = run(&phases, &load, Duration::from_millis(2), 50 * MS);
    assert!(finished.failure.is_none(), "{:?}", finished.failure);
    let [peak, ramp] = &finished.phases[..] else { panic!("two phases") };
    let peak_per_s = peak.whole().unwrap().rate_per_s;
    assert_eq!(peak.points[0].planned_per_s, None);
    let shown =
        |p: &Point| (p.stage, p.planned_per_s.map(|rate| (rate / peak_per_s * 1e3).round()));
    let shown: Vec<_> = ramp.points.iter().map(shown).collect();
    assert_eq!(shown, [(Some(0), Some(500.0)), (Some(1), Some(2_000.0))]);
    let [low, high] = &ramp.points[..] else { panic!("two stages") };
    assert_eq!((low.length_ns, low.unsent), (200 * MS, 0));
    // A client that starts the first stage late shortens the time between both starts.
    assert!(high.begun_ns >= low.begun_ns + low.length_ns, "{low:?} {high:?}");
    assert!(high.unsent > 0, "twice the peak cannot be served");
    let rate = |p: &Point| p.whole().unwrap().rate_per_s;
    assert!(rate(high) < 1.6 * peak_per_s && rate(low) < rate(high));
}

#[test]
fn stages_without_a_peak_fail() {
    let shares = Shares { permille: vec![500], stage_ns: 100 * MS, rest_ns: 0 };
    let load = Load::planned(Arrivals::Poisson, Schedule::Shares(shares), 1);
    let finished = run(&[phase("ramp", 0, 100 * MS)], &load, Duration::ZERO, 50 * MS);
    assert!(finished.failure.unwrap().message.contains("in phase `peak`"));
}
