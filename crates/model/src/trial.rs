//! What one measured run of one cell gave: a line of a record's `trials.jsonl`.

use serde::{Deserialize, Serialize};
use stats::Histogram;
use stats::search::Step;
use std::collections::BTreeMap;
use std::fmt;

use crate::memory::{Emptied, MemoryUse};
use crate::read_back::ReadBack;

mod disturbers;
mod outage;
mod point;
mod series;
mod slowest;
mod times;

pub use disturbers::{Disturber, Disturbers};
pub use outage::Outage;
pub use point::{Beyond, Due, Point};
pub use series::Series;
pub use slowest::Slowest;

/// Why an operation or a trial failed, by class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ErrorClass {
    /// No answer within the time-out.
    Timeout,
    /// Nobody listens, or the connection limit is reached.
    Refused,
    /// The connection broke or the server ended.
    Closed,
    /// User or password was not accepted, or a right is missing.
    Denied,
    /// No space left: disk, quota or the server's memory limit.
    Full,
    /// The server answered with an error.
    Reply,
    /// The answer is not of the protocol.
    Protocol,
    /// A session's lock could not be had in time.
    Lock,
    /// The server's program is not installed.
    Missing,
    /// The server did not start.
    Start,
    /// The store is not empty, or otherwise not ours to use.
    NotOurs,
    /// A fault of the operating system or of cachedyno itself.
    Other,
}

impl fmt::Display for ErrorClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Timeout => "timed out",
            Self::Refused => "refused",
            Self::Closed => "connection lost",
            Self::Denied => "denied",
            Self::Full => "full",
            Self::Reply => "error reply",
            Self::Protocol => "malformed reply",
            Self::Lock => "lock not available",
            Self::Missing => "not installed",
            Self::Start => "did not start",
            Self::NotOurs => "unsafe for others",
            Self::Other => "failed",
        })
    }
}

/// Why a trial or a target has no result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{class}: {message}")]
pub struct Failure {
    /// The class of the fault.
    pub class: ErrorClass,
    /// One sentence for people; free of credentials. Where a server died, the last lines of its
    /// log come behind [`Failure::LOG`].
    pub message: String,
}

impl Failure {
    /// What stands between the reason and the last lines of a server's log, which are joined by
    /// ` | `.
    pub const LOG: &str = "; its log: ";

    /// The message without a log.
    pub fn reason(&self) -> &str {
        self.message.split(Self::LOG).next().unwrap_or(&self.message)
    }

    /// The last lines of the server's log, where there are some.
    pub fn log(&self) -> Option<&str> {
        self.message.split_once(Self::LOG).map(|(_, log)| log)
    }
}

/// How operations ended. Every field but `ok` counts apart from success.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Answered as expected.
    pub ok: u64,
    /// A session, key or record was not found.
    pub miss: u64,
    /// Of the misses, those of records of an application cache that nobody had removed and that had
    /// not expired.
    #[serde(default)]
    pub lost: u64,
    /// Failed, all classes together.
    pub error: u64,
    /// A value of wrong length or content.
    pub wrong: u64,
    /// An older value than the last one written under the lock.
    pub stale: u64,
    /// Failed, by class.
    pub errors_by_class: BTreeMap<ErrorClass, u64>,
    /// Of each class the words of one failure, for people: one line, free of credentials.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub error_examples: BTreeMap<ErrorClass, String>,
    /// Values compared byte by byte.
    pub verified: u64,
    /// Opens that found the session's lock taken.
    pub lock_waits: u64,
    /// Attempts to take a lock, over all opens.
    pub lock_attempts: u64,
    /// Closes that found their lock gone or taken over.
    pub lock_broken: u64,
    /// Opens that gave up waiting for the lock.
    pub lock_timeouts: u64,
    /// Times that a server's answer was waited for, where the store counts its effort.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub round_trips: u64,
    /// Commands or statements sent to servers, where the store counts its effort.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub commands: u64,
    /// Files opened, listed, looked at or removed, each time counted, where the store counts them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub files: u64,
}

impl Counts {
    /// Adds all counts of `other`.
    pub fn merge(&mut self, other: &Self) {
        let Self {
            ok,
            miss,
            lost,
            error,
            wrong,
            stale,
            errors_by_class,
            error_examples,
            verified,
            lock_waits,
            lock_attempts,
            lock_broken,
            lock_timeouts,
            round_trips,
            commands,
            files,
        } = other;
        self.ok += ok;
        self.miss += miss;
        self.lost += lost;
        self.error += error;
        self.wrong += wrong;
        self.stale += stale;
        self.verified += verified;
        self.lock_waits += lock_waits;
        self.lock_attempts += lock_attempts;
        self.lock_broken += lock_broken;
        self.lock_timeouts += lock_timeouts;
        self.round_trips += round_trips;
        self.commands += commands;
        self.files += files;
        for (class, n) in errors_by_class {
            *self.errors_by_class.entry(*class).or_default() += n;
        }
        for (class, words) in error_examples {
            self.error_examples.entry(*class).or_insert_with(|| words.clone());
        }
    }

    /// Counts one failure, whose `words` are kept where they are the first of their class.
    pub fn fail(&mut self, class: ErrorClass, words: &str) {
        self.error += 1;
        *self.errors_by_class.entry(class).or_default() += 1;
        if !words.is_empty() {
            self.error_examples.entry(class).or_insert_with(|| words.into());
        }
    }

    /// Operations that failed, or gave a wrong or an old value.
    pub fn failed(&self) -> u64 {
        self.error + self.wrong + self.stale
    }

    /// True where nothing was tried.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// All operations tried.
    pub fn total(&self) -> u64 {
        self.ok + self.miss + self.error + self.wrong + self.stale
    }
}

/// One operation's result within a phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OperationResult {
    /// `write`, `read`, `change`, `clean`; in the page layout `open`, `close` and `page` (both
    /// together).
    pub operation: String,
    /// How they ended.
    pub counts: Counts,
    /// Operations finished per second, over all clients: by the wall time of the phase, less the
    /// share of it that clients spent on untimed preparing and checking.
    pub rate_per_s: f64,
    /// Operations by time in calls, summed over the clients; pauses, and the time of other
    /// operations, are not in it. `None` where an event loop does the calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls_rate_per_s: Option<f64>,
    /// Done − sent.
    pub service: Histogram,
    /// Done − intended start; contains the drawing of the value when that is timed.
    pub response: Histogram,
    /// Sent − intended start, of an open load; empty where a request is intended when it is sent.
    #[serde(default, skip_serializing_if = "Histogram::is_empty")]
    pub lag: Histogram,
    /// Time spent waiting for a session's lock; empty where no lock was waited for.
    pub lock_wait: Histogram,
    /// The longest times in the course of it; `None` in records from before they were kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slowest: Option<Slowest>,
}

/// The time of one client in a phase in which it saved again what cleans had removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restored {
    /// Operations answered.
    pub answered: u64,
    /// Time in which it neither prepared, checked nor saved again, nanoseconds; with all of the
    /// time of an operation that began in the warm-up and is counted.
    pub free_ns: u64,
    /// Time in which it saved again, nanoseconds.
    pub restoring_ns: u64,
}

impl Restored {
    /// Operations per second of all `clients`, had none of them saved again: as many as there are
    /// by the mean free time of an operation, over all operations of all of them.
    ///
    /// Each client ends with an operation that is finished and counted, so the time of all
    /// operations is, in expectation, their number times that of one (Wald's identity), however
    /// long a client saved again. A client's own rate has no such property: one that came to a
    /// single short call would stand for thousands a second.
    pub fn rate_per_s(clients: &[Self]) -> f64 {
        let answered: u64 = clients.iter().map(|c| c.answered).sum();
        let free_ns: u64 = clients.iter().map(|c| c.free_ns).sum();
        clients.len() as f64 * answered as f64 / (free_ns.max(1) as f64 / 1e9)
    }
}

/// What others took of the CPUs of a measurement: other processes, and other virtual machines by
/// way of the hypervisor. No figure is corrected for it; where it is too much, a run is NOT-STEADY.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disturbance {
    /// How long the generator's threads waited for a CPU on which others ran, in their mean, and
    /// how long the hypervisor had the CPU of which it took most, nanoseconds.
    pub generator_ns: u64,
    /// The same of the server's threads, of which those that worked more count more; `None` where
    /// there is no server, or its processes are not ours to see.
    pub server_ns: Option<u64>,
}

impl Disturbance {
    /// What was taken from the side from which others took more, as a share of so many nanoseconds,
    /// 0 to 1.
    pub fn share_of(self, length_ns: u64) -> f64 {
        let most_ns = self.generator_ns.max(self.server_ns.unwrap_or(0));
        (most_ns as f64 / length_ns.max(1) as f64).min(1.0)
    }

    /// What both say together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let server_ns = match (self.server_ns, other.server_ns) {
            (Some(own), Some(theirs)) => Some(own + theirs),
            (own, theirs) => own.or(theirs),
        };
        Self { generator_ns: self.generator_ns + other.generator_ns, server_ns }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// What disturbed a trial, from the filling to the end of its last phase.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Noise {
    /// Share of all CPU time that the hypervisor gave to others.
    pub steal_share: f64,
    /// Share of wall time in which some task waited for a CPU (PSI); `None` without PSI.
    pub psi_cpu_some_share: Option<f64>,
    /// Share of wall time in which some task waited for the disk (PSI).
    pub psi_io_some_share: Option<f64>,
    /// Share of wall time in which some task waited for memory (PSI).
    pub psi_memory_some_share: Option<f64>,
    /// CPU time of processes other than generator and server, as a share of all CPU time.
    pub other_cpu_share: f64,
    /// Share of the clients' time spent ready but waiting for a CPU.
    pub run_delay_share: f64,
    /// Longest oversleep of a thread that sleeps 1 to 4 ms over and over.
    pub hiccup_ns_max: u64,
    /// 99th percentile of the same.
    pub hiccup_ns_p99: u64,
    /// The processes other than generator and server that used most CPU time, most first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub busiest: Vec<Busy>,
    /// Who else ran on the CPUs of generator and servers; `None` where the kernel does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disturbers: Option<Disturbers>,
}

/// CPU time of a process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Busy {
    /// Its program as the kernel names it, at most 15 bytes; a kernel thread's own name.
    pub name: String,
    /// CPU time, nanoseconds, in clock ticks.
    pub cpu_ns: u64,
}

/// What a target's stores took when their data were filled in, before the first phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Filled {
    /// Blocks of the file system that the files take, in bytes; 0 without files.
    pub store_bytes: u64,
    /// Memory of the private servers' processes (resident), in bytes; 0 without such servers.
    pub server_memory_bytes: u64,
}

/// What a trial of a search was for: its step.
pub type Probe = Step;

/// One measured run of one cell in one block: fresh server, fresh data.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// Block, from 0.
    pub block: u32,
    /// Position within the block's random order, from 0.
    pub position: u32,
    /// Id of the cell.
    pub cell: String,
    /// What it was for, where the run is a search; `None` elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe: Option<Probe>,
    /// Wall-clock start, milliseconds since 1970-01-01 UTC.
    pub started_unix_ms: u64,
    /// Duration with start and stop of the server.
    pub took_ns: u64,
    /// Product and version as the server reports it, for example `Redis 7.0.15`.
    pub version: Option<String>,
    /// What its stores took when they were filled; `None` where that was not looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filled: Option<Filled>,
    /// How the page cache was emptied before each phase; `None` where it stayed as it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub emptied: Option<Emptied>,
    /// What was taken of the memory limit; `None` where there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemoryUse>,
    /// Entries of tags' indexes that named a record which was gone, after the last phase; `None`
    /// where nothing is listed by tag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stale_members: Option<u64>,
    /// What the store still held of what it acknowledged; `None` where that does not follow from
    /// what clients wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_back: Option<ReadBack>,
    /// By how many milliseconds the wall clock was set while it ran, negative for back; `None`
    /// where it was not by more than a second. Times of day of the trial are off by that, durations
    /// are not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_step_ms: Option<i64>,
    /// Why what it wrote into a store that was there before could not be removed, and what to
    /// remove; `None` where nothing is left. What was measured before stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_removed: Option<Failure>,
    /// What was measured, in the order of time: a steady phase is one point, a ladder one for each
    /// of its stages. Of a trial that failed, those that were over before.
    pub points: Vec<Point>,
    /// What was finished in the course of time, by phase.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub series: Vec<Series>,
    /// When servers answered nothing, by time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outages: Vec<Outage>,
    /// What disturbed it.
    pub noise: Noise,
    /// Why it has no (complete) result.
    pub failure: Option<Failure>,
}
impl Trial {
    /// The point that is a whole phase, which was steady; `None` where there is none.
    pub fn point(&self, phase: &str) -> Option<&Point> {
        self.points.iter().find(|point| point.phase == phase && point.stage.is_none())
    }

    /// What was finished in the course of a phase.
    pub fn series(&self, phase: &str) -> Option<&Series> {
        self.series.iter().find(|series| series.phase == phase)
    }
}

/// What was recorded of one operation's times in one interval of a phase.
#[derive(Clone, Debug, PartialEq)]
pub struct Interval {
    /// Name of the phase.
    pub phase: String,
    /// Name of the operation.
    pub operation: String,
    /// Which time: `service`, or `response` under an open load.
    pub time: &'static str,
    /// When it began, milliseconds since 1970.
    pub begun_unix_ms: u64,
    /// How long it was, nanoseconds.
    pub length_ns: u64,
    /// The longest time in it, nanoseconds.
    pub max_ns: u64,
    /// All times in it, as [`Histogram::encode`] writes them: kept small, for there may be many.
    pub encoded: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Clients that saved again for nearly all of a phase, as they came out of one of 80 ms.
    #[test]
    fn a_client_with_one_short_call_does_not_make_the_rate() {
        let client = |answered, free_ns| Restored { answered, free_ns, restoring_ns: 0 };
        let clients =
            [client(79, 70_000_000), client(9, 8_000_000), client(1, 100_000), client(1, 27_000)];
        let by_mean_time = 4.0 * 90.0 / 0.078_127;
        let rate = Restored::rate_per_s(&clients);
        assert!((rate / by_mean_time - 1.0).abs() < 1e-12, "{rate}");
    }

    #[test]
    fn clients_that_are_always_free_have_the_sum_of_their_rates() {
        let clients = [100, 300].map(|answered| Restored {
            answered,
            free_ns: 500_000_000,
            ..Restored::default()
        });
        assert!((Restored::rate_per_s(&clients) - 800.0).abs() < 1e-9);
    }
}
