//! The address on which a run is served.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};

/// Why a run cannot be served on an address.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The text is not an address.
    #[error("`{0}` is not an address (expected IP:PORT, as in 127.0.0.1:9464)")]
    Address(String),
    /// Another program listens on the port.
    #[error("port `{port}` on {ip} is already in use (expected a free port; 0 picks a free one)")]
    Taken {
        /// The address.
        ip: IpAddr,
        /// The port in use.
        port: u16,
    },
    /// The address belongs to another machine.
    #[error(
        "`{0}` is not an address of this machine (use 127.0.0.1 for readers on this machine, \
         0.0.0.0 for all)"
    )]
    NotOurs(IpAddr),
    /// Any other error of the operating system.
    #[error("cannot listen on `{address}`: {source} (expected a port of 1024 or more)")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The server's thread or its event loop cannot be created.
    #[error("cannot start the server: {0}")]
    Start(io::Error),
}

/// A bound address on which no request is answered yet.
#[derive(Debug)]
pub struct Listener {
    pub(crate) socket: TcpListener,
    address: SocketAddr,
}

impl Listener {
    /// Binds an address such as `127.0.0.1:9464` or `[::1]:0`; `localhost` is 127.0.0.1, and port 0
    /// picks a free port.
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

    /// The bound address with its actual port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// True if only this machine can connect.
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
    fn a_port_in_use_and_a_foreign_address_are_reported() {
        let first = Listener::bind("127.0.0.1:0").unwrap();
        let port = first.address().port();
        let refused = Listener::bind(&format!("127.0.0.1:{port}")).unwrap_err().to_string();
        assert!(
            refused.starts_with(&format!("port `{port}` on 127.0.0.1 is already in use")),
            "{refused}"
        );
        // Reserved for documentation (RFC 5737): no machine has it.
        let refused = Listener::bind("192.0.2.1:9464").unwrap_err().to_string();
        assert!(refused.starts_with("`192.0.2.1` is not an address of this machine"), "{refused}");
    }
}
