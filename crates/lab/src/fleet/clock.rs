//! The difference between the clocks of driver and worker.
//!
//! A ping leaves the driver, is answered by the worker with its time, and returns. The worker's
//! time lies between both of the driver's, so the difference is known to half of the round trip
//! (RFC 5905 uses the same bound). The shortest of many round trips gives the tightest bound.

use std::time::{Duration, Instant};

/// Pings before a load, and again after it.
pub(super) const PINGS: u32 = 64;

/// The worker's time at one of the driver's.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading {
    sent: Instant,
    round_trip: Duration,
    worker_ns: u64,
}

impl Reading {
    /// Of a ping sent at `sent` and answered by `back`.
    pub(super) fn new(sent: Instant, back: Instant, worker_ns: u64) -> Self {
        Self { sent, round_trip: back.saturating_duration_since(sent), worker_ns }
    }

    /// The one with the shorter round trip.
    pub(super) fn best(self, other: Option<Self>) -> Self {
        other.filter(|other| other.round_trip < self.round_trip).unwrap_or(self)
    }

    /// The worker's time at `at`, nanoseconds.
    pub(super) fn worker_ns(&self, at: Instant) -> i128 {
        let middle = self.sent + self.round_trip / 2;
        let since = at.checked_duration_since(middle).map_or_else(
            || -(middle.duration_since(at).as_nanos().cast_signed()),
            |since| since.as_nanos().cast_signed(),
        );
        i128::from(self.worker_ns) + since
    }

    /// Bound on the error of [`Self::worker_ns`], nanoseconds.
    pub(super) fn bound_ns(&self) -> u64 {
        (self.round_trip.as_nanos() / 2) as u64
    }

    /// Bound on the error between this reading and `later`: both bounds' larger, and how far the
    /// clocks drifted apart.
    pub(super) fn bound_until(&self, later: &Self) -> u64 {
        let drift = (self.worker_ns(later.sent) - later.worker_ns(later.sent)).unsigned_abs();
        // A drift within both bounds may be none.
        let known = u128::from(self.bound_ns()) + u128::from(later.bound_ns());
        self.bound_ns().max(later.bound_ns()) + drift.saturating_sub(known) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: u64 = 1_000;

    fn reading(from: Instant, sent_us: u64, round_trip_us: u64, worker_us: u64) -> Reading {
        let sent = from + Duration::from_micros(sent_us);
        Reading::new(sent, sent + Duration::from_micros(round_trip_us), worker_us * US)
    }

    #[test]
    fn the_shortest_round_trip_gives_the_time() {
        let zero = Instant::now();
        // The worker's clock is 5,000 µs ahead.
        let long = reading(zero, 0, 400, 5_350);
        let short = reading(zero, 1_000, 20, 6_010);
        let best = long.best(Some(short));
        assert_eq!(best.bound_ns(), 10 * US);
        assert_eq!(best.worker_ns(zero + Duration::from_millis(10)), 15_000 * 1_000);
        assert_eq!(best.worker_ns(zero), 5_000 * 1_000);
    }

    #[test]
    fn a_clock_an_hour_off_is_read_all_the_same() {
        let (zero, hour_us) = (Instant::now(), 3_600_000_000);
        let ahead = reading(zero, 0, 20, hour_us + 10);
        let at = zero + Duration::from_millis(5);
        assert_eq!(ahead.worker_ns(at), i128::from(hour_us + 5_000) * 1_000);
        let later = reading(zero, 1_000_000, 20, hour_us + 1_000_010);
        assert_eq!(ahead.bound_until(&later), 10 * US);
    }

    #[test]
    fn drift_beyond_the_round_trips_widens_the_bound() {
        let zero = Instant::now();
        let before = reading(zero, 0, 20, 5_010);
        assert_eq!(before.bound_until(&reading(zero, 1_000_000, 30, 1_005_015)), 15 * US);
        assert_eq!(before.bound_until(&reading(zero, 1_000_000, 30, 1_005_115)), 90 * US);
    }
}
