//! Making connections, and bearing their loss.

use std::io;

use model::ErrorClass;
use nix::sys::epoll::{EpollEvent, EpollFlags};

use super::connection::{Pending, State};
use super::protocol::Parser;
use super::stream::Stream;
use super::work::Drawn;
use super::worker::{TICK_NS, Worker};

/// Connections that a thread opens at the same time: a server's backlog is not endless.
const OPENING_MAX: usize = 64;
const RETRY_NS_FIRST: u64 = 10_000_000;
const RETRY_NS_MAX: u64 = 1_000_000_000;
/// How long a connection may take to be made, however long its requests may take.
const OPENING_NS_MAX: u64 = 30_000_000_000;
/// How often each connection is looked at within a time-out.
const LOOKS_A_TIMEOUT: u64 = 8;
/// Ticks within which each is looked at, however long the time-out.
const SWEEP_TICKS_MAX: u64 = 50;

/// What a thread knows of a server.
#[derive(Clone, Debug, Default)]
pub(super) struct Node {
    /// Connections to it that can be used.
    open: u32,
    /// Since when there is none, although there was or should be; 0 where there is one.
    down_since_ns: u64,
    /// Why a connection to it broke last.
    last_fault: Option<(ErrorClass, String)>,
}

impl<P: Parser + Default> Worker<'_, P> {
    /// Opens every connection; returns when all are open, or the load has failed.
    pub(super) fn connect_all(&mut self) {
        let (mut next, mut tick_ns) = (0, self.shared.now_ns() + TICK_NS);
        while !self.shared.over() && self.open < self.connections.len() {
            while next < self.connections.len() && self.may_open() {
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
        self.opening < OPENING_MAX
    }

    /// Ends a connection on which nothing is under way, and makes it anew.
    pub(super) fn hang_up(&mut self, index: usize) {
        // One that broke meanwhile is made anew without this.
        if self.connections[index].hang_up() {
            self.open -= 1;
            self.node_of(index).open -= 1;
            self.connect(index);
        }
    }

    fn connect(&mut self, index: usize) {
        let now = self.shared.now_ns();
        let servers = self.shared.servers;
        let connection = &mut self.connections[index];
        let address = &servers.nodes[connection.node as usize];
        connection.attempts += 1;
        connection.state = State::Opening { since_ns: now };
        self.opening += 1;
        connection.watches_out = true;
        let event = watched(index, true);
        let stream = Stream::connect(address, servers.tls.as_ref())
            .and_then(|stream| Ok(self.epoll.add(&stream, event).map(|()| stream)?));
        match stream {
            Ok(stream) => connection.stream = Some(stream),
            Err(e) if e.kind() == io::ErrorKind::WouldBlock && self.may_wait(index) => {
                self.opening -= 1;
                self.connections[index].state = State::Down { retry_at_ns: now + RETRY_NS_FIRST };
            }
            Err(e) => self.broken(index, &e),
        }
    }

    /// A unix socket whose queue of new connections is full refuses at once, where TCP would try
    /// again by itself; true while there is time to do the same.
    fn may_wait(&self, index: usize) -> bool {
        let tried_ns = u64::from(self.connections[index].attempts) * RETRY_NS_FIRST;
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
        let connection = &mut self.connections[index];
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
        let connection = &mut self.connections[index];
        let Some(stream) = &connection.stream else { return };
        let opening = matches!(connection.state, State::Opening { .. });
        let done = if opening && !connection.greeted {
            stream.connected().and_then(|()| self.greet(index))
        } else {
            connection.send_rest()
        };
        if let Err(e) = done {
            // A server that has too many connections says so and hangs up, without reading.
            if opening && self.connections[index].greeted {
                self.readable(index, true);
            }
            self.broken(index, &e);
        }
    }

    /// Says what is to be said first.
    fn greet(&mut self, index: usize) -> io::Result<()> {
        let servers = self.shared.servers;
        let connection = &mut self.connections[index];
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
        let connection = &mut self.connections[index];
        connection.state = State::Open;
        if connection.lost {
            self.recorder.reconnects += 1;
        }
        connection.attempts = 0;
        let client = connection.client;
        let node = self.node_of(index);
        node.down_since_ns = 0;
        node.open += 1;
        self.opening -= 1;
        self.open += 1;
        self.may_send(client);
    }

    /// A connection broke by a fault of the socket.
    pub(super) fn broken(&mut self, index: usize, e: &io::Error) {
        let address = self.address(index);
        let opening = matches!(self.connections[index].state, State::Opening { .. });
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
        while !self.hung_up.is_empty() && !self.all_sent(now) && self.may_open() {
            let Some(client) = self.hung_up.pop_front() else { return };
            // Under a rate the next one may be under way already.
            if self.clients[client as usize].in_flight > 0 {
                continue;
            }
            self.clients[client as usize].redials_since_ns = now;
            let (nodes, first) = (self.scratch.len(), client as usize * self.scratch.len());
            for index in first..first + nodes {
                self.hang_up(index);
            }
        }
    }

    /// A connection cannot be used any more: what was under way on it is counted as failed.
    pub(super) fn lost(&mut self, index: usize, class: ErrorClass, message: String) {
        let now = self.shared.now_ns();
        let connection = &mut self.connections[index];
        match connection.state {
            State::Down { .. } => return,
            State::Opening { .. } => self.opening -= 1,
            State::Open => {
                self.open -= 1;
                self.node_of(index).open -= 1;
            }
        }
        let connection = &mut self.connections[index];
        let doubled = RETRY_NS_FIRST << connection.attempts.saturating_sub(1).min(16);
        let under_way = connection.close(now + doubled.min(RETRY_NS_MAX));
        let client = connection.client;
        for pending in under_way {
            if let Pending::Request { drawn, intended_ns, .. } = pending {
                self.ended(client, &drawn);
                if self.is_measured(intended_ns, now) {
                    let times = (intended_ns, self.measured_from_ns);
                    self.recorder.unanswered(drawn.operation as usize, class, &message, times);
                }
            }
        }
        let node = self.node_of(index);
        if node.open == 0 && node.down_since_ns == 0 {
            node.down_since_ns = now;
        }
        if !self.running || !self.shared.offer.reconnects || class == ErrorClass::Denied {
            self.shared.fail(class, message);
        } else {
            self.node_of(index).last_fault = Some((class, message));
        }
    }

    fn node_of(&mut self, index: usize) -> &mut Node {
        let node = self.connections[index].node as usize;
        &mut self.nodes[node]
    }

    /// A request of that client is over.
    pub(super) fn ended(&mut self, client: u32, drawn: &Drawn) {
        if let Some(inserted) = &mut self.inserted {
            inserted.ended(drawn);
        }
        self.under_way -= 1;
        self.clients[client as usize].in_flight -= 1;
    }

    /// Looks at time-outs and retries; done every tick.
    pub(super) fn look_after(&mut self, now: u64) {
        let timeout_ns = self.shared.offer.timeout_ns;
        if self.open + self.opening < self.connections.len() {
            self.retry(now);
        }
        self.time_out(now);
        // What the others answer stands for nothing where one server of several is gone: whoever
        // asks it next waits.
        let is_gone = |node: &&Node| {
            node.down_since_ns > 0 && now.saturating_sub(node.down_since_ns) > timeout_ns
        };
        if let Some(node) = self.nodes.iter().find(is_gone).filter(|_| self.running) {
            let unknown = || (ErrorClass::Closed, "no connection could be made".to_string());
            let (class, message) = node.last_fault.clone().unwrap_or_else(unknown);
            self.shared.fail(class, message);
        }
    }

    /// Tries again to make the connections that were tried before, where it is time.
    fn retry(&mut self, now: u64) {
        for index in 0..self.connections.len() {
            if !self.may_open() {
                return;
            }
            let connection = &self.connections[index];
            let tried = self.running || connection.attempts > 0;
            if tried
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
        for _ in 0..self.connections.len().div_ceil(ticks) {
            let index = self.next_look;
            self.next_look = (index + 1) % self.connections.len();
            let connection = &self.connections[index];
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
        let node = self.connections[index].node as usize;
        self.shared.servers.nodes[node].to_string()
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
