//! The wall clock beside the monotonic one: whether somebody set it while a trial ran.
//!
//! All that is measured is timed by the monotonic clock, which nobody can set. Only the times of
//! day in a record are the wall clock's.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How far both may be apart before it is told: slewing and rounding are less.
const STEP_MS_MIN: i64 = 1_000;

/// Milliseconds of the wall clock since 1970-01-01 UTC.
pub fn unix_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis() as u64)
}

/// Both clocks at one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clocks {
    pub(crate) monotonic: Instant,
    wall_unix_ms: u64,
}

impl Clocks {
    /// Reads both.
    pub(crate) fn now() -> Self {
        Self { monotonic: Instant::now(), wall_unix_ms: unix_ms() }
    }

    /// By how many milliseconds the wall clock was set since then; `None` where it went on as it
    /// should.
    pub(crate) fn step_ms(self) -> Option<i64> {
        let now = Self::now();
        let elapsed = now.monotonic - self.monotonic;
        step_ms(elapsed, (self.wall_unix_ms, now.wall_unix_ms))
    }
}

/// By how many milliseconds the wall clock went further than the time that passed, where that is
/// more than a second; negative where it was set back.
fn step_ms(elapsed: Duration, (from_unix_ms, to_unix_ms): (u64, u64)) -> Option<i64> {
    let wall_ms = to_unix_ms.cast_signed() - from_unix_ms.cast_signed();
    let step = wall_ms - elapsed.as_millis() as i64;
    (step.abs() > STEP_MS_MIN).then_some(step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_set_is_told_apart_from_one_that_goes() {
        let second = Duration::from_secs(1);
        let at = 1_790_000_000_000;
        assert_eq!(step_ms(8 * second, (at, at + 8_000)), None);
        assert_eq!(step_ms(8 * second, (at, at + 9_000)), None, "a second is no step");
        assert_eq!(step_ms(8 * second, (at, at + 3_608_000)), Some(3_600_000));
        assert_eq!(step_ms(8 * second, (at, at - 52_000)), Some(-60_000));
        assert_eq!(Clocks::now().step_ms(), None);
    }
}
