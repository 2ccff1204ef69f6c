//! Busy handler for statements that find the database locked: the same pauses as in SQLite's own
//! handler, which PDO uses, but it records that it paused.
//!
//! The library calls a plain function on the thread of the statement, so the state is thread-local.

use std::cell::Cell;
use std::thread;
use std::time::Duration;

/// Pauses before each retry, milliseconds; the last one repeats. Source:
/// `sqliteDefaultBusyCallback` in SQLite's `main.c`.
const PAUSES_MS: [u64; 12] = [1, 2, 5, 10, 15, 20, 25, 25, 25, 50, 50, 100];

thread_local! {
    /// Remaining pause time of this thread's statement.
    static LEFT: Cell<Duration> = const { Cell::new(Duration::ZERO) };
    /// True once the statement has paused.
    static PAUSED: Cell<bool> = const { Cell::new(false) };
}

/// Starts a statement that can pause for at most `at_most`.
pub(super) fn begin(at_most: Duration) {
    LEFT.set(at_most);
    PAUSED.set(false);
}

/// Whether the thread's last statement found the database locked.
pub(super) fn paused() -> bool {
    PAUSED.get()
}

/// Pauses before the retry after `before` earlier ones; false when the time is up.
pub(super) fn pause(before: i32) -> bool {
    PAUSED.set(true);
    let at = usize::try_from(before).unwrap_or(0).min(PAUSES_MS.len() - 1);
    let left = LEFT.get();
    if left.is_zero() {
        return false;
    }
    let pause = Duration::from_millis(PAUSES_MS[at]).min(left);
    thread::sleep(pause);
    LEFT.set(left.saturating_sub(pause));
    true
}
