//! Coverage of the confidence intervals: how many contain the true value, on simulated stores with
//! stalls.

use stats::{Histogram, SplitMix64};

use super::{Merged, OfBlock, Times};

/// A store with a mean latency of 0.5 ms and occasional stalls, which delay all requests that are
/// due in them.
struct Store {
    stalls_per_s: f64,
    stall_s: f64,
    /// Relative spread of latency between blocks.
    spread: f64,
}

/// Requests per second.
const RATE: f64 = 500.0;

impl Store {
    /// A block: all latencies, and the longest in each hundredth of it.
    fn block(&self, seconds: f64, random: &mut SplitMix64) -> OfBlock {
        let scale = 1.0 + self.spread * 12f64.sqrt() * (random.open_unit() - 0.5);
        let (mut times, mut longest) = (Histogram::new(), vec![0_u64; 100]);
        let between = if self.stalls_per_s > 0.0 { 1.0 / self.stalls_per_s } else { f64::INFINITY };
        // Earlier stalls can extend into the block.
        let mut stall = random.exponential(between) - 10.0 * self.stall_s;
        let (mut at, mut until) = (random.exponential(1.0 / RATE), 0.0);
        while at < seconds {
            while stall <= at {
                until = f64::max(until, stall + self.stall_s);
                stall += random.exponential(between);
            }
            let own = 0.000_5 * scale * (0.5 + random.exponential(0.5));
            let ns = ((own + f64::max(until - at, 0.0)) * 1e9) as u64;
            times.record(ns);
            let interval = &mut longest[(at / seconds * 100.0) as usize];
            *interval = ns.max(*interval);
            at += random.exponential(1.0 / RATE);
        }
        OfBlock::new(Times::all(&times), Some(&longest), (seconds * 1e9) as u64)
    }

    /// True share of requests that take longer than `x` seconds. A request with its own latency o
    /// does if a stall with more than x − o seconds left is in progress when it is due.
    fn beyond(&self, x: f64) -> f64 {
        let steps = 5_000;
        let scales = if self.spread > 0.0 { 20 } else { 1 };
        let middle = |i: u32| (f64::from(i) + 0.5) / f64::from(steps);
        let mut sum = 0.0;
        for scale in (0..scales).map(|i| (f64::from(i) + 0.5) / f64::from(scales) - 0.5) {
            let scale = 0.000_5 * (1.0 + self.spread * 12f64.sqrt() * scale);
            let own = (0..steps).map(|i| scale * (0.5 - 0.5 * middle(i).ln()));
            let within = |own: f64| (self.stall_s - (x - own).max(0.0)).max(0.0);
            let late = |own: f64| {
                if own > x { 1.0 } else { -(-self.stalls_per_s * within(own)).exp_m1() }
            };
            sum += own.map(late).sum::<f64>() / f64::from(steps * scales);
        }
        sum
    }

    /// The true quantile, nanoseconds.
    fn truth(&self, q: f64) -> f64 {
        let (mut low, mut high) = (0.0, 10.0);
        for _ in 0..60 {
            let middle = f64::midpoint(low, high);
            if self.beyond(middle) > 1.0 - q { low = middle } else { high = middle }
        }
        high * 1e9
    }

    /// Number of runs with an interval of the percentile, and number of those that contain the true
    /// value.
    fn given(&self, (blocks, seconds): (usize, f64), name: &str, runs: usize) -> (usize, usize) {
        let truth = self.truth(if name == "p99" { 0.99 } else { 0.5 });
        let random = &mut SplitMix64::new(5);
        let (mut given, mut covered) = (0, 0);
        for _ in 0..runs {
            let merged = Merged::of((0..blocks).map(|_| self.block(seconds, random)));
            let found = merged.percentiles().into_iter().find(|(known, ..)| *known == name);
            let (_, value, unsure) = found.unwrap();
            let (Some(lo), Some(hi)) = (value.lo, value.hi) else { continue };
            let (least, most) = (merged.all.known(0.0).unwrap(), merged.all.answered().max_ns());
            assert!(lo >= least as f64 && hi <= most as f64 && unsure.is_none(), "{value:?}");
            given += 1;
            covered += usize::from(lo <= truth && truth <= hi);
        }
        (given, covered)
    }
}

const STALLING: Store = Store { stalls_per_s: 0.4, stall_s: 0.04, spread: 0.0 };

/// A check of the true quantile: stalls of 40 ms, 0.4 per second.
#[test]
fn the_true_quantile_matches_the_distribution() {
    let truth = STALLING.truth(0.99) / 1e6;
    assert!((15.0..16.0).contains(&truth), "{truth} ms");
}

/// With at most four stalls no interval is given; it would cover only half to two thirds of runs.
#[test]
fn a_few_stalls_give_no_interval() {
    for blocks in [5, 10] {
        assert_eq!(STALLING.given((blocks, 1.0), "p99", 60), (0, 0), "{blocks} blocks");
    }
}

#[test]
fn intervals_contain_the_true_value() {
    let still = Store { stalls_per_s: 0.0, ..STALLING };
    let short = Store { stalls_per_s: 10.0, stall_s: 0.005, ..STALLING };
    let often = Store { stalls_per_s: 2.0, stall_s: 0.02, ..STALLING };
    let long = Store { stalls_per_s: 0.1, stall_s: 0.2, ..STALLING };
    let uneven = Store { spread: 0.1, ..STALLING };
    let cases = [
        ("rare stalls", &STALLING, (5, 10.0), "p99"),
        ("rare stalls", &STALLING, (10, 6.0), "p99"),
        ("rare stalls, unequal blocks", &uneven, (4, 15.0), "p99"),
        ("short stalls", &short, (4, 6.0), "p99"),
        ("frequent stalls", &often, (6, 5.0), "p99"),
        ("long stalls", &long, (8, 30.0), "p99"),
        ("none", &still, (4, 6.0), "p99"),
        ("none", &still, (10, 2.5), "p99"),
        ("none, unequal blocks", &Store { stalls_per_s: 0.0, ..uneven }, (5, 5.0), "p99"),
        ("a median", &STALLING, (5, 1.0), "p50"),
        ("a median, unequal blocks", &uneven, (4, 1.0), "p50"),
    ];
    for (name, store, run, percentile) in cases {
        let runs = match run.0 as f64 * run.1 {
            ..10.0 => 300,
            ..40.0 => 100,
            _ => 40,
        };
        let (given, covered) = store.given(run, percentile, runs);
        assert!(given * 4 >= runs * 3, "{name}, {run:?}: {given} of {runs} have an interval");
        assert!(covered * 100 >= given * 90, "{name}, {run:?}: {covered} of {given} are correct");
    }
}
