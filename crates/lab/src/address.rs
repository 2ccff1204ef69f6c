//! Addresses of servers.

use model::{Endpoint, NetAddress};
use std::net::{SocketAddr, ToSocketAddrs as _};

/// TCP address of a server, the first if it has several; `None` without TCP.
pub(crate) fn address(endpoint: &Endpoint) -> Option<SocketAddr> {
    match endpoint.addresses().first()? {
        NetAddress::Tcp(host, port) => (host.as_str(), *port).to_socket_addrs().ok()?.next(),
        NetAddress::Unix(_) => None,
    }
}

/// Address of a server for messages.
pub(crate) fn place(server: &Endpoint) -> String {
    address(server).map_or_else(|| server.to_string(), |address| address.to_string())
}
