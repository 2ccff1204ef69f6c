//! Signals by which a user ends what is under way.

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::exit::{CliError, INTERRUPTED};
use crate::output;

/// The first signal ends the run after the operations in flight; the second ends the program with
/// these words, and the guard cleans up. A third does not wait for them to be read.
pub(crate) fn watch_signals(last_words: Option<String>) -> Result<Arc<AtomicBool>, CliError> {
    const SIGNALS: [i32; 3] = [SIGINT, SIGTERM, SIGHUP];
    let failed = |e: io::Error| CliError::failed(format!("signals cannot be watched: {e}"));
    let (stop, tells) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let exits = i32::from(INTERRUPTED);
    for signal in SIGNALS {
        signal_hook::flag::register_conditional_shutdown(signal, exits, tells.clone())
            .map_err(failed)?;
    }
    let mut signals = Signals::new(SIGNALS).map_err(failed)?;
    let stopped = stop.clone();
    thread::spawn(move || {
        for _ in signals.forever() {
            if stopped.swap(true, Ordering::Relaxed) {
                tells.store(true, Ordering::Relaxed);
                if let Some(words) = &last_words {
                    let from_bar = if output::says_to_terminal() { "\n" } else { "" };
                    output::say(&format!("{from_bar}{words}"));
                }
                low_level::exit(exits);
            }
        }
    });
    Ok(stop)
}
