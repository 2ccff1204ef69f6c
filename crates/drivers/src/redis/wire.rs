//! One blocking connection.
//!
//! A request is encoded into one buffer and sent with one write; a reply is parsed in place in
//! another. Neither buffer is reallocated once it is large enough.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use load::wire::Tls;
use model::{Endpoint, ErrorClass, Secret};
use workloads::store::StoreError;

use super::errors::{refused, unexpected};
use super::resp::{
    BULK_BYTES_MAX, Malformed, PendingReply, Reply, Shape, Step, Tree, encode, parse, parse_tree,
};
use crate::socket::Socket;
use crate::{fault, tls};

/// Initial size of the receive buffer: a session of a few KiB fits into one read.
const INBOX_BYTES: usize = 16 << 10;

/// A blocking connection that is logged in.
pub(super) struct Wire {
    socket: Socket,
    timeout: Duration,
    out: Vec<u8>,
    /// Received bytes are `inbox[start..end]`.
    inbox: Vec<u8>,
    start: usize,
    end: usize,
}

impl Wire {
    /// Connects, over TLS if the endpoint has it, sends `AUTH` and `SELECT` if needed, and waits
    /// for a `PING`.
    pub(super) fn connect(endpoint: &Endpoint, timeout: Duration) -> Result<Self, StoreError> {
        let mut wire = Self::of(endpoint, timeout)?;
        match wire.call(&[b"PING"])? {
            // Some fake servers send the same status to every command.
            Reply::Status(_) => Ok(wire),
            other => Err(unexpected("PING", &other)),
        }
    }

    /// Connects, over TLS if the endpoint wants it, and logs in.
    pub(super) fn of(endpoint: &Endpoint, timeout: Duration) -> Result<Self, StoreError> {
        let tls = match endpoint {
            Endpoint::Redis { address, options, .. } => {
                tls::of_target(options.tls.as_ref(), address)?
            }
            _ => None,
        };
        Self::open(endpoint, tls.as_ref(), timeout)
    }

    /// Connects, over TLS if given, and sends `AUTH` and `SELECT` if needed.
    pub(super) fn open(
        endpoint: &Endpoint,
        tls: Option<&Tls>,
        timeout: Duration,
    ) -> Result<Self, StoreError> {
        let Endpoint::Redis { address, user, password, database, .. } = endpoint else {
            return Err(StoreError::fatal(ErrorClass::Other, "not a Redis endpoint"));
        };
        let socket = Socket::connect(address, tls, timeout)?;
        let mut wire = Self {
            socket,
            timeout,
            out: Vec::new(),
            inbox: vec![0; INBOX_BYTES],
            start: 0,
            end: 0,
        };
        if let Some(password) = password {
            wire.log_in(user.as_deref(), password)?;
        }
        if *database != 0 {
            wire.expect_ok(&[b"SELECT", database.to_string().as_bytes()])?;
        }
        Ok(wire)
    }

    /// The server's address: for a host with several, the one that answered.
    pub(super) fn peer(&self) -> io::Result<Option<SocketAddr>> {
        self.socket.peer()
    }

    /// False once the server has closed the connection; checks without waiting.
    pub(super) fn is_open(&self) -> bool {
        self.socket.is_open()
    }

    fn log_in(&mut self, user: Option<&str>, password: &Secret) -> Result<(), StoreError> {
        let password = password.reveal().as_bytes();
        let result = match user {
            Some(user) => self.call(&[b"AUTH", user.as_bytes(), password]),
            None => self.call(&[b"AUTH", password]),
        };
        let denied = match result? {
            Reply::Status(b"OK") => None,
            Reply::Error(words) => match refused(words) {
                e if e.class == ErrorClass::Refused => return Err(e),
                // Keep only the code of the error, since the rest can repeat the password.
                _ => Some(fault::printable(words).split(' ').next().map(String::from)),
            },
            other => return Err(unexpected("AUTH", &other)),
        };
        // Remove the password from the buffer, too.
        self.out.fill(0);
        let Some(code) = denied else { return Ok(()) };
        let message = format!(
            "the server rejected the user or the password (`{}`; expected those of the \
             target's URL)",
            code.unwrap_or_default()
        );
        Err(StoreError::fatal(ErrorClass::Denied, message))
    }

    /// Sends one request and reads its reply, which must not be an array. An error reply is
    /// returned as a reply.
    pub(super) fn call(&mut self, parts: &[&[u8]]) -> Result<Reply<'_>, StoreError> {
        self.send(parts)?;
        self.reply()
    }

    /// Sends encoded requests and leaves `batch` empty; read the replies with [`Wire::reply`] and
    /// [`Wire::elements`].
    pub(super) fn send_batch(&mut self, batch: &mut Vec<u8>) -> Result<(), StoreError> {
        let out = std::mem::replace(batch, std::mem::take(&mut self.out));
        batch.clear();
        self.send_encoded(out)
    }

    /// Reads the next reply due, which must not be an array.
    pub(super) fn reply(&mut self) -> Result<Reply<'_>, StoreError> {
        let (shape, at) = self.step()?;
        let reply = shape.reply(&self.inbox[at..self.end]);
        reply.ok_or_else(|| malformed(Malformed("an unexpected array".into())))
    }

    /// Reads the header of an array and returns the number of elements, each a reply to read. An
    /// error reply is an error.
    pub(super) fn elements(&mut self, command: &str) -> Result<usize, StoreError> {
        let (shape, at) = self.step()?;
        if let Shape::Array(elements) = shape {
            return Ok(elements);
        }
        let reply = shape.reply(&self.inbox[at..self.end]).unwrap_or(Reply::Nil);
        Err(unexpected(command, &reply))
    }

    /// Whether the next reply is an error with this code; does not consume it.
    pub(super) fn next_is_error(&mut self, code: &[u8]) -> Result<bool, StoreError> {
        let (shape, at) = self.step()?;
        let reply = shape.reply(&self.inbox[at..self.end]);
        self.start = at;
        Ok(matches!(reply, Some(Reply::Error(words)) if words.starts_with(code)))
    }

    /// Reads a reply or the header of an array, and returns it with the start of its bytes.
    fn step(&mut self) -> Result<(Shape, usize), StoreError> {
        loop {
            match parse(&self.inbox[self.start..self.end]).map_err(malformed)? {
                Step::Whole { shape, used } => {
                    let at = self.start;
                    self.start += used;
                    return Ok((shape, at));
                }
                Step::More { total } => {
                    // Consumed replies make room for the next.
                    self.inbox.copy_within(self.start..self.end, 0);
                    (self.start, self.end) = (0, self.end - self.start);
                    self.receive(total)?;
                }
            }
        }
    }

    /// Sends one request and reads its reply of any type; an error reply is an error.
    pub(super) fn ask(&mut self, parts: &[&[u8]]) -> Result<Tree, StoreError> {
        match self.exchange(parts)? {
            Tree::Error(words) => Err(refused(&words)),
            tree => Ok(tree),
        }
    }

    /// Sends one request and reads its reply of any type.
    pub(super) fn exchange(&mut self, parts: &[&[u8]]) -> Result<Tree, StoreError> {
        self.send(parts)?;
        self.tree()
    }

    /// Reads the next reply, of any type.
    fn tree(&mut self) -> Result<Tree, StoreError> {
        let mut pending = PendingReply::new();
        while let Err(total) =
            pending.is_whole(&self.inbox[self.start..self.end]).map_err(malformed)?
        {
            self.receive(total)?;
        }
        let whole = parse_tree(&self.inbox[self.start..self.end]).map_err(malformed)?;
        let (tree, used) =
            whole.ok_or_else(|| malformed(Malformed("an incomplete reply".into())))?;
        self.start += used;
        Ok(tree)
    }

    /// Sends all requests at once and reads their replies, which must fit into the socket's
    /// buffers; an error reply is an error.
    pub(super) fn all(&mut self, requests: &[Vec<&[u8]>]) -> Result<(), StoreError> {
        let mut out = Vec::new();
        for request in requests {
            encode(&mut out, request);
        }
        self.send_encoded(out)?;
        for _ in requests {
            if let Tree::Error(words) = self.tree()? {
                // Other replies are still in flight.
                return Err(StoreError { fatal: true, ..refused(&words) });
            }
        }
        Ok(())
    }

    /// Sends one request whose only success reply is `+OK`.
    pub(super) fn expect_ok(&mut self, parts: &[&[u8]]) -> Result<(), StoreError> {
        match self.call(parts)? {
            Reply::Status(b"OK") => Ok(()),
            other => Err(unexpected(&fault::printable(parts[0]), &other)),
        }
    }

    fn send(&mut self, parts: &[&[u8]]) -> Result<(), StoreError> {
        let mut out = std::mem::take(&mut self.out);
        out.clear();
        encode(&mut out, parts);
        self.send_encoded(out)
    }

    fn send_encoded(&mut self, out: Vec<u8>) -> Result<(), StoreError> {
        self.out = out;
        if self.start != self.end {
            return Err(malformed(Malformed("bytes arrived without a request".into())));
        }
        (self.start, self.end) = (0, 0);
        self.socket.begin();
        match self.socket.write_all(&self.out) {
            // The server closed the connection. A final error, such as too many clients or a
            // missing certificate, can still be read.
            Err(e) if is_closed(e.kind()) => Ok(()),
            other => other.map_err(|e| fault::connection(&e, self.timeout)),
        }
    }

    /// Reads once into a buffer with room for a reply of `total` bytes.
    fn receive(&mut self, total: usize) -> Result<(), StoreError> {
        // Consumed replies make room for the next.
        self.inbox.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        if total > self.inbox.len() || self.end == self.inbox.len() {
            if total > BULK_BYTES_MAX + INBOX_BYTES {
                return Err(malformed(Malformed(format!("a reply of {total} bytes"))));
            }
            self.inbox.resize(total.max(self.inbox.len() + INBOX_BYTES), 0);
        }
        loop {
            match self.socket.read(&mut self.inbox[self.end..]) {
                Ok(0) => {
                    let e = io::Error::from(io::ErrorKind::UnexpectedEof);
                    return Err(fault::connection(&e, self.timeout));
                }
                Ok(n) => {
                    self.end += n;
                    return Ok(());
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(fault::connection(&e, self.timeout)),
            }
        }
    }
}

/// True if a write failed because the server had closed the connection.
fn is_closed(kind: io::ErrorKind) -> bool {
    matches!(kind, io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
}

fn malformed(Malformed(message): Malformed) -> StoreError {
    let expected = if message.contains("(expected") { "" } else { " (expected RESP2)" };
    StoreError::fatal(ErrorClass::Protocol, format!("{message}{expected}"))
}
