//! The limits of the [rules](crate::rules), each with its reason. They were fixed before the first
//! result, and no option changes them.

/// Share of its planned length that a phase must last. If it ended early, its rate only covers the
/// time before the cause.
pub const LENGTH_SHARE_MIN: f64 = 0.8;

/// Mean times between two operations for which nothing must have been answered to be told from
/// chance: of independent ones, one pause in five hundred million is so long.
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

/// Share of a search's probes beyond a limit which others or the generator may be to blame
/// for: more of their time was taken, or more of their requests were sent late, than may be beyond
/// the limit. They count all the same; with more of them the store may sustain more than was found.
pub const BLAMED_MAX: f64 = 0.25;

/// Share of a search's probes that may contradict others: surely more requests beyond a limit than
/// may be, at a rate no higher than one that surely held. Simulated queues that stay as they are
/// have fewer in 19 of 20 searches.
pub const CONTRADICTED_MAX: f64 = 0.1;

/// Upper end of a search's interval divided by the lower end. Above it, short and long probes
/// disagree.
pub const WIDTH_MAX: f64 = 1.5;

/// How many times its median at rest a store may need where clients, not the store, were the limit
/// of a search: it had no queue then.
pub const UNHURRIED_FACTOR_MAX: f64 = 1.5;

/// Share of an operation's sessions that should exist and may be missing. A miss is cheaper than a
/// hit, for the same reason as with errors.
pub const MISS_SHARE_MAX: f64 = 0.001;

/// Own share that the generator may have in the median trial. Above it, the rate depends more on
/// the generator than on the server.
pub const OWN_SHARE_MAX: f64 = 0.2;

/// The share above which a footnote warns.
pub const OWN_SHARE_NOTE: f64 = 0.1;

/// Change of the rate's fitted line over a phase, as a share of its mean, that counts as drift.
/// Less leaves the mean within 5 % of what the phase began and ended with.
pub const DRIFT_SHARE_MAX: f64 = 0.1;

/// Share of a phase that its longest operation may last, in the median trial, for drift to be
/// judged. Where few operations follow one another, the course of the rate says when they began.
pub const LONGEST_SHARE_MAX: f64 = 0.25;

/// Share of the trials of a phase that may be disturbed: blocks are repeated to tolerate a noisy
/// minute.
pub const NOISY_TRIALS_MAX: f64 = 0.5;

/// Operations that a client must have answered in a block, in the mean of all clients, for a phase
/// with cleans to have a rate there; and those of one kind, over all clients, for that kind to have
/// one. In such a phase the time that a rate is by may be arbitrarily short. One operation of each
/// client may have begun before the measurement and is likelier a long one: of ten, it is a tenth.
/// Fewer will do where they took [`FREE_SHARE_MIN`].
pub const ANSWERED_MIN: u64 = 10;

/// Share of the clients' time that operations must have taken for a few of them to have a rate. One
/// that lasts longer than its phase is slow for certain, not by chance.
pub const FREE_SHARE_MIN: f64 = 0.5;

/// Difference of two targets' shares of reads that found their record from which on a comparison is
/// one of misses with hits. Were a miss free, so many would make a rate a twentieth too high, which
/// is more than the zone in which two targets count as equal.
pub const HITS_APART_MAX: f64 = 0.05;

/// Share of a point for which the generator's threads, or a server's, may wait for a CPU: with
/// more, a generator was not there to send, and a server not there to answer.
pub const WAITED_SHARE_MAX: f64 = 0.1;

/// Share of the stages of a way up that may contradict its knee.
pub const AGAINST_SHARE_MAX: f64 = 0.1;

/// Time for which requests of a planned rate are due, by the time until the last of them was
/// answered. With less a queue grows from the beginning to the end, so that response times say
/// how long was measured.
pub const KEPT_UP_MIN: f64 = 0.95;
