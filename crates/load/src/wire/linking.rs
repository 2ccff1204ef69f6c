//! Connection setup, retries, timeouts and failures.

use std::io;

use model::{ErrorClass, Outage};
use nix::sys::epoll::{EpollEvent, EpollFlags};

use super::connection::{Connection, State};
use super::links::Node;
use super::protocol::Parser;
use super::request::Pending;
use super::row::Times;
use super::stream::Stream;
use super::work::Drawn;
use super::worker::{Requests, TICK_NS, Worker};

/// Connections that a thread opens concurrently; a server's backlog is limited.
const OPENING_MAX: usize = 64;
const RETRY_NS_FIRST: u64 = 10_000_000;
const RETRY_NS_MAX: u64 = 1_000_000_000;
/// Longest time between two attempts of the connection that probes a server that is down.
const PROBE_RETRY_NS_MAX: u64 = 50_000_000;
/// Longest time for opening a connection, even with a longer request timeout.
const OPENING_NS_MAX: u64 = 30_000_000_000;
/// How often each connection is checked within a timeout.
const CHECKS_PER_TIMEOUT: u64 = 8;
/// Most ticks until all connections are checked once, even with a long timeout.
const SWEEP_TICKS_MAX: u64 = 50;
/// How often servers are checked for silence. A thread that was away for longer may have missed
/// answers.
const SILENCE_CHECK_NS: u64 = 100_000_000;
/// Silence after which all threads track whether it becomes an outage.
const SUSPECTED_NS: u64 = Outage::SILENCE_NS / 2;

impl<P: Parser + Default> Worker<'_, P> {
    /// Opens all connections; returns when they are open or the load has failed.
    pub(super) fn connect_all(&mut self) {
        let (mut next, mut tick_ns) = (0, self.shared.now_ns() + TICK_NS);
        while !self.shared.is_over() && self.links.open < self.links.connections.len() {
            while next < self.links.connections.len() && self.may_open() {
                self.connect(next);
                next += 1;
            }
            self.wait(tick_ns);
            let now = self.shared.now_ns();
            if now >= tick_ns {
                tick_ns = now + TICK_NS;
                self.on_tick(now);
            }
        }
    }

    /// True if one more connection may be opened now.
    pub(super) fn may_open(&self) -> bool {
        self.links.opening < OPENING_MAX
    }

    /// Closes a connection with nothing in flight, and opens it again.
    pub(super) fn hang_up(&mut self, index: usize) {
        // A connection that broke is reopened by the retries.
        if self.links.connections[index].hang_up() {
            self.links.open -= 1;
            self.node_of(index).open -= 1;
            self.connect(index);
        }
    }

    fn connect(&mut self, index: usize) {
        let now = self.shared.now_ns();
        let servers = self.shared.servers;
        let connection = &mut self.links.connections[index];
        let address = &self.links.nodes[connection.node as usize].address;
        connection.attempts += 1;
        connection.state = State::Opening { since_ns: now };
        self.links.opening += 1;
        connection.watches_out = true;
        let event = epoll_event(index, true);
        let stream = Stream::connect(address, servers.tls.as_ref())
            .and_then(|stream| Ok(self.epoll.add(&stream, event).map(|()| stream)?));
        match stream {
            Ok(stream) => connection.stream = Some(stream),
            Err(e) if e.kind() == io::ErrorKind::WouldBlock && self.may_wait(index) => {
                self.links.opening -= 1;
                self.links.connections[index].state =
                    State::Down { retry_at_ns: now + RETRY_NS_FIRST };
            }
            Err(e) => self.broken(index, &e),
        }
    }

    /// Whether a failed connection attempt may be retried. A unix socket with a full backlog
    /// refuses immediately, while TCP would retry on its own.
    fn may_wait(&self, index: usize) -> bool {
        let tried_ns = u64::from(self.links.connections[index].attempts) * RETRY_NS_FIRST;
        tried_ns < self.shared.offer.timeout_ns
    }

    /// Handles an epoll event of a connection's socket.
    pub(super) fn on_event(&mut self, index: usize, flags: EpollFlags) {
        if flags.contains(EpollFlags::EPOLLOUT) {
            self.writable(index);
        }
        let ended = EpollFlags::EPOLLRDHUP | EpollFlags::EPOLLHUP | EpollFlags::EPOLLERR;
        if flags.intersects(ended | EpollFlags::EPOLLIN) {
            self.readable(index, flags.intersects(ended));
        }
        self.watch(index);
    }

    /// Watches for a writable socket only while something waits for that: a unix socket reports it
    /// after each read of the server.
    pub(super) fn watch(&mut self, index: usize) {
        let connection = &mut self.links.connections[index];
        let wants_out = connection.wants_out();
        if wants_out == connection.watches_out {
            return;
        }
        let Some(stream) = &connection.stream else { return };
        connection.watches_out = wants_out;
        if let Err(e) = self.epoll.modify(stream, &mut epoll_event(index, wants_out)) {
            self.broken(index, &e.into());
        }
    }

    fn writable(&mut self, index: usize) {
        let connection = &mut self.links.connections[index];
        let Some(stream) = &connection.stream else { return };
        let opening = matches!(connection.state, State::Opening { .. });
        let done = if opening && !connection.greeted {
            stream.connected().and_then(|()| self.greet(index))
        } else {
            connection.send_rest()
        };
        if let Err(e) = done {
            // A server with too many connections sends an error and closes, without reading.
            if opening && self.links.connections[index].greeted {
                self.readable(index, true);
            }
            self.broken(index, &e);
        }
    }

    /// Sends the greeting.
    fn greet(&mut self, index: usize) -> io::Result<()> {
        let servers = self.shared.servers;
        let connection = &mut self.links.connections[index];
        connection.greeted = true;
        connection.pending.extend(servers.hello_replies.iter().map(|hello| Pending::Hello(*hello)));
        connection.send(&servers.hello)?;
        if servers.hello_replies.is_empty() {
            self.opened(index);
        }
        Ok(())
    }

    /// Marks a connection as open.
    pub(super) fn opened(&mut self, index: usize) {
        let connection = &mut self.links.connections[index];
        connection.state = State::Open;
        if connection.lost {
            self.recorder.reconnects += 1;
        }
        connection.attempts = 0;
        let (client, number) = (connection.client, connection.node as usize);
        let node = self.node_of(index);
        let was_down = node.open == 0;
        node.down_since_ns = 0;
        node.open += 1;
        self.links.opening -= 1;
        self.links.open += 1;
        let now = self.shared.now_ns();
        if was_down && self.clock.running {
            self.retry_soon(number, now);
        }
        if self.shared.outages.awaits(number) {
            self.shared.outages.opened(number, now);
        }
        self.queue_if_ready(client);
    }

    /// Reconnects all clients to a server that is back, without further delay.
    fn retry_soon(&mut self, node: usize, now: u64) {
        let range = self.at(0, node)..self.at(0, node + 1);
        for connection in &mut self.links.connections[range] {
            if let State::Down { retry_at_ns } = &mut connection.state {
                *retry_at_ns = now;
            }
        }
    }

    /// Called when a server answers a request without an error.
    #[inline]
    pub(super) fn served(&mut self, index: usize, now: u64) {
        let node = self.links.connections[index].node as usize;
        if self.shared.outages.awaits(node) {
            self.shared.outages.served(node, now, |node| self.links.nodes[node].answered_ns);
        }
        self.links.nodes[node].answered_ns = now;
    }

    /// Called when a server answers a request with an error: another server may have taken over.
    pub(super) fn refused(&self, index: usize) {
        self.shared.surveying.request(None);
        let node = self.links.connections[index].node as usize;
        if self.shared.outages.awaits(node) {
            self.shared.outages.refused(node);
        }
    }

    /// Handles the failure of a connection's socket.
    pub(super) fn broken(&mut self, index: usize, e: &io::Error) {
        let address = self.address(index);
        let opening = matches!(self.links.connections[index].state, State::Opening { .. });
        let class = match e.kind() {
            io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound => ErrorClass::Refused,
            io::ErrorKind::InvalidData => ErrorClass::Protocol,
            io::ErrorKind::TimedOut => ErrorClass::Timeout,
            _ if opening => ErrorClass::Refused,
            _ => ErrorClass::Closed,
        };
        let message = match class {
            ErrorClass::Refused if e.kind() == io::ErrorKind::UnexpectedEof => {
                format!("{address} closed the connection at once (is its limit reached?)")
            }
            ErrorClass::Refused => format!("cannot connect to {address}: {}", text(e)),
            _ => format!("connection to {address} lost: {}", text(e)),
        };
        self.lost(index, class, message);
    }

    /// Reconnects clients that disconnected, if there are more requests to send.
    pub(super) fn redial(&mut self, now: u64) {
        while !self.clients.hung_up.is_empty() && !self.all_sent(now) && self.may_open() {
            let Some(client) = self.clients.hung_up.pop_front() else { return };
            // Under an open load the next request may be in flight already.
            if self.clients.all[client as usize].in_flight > 0 {
                continue;
            }
            self.clients.all[client as usize].redials_since_ns = now;
            for node in 0..self.links.nodes.len() {
                self.hang_up(self.at(client, node));
            }
        }
    }

    /// Closes a failed connection; its requests in flight count as failed.
    pub(super) fn lost(&mut self, index: usize, class: ErrorClass, message: String) {
        let now = self.shared.now_ns();
        let connection = &mut self.links.connections[index];
        let was_opening = match connection.state {
            State::Down { .. } => return,
            State::Opening { .. } => {
                self.links.opening -= 1;
                true
            }
            State::Open => {
                self.links.open -= 1;
                self.node_of(index).open -= 1;
                false
            }
        };
        let retry_at_ns = now + self.pause_ns(index);
        let in_flight = self.links.connections[index].close(retry_at_ns);
        let client = self.links.connections[index].client;
        let mut lost_ns = None;
        for pending in in_flight {
            if let Pending::Request { drawn, intended_ns, sent_ns, .. } = pending {
                lost_ns.get_or_insert(sent_ns.min(now));
                self.ended(client, &drawn);
                let times = Times { intended_ns, sent_ns: sent_ns.min(now), done_ns: now };
                self.unanswered(&drawn, &times, (class, &message));
            }
        }
        let number = self.links.connections[index].node as usize;
        let node = &mut self.links.nodes[number];
        if node.open == 0 && node.down_since_ns == 0 {
            node.down_since_ns = now;
        }
        // Any server may close an idle connection.
        let unreached_ns = (was_opening && node.open == 0).then_some(node.down_since_ns);
        let since_ns = lost_ns.or(unreached_ns).filter(|_| node.is_needed);
        if let Some(since_ns) = since_ns.filter(|_| self.clock.running) {
            self.shared.outages.lost(number, since_ns.max(node.answered_ns));
        }
        if !self.clock.running || !self.shared.offer.reconnects || class == ErrorClass::Denied {
            self.shared.fail(class, message);
        } else {
            self.node_of(index).last_fault = Some((class, message));
            self.shared.surveying.request(None);
        }
    }

    /// Delay before a lost connection is opened again. The first client retries often, so the
    /// return of a server is noticed soon.
    fn pause_ns(&self, index: usize) -> u64 {
        let connection = &self.links.connections[index];
        let most_ns = if connection.client == 0 { PROBE_RETRY_NS_MAX } else { RETRY_NS_MAX };
        let doubled = RETRY_NS_FIRST << connection.attempts.saturating_sub(1).min(16);
        doubled.min(most_ns)
    }

    /// Counts a request that was given up without an answer at `times.done_ns`.
    pub(super) fn unanswered(&mut self, drawn: &Drawn, times: &Times, failed: (ErrorClass, &str)) {
        self.keep_write(drawn, (0, 0), false);
        if self.is_measured(times.intended_ns, times.done_ns) {
            let operation = drawn.operation as usize;
            self.recorder.unanswered(operation, times, failed, self.clock.measured_from_ns);
        } else {
            self.requests.ended_in_warmup += 1;
        }
    }

    fn node_of(&mut self, index: usize) -> &mut Node {
        let node = self.links.connections[index].node as usize;
        &mut self.links.nodes[node]
    }

    /// Ends a request of a client.
    pub(super) fn ended(&mut self, client: u32, drawn: &Drawn) {
        if let Some(inserted) = &mut self.requests.inserted {
            inserted.ended(drawn);
        }
        self.requests.in_flight -= 1;
        self.clients.all[client as usize].in_flight -= 1;
    }

    /// Handles timeouts, retries and moved keys; called every tick.
    pub(super) fn on_tick(&mut self, now: u64) {
        if self.clock.running {
            self.follow_keys(now);
        }
        let mut needed = self.links.nodes.iter().filter(|node| node.is_needed);
        if needed.any(|node| (node.open as usize) < self.clients.all.len()) {
            self.retry(now);
        }
        self.time_out(now);
        if self.clock.running {
            self.show_pulse();
            self.check_down_servers(now);
            if now >= self.links.silence_checked_ns + SILENCE_CHECK_NS {
                self.detect_silence(now);
            }
        }
    }

    /// Shows the coordinator what is asked and answered.
    fn show_pulse(&self) {
        let lacking = self.links.connections.len() - self.links.open;
        let Requests { drawn, in_flight, heard, .. } = self.requests;
        self.shared.pulses[self.index].set(drawn, in_flight + lacking as u64, heard);
    }

    /// Looks for servers that leave requests waiting and answer nothing.
    fn detect_silence(&mut self, now: u64) {
        let was_away = now >= self.links.silence_checked_ns + 2 * SILENCE_CHECK_NS;
        self.links.silence_checked_ns = now;
        let several = self.links.nodes.iter().filter(|node| node.is_needed).count() > 1;
        for number in 0..self.links.nodes.len() {
            let awaited = self.shared.outages.awaits(number);
            let node = &mut self.links.nodes[number];
            if was_away {
                node.unobserved_until_ns = now;
            }
            if awaited {
                self.shared.outages.heard(number, node.answered_ns);
            }
            let since_ns = node.answered_ns.max(node.unobserved_until_ns);
            let suspected_ns = if awaited { SILENCE_CHECK_NS } else { SUSPECTED_NS };
            let may_be_silent = node.is_needed && (several || awaited);
            if !may_be_silent || now.saturating_sub(since_ns) < suspected_ns {
                continue;
            }
            let own = &self.links.connections[self.at(0, number)..self.at(0, number + 1)];
            let oldest_ns = own.iter().filter_map(Connection::oldest_sent_ns).min();
            let since_ns = oldest_ns.map(|oldest_ns| oldest_ns.max(since_ns));
            if let Some(since_ns) = since_ns
                && now.saturating_sub(since_ns) >= suspected_ns
            {
                self.shared.outages.silent(number, since_ns);
            }
        }
    }

    /// Fails the load if a needed server has been down for longer than the timeout. The answers of
    /// the other servers are not a valid result then: clients that need that server wait.
    fn check_down_servers(&self, now: u64) {
        let timeout_ns = self.shared.offer.timeout_ns;
        for node in self.links.nodes.iter().filter(|node| node.is_needed && node.down_since_ns > 0)
        {
            self.shared.surveying.request(None);
            if now.saturating_sub(node.down_since_ns) <= timeout_ns {
                continue;
            }
            let unknown = || (ErrorClass::Closed, "could not connect".to_string());
            let (class, mut message) = node.last_fault.clone().unwrap_or_else(unknown);
            if self.shared.surveying.may_change() {
                let ms = timeout_ns / 1_000_000;
                message =
                    format!("{message}, and no other server took over its keys within {ms} ms");
            }
            return self.shared.fail(class, message);
        }
    }

    /// Retries failed connections that are due.
    fn retry(&mut self, now: u64) {
        for index in 0..self.links.connections.len() {
            if !self.may_open() {
                return;
            }
            let connection = &self.links.connections[index];
            let tried = self.clock.running || connection.attempts > 0;
            if tried
                && self.links.nodes[connection.node as usize].is_needed
                && matches!(connection.state, State::Down { retry_at_ns } if retry_at_ns <= now)
            {
                self.connect(index);
            }
        }
    }

    /// Fails connections that did not answer in time. Each tick checks only a part of them: ten
    /// thousand do not fit into the CPU's cache.
    fn time_out(&mut self, now: u64) {
        let timeout_ns = self.shared.offer.timeout_ns;
        let ticks = (timeout_ns / CHECKS_PER_TIMEOUT / TICK_NS).clamp(1, SWEEP_TICKS_MAX) as usize;
        for _ in 0..self.links.connections.len().div_ceil(ticks) {
            let index = self.links.next_timeout_check;
            self.links.next_timeout_check = (index + 1) % self.links.connections.len();
            let connection = &self.links.connections[index];
            let (since, timeout_ns) = match connection.state {
                State::Down { .. } => (None, timeout_ns),
                State::Opening { since_ns } => (Some(since_ns), timeout_ns.min(OPENING_NS_MAX)),
                State::Open => (connection.oldest_sent_ns(), timeout_ns),
            };
            if since.is_some_and(|since| now.saturating_sub(since) > timeout_ns) {
                let (address, ms) = (self.address(index), timeout_ns / 1_000_000);
                let message = format!("{address} did not answer within {ms} ms");
                self.lost(index, ErrorClass::Timeout, message);
            }
        }
    }

    /// Address of a connection's server, for messages.
    pub(super) fn address(&self, index: usize) -> String {
        let node = self.links.connections[index].node as usize;
        self.links.nodes[node].address.to_string()
    }
}

/// Text of a system error, in lower case and without its number.
fn text(e: &io::Error) -> String {
    let message = e.to_string().to_lowercase();
    let message = message.split(" (os error").next().unwrap_or_default();
    match e.kind() {
        io::ErrorKind::AddrNotAvailable => format!(
            "{message} (all ports for outgoing connections may be in use: wait a minute, or use a \
             unix socket)"
        ),
        _ => message.into(),
    }
}

/// Epoll event of a connection's socket; `out` also watches for it to become writable.
fn epoll_event(index: usize, out: bool) -> EpollEvent {
    let mut edges = EpollFlags::EPOLLIN | EpollFlags::EPOLLRDHUP | EpollFlags::EPOLLET;
    edges.set(EpollFlags::EPOLLOUT, out);
    EpollEvent::new(edges, index as u64)
}
