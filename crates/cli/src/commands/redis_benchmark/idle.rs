//! Idle connections (`-I`), to measure their cost on the server.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use drivers::redis::Control;

use super::arguments::Options;
use super::output::{idle_banner, idle_count};
use super::server::{self, Deployment};
use crate::exit::CliError;
use crate::output::{print, print_with_carriage_returns};

/// Interval between updates of the connection count.
const COUNT_INTERVAL: Duration = Duration::from_millis(250);
/// Maximum delay before a stop is noticed.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Opens the connections and keeps them open until stopped. Errors: the server closes one.
pub(super) fn idle(
    options: &Options,
    deployment: &Deployment,
    stop: &AtomicBool,
) -> Result<(), CliError> {
    let clients = options.load.clients;
    print(&idle_banner(clients))?;
    let mut idle: Vec<Control> = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        if idle.len() < clients as usize {
            let tls = deployment.servers.tls.as_ref();
            let connected = server::connect(&options.server, tls);
            idle.push(connected.map_err(|e| {
                let number = idle.len() + 1;
                CliError::failed(format!("cannot open connection {number}: {}", e.message))
            })?);
            continue;
        }
        if let Some(closed) = idle.iter().find(|control| !control.is_open()) {
            let address = closed.address();
            return Err(CliError::failed(format!("{address} closed an idle connection")));
        }
        print_with_carriage_returns(&idle_count(idle.len()))?;
        let mut waited = Duration::ZERO;
        while waited < COUNT_INTERVAL && !stop.load(Ordering::Relaxed) {
            thread::sleep(POLL_INTERVAL);
            waited += POLL_INTERVAL;
        }
    }
    Ok(())
}
