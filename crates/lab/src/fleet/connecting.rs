//! Connects to a process that may start later.

use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::FleetError;
use super::endpoint::resolved;

/// How long to try to reach it.
const WITHIN: Duration = Duration::from_secs(30);
const RETRY_EVERY: Duration = Duration::from_millis(200);
const CONNECT_WITHIN: Duration = Duration::from_secs(5);

/// Connects to the `HOST:PORT` of a flag.
pub(super) fn connect(
    address: &str,
    flag: &str,
    stop: &AtomicBool,
) -> Result<TcpStream, FleetError> {
    let addresses = resolved(address, flag)?;
    let until = Instant::now() + WITHIN;
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
            return Err(FleetError(format!(
                "cannot connect to {flag} `{address}` within {} s{why} (expected a cachedyno that \
                 waits there: a run with --fleet for --join, `cachedyno worker --listen` for \
                 --rig-on)",
                WITHIN.as_secs()
            )));
        }
        thread::sleep(RETRY_EVERY);
    }
}
