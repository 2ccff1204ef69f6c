//! Detects that somebody set the wall clock while a trial ran.
//!
//! All measurements use the monotonic clock, which nobody can set. Only the times of day in a
//! record come from the wall clock.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Smallest reported step, milliseconds; slewing and rounding stay below it.
const STEP_MS_MIN: i64 = 1_000;

/// Milliseconds since 1970-01-01 UTC by the wall clock.
pub fn unix_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis() as u64)
}

/// Readings of both clocks at the same time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clocks {
    pub(crate) monotonic: Instant,
    wall_unix_ms: u64,
}

impl Clocks {
    /// Reads both clocks.
    pub(crate) fn now() -> Self {
        Self { monotonic: Instant::now(), wall_unix_ms: unix_ms() }
    }

    /// Step of the wall clock since then, milliseconds; `None` if there was none.
    pub(crate) fn step_ms(self) -> Option<i64> {
        let now = Self::now();
        let elapsed = now.monotonic - self.monotonic;
        step_ms(elapsed, (self.wall_unix_ms, now.wall_unix_ms))
    }
}

/// Step of the wall clock against the elapsed time, milliseconds, if it exceeds a second. Negative
/// if the clock was set back.
fn step_ms(elapsed: Duration, (from_unix_ms, to_unix_ms): (u64, u64)) -> Option<i64> {
    let wall_ms = to_unix_ms.cast_signed() - from_unix_ms.cast_signed();
    let step = wall_ms - elapsed.as_millis() as i64;
    (step.abs() > STEP_MS_MIN).then_some(step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_of_the_clock_is_detected() {
        let second = Duration::from_secs(1);
        let at = 1_790_000_000_000;
        assert_eq!(step_ms(8 * second, (at, at + 8_000)), None);
        assert_eq!(step_ms(8 * second, (at, at + 9_000)), None, "a second is not a step");
        assert_eq!(step_ms(8 * second, (at, at + 3_608_000)), Some(3_600_000));
        assert_eq!(step_ms(8 * second, (at, at - 52_000)), Some(-60_000));
        assert_eq!(Clocks::now().step_ms(), None);
    }
}
