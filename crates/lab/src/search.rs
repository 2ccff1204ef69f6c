//! A trial whose load is a search: one probe after the other on the same filled store, each a point
//! that is told when it is over. Which one is next, [`stats::search`] decides.
//!
//! A store that breaks under a probe is made ready anew, and the search goes on: what it did not
//! survive was beyond what it sustains.

use load::{Finished, Latest, Meter, Progress};
use model::{Cell, Endpoint, Event, Failure, Phase, Plan, Point, Search, Stop, Trial};
use stats::search::{Purpose, Step};
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use crate::bench::Bench;
use crate::error_hints;
use crate::kv::Opened;
use crate::ready::Ready;
use crate::room::Watched;

/// Unrecorded part of a rest, nanoseconds: a low rate needs no time to settle.
const REST_WARMUP_NS: u64 = 50_000_000;

/// What is told while a store is probed.
pub(crate) enum Told<'a> {
    Progress(Progress<'a>),
    Ended(Event),
}

/// A search under way.
pub(crate) struct Probing<'a> {
    plan: &'a Plan,
    search: &'a Search,
    /// What each probe measures for its own length.
    phase: &'a Phase,
    /// Of a store that was there before.
    endpoint: Option<&'a Endpoint>,
    /// When its trial began.
    begun: Instant,
    stop: &'a AtomicBool,
    /// The trial with the points so far.
    trial: &'a mut Trial,
}

impl<'a> Probing<'a> {
    /// That of a cell; `None` where its load is no search.
    pub(crate) fn of(
        bench: &'a Bench<'_>,
        cell: &'a Cell,
        (begun, stop): (Instant, &'a AtomicBool),
        trial: &'a mut Trial,
    ) -> Option<Self> {
        let (plan, endpoint) = (bench.plan, bench.setup.endpoints.get(&cell.target));
        let (search, phase) = (cell.load.search()?, cell.workload.phases().first()?);
        Some(Self { plan, search, phase, endpoint, begun, stop, trial })
    }

    /// Fills a store and probes it until it breaks or the search is over; `tell` is told each point
    /// that is over.
    pub(crate) fn run(
        &mut self,
        (store, ready): (&Opened<'_>, &Ready),
        watched: Option<&mut Watched>,
        meter: &mut dyn Meter,
        tell: &mut dyn FnMut(Told<'_>),
    ) -> Finished {
        let mut progress = |progress: Progress<'_>| tell(Told::Progress(progress));
        let mut finished = store.fill(watched, self.stop, meter, &mut progress);
        self.trial.series.clear();
        finished.record(self.begun, self.trial);
        while finished.failure.is_none() && !finished.interrupted {
            let Some(step) = self.plan.next_probe(self.trial) else { break };
            self.probe(store, step, meter, tell, &mut finished);
            if finished.interrupted {
                // What user or deadline stopped tells nothing of the rate.
                finished.phases.clear();
                break;
            }
            // A client may reconnect to nothing for as long as the probe lasts.
            let died = || ready.server_died().map(|death| death.seen(None));
            let failure = finished.failure.take().map(|failure| ready.explain(failure));
            finished.failure = failure.or_else(died);
            let mut part = self.part();
            finished.record(self.begun, &mut part);
            part.series.clear();
            self.take(part, step, finished.failure.clone(), &mut |event| tell(Told::Ended(event)));
        }
        finished
    }

    /// Runs one probe, and adds what it gave to `finished`.
    fn probe(
        &self,
        store: &Opened<'_>,
        step: Step,
        meter: &mut dyn Meter,
        tell: &mut dyn FnMut(Told<'_>),
        finished: &mut Finished,
    ) {
        let number = self.trial.points.len() as u32;
        let phase = phase_of(self.phase, step);
        let mut offer = store.offer(&phase, &store.load().at_probe(step));
        // The first load drew what filled the store.
        offer.number = u64::from(number) + 1;
        if step.purpose != Purpose::Peak {
            offer.limits_ns = self.search.limits_ns().into_iter().collect();
        }
        let progress = &mut |progress: Progress<'_>| {
            let latest = progress.latest.map(|l| Latest { stage: Some(number), ..l });
            tell(Told::Progress(Progress { latest, ..progress }));
        };
        store.measure(&phase, &offer, self.stop, meter, progress, finished);
    }

    /// A part of the trial: all but its points.
    fn part(&self) -> Trial {
        let Trial { block, position, cell, started_unix_ms, version, .. } = &*self.trial;
        Trial {
            block: *block,
            position: *position,
            cell: cell.clone(),
            started_unix_ms: *started_unix_ms,
            version: version.clone(),
            ..Trial::default()
        }
    }

    /// Takes note of a probe that was never begun, since no store could be made ready for it.
    pub(crate) fn not_begun(&mut self, failure: Failure, tell: &mut dyn FnMut(Event)) {
        let Some(step) = self.plan.next_probe(self.trial) else { return };
        self.take(self.part(), step, Some(failure), tell);
    }

    /// Adds the probe of a part to the trial, and tells it.
    fn take(
        &mut self,
        mut part: Trial,
        step: Step,
        failure: Option<Failure>,
        tell: &mut dyn FnMut(Event),
    ) {
        let point = part.points.pop().unwrap_or_default();
        let (phase, stage) = (self.phase.name.clone(), Some(self.trial.points.len() as u32));
        part.points = vec![Point { phase, stage, probe: Some(step), failure, ..point }];
        part.took_ns = self.begun.elapsed().as_nanos() as u64;
        error_hints::explain(&mut part, self.endpoint);
        tell(Event::PointEnded(Box::new(part.clone())));
        self.trial.points.append(&mut part.points);
        self.trial.outages.append(&mut part.outages);
        self.trial.events.append(&mut part.events);
    }
}

fn phase_of(phase: &Phase, step: Step) -> Phase {
    let is_rest = step.purpose == Purpose::Rest;
    let warmup_ns = if is_rest { REST_WARMUP_NS.min(phase.warmup_ns) } else { phase.warmup_ns };
    Phase { warmup_ns, stop: Stop::AfterNs(step.length_ns), ..phase.clone() }
}
