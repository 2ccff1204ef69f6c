//! Runs a wire load: starts the threads, lets them begin together, gathers what they recorded.

use std::fmt;
use std::mem;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Barrier, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use model::{ClientStage, ErrorClass, Failure};

use super::outages::Outages;
use super::outcome::Outcome;
use super::pacer::{Arrivals, Stage};
use super::protocol::{Greeting, Judged, Parser};
use super::recorder::WireRecorder;
use super::route::{Layout, Route, Survey};
use super::stages::{Marks, spans, steady_rate_per_s, uses};
use super::stream::{Address, Tls};
use super::surveying::Surveying;
use super::work::Work;
use super::worker::{Share, Worker};
use crate::clients::pin_to;
use crate::meter::{Meter, ReadAt};
use crate::slowest;

/// Pauses of a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Think {
    /// Between its replies and its next requests, nanoseconds; 0 for none.
    pub ns: u64,
    /// True where each is drawn evenly from 0 to that, and the first comes before a client's first
    /// request.
    pub is_drawn: bool,
}

/// How requests are paced.
#[derive(Clone, Debug, PartialEq)]
pub enum Pacing {
    /// Each client sends its next requests when its last ones are answered and it has thought.
    Closed {
        /// For how long.
        think: Think,
        /// Clients at work over time, from the start of the warm-up on; empty for all of them all
        /// the time. Those that are not at work yet or any more stay connected.
        stages: Vec<ClientStage>,
    },
    /// Requests are sent when they are due, whether or not others are answered, by the first client
    /// with room for one; where none has room they wait, and nothing is left out.
    Open {
        /// Spacing of arrivals.
        arrivals: Arrivals,
        /// Rates over time, from the start of the warm-up on; the load ends with the last one.
        stages: Vec<Stage>,
    },
}

/// When a load ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// After that many requests, over all threads.
    Requests(u64),
    /// That many nanoseconds after the warm-up.
    AfterNs(u64),
}

/// How a load is offered.
#[expect(clippy::struct_excessive_bools, reason = "each is a choice of its own")]
#[derive(Clone, Debug)]
pub struct Offer {
    /// Threads; at least 1 and at most as many as clients.
    pub threads: u32,
    /// Clients, over all threads; each has a connection to every server.
    pub clients: u32,
    /// Requests that a client may have under way.
    pub pipeline: u32,
    /// How requests are paced.
    pub pacing: Pacing,
    /// When it ends.
    pub until: Until,
    /// Nanoseconds that are not recorded.
    pub warmup_ns: u64,
    /// Nanoseconds after which a request counts as not answered; its connection is made anew.
    pub timeout_ns: u64,
    /// CPUs of the threads; empty to leave them where they are.
    pub cpus: Vec<usize>,
    /// True when a thread may keep its CPU busy while it waits for less than its wake-up takes.
    pub spin: bool,
    /// True when broken connections are made anew, false when the first ends the load.
    pub reconnects: bool,
    /// True when an error reply ends the load.
    pub errors_end_it: bool,
    /// True when a client hangs up once all it sent is answered, and sends its next requests on
    /// connections made anew. Under a closed load they are intended from when that begins, and
    /// nobody thinks.
    pub hangs_up: bool,
    /// Of an open load: times after which an answer is too late, nanoseconds; what was due is then
    /// counted by interval. Empty for none.
    pub limits_ns: Vec<u64>,
    /// Which one of several loads on the same data it is: others have other arrivals and draw
    /// other requests.
    pub number: u64,
}

/// Where the load goes. Prints without what is said first, which may hold a password.
pub struct Servers {
    /// Every server, in the order in which the route counts them.
    pub nodes: Vec<Address>,
    /// How TLS is spoken to them, where it is.
    pub tls: Option<Tls>,
    /// What a new connection says first.
    pub hello: Vec<u8>,
    /// What is answered to that.
    pub hello_replies: Vec<Greeting>,
    /// Which key lives where.
    pub route: Box<dyn Route>,
    /// How to learn that anew; `None` where keys stay where they are.
    pub survey: Option<Box<dyn Survey>>,
}

impl Servers {
    /// Where keys live now, as far as it can be learnt.
    fn layout(&self) -> Layout {
        let asked = self.survey.as_ref().and_then(|survey| survey.ask(&[], &[]));
        asked.unwrap_or_else(|| Layout { nodes: self.nodes.clone(), route: self.route.fresh() })
    }
}

impl fmt::Debug for Servers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut all = f.debug_struct("Servers");
        all.field("nodes", &self.nodes).field("tls", &self.tls.is_some());
        all.field("route", &self.route).finish_non_exhaustive()
    }
}

/// What is told a few times a second.
#[derive(Clone, Copy, Debug)]
pub struct Moment<'a> {
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

/// Where a thread leaves what it recorded.
#[derive(Debug)]
struct Place {
    recorder: WireRecorder,
    /// True until it is taken away.
    full: bool,
    /// When the thread left something last, nanoseconds of the engine's clock.
    handed_over_ns: u64,
}

/// Shared by all threads of a load.
pub(crate) struct Shared<'a> {
    pub(crate) offer: &'a Offer,
    pub(crate) work: &'a Work,
    pub(crate) servers: &'a Servers,
    pub(crate) surveying: Surveying<'a>,
    pub(crate) outages: Outages,
    pub(crate) gate: Barrier,
    /// Zero of the engine's clock.
    zero: Instant,
    begun_ns: AtomicU64,
    /// What each thread handed over.
    places: Vec<Mutex<Place>>,
    failure: Mutex<Option<Failure>>,
    failed: AtomicBool,
    stop: &'a AtomicBool,
}

impl<'a> Shared<'a> {
    fn new(offer: &'a Offer, work: &'a Work, servers: &'a Servers, stop: &'a AtomicBool) -> Self {
        Self {
            offer,
            work,
            servers,
            surveying: Surveying::new(
                servers.layout(),
                servers.survey.as_deref().filter(|_| offer.reconnects),
            ),
            outages: Outages::default(),
            gate: Barrier::new(offer.threads as usize + 1),
            zero: Instant::now(),
            begun_ns: AtomicU64::new(0),
            places: (0..offer.threads)
                .map(|_| {
                    Mutex::new(Place {
                        recorder: fresh(offer, work),
                        full: false,
                        handed_over_ns: 0,
                    })
                })
                .collect(),
            failure: Mutex::default(),
            failed: AtomicBool::new(false),
            stop,
        }
    }
}

impl Shared<'_> {
    /// Nanoseconds of the engine's clock.
    pub(crate) fn now_ns(&self) -> u64 {
        self.zero.elapsed().as_nanos() as u64
    }

    pub(crate) fn begun_ns(&self) -> u64 {
        self.begun_ns.load(Ordering::Acquire)
    }

    /// When the load ends as planned, or now where no time is planned or it has not come.
    fn ended_ns(&self) -> u64 {
        match self.offer.until {
            Until::AfterNs(ns) => self.now_ns().min(self.begun_ns() + self.offer.warmup_ns + ns),
            Until::Requests(_) => self.now_ns(),
        }
    }

    pub(crate) fn over(&self) -> bool {
        self.failed.load(Ordering::Relaxed) || self.stop.load(Ordering::Relaxed)
    }

    pub(crate) fn fail(&self, class: ErrorClass, message: String) {
        lock(&self.failure).get_or_insert(Failure { class, message });
        self.failed.store(true, Ordering::Relaxed);
    }

    /// Ends the load by an error reply; any other reply does nothing.
    pub(crate) fn fail_by(&self, judged: &Judged) {
        match judged {
            Judged::Error(class, words) => {
                self.fail(*class, format!("the server answered `{words}`"));
            }
            Judged::Elsewhere { address, .. } => {
                let message = format!("the server refers to {address}, which is not known here");
                self.fail(ErrorClass::Reply, message);
            }
            _ => {}
        }
    }

    /// Leaves what a thread recorded, and goes on with an empty recorder. Where the last one was
    /// not taken away yet, nothing changes: a thread under load waits for nobody.
    pub(crate) fn hand_over(&self, thread: usize, recorder: &mut WireRecorder) {
        if let Ok(mut place) = self.places[thread].try_lock()
            && !place.full
        {
            recorder.close();
            recorder.covered_ns = self.covered_ns(&mut place);
            mem::swap(&mut place.recorder, recorder);
            place.full = true;
        }
    }

    /// Time of the measurement since the thread of that place handed over last.
    fn covered_ns(&self, place: &mut Place) -> u64 {
        let measured_from_ns = self.begun_ns() + self.offer.warmup_ns;
        let from_ns = place.handed_over_ns.max(measured_from_ns);
        place.handed_over_ns = self.now_ns();
        place.handed_over_ns.saturating_sub(from_ns)
    }

    /// Leaves all that a thread has still recorded.
    pub(crate) fn hand_over_last(&self, thread: usize, recorder: &mut WireRecorder) {
        recorder.close();
        let mut place = lock(&self.places[thread]);
        recorder.covered_ns = self.covered_ns(&mut place);
        place.recorder.merge(recorder);
        place.full = true;
    }

    /// Takes away what the threads have left.
    fn take_away(&self, latest: &mut WireRecorder) {
        latest.clear();
        for place in &self.places {
            let mut place = lock(place);
            if place.full {
                latest.merge(&place.recorder);
                place.recorder.clear();
                place.full = false;
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Offers a load to servers that speak the protocol of `P`; returns when all threads have ended.
pub fn run<P: Parser + Default>(
    offer: &Offer,
    work: &Work,
    servers: &Servers,
    stop: &AtomicBool,
    meter: &mut dyn Meter,
    watcher: &mut dyn FnMut(Moment<'_>),
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

/// An empty recorder of a load's shape.
pub(crate) fn fresh(offer: &Offer, work: &Work) -> WireRecorder {
    let is_open = matches!(offer.pacing, Pacing::Open { .. });
    let length_ns = match offer.until {
        Until::AfterNs(ns) => Some(ns),
        Until::Requests(_) => None,
    };
    let recorder = WireRecorder::new(
        work.operations.len(),
        is_open || offer.hangs_up,
        slowest::interval_ns(length_ns),
    );
    let limits_ns: &[u64] = if is_open { &offer.limits_ns } else { &[] };
    recorder.with_stages(&spans(offer, work)).with_limits(limits_ns)
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
        watcher: &mut dyn FnMut(Moment<'_>),
    ) -> Vec<Share> {
        let measured_from_ns = self.begun_ns() + self.offer.warmup_ns;
        let mut shares = Vec::new();
        let mut latest = fresh(self.offer, self.work);
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
                watcher(Moment { at_ns, latest: &latest, all: &outcome.recorder, last: over });
            }
            if over {
                return shares;
            }
        }
    }
}
