//! The steps of the blocking-client engine: a phase, or one stage of it, and its planned arrivals.
//!
//! All clients share one schedule: the next free client takes the next arrival, waits until it is
//! due, and sends it. If all clients are busy, arrivals wait in order; none is dropped. Separate
//! schedules for each client would make an arrival wait for its own client while others are free,
//! which no pool of workers does.
//!
//! The stages of a load in shares of a peak are separate steps: the next one starts when the
//! backlog of the last one is served or given up, so that it does not inherit its queue.

use model::{Arrivals, Load, PEAK, Phase, SETTLE_SHARE, Schedule, Stop};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::wire::pacer::{self, Pacer};

/// A phase, or one stage of it.
#[derive(Debug)]
pub(crate) struct Step {
    /// The phase with the step's own warm-up and length.
    pub(crate) phase: Phase,
    /// Index of the phase.
    pub(crate) index: usize,
    /// Number of the stage; `None` for a whole phase.
    pub(crate) stage: Option<u32>,
    /// Planned arrivals; `None` under a closed load.
    pub(crate) planned: Option<Planned>,
}

/// Planned arrivals of a step, shared by all clients.
#[derive(Debug)]
pub(crate) struct Planned {
    pub(crate) rate_per_s: f64,
    /// Length of the measurement, nanoseconds.
    length_ns: u64,
    pacer: Mutex<Pacer>,
    unsent: AtomicU64,
}

impl Step {
    /// The steps of the phase with this index under planned arrivals with their seed, or under a
    /// closed load (`None`). `peak_per_s` is the rate of the phase [`PEAK`], 0 if it is unknown.
    pub(crate) fn of_phase(
        (index, phase): (usize, &Phase),
        planned: Option<(&Load, u64)>,
        peak_per_s: f64,
    ) -> Vec<Self> {
        let whole = |planned| Self { phase: phase.clone(), index, stage: None, planned };
        let Some((load, seed)) = planned.filter(|_| phase.name != PEAK) else {
            return vec![whole(None)];
        };
        match &load.schedule {
            Schedule::Shares(shares) => (0..)
                .zip(&shares.permille)
                .map(|(stage, permille)| {
                    let settling_ns = (shares.stage_ns as f64 * SETTLE_SHARE) as u64;
                    let phase = Phase {
                        warmup_ns: settling_ns,
                        stop: Stop::AfterNs(shares.stage_ns - settling_ns),
                        ..phase.clone()
                    };
                    let rate_per_s = (f64::from(*permille) * peak_per_s / 1e3).max(1.0);
                    let seed = seed.wrapping_add(1 + u64::from(stage));
                    let planned = Planned::new(load.arrivals, rate_per_s, &phase, seed);
                    Self { phase, index, stage: Some(stage), planned }
                })
                .collect(),
            Schedule::Steady(rate_per_s) => {
                let rate_per_s = *rate_per_s as f64;
                vec![whole(Planned::new(load.arrivals, rate_per_s, phase, seed))]
            }
            Schedule::Share(permille) => {
                let rate_per_s = (f64::from(*permille) * peak_per_s / 1e3).max(1.0);
                vec![whole(Planned::new(load.arrivals, rate_per_s, phase, seed))]
            }
            // Plans with them are refused.
            Schedule::Stages(_) | Schedule::Search(_) => vec![whole(None)],
        }
    }
}

impl Planned {
    /// `None` for closed arrivals.
    fn new(arrivals: Arrivals, rate_per_s: f64, phase: &Phase, seed: u64) -> Option<Self> {
        let arrivals = match arrivals {
            Arrivals::Closed => return None,
            Arrivals::Constant => pacer::Arrivals::Constant,
            Arrivals::Poisson => pacer::Arrivals::Poisson,
        };
        let length_ns = match phase.stop {
            Stop::AfterNs(ns) => ns,
            Stop::Count(count) => (count as f64 * 1e9 / rate_per_s) as u64,
        };
        let stage = pacer::Stage {
            rate_from_per_s: rate_per_s,
            rate_to_per_s: rate_per_s,
            length_ns: phase.warmup_ns.saturating_add(length_ns),
        };
        let pacer = Mutex::new(Pacer::new(arrivals, &[stage], (0, 1), seed));
        Some(Self { rate_per_s, length_ns, pacer, unsent: AtomicU64::new(0) })
    }

    /// Length of the measurement.
    pub(crate) fn length(&self) -> Duration {
        Duration::from_nanos(self.length_ns)
    }

    /// When the next arrival is due, from the start of the warm-up; `None` after the last.
    pub(crate) fn next(&self) -> Option<Duration> {
        let mut pacer = self.pacer.lock().unwrap_or_else(PoisonError::into_inner);
        pacer.next_ns().map(Duration::from_nanos)
    }

    /// Gives up an arrival that was due at `first` and all that follow, and counts those due after
    /// the warm-up.
    pub(crate) fn give_up(&self, first: Duration, warmup_ns: u64) {
        let mut due = Some(first);
        while let Some(at) = due {
            let is_measured = at >= Duration::from_nanos(warmup_ns);
            self.unsent.fetch_add(u64::from(is_measured), Ordering::Relaxed);
            due = self.next();
        }
    }

    /// Arrivals given up so far.
    pub(crate) fn unsent(&self) -> u64 {
        self.unsent.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Shares;
    use std::collections::BTreeMap;

    const S: u64 = 1_000_000_000;

    fn phase(name: &str) -> Phase {
        let stop = Stop::AfterNs(2 * S);
        Phase { name: name.into(), mix: BTreeMap::new(), warmup_ns: S, stop, control: None }
    }

    #[test]
    fn shares_become_stages_of_the_peak() {
        let shares = Shares { permille: vec![500, 3_000], stage_ns: 10 * S, rest_ns: 0 };
        let load = Load::planned(Arrivals::Poisson, Schedule::Shares(shares), 4);
        let peak = phase(PEAK);
        let steps = Step::of_phase((0, &peak), Some((&load, 1)), 0.0);
        assert!(steps.len() == 1 && steps[0].planned.is_none() && steps[0].phase == peak);
        let steps = Step::of_phase((1, &phase("ramp")), Some((&load, 1)), 1_000.0);
        let shown = |step: &Step| {
            let planned = step.planned.as_ref().unwrap();
            let settling = step.phase.warmup_ns / S;
            (step.stage, planned.rate_per_s as u64, planned.length_ns / S, settling)
        };
        let shown: Vec<_> = steps.iter().map(shown).collect();
        assert_eq!(shown, [(Some(0), 500, 8, 2), (Some(1), 3_000, 8, 2)]);
    }

    #[test]
    fn arrivals_that_are_given_up_are_counted_after_the_warm_up() {
        let load = Load::planned(Arrivals::Constant, Schedule::Steady(100), 4);
        let steps = Step::of_phase((0, &phase("read")), Some((&load, 1)), 0.0);
        let planned = steps[0].planned.as_ref().unwrap();
        assert_eq!(planned.next(), Some(Duration::ZERO));
        let second = planned.next().unwrap();
        assert_eq!(second, Duration::from_millis(10));
        planned.give_up(second, S);
        assert_eq!((planned.unsent(), planned.next()), (200, None));
    }
}
