//! Handling of signals that end a run.

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::exit::{CliError, INTERRUPTED};
use crate::output;

/// What the first signal does, for the user.
const STOPPING: &str = "stopping after the operations in flight; Ctrl-C again exits at once";

/// The first signal ends the run after the operations in flight. The second exits the program with
/// `last_words`, and the guard cleans up. A third exits without waiting for that output.
pub(crate) fn watch_signals(last_words: Option<String>) -> Result<Arc<AtomicBool>, CliError> {
    const SIGNALS: [i32; 3] = [SIGINT, SIGTERM, SIGHUP];
    let failed = |e: io::Error| CliError::failed(format!("cannot handle signals: {e}"));
    let (stop, is_exiting) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let exits = i32::from(INTERRUPTED);
    for signal in SIGNALS {
        signal_hook::flag::register_conditional_shutdown(signal, exits, is_exiting.clone())
            .map_err(failed)?;
    }
    let mut signals = Signals::new(SIGNALS).map_err(failed)?;
    let stopped = stop.clone();
    thread::spawn(move || {
        for _ in signals.forever() {
            let is_second = stopped.swap(true, Ordering::Relaxed);
            is_exiting.store(is_second, Ordering::Relaxed);
            if let Some(words) = &last_words {
                let line_end = if output::stderr_is_terminal() { "\n" } else { "" };
                let words = if is_second { words } else { STOPPING };
                output::say(&format!("{line_end}{words}"));
            }
            if is_second {
                low_level::exit(exits);
            }
        }
    });
    Ok(stop)
}
