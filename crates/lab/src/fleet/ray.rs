//! Workers on the nodes of a Ray cluster.
//!
//! Ray places processes and takes no part in the measurement: a command of the Python package asks
//! it for one bundle of CPUs per worker, each on another node, and starts `cachedyno worker` there.

use rig::{Guard, run_shell};
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::FleetError;

/// The command. The interpreter is that of the Python package if it started this program.
const COMMAND: &str = "exec \"${CACHEDYNO_PYTHON:-python3}\" -m cachedyno._ray \
    --workers \"$WORKERS\" --cpus \"$CPUS\" --join \":$PORT\" --token-file \"$TOKEN\" \
    --within \"$WITHIN\"";
/// How long the command may take to end after the workers.
const END_WITHIN: Duration = Duration::from_secs(20);

/// The command that places workers and watches them. Dropping it waits until it has ended.
#[derive(Debug)]
pub(super) struct OnRay {
    /// Closed to end the command.
    running: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
    failure: Arc<Mutex<Option<String>>>,
}

impl OnRay {
    /// Starts the command for workers that have `within` to join.
    pub(super) fn start(
        guard: &Guard,
        (workers, cpus, within): (u32, u32, Duration),
        (port, token): (u16, &Path),
    ) -> Result<Self, FleetError> {
        let program = std::env::current_exe()
            .map_err(|e| FleetError(format!("cannot find this program: {e}")))?;
        let [program, token] = [&*program, token].map(|path| path.to_string_lossy().into_owned());
        let (running, over) = channel::<()>();
        let failure = Arc::new(Mutex::default());
        let (guard, found) = (guard.clone(), Arc::clone(&failure));
        let thread = thread::spawn(move || {
            let [workers, cpus, port] = [workers.to_string(), cpus.to_string(), port.to_string()];
            let within = within.as_secs_f64().to_string();
            let variables = [
                ("CACHEDYNO", &*program),
                ("WORKERS", &*workers),
                ("CPUS", &*cpus),
                ("PORT", &*port),
                ("TOKEN", &*token),
                ("WITHIN", &*within),
            ];
            let mut until = None;
            let ended = run_shell(&guard, COMMAND, &variables, &mut |wait| {
                if let Some(until) = until {
                    thread::sleep(wait);
                    return Instant::now() > until;
                }
                if over.recv_timeout(wait) == Err(RecvTimeoutError::Disconnected) {
                    until = Some(Instant::now() + END_WITHIN);
                }
                false
            });
            if let Err(how) = ended {
                *found.lock().unwrap_or_else(PoisonError::into_inner) = Some(how);
            }
        });
        Ok(Self { running: Some(running), thread: Some(thread), failure })
    }

    /// How the command failed; `None` while it runs.
    pub(super) fn failure(&self) -> Option<String> {
        let how = self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone();
        how.map(|how| {
            let cure = if how.contains("No module named") {
                " (expected the Python package: pip install 'cachedyno[ray]'; CACHEDYNO_PYTHON \
                 names another Python)"
            } else {
                ""
            };
            format!("workers on Ray: `python3 -m cachedyno._ray` {how}{cure}")
        })
    }
}

impl Drop for OnRay {
    fn drop(&mut self) {
        self.running = None;
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been printed.
            let _ = thread.join();
        }
    }
}
