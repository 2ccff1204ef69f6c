//! Traffic of the network interface used to reach a server. Source: proc(5), `/proc/net/dev`.

use model::NetworkUse;
use nix::ifaddrs::{InterfaceAddress, getifaddrs};
use nix::net::if_::InterfaceFlags;
use std::fs::File;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::unix::fs::FileExt as _;

/// Bytes read from the file at once.
const PIECE_BYTES: usize = 4 << 10;

/// Reads the traffic of one interface repeatedly.
#[derive(Debug)]
pub struct InterfaceReader {
    interface: String,
    file: File,
    text: Vec<u8>,
}

impl InterfaceReader {
    /// A reader for the interface that sends packets to `address`; `None` if there is no route or
    /// interfaces cannot be read. Sends nothing.
    pub fn toward(address: SocketAddr) -> Option<Self> {
        let interface = interface_to(address)?;
        let file = File::open("/proc/net/dev").ok()?;
        Some(Self { interface, file, text: Vec::new() })
    }

    /// Traffic so far; `None` if the interface no longer exists.
    pub fn read(&mut self) -> Option<NetworkUse> {
        self.text.clear();
        loop {
            let at = self.text.len();
            self.text.resize(at + PIECE_BYTES, 0);
            let read = self.file.read_at(&mut self.text[at..], at as u64).ok()?;
            self.text.truncate(at + read);
            if let Some(found) = parse(&self.text, &self.interface) {
                return Some(found);
            }
            if read == 0 {
                return None;
            }
        }
    }
}

/// The line of an interface, if it is complete.
fn parse(text: &[u8], interface: &str) -> Option<NetworkUse> {
    let lines = text.split_inclusive(|b| *b == b'\n').filter(|line| line.ends_with(b"\n"));
    for line in lines {
        let Some((name, numbers)) = std::str::from_utf8(line).ok()?.split_once(':') else {
            continue;
        };
        if name.trim() != interface {
            continue;
        }
        // Bytes, packets, errs, drop, fifo, frame, compressed, multicast; then bytes, packets, …
        let mut numbers = numbers.split_ascii_whitespace().map(str::parse);
        let mut number = |passed| numbers.nth(passed)?.ok();
        return Some(NetworkUse {
            interface: interface.into(),
            received_bytes: number(0)?,
            received_packets: number(0)?,
            sent_bytes: number(6)?,
            sent_packets: number(0)?,
        });
    }
    None
}

/// True if packets to an address never leave this host; `None` if there is no route or it cannot be
/// determined.
pub fn stays_here(address: SocketAddr) -> Option<bool> {
    let interface = interface_to(address)?;
    let loopback = |i: InterfaceAddress| {
        i.interface_name == interface && i.flags.contains(InterfaceFlags::IFF_LOOPBACK)
    };
    Some(getifaddrs().ok()?.any(loopback))
}

/// The interface with the source address of packets to `address`.
fn interface_to(address: SocketAddr) -> Option<String> {
    let all: Vec<InterfaceAddress> = getifaddrs().ok()?.collect();
    let is_own = all.iter().any(|i| ip(i) == Some(address.ip()));
    let found = if is_own || address.ip().is_loopback() {
        // Traffic to this host uses the loopback, whatever interface has the address.
        all.into_iter().find(|i| i.flags.contains(InterfaceFlags::IFF_LOOPBACK))
    } else {
        let any: IpAddr = match address {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let socket = UdpSocket::bind((any, 0)).ok()?;
        socket.connect(address).ok()?;
        let own = socket.local_addr().ok()?.ip();
        all.into_iter().find(|i| ip(i) == Some(own))
    };
    // The label of an additional address follows a colon.
    found.map(|i| i.interface_name.split(':').next().unwrap_or_default().to_string())
}

fn ip(interface: &InterfaceAddress) -> Option<IpAddr> {
    let address = interface.address.as_ref()?;
    let v4 = address.as_sockaddr_in().map(|a| a.ip().into());
    v4.or_else(|| address.as_sockaddr_in6().map(|a| a.ip().into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};

    const TABLE: &[u8] = b"\
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs
    lo: 11 12 0 0 0 0 0 0 13 14 0 0 0 0 0 0
eth0.5:21 22 1 1 1 1 1 1 23 24 1 1 1 1 1 1
  eth0: 31 32 0 0 0 0 0 0 33 34 0";

    #[test]
    fn lines_are_found_by_the_full_interface_name() {
        let of = |name| parse(TABLE, name).map(|n| [n.received_bytes, n.sent_packets]);
        assert_eq!(of("lo"), Some([11, 14]));
        assert_eq!(of("eth0.5"), Some([21, 24]));
        // Its line is incomplete.
        assert_eq!(of("eth0"), None);
    }

    #[test]
    fn traffic_to_a_server_on_this_host_is_counted_on_the_loopback() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let mut reader = InterfaceReader::toward(address).unwrap();
        let before = reader.read().unwrap();
        let mut client = TcpStream::connect(address).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        client.write_all(&vec![7; 100_000]).unwrap();
        let mut received = vec![0; 100_000];
        server.read_exact(&mut received).unwrap();
        let after = reader.read().unwrap();
        assert!(after.sent_bytes - before.sent_bytes >= 100_000, "{before:?} {after:?}");
        assert!(after.sent_packets > before.sent_packets, "{before:?} {after:?}");
        assert!(after.received_bytes - before.received_bytes >= 100_000, "{before:?} {after:?}");
        let table = std::fs::read_to_string("/proc/net/dev").unwrap();
        assert!(table.contains(&format!("{}:", after.interface)), "{table}");
    }

    #[test]
    fn own_addresses_use_the_loopback() {
        let loopback = interface_to("127.0.0.9:1".parse().unwrap()).unwrap();
        for own in getifaddrs().unwrap().filter_map(|i| ip(&i)) {
            let found = interface_to(SocketAddr::new(own, 1)).unwrap();
            assert_eq!(found, loopback, "{own}");
        }
    }
}
