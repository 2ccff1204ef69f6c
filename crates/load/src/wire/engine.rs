//! Runs a wire load: starts the threads, lets them start together, and merges their records.

use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use model::{ErrorClass, Failure};

use super::offer::{Offer, Servers};
use super::outcome::Outcome;
use super::protocol::Parser;
use super::recorder::WireRecorder;
use super::shared::Shared;
use super::stages::{Marks, spans, steady_rate_per_s, uses};
use super::work::Work;
use super::worker::{ThreadReport, Worker};
use crate::clients::pin_to;
use crate::meter::{Meter, ReadAt};
use crate::stall::StallWatch;

/// Progress of a load, reported a few times a second.
#[derive(Clone, Copy, Debug)]
pub struct ProgressSnapshot<'a> {
    /// Nanoseconds since the start of the measurement; 0 during the warm-up.
    pub at_ns: u64,
    /// Records since the previous snapshot.
    pub latest: &'a WireRecorder,
    /// All records so far.
    pub all: &'a WireRecorder,
    /// True for the final snapshot.
    pub last: bool,
}

/// Interval of progress reports.
const PROGRESS_EVERY_NS: u64 = 200_000_000;
/// How often the warm-up checks for a stop.
const PAUSE: Duration = Duration::from_millis(20);

/// Runs a load against servers that speak the protocol of `P`; returns when all threads have ended.
pub fn run<P: Parser + Default>(
    offer: &Offer,
    work: &Work,
    servers: &Servers,
    stop: &AtomicBool,
    meter: &mut dyn Meter,
    watcher: &mut dyn FnMut(ProgressSnapshot<'_>),
) -> Outcome {
    let shared = Shared::new(offer, work, servers, stop);
    let mut outcome = Outcome {
        clients: offer.own_clients(),
        planned_per_s: steady_rate_per_s(offer, work),
        ..Outcome::default()
    };
    let (spans, mut ended) = (spans(offer, work), Vec::new());
    let mut marks = Marks::default();
    let (mut before, mut after) = (ReadAt::default(), ReadAt::default());
    thread::scope(|scope| {
        let (reports, inbox) = mpsc::channel();
        for index in 0..offer.threads {
            let (reports, shared) = (reports.clone(), &shared);
            scope.spawn(move || reports.send(run_thread::<P>(shared, index)).is_ok());
        }
        drop(reports);
        if shared.surveying.may_change() {
            scope.spawn(|| {
                // If pinning fails, the worker threads report it and fail the load.
                let _ = pin_to(&offer.cpus);
                shared.surveying.run(&shared.outages);
            });
        }
        shared.begin(meter, stop);
        let mut stall = StallWatch::new(offer.stall_ns);
        shared.warm_up(meter, &mut stall);
        before = ReadAt::now(meter, shared.now_ns());
        marks = Marks::new(&spans, shared.begun_ns() + offer.warmup_ns);
        let watching = (&mut *meter as &mut dyn Meter, &mut marks, stall);
        ended = shared.gather(&inbox, watching, &mut outcome, watcher);
        after = ReadAt::now(meter, shared.now_ns());
        shared.surveying.end();
    });
    let measured_from_ns = shared.begun_ns() + offer.warmup_ns;
    outcome.zero = Some(shared.zero);
    outcome.begun = Some(shared.zero + Duration::from_nanos(measured_from_ns));
    let last_done_ns = ended.iter().map(|s| s.last_done_ns).max().unwrap_or(0);
    outcome.wall_ns = last_done_ns.saturating_sub(measured_from_ns);
    outcome.offered_ns = shared.ended_ns().saturating_sub(measured_from_ns);
    outcome.generator_cpu_ns = ended.iter().map(|s| s.used.cpu_ns).sum();
    outcome.generator_user_ns = ended.iter().map(|s| s.used.user_ns).sum();
    outcome.generator_run_delay_ns = ended.iter().map(|s| s.used.run_delay_ns).sum();
    outcome.unsent = ended.iter().map(|s| s.unsent).sum();
    for written in ended.iter_mut().filter_map(|s| s.written.take()) {
        outcome.written.get_or_insert_default().merge(written);
    }
    let nodes = &shared.surveying.known_layout().nodes;
    outcome.outages = shared.outages.within((measured_from_ns, shared.ended_ns()), nodes);
    outcome.server_cpu_ns = before.server_cpu_ns(&after, outcome.wall_ns);
    let waited_ns = outcome.generator_run_delay_ns / u64::from(offer.threads.max(1));
    outcome.disturbance = before.disturbance(&after, waited_ns);
    outcome.stage_uses = uses(&spans, &marks, ended.iter().map(|s| &s.marks));
    outcome.failure = shared.failure.into_inner().unwrap_or_else(PoisonError::into_inner);
    if outcome.failure.as_ref().is_some_and(Failure::is_a_result) {
        // The time without answers is part of the result.
        outcome.wall_ns = outcome.offered_ns;
    }
    outcome.whole_ns = if outcome.failure.is_some() { outcome.wall_ns } else { u64::MAX };
    outcome.interrupted = stop.load(Ordering::Relaxed);
    outcome
}

/// Body of one thread.
fn run_thread<P: Parser + Default>(shared: &Shared<'_>, index: u32) -> ThreadReport {
    if let Err(message) = pin_to(&shared.offer.cpus) {
        shared.fail(ErrorClass::Other, message);
    }
    match Worker::<P>::new(shared, index) {
        Ok(mut worker) => worker.run(),
        Err(e) => {
            shared.fail(ErrorClass::Other, format!("cannot create an event loop: {e}"));
            shared.gate.wait();
            shared.gate.wait();
            ThreadReport::default()
        }
    }
}

impl Shared<'_> {
    /// Waits until all clients are connected, and lets all threads start together.
    fn begin(&self, meter: &mut dyn Meter, stop: &AtomicBool) {
        self.gate.wait();
        let begins = meter.begins(stop).saturating_duration_since(self.zero);
        self.begun_ns.store(begins.as_nanos() as u64, Ordering::Release);
        self.gate.wait();
    }

    fn warm_up(&self, meter: &mut dyn Meter, stall: &mut StallWatch) {
        let until = self.begun_ns() + self.offer.warmup_ns;
        while self.now_ns() < until && !self.is_over() {
            self.check(meter, stall);
            thread::sleep(PAUSE.min(Duration::from_nanos(until - self.now_ns().min(until))));
        }
    }

    /// Waits until every thread has ended, reports progress during that time, and takes meter
    /// readings when stages have settled and when they end.
    fn gather(
        &self,
        inbox: &mpsc::Receiver<ThreadReport>,
        (meter, marks, mut stall): (&mut dyn Meter, &mut Marks<ReadAt>, StallWatch),
        outcome: &mut Outcome,
        watcher: &mut dyn FnMut(ProgressSnapshot<'_>),
    ) -> Vec<ThreadReport> {
        let measured_from_ns = self.begun_ns() + self.offer.warmup_ns;
        let mut shares = Vec::new();
        let mut latest = WireRecorder::of(self.offer, self.work);
        let mut report_at_ns = self.now_ns() + PROGRESS_EVERY_NS;
        loop {
            let until_ns = report_at_ns.min(marks.next_ns());
            let left = Duration::from_nanos(until_ns.saturating_sub(self.now_ns()));
            let ended = inbox.recv_timeout(left);
            let over = matches!(ended, Err(RecvTimeoutError::Disconnected));
            shares.extend(ended);
            let now = self.now_ns();
            marks.read_if_due(now, || ReadAt::now(meter, now));
            if over {
                marks.end(|| ReadAt::now(meter, now));
            }
            if over || now >= report_at_ns {
                report_at_ns = now + PROGRESS_EVERY_NS;
                if !over {
                    self.check(meter, &mut stall);
                }
                self.collect(&mut latest);
                outcome.recorder.merge(&latest);
                let at_ns = now.saturating_sub(measured_from_ns);
                watcher(ProgressSnapshot {
                    at_ns,
                    latest: &latest,
                    all: &outcome.recorder,
                    last: over,
                });
            }
            if over {
                return shares;
            }
        }
    }
}
