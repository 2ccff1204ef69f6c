//! The processes of this host that listen at an address: servers that the run did not start.
//!
//! A listening socket has a number in `/proc/net/tcp`, `tcp6` or `unix` (proc(5)), and a process
//! has a link to it among its file descriptors, which only root and its own user can read.

use crate::procfs::processes;
use model::NetAddress;
use std::collections::BTreeSet;
use std::fs;
use std::net::IpAddr;

/// State of a listening TCP socket, and the flag of a listening Unix socket.
const TCP_LISTEN: &str = "0A";
const UNIX_LISTEN: &str = "00010000";

/// Processes that listen at these addresses on this host. Empty for other hosts, and for processes
/// of other users unless we are root.
pub fn listeners(addresses: &[NetAddress]) -> Vec<u32> {
    let read = |name: &str| fs::read_to_string(format!("/proc/net/{name}")).unwrap_or_default();
    let sockets: BTreeSet<String> = addresses
        .iter()
        .flat_map(|address| match address {
            NetAddress::Tcp(host, port) if is_loopback(host) => {
                ["tcp", "tcp6"].iter().flat_map(|name| of_port(&read(name), *port)).collect()
            }
            NetAddress::Tcp(..) => Vec::new(),
            NetAddress::Unix(path) => of_path(&read("unix"), &path.to_string_lossy()),
        })
        .map(|inode| format!("socket:[{inode}]"))
        .collect();
    if sockets.is_empty() {
        return Vec::new();
    }
    processes().filter(|pid| has_one_of(*pid, &sockets)).collect()
}

fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// Numbers of the sockets that listen on a port: second column the local address, fourth the state,
/// tenth the number.
fn of_port(table: &str, port: u16) -> Vec<String> {
    let suffix = format!(":{port:04X}");
    let of_line = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let is_own = words.get(1)?.ends_with(&suffix) && *words.get(3)? == TCP_LISTEN;
        Some((*words.get(9)?).to_string()).filter(|_| is_own)
    };
    table.lines().filter_map(of_line).collect()
}

/// Numbers of the listening sockets at a path: fourth column the flags, seventh the number, eighth
/// the path.
fn of_path(table: &str, path: &str) -> Vec<String> {
    let of_line = |line: &str| {
        let words: Vec<&str> = line.splitn(8, ' ').map(str::trim).collect();
        let is_own = *words.get(3)? == UNIX_LISTEN && *words.get(7)? == path;
        Some((*words.get(6)?).to_string()).filter(|_| is_own)
    };
    table.lines().filter_map(of_line).collect()
}

fn has_one_of(pid: u32, sockets: &BTreeSet<String>) -> bool {
    let links = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let mut targets = links.filter_map(|link| fs::read_link(link.path()).ok());
    targets.any(|target| target.to_str().is_some_and(|target| sockets.contains(target)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::os::unix::net::UnixListener;

    #[test]
    fn the_process_behind_an_address_is_found() {
        let own = std::process::id();
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = tcp.local_addr().unwrap().port();
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a b");
        let _unix = UnixListener::bind(&path).unwrap();
        for address in [
            NetAddress::Tcp("127.0.0.1".into(), port),
            NetAddress::Tcp("localhost".into(), port),
            NetAddress::Unix(path),
        ] {
            assert!(listeners(std::slice::from_ref(&address)).contains(&own), "{address}");
        }
        assert_eq!(listeners(&[NetAddress::Tcp("192.0.2.1".into(), port)]), []);
        drop(tcp);
        assert!(!listeners(&[NetAddress::Tcp("127.0.0.1".into(), port)]).contains(&own));
    }
}
