//! Where a reference server listens, and the sockets that it accepts.

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

/// Where a server listens. Prints as `127.0.0.1:6379`, or as the path of the socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listen {
    /// An IP address and port; port 0 takes one that is free. Anything but a loopback address lets
    /// others in.
    Tcp(SocketAddr),
    /// Path of a unix socket, where nothing may be yet; removed when the server stops.
    Unix(PathBuf),
}

impl Listen {
    /// This port of 127.0.0.1; 0 takes one that is free.
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

/// A socket that takes connections and never blocks.
#[derive(Debug)]
pub(super) struct Listener {
    inner: Inner,
    /// Where it really listens: with the port that was free.
    address: Listen,
}

#[derive(Debug)]
enum Inner {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Listener {
    pub(super) fn bind(at: &Listen) -> Result<Self> {
        let refused = |source| RigError::Io { doing: "listen on", what: at.to_string(), source };
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
        let listener = bound.map_err(refused)?;
        // The standard library lets 128 wait, fewer than the clients of a load that begins at once.
        listen(&listener.as_fd(), Backlog::MAXALLOWABLE).map_err(|e| refused(e.into()))?;
        Ok(listener)
    }

    pub(super) fn address(&self) -> &Listen {
        &self.address
    }

    /// The next connection; an error of kind `WouldBlock` when none waits.
    pub(super) fn accept(&self) -> io::Result<Socket> {
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
            // Who has removed it already has done no harm.
            let _ = fs::remove_file(path);
        }
    }
}

/// An accepted connection that never blocks.
#[derive(Debug)]
pub(super) enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Socket {
    /// Asks for [`Socket::read_with_arrival`]'s times. A unix socket has none.
    pub(super) fn tell_arrivals(&self) -> nix::Result<()> {
        match self {
            Self::Tcp(stream) => setsockopt(stream, sockopt::ReceiveTimestampns, &true),
            Self::Unix(_) => Ok(()),
        }
    }

    /// Reads once, and tells by the wall clock when the last of it had come, which on loopback is
    /// when it was sent (socket(7), `SO_TIMESTAMPNS`). `control` has room for that.
    pub(super) fn read_with_arrival(
        &mut self,
        into: &mut [u8],
        control: &mut [u8],
    ) -> io::Result<(usize, Option<TimeSpec>)> {
        let Self::Tcp(stream) = self else { return Ok((self.read(into)?, None)) };
        let mut parts = [IoSliceMut::new(into)];
        let (fd, flags) = (stream.as_raw_fd(), MsgFlags::empty());
        let message = recvmsg::<()>(fd, &mut parts, Some(control), flags)?;
        let told = message.cmsgs()?.find_map(|told| match told {
            ControlMessageOwned::ScmTimestampns(time) => Some(time),
            _ => None,
        });
        Ok((message.bytes, told))
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
    fn a_free_port_is_told_and_a_taken_one_refused() {
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
    fn a_socket_file_is_removed_and_never_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("server.sock");
        let at = Listen::Unix(path.clone());
        let listener = Listener::bind(&at).unwrap();
        assert_eq!(listener.address().to_string(), path.display().to_string());
        assert!(Listener::bind(&at).is_err());
        assert!(path.exists(), "the second one has removed it");
        drop(listener);
        assert!(!path.exists());
        let long = Listen::Unix(directory.path().join("x".repeat(108)));
        assert!(Listener::bind(&long).unwrap_err().to_string().contains("at most 107"));
    }
}
