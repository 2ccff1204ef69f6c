//! The trait by which an engine drives one client of any workload.
//!
//! The engine owns the clock. Per call it runs `prepare` (untimed), waits `think_ns`, runs `draw`
//! (timed or not, by the workload's setting), `call` (timed) and `check` (untimed). An operation
//! is one call or several dependent ones. Before each, `restore` (untimed) puts back what the last
//! one took away.

use model::Held;

use crate::app_cache::Effort;
use crate::store::{LockWait, StoreError};

/// The call that comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// Index into [`Client::operations`].
    pub operation: usize,
    /// Nanoseconds of thinking before it; 0 for none.
    pub think_ns: u64,
}

/// What a call that did not fail brought, beside the data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// How the session's lock was had; `None` where the call takes none.
    pub lock: Option<LockWait>,
    /// What the call asked of its stores; all 0 where the workload does not count it.
    pub effort: Effort,
}

/// How a call is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Outcome {
    /// As expected.
    #[default]
    Ok,
    /// The session or record was not there.
    Miss,
    /// The record was not there, although nobody removed it and it had not expired: the store
    /// evicted it, or the layout lost it.
    Lost,
    /// Wrong length or content.
    Wrong,
    /// An older value than the one written last under the lock, or one that a clean should have
    /// removed.
    Stale,
    /// The lock was lost before the session was written.
    LockLost,
}

/// One client of a workload, with its own connection.
pub trait Client: Send {
    /// Names of the calls, as they stand in results.
    fn operations(&self) -> &'static [&'static str];

    /// Makes the next of the client's initial sessions or records; false when all are there.
    fn fill_next(&mut self) -> Result<bool, StoreError>;

    /// Begins a phase: operations count from 0 again.
    fn start_phase(&mut self, phase: usize);

    /// Puts back what the last operation took away, where the workload wants its data to stay as
    /// they were; true when there was something to do. A fault is told by the next call.
    fn restore(&mut self) -> bool {
        false
    }

    /// Calls of an operation, at least 1.
    fn calls(&self) -> usize;

    /// Chooses the next call: a pure function of seed, phase, `n`, `call` and what was written.
    fn prepare(&mut self, n: u64, call: usize) -> Call;

    /// Draws the value that the prepared call writes; nothing for a call that only reads.
    fn draw(&mut self);

    /// Carries out the prepared call.
    fn call(&mut self) -> Result<Answer, StoreError>;

    /// Judges what the call brought. The flag says whether a value was compared byte by byte.
    fn check(&mut self) -> (Outcome, bool);

    /// After the last phase: reads the `n`th of `of` sessions or records, evenly chosen among all
    /// that this client knows, and compares it; with its name. `None` where nothing is known of it,
    /// or there are fewer.
    fn read_back(&mut self, n: u64, of: u64) -> Result<Option<(Held, String)>, StoreError>;
}
