//! The limits of the [rules](crate::rules), each with its reason. They were fixed before the first
//! result, and no option changes them.

/// Share of its planned length that a phase must last. If it ended early, its rate only covers the
/// time before the cause.
pub const LENGTH_SHARE_MIN: f64 = 0.8;

/// A phase ended early only if it was silent for more than this many mean intervals between
/// operations: if operations are independent, one pause in five hundred million is that long.
pub const SILENCE_MIN: u64 = 20;

/// Wrong values allowed. A store that returns other data than was written is broken, so one is too
/// many.
pub const WRONG_MAX: u64 = 0;

/// Sampled acknowledged writes that a store may lose, for the same reason.
pub const LOST_WRITES_MAX: u64 = 0;

/// Share of a phase's operations that may fail. Failing is often faster than working, so failures
/// flatter a rate; one in a thousand moves it by less than any interval given here.
pub const ERROR_SHARE_MAX: f64 = 0.001;

/// Share of their CPUs' time that the threads of a closed load may use while the server's CPUs are
/// not saturated.
pub const BUSY_SHARE_MAX: f64 = 0.9;

/// Bound on the difference between the start of a worker and the planned one, nanoseconds: a tenth
/// of the interval of 100 ms by which operations are counted over time.
pub const START_SKEW_NS_MAX: u64 = 10_000_000;

/// How much slower the clients of a worker may be than those of the others under a closed load.
pub const SLOW_WORKER_FACTOR: f64 = 2.0;

/// Share by which what a worker answered may differ from what all answered of their parts of a
/// planned load, and standard deviations of a Poisson process that chance may explain: one worker
/// in 16,000 is off by more.
pub const WORKER_SHARE_MAX: f64 = 0.02;
/// See [`WORKER_SHARE_MAX`].
pub const WORKER_DEVIATIONS_MAX: f64 = 4.0;

/// Share of a search's failed probes for which other processes or the generator may be to blame:
/// the share of stolen CPU time, or of requests sent late, exceeds the share of requests that the
/// limit allows. These probes still count; with more of them the store may sustain more than was
/// found.
pub const BLAMED_MAX: f64 = 0.25;

/// Share of a search's probes that may contradict others: they clearly failed at or below a rate
/// that clearly passed. On simulated queues that do not change, fewer do in 19 of 20 searches.
pub const CONTRADICTED_MAX: f64 = 0.1;

/// Upper end of a search's interval divided by the lower end. Above it, short and long probes
/// disagree.
pub const WIDTH_MAX: f64 = 1.5;

/// Maximum median service time, as a multiple of the idle one, if the clients and not the store
/// were the limit of a search: the store had no queue then.
pub const UNHURRIED_FACTOR_MAX: f64 = 1.5;

/// Share of an operation's sessions, keys or records that may be missing although they should
/// exist. A miss is cheaper than a hit, so it flatters a rate like an error.
pub const MISS_SHARE_MAX: f64 = 0.001;

/// Own share that the generator may have in the median trial. Above it, the rate depends more on
/// the generator than on the server.
pub const OWN_SHARE_MAX: f64 = 0.2;

/// The share above which a footnote warns.
pub const OWN_SHARE_NOTE: f64 = 0.1;

/// Change of the rate's fitted line over a phase, as a share of its mean, that counts as drift.
/// With less, the mean is within 5 % of the rates at the start and the end of the phase.
pub const DRIFT_SHARE_MAX: f64 = 0.1;

/// Share of a phase that its longest operation may take, in the median trial, for drift to be
/// judged. With few consecutive operations, the rate mainly reflects when they started.
pub const LONGEST_SHARE_MAX: f64 = 0.25;

/// Share of the trials of a phase that may be disturbed: blocks are repeated to tolerate a noisy
/// minute.
pub const NOISY_TRIALS_MAX: f64 = 0.5;

/// Minimum number of answered operations for a rate in a block of a phase with cleans: per client,
/// as a mean over the clients, for the phase; over all clients, for a kind of operation. The time
/// that such a rate is divided by can be arbitrarily short. One operation of each client may have
/// started before the measurement, and is more likely a long one; of ten operations that is a
/// tenth. Fewer suffice if they took [`FREE_SHARE_MIN`].
pub const ANSWERED_MIN: u64 = 10;

/// Share of the clients' time that operations must have taken for a few of them to give a rate. One
/// that takes longer than its phase is certainly slow, not by chance.
pub const FREE_SHARE_MIN: f64 = 0.5;

/// Difference of two targets' hit ratios above which a comparison compares misses with hits, and of
/// their shares of refused writes. If a miss cost nothing, it would make a rate 5 % too high, which
/// is more than the zone in which two targets count as equal.
pub const HITS_APART_MAX: f64 = 0.05;

/// Share of a point for which the generator's threads, or a server's, may wait for a CPU. With
/// more, requests were sent late, or answered late, for lack of a CPU.
pub const WAITED_SHARE_MAX: f64 = 0.1;

/// Share of a trial at a planned rate for which the generator may be stopped, frozen or throttled:
/// the share of requests beyond p99. With more, the requests due meanwhile decide it.
pub const PAUSED_SHARE_MAX: f64 = 0.01;

/// The same for p99.9. Only a footnote, since pauses below 10 ms are not recorded: in a trial of a
/// few seconds, those alone can be more.
pub const PAUSED_SHARE_NOTE: f64 = 0.001;

/// Share of the stages of a way up that may contradict its knee.
pub const AGAINST_SHARE_MAX: f64 = 0.1;

/// Time during which the requests of a planned rate are due, divided by the time until the last of
/// them was answered. With less, a queue grows throughout, so response times only reflect the
/// length of the measurement.
pub const KEPT_UP_MIN: f64 = 0.95;
