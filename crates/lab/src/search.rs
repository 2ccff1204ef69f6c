//! A trial whose load is a search: probes run one after the other on the same filled store, and
//! each is reported as a point when it ends. [`stats::search`] decides which probe is next.
//!
//! If a store breaks under a probe, the search continues with a fresh one: a rate that the store
//! does not survive is above what it sustains.

use load::{Finished, Latest, Meter, Progress};
use model::{Cell, Event, Failure, Phase, Plan, Point, Search, Stop, Trial};
use stats::search::{Purpose, Step};
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use crate::error_hints::{self, OfServer};
use crate::kv::Opened;
use crate::provision::TargetProvisioner;
use crate::ready::Ready;
use crate::room::Watched;

/// Warm-up of a cool-down probe, nanoseconds: a low rate settles quickly.
const COOL_DOWN_WARMUP_NS: u64 = 50_000_000;

/// Report of a search in progress.
pub(crate) enum SearchReport<'a> {
    Progress(Progress<'a>),
    ProbeEnded(Event),
}

/// A search in progress.
pub(crate) struct Probing<'a> {
    plan: &'a Plan,
    search: &'a Search,
    /// The phase that each probe runs, with the probe's length.
    phase: &'a Phase,
    /// For explaining its errors.
    server: OfServer<'a>,
    /// Start of the trial.
    begun: Instant,
    stop: &'a AtomicBool,
    /// The trial, with the points so far.
    trial: &'a mut Trial,
}

impl<'a> Probing<'a> {
    /// The search of a cell; `None` if its load is not a search.
    pub(crate) fn of(
        provisioner: &'a TargetProvisioner<'_>,
        cell: &'a Cell,
        (begun, stop): (Instant, &'a AtomicBool),
        trial: &'a mut Trial,
    ) -> Option<Self> {
        let (plan, server) = (provisioner.plan, provisioner.of_server(&cell.target));
        let (search, phase) = (cell.load.search()?, cell.workload.phases().first()?);
        Some(Self { plan, search, phase, server, begun, stop, trial })
    }

    /// Fills a store and probes it until it breaks or the search is over. `report` gets every
    /// finished point.
    pub(crate) fn run(
        &mut self,
        (store, ready): (&Opened<'_>, &Ready),
        watched: Option<&mut Watched>,
        meter: &mut dyn Meter,
        report: &mut dyn FnMut(SearchReport<'_>),
    ) -> Finished {
        let mut progress = |progress: Progress<'_>| report(SearchReport::Progress(progress));
        let mut finished = store.fill(watched, self.stop, meter, &mut progress);
        self.trial.series.clear();
        finished.record(self.begun, self.trial);
        while finished.failure.is_none() && !finished.interrupted {
            let Some(step) = self.plan.next_probe(self.trial) else { break };
            self.probe(store, step, meter, report, &mut finished);
            if finished.interrupted {
                // A probe cut short says nothing about its rate.
                finished.phases.clear();
                break;
            }
            // Clients may have tried to reconnect for the whole probe without an error.
            let died = || ready.server_died().map(|death| death.seen(None));
            let failure = finished.failure.take().map(|failure| ready.explain(failure));
            finished.failure = failure.or_else(died);
            let mut part = self.part();
            finished.record(self.begun, &mut part);
            part.series.clear();
            self.take(part, step, finished.failure.clone(), &mut |event| {
                report(SearchReport::ProbeEnded(event));
            });
        }
        finished
    }

    /// Runs one probe and adds its results to `finished`.
    fn probe(
        &self,
        store: &Opened<'_>,
        step: Step,
        meter: &mut dyn Meter,
        report: &mut dyn FnMut(SearchReport<'_>),
        finished: &mut Finished,
    ) {
        let number = self.trial.points.len() as u32;
        let phase = phase_of(self.phase, step);
        let mut offer = store.offer(&phase, &store.load().at_probe(step));
        // Number 0 is the load that filled the store.
        offer.number = u64::from(number) + 1;
        if step.purpose != Purpose::Peak {
            offer.limits_ns = self.search.limits_ns().into_iter().collect();
        }
        let progress = &mut |progress: Progress<'_>| {
            let latest = progress.latest.map(|l| Latest { stage: Some(number), ..l });
            report(SearchReport::Progress(Progress { latest, ..progress }));
        };
        store.measure(&phase, &offer, self.stop, meter, progress, finished);
    }

    /// Copy of the trial without its points.
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

    /// Records a probe that never started because no store could be prepared for it.
    pub(crate) fn not_started(&mut self, failure: Failure, report: &mut dyn FnMut(Event)) {
        let Some(step) = self.plan.next_probe(self.trial) else { return };
        self.take(self.part(), step, Some(failure), report);
    }

    /// Adds the probe in `part` to the trial and reports it.
    fn take(
        &mut self,
        mut part: Trial,
        step: Step,
        failure: Option<Failure>,
        report: &mut dyn FnMut(Event),
    ) {
        let point = part.points.pop().unwrap_or_default();
        let (phase, stage) = (self.phase.name.clone(), Some(self.trial.points.len() as u32));
        part.points = vec![Point { phase, stage, probe: Some(step), failure, ..point }];
        part.took_ns = self.begun.elapsed().as_nanos() as u64;
        error_hints::explain(&mut part, self.server);
        report(Event::PointEnded(Box::new(part.clone())));
        self.trial.points.append(&mut part.points);
        self.trial.outages.append(&mut part.outages);
        self.trial.events.append(&mut part.events);
    }
}

fn phase_of(phase: &Phase, step: Step) -> Phase {
    let is_cool_down = step.purpose == Purpose::CoolDown;
    let warmup_ns =
        if is_cool_down { COOL_DOWN_WARMUP_NS.min(phase.warmup_ns) } else { phase.warmup_ns };
    Phase { warmup_ns, stop: Stop::AfterNs(step.length_ns), ..phase.clone() }
}
