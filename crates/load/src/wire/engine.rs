//! Runs a wire load: starts the threads, lets them begin together, gathers what they recorded.

use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use model::ErrorClass;

use super::offer::{Offer, Servers};
use super::outcome::Outcome;
use super::protocol::Parser;
use super::recorder::WireRecorder;
use super::shared::Shared;
use super::stages::{Marks, spans, steady_rate_per_s, uses};
use super::work::Work;
use super::worker::{Share, Worker};
use crate::clients::pin_to;
use crate::meter::{Meter, ReadAt};

/// What is told a few times a second.
#[derive(Clone, Copy, Debug)]
pub struct ProgressSnapshot<'a> {
    /// Nanoseconds since the start of the measurement; 0 while warming up.
    pub at_ns: u64,
    /// What was recorded since the last time.
    pub latest: &'a WireRecorder,
    /// What was recorded in all.
    pub all: &'a WireRecorder,
    /// True when nothing more comes.
    pub last: bool,
}

/// How often the watcher is told.
const TOLD_EVERY_NS: u64 = 200_000_000;
/// How soon a stop is noticed while warming up.
const PAUSE: Duration = Duration::from_millis(20);

/// Offers a load to servers that speak the protocol of `P`; returns when all threads have ended.
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
        clients: offer.clients,
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
            scope.spawn(move || reports.send(thread_of::<P>(shared, index)).is_ok());
        }
        drop(reports);
        if shared.surveying.may_change() {
            scope.spawn(|| {
                // Where it is refused, the load fails by its own threads.
                let _ = pin_to(&offer.cpus);
                shared.surveying.run(&shared.outages);
            });
        }
        shared.gate.wait();
        shared.begun_ns.store(shared.now_ns(), Ordering::Release);
        shared.gate.wait();
        shared.warm_up();
        before = ReadAt::now(meter, shared.now_ns());
        marks = Marks::new(&spans, shared.begun_ns() + offer.warmup_ns);
        ended = shared.gather(&inbox, (&mut *meter, &mut marks), &mut outcome, watcher);
        after = ReadAt::now(meter, shared.now_ns());
        shared.surveying.end();
    });
    let measured_from_ns = shared.begun_ns() + offer.warmup_ns;
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
    let nodes = &shared.surveying.standing().nodes;
    outcome.outages = shared.outages.within((measured_from_ns, shared.ended_ns()), nodes);
    outcome.server_cpu_ns = before.server_cpu_ns(&after, outcome.wall_ns);
    let waited_ns = outcome.generator_run_delay_ns / u64::from(offer.threads.max(1));
    outcome.disturbance = before.disturbance(&after, waited_ns);
    outcome.stage_uses = uses(&spans, &marks, ended.iter().map(|s| &s.marks));
    outcome.failure = shared.failure.into_inner().unwrap_or_else(PoisonError::into_inner);
    outcome.whole_ns = if outcome.failure.is_some() { outcome.wall_ns } else { u64::MAX };
    outcome.interrupted = stop.load(Ordering::Relaxed);
    outcome
}

/// The life of one thread.
fn thread_of<P: Parser + Default>(shared: &Shared<'_>, index: u32) -> Share {
    if let Err(message) = pin_to(&shared.offer.cpus) {
        shared.fail(ErrorClass::Other, message);
    }
    match Worker::<P>::new(shared, index) {
        Ok(mut worker) => worker.run(),
        Err(e) => {
            shared.fail(ErrorClass::Other, format!("an event loop cannot be made: {e}"));
            shared.gate.wait();
            shared.gate.wait();
            Share::default()
        }
    }
}

impl Shared<'_> {
    fn warm_up(&self) {
        let until = self.begun_ns() + self.offer.warmup_ns;
        while self.now_ns() < until && !self.over() {
            thread::sleep(PAUSE.min(Duration::from_nanos(until - self.now_ns().min(until))));
        }
    }

    /// Waits until every thread has ended, telling what was recorded meanwhile, and reads what the
    /// server has used where stages settle and end.
    fn gather(
        &self,
        inbox: &mpsc::Receiver<Share>,
        (meter, marks): (&mut dyn Meter, &mut Marks<ReadAt>),
        outcome: &mut Outcome,
        watcher: &mut dyn FnMut(ProgressSnapshot<'_>),
    ) -> Vec<Share> {
        let measured_from_ns = self.begun_ns() + self.offer.warmup_ns;
        let mut shares = Vec::new();
        let mut latest = WireRecorder::of(self.offer, self.work);
        let mut told_at_ns = self.now_ns() + TOLD_EVERY_NS;
        loop {
            let until_ns = told_at_ns.min(marks.next_ns());
            let left = Duration::from_nanos(until_ns.saturating_sub(self.now_ns()));
            let ended = inbox.recv_timeout(left);
            let over = matches!(ended, Err(RecvTimeoutError::Disconnected));
            shares.extend(ended);
            let now = self.now_ns();
            marks.look(now, || ReadAt::now(meter, now));
            if over {
                marks.end(|| ReadAt::now(meter, now));
            }
            if over || now >= told_at_ns {
                told_at_ns = now + TOLD_EVERY_NS;
                self.take_away(&mut latest);
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
