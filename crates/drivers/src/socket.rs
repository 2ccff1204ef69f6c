//! A blocking connection to a server: TCP, a unix socket, or TLS over TCP.
//!
//! The time and the bytes of each reply are limited beneath all protocols, including TLS: a server
//! that sends only occasional bytes, or never stops sending, is treated as failed.

use std::fmt::Display;
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use load::wire::{Address, Tls};
use model::{ErrorClass, Failure, NetAddress};
use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockType, UnixAddr, connect, recv, setsockopt, socket,
    sockopt,
};
use nix::sys::time::TimeVal;
use workloads::store::StoreError;

use crate::bounded::Bounded;
use crate::{fault, tls, tls_fault};

/// A blocking connection. The timeout limits each read and write, and also all of them together
/// from one [`Socket::begin`] to the next.
pub(crate) enum Socket {
    Tcp(Bounded<TcpStream>),
    Unix(Bounded<UnixStream>),
    Tls(Box<tls::Blocking>),
}

impl Socket {
    /// Connects, over TLS if given; a unix socket never uses TLS.
    pub(crate) fn connect(
        address: &NetAddress,
        tls: Option<&Tls>,
        timeout: Duration,
    ) -> Result<Self, StoreError> {
        let socket = match address {
            NetAddress::Tcp(host, port) => {
                let socket = tcp(host, *port, timeout).map(|s| Bounded::new(s, timeout));
                socket.and_then(|socket| over(tls, socket))
            }
            NetAddress::Unix(path) => {
                unix(path, timeout).map(|s| Self::Unix(Bounded::new(s, timeout)))
            }
        };
        socket.map_err(|e| match tls_fault::problem(&e) {
            Some(words) => StoreError::fatal(ErrorClass::Refused, format!("{address}: {words}")),
            None => fault::connecting(&e, &address.to_string(), timeout),
        })
    }

    /// Starts a request and resets the limits of its reply.
    pub(crate) fn begin(&mut self) {
        match self {
            Self::Tcp(s) => s.begin(),
            Self::Unix(s) => s.begin(),
            Self::Tls(s) => s.sock.begin(),
        }
    }

    pub(crate) fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Tcp(s) => s.write_all(bytes),
            Self::Unix(s) => s.write_all(bytes),
            Self::Tls(s) => s.write_all(bytes).and_then(|()| s.flush()),
        }
    }

    pub(crate) fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(s) => s.read(into),
            Self::Unix(s) => s.read(into),
            Self::Tls(s) => s.read(into),
        }
    }

    /// The server's address: for a host with several, the one that answered.
    pub(crate) fn peer(&self) -> io::Result<Option<SocketAddr>> {
        match self {
            Self::Tcp(s) => s.socket.peer_addr().map(Some),
            Self::Tls(s) => s.sock.socket.peer_addr().map(Some),
            Self::Unix(_) => Ok(None),
        }
    }

    /// False once the server has closed the connection; checks without waiting.
    pub(crate) fn is_open(&self) -> bool {
        let fd = match self {
            Self::Tcp(s) => s.socket.as_raw_fd(),
            Self::Unix(s) => s.socket.as_raw_fd(),
            Self::Tls(s) => s.sock.socket.as_raw_fd(),
        };
        match recv(fd, &mut [0], MsgFlags::MSG_PEEK | MsgFlags::MSG_DONTWAIT) {
            Ok(bytes) => bytes > 0,
            Err(e) => matches!(e, Errno::EAGAIN | Errno::EINTR),
        }
    }
}

/// Connects and disconnects.
pub(crate) fn reach(address: &NetAddress, timeout: Duration) -> io::Result<()> {
    match address {
        NetAddress::Tcp(host, port) => tcp(host, *port, timeout).map(drop),
        NetAddress::Unix(path) => unix(path, timeout).map(drop),
    }
}

fn over(tls: Option<&Tls>, socket: Bounded<TcpStream>) -> io::Result<Socket> {
    match tls {
        None => Ok(Socket::Tcp(socket)),
        Some(tls) => tls::handshake(socket, tls).map(|stream| Socket::Tls(Box::new(stream))),
    }
}

fn tcp(host: &str, port: u16, timeout: Duration) -> io::Result<TcpStream> {
    let until = Instant::now() + timeout;
    let mut last = fault::unknown_host();
    for address in addresses(host, port, timeout)? {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        match TcpStream::connect_timeout(&address, left) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(timeout))?;
                stream.set_write_timeout(Some(timeout))?;
                return Ok(stream);
            }
            Err(e) => last = e,
        }
    }
    Err(last)
}

/// Resolves a host on a separate thread, which is abandoned when it exceeds the timeout: the
/// resolver itself has none.
fn addresses(host: &str, port: u16, timeout: Duration) -> io::Result<Vec<SocketAddr>> {
    if let Ok(ip) = host.parse::<IpAddr>() {
        return Ok(vec![(ip, port).into()]);
    }
    let (answer, answered) = mpsc::channel();
    let host = host.to_string();
    thread::spawn(move || {
        let found = (host.as_str(), port).to_socket_addrs().map(Iterator::collect);
        // Nobody is waiting for a late answer.
        let _ = answer.send(found);
    });
    match answered.recv_timeout(timeout) {
        Ok(found) => found.map_err(|_| fault::unknown_host()),
        Err(_) => Err(io::ErrorKind::TimedOut.into()),
    }
}

/// Sets the send timeout before connecting: it also limits a connect to a server whose backlog is
/// full.
fn unix(path: &Path, timeout: Duration) -> io::Result<UnixStream> {
    let fd = socket(AddressFamily::Unix, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)?;
    let micros = timeout.as_micros().clamp(1, i64::MAX as u128) as i64;
    let limit = TimeVal::new(micros / 1_000_000, micros % 1_000_000);
    setsockopt(&fd, sockopt::SendTimeout, &limit)?;
    setsockopt(&fd, sockopt::ReceiveTimeout, &limit)?;
    connect(fd.as_raw_fd(), &UnixAddr::new(path)?)?;
    Ok(UnixStream::from(fd))
}

/// The address of a server; the first one if it has several.
pub(crate) fn resolve(address: &NetAddress) -> Result<Address, Failure> {
    let (host, port) = match address {
        NetAddress::Unix(path) => return Ok(Address::Unix(path.clone())),
        NetAddress::Tcp(host, port) => (host.as_str(), *port),
    };
    let unknown = |e: &dyn Display| Failure {
        class: ErrorClass::Refused,
        message: format!("host `{host}` has no address: {e}"),
    };
    let mut found = (host, port).to_socket_addrs().map_err(|e| unknown(&e))?;
    found.next().map(Address::Tcp).ok_or_else(|| unknown(&"none is known"))
}
