//! Whether anybody listens where a run is to measure, before anything is begun.

use model::{Endpoint, NetAddress, Plan};
use std::collections::BTreeMap;
use std::io;
use std::net::{TcpStream, ToSocketAddrs as _};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use crate::exit::CliError;

/// How long a connection may take.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Refuses a plan that measures only servers at addresses where none listens. Where one of several
/// can be measured, the others are told in its result.
pub(crate) fn check(plan: &Plan, endpoints: &BTreeMap<String, Endpoint>) -> Result<(), CliError> {
    let mut unreachable = Vec::new();
    for target in &plan.targets {
        // Of TLS more can be wrong than that nobody listens, and the first session says what.
        let Some(endpoint) = endpoints.get(&target.name).filter(|e| e.tls().is_none()) else {
            return Ok(());
        };
        let mut failed = None;
        for address in endpoint.addresses() {
            match connect(address) {
                Ok(()) => return Ok(()),
                Err(error) => failed = Some(format!("`{}` at {endpoint}: {error}", target.name)),
            }
        }
        // What has no address is no server.
        let Some(failed) = failed else { return Ok(()) };
        unreachable.push(failed);
    }
    if unreachable.is_empty() {
        return Ok(());
    }
    Err(CliError::target(format!("cannot connect to {}", unreachable.join("; "))))
}

fn connect(address: &NetAddress) -> io::Result<()> {
    match address {
        NetAddress::Unix(path) => UnixStream::connect(path).map(drop),
        NetAddress::Tcp(host, port) => {
            let mut last = io::Error::other("the name has no address");
            for address in (host.as_str(), *port).to_socket_addrs()? {
                match TcpStream::connect_timeout(&address, TIMEOUT) {
                    Ok(_) => return Ok(()),
                    Err(error) => last = error,
                }
            }
            Err(last)
        }
    }
}
