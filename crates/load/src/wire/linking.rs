//! Making connections, and bearing their loss.

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
use super::worker::{TICK_NS, Worker};

/// Connections that a thread opens at the same time: a server's backlog is not endless.
const OPENING_MAX: usize = 64;
const RETRY_NS_FIRST: u64 = 10_000_000;
const RETRY_NS_MAX: u64 = 1_000_000_000;
/// Longest time between two attempts to reach a server that is down.
const LOOKED_FOR_NS: u64 = 50_000_000;
/// How long a connection may take to be made, however long its requests may take.
const OPENING_NS_MAX: u64 = 30_000_000_000;
/// How often each connection is looked at within a time-out.
const LOOKS_A_TIMEOUT: u64 = 8;
/// Ticks within which each is looked at, however long the time-out.
const SWEEP_TICKS_MAX: u64 = 50;
/// How often it is looked whether servers are silent; a thread that was away for longer did not
/// listen.
const LISTENS_NS: u64 = 100_000_000;
/// Silence after which it is watched by all threads whether it becomes an outage.
const SUSPECTED_NS: u64 = Outage::SILENCE_NS / 2;

impl<P: Parser + Default> Worker<'_, P> {
    /// Opens every connection; returns when all are open, or the load has failed.
    pub(super) fn connect_all(&mut self) {
        let (mut next, mut tick_ns) = (0, self.shared.now_ns() + TICK_NS);
        while !self.shared.over() && self.links.open < self.links.connections.len() {
            while next < self.links.connections.len() && self.may_open() {
                self.connect(next);
                next += 1;
            }
            self.wait(tick_ns);
            let now = self.shared.now_ns();
            if now >= tick_ns {
                tick_ns = now + TICK_NS;
                self.look_after(now);
            }
        }
    }

    /// True when one more connection may be opened now.
    pub(super) fn may_open(&self) -> bool {
        self.links.opening < OPENING_MAX
    }

    /// Ends a connection on which nothing is in flight, and makes it anew.
    pub(super) fn hang_up(&mut self, index: usize) {
        // One that broke meanwhile is made anew without this.
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
        let event = watched(index, true);
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

    /// A unix socket whose queue of new connections is full refuses at once, where TCP would try
    /// again by itself; true while there is time to do the same.
    fn may_wait(&self, index: usize) -> bool {
        let tried_ns = u64::from(self.links.connections[index].attempts) * RETRY_NS_FIRST;
        tried_ns < self.shared.offer.timeout_ns
    }

    /// Something happened to a connection's socket.
    pub(super) fn happened(&mut self, index: usize, flags: EpollFlags) {
        if flags.contains(EpollFlags::EPOLLOUT) {
            self.writable(index);
        }
        let ended = EpollFlags::EPOLLRDHUP | EpollFlags::EPOLLHUP | EpollFlags::EPOLLERR;
        if flags.intersects(ended | EpollFlags::EPOLLIN) {
            self.readable(index, flags.intersects(ended));
        }
        self.watch(index);
    }

    /// Asks to be told when the socket takes more as long as something waits for that, and not
    /// longer: a unix socket tells it each time that the server has read.
    pub(super) fn watch(&mut self, index: usize) {
        let connection = &mut self.links.connections[index];
        let wants_out = connection.wants_out();
        if wants_out == connection.watches_out {
            return;
        }
        let Some(stream) = &connection.stream else { return };
        connection.watches_out = wants_out;
        if let Err(e) = self.epoll.modify(stream, &mut watched(index, wants_out)) {
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
            // A server that has too many connections says so and hangs up, without reading.
            if opening && self.links.connections[index].greeted {
                self.readable(index, true);
            }
            self.broken(index, &e);
        }
    }

    /// Says what is to be said first.
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

    /// A connection can be used.
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
        self.may_send(client);
    }

    /// A server that was down is back: no client waits for it any longer.
    fn retry_soon(&mut self, node: usize, now: u64) {
        let range = self.at(0, node)..self.at(0, node + 1);
        for connection in &mut self.links.connections[range] {
            if let State::Down { retry_at_ns } = &mut connection.state {
                *retry_at_ns = now;
            }
        }
    }

    /// A server answered a request, and not by an error.
    #[inline]
    pub(super) fn served(&mut self, index: usize, now: u64) {
        let node = self.links.connections[index].node as usize;
        if self.shared.outages.awaits(node) {
            self.shared.outages.served(node, now, |node| self.links.nodes[node].answered_ns);
        }
        self.links.nodes[node].answered_ns = now;
    }

    /// A server answered a request by an error: another one may have taken over.
    pub(super) fn refused(&self, index: usize) {
        self.shared.surveying.want(None);
        let node = self.links.connections[index].node as usize;
        if self.shared.outages.awaits(node) {
            self.shared.outages.refused(node);
        }
    }

    /// A connection broke by a fault of the socket.
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

    /// Makes the connections of clients that hung up anew, where there is more to be sent.
    pub(super) fn redial(&mut self, now: u64) {
        while !self.clients.hung_up.is_empty() && !self.all_sent(now) && self.may_open() {
            let Some(client) = self.clients.hung_up.pop_front() else { return };
            // Under a rate the next one may be in flight already.
            if self.clients.all[client as usize].in_flight > 0 {
                continue;
            }
            self.clients.all[client as usize].redials_since_ns = now;
            for node in 0..self.links.nodes.len() {
                self.hang_up(self.at(client, node));
            }
        }
    }

    /// A connection cannot be used any more: what was in flight on it is counted as failed.
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
        // A connection that was idle may be ended by any server.
        let unreached_ns = (was_opening && node.open == 0).then_some(node.down_since_ns);
        let since_ns = lost_ns.or(unreached_ns).filter(|_| node.is_needed);
        if let Some(since_ns) = since_ns.filter(|_| self.clock.running) {
            self.shared.outages.lost(number, since_ns.max(node.answered_ns));
        }
        if !self.clock.running || !self.shared.offer.reconnects || class == ErrorClass::Denied {
            self.shared.fail(class, message);
        } else {
            self.node_of(index).last_fault = Some((class, message));
            self.shared.surveying.want(None);
        }
    }

    /// How long after its loss a connection is made anew. One to each server that is down is tried
    /// often, so that its return is seen soon.
    fn pause_ns(&self, index: usize) -> u64 {
        let connection = &self.links.connections[index];
        let most_ns = if connection.client == 0 { LOOKED_FOR_NS } else { RETRY_NS_MAX };
        let doubled = RETRY_NS_FIRST << connection.attempts.saturating_sub(1).min(16);
        doubled.min(most_ns)
    }

    /// Counts a request that was not answered and is given up when it is `done`.
    pub(super) fn unanswered(&mut self, drawn: &Drawn, times: &Times, failed: (ErrorClass, &str)) {
        self.written_as(drawn, (0, 0), false);
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

    /// A request of that client is over.
    pub(super) fn ended(&mut self, client: u32, drawn: &Drawn) {
        if let Some(inserted) = &mut self.requests.inserted {
            inserted.ended(drawn);
        }
        self.requests.in_flight -= 1;
        self.clients.all[client as usize].in_flight -= 1;
    }

    /// Looks at time-outs and retries; done every tick.
    pub(super) fn look_after(&mut self, now: u64) {
        if self.clock.running {
            self.follow_keys(now);
        }
        let mut needed = self.links.nodes.iter().filter(|node| node.is_needed);
        if needed.any(|node| (node.open as usize) < self.clients.all.len()) {
            self.retry(now);
        }
        self.time_out(now);
        if self.clock.running {
            self.bear_with(now);
            if now >= self.links.listened_ns + LISTENS_NS {
                self.listen(now);
            }
        }
    }

    /// Looks for servers that leave requests waiting and answer nothing.
    fn listen(&mut self, now: u64) {
        let was_away = now >= self.links.listened_ns + 2 * LISTENS_NS;
        self.links.listened_ns = now;
        let several = self.links.nodes.iter().filter(|node| node.is_needed).count() > 1;
        for number in 0..self.links.nodes.len() {
            let awaited = self.shared.outages.awaits(number);
            let node = &mut self.links.nodes[number];
            if was_away {
                node.unheard_ns = now;
            }
            if awaited {
                self.shared.outages.heard(number, node.answered_ns);
            }
            let since_ns = node.answered_ns.max(node.unheard_ns);
            let suspected_ns = if awaited { LISTENS_NS } else { SUSPECTED_NS };
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

    /// Looks for servers that are down. What the others answer stands for nothing where one of
    /// several is gone: whoever asks it next waits.
    fn bear_with(&self, now: u64) {
        let timeout_ns = self.shared.offer.timeout_ns;
        for node in self.links.nodes.iter().filter(|node| node.is_needed && node.down_since_ns > 0)
        {
            self.shared.surveying.want(None);
            if now.saturating_sub(node.down_since_ns) <= timeout_ns {
                continue;
            }
            let unknown = || (ErrorClass::Closed, "no connection could be made".to_string());
            let (class, mut message) = node.last_fault.clone().unwrap_or_else(unknown);
            if self.shared.surveying.may_change() {
                let ms = timeout_ns / 1_000_000;
                message = format!(
                    "{message}, and no other server was named for its keys within the time-out of \
                     {ms} ms"
                );
            }
            return self.shared.fail(class, message);
        }
    }

    /// Tries again to make the connections that were tried before, where it is time.
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

    /// Ends connections that did not answer in time. Of many it looks at a part in each tick: ten
    /// thousand do not stay in the CPU's cache.
    fn time_out(&mut self, now: u64) {
        let timeout_ns = self.shared.offer.timeout_ns;
        let ticks = (timeout_ns / LOOKS_A_TIMEOUT / TICK_NS).clamp(1, SWEEP_TICKS_MAX) as usize;
        for _ in 0..self.links.connections.len().div_ceil(ticks) {
            let index = self.links.next_look;
            self.links.next_look = (index + 1) % self.links.connections.len();
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

    /// Where the server of a connection is, for people.
    pub(super) fn address(&self, index: usize) -> String {
        let node = self.links.connections[index].node as usize;
        self.links.nodes[node].address.to_string()
    }
}

/// A system error in lower case and without its number.
fn text(e: &io::Error) -> String {
    let words = e.to_string().to_lowercase();
    let words = words.split(" (os error").next().unwrap_or_default();
    match e.kind() {
        io::ErrorKind::AddrNotAvailable => format!(
            "{words} (all ports for outgoing connections may be in use: wait a minute, or use a \
             unix socket)"
        ),
        _ => words.into(),
    }
}

/// What is to be told of a connection's socket, and whether that it takes more.
fn watched(index: usize, out: bool) -> EpollEvent {
    let mut edges = EpollFlags::EPOLLIN | EpollFlags::EPOLLRDHUP | EpollFlags::EPOLLET;
    edges.set(EpollFlags::EPOLLOUT, out);
    EpollEvent::new(edges, index as u64)
}
