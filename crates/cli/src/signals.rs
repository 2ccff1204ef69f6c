//! Handling of signals that end a run.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level;
use std::io;
use std::os::unix::process::parent_id;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use crate::exit::{CliError, INTERRUPTED};
use crate::output;

/// Signals that end a run.
const SIGNALS: [i32; 3] = [SIGINT, SIGTERM, SIGHUP];
/// What the first signal does, for the user.
const STOPPING: &str = "stopping after the operations in flight; Ctrl-C again exits at once";

/// How soon the end of the parent is seen.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Set by the first signal, and what the second one prints.
struct Watch {
    stop: Arc<AtomicBool>,
    last_words: Mutex<Option<String>>,
}

/// The only one of this process, once signals are watched.
static WATCH: OnceLock<Watch> = OnceLock::new();

/// Sends this process one SIGINT when its parent ends, if `CACHEDYNO_PARENT` has the parent's id.
/// The signal of prctl(2) can come once for each thread of the parent, and the second would end the
/// program at once.
pub(crate) fn end_with_parent() {
    let parent = parent_id();
    // Others have only inherited the variable.
    if std::env::var("CACHEDYNO_PARENT") != Ok(parent.to_string()) {
        return;
    }
    thread::spawn(move || {
        while parent_id() == parent {
            thread::sleep(LOOK_EVERY);
        }
        kill(Pid::this(), Signal::SIGINT)
    });
}

/// The first signal ends the run after the operations in flight. The second exits the program with
/// `last_words`, and the guard cleans up. A third exits without waiting for that output. A later
/// call replaces `last_words`.
pub(crate) fn watch_signals(last_words: Option<String>) -> Result<Arc<AtomicBool>, CliError> {
    if let Some(watch) = WATCH.get() {
        *watch.last_words.lock().unwrap_or_else(PoisonError::into_inner) = last_words;
        return Ok(watch.stop.clone());
    }
    let failed = |e: io::Error| CliError::failed(format!("cannot handle signals: {e}"));
    let is_exiting = Arc::new(AtomicBool::new(false));
    let exits = i32::from(INTERRUPTED);
    for signal in SIGNALS {
        signal_hook::flag::register_conditional_shutdown(signal, exits, is_exiting.clone())
            .map_err(failed)?;
    }
    let mut signals = Signals::new(SIGNALS).map_err(failed)?;
    let watch = WATCH.get_or_init(|| Watch {
        stop: Arc::new(AtomicBool::new(false)),
        last_words: Mutex::new(last_words),
    });
    thread::spawn(move || {
        for _ in signals.forever() {
            let is_second = watch.stop.swap(true, Ordering::Relaxed);
            is_exiting.store(is_second, Ordering::Relaxed);
            let last_words = watch.last_words.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(words) = &*last_words {
                let line_end = if output::stderr_is_terminal() { "\n" } else { "" };
                let words = if is_second { words } else { STOPPING };
                output::say(&format!("{line_end}{words}"));
            }
            if is_second {
                low_level::exit(exits);
            }
        }
    });
    Ok(watch.stop.clone())
}
