//! Tests of the search on simulated stores with a known capacity.

use super::knee::{Crossing, crossing, monotone};
use super::*;
use crate::random::SplitMix64;
use crate::tail::Batch;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Time span in which requests are counted.
const SPAN_NS: u64 = 100_000_000;

/// One request in a hundred may take longer than 5 ms.
const USUAL: Limit = Limit { limit_ns: 5_000_000, allowed: 0.01 };

fn settings(limits: &[Limit], seed: u64) -> Settings {
    Settings { limits: limits.to_vec(), probe_ns: 1_000_000_000, rounds: 5, seed }
}

/// A simulated store.
trait Store {
    fn answer(&mut self, step: Step) -> ProbeResult;
}

/// Runs a search; returns all probes and the outcome.
fn search(settings: &Settings, store: &mut dyn Store) -> (Vec<ProbeResult>, Found) {
    let mut seen = Vec::new();
    for _ in 0..2_000 {
        match settings.next(&seen) {
            Next::Probe(step) => seen.push(store.answer(step)),
            Next::Done(found) => return (seen, found),
        }
    }
    panic!("no end after {:?}", seen.iter().map(|s| (s.purpose, s.rate_per_s)).collect::<Vec<_>>());
}

/// An M/M/1 queue (Lindley's recursion). The time in the system is exponential with rate μ − λ, so
/// p99 is ln(100)/(μ − λ).
struct Queue {
    random: SplitMix64,
    served_per_s: f64,
    limits: Vec<Limit>,
}

impl Queue {
    fn new(served_per_s: f64, limits: &[Limit], seed: u64) -> Self {
        Self { random: SplitMix64::new(seed), served_per_s, limits: limits.to_vec() }
    }

    fn exponential(&mut self, rate: f64) -> f64 {
        self.random.exponential(1.0 / rate)
    }
}

impl Store for Queue {
    fn answer(&mut self, step: Step) -> ProbeResult {
        let seconds = step.length_ns as f64 / 1e9;
        let mut seen = idle(step, &self.limits);
        if step.purpose == Purpose::Peak {
            seen.answered_per_s = self.served_per_s * (0.97 + 0.06 * self.random.open_unit());
            return seen;
        }
        let warmup_s = 0.25;
        let (mut at, mut free_at) = (0.0, 0.0_f64);
        let mut due = 0_u64;
        while at < warmup_s + seconds {
            at += self.exponential(step.rate_per_s as f64);
            free_at = free_at.max(at) + self.exponential(self.served_per_s);
            if at < warmup_s || at >= warmup_s + seconds {
                continue;
            }
            due += 1;
            let span = ((at - warmup_s) * 1e9) as usize / SPAN_NS as usize;
            for (limit_ns, batches) in &mut seen.batches {
                let span = span.min(batches.len() - 1);
                batches[span].requests += 1;
                batches[span].over += u64::from((free_at - at) * 1e9 > *limit_ns as f64);
            }
        }
        let wall_s = (free_at - warmup_s).max(seconds);
        seen.answered_per_s = due as f64 / wall_s;
        seen.fell_behind = wall_s > seconds * 1.02 + 3.0 * (due as f64).sqrt() / self.served_per_s;
        seen
    }
}

fn idle(step: Step, limits: &[Limit]) -> ProbeResult {
    let spans = step.length_ns.div_ceil(SPAN_NS) as usize;
    ProbeResult {
        purpose: step.purpose,
        rate_per_s: step.rate_per_s,
        answered_per_s: step.rate_per_s as f64,
        length_ns: step.length_ns,
        batches: limits.iter().map(|l| (l.limit_ns, vec![Batch::default(); spans])).collect(),
        fell_behind: false,
        broke: false,
        settled: true,
    }
}

/// Requests due, and those beyond the usual limit.
fn usual(seen: &mut ProbeResult) -> &mut Vec<Batch> {
    seen.batches.get_mut(&USUAL.limit_ns).unwrap()
}

/// Requests that are slow independently, with a share that depends on the rate.
struct Curve<F> {
    random: SplitMix64,
    peak_per_s: f64,
    share: F,
}

impl<F: Fn(f64) -> f64> Store for Curve<F> {
    fn answer(&mut self, step: Step) -> ProbeResult {
        let mut seen = idle(step, &[USUAL]);
        if step.purpose == Purpose::Peak {
            seen.answered_per_s = self.peak_per_s;
            return seen;
        }
        let share = (self.share)(step.rate_per_s as f64).clamp(0.0, 1.0);
        for batch in usual(&mut seen) {
            batch.requests = (step.rate_per_s / 10).max(1);
            let mean = batch.requests as f64 * share;
            let over = mean + (mean * (1.0 - share)).sqrt() * self.random.normal();
            batch.over = (over.round().max(0.0) as u64).min(batch.requests);
        }
        seen
    }
}

fn rate(found: Found) -> (f64, f64, f64) {
    match found {
        Found::Rate { center, lo, hi } => (center, lo, hi),
        other => panic!("{other:?}"),
    }
}

/// The accuracy goal of the search.
#[test]
fn a_queue_s_capacity_is_found_within_3_percent_in_19_of_20_seeds() {
    for (served_per_s, limit_ns) in [(10_000.0, 5_000_000), (10_000.0, 1_000_000)] {
        let limit = Limit { limit_ns, ..USUAL };
        let truth = served_per_s - 100.0_f64.ln() / limit_ns as f64 * 1e9;
        let (mut right, mut covered, mut longest_s) = (0, 0, 0.0_f64);
        let mut contradicted = 0;
        let mut told = Vec::new();
        for seed in 1..=20 {
            let mut store = Queue::new(served_per_s, &[limit], seed);
            let (seen, found) = search(&settings(&[limit], seed), &mut store);
            let (center, lo, hi) = rate(found);
            let (against, all) = settings(&[limit], seed).contradictions(&seen);
            contradicted += u32::from(against as f64 > 0.1 * all as f64);
            right += u32::from((center / truth - 1.0).abs() <= 0.03);
            covered += u32::from(lo <= truth && truth <= hi);
            // Each probe also takes a warm-up and the time to connect.
            let more = |s: &ProbeResult| if s.purpose == Purpose::CoolDown { 50 } else { 300 };
            let measured_s: u64 = seen.iter().map(|s| s.length_ns + more(s) * 1_000_000).sum();
            longest_s = longest_s.max(measured_s as f64 / 1e9);
            told.push(center / truth);
        }
        assert!(right >= 19, "{right} of 20 at {served_per_s}/s under {limit_ns} ns: {told:?}");
        assert!(covered >= 16, "{covered} of 20 intervals at {served_per_s}/s contain {truth}");
        assert!(contradicted <= 1, "{contradicted} of 20 look as if the store had changed");
        assert!(longest_s <= 120.0, "{longest_s} s of load");
    }
}

/// p50 below 1 ms allows less than p99 below 5 ms, and more than p99 below 1 ms.
#[test]
fn the_strictest_of_several_limits_decides() {
    let served = 10_000.0;
    let truth = (served - 2.0_f64.ln() / 0.001).min(served - 100.0_f64.ln() / 0.005);
    let limits = [Limit { limit_ns: 1_000_000, allowed: 0.5 }, USUAL];
    let mut store = Queue::new(served, &limits, 5);
    let (_, found) = search(&settings(&limits, 5), &mut store);
    assert!((rate(found).0 / truth - 1.0).abs() < 0.03, "{found:?}, {truth}");
}

#[test]
fn a_limit_that_always_or_never_fails_is_reported() {
    let mut always = Curve { random: SplitMix64::new(1), peak_per_s: 50_000.0, share: |_| 0.5 };
    let (seen, found) = search(&settings(&[USUAL], 1), &mut always);
    assert_eq!(found, Found::Missed(1_000));
    assert!(seen.len() < 30);
    let mut never = Curve { random: SplitMix64::new(1), peak_per_s: 50_000.0, share: |_| 0.0 };
    let (_, found) = search(&settings(&[USUAL], 1), &mut never);
    assert!(matches!(found, Found::NeverMissed(rate) if rate > 200_000), "{found:?}");
}

#[test]
fn a_peak_far_from_the_knee_only_costs_steps() {
    for factor in [0.4, 1.0, 3.0, 15.0] {
        let share = |rate: f64| 0.01 * (rate / 20_000.0).powi(12);
        let random = SplitMix64::new(2);
        let mut store = Curve { random, peak_per_s: 20_000.0 * factor, share };
        let (_, found) = search(&settings(&[USUAL], 3), &mut store);
        let (center, lo, hi) = rate(found);
        assert!((center / 20_000.0 - 1.0).abs() < 0.02, "{factor}: {found:?}");
        assert!(lo <= center && center <= hi);
    }
}

#[test]
fn a_server_that_dies_above_its_knee_does_not_hide_it() {
    struct Mortal(Queue);
    impl Store for Mortal {
        fn answer(&mut self, step: Step) -> ProbeResult {
            let mut seen = self.0.answer(step);
            if step.rate_per_s > 9_500 {
                seen.batches.clear();
                seen.broke = true;
            }
            seen
        }
    }
    let limit = Limit { limit_ns: 100_000_000, ..USUAL };
    let mut store = Mortal(Queue::new(10_000.0, &[limit], 4));
    let (seen, found) = search(&settings(&[limit], 4), &mut store);
    assert!(seen.iter().any(|s| s.broke));
    assert!((rate(found).0 / 9_500.0 - 1.0).abs() < 0.03, "{found:?}");
}

/// A store whose first probe appears to fall behind.
struct Disturbed(Queue, bool);
impl Store for Disturbed {
    fn answer(&mut self, step: Step) -> ProbeResult {
        let is_first = step.purpose == Purpose::Bracket && !std::mem::replace(&mut self.1, true);
        let seen = self.0.answer(step);
        ProbeResult { fell_behind: is_first || seen.fell_behind, ..seen }
    }
}

/// A single pause of the machine must not determine the answer.
#[test]
fn a_probe_that_fell_behind_by_chance_is_repeated() {
    let is_right = |seed| {
        let mut store = Disturbed(Queue::new(10_000.0, &[USUAL], seed), false);
        let (_, found) = search(&settings(&[USUAL], seed), &mut store);
        (rate(found).0 / 9_079.0 - 1.0).abs() < 0.03
    };
    let right = (1..=20).filter(|seed| is_right(*seed)).count();
    assert!(right >= 19, "{right} of 20");
}

/// A store that is slower by a factor during the bracket.
struct LateBloomer<F>(Curve<F>, f64);

impl<F: Fn(f64) -> f64> Store for LateBloomer<F> {
    fn answer(&mut self, step: Step) -> ProbeResult {
        if step.purpose != Purpose::Bracket {
            return self.0.answer(step);
        }
        let rate_per_s = (step.rate_per_s as f64 * self.1) as u64;
        ProbeResult { rate_per_s: step.rate_per_s, ..self.0.answer(Step { rate_per_s, ..step }) }
    }
}

#[test]
fn a_low_bracket_does_not_limit_the_answer() {
    for seed in 1..=10 {
        let share = |rate: f64| 0.01 * (rate / 100_000.0).powi(30);
        let random = SplitMix64::new(seed);
        let curve = Curve { random, peak_per_s: 130_000.0, share };
        let (seen, found) = search(&settings(&[USUAL], seed), &mut LateBloomer(curve, 1.09));
        let (center, ..) = rate(found);
        assert!((center / 100_000.0 - 1.0).abs() < 0.03, "{center}");
        let confirmed = seen.iter().filter(|s| s.purpose == Purpose::Confirm);
        let over =
            |s: &ProbeResult| s.batches(USUAL.limit_ns).iter().map(|b| b.over).sum::<u64>() as f64;
        let all = |s: &ProbeResult| {
            s.batches(USUAL.limit_ns).iter().map(|b| b.requests).sum::<u64>() as f64
        };
        let highest = confirmed.clone().filter(|s| over(s) > 0.01 * all(s)).count();
        assert!(highest > 0, "no confirmation missed");
    }
}

/// A store that stalls from time to time at any rate. A stall delays the requests due during it and
/// until the queue is empty again.
struct Stalling {
    queue: Queue,
    every_s: f64,
    stall_s: f64,
    /// Simulated time; there is a pause between probes.
    now_s: f64,
}

impl Store for Stalling {
    fn answer(&mut self, step: Step) -> ProbeResult {
        let mut seen = self.queue.answer(step);
        let length_s = step.length_ns as f64 / 1e9;
        let (from_s, to_s) = (self.now_s, self.now_s + length_s);
        self.now_s = to_s + 0.35;
        if step.purpose == Purpose::Peak {
            return seen;
        }
        let room = (1.0 - step.rate_per_s as f64 / self.queue.served_per_s).max(0.01);
        let mut stall_s = (from_s / self.every_s).ceil() * self.every_s;
        while stall_s < to_s {
            let over_until_s = (stall_s + self.stall_s / room).min(to_s);
            for (i, batch) in usual(&mut seen).iter_mut().enumerate() {
                let (begins, ends) = (from_s + i as f64 * 0.1, from_s + (i + 1) as f64 * 0.1);
                let share = (ends.min(over_until_s) - begins.max(stall_s)).max(0.0) / 0.1;
                batch.over = batch.over.max((share * batch.requests as f64) as u64);
            }
            stall_s += self.every_s;
        }
        seen
    }
}

/// Stalls take 0.7 % to 2.5 % of the time, and near the knee their queues last several times as
/// long. If they are rarer than one per probe, some probes do not see any.
#[test]
fn a_store_that_stalls_gets_no_number() {
    for (every_s, stall_s, numbers_max) in
        [(4.0, 0.1, 0), (6.9, 0.05, 0), (14.6, 0.1, 0), (30.0, 0.2, 1)]
    {
        let found = (1..=4).map(|seed| {
            let queue = Queue::new(3_000.0, &[USUAL], seed);
            let now_s = 0.3 * seed as f64;
            search(&settings(&[USUAL], seed), &mut Stalling { queue, every_s, stall_s, now_s }).1
        });
        let is_number = |found: &Found| matches!(found, Found::Rate { .. } | Found::NeverMissed(_));
        let numbers: Vec<Found> = found.filter(is_number).collect();
        assert!(numbers.len() <= numbers_max, "{stall_s} s every {every_s} s: {numbers:?}");
    }
}

/// During the first bracket the store reaches only a tenth of its rate.
#[test]
fn a_wrong_bracket_is_replaced() {
    struct Waking(Queue, u32);
    impl Store for Waking {
        fn answer(&mut self, step: Step) -> ProbeResult {
            if step.purpose == Purpose::Confirm {
                self.1 = 0;
            }
            let slow = self.1 > 0 && step.purpose == Purpose::Bracket;
            let served = if slow { 2_000.0 } else { 20_000.0 };
            self.0.served_per_s = if step.purpose == Purpose::Peak { 14_000.0 } else { served };
            self.0.answer(step)
        }
    }
    for seed in 1..=10 {
        let mut store = Waking(Queue::new(20_000.0, &[USUAL], seed), 1);
        let (seen, found) = search(&settings(&[USUAL], seed), &mut store);
        let (center, ..) = rate(found);
        assert!((center / 19_079.0 - 1.0).abs() < 0.03, "{seed}: {found:?}");
        assert!(seen.len() < 150, "{}", seen.len());
    }
}

/// The first bracket is at a tenth of the sustained rate, and no round decidedly passes. Rounds
/// move by 5 % each, and the rate of the last round is not an answer.
#[test]
fn the_last_round_is_not_an_answer() {
    struct Unsure(SplitMix64, bool);
    impl Store for Unsure {
        fn answer(&mut self, step: Step) -> ProbeResult {
            self.1 |= step.purpose == Purpose::Confirm;
            let disturbed = |rate: f64| 0.01 * (rate / 1_000.0).powi(30);
            let usual = |rate: f64| 0.006 + 0.004 * (rate / 10_000.0).powi(30);
            let rate = step.rate_per_s as f64;
            let share = if self.1 { usual(rate) } else { disturbed(rate) };
            let random = SplitMix64::new(self.0.next_u64());
            Curve { random, peak_per_s: 14_000.0, share: |_| share }.answer(step)
        }
    }
    let is_low = |seed: &u64| {
        let settings = Settings { rounds: 1, ..settings(&[USUAL], *seed) };
        let (_, found) = search(&settings, &mut Unsure(SplitMix64::new(*seed), false));
        matches!(found, Found::Rate { center, .. } if center < 5_000.0)
    };
    // A single round may cross the allowed share by chance.
    let low = (1..=10).filter(is_low).count();
    assert!(low <= 1, "{low} of 10");
}

#[test]
fn only_decided_probes_bound_the_knee() {
    let settings = settings(&[USUAL], 1);
    let probe = |rate_per_s: u64, over: u64, broke: bool| {
        let step = Step { purpose: Purpose::Bracket, rate_per_s, length_ns: 1_000_000_000 };
        let mut seen = idle(step, &[USUAL]);
        seen.broke = broke;
        usual(&mut seen).fill(Batch { requests: rate_per_s / 10, over });
        seen
    };
    let (holds, misses) = (probe(10_000, 0, false), probe(40_000, 400, false));
    // One in a hundred is undecided, and a dead server says nothing about a rate.
    let (open, broke) = (probe(20_000, 20, false), probe(30_000, 0, true));
    assert_eq!(settings.known(&[open.clone(), broke.clone()]), (None, None));
    let all = [holds.clone(), open.clone(), broke, misses.clone()];
    assert_eq!(settings.known(&all), (Some(10_000), Some(40_000)));
    assert_eq!(settings.known(&[misses, open]), (None, Some(40_000)));
    assert_eq!(settings.known(&[holds]), (Some(10_000), None));
}

#[test]
fn repeated_breaks_end_the_search() {
    struct Dead;
    impl Store for Dead {
        fn answer(&mut self, step: Step) -> ProbeResult {
            let is_peak = step.purpose == Purpose::Peak;
            ProbeResult {
                broke: !is_peak,
                answered_per_s: 1e4,
                settled: false,
                ..idle(step, &[USUAL])
            }
        }
    }
    struct Silent;
    impl Store for Silent {
        fn answer(&mut self, step: Step) -> ProbeResult {
            ProbeResult { answered_per_s: 0.0, ..idle(step, &[USUAL]) }
        }
    }
    assert_eq!(search(&settings(&[USUAL], 1), &mut Dead).1, Found::Broken);
    assert_eq!(search(&settings(&[USUAL], 1), &mut Silent).1, Found::Nothing);
}

#[test]
fn each_probe_waits_for_the_store_to_cool_down() {
    let settings = settings(&[USUAL], 1);
    let mut store = Queue::new(10_000.0, &[USUAL], 1);
    let mut seen: Vec<ProbeResult> = Vec::new();
    let mut tired = 0;
    while let Next::Probe(step) = settings.next(&seen) {
        let mut one = store.answer(step);
        if step.purpose == Purpose::CoolDown && seen.len() > 4 && tired < 3 {
            tired += 1;
            one.settled = false;
        }
        if !matches!(step.purpose, Purpose::CoolDown | Purpose::Peak) {
            assert!(seen.last().is_some_and(|s| s.settled));
        }
        seen.push(one);
    }
    assert_eq!(tired, 3);
}

#[test]
fn shares_that_fall_by_chance_are_pooled() {
    let batch = |over| Batch { requests: 1_000, over };
    let counts = BTreeMap::from([(100, batch(6)), (200, batch(2)), (300, batch(80))]);
    let pools = monotone(&counts);
    assert_eq!(pools.len(), 2);
    assert!((pools[0].share() - 8.5 / 2_001.0).abs() < 1e-12);
    assert!(matches!(crossing(&counts, 0.01), Crossing::At(rate) if rate > 140.0 && rate < 300.0));
    assert_eq!(crossing(&counts, 0.001), Crossing::Below(100.0));
    assert_eq!(crossing(&counts, 0.2), Crossing::Above(300.0));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// The search ends on any curve, and its answer is near the allowed share.
    #[test]
    fn every_rising_curve_is_searched_to_an_end(
        knee in 200.0_f64..2e6,
        peak in 0.5_f64..3.0,
        power in 3_i32..60,
        allowed in prop::sample::select(vec![0.5, 0.05, 0.01, 0.001]),
        seed in any::<u64>(),
    ) {
        let share = |rate: f64| allowed * (rate / knee).powi(power);
        let random = SplitMix64::new(seed);
        let mut store = Curve { random, peak_per_s: knee * peak, share };
        let (seen, found) = search(&settings(&[Limit { allowed, ..USUAL }], seed), &mut store);
        prop_assert!(seen.len() < 400);
        let (center, lo, hi) = rate(found);
        // A flat curve gives a less exact answer: 50 % more slow requests are ±20 % at power 2.
        let zone = 0.02 + 0.5 / f64::from(power);
        prop_assert!((center / knee - 1.0).abs() < zone, "{found:?} for {knee}");
        prop_assert!(lo <= center && center <= hi);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    /// The next probe depends only on the earlier ones.
    #[test]
    fn equal_probes_give_equal_steps(seed in any::<u64>()) {
        let run = || {
            let share = |rate: f64| 0.01 * (rate / 3_000.0).powi(8);
            let random = SplitMix64::new(seed);
            search(&settings(&[USUAL], seed), &mut Curve { random, peak_per_s: 4_000.0, share })
        };
        let ((one, found), (two, same)) = (run(), run());
        prop_assert_eq!(found, same);
        prop_assert_eq!(one, two);
    }
}
