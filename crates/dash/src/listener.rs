//! Where a run is watched.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};

/// Why a run cannot be watched there.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The text is no address.
    #[error("`{0}` is not an address (expected IP:PORT, as in 127.0.0.1:9464)")]
    Address(String),
    /// Someone else listens there.
    #[error(
        "port `{port}` of {ip} is taken by another program (expected a free one; 0 takes any that \
         is free)"
    )]
    Taken {
        /// The address.
        ip: IpAddr,
        /// The port that is taken.
        port: u16,
    },
    /// The address is that of another machine.
    #[error(
        "`{0}` is not an address of this machine (expected one of its own; 127.0.0.1 for readers \
         on this machine, 0.0.0.0 for all)"
    )]
    NotOurs(IpAddr),
    /// Anything else that the system objects to.
    #[error("`{address}` cannot be listened on: {source} (expected a port of 1024 or more)")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system says.
        source: io::Error,
    },
    /// The server's thread or its event loop cannot be had.
    #[error("the server cannot be started: {0}")]
    Start(io::Error),
}

/// An address that is listened on, and not answered yet.
#[derive(Debug)]
pub struct Listener {
    pub(crate) socket: TcpListener,
    address: SocketAddr,
}

impl Listener {
    /// Takes an address such as `127.0.0.1:9464` or `[::1]:0`; `localhost` is 127.0.0.1, and port 0
    /// any that is free.
    pub fn bind(text: &str) -> Result<Self, ServeError> {
        let address = read(text).ok_or_else(|| ServeError::Address(text.into()))?;
        let bound = TcpListener::bind(address).and_then(|socket| {
            let address = socket.local_addr()?;
            Ok(Self { socket, address })
        });
        bound.map_err(|source| match source.kind() {
            ErrorKind::AddrInUse => ServeError::Taken { ip: address.ip(), port: address.port() },
            ErrorKind::AddrNotAvailable => ServeError::NotOurs(address.ip()),
            _ => ServeError::Listen { address, source },
        })
    }

    /// The address, with the port that was taken.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// True where only this machine can read.
    pub fn is_private(&self) -> bool {
        self.address.ip().is_loopback()
    }
}

fn read(text: &str) -> Option<SocketAddr> {
    match text.strip_prefix("localhost:") {
        Some(port) => Some((Ipv4Addr::LOCALHOST, port.parse().ok()?).into()),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_an_ip_and_a_port() {
        for good in ["127.0.0.1:0", "localhost:0", "0.0.0.0:0"] {
            let listener = Listener::bind(good).unwrap();
            assert_ne!(listener.address().port(), 0);
            assert_eq!(listener.is_private(), !good.starts_with('0'), "{good}");
        }
        for bad in ["", "9464", ":9464", "127.0.0.1", "127.0.0.1:x", "localhost:70000", "a.b:1"] {
            let refused = Listener::bind(bad).unwrap_err().to_string();
            assert!(refused.contains(&format!("`{bad}` is not an address")), "{refused}");
        }
    }

    #[test]
    fn a_taken_port_and_a_foreign_address_say_so() {
        let first = Listener::bind("127.0.0.1:0").unwrap();
        let port = first.address().port();
        let refused = Listener::bind(&format!("127.0.0.1:{port}")).unwrap_err().to_string();
        assert!(refused.starts_with(&format!("port `{port}` of 127.0.0.1 is taken")), "{refused}");
        // Set aside for documentation (RFC 5737): nobody has it.
        let refused = Listener::bind("192.0.2.1:9464").unwrap_err().to_string();
        assert!(refused.starts_with("`192.0.2.1` is not an address of this machine"), "{refused}");
    }
}
