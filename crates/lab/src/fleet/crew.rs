//! Blocking clients of a trial on all workers.

use load::{Crew, Meter, Part, Progress, Step, Unmetered};
use model::{Endpoint, FILL, Failure, ReadBack, Workload};
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use super::joining::Fleet;
use super::merged::Offered;
use super::messages::ToWorker;
use super::offering::{Job, Load, Task};
use crate::app_cache;
use crate::opening::{self, Opening};

/// Clients that are connected on workers. Dropping it disconnects them.
pub(crate) struct OpenedByFleet<'a> {
    fleet: &'a Fleet,
    opening: &'a Opening<Endpoint>,
}

/// These clients as a crew, until `stop` is set.
pub(crate) struct FleetCrew<'a> {
    opened: &'a OpenedByFleet<'a>,
    stop: &'a AtomicBool,
}

impl Fleet {
    /// Connects the clients of a trial, divided between the workers.
    pub(crate) fn open<'a>(
        &'a self,
        opening: &'a Opening<Endpoint>,
        stop: &AtomicBool,
    ) -> Result<OpenedByFleet<'a>, Failure> {
        let opened = OpenedByFleet { fleet: self, opening };
        let workers = opened.workers();
        if let (Workload::AppCache(cache), 2..) = (&opening.workload, workers) {
            app_cache::introduce_tags(opening, cache, workers)?;
        }
        let connected = opened.offer((Task::Open, "connect"), stop, &mut Unmetered, &mut |_| {});
        connected.failure.map_or(Ok(opened), Err)
    }
}

impl OpenedByFleet<'_> {
    pub(crate) fn crew<'a>(&'a self, stop: &'a AtomicBool) -> FleetCrew<'a> {
        FleetCrew { opened: self, stop }
    }

    /// Number of workers that have clients.
    fn workers(&self) -> u32 {
        let all = self.fleet.members.len() as u32;
        opening::workers(&self.opening.workload, &self.opening.load, all)
    }

    fn offer(
        &self,
        (task, phase): (Task<'_>, &str),
        stop: &AtomicBool,
        meter: &mut dyn Meter,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Offered {
        let load = Load::Clients { opening: self.opening, task };
        let job = Job { load, since: Instant::now(), phase };
        self.fleet.offer(&job, stop, meter, progress)
    }
}

impl Drop for OpenedByFleet<'_> {
    fn drop(&mut self) {
        self.fleet.members.iter().for_each(|member| member.link.send(&ToWorker::Close));
    }
}

impl Crew for FleetCrew<'_> {
    fn fill(&mut self, meter: &mut dyn Meter, progress: &mut dyn FnMut(Progress<'_>)) -> Part {
        part(self.opened.offer((Task::Fill, FILL), self.stop, meter, progress))
    }

    fn step(
        &mut self,
        step: &Step,
        first: Option<Instant>,
        meter: &mut dyn Meter,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Part {
        let task = (Task::Step(step, first), step.phase.name.as_str());
        part(self.opened.offer(task, self.stop, meter, progress))
    }

    fn read_back(&mut self) -> Option<ReadBack> {
        if matches!(self.opened.opening.workload, Workload::Kv(_)) && self.opened.workers() > 1 {
            let why = "all workers wrote the same keys, and none knows the last write".into();
            return Some(ReadBack { unread: Some(why), ..ReadBack::default() });
        }
        let task = (Task::ReadBack, "read back");
        let offered = self.opened.offer(task, self.stop, &mut Unmetered, &mut |_| {});
        let unread = offered
            .failure
            .map(|failure| ReadBack { unread: Some(failure.message), ..ReadBack::default() });
        unread.or(offered.read_back)
    }
}

fn part(offered: Offered) -> Part {
    let Offered { mut phase, failure, .. } = offered;
    if let Some(point) = phase.points.last_mut() {
        // Those who were stopped because another one failed know nothing of it.
        point.failure = point.failure.take().or_else(|| failure.clone());
    }
    Part { record: (!phase.points.is_empty()).then_some(phase), failure }
}
