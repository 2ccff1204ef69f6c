//! Listening and accepted sockets of the reference servers.

use crate::error::{Result, RigError, SOCKET_PATH_BYTES_MAX};
use nix::sys::socket::{
    Backlog, ControlMessageOwned, MsgFlags, listen, recvmsg, setsockopt, sockopt,
};
use nix::sys::time::TimeSpec;
use std::fmt;
use std::fs;
use std::io::{self, IoSliceMut, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;

/// A server's listening address. Prints as `127.0.0.1:6379`, or as the path of the socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listen {
    /// An IP address and port; port 0 selects a free one. Any address other than loopback allows
    /// remote connections.
    Tcp(SocketAddr),
    /// Path of a unix socket. It must not exist yet and is removed when the server stops.
    Unix(PathBuf),
}

impl Listen {
    /// A port on 127.0.0.1; 0 selects a free one.
    pub fn loopback(port: u16) -> Self {
        Self::Tcp((Ipv4Addr::LOCALHOST, port).into())
    }
}

impl Default for Listen {
    fn default() -> Self {
        Self::loopback(0)
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => path.display().fmt(f),
        }
    }
}

/// A non-blocking listening socket.
#[derive(Debug)]
pub(crate) struct Listener {
    inner: Inner,
    /// The bound address, with the actual port.
    address: Listen,
}

#[derive(Debug)]
enum Inner {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Listener {
    pub(crate) fn bind(at: &Listen) -> Result<Self> {
        let listen_error =
            |source| RigError::Io { doing: "listen on", what: at.to_string(), source };
        let bound = match at {
            Listen::Tcp(address) => TcpListener::bind(address).and_then(|listener| {
                listener.set_nonblocking(true)?;
                let address = Listen::Tcp(listener.local_addr()?);
                Ok(Self { inner: Inner::Tcp(listener), address })
            }),
            Listen::Unix(path) => {
                let bytes = path.as_os_str().as_bytes().len();
                if bytes > SOCKET_PATH_BYTES_MAX {
                    return Err(RigError::SocketPath { path: path.display().to_string(), bytes });
                }
                UnixListener::bind(path).and_then(|listener| {
                    listener.set_nonblocking(true)?;
                    Ok(Self { inner: Inner::Unix(listener), address: at.clone() })
                })
            }
        };
        let listener = bound.map_err(listen_error)?;
        // The standard library's backlog of 128 is too small if all clients connect at once.
        listen(&listener.as_fd(), Backlog::MAXALLOWABLE).map_err(|e| listen_error(e.into()))?;
        Ok(listener)
    }

    pub(crate) fn address(&self) -> &Listen {
        &self.address
    }

    /// The next connection; an error of kind `WouldBlock` if none is pending.
    pub(crate) fn accept(&self) -> io::Result<Socket> {
        let socket = match &self.inner {
            Inner::Tcp(listener) => {
                let stream = listener.accept()?.0;
                stream.set_nodelay(true)?;
                stream.set_nonblocking(true)?;
                Socket::Tcp(stream)
            }
            Inner::Unix(listener) => {
                let stream = listener.accept()?.0;
                stream.set_nonblocking(true)?;
                Socket::Unix(stream)
            }
        };
        Ok(socket)
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.inner {
            Inner::Tcp(listener) => listener.as_fd(),
            Inner::Unix(listener) => listener.as_fd(),
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Listen::Unix(path) = &self.address {
            // It may have been removed already.
            let _ = fs::remove_file(path);
        }
    }
}

/// An accepted, non-blocking connection.
#[derive(Debug)]
pub(crate) enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Socket {
    /// Enables the timestamps of [`Socket::read_with_arrival`]. A unix socket has none.
    pub(super) fn enable_arrival_times(&self) -> nix::Result<()> {
        match self {
            Self::Tcp(stream) => setsockopt(stream, sockopt::ReceiveTimestampns, &true),
            Self::Unix(_) => Ok(()),
        }
    }

    /// Reads once and returns the wall-clock time at which the last byte arrived. On loopback this
    /// is the time it was sent (socket(7), `SO_TIMESTAMPNS`). `control` receives the timestamp.
    pub(super) fn read_with_arrival(
        &mut self,
        into: &mut [u8],
        control: &mut [u8],
    ) -> io::Result<(usize, Option<TimeSpec>)> {
        let Self::Tcp(stream) = self else { return Ok((self.read(into)?, None)) };
        let mut parts = [IoSliceMut::new(into)];
        let (fd, flags) = (stream.as_raw_fd(), MsgFlags::empty());
        let message = recvmsg::<()>(fd, &mut parts, Some(control), flags)?;
        let arrival = message.cmsgs()?.find_map(|control| match control {
            ControlMessageOwned::ScmTimestampns(time) => Some(time),
            _ => None,
        });
        Ok((message.bytes, arrival))
    }
}

impl Read for Socket {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(into),
            Self::Unix(stream) => stream.read(into),
        }
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write(bytes),
            Self::Unix(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(stream) => stream.as_fd(),
            Self::Unix(stream) => stream.as_fd(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn binding_reports_the_port_and_fails_if_it_is_in_use() {
        let listener = Listener::bind(&Listen::default()).unwrap();
        let Listen::Tcp(address) = listener.address() else { panic!("{listener:?}") };
        assert!(address.ip().is_loopback() && address.port() != 0);
        assert_eq!(listener.accept().unwrap_err().kind(), io::ErrorKind::WouldBlock);
        let error = Listener::bind(listener.address()).unwrap_err().to_string();
        assert!(error.starts_with(&format!("cannot listen on `{address}`: ")), "{error}");
        let _client = TcpStream::connect(address).unwrap();
        assert!(matches!(listener.accept().unwrap(), Socket::Tcp(_)));
    }

    #[test]
    fn dropping_removes_the_socket_file_and_binding_never_replaces_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("server.sock");
        let at = Listen::Unix(path.clone());
        let listener = Listener::bind(&at).unwrap();
        assert_eq!(listener.address().to_string(), path.display().to_string());
        assert!(Listener::bind(&at).is_err());
        assert!(path.exists(), "the second listener removed it");
        drop(listener);
        assert!(!path.exists());
        let long = Listen::Unix(directory.path().join("x".repeat(108)));
        assert!(Listener::bind(&long).unwrap_err().to_string().contains("at most 107"));
    }
}
