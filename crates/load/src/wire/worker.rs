//! One thread of the wire engine: an event loop over its own connections.
//!
//! A client has a connection to each server; without a cluster that is one. It sends up to
//! `pipeline` requests in one write; in a closed load it sends the next ones when all of them are
//! answered. Threads share only the start, the stop and the slots for handing over records.
//!
//! Parts: this file sends and waits, `ready_queue` schedules clients, `linking` opens connections
//! and retries, `reading` parses replies and settles requests, `redirects` follows keys to other
//! servers. `clients`, `links` and `spinning` contain a thread's state: its clients, connections
//! and polling time.

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
use super::spinning::Spinning;
use super::stages::{self, Marks, spans};
use super::timer::Timer;
use super::work::{Drawn, Streams, Work};
use crate::watch::ThreadUse;

/// Size of the read buffer.
const INBOX_BYTES: usize = 256 << 10;
/// Interval of checks for timeouts and retries and for the handover of records.
pub(super) const TICK_NS: u64 = 20_000_000;
/// Ticks between two handovers of records.
const TICKS_PER_HANDOVER: u32 = 10;
/// Minimum and maximum of how much earlier than needed a thread wakes up if it may poll the sockets
/// for the remaining time: a sleeping thread wakes up 5 to 500 µs late.
const EARLY_NS: RangeInclusive<u64> = 20_000..=500_000;
/// Epoll token of the timer; all others are connections.
const TIMER: u64 = u64::MAX;

/// Report of a thread at its end.
#[derive(Clone, Debug, Default)]
pub(crate) struct ThreadReport {
    /// When it received its last reply, nanoseconds of the engine's clock; 0 for none.
    pub(crate) last_done_ns: u64,
    /// CPU usage since the start of the measurement.
    pub(crate) used: ThreadUse,
    /// CPU usage when stages have settled and when they end.
    pub(crate) marks: Marks<ThreadUse>,
    /// Requests of an open load that could not be sent before its end.
    pub(crate) unsent: u64,
    /// Its writes, if they are kept.
    pub(crate) written: Option<Written>,
}

/// When a load starts, is measured and ends; nanoseconds of the engine's clock.
pub(super) struct Clock {
    pub(super) begun_ns: u64,
    pub(super) measured_from_ns: u64,
    ends_ns: u64,
    /// True once the load has started.
    pub(super) running: bool,
}

/// A thread's requests: their random streams, counts and due times.
pub(super) struct Requests {
    pub(super) streams: Streams,
    /// Keys inserted by this thread, if the load inserts any.
    pub(super) inserted: Option<Inserted>,
    /// Requests drawn by this thread.
    pub(super) drawn: u64,
    /// Drawn requests that ended in the warm-up.
    pub(super) ended_in_warmup: u64,
    pub(super) in_flight: u64,
    /// Times that something was received.
    pub(super) heard: u64,
    /// True if a reply only needs to be counted: no chained operation, no inserted key.
    pub(super) plain: bool,
    pub(super) pacer: Option<Pacer>,
    /// When the next request of an open load is due.
    due_ns: Option<u64>,
    /// When a request was last due while no client was free.
    starved_ns: u64,
}

impl Requests {
    /// No requests drawn yet.
    fn new(offer: &Offer, work: &Work, index: u32) -> Self {
        let thread = offer.numbered(index);
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
            heard: 0,
            plain: work.is_plain(),
            pacer,
            due_ns: None,
            starved_ns: 0,
        }
    }
}

/// State of one thread.
pub(crate) struct Worker<'a, P> {
    pub(super) shared: &'a Shared<'a>,
    /// Number of this thread within this process.
    pub(super) index: usize,
    /// Its number among the threads of all contributors, and how many there are.
    number: (u32, u32),
    pub(super) epoll: Epoll,
    timer: Timer,
    /// How much earlier than needed it wakes up, where polling is allowed; adapts to how late it
    /// was.
    early_ns: u64,
    /// Connections; see [`Worker::at`] for their order.
    pub(super) links: Links<P>,
    pub(super) clients: Clients,
    pub(super) requests: Requests,
    pub(super) clock: Clock,
    spinning: Spinning,
    pub(super) inbox: Vec<u8>,
    /// Requests to send, by node; empty between two sends.
    pub(super) scratch: Vec<Vec<u8>>,
    name: Vec<u8>,
    pub(super) recorder: WireRecorder,
    /// Writes of this thread, if they are kept.
    pub(super) written: Option<Written>,
    pub(super) last_done_ns: u64,
}

impl<'a, P: Parser + Default> Worker<'a, P> {
    /// A thread with its clients, not yet connected.
    pub(crate) fn new(shared: &'a Shared<'a>, index: u32) -> io::Result<Self> {
        let (offer, work, known_layout) =
            (shared.offer, shared.work, shared.surveying.known_layout());
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        let timer = Timer::new()?;
        epoll.add(&timer, EpollEvent::new(EpollFlags::EPOLLIN, TIMER))?;
        let (begun_ns, measured_from_ns, ends_ns, running) = (0, u64::MAX, u64::MAX, false);
        let mut worker = Self {
            shared,
            index: index as usize,
            number: offer.numbered(index),
            epoll,
            timer,
            early_ns: *EARLY_NS.end(),
            links: Links::new(&known_layout),
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
        worker.add_nodes(&known_layout.nodes);
        Ok(worker)
    }

    /// Index of a client's connection to a server.
    pub(super) fn at(&self, client: u32, node: usize) -> usize {
        node * self.clients.all.len() + client as usize
    }

    /// Connects, waits for the other threads, offers its share of the load, and reads until all
    /// requests are answered.
    pub(crate) fn run(&mut self) -> ThreadReport {
        self.connect_all();
        self.shared.gate.wait();
        // Between the two, the coordinator sets the start time.
        self.shared.gate.wait();
        self.start();
        let mut used_before = None;
        let spans = spans(self.shared.offer, self.shared.work);
        let mut marks = Marks::new(&spans, self.clock.measured_from_ns);
        let (mut tick_ns, mut ticks) = (self.clock.begun_ns + TICK_NS, 0);
        loop {
            let now = self.shared.now_ns();
            self.spinning.start_turn(now, self.requests.drawn);
            if used_before.is_none() && now >= self.clock.measured_from_ns {
                used_before = Some(self.spinning.used());
            }
            marks.read_if_due(now, || self.spinning.used());
            if now >= tick_ns {
                tick_ns = now + TICK_NS;
                ticks += 1;
                self.on_tick(now);
                if ticks % TICKS_PER_HANDOVER == 0 {
                    self.shared.hand_over(self.index, &mut self.recorder);
                }
            }
            if self.shared.is_over() {
                break;
            }
            self.dispatch(now);
            if self.all_sent(now) && self.requests.in_flight == 0 {
                break;
            }
            self.wait(tick_ns);
        }
        let unsent = self.unsent();
        self.shared.hand_over_last(self.index, &mut self.recorder);
        marks.end(|| self.spinning.used());
        ThreadReport {
            marks,
            last_done_ns: self.last_done_ns,
            used: self.spinning.used().since(used_before.unwrap_or_else(|| self.spinning.used())),
            unsent,
            written: self.written.take(),
        }
    }

    fn start(&mut self) {
        let offer = self.shared.offer;
        self.clock.begun_ns = self.shared.begun_ns();
        self.clock.measured_from_ns = self.clock.begun_ns + offer.warmup_ns;
        if let Until::AfterNs(ns) = offer.until {
            self.clock.ends_ns = self.clock.measured_from_ns + ns;
        }
        (self.clock.running, self.links.silence_checked_ns) = (true, self.clock.begun_ns);
        self.next_due();
        if self.clients.client_schedule.is_some() {
            self.clients.active = 0;
            return self.follow_client_schedule(self.clock.begun_ns);
        }
        (0..self.clients.all.len() as u32)
            .for_each(|client| self.start_client(client, self.clock.begun_ns));
    }

    /// True if there are no more requests to send.
    pub(super) fn all_sent(&self, now: u64) -> bool {
        if self.requests.pacer.is_some() && self.requests.due_ns.is_none() {
            return true;
        }
        match self.shared.offer.until {
            Until::Requests(_) => self.is_beyond(self.number(), now),
            // Requests due before the end are sent, however late.
            Until::AfterNs(_) => match self.requests.due_ns {
                Some(due) => due >= self.clock.ends_ns || now >= self.gives_up_ns(),
                None => now >= self.clock.ends_ns,
            },
        }
    }

    /// When an open load gives up sending overdue requests.
    fn gives_up_ns(&self) -> u64 {
        self.clock.ends_ns.saturating_add(self.shared.offer.timeout_ns)
    }

    /// Counts the requests that were due before the end and not sent.
    fn unsent(&mut self) -> u64 {
        // A load with a request count ends with its last request, before all stages have to end;
        // one that was aborted has sent what it could.
        if matches!(self.shared.offer.until, Until::Requests(_)) || self.shared.is_over() {
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

    /// Number of this thread's next request, over all threads.
    fn number(&self) -> u64 {
        let (thread, threads) = self.number;
        self.requests.drawn * u64::from(threads) + u64::from(thread)
    }

    /// Whether a request exceeds the planned number of requests, which excludes those that ended in
    /// the warm-up.
    fn is_beyond(&self, n: u64, now: u64) -> bool {
        let Until::Requests(all) = self.shared.offer.until else { return false };
        let of_warmup = self.requests.ended_in_warmup * u64::from(self.number.1);
        now >= self.clock.measured_from_ns && n - of_warmup >= all
    }

    fn next_due(&mut self) {
        let next = self.requests.pacer.as_mut().and_then(Pacer::next_ns);
        self.requests.due_ns = next.map(|ns| self.clock.begun_ns + ns);
    }

    /// Sends all requests that can be sent now.
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
            self.queue_if_ready(client);
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
            self.queue_if_ready(client);
        }
    }

    /// When the next request of an open load is due, if that is no later than `now`.
    fn due_by(&self, now: u64) -> Option<u64> {
        self.requests.due_ns.filter(|due| *due <= now && !self.all_sent(now))
    }

    /// Draws and sends as many requests as a client has room for, in one write to each server; in
    /// an open load only those due by `now`.
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

    /// Sends the requests in the scratch buffer of a node.
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

    /// Records a request of an open load that is sent late although a client was free.
    fn sent_at(&mut self, intended_ns: u64, sent_ns: u64) {
        let own = self.requests.starved_ns < intended_ns && self.is_measured(intended_ns, sent_ns);
        if let Some(due) = self.recorder.due.as_mut().filter(|_| own) {
            due.count_if_late(&Times { intended_ns, sent_ns, done_ns: sent_ns });
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

    /// Waits for the sockets, the next due request or the tick, and handles the events.
    pub(super) fn wait(&mut self, tick_ns: u64) {
        let now = self.shared.now_ns();
        let thinking = self.clients.thinking.peek().map(|Reverse((at, _))| *at);
        // If no client is free, a due request waits for a client, not for the time.
        let due = self.requests.due_ns.filter(|_| !self.clients.free.is_empty());
        let until = due.or(thinking).map_or(tick_ns, |at| at.min(tick_ns));
        let until = until.min(self.clients.schedule_changes_ns);
        let left = until.saturating_sub(now);
        let spins = self.shared.offer.spin;
        let early = if spins { self.early_ns } else { 0 };
        // In an open load, poll for replies: otherwise their times would include wake-up latency.
        let awaits = spins && self.requests.pacer.is_some() && self.requests.in_flight > 0;
        let timeout = if left <= early || awaits {
            EpollTimeout::ZERO
        } else {
            if let Err(e) = self.timer.set(until - early, now) {
                let message = format!("cannot set the timer: {e}");
                return self.shared.fail(ErrorClass::Other, message);
            }
            EpollTimeout::NONE
        };
        let polls = timeout == EpollTimeout::ZERO;
        let mut events = [EpollEvent::empty(); 128];
        let count = match self.epoll.wait(&mut events, timeout) {
            Ok(count) => count,
            Err(Errno::EINTR) => 0,
            Err(e) => {
                let message = format!("waiting for the sockets failed: {e}");
                return self.shared.fail(ErrorClass::Other, message);
            }
        };
        if self.shared.ended_during_pause(now) {
            return;
        }
        if polls && count == 0 {
            self.spinning.found_nothing(now, self.requests.drawn);
        }
        for event in &events[..count] {
            match event.data() {
                TIMER => {
                    self.timer.clear();
                    self.adapt_early_wake(until - early);
                }
                token => self.on_event(token as usize, event.events()),
            }
        }
    }

    /// Adapts the wake-up to the lateness of one planned at `at_ns`: earlier at once, later slowly.
    fn adapt_early_wake(&mut self, at_ns: u64) {
        let late = self.shared.now_ns().saturating_sub(at_ns) * 5 / 4;
        let wanted =
            if late > self.early_ns { late } else { self.early_ns - (self.early_ns - late) / 32 };
        self.early_ns = wanted.clamp(*EARLY_NS.start(), *EARLY_NS.end());
    }
}
