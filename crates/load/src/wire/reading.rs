//! Reply parsing and settlement.

use std::io;

use model::ErrorClass;

use super::connection::State;
use super::protocol::{Greeting, Judged, Parser, Plain, Step, UNSOLICITED};
use super::request::{Answered, Pending};
use super::row::Times;
use super::work::{Drawn, Read};
use super::worker::Worker;

/// Most bytes that a parser may need to see at once.
const REST_BYTES_MAX: usize = 128 << 10;
/// Key of consecutive requests that got the same reply at the same time, as requests of one write
/// mostly do.
#[derive(Clone, Copy, PartialEq, Eq)]
struct PlainReply {
    operation: u32,
    times: Times,
    plain: Plain,
}

impl<P: Parser + Default> Worker<'_, P> {
    /// Reads all bytes of a connection. After `ended` no further event comes, so a short read does
    /// not end the loop.
    pub(super) fn readable(&mut self, index: usize, ended: bool) {
        // Taken out while reading, because a reply can lead to sending, which borrows all of
        // `self`.
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
            self.requests.heard += 1;
            let drained = kept + read < inbox.len() && !ended && !stream.reads_in_records();
            connection.rest.clear();
            self.parse_replies(index, &inbox[..kept + read]);
            self.send_writes(index);
            if drained {
                return Ok(());
            }
        }
    }

    /// Parses received bytes, and settles each reply.
    fn parse_replies(&mut self, index: usize, bytes: &[u8]) {
        let now = self.shared.now_ns();
        let mut at = 0;
        while at < bytes.len() {
            if self.requests.plain {
                at += self.parse_plain_replies(index, &bytes[at..], now);
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
                None => UNSOLICITED,
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

    /// Counts the complete replies of common kinds at the start of `bytes`, if counting is all that
    /// they require; returns their length in bytes.
    fn parse_plain_replies(&mut self, index: usize, bytes: &[u8], done_ns: u64) -> usize {
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
                        PlainReply { operation: drawn.operation, times, plain }
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
            if let Some(plain_reply) = last {
                self.settle_plain(self.links.connections[index].client, plain_reply, requests);
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

    /// Whether a request counts. Under an open load its due time decides, so a backlog from the
    /// warm-up is not added to the planned requests; under a closed load its end decides.
    pub(super) fn is_measured(&self, intended_ns: u64, ended_ns: u64) -> bool {
        let at_ns = if self.requests.pacer.is_some() { intended_ns } else { ended_ns };
        at_ns >= self.clock.measured_from_ns
    }

    fn settle_plain(&mut self, client: u32, plain_reply: PlainReply, requests: u32) {
        let PlainReply { operation, times, plain } = plain_reply;
        self.requests.in_flight -= u64::from(requests);
        self.clients.all[client as usize].in_flight -= requests;
        self.record(operation as usize, &times, &plain.into(), requests);
        self.answered(client, times.done_ns);
    }

    /// Records ended requests; for those of the warm-up only that they were answered.
    fn record(&mut self, operation: usize, times: &Times, judged: &Judged, requests: u32) {
        let counted = (u64::from(requests), self.clock.measured_from_ns);
        if self.is_measured(times.intended_ns, times.done_ns) {
            self.recorder.answered(operation, times, judged, counted);
            self.last_done_ns = times.done_ns;
        } else {
            self.requests.ended_in_warmup += u64::from(requests);
            self.recorder.answered_in_warmup(operation, times.done_ns, judged, counted);
        }
    }

    /// Settles a complete reply.
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
                    // For example, that the connection limit is reached.
                    Judged::Error(class, text) => (*class, format!("{address} said `{text}`")),
                    _ => (ErrorClass::Protocol, format!("{address} sent an unexpected reply")),
                };
                self.lost(index, class, message);
            }
        }
    }

    fn hello_answered(&mut self, index: usize, greeting: Greeting, judged: &Judged) {
        let opening = matches!(self.links.connections[index].state, State::Opening { .. });
        match judged {
            // An exceeded connection limit is reported as the reply to the first request.
            Judged::Error(class, text) if !greeting.harmless || *class == ErrorClass::Refused => {
                let code = text.split(' ').next().unwrap_or_default();
                // That of an exceeded limit repeats nothing that was sent.
                let is_hidden = greeting.secret && *class != ErrorClass::Refused;
                let text = if is_hidden { code } else { text };
                let message = format!("{} answered `{text}`", self.address(index));
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
            Judged::Redirected { address, for_good } => {
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
        let succeeded = matches!(judged, Judged::Ok { .. } | Judged::Miss);
        self.keep_write(&drawn, (times.sent_ns, times.done_ns), succeeded);
        self.record(drawn.operation as usize, &times, judged, 1);
        if self.shared.offer.stop_on_error_reply {
            self.shared.fail_by(judged);
        }
        if matches!(judged, Judged::Ok { .. }) && self.follow(index, &answered) {
            return;
        }
        self.ended(client, &drawn);
        self.answered(client, times.done_ns);
    }

    /// Keeps a write that was acknowledged, or failed, if writes are kept.
    pub(super) fn keep_write(&mut self, drawn: &Drawn, (sent_ns, done_ns): (u64, u64), ok: bool) {
        let Some(written) = self.written.as_mut().filter(|_| self.shared.work.writes(drawn)) else {
            return;
        };
        if ok {
            written.acknowledged(drawn.key, drawn.n, sent_ns, done_ns);
        } else {
            written.failed(drawn.key, drawn.n);
        }
    }

    /// Appends the next chained operation on the same key, which is sent once all received replies
    /// are settled; false if there is none. Its intended start precedes its sending by the lag of
    /// the first operation, so that lag counts for each of them.
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

    /// Appends the write of a read-modify-write, which is sent once all received replies are
    /// settled.
    fn write_after(&mut self, index: usize, read: Read, answered: &Answered) {
        let drawn = answered.drawn.after(read);
        let connection = &mut self.links.connections[index];
        let scratch = &mut self.scratch[connection.node as usize];
        self.shared.work.append(&self.requests.streams, scratch, &drawn);
        let Times { intended_ns, sent_ns, .. } = answered.times;
        connection.pending.push_back(Pending::Request { drawn, intended_ns, sent_ns, hops: 0 });
    }

    /// Sends the requests appended by [`Self::write_after`] and [`Self::follow`].
    fn send_writes(&mut self, index: usize) {
        let connection = &self.links.connections[index];
        let node = connection.node as usize;
        if connection.stream.is_none() {
            self.scratch[node].clear();
        }
        self.send_scratch(index, node);
    }
}
