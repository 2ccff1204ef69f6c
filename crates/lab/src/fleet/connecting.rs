//! The client's side of a connection: connects to a process that may start later.

use rustls::pki_types::ServerName;
use rustls::{ClientConnection, Connection};
use serde::de::DeserializeOwned;
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::thread;
use std::time::{Duration, Instant};

use super::FleetError;
use super::endpoint::resolved;
use super::link::{Arrived, Link};
use super::token::{DRIVER, Token};

/// How long to try to reach it.
const WITHIN: Duration = Duration::from_secs(30);
/// When to say that it is not there yet.
const TELL_AFTER: Duration = Duration::from_secs(1);
const RETRY_EVERY: Duration = Duration::from_millis(200);
const CONNECT_WITHIN: Duration = Duration::from_secs(5);

/// Connects by TLS to the `HOST:PORT` of a flag, whose certificate must be that of the token.
/// Times of pongs count from `zero`.
pub(super) fn connect<R: DeserializeOwned + Send + 'static>(
    (flag, address): (&str, &str),
    token: &Token,
    zero: Instant,
    stop: &AtomicBool,
    notice: &mut dyn FnMut(&str),
) -> Result<(Link, Receiver<Arrived<R>>), FleetError> {
    let stream = tcp(address, flag, stop, notice)?;
    let name = ServerName::try_from(DRIVER).map_err(|e| FleetError(e.to_string()))?;
    let connection = ClientConnection::new(token.client()?, name)
        .map_err(|e| FleetError(format!("cannot set up TLS: {e}")))?;
    Link::receiving(stream, Connection::Client(connection), zero)
        .map_err(|e| FleetError(format!("cannot connect to {flag} `{address}`: {e}")))
}

fn tcp(
    address: &str,
    flag: &str,
    stop: &AtomicBool,
    notice: &mut dyn FnMut(&str),
) -> Result<TcpStream, FleetError> {
    let addresses = resolved(address, flag)?;
    let (begun, mut is_told) = (Instant::now(), false);
    let until = begun + WITHIN;
    loop {
        let mut last = None;
        for address in &addresses {
            match TcpStream::connect_timeout(address, CONNECT_WITHIN) {
                Ok(stream) => return Ok(stream),
                Err(e) => last = Some(e),
            }
        }
        if Instant::now() > until || stop.load(Ordering::Relaxed) {
            let why = last.map_or_else(String::new, |e| format!(": {e}"));
            let expected = if flag == "--join" {
                "a run with --fleet listen: that waits there"
            } else {
                "`cachedyno worker --listen` there"
            };
            return Err(FleetError(format!(
                "cannot connect to {flag} `{address}` within {} s{why} (expected {expected})",
                WITHIN.as_secs()
            )));
        }
        if !is_told && begun.elapsed() > TELL_AFTER {
            is_told = true;
            let (seconds, why) =
                (WITHIN.as_secs(), last.map_or_else(String::new, |e| format!(": {e}")));
            notice(&format!("waiting up to {seconds} s for {flag} {address}{why}"));
        }
        thread::sleep(RETRY_EVERY);
    }
}
