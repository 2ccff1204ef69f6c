//! The queue compared with closed forms of queueing theory, with Poisson arrivals.

use super::*;

const US: u64 = 1_000;
const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000_000_000;

fn script(text: &str) -> Script {
    text.parse().unwrap()
}

/// Poisson arrivals at this mean rate per second, starting at 1 s.
fn poisson(rate: f64, count: usize) -> Vec<u64> {
    let mut random = numbers(11, 99);
    let mut at_ns = SECOND as f64;
    let next = |_| {
        at_ns += random.exponential(1e9 / rate);
        at_ns as u64
    };
    (0..count).map(next).collect()
}

/// Response times of these arrivals in nanoseconds.
fn responses(text: &str, arrivals: &[u64]) -> Vec<u64> {
    let mut schedule = Schedule::new(&script(text));
    arrivals.iter().map(|arrival| schedule.admit(*arrival) - arrival).collect()
}

fn mean(values: &[u64]) -> f64 {
    values.iter().map(|value| *value as f64).sum::<f64>() / values.len() as f64
}

fn quantile(values: &[u64], q: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    sorted[((q * sorted.len() as f64).ceil() as usize).saturating_sub(1)] as f64
}

#[track_caller]
fn near(got: f64, expected: f64, tolerance: f64) {
    let off = (got / expected - 1.0).abs();
    assert!(off < tolerance, "{got} instead of {expected}, {:.1} % off", off * 100.0);
}

#[test]
fn requests_queue_behind_a_constant_service_time() {
    let unqueued = responses("service=constant:1ms", &[SECOND, 2 * SECOND, 2 * SECOND + MS]);
    assert_eq!(unqueued, [MS, MS, MS]);
    let together = responses("service=constant:1ms", &[SECOND, SECOND, SECOND, SECOND + MS / 2]);
    assert_eq!(together, [MS, 2 * MS, 3 * MS, 3 * MS + MS / 2]);
    let two = responses("service=constant:1ms,servers=2", &[SECOND, SECOND, SECOND, SECOND]);
    assert_eq!(two, [MS, MS, 2 * MS, 2 * MS]);
    assert_eq!(responses("", &[SECOND, SECOND]), [0, 0]);
}

#[test]
fn m_m_1_matches_theory() {
    // Response times of M/M/1 are exponential with the rate mu - lambda.
    for load in [0.5, 0.8] {
        let arrivals = poisson(load * 100_000.0, 2_000_000);
        let got = responses("service=exponential:10us", &arrivals);
        let mean_ns = 1e9 / (100_000.0 * (1.0 - load));
        near(mean(&got), mean_ns, 0.03);
        near(quantile(&got, 0.5), mean_ns * 2f64.ln(), 0.03);
        near(quantile(&got, 0.99), mean_ns * 100f64.ln(), 0.05);
    }
}

#[test]
fn other_distributions_and_server_counts_match_theory() {
    let arrivals = poisson(80_000.0, 2_000_000);
    // M/D/1: mean waiting time rho D / (2 (1 - rho)).
    let waits = |text, service_ns: f64| mean(&responses(text, &arrivals)) - service_ns;
    near(waits("service=constant:10us", 10e3), 0.8 * 10e3 / 0.4, 0.03);
    // M/G/1 (Pollaczek and Khinchine): lambda E[S²] / (2 (1 - rho)).
    let (fast, slow, share) = (5e3, 105e3, 0.02);
    let service = fast * (1.0 - share) + slow * share;
    let square = fast * fast * (1.0 - share) + slow * slow * share;
    let rho = 80_000.0 * service / 1e9;
    let expected = 80_000.0 / 1e9 * square / (2.0 * (1.0 - rho));
    near(waits("service=bimodal:5us:105us:0.02", service), expected, 0.05);
    // M/M/2 at a load of 0.8: two servers of 20 us; Erlang's C is 2 rho² / (1 + rho).
    let expected = 2.0 * 0.64 / 1.8 * 1e9 / (2.0 * 50_000.0 - 80_000.0);
    near(waits("service=exponential:20us,servers=2", 20e3), expected, 0.05);
}

#[test]
fn a_stall_delays_its_arrivals_until_its_end() {
    // quantile(q) = b + S - (1 - q) T / k for q > 1 - k S / T, for k stalls of S in a run of T.
    let arrivals: Vec<u64> = (0..200_000).map(|n| SECOND + n * MS).collect();
    let check = |text: &str, stall_ns: f64, count: f64, q: f64| {
        let got = quantile(&responses(text, &arrivals), q);
        let expected = stall_ns - (1.0 - q) * 200e9 / count;
        // One arrival per millisecond; delayed replies leave one after another, within 1 ms.
        assert!((got - expected).abs() < 1.5e6, "{got} instead of {expected}");
    };
    for q in [0.92, 0.95, 0.99, 0.999] {
        // The first stall starts 2 s after the first request, so there are 99.
        check("service=constant:1us,stall=200ms/2s", 200e6, 99.0, q);
    }
    check("service=constant:1us,stall-once=1s@5s", 1e9, 1.0, 0.996);
    let calm = responses("service=constant:1us,stall=200ms/2s", &arrivals);
    assert_eq!(quantile(&calm, 0.89) as u64, US);
}

#[test]
fn a_stall_suspends_a_service_in_progress() {
    let text = "service=constant:4ms,stall=10ms/100ms,stall-once=5ms@205ms";
    let at = |ms: u64| SECOND + ms * MS;
    // The first request starts the calendar: stalls at 100 to 110, 200 to 210, 205 to 210, ….
    let arrivals = [at(0), at(98), at(150), at(203), at(296), at(397), at(398)];
    let dues: Vec<u64> =
        responses(text, &arrivals).iter().zip(arrivals).map(|(r, at)| r + at).collect();
    // Work that would finish when a stall starts (296 + 4) finishes at its end.
    let expected = [at(4), at(112), at(154), at(214), at(310), at(411), at(415)];
    assert_eq!(dues, expected);

    let mut schedule = Schedule::new(&script(text));
    assert_eq!(schedule.stalled_until(at(105)), None, "nothing stalls before the first request");
    schedule.admit(at(0));
    for (now, until) in [
        (at(99), None),
        (at(100), Some(at(110))),
        (at(109), Some(at(110))),
        (at(110), None),
        (at(207), Some(at(210))),
        (at(5000), Some(at(5010))),
    ] {
        assert_eq!(schedule.stalled_until(now), until);
    }
}

#[test]
fn a_rate_spaces_replies() {
    let burst = [SECOND; 5];
    assert_eq!(responses("rate=5000", &burst), [0, 1, 2, 3, 4].map(|n| n * 200 * US));
    // It has no effect on arrivals slower than the rate.
    let slow = [SECOND, 2 * SECOND, 3 * SECOND];
    assert_eq!(responses("rate=5000,service=constant:1ms", &slow), [MS, MS, MS]);
    let arrivals = poisson(20_000.0, 20_000);
    let last = arrivals[19_999] + responses("rate=5000", &arrivals)[19_999];
    near((last - arrivals[0]) as f64, 4e9, 0.001);
    // A reply due during a stall leaves at its end.
    let stalled = responses("rate=10,stall-once=50ms@80ms", &[SECOND, SECOND, SECOND]);
    assert_eq!(stalled, [0, 130 * MS, 230 * MS]);
}

#[test]
fn faults_have_their_shares_and_do_not_change_service_times() {
    let text = "wrong=0.1,reset=0.02";
    let mut sampler = FaultSampler::new(&script(text));
    let drawn: Vec<Option<Fault>> = (0..100_000).map(|_| sampler.draw().cloned()).collect();
    let count = |fault: &Fault| drawn.iter().flatten().filter(|f| *f == fault).count();
    assert!(count(&Fault::Wrong).abs_diff(10_000) < 400, "{}", count(&Fault::Wrong));
    assert!(count(&Fault::Reset).abs_diff(2_000) < 200, "{}", count(&Fault::Reset));
    assert_eq!(drawn.iter().flatten().count(), count(&Fault::Wrong) + count(&Fault::Reset));
    let mut always = FaultSampler::new(&script("hang=1"));
    assert!((0..1000).all(|_| always.draw() == Some(&Fault::Hang)));
    assert!(FaultSampler::new(&script("hang=0")).draw().is_none());

    let arrivals = poisson(50_000.0, 1000);
    let plain = responses("service=exponential:10us", &arrivals);
    assert_eq!(responses("service=exponential:10us,wrong=0.5", &arrivals), plain);
    assert_ne!(responses("service=exponential:10us,seed=2", &arrivals), plain);
}
