//! What the threads of a load share: its start, its end, and where records are handed over.

use std::mem;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Barrier, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use model::{ErrorClass, Failure};

use super::offer::{Offer, Servers, Until};
use super::outages::Outages;
use super::protocol::Judged;
use super::recorder::WireRecorder;
use super::surveying::Surveying;
use super::work::Work;

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
    pub(super) zero: Instant,
    pub(super) begun_ns: AtomicU64,
    /// What each thread handed over.
    places: Vec<Mutex<Place>>,
    pub(super) failure: Mutex<Option<Failure>>,
    failed: AtomicBool,
    stop: &'a AtomicBool,
}

impl<'a> Shared<'a> {
    /// Nothing has begun; zero of the clock is now.
    pub(super) fn new(
        offer: &'a Offer,
        work: &'a Work,
        servers: &'a Servers,
        stop: &'a AtomicBool,
    ) -> Self {
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
                        recorder: WireRecorder::of(offer, work),
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
    pub(super) fn ended_ns(&self) -> u64 {
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
    pub(super) fn take_away(&self, latest: &mut WireRecorder) {
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
