//! One thread of the wire engine: an event loop over its own connections.
//!
//! A client is a connection to each server (one, outside of a cluster). It sends up to `pipeline`
//! requests in one write, and in a closed load the next ones when all of them are answered. Threads
//! share nothing but the start, the stop and the place where records are handed over.
//!
//! Parts: this file sends and waits, `ready_queue` says who may send, `linking` sets connections up
//! and retries, `reading` parses replies and settles requests, `elsewhere` follows keys to other
//! servers.
//! `clients`, `links` and `watching` hold what it knows of its clients, connections and itself.

use std::cmp::Reverse;
use std::io;
use std::ops::RangeInclusive;

use model::ErrorClass;
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use workloads::kv::Written;

use super::clients::Clients;
use super::inserts::Inserted;
use super::links::Links;
use super::offer::{Offer, Pacing, Until};
use super::pacer::Pacer;
use super::protocol::Parser;
use super::recorder::WireRecorder;
use super::request::{Pending, UNTIMED};
use super::row::Times;
use super::shared::Shared;
use super::stages::{self, Marks, spans};
use super::timer::Timer;
use super::watching::Spinning;
use super::work::{Drawn, Streams, Work};
use crate::watch::ThreadUse;

/// Room for what is read at once.
const INBOX_BYTES: usize = 256 << 10;
/// How often time-outs, retries and the handing over of records are looked at.
pub(super) const TICK_NS: u64 = 20_000_000;
/// Ticks after which records are handed over.
const TICKS_A_REPORT: u32 = 10;
/// How much earlier than needed a thread wakes up at least and at most, where it may look at the
/// sockets for the rest of the time: a sleeping thread wakes up too late, by 5 to 500 µs.
const EARLY_NS: RangeInclusive<u64> = 20_000..=500_000;
/// The event of the timer, which is no connection's.
const TIMER: u64 = u64::MAX;

/// What a thread tells when it has ended.
#[derive(Clone, Debug, Default)]
pub(crate) struct Share {
    /// When its last reply came, nanoseconds of the engine's clock; 0 when none came.
    pub(crate) last_done_ns: u64,
    /// What it used from the start of the measurement.
    pub(crate) used: ThreadUse,
    /// What it had used where stages settle and end.
    pub(crate) marks: Marks<ThreadUse>,
    /// Requests of an open load that could not be sent before its end.
    pub(crate) unsent: u64,
    /// Its writes, where they are kept.
    pub(crate) written: Option<Written>,
}

/// When a load begins, is measured and ends; nanoseconds of the engine's clock.
pub(super) struct Clock {
    pub(super) begun_ns: u64,
    pub(super) measured_from_ns: u64,
    ends_ns: u64,
    /// True from the start on.
    pub(super) running: bool,
}

/// A thread's share of the requests: what they are drawn from, and when they are due.
pub(super) struct Requests {
    pub(super) streams: Streams,
    /// Keys inserted by this thread, where the load inserts any.
    pub(super) inserted: Option<Inserted>,
    /// Requests drawn by this thread.
    pub(super) drawn: u64,
    /// Of these, those that ended in the warm-up.
    pub(super) ended_in_warmup: u64,
    pub(super) in_flight: u64,
    /// True when nothing follows from a reply but its counting: no write, no key to be known.
    pub(super) plain: bool,
    pub(super) pacer: Option<Pacer>,
    /// When the next request of an open load is due.
    due_ns: Option<u64>,
    /// When a request was due last and no client was free.
    starved_ns: u64,
}

impl Requests {
    /// Nothing is drawn yet.
    fn new(offer: &Offer, work: &Work, index: u32) -> Self {
        let thread = (index, offer.threads);
        let pacer = match &offer.pacing {
            Pacing::Closed { .. } => None,
            Pacing::Open { arrivals, stages } => {
                Some(Pacer::new(*arrivals, stages, thread, work.seed_of(offer.number)))
            }
        };
        Self {
            streams: work.streams(offer.number),
            inserted: Inserted::new(work, thread),
            drawn: 0,
            ended_in_warmup: 0,
            in_flight: 0,
            plain: work.is_plain(),
            pacer,
            due_ns: None,
            starved_ns: 0,
        }
    }
}

/// A thread's own state.
pub(crate) struct Worker<'a, P> {
    pub(super) shared: &'a Shared<'a>,
    /// Number of this thread.
    index: usize,
    pub(super) epoll: Epoll,
    timer: Timer,
    /// How much earlier than needed it wakes up, where it may; follows how late it was.
    early_ns: u64,
    /// For the place of a connection see [`Worker::at`].
    pub(super) links: Links<P>,
    pub(super) clients: Clients,
    pub(super) requests: Requests,
    pub(super) clock: Clock,
    spinning: Spinning,
    pub(super) inbox: Vec<u8>,
    /// What is to be sent, by node; empty between two sendings.
    pub(super) scratch: Vec<Vec<u8>>,
    name: Vec<u8>,
    pub(super) recorder: WireRecorder,
    /// Writes of this thread, where they are kept.
    pub(super) written: Option<Written>,
    pub(super) last_done_ns: u64,
}

impl<'a, P: Parser + Default> Worker<'a, P> {
    /// A thread with its clients; nothing is connected yet.
    pub(crate) fn new(shared: &'a Shared<'a>, index: u32) -> io::Result<Self> {
        let (offer, work, standing) = (shared.offer, shared.work, shared.surveying.standing());
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        let timer = Timer::new()?;
        epoll.add(&timer, EpollEvent::new(EpollFlags::EPOLLIN, TIMER))?;
        let (begun_ns, measured_from_ns, ends_ns, running) = (0, u64::MAX, u64::MAX, false);
        let mut worker = Self {
            shared,
            index: index as usize,
            epoll,
            timer,
            early_ns: *EARLY_NS.end(),
            links: Links::new(&standing),
            clients: Clients::new(offer, index, work.seed_of(offer.number)),
            requests: Requests::new(offer, work, index),
            clock: Clock { begun_ns, measured_from_ns, ends_ns, running },
            spinning: Spinning::default(),
            inbox: vec![0; INBOX_BYTES],
            scratch: Vec::new(),
            name: Vec::new(),
            recorder: WireRecorder::of(offer, work),
            written: work.keeps_writes.then(Written::default),
            last_done_ns: 0,
        };
        worker.add_nodes(&standing.nodes);
        Ok(worker)
    }

    /// Index of a client's connection to a server.
    pub(super) fn at(&self, client: u32, node: usize) -> usize {
        node * self.clients.all.len() + client as usize
    }

    /// Connects, waits for the others, offers its share of the load and reads until all is
    /// answered.
    pub(crate) fn run(&mut self) -> Share {
        self.connect_all();
        self.shared.gate.wait();
        // The coordinator says when it begins, between the two.
        self.shared.gate.wait();
        self.begin();
        let mut used_before = None;
        let spans = spans(self.shared.offer, self.shared.work);
        let mut marks = Marks::new(&spans, self.clock.measured_from_ns);
        let (mut tick_ns, mut ticks) = (self.clock.begun_ns + TICK_NS, 0);
        loop {
            let now = self.shared.now_ns();
            self.spinning.turns(now, self.requests.drawn);
            if used_before.is_none() && now >= self.clock.measured_from_ns {
                used_before = Some(self.spinning.used());
            }
            marks.look(now, || self.spinning.used());
            if now >= tick_ns {
                tick_ns = now + TICK_NS;
                ticks += 1;
                self.look_after(now);
                if ticks % TICKS_A_REPORT == 0 {
                    self.shared.hand_over(self.index, &mut self.recorder);
                }
            }
            self.dispatch(now);
            if self.shared.over() || (self.all_sent(now) && self.requests.in_flight == 0) {
                break;
            }
            self.wait(tick_ns);
        }
        let unsent = self.unsent();
        self.shared.hand_over_last(self.index, &mut self.recorder);
        marks.end(|| self.spinning.used());
        Share {
            marks,
            last_done_ns: self.last_done_ns,
            used: self.spinning.used().since(used_before.unwrap_or_else(|| self.spinning.used())),
            unsent,
            written: self.written.take(),
        }
    }

    fn begin(&mut self) {
        let offer = self.shared.offer;
        self.clock.begun_ns = self.shared.begun_ns();
        self.clock.measured_from_ns = self.clock.begun_ns + offer.warmup_ns;
        if let Until::AfterNs(ns) = offer.until {
            self.clock.ends_ns = self.clock.measured_from_ns + ns;
        }
        (self.clock.running, self.links.listened_ns) = (true, self.clock.begun_ns);
        self.next_due();
        if self.clients.client_schedule.is_some() {
            self.clients.active = 0;
            return self.follow_client_schedule(self.clock.begun_ns);
        }
        (0..self.clients.all.len() as u32)
            .for_each(|client| self.starts(client, self.clock.begun_ns));
    }

    /// True when nothing more is to be sent.
    pub(super) fn all_sent(&self, now: u64) -> bool {
        if self.requests.pacer.is_some() && self.requests.due_ns.is_none() {
            return true;
        }
        match self.shared.offer.until {
            Until::Requests(_) => self.is_beyond(self.number(), now),
            // What was due before the end is sent, however late.
            Until::AfterNs(_) => match self.requests.due_ns {
                Some(due) => due >= self.clock.ends_ns || now >= self.gives_up_ns(),
                None => now >= self.clock.ends_ns,
            },
        }
    }

    /// When an open load stops trying to send what was due.
    fn gives_up_ns(&self) -> u64 {
        self.clock.ends_ns.saturating_add(self.shared.offer.timeout_ns)
    }

    /// Requests that were due before the end and are not sent.
    fn unsent(&mut self) -> u64 {
        // A counted load ends with the last request, and its stages need not end at all; one that
        // was ended early has sent what it could.
        if matches!(self.shared.offer.until, Until::Requests(_)) || self.shared.over() {
            return 0;
        }
        let (mut unsent, requests) = (0, self.shared.work.requests_each() as u64);
        while let Some(due_ns) = self.requests.due_ns.filter(|due_ns| *due_ns < self.clock.ends_ns)
        {
            unsent += requests;
            let since_ns = due_ns.saturating_sub(self.clock.measured_from_ns);
            stages::unsent(&mut self.recorder.stages, since_ns, requests);
            self.next_due();
        }
        unsent
    }

    /// Number of this thread's next request among those of all.
    fn number(&self) -> u64 {
        self.requests.drawn * u64::from(self.shared.offer.threads) + self.index as u64
    }

    /// Whether a request is beyond the planned number of them, of which those that ended in the
    /// warm-up are none.
    fn is_beyond(&self, n: u64, now: u64) -> bool {
        let Until::Requests(all) = self.shared.offer.until else { return false };
        let of_warmup = self.requests.ended_in_warmup * u64::from(self.shared.offer.threads);
        now >= self.clock.measured_from_ns && n - of_warmup >= all
    }

    fn next_due(&mut self) {
        let next = self.requests.pacer.as_mut().and_then(Pacer::next_ns);
        self.requests.due_ns = next.map(|ns| self.clock.begun_ns + ns);
    }

    /// Sends what can be sent now.
    pub(super) fn dispatch(&mut self, now: u64) {
        self.redial(now);
        if now >= self.clients.schedule_changes_ns {
            self.follow_client_schedule(now);
        }
        while let Some(Reverse((at, client))) = self.clients.thinking.peek().copied() {
            if at > now {
                break;
            }
            self.clients.thinking.pop();
            self.may_send(client);
        }
        if self.requests.pacer.is_none() {
            while !self.all_sent(now) {
                let Some(client) = self.next_free() else { return };
                self.send(client, now);
            }
            return;
        }
        while self.due_by(now).is_some() {
            let Some(client) = self.next_free() else {
                self.requests.starved_ns = now;
                return;
            };
            self.send(client, now);
            self.may_send(client);
        }
    }

    /// When the next request of an open load is due, where that is by `now`.
    fn due_by(&self, now: u64) -> Option<u64> {
        self.requests.due_ns.filter(|due| *due <= now && !self.all_sent(now))
    }

    /// Draws and sends as many requests as a client has room for, in an open load of those that are
    /// due by `now`, in one write to each server.
    fn send(&mut self, client: u32, now: u64) {
        let work = self.shared.work;
        let own = self.clients.all[client as usize];
        let drawn_before = self.requests.drawn;
        for _ in own.in_flight..self.shared.offer.pipeline {
            let n = self.number();
            let intended_ns = self.due_by(now);
            if self.is_beyond(n, now) || (self.requests.pacer.is_some() && intended_ns.is_none()) {
                break;
            }
            let drawn = match &mut self.requests.inserted {
                None => work.draw(&self.requests.streams, n),
                Some(inserted) => {
                    inserted.draw(work, &self.requests.streams, (n, self.requests.drawn))
                }
            };
            self.requests.drawn += 1;
            let node = self.node(&drawn);
            work.append(&self.requests.streams, &mut self.scratch[node], &drawn);
            if let Some(intended_ns) = intended_ns {
                self.sent_at(intended_ns, now);
                self.next_due();
            }
            let intended_ns = intended_ns.unwrap_or(UNTIMED);
            let pending = Pending::Request { drawn, intended_ns, sent_ns: UNTIMED, hops: 0 };
            let connection = self.at(client, node);
            self.links.connections[connection].pending.push_back(pending);
        }
        let requests = self.requests.drawn - drawn_before;
        self.clients.all[client as usize].in_flight += requests as u32;
        self.requests.in_flight += requests;
        let sent_ns = self.shared.now_ns();
        let since_ns = if own.redials_since_ns > 0 { own.redials_since_ns } else { sent_ns };
        for node in 0..self.scratch.len() {
            let connection = self.at(client, node);
            self.links.connections[connection].stamp(sent_ns, since_ns);
            self.send_scratch(connection, node);
        }
    }

    /// Sends what stands in the scratch of a node.
    pub(super) fn send_scratch(&mut self, connection: usize, node: usize) {
        if self.scratch[node].is_empty() {
            return;
        }
        let sent = self.links.connections[connection].send(&self.scratch[node]);
        self.scratch[node].clear();
        match sent {
            Ok(()) => self.watch(connection),
            Err(e) => self.broken(connection, &e),
        }
    }

    /// Takes note of a planned request that is sent later than it was due although a client was
    /// free.
    fn sent_at(&mut self, intended_ns: u64, sent_ns: u64) {
        let own = self.requests.starved_ns < intended_ns && self.is_measured(intended_ns, sent_ns);
        if let Some(due) = self.recorder.due.as_mut().filter(|_| own) {
            due.was_late(&Times { intended_ns, sent_ns, done_ns: sent_ns });
        }
    }

    fn node(&mut self, drawn: &Drawn) -> usize {
        if self.scratch.len() == 1 {
            return 0;
        }
        self.name.clear();
        self.shared.work.names.append(&mut self.name, drawn.key);
        self.links.route.node(&self.name)
    }

    /// Waits for the sockets, for what is due next or for the tick, and takes in what came.
    pub(super) fn wait(&mut self, tick_ns: u64) {
        let now = self.shared.now_ns();
        let thinking = self.clients.thinking.peek().map(|Reverse((at, _))| *at);
        // What is due waits for a client, not for the time, where none is free.
        let due = self.requests.due_ns.filter(|_| !self.clients.free.is_empty());
        let until = due.or(thinking).map_or(tick_ns, |at| at.min(tick_ns));
        let until = until.min(self.clients.schedule_changes_ns);
        let left = until.saturating_sub(now);
        let spins = self.shared.offer.spin;
        let early = if spins { self.early_ns } else { 0 };
        // A reply to a planned request is looked for without sleeping: waking up would be counted.
        let awaits = spins && self.requests.pacer.is_some() && self.requests.in_flight > 0;
        let timeout = if left <= early || awaits {
            EpollTimeout::ZERO
        } else {
            if let Err(e) = self.timer.set(until - early, now) {
                let message = format!("the timer cannot be set: {e}");
                return self.shared.fail(ErrorClass::Other, message);
            }
            EpollTimeout::NONE
        };
        let looks = timeout == EpollTimeout::ZERO;
        let mut events = [EpollEvent::empty(); 128];
        let count = match self.epoll.wait(&mut events, timeout) {
            Ok(count) => count,
            Err(Errno::EINTR) => 0,
            Err(e) => {
                let message = format!("waiting for the sockets failed: {e}");
                return self.shared.fail(ErrorClass::Other, message);
            }
        };
        if looks && count == 0 {
            self.spinning.found_nothing(now, self.requests.drawn);
        }
        for event in &events[..count] {
            match event.data() {
                TIMER => {
                    self.timer.clear();
                    self.woke(until - early);
                }
                token => self.happened(token as usize, event.events()),
            }
        }
    }

    /// Learns from a wake-up that was to be at a time: at once to be earlier, slowly to be later.
    fn woke(&mut self, at_ns: u64) {
        let late = self.shared.now_ns().saturating_sub(at_ns) * 5 / 4;
        let wanted =
            if late > self.early_ns { late } else { self.early_ns - (self.early_ns - late) / 32 };
        self.early_ns = wanted.clamp(*EARLY_NS.start(), *EARLY_NS.end());
    }
}
