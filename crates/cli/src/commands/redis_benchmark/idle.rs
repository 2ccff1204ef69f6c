//! Connections that do nothing (`-I`), to see what they cost the server.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use drivers::redis::Control;

use super::arguments::Options;
use super::output::{idlers, idling};
use super::server::{self, Site};
use crate::exit::CliError;
use crate::output::{print, print_returning};

/// How often the connections are counted.
const EVERY: Duration = Duration::from_millis(250);
/// How soon a stop is noticed.
const PAUSE: Duration = Duration::from_millis(20);

/// Opens the connections and keeps them until it is stopped.
pub(super) fn idle(options: &Options, site: &Site, stop: &AtomicBool) -> Result<(), CliError> {
    let clients = options.offered.clients;
    print(&idling(clients))?;
    let mut idle: Vec<Control> = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        if idle.len() < clients as usize {
            let tls = site.servers.tls.as_ref();
            let connected = server::connect(&options.server, tls);
            idle.push(connected.map_err(|e| {
                let number = idle.len() + 1;
                CliError::failed(format!("connection {number} cannot be opened: {}", e.message))
            })?);
            continue;
        }
        if let Some(closed) = idle.iter().find(|control| !control.is_open()) {
            let address = closed.address();
            return Err(CliError::failed(format!("{address} closed an idle connection")));
        }
        print_returning(&idlers(idle.len()))?;
        let mut waited = Duration::ZERO;
        while waited < EVERY && !stop.load(Ordering::Relaxed) {
            thread::sleep(PAUSE);
            waited += PAUSE;
        }
    }
    Ok(())
}
