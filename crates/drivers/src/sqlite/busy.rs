//! What a statement does that finds the database locked: the pauses of SQLite's own handler, which
//! PDO uses as well, but told.
//!
//! The library calls a function without a state of ours, on the thread of the statement; so what it
//! knows is the thread's.

use std::cell::Cell;
use std::thread;
use std::time::Duration;

/// Pauses before it asks again, milliseconds; the last one from there on. Source:
/// `sqliteDefaultBusyCallback` in SQLite's `main.c`.
const PAUSES_MS: [u64; 12] = [1, 2, 5, 10, 15, 20, 25, 25, 25, 50, 50, 100];

thread_local! {
    /// What this thread's statement may still pause.
    static LEFT: Cell<Duration> = const { Cell::new(Duration::ZERO) };
    /// True once it has paused.
    static PAUSED: Cell<bool> = const { Cell::new(false) };
}

/// A statement begins, which may pause for so long.
pub(super) fn begin(at_most: Duration) {
    LEFT.set(at_most);
    PAUSED.set(false);
}

/// Whether the thread's last statement found a lock taken.
pub(super) fn paused() -> bool {
    PAUSED.get()
}

/// Pauses, for the time after so many pauses before; false when the time is over.
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
