//! A bare loop: the cheapest possible generator, which shows the cost of kernel and wire alone.
//!
//! It waits for readable sockets, reads into a fixed buffer until a batch's replies have arrived,
//! and writes the same prepared batch again: no clock, no recording, no parsing. It has no timeout:
//! a server that does not answer blocks it forever.

use load::watch::ThreadUse;
use load::wire::Address;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use rig::pin_current_thread;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};

/// Bytes per read.
const INBOX_BYTES: usize = 256 << 10;
/// Events per `epoll_wait`.
const EVENTS: usize = 128;

/// Parameters of the loop.
#[derive(Clone, Debug)]
pub struct Bare {
    /// The server.
    pub address: Address,
    /// Number of connections, at least 1.
    pub connections: u32,
    /// Batch that each connection sends.
    pub batch: Batch,
    /// Total number of batches; each connection sends at least one.
    pub batches: u64,
    /// CPUs of its thread; if empty, the caller's.
    pub cpus: Vec<usize>,
}

/// Requests written together, and the length of their replies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// The requests.
    pub bytes: Vec<u8>,
    /// Total bytes of all replies.
    pub reply_bytes: usize,
}

impl Batch {
    /// `GET` or `SET` of the first `pipeline` keys in the Redis protocol, with values of
    /// `value_bytes`. Any operation other than `set` is a `GET`.
    pub fn redis(operation: &str, value_bytes: usize, pipeline: u32) -> Self {
        let key = |n: u32| format!("$16\r\nkey:{n:012}\r\n");
        let value = "x".repeat(value_bytes);
        let request = |n: u32| match operation {
            "set" => format!("*3\r\n$3\r\nSET\r\n{}${value_bytes}\r\n{value}\r\n", key(n)),
            _ => format!("*2\r\n$3\r\nGET\r\n{}", key(n)),
        };
        let reply_bytes = match operation {
            "set" => "+OK\r\n".len(),
            _ => format!("${value_bytes}\r\n\r\n").len() + value_bytes,
        };
        let bytes = (0..pipeline).flat_map(|n| request(n).into_bytes()).collect();
        Self { bytes, reply_bytes: reply_bytes * pipeline as usize }
    }
}

/// Result of the loop.
#[derive(Clone, Copy, Debug)]
pub struct Spent {
    /// Answered batches.
    pub batches: u64,
    /// CPU time of its thread.
    pub used: ThreadUse,
    /// From the first write to the last reply.
    pub wall: Duration,
}

impl Bare {
    /// Runs the loop in a new thread.
    pub fn run(&self) -> io::Result<Spent> {
        let run = || {
            pin_current_thread(&self.cpus).map_err(io::Error::other)?;
            self.run_here()
        };
        thread::scope(|scope| {
            let ended = scope.spawn(run).join();
            ended.unwrap_or_else(|_| Err(io::Error::other("the bare loop panicked")))
        })
    }

    fn run_here(&self) -> io::Result<Spent> {
        let epoll = Epoll::new(EpollCreateFlags::empty())?;
        let mut sockets = Vec::new();
        for n in 0..u64::from(self.connections) {
            let socket = Socket::connect(&self.address)?;
            epoll.add(&socket, EpollEvent::new(EpollFlags::EPOLLIN | EpollFlags::EPOLLET, n))?;
            sockets.push((socket, self.batch.reply_bytes));
        }
        let (before, begun) = (ThreadUse::now(), Instant::now());
        let batches = self.batches.max(sockets.len() as u64);
        for (socket, _) in &mut sockets {
            socket.write_all(&self.batch.bytes)?;
        }
        let (mut to_send, mut to_come) = (batches - sockets.len() as u64, batches);
        let mut inbox = vec![0; INBOX_BYTES];
        let mut events = [EpollEvent::empty(); EVENTS];
        while to_come > 0 {
            let count = epoll.wait(&mut events, EpollTimeout::NONE)?;
            for event in &events[..count] {
                let (socket, left) = &mut sockets[event.data() as usize];
                let read = socket.read(&mut inbox)?;
                if read == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                *left -= read.min(*left);
                if *left == 0 {
                    to_come -= 1;
                    *left = self.batch.reply_bytes;
                    if to_send > 0 {
                        socket.write_all(&self.batch.bytes)?;
                        to_send -= 1;
                    }
                }
            }
        }
        Ok(Spent { batches, used: ThreadUse::now().since(before), wall: begun.elapsed() })
    }
}

enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Socket {
    fn connect(address: &Address) -> io::Result<Self> {
        match address {
            Address::Unix(path) => UnixStream::connect(path).map(Self::Unix),
            Address::Tcp(address) => {
                let stream = TcpStream::connect(address)?;
                stream.set_nodelay(true)?;
                Ok(Self::Tcp(stream))
            }
        }
    }

    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(s) => s.read(into),
            Self::Unix(s) => s.read(into),
        }
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Tcp(s) => s.write_all(bytes),
            Self::Unix(s) => s.write_all(bytes),
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(s) => s.as_fd(),
            Self::Unix(s) => s.as_fd(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rig::reference::{Listen, NullServer, NullSettings};

    #[test]
    fn every_connection_sends_at_least_one_batch() {
        let settings = NullSettings { value_bytes: 100, ..NullSettings::default() };
        let server = NullServer::start(&settings).unwrap();
        let Listen::Tcp(address) = *server.address() else { panic!("TCP is the default") };
        for operation in ["get", "set"] {
            let before = server.served().requests;
            let batch = Batch::redis(operation, 100, 3);
            let address = Address::Tcp(address);
            let mut bare = Bare { address, connections: 4, batch, batches: 1, cpus: Vec::new() };
            assert_eq!(bare.run().unwrap().batches, 4);
            bare.batches = 10;
            let spent = bare.run().unwrap();
            assert_eq!((spent.batches, server.served().requests - before), (10, 3 * 14));
            assert!(spent.used.cpu_ns > 0 && spent.used.cpu_ns >= spent.used.user_ns / 2);
        }
    }
}
