//! The trait through which an engine drives a client of any workload.
//!
//! The engine owns the clock. For each call it runs `prepare` (untimed), waits `think_ns`, and runs
//! `draw` (timed or not, depending on the workload), `call` (timed) and `check` (untimed). An
//! operation is one call or several dependent ones, of which later ones may not be needed. Before
//! each operation, `restore` (untimed) puts back what the previous one removed.

use model::StoredVersion;

use crate::app_cache::Effort;
use crate::store::{LockWait, StoreError};

/// The next call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// Index into [`Client::operations`].
    pub operation: usize,
    /// Think time before it, nanoseconds; 0 for none.
    pub think_ns: u64,
}

/// Result of a successful call, in addition to the data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// How the session's lock was acquired; `None` if the call takes none.
    pub lock: Option<LockWait>,
    /// Work that the call caused in its stores; all 0 if the workload does not count it.
    pub effort: Effort,
    /// Expired sessions that the call deleted.
    pub deleted: u64,
}

/// Outcome of a call, as it is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Outcome {
    /// As expected.
    #[default]
    Ok,
    /// The session or record was not found.
    Miss,
    /// The cache did not have it. The operation's next calls get it elsewhere, so this is a miss of
    /// the call and not of the operation.
    NotCached,
    /// The same, for the first client that noticed the expiry of an entry that all clients use.
    Expired,
    /// The record was not found although it was not removed and had not expired: the store evicted
    /// it, or the layout lost it.
    Lost,
    /// Wrong length or content.
    Wrong,
    /// An older value than the last one written under the lock, or one that a clean should have
    /// removed.
    Stale,
    /// The lock was lost before the session was written.
    LockLost,
}

/// One client of a workload, with its own connection.
pub trait Client: Send {
    /// Names of the calls, as in results.
    fn operations(&self) -> &'static [&'static str];

    /// Creates the next of the client's initial sessions or records; false when all exist.
    fn fill_next(&mut self) -> Result<bool, StoreError>;

    /// Starts a phase; operations count from 0 again.
    fn start_phase(&mut self, phase: usize);

    /// Puts back what the last operation removed, if the workload keeps its data constant; true if
    /// there was anything to do. The next call reports a failure.
    fn restore(&mut self) -> bool {
        false
    }

    /// Maximum number of calls of operation `n` of the phase, at least 1.
    fn calls(&self, n: u64) -> usize;

    /// True if operation `n` has a call of this number, from 0. Asked after the check of the one
    /// before.
    fn has_call(&mut self, n: u64, call: usize) -> bool {
        call < self.calls(n)
    }

    /// Chooses the next call: a pure function of seed, phase, `n`, `call` and the values written so
    /// far.
    fn prepare(&mut self, n: u64, call: usize) -> Call;

    /// Draws the value that the prepared call writes; does nothing for a read.
    fn draw(&mut self);

    /// Executes the prepared call.
    fn call(&mut self) -> Result<Answer, StoreError>;

    /// Judges the call's result. The flag is true if a value was compared byte by byte.
    fn check(&mut self) -> (Outcome, bool);

    /// After the last phase: reads the `n`th of `of` sessions or records, chosen evenly among all
    /// that this client knows, and compares it; returns the result with its name. `None` if its
    /// state is unknown or there are fewer.
    fn read_back(&mut self, n: u64, of: u64)
    -> Result<Option<(StoredVersion, String)>, StoreError>;
}
