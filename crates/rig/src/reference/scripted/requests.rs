//! Handling of new connections and requests in a scripted server.

use super::connection::{Connection, State};
use super::engine::{Action, Engine, Outcome, arrival_ns, now_ns};
use super::record::{Stamp, Tally};
use super::script::Fault;
use super::store::Corruption;
use crate::reference::listen::Socket;
use crate::reference::replies::refuse;
use crate::reference::scan::{self, Found, Protocol, Request};
use std::io::{ErrorKind, Write};
use std::mem;
use std::net::Shutdown;
use std::time::Duration;

/// Redis's reply to a connection beyond the maximum.
const TOO_MANY: &[u8] = b"-ERR max number of clients reached\r\n";
/// A line that is not a valid start of a reply in either protocol.
const MALFORMED: &[u8] = b"?malformed\r\n";
/// Length that a gigantic reply announces, and the data actually sent.
const GIGANTIC: usize = 512 << 20;
const GIGANTIC_BEGINS: &str = "xxxxxxxxxxxxxxxx";
/// Pause after a failed accept, for example if no file descriptors are left.
const PAUSE: Duration = Duration::from_millis(10);

impl Engine {
    /// Accepts all pending connections.
    pub(super) fn accept(&mut self) {
        loop {
            match self.listener.accept() {
                Ok(socket) => self.take(socket),
                Err(e) if e.kind() == ErrorKind::WouldBlock => return,
                Err(e) if e.kind() == ErrorKind::ConnectionAborted => {}
                Err(_) => return std::thread::sleep(PAUSE),
            }
        }
    }

    fn take(&mut self, mut socket: Socket) {
        self.accepted_connections += 1;
        let number = self.accepted_connections;
        let open = || self.connections.values().filter(|c| c.state != State::Refused).count();
        let is_full = self.script.connections_max.is_some_and(|most| open() as u64 >= most);
        let closes = self.script.close_on_accept;
        self.count(|tally| {
            tally.connections += 1;
            tally.closed += u64::from(closes);
            tally.refused += u64::from(is_full && !closes);
        });
        if closes {
            return;
        }
        let stalls = &self.script.connection_stalls;
        let stall_ns = stalls.iter().find(|s| s.connection == number).map(|s| s.for_ns);
        if is_full {
            // A new socket has room for a line. An error means that the client is gone.
            let _ = socket.write(TOO_MANY);
            let _ = match &socket {
                Socket::Tcp(stream) => stream.shutdown(Shutdown::Write),
                Socket::Unix(stream) => stream.shutdown(Shutdown::Write),
            };
        }
        if !self.control.is_empty() {
            // If this fails, the read time counts as the arrival.
            let _ = socket.enable_arrival_times();
        }
        let mut connection = Connection::new(socket, stall_ns.filter(|_| !is_full));
        if is_full {
            connection.state = State::Refused;
        }
        self.connections.insert(number, connection);
        self.watch(number);
    }

    fn count(&self, add: impl FnOnce(&mut Tally)) {
        add(&mut self.record().tally);
    }

    /// Reads a connection once and handles the complete requests.
    pub(super) fn receive(&mut self, number: u64) {
        let Some(connection) = self.connections.get_mut(&number) else { return };
        if let Some(stall_ns) = connection.stall_ns.take() {
            connection.state = State::Stalled;
            self.watch(number);
            self.count(|tally| tally.stalled += 1);
            return self
                .schedule_action(now_ns() + stall_ns, Action::Resume { connection: number });
        }
        match connection.read(&mut self.inbox, &mut self.control) {
            Ok((1.., arrived)) => {
                let received_ns = now_ns();
                let arrived_ns = arrived.map_or(received_ns, arrival_ns);
                self.digest(number, (arrived_ns, received_ns));
            }
            Ok(_) if matches!(connection.state, State::Hung | State::Refused) => {
                return self.remove(number);
            }
            Ok(_) => {
                connection.state = State::Ending;
                // Only a write shows whether the client has closed the connection entirely.
                return self.flush(number, now_ns());
            }
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(_) => return self.remove(number),
        }
        self.watch(number);
    }

    /// Handles the complete requests in the buffer; the last bytes arrived and were read then.
    fn digest(&mut self, number: u64, (arrived_ns, received_ns): (u64, u64)) {
        let Some(connection) = self.connections.get_mut(&number) else { return };
        let mut rest = mem::take(&mut connection.rest);
        let mut parts = mem::take(&mut self.parts);
        let mut used = 0;
        while used < rest.len() {
            let Some(connection) = self.connections.get_mut(&number) else { break };
            let bytes = &rest[used..];
            let known = connection.protocol.or_else(|| scan::protocol(bytes));
            connection.protocol = known;
            let (Some(protocol), false) = (known, connection.state == State::Ending) else { break };
            match scan::request(protocol, bytes, &mut parts) {
                Ok(Found::Incomplete { .. }) => break,
                Ok(Found::Complete { used: length }) => {
                    used += length;
                    if parts.len() > 0 {
                        let request = Request { protocol, bytes, parts: &parts };
                        self.admit(number, request, (arrived_ns, received_ns));
                    }
                }
                Err(broken) => {
                    connection.state = State::Ending;
                    connection.waiting += 1;
                    let at_ns = connection.due_ns.max(received_ns);
                    let mut refusal = Vec::new();
                    refuse(protocol, broken, &mut refusal);
                    let outcome = Outcome::Bytes(refusal);
                    self.schedule_action(at_ns, Action::Answer { connection: number, outcome });
                }
            }
        }
        rest.drain(..used);
        if let Some(connection) = self.connections.get_mut(&number) {
            connection.rest = rest;
        }
        self.parts = parts;
    }

    /// Executes a request, computes the due time of its reply and schedules the outcome.
    fn admit(&mut self, number: u64, request: Request, (arrived_ns, received_ns): (u64, u64)) {
        let Some(connection) = self.connections.get_mut(&number) else { return };
        connection.requests += 1;
        let due_ns = self.schedule.admit(arrived_ns).max(connection.due_ns);
        connection.due_ns = due_ns;
        let (requests, hung) = (connection.requests, connection.state == State::Hung);
        let stamp =
            Stamp { connection: number, request: requests, received_ns, due_ns, sent_ns: None };
        let stamp = self.record().log(stamp);
        let resets = self.script.reset_after.is_some_and(|replies| requests > replies);
        let may_fail = self.may_fail(request);
        let fault = match self.fault_sampler.draw().filter(|_| may_fail).cloned() {
            _ if hung => Some(Fault::Hang),
            _ if resets => Some(Fault::Reset),
            fault => fault,
        };
        let Some(outcome) = self.outcome(number, request, fault.as_ref(), stamp) else {
            return self.count(|tally| tally.hung += 1);
        };
        if let Some(connection) = self.connections.get_mut(&number) {
            connection.waiting += 1;
        }
        self.schedule_action(due_ns, Action::Answer { connection: number, outcome });
    }

    /// Counts the request; true if a fault with a share can affect it.
    fn may_fail(&mut self, request: Request) -> bool {
        self.accepted_requests += 1;
        let on = self.script.faults_on.as_ref();
        self.accepted_requests > self.script.faults_after
            && on.is_none_or(|name| request.is(0, name.as_bytes()))
    }

    /// Executes a request, correctly or with a fault; `None` if it gets no reply.
    fn outcome(
        &mut self,
        number: u64,
        request: Request,
        fault: Option<&Fault>,
        stamp: Option<usize>,
    ) -> Option<Outcome> {
        if let Some(Fault::Error(text)) = fault {
            self.count(|tally| tally.errors += 1);
            let bytes = error(request.protocol, text);
            return Some(Outcome::Reply { bytes, stamp });
        }
        let corruption = match fault {
            Some(Fault::Wrong) => Some(Corruption::Change),
            Some(Fault::Short) => Some(Corruption::Shorten),
            _ => None,
        };
        let connection = self.connections.get_mut(&number)?;
        let reply = self.store.answer(request, &mut connection.resp3, corruption);
        if reply.close {
            connection.state = State::Ending;
        }
        if matches!(fault, Some(Fault::Hang | Fault::Gigantic | Fault::Endless)) {
            connection.state = State::Hung;
        }
        let corrupted = reply.corruption.is_none();
        Some(match fault {
            Some(Fault::Hang) => return None,
            Some(Fault::Reset) => Outcome::Reset,
            Some(Fault::Gigantic) => {
                self.count(|tally| tally.gigantic += 1);
                Outcome::Bytes(gigantic(request))
            }
            Some(Fault::Endless) => {
                self.count(|tally| tally.endless += 1);
                Outcome::Endless(endless(request.protocol))
            }
            Some(Fault::Malformed) => {
                self.count(|tally| tally.malformed += 1);
                Outcome::Reply { bytes: MALFORMED.to_vec(), stamp }
            }
            _ => {
                self.count(|tally| match corruption {
                    Some(Corruption::Change) if corrupted => tally.wrong += 1,
                    Some(Corruption::Shorten) if corrupted => tally.short += 1,
                    _ => {}
                });
                Outcome::Reply { bytes: reply.bytes, stamp }
            }
        })
    }
}

fn error(protocol: Protocol, text: &str) -> Vec<u8> {
    match protocol {
        Protocol::Resp => format!("-{text}\r\n").into_bytes(),
        Protocol::Memcached => format!("SERVER_ERROR {text}\r\n").into_bytes(),
    }
}

fn gigantic(request: Request) -> Vec<u8> {
    match request.protocol {
        Protocol::Resp => format!("${GIGANTIC}\r\n{GIGANTIC_BEGINS}").into_bytes(),
        Protocol::Memcached => {
            let head = if request.word(0) == b"mg" { "VA" } else { "VALUE" };
            let mut bytes = format!("{head} ").into_bytes();
            if head == "VALUE" {
                bytes.extend_from_slice(request.key());
                bytes.extend_from_slice(b" 0 ");
            }
            bytes.extend_from_slice(format!("{GIGANTIC}\r\n{GIGANTIC_BEGINS}").as_bytes());
            bytes
        }
    }
}

/// The start of an endless line.
fn endless(protocol: Protocol) -> Vec<u8> {
    match protocol {
        Protocol::Resp => b"+x".to_vec(),
        Protocol::Memcached => b"VALUE x".to_vec(),
    }
}
