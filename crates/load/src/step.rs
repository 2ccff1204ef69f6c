//! The steps of the blocking-client engine: a phase, or one stage of it, and its planned arrivals.
//!
//! All clients of a process share one schedule: the next free client takes the next arrival, waits
//! until it is due, and sends it. If all clients are busy, arrivals wait in order; none is dropped.
//! Separate schedules for each client would make an arrival wait for its own client while others
//! are free, which no pool of workers does. Several processes divide the arrivals by their clients.
//!
//! The stages of a load in shares of a peak are separate steps: the next one starts when the
//! backlog of the last one is served or given up, so that it does not inherit its queue.

use model::{Arrivals, Load, PEAK, Phase, SETTLE_SHARE, Schedule, Stop};
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::wire::pacer::{self, Pacer};

/// What all clients do from one common start to the end of the last client: a phase, or one stage
/// of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// The phase with the step's own warm-up and length.
    pub phase: Phase,
    /// Index of the phase.
    pub index: usize,
    /// Number of the stage; `None` for a whole phase.
    pub stage: Option<u32>,
    /// Planned arrivals; `None` under a closed load.
    pub pace: Option<Pace>,
}

/// Planned arrivals of a step.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pace {
    arrivals: pacer::Arrivals,
    /// Arrivals per second, of all processes together.
    rate_per_s: f64,
    /// Length of the measurement, nanoseconds.
    length_ns: u64,
    seed: u64,
    part: Part,
}

/// The clients of one process among all clients that share the arrivals.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Part {
    first: u32,
    clients: u32,
    all: u32,
}

/// Planned arrivals of this process, shared by all of its clients.
#[derive(Debug)]
pub(crate) struct Planned {
    pace: Pace,
    /// The pacer, and number of arrivals that it has given.
    pacer: Mutex<(Pacer, u64)>,
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
        let whole = |pace| Self { phase: phase.clone(), index, stage: None, pace };
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
                    let pace = Pace::new(load.arrivals, rate_per_s, &phase, seed);
                    Self { phase, index, stage: Some(stage), pace }
                })
                .collect(),
            Schedule::Steady(rate_per_s) => {
                let rate_per_s = *rate_per_s as f64;
                vec![whole(Pace::new(load.arrivals, rate_per_s, phase, seed))]
            }
            Schedule::Share(permille) => {
                let rate_per_s = (f64::from(*permille) * peak_per_s / 1e3).max(1.0);
                vec![whole(Pace::new(load.arrivals, rate_per_s, phase, seed))]
            }
            // Plans with them are refused.
            Schedule::Stages(_) | Schedule::Search(_) => vec![whole(None)],
        }
    }

    /// The part of a process with these of `all` clients: of a Poisson process, one with its share
    /// of the rate; of evenly spaced arrivals, those whose numbers modulo `all` are its clients'.
    #[must_use]
    pub fn of_clients(&self, clients: Range<u32>, all: u32) -> Self {
        let part = Part { first: clients.start, clients: clients.len() as u32, all };
        let pace = self.pace.map(|pace| Pace { part, ..pace });
        Self { pace, ..self.clone() }
    }

    /// Length of the measurement of planned arrivals; `None` under a closed load.
    pub fn planned_length(&self) -> Option<Duration> {
        self.pace.map(|pace| Duration::from_nanos(pace.length_ns))
    }

    /// Planned arrivals per second of this process; `None` under a closed load.
    pub fn planned_per_s(&self) -> Option<f64> {
        self.pace.map(|pace| pace.rate_per_s * pace.part.share())
    }
}

impl Pace {
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
        let part = Part { first: 0, clients: 1, all: 1 };
        Some(Self { arrivals, rate_per_s, length_ns, seed, part })
    }

    /// The pacer of this process, which gives the arrivals of all if they are evenly spaced.
    fn pacer(&self, warmup_ns: u64) -> Pacer {
        let (rate_per_s, process) = match self.arrivals {
            pacer::Arrivals::Constant => (self.rate_per_s, 0),
            pacer::Arrivals::Poisson => (self.rate_per_s * self.part.share(), self.part.first),
        };
        let stage = pacer::Stage {
            rate_from_per_s: rate_per_s,
            rate_to_per_s: rate_per_s,
            length_ns: warmup_ns.saturating_add(self.length_ns),
        };
        Pacer::new(self.arrivals, &[stage], (process, 1), self.seed)
    }

    /// True if an arrival of the pacer is for this process.
    fn has(&self, number: u64) -> bool {
        let Part { first, clients, all } = self.part;
        let client = (number % u64::from(all.max(1))) as u32;
        self.arrivals == pacer::Arrivals::Poisson || (first..first + clients).contains(&client)
    }
}

impl Part {
    fn share(self) -> f64 {
        f64::from(self.clients) / f64::from(self.all.max(1))
    }
}

impl Planned {
    /// The arrivals of a step; `None` under a closed load.
    pub(crate) fn of(step: &Step) -> Option<Self> {
        let pace = step.pace?;
        let pacer = Mutex::new((pace.pacer(step.phase.warmup_ns), 0));
        Some(Self { pace, pacer, unsent: AtomicU64::new(0) })
    }

    /// Length of the measurement.
    pub(crate) fn length(&self) -> Duration {
        Duration::from_nanos(self.pace.length_ns)
    }

    /// When the next arrival is due, from the start of the warm-up; `None` after the last.
    pub(crate) fn next(&self) -> Option<Duration> {
        let mut guard = self.pacer.lock().unwrap_or_else(PoisonError::into_inner);
        let (pacer, given) = &mut *guard;
        loop {
            let at_ns = pacer.next_ns()?;
            *given += 1;
            if self.pace.has(*given - 1) {
                return Some(Duration::from_nanos(at_ns));
            }
        }
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
        assert!(steps.len() == 1 && steps[0].pace.is_none() && steps[0].phase == peak);
        let steps = Step::of_phase((1, &phase("ramp")), Some((&load, 1)), 1_000.0);
        let shown = |step: &Step| {
            let pace = step.pace.unwrap();
            let settling = step.phase.warmup_ns / S;
            (step.stage, pace.rate_per_s as u64, pace.length_ns / S, settling)
        };
        let shown: Vec<_> = steps.iter().map(shown).collect();
        assert_eq!(shown, [(Some(0), 500, 8, 2), (Some(1), 3_000, 8, 2)]);
    }

    #[test]
    fn arrivals_that_are_given_up_are_counted_after_the_warm_up() {
        let load = Load::planned(Arrivals::Constant, Schedule::Steady(100), 4);
        let steps = Step::of_phase((0, &phase("read")), Some((&load, 1)), 0.0);
        let planned = Planned::of(&steps[0]).unwrap();
        assert_eq!(planned.next(), Some(Duration::ZERO));
        let second = planned.next().unwrap();
        assert_eq!(second, Duration::from_millis(10));
        planned.give_up(second, S);
        assert_eq!((planned.unsent(), planned.next()), (200, None));
    }

    /// When the arrivals of a step are due.
    fn due(step: &Step) -> Vec<Duration> {
        let planned = Planned::of(step).unwrap();
        std::iter::from_fn(|| planned.next()).collect()
    }

    #[test]
    fn processes_divide_the_arrivals_by_their_clients() {
        let parts = [0..3, 3..6, 6..8];
        let of = |arrivals| {
            let load = Load::planned(arrivals, Schedule::Steady(800), 8);
            let whole = Step::of_phase((0, &phase("read")), Some((&load, 1)), 0.0).remove(0);
            let parts = parts.clone().map(|clients| whole.of_clients(clients, 8));
            (whole, parts)
        };
        let (whole, parts) = of(Arrivals::Constant);
        assert_eq!(
            parts.each_ref().map(Step::planned_per_s),
            [Some(300.0), Some(300.0), Some(200.0)]
        );
        let mut all: Vec<Duration> = parts.iter().flat_map(due).collect();
        all.sort();
        assert_eq!(all, due(&whole), "evenly spaced, together");
        let (_, parts) = of(Arrivals::Poisson);
        let [first, second, third] = parts.each_ref().map(due);
        assert!(first != second, "independent");
        for (due, expected) in [(first, 900.0), (second, 900.0), (third, 600.0_f64)] {
            let off = (due.len() as f64 - expected).abs() / expected.sqrt();
            assert!(off < 5.0, "{} of {expected}", due.len());
        }
    }
}
