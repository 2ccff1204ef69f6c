//! Taking in replies.

use std::io;

use model::ErrorClass;

use super::connection::State;
use super::protocol::{Greeting, Judged, Parser, Plain, Step, UNASKED};
use super::request::{Answered, Pending};
use super::row::Times;
use super::work::{Drawn, Read};
use super::worker::Worker;

/// Longest piece that a parser may ask to see at once.
const REST_BYTES_MAX: usize = 128 << 10;
/// Requests that follow each other and were answered in the same way at the same time, as those of
/// one write mostly are.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Alike {
    operation: u32,
    times: Times,
    plain: Plain,
}

impl<P: Parser + Default> Worker<'_, P> {
    /// Reads all that a connection has. Where it has `ended`, that is not told again: then a short
    /// read does not stand for the last one.
    pub(super) fn readable(&mut self, index: usize, ended: bool) {
        // Lent out for the time of reading: a reply leads to sending, which needs all the rest.
        let mut inbox = std::mem::take(&mut self.inbox);
        if let Err(e) = self.read(index, &mut inbox, ended) {
            self.broken(index, &e);
        }
        self.inbox = inbox;
    }

    fn read(&mut self, index: usize, inbox: &mut [u8], ended: bool) -> io::Result<()> {
        loop {
            let connection = &mut self.links.connections[index];
            let Some(stream) = &mut connection.stream else { return Ok(()) };
            let kept = connection.rest.len();
            inbox[..kept].copy_from_slice(&connection.rest);
            let read = match stream.read(&mut inbox[kept..]) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(n) => n,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => return Err(e),
            };
            let drained = kept + read < inbox.len() && !ended && !stream.reads_in_records();
            connection.rest.clear();
            self.take_in(index, &inbox[..kept + read]);
            self.send_writes(index);
            if drained {
                return Ok(());
            }
        }
    }

    /// Parses what was read, and settles each reply.
    fn take_in(&mut self, index: usize, bytes: &[u8]) {
        let now = self.shared.now_ns();
        let mut at = 0;
        while at < bytes.len() {
            if self.requests.plain {
                at += self.take_in_plain(index, &bytes[at..], now);
            }
            if at == bytes.len() {
                return;
            }
            let connection = &mut self.links.connections[index];
            if connection.stream.is_none() {
                return;
            }
            let expect = match connection.pending.front() {
                Some(Pending::Request { drawn, .. }) => self.shared.work.expect(drawn),
                Some(Pending::Hello(greeting)) => greeting.expect,
                None => UNASKED,
            };
            let step = connection.parser.advance(&bytes[at..], &expect, &self.shared.work.values);
            match step {
                Ok(Step::Whole { used, judged }) => {
                    at += used;
                    self.settle(index, &judged, now);
                }
                Ok(Step::More { used }) if bytes.len() - at - used <= REST_BYTES_MAX => {
                    connection.rest.extend_from_slice(&bytes[at + used..]);
                    return;
                }
                Ok(Step::More { .. }) => {
                    let message = format!("{} sent an endless reply", self.address(index));
                    return self.lost(index, ErrorClass::Protocol, message);
                }
                Err(malformed) => {
                    let message = format!("{}: {malformed}", self.address(index));
                    return self.lost(index, ErrorClass::Protocol, message);
                }
            }
        }
    }

    /// Takes in the replies at the start of `bytes` that are whole and of the most frequent kinds,
    /// where nothing follows from them but counting; how many bytes they have.
    fn take_in_plain(&mut self, index: usize, bytes: &[u8], done_ns: u64) -> usize {
        let work = self.shared.work;
        let (mut at, mut last, mut requests) = (0, None, 0);
        loop {
            let connection = &mut self.links.connections[index];
            let reply = match connection.pending.front() {
                Some(Pending::Request { drawn, intended_ns, sent_ns, .. }) if at < bytes.len() => {
                    let expect = work.expect(drawn);
                    let taken = connection.parser.at_once(&bytes[at..], &expect, &work.values);
                    taken.map(|(used, plain)| {
                        at += used;
                        let (intended_ns, sent_ns) = (*intended_ns, *sent_ns);
                        if let (Some(written), Plain::Ok { .. }) = (&mut self.written, plain)
                            && work.writes(drawn)
                        {
                            written.acknowledged(drawn.key, drawn.n, sent_ns, done_ns);
                        }
                        let times = Times { intended_ns, sent_ns, done_ns };
                        Alike { operation: drawn.operation, times, plain }
                    })
                }
                _ => None,
            };
            if reply.is_some() {
                connection.pending.pop_front();
                if reply == last {
                    requests += 1;
                    continue;
                }
            }
            if let Some(alike) = last {
                self.plainly_answered(self.links.connections[index].client, alike, requests);
            }
            if reply.is_none() {
                if at > 0 {
                    self.served(index, done_ns);
                }
                return at;
            }
            (last, requests) = (reply, 1);
        }
    }

    /// Whether a request counts: under a plan by when it was due, so that what waits at the end of
    /// the warm-up is not added to what is planned behind it, else by when it ended.
    pub(super) fn is_measured(&self, intended_ns: u64, ended_ns: u64) -> bool {
        let at_ns = if self.requests.pacer.is_some() { intended_ns } else { ended_ns };
        at_ns >= self.clock.measured_from_ns
    }

    fn plainly_answered(&mut self, client: u32, alike: Alike, requests: u32) {
        let Alike { operation, times, plain } = alike;
        self.requests.in_flight -= u64::from(requests);
        self.clients.all[client as usize].in_flight -= requests;
        self.record(operation as usize, &times, &plain.into(), requests);
        self.answered(client, times.done_ns);
    }

    /// Records requests that ended; of those of the warm-up only that they were answered.
    fn record(&mut self, operation: usize, times: &Times, judged: &Judged, requests: u32) {
        let counted = (u64::from(requests), self.clock.measured_from_ns);
        if self.is_measured(times.intended_ns, times.done_ns) {
            self.recorder.answered(operation, times, judged, counted);
            self.last_done_ns = times.done_ns;
        } else {
            self.requests.ended_in_warmup += u64::from(requests);
            self.recorder.answered_of_warmup(operation, times.done_ns, judged, counted);
        }
    }

    /// A reply is whole.
    fn settle(&mut self, index: usize, judged: &Judged, done_ns: u64) {
        match self.links.connections[index].pending.pop_front() {
            Some(Pending::Request { drawn, intended_ns, sent_ns, hops }) => {
                let times = Times { intended_ns, sent_ns, done_ns };
                self.request_answered(index, Answered { drawn, times, hops }, judged);
            }
            Some(Pending::Hello(greeting)) => self.hello_answered(index, greeting, judged),
            None => {
                let address = self.address(index);
                let (class, message) = match judged {
                    // Such as that it is one connection too many.
                    Judged::Error(class, words) => (*class, format!("{address} said `{words}`")),
                    _ => (
                        ErrorClass::Protocol,
                        format!("{address} sent a reply that nobody asked for"),
                    ),
                };
                self.lost(index, class, message);
            }
        }
    }

    fn hello_answered(&mut self, index: usize, greeting: Greeting, judged: &Judged) {
        let opening = matches!(self.links.connections[index].state, State::Opening { .. });
        match judged {
            // That it is one connection too many is told as the reply to whatever comes first.
            Judged::Error(class, words) if !greeting.harmless || *class == ErrorClass::Refused => {
                let code = words.split(' ').next().unwrap_or_default();
                let words = if greeting.secret { code } else { words };
                let message = format!("{} answered `{words}`", self.address(index));
                self.lost(index, *class, message);
            }
            _ if opening && self.links.connections[index].pending.is_empty() => self.opened(index),
            _ => {}
        }
    }

    fn request_answered(&mut self, index: usize, answered: Answered, judged: &Judged) {
        let Answered { drawn, times, .. } = answered;
        let client = self.links.connections[index].client;
        match judged {
            Judged::Elsewhere { address, for_good } => {
                if self.refer(client, answered, address, *for_good) {
                    return;
                }
            }
            Judged::Error(..) => self.refused(index),
            _ => self.served(index, times.done_ns),
        }
        let whole = match self.shared.work.operations[drawn.operation as usize].then {
            None => None,
            Some(_) => match (drawn.read, Read::of(judged)) {
                (None, Some(read)) => return self.write_after(index, read, &answered),
                (None, None) => None,
                (Some(read), _) => Some(read.and(judged)),
            },
        };
        let judged = whole.as_ref().unwrap_or(judged);
        let is_done = matches!(judged, Judged::Ok { .. } | Judged::Miss);
        self.written_as(&drawn, (times.sent_ns, times.done_ns), is_done);
        self.record(drawn.operation as usize, &times, judged, 1);
        if self.shared.offer.errors_end_it {
            self.shared.fail_by(judged);
        }
        if matches!(judged, Judged::Ok { .. }) && self.follow(index, &answered) {
            return;
        }
        self.ended(client, &drawn);
        self.answered(client, times.done_ns);
    }

    /// Keeps a write that was acknowledged, or failed.
    pub(super) fn written_as(&mut self, drawn: &Drawn, (sent_ns, done_ns): (u64, u64), ok: bool) {
        let Some(written) = self.written.as_mut().filter(|_| self.shared.work.writes(drawn)) else {
            return;
        };
        if ok {
            written.acknowledged(drawn.key, drawn.n, sent_ns, done_ns);
        } else {
            written.failed(drawn.key, drawn.n);
        }
    }

    /// Appends the operation that follows on the same key, to be sent when all of this reading is
    /// settled; false where none does. It is intended at the time at which it would have been sent,
    /// had the first been sent when that was: what they waited counts for each of them.
    fn follow(&mut self, index: usize, answered: &Answered) -> bool {
        let work = self.shared.work;
        let next = answered.drawn.operation as usize + 1;
        if !work.follows || next >= work.operations.len() {
            return false;
        }
        let drawn =
            work.draw_of(&self.requests.streams, answered.drawn.n, next, answered.drawn.key);
        let connection = &mut self.links.connections[index];
        let scratch = &mut self.scratch[connection.node as usize];
        work.append(&self.requests.streams, scratch, &drawn);
        let Times { intended_ns, sent_ns, done_ns } = answered.times;
        let intended_ns = done_ns - sent_ns.saturating_sub(intended_ns);
        let pending = Pending::Request { drawn, intended_ns, sent_ns: done_ns, hops: 0 };
        connection.pending.push_back(pending);
        true
    }

    /// Appends the write of a read-modify-write, to be sent when all of this reading is settled.
    fn write_after(&mut self, index: usize, read: Read, answered: &Answered) {
        let drawn = answered.drawn.after(read);
        let connection = &mut self.links.connections[index];
        let scratch = &mut self.scratch[connection.node as usize];
        self.shared.work.append(&self.requests.streams, scratch, &drawn);
        let Times { intended_ns, sent_ns, .. } = answered.times;
        connection.pending.push_back(Pending::Request { drawn, intended_ns, sent_ns, hops: 0 });
    }

    /// Sends what [`Self::write_after`] has appended.
    fn send_writes(&mut self, index: usize) {
        let connection = &self.links.connections[index];
        let node = connection.node as usize;
        if connection.stream.is_none() {
            self.scratch[node].clear();
        }
        self.send_scratch(index, node);
    }
}
