//! Where servers are.

use model::{Endpoint, NetAddress};
use std::net::{SocketAddr, ToSocketAddrs as _};

/// Address of a server, of several that of the first; `None` where it is not reached by TCP.
pub(crate) fn address(endpoint: &Endpoint) -> Option<SocketAddr> {
    match endpoint.addresses().first()? {
        NetAddress::Tcp(host, port) => (host.as_str(), *port).to_socket_addrs().ok()?.next(),
        NetAddress::Unix(_) => None,
    }
}

/// Where a server is, for people.
pub(crate) fn place(server: &Endpoint) -> String {
    address(server).map_or_else(|| server.to_string(), |address| address.to_string())
}
