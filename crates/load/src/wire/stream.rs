//! One non-blocking connection: TCP, a unix socket, or TLS over TCP.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrIn, SockaddrIn6, UnixAddr, connect, getsockopt,
    setsockopt, socket, sockopt,
};
use rustls::ClientConnection;
use rustls::pki_types::ServerName;

/// Resolved address of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// IP address and port.
    Tcp(SocketAddr),
    /// Path of a unix socket.
    Unix(PathBuf),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix socket {}", path.display()),
        }
    }
}

/// TLS settings for a server.
#[derive(Clone, Debug)]
pub struct Tls {
    /// Roots, client certificate and versions.
    pub config: Arc<rustls::ClientConfig>,
    /// The name that the server's certificate must have, sent as SNI.
    pub name: ServerName<'static>,
}

/// A non-blocking connection.
#[derive(Debug)]
pub(crate) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
    Tls(Box<TlsStream>),
}

/// A TLS session and its socket.
#[derive(Debug)]
pub(crate) struct TlsStream {
    session: ClientConnection,
    socket: TcpStream,
}

impl Stream {
    /// Starts to connect; the socket becomes writable when that is done or has failed.
    pub(crate) fn connect(address: &Address, tls: Option<&Tls>) -> io::Result<Self> {
        let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
        match address {
            Address::Unix(path) => {
                let fd = socket(AddressFamily::Unix, SockType::Stream, flags, None)?;
                started(connect(fd.as_raw_fd(), &UnixAddr::new(path)?))?;
                Ok(Self::Unix(UnixStream::from(fd)))
            }
            Address::Tcp(address) => {
                let socket = tcp(*address, flags)?;
                let Some(tls) = tls else { return Ok(Self::Tcp(socket)) };
                let session = ClientConnection::new(tls.config.clone(), tls.name.clone());
                let session = session.map_err(io::Error::other)?;
                Ok(Self::Tls(Box::new(TlsStream { session, socket })))
            }
        }
    }

    /// The error if connecting failed.
    pub(crate) fn connected(&self) -> io::Result<()> {
        match getsockopt(&self.as_fd(), sockopt::SocketError)? {
            0 => Ok(()),
            number => Err(io::Error::from_raw_os_error(number)),
        }
    }

    /// Reads the available bytes; 0 at the end of the stream. Except with TLS, a short read means
    /// that no more bytes are available.
    pub(crate) fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(s) => s.read(into),
            Self::Unix(s) => s.read(into),
            Self::Tls(s) => s.read(into),
        }
    }

    /// True if a short read does not mean that all bytes were read.
    pub(crate) fn reads_in_records(&self) -> bool {
        matches!(self, Self::Tls(_))
    }

    /// Writes what fits; returns the number of bytes accepted.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(s) => s.write(bytes),
            Self::Unix(s) => s.write(bytes),
            Self::Tls(s) => s.write(bytes),
        }
    }

    /// True if the TLS session has bytes that the socket has not accepted yet.
    pub(crate) fn has_unsent(&self) -> bool {
        matches!(self, Self::Tls(tls) if tls.session.wants_write())
    }

    /// Sends the remaining bytes of a TLS session once the socket is writable.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Tls(s) => s.send(),
            Self::Tcp(_) | Self::Unix(_) => Ok(()),
        }
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(s) => s.as_fd(),
            Self::Unix(s) => s.as_fd(),
            Self::Tls(s) => s.socket.as_fd(),
        }
    }
}

impl TlsStream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.session.reader().read(into) {
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                done => return done,
            }
            if self.session.read_tls(&mut self.socket)? == 0 {
                return Ok(0);
            }
            self.session
                .process_new_packets()
                .map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))?;
            // Sends the handshake's answer; what the socket does not accept now is sent later.
            self.send()?;
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = self.session.writer().write(bytes)?;
        self.send()?;
        match taken {
            // The session's buffer is full.
            0 if !bytes.is_empty() => Err(io::ErrorKind::WouldBlock.into()),
            taken => Ok(taken),
        }
    }

    fn send(&mut self) -> io::Result<()> {
        while self.session.wants_write() {
            match self.session.write_tls(&mut self.socket) {
                Ok(_) => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }
}

fn tcp(address: SocketAddr, flags: SockFlag) -> io::Result<TcpStream> {
    let family = match address {
        SocketAddr::V4(_) => AddressFamily::Inet,
        SocketAddr::V6(_) => AddressFamily::Inet6,
    };
    let fd = socket(family, SockType::Stream, flags, None)?;
    setsockopt(&fd, sockopt::TcpNoDelay, &true)?;
    started(match address {
        SocketAddr::V4(v4) => connect(fd.as_raw_fd(), &SockaddrIn::from(v4)),
        SocketAddr::V6(v6) => connect(fd.as_raw_fd(), &SockaddrIn6::from(v6)),
    })?;
    Ok(TcpStream::from(fd))
}

/// Treats a connection in progress as success.
fn started(result: nix::Result<()>) -> io::Result<()> {
    match result {
        Ok(()) | Err(Errno::EINPROGRESS) => Ok(()),
        Err(e) => Err(e.into()),
    }
}
