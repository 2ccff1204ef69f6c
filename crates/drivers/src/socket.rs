//! A blocking connection to a server: TCP, a unix socket, or TLS over TCP.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use load::wire::Tls;
use model::{ErrorClass, NetAddress};
use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockType, UnixAddr, connect, recv, setsockopt, socket,
    sockopt,
};
use nix::sys::time::TimeVal;
use workloads::store::StoreError;

use crate::{fault, tls};

/// Such a connection; each read and write is bounded by its time-out.
pub(crate) enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
    Tls(Box<tls::Blocking>),
}

impl Socket {
    /// Connects, over TLS where that is given; a unix socket needs none.
    pub(crate) fn connect(
        address: &NetAddress,
        tls: Option<&Tls>,
        timeout: Duration,
    ) -> Result<Self, StoreError> {
        let socket = match address {
            NetAddress::Tcp(host, port) => {
                tcp(host, *port, timeout).and_then(|socket| over(tls, socket))
            }
            NetAddress::Unix(path) => unix(path, timeout).map(Self::Unix),
        };
        socket.map_err(|e| match tls::problem(&e) {
            Some(words) => StoreError::fatal(ErrorClass::Refused, format!("{address}: {words}")),
            None => fault::connecting(e.kind(), &address.to_string(), timeout),
        })
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

    /// Where the server is: of several addresses of a host the one that answered.
    pub(crate) fn peer(&self) -> io::Result<Option<SocketAddr>> {
        match self {
            Self::Tcp(s) => s.peer_addr().map(Some),
            Self::Tls(s) => s.sock.peer_addr().map(Some),
            Self::Unix(_) => Ok(None),
        }
    }

    /// False once the server has ended the connection; looks at it without waiting.
    pub(crate) fn is_open(&self) -> bool {
        let fd = match self {
            Self::Tcp(s) => s.as_raw_fd(),
            Self::Unix(s) => s.as_raw_fd(),
            Self::Tls(s) => s.sock.as_raw_fd(),
        };
        match recv(fd, &mut [0], MsgFlags::MSG_PEEK | MsgFlags::MSG_DONTWAIT) {
            Ok(bytes) => bytes > 0,
            Err(e) => matches!(e, Errno::EAGAIN | Errno::EINTR),
        }
    }
}

fn over(tls: Option<&Tls>, socket: TcpStream) -> io::Result<Socket> {
    match tls {
        None => Ok(Socket::Tcp(socket)),
        Some(tls) => tls::secured(socket, tls).map(|stream| Socket::Tls(Box::new(stream))),
    }
}

fn tcp(host: &str, port: u16, timeout: Duration) -> io::Result<TcpStream> {
    let unknown = || io::Error::from(io::ErrorKind::AddrNotAvailable);
    let mut last = unknown();
    for address in (host, port).to_socket_addrs().map_err(|_| unknown())? {
        match TcpStream::connect_timeout(&address, timeout) {
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

/// The send time-out is set first: it also bounds a connect to a server whose backlog is full.
fn unix(path: &Path, timeout: Duration) -> io::Result<UnixStream> {
    let fd = socket(AddressFamily::Unix, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)?;
    let micros = timeout.as_micros().clamp(1, i64::MAX as u128) as i64;
    let limit = TimeVal::new(micros / 1_000_000, micros % 1_000_000);
    setsockopt(&fd, sockopt::SendTimeout, &limit)?;
    setsockopt(&fd, sockopt::ReceiveTimeout, &limit)?;
    connect(fd.as_raw_fd(), &UnixAddr::new(path)?)?;
    Ok(UnixStream::from(fd))
}
