//! State shared by the threads of a load: start, end, and the handover of records.

use std::mem;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Barrier, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use model::{ErrorClass, Failure};

use super::offer::{Offer, Servers, Until};
use super::outages::Outages;
use super::protocol::Judged;
use super::recorder::WireRecorder;
use super::surveying::Surveying;
use super::work::Work;
use crate::meter::Meter;
use crate::stall::{Pulse, StallWatch};

/// A pause after which the driver of a fleet may have given this process up.
const PAUSE_NS: u64 = 2_000_000_000;
/// After the pause, time for the thread that ends the load to run.
const RESUMED_WITHIN: Duration = Duration::from_millis(100);

/// A thread's slot for handing over records.
#[derive(Debug)]
struct HandoverSlot {
    recorder: WireRecorder,
    /// True until the records are collected.
    full: bool,
    /// When the thread last handed over records, nanoseconds of the engine's clock.
    handed_over_ns: u64,
}

/// State shared by all threads of a load.
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
    /// One slot per thread.
    slots: Vec<Mutex<HandoverSlot>>,
    /// By thread.
    pub(super) pulses: Vec<Pulse>,
    pub(super) failure: Mutex<Option<Failure>>,
    failed: AtomicBool,
    stop: &'a AtomicBool,
}

impl<'a> Shared<'a> {
    /// State of a load that has not started; the clock's zero is now.
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
            slots: (0..offer.threads)
                .map(|_| {
                    Mutex::new(HandoverSlot {
                        recorder: WireRecorder::of(offer, work),
                        full: false,
                        handed_over_ns: 0,
                    })
                })
                .collect(),
            pulses: (0..offer.threads).map(|_| Pulse::default()).collect(),
            failure: Mutex::default(),
            failed: AtomicBool::new(false),
            stop,
        }
    }
}

impl Shared<'_> {
    /// Time since the clock's zero, nanoseconds.
    pub(crate) fn now_ns(&self) -> u64 {
        self.zero.elapsed().as_nanos() as u64
    }

    pub(crate) fn begun_ns(&self) -> u64 {
        self.begun_ns.load(Ordering::Acquire)
    }

    /// Planned end of the load, or now if that is earlier or there is none.
    pub(super) fn ended_ns(&self) -> u64 {
        match self.offer.until {
            Until::AfterNs(ns) => self.now_ns().min(self.begun_ns() + self.offer.warmup_ns + ns),
            Until::Requests(_) => self.now_ns(),
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.failed.load(Ordering::Relaxed) || self.stop.load(Ordering::Relaxed)
    }

    /// True if the load ended while this process was stopped, so that overdue requests must not be
    /// sent. After a long pause since `before_ns`, gives the thread that ends the load time to run.
    pub(super) fn ended_during_pause(&self, before_ns: u64) -> bool {
        if self.now_ns() - before_ns < PAUSE_NS {
            return false;
        }
        thread::sleep(RESUMED_WITHIN);
        self.is_over()
    }

    pub(crate) fn fail(&self, class: ErrorClass, message: String) {
        lock(&self.failure).get_or_insert(Failure { class, message });
        self.failed.store(true, Ordering::Relaxed);
    }

    /// Fails the load if the meter reports an error, or nothing is answered any more.
    pub(super) fn check(&self, meter: &mut dyn Meter, stall: &mut StallWatch) {
        let stalled = || stall.look(&self.pulses, self.now_ns());
        if let Some(Failure { class, message }) = meter.check().err().or_else(stalled) {
            self.fail(class, message);
        }
    }

    /// Fails the load if the reply is an error or a referral.
    pub(crate) fn fail_by(&self, judged: &Judged) {
        match judged {
            Judged::Error(class, text) => {
                self.fail(*class, format!("the server answered `{text}`"));
            }
            Judged::Redirected { address, .. } => {
                let message = format!("the server refers to {address}, which is unknown");
                self.fail(ErrorClass::Reply, message);
            }
            _ => {}
        }
    }

    /// Hands over a thread's records and continues with an empty recorder. Does nothing while the
    /// slot is full or locked: a thread under load never waits.
    pub(crate) fn hand_over(&self, thread: usize, recorder: &mut WireRecorder) {
        if let Ok(mut slot) = self.slots[thread].try_lock()
            && !slot.full
        {
            recorder.close();
            recorder.covered_ns = self.covered_ns(&mut slot);
            mem::swap(&mut slot.recorder, recorder);
            slot.full = true;
        }
    }

    /// Measurement time since the slot's thread last handed over records.
    fn covered_ns(&self, slot: &mut HandoverSlot) -> u64 {
        let measured_from_ns = self.begun_ns() + self.offer.warmup_ns;
        let from_ns = slot.handed_over_ns.max(measured_from_ns);
        slot.handed_over_ns = self.now_ns();
        slot.handed_over_ns.saturating_sub(from_ns)
    }

    /// Hands over a thread's remaining records.
    pub(crate) fn hand_over_last(&self, thread: usize, recorder: &mut WireRecorder) {
        recorder.close();
        let mut slot = lock(&self.slots[thread]);
        recorder.covered_ns = self.covered_ns(&mut slot);
        slot.recorder.merge(recorder);
        slot.full = true;
    }

    /// Collects the records from all slots.
    pub(super) fn collect(&self, latest: &mut WireRecorder) {
        latest.clear();
        for slot in &self.slots {
            let mut slot = lock(slot);
            if slot.full {
                latest.merge(&slot.recorder);
                slot.recorder.clear();
                slot.full = false;
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
