//! A neighbour: a process of ours that uses a CPU from time to time, as other tenants of a shared
//! machine and periodic jobs do.

use crate::error::Result;
use crate::guard::Guard;
use crate::own_process::OwnProcess;
use model::tier::Neighbour;
use std::thread;
use std::time::{Duration, Instant};

/// Hidden argument that turns the program into a neighbour: it then calls [`neighbour_main`] with
/// the arguments after it.
pub const NEIGHBOUR_ARGUMENT: &str = "rig-neighbour";

/// A running neighbour. Dropping it ends it.
#[derive(Debug)]
pub struct RunningNeighbour(OwnProcess);

impl RunningNeighbour {
    /// Starts this program again as a neighbour on a CPU, with [`NEIGHBOUR_ARGUMENT`]. It begins
    /// with a burst.
    pub fn start(guard: &Guard, neighbour: Neighbour, cpu: usize) -> Result<Self> {
        let Neighbour { busy_ns, every_ns } = neighbour;
        let arguments = [NEIGHBOUR_ARGUMENT.into(), busy_ns.to_string(), every_ns.to_string()];
        let arguments = arguments.map(Into::into).into();
        OwnProcess::start(guard, "neighbour", arguments, &[cpu]).map(Self)
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.0.pid()
    }

    /// Ends it and removes its directory. Errors: it ended before, so it used less time than
    /// planned; the directory could not be removed.
    pub fn stop(self) -> Result<()> {
        self.0.stop()
    }
}

/// Main function of a neighbour: busy for the first of the two times in each period of the second,
/// both in nanoseconds, until it is killed. Returns only if they are not given.
pub fn neighbour_main(arguments: impl Iterator<Item = String>) {
    let times: Vec<u64> = arguments.filter_map(|text| text.parse().ok()).collect();
    let [busy_ns, every_ns] = times[..] else { return };
    let [busy, every] = [busy_ns, every_ns].map(Duration::from_nanos);
    let begun = Instant::now();
    for period in 0.. {
        burst(begun + every * period, busy);
        let next = begun + every * (period + 1);
        thread::sleep(next.saturating_duration_since(Instant::now()));
    }
}

/// Uses the CPU from a time on, for a span of wall time: it takes what it gets, as a job does that
/// has to be done by then.
fn burst(from: Instant, length: Duration) {
    while from.elapsed() < length {
        std::hint::spin_loop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_takes_its_time_and_one_in_the_past_takes_none() {
        let begun = Instant::now();
        burst(begun, Duration::from_millis(20));
        assert!(begun.elapsed() >= Duration::from_millis(20));
        let late = Instant::now();
        burst(late.checked_sub(Duration::from_secs(10)).unwrap(), Duration::from_secs(10));
        assert!(late.elapsed() < Duration::from_secs(5));
    }

    #[test]
    fn without_times_it_returns() {
        neighbour_main(["x".to_string(), "5".to_string()].into_iter());
    }
}
