//! The fixed rules by which a run is VALID, UNREPLICATED, NOT-STEADY or INVALID. They were set
//! before any result was seen, and no option changes them.

use model::calibration::NULL_FACTOR_MIN;
use model::{Outage, TAKEN_SHARE_MAX};
use serde::Serialize;
use stats::compare::FEWEST_BLOCKS;

/// Share of its planned length that a phase must last: what ended it early kept the rest from being
/// measured, and its rate is that of before.
pub const LENGTH_SHARE_MIN: f64 = 0.8;

/// Mean times between two operations for which nothing must have been answered to be told from
/// chance: of independent ones, one pause in five hundred million is so long.
pub const SILENCE_MIN: u64 = 20;

/// Wrong values allowed. A store that returns other data than it was given is not measured but
/// broken, so one is too many.
pub const WRONG_MAX: u64 = 0;

/// Sampled writes that a store may acknowledge and not keep, for the same reason.
pub const LOST_WRITES_MAX: u64 = 0;

/// Share of a phase's operations that may fail. Failing is often faster than working, so failures
/// flatter a rate; one in a thousand moves it by less than any interval given here.
pub const ERROR_SHARE_MAX: f64 = 0.001;

/// Share of their CPUs' time that the threads of a closed load may use while the server's has room.
pub const BUSY_SHARE_MAX: f64 = 0.9;

/// Share of a search's probes that missed a limit which others or the generator may be to blame
/// for: more of their time was taken, or more of their requests were sent late, than may be beyond
/// the limit. They count all the same; with more of them the store may bear more than was found.
pub const BLAMED_MAX: f64 = 0.25;

/// Share of a search's probes that may contradict others: surely more requests beyond a limit than
/// may be, at a rate no higher than one that surely held. Simulated queues that stay as they are
/// have fewer in 19 of 20 searches.
pub const CONTRADICTED_MAX: f64 = 0.1;

/// Upper by lower end of a search's interval. With more, what short probes say and what long ones
/// hold have little to do with each other.
pub const WIDTH_MAX: f64 = 1.5;

/// How many times its median at rest a store may need where clients, not the store, were the limit
/// of a search: it had no queue then.
pub const UNHURRIED_FACTOR_MAX: f64 = 1.5;

/// Share of an operation's sessions that should exist and may be missing. A miss is cheaper than a
/// hit, for the same reason as with errors.
pub const MISS_SHARE_MAX: f64 = 0.001;

/// Share of the clients' time that the generator may need for itself, in the median trial. Above
/// it the rate says more of the generator than of the server.
pub const OWN_SHARE_MAX: f64 = 0.2;

/// The same share from which on a footnote warns.
pub const OWN_SHARE_NOTE: f64 = 0.1;

/// Change of the rate's fitted line over a phase, as a share of its mean, that counts as drift.
/// Less leaves the mean within 5 % of what the phase began and ended with.
pub const DRIFT_SHARE_MAX: f64 = 0.1;

/// Share of a phase that its longest operation may last, in the median trial, for drift to be
/// judged. Where few operations follow one another, the course of the rate says when they began.
pub const LONGEST_SHARE_MAX: f64 = 0.25;

/// Share of the trials of a phase that may be disturbed: one noisy minute is what blocks are
/// repeated for.
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

/// One fixed rule, for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Rule {
    /// What is looked at.
    pub name: &'static str,
    /// The limit, with its unit.
    pub limit: String,
    /// What follows beyond it, and why.
    pub meaning: &'static str,
}

/// All rules, in the order in which they are judged.
pub fn rules() -> Vec<Rule> {
    [rules_of_the_run(), rules_of_the_generator(), rules_of_the_machine()].concat()
}

fn rule(name: &'static str, limit: String, meaning: &'static str) -> Rule {
    Rule { name, limit, meaning }
}

fn above(share: f64) -> String {
    format!("{} %", share * 100.0)
}

fn rules_of_the_run() -> Vec<Rule> {
    vec![
        rule(
            "blocks",
            "at least 1 whole one".into(),
            "INVALID: what was not measured cannot be compared",
        ),
        rule(
            "repetitions",
            format!("at least {FEWEST_BLOCKS} blocks of each cell"),
            "UNREPLICATED: fewer give neither an interval nor a ranking, and cannot be compared",
        ),
        rule(
            "failed trials",
            "0".into(),
            "INVALID: a target that answered must finish every trial; of a search, probes above \
            the answer may fail",
        ),
        rule(
            "cut short",
            format!("{} of a phase's planned length at least", above(LENGTH_SHARE_MIN)),
            "INVALID: what ended it early is not in its figures",
        ),
        rule_of_outages(),
        rule(
            "missing cells",
            "0".into(),
            "INVALID: a complete run measured every cell of every \
            target that answered",
        ),
        rule(
            "named targets",
            "all usable".into(),
            "INVALID: a target that the user named must be \
            measured; one that is merely not installed need not",
        ),
        rule(
            "wrong values",
            WRONG_MAX.to_string(),
            "INVALID: the store returned other data than \
            it was given",
        ),
        rule(
            "lost writes",
            LOST_WRITES_MAX.to_string(),
            "INVALID: of a sample read back after the load, the store did not keep what it had \
             acknowledged, and no eviction or lifetime explains it",
        ),
        rule(
            "errors",
            format!("{} of operations", above(ERROR_SHARE_MAX)),
            "INVALID: failing is \
            often faster than working",
        ),
        rule(
            "misses",
            format!("{} of sessions that should exist", above(MISS_SHARE_MAX)),
            "INVALID: a miss is cheaper than a hit",
        ),
    ]
}

fn rule_of_outages() -> Rule {
    rule(
        "outages",
        format!(
            "no server that loses requests or connections and gives no service for {} ms; of \
             several, none that is silent for {} s while requests wait for it",
            Outage::SHORTEST_NS / 1_000_000,
            Outage::SILENCE_NS / 1_000_000_000
        ),
        "NOT-STEADY: figures of a time in which a server was gone, or another one took over, \
        are of no one state; the silence of a server that is alone is in its response times",
    )
}

fn rules_of_the_generator() -> Vec<Rule> {
    vec![
        rule(
            "generator's own work",
            format!("{} of the clients' time in the median trial", above(OWN_SHARE_MAX)),
            "INVALID: the generator was measured, not the server; a \
            footnote from half of it on",
        ),
        rule(
            "generator's CPUs",
            format!("{} busy, with the server's less so", above(BUSY_SHARE_MAX)),
            "INVALID: the generator was measured, not the server; a footnote where the server's \
            CPU cannot be seen",
        ),
        rule(
            "null server",
            format!("at least {NULL_FACTOR_MIN} times as fast as the target, or as the plan"),
            "INVALID: the generator was measured, not the server; a footnote where a key-value \
            load cannot be put on the null server",
        ),
        rule("unsent requests", "0".into(), "INVALID: the planned rate was not offered"),
        rule(
            "late generator",
            format!("{} of a search's probes that missed a limit", above(BLAMED_MAX)),
            "INVALID: the generator was searched, not the server; such a probe had more requests \
            sent late than may be beyond the limit",
        ),
        rule(
            "contradictions",
            format!("{} of a search's probes", above(CONTRADICTED_MAX)),
            "NOT-STEADY: store or machine changed while it was searched, since lower rates missed \
            a limit that higher ones kept",
        ),
        rule(
            "disturbed probes",
            format!("{} of a search's probes that missed a limit", above(BLAMED_MAX)),
            "NOT-STEADY: the store may bear more; in such a probe others had the CPUs of generator \
            or server for longer than requests may be beyond the limit. It counts like any other",
        ),
        rule(
            "wide interval",
            format!("upper end above {WIDTH_MAX} times the lower, of a search"),
            "NOT-STEADY: its probes disagree",
        ),
        rule(
            "busy clients",
            format!("{UNHURRIED_FACTOR_MAX} times the median at rest"),
            "INVALID: a search whose failing probes answer so quickly met the limit of its clients",
        ),
    ]
}

fn rules_of_the_machine() -> Vec<Rule> {
    vec![
        rule(
            "drift",
            format!(
                "{} of the mean rate over a phase, surely, over all blocks",
                above(DRIFT_SHARE_MAX)
            ),
            "NOT-STEADY: the rate depends on when it was measured; a \
            footnote where data grow, a phase ends by count, the page cache is cold or one \
            operation lasts a quarter of the phase",
        ),
        rule(
            "taken CPUs",
            format!(
                "{} of the time of generator or server in at most half of the trials of each \
                 phase, and of a ramp's stages up to the knee and above it",
                above(TAKEN_SHARE_MAX)
            ),
            "NOT-STEADY: other processes or virtual machines had the CPU; nothing is left out for \
            that",
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_tells_its_limit_and_its_consequence() {
        for rule in rules() {
            assert!(!rule.limit.is_empty(), "{}", rule.name);
            let start = rule.meaning.split(':').next();
            assert!(
                matches!(start, Some("INVALID" | "NOT-STEADY" | "UNREPLICATED")),
                "{}",
                rule.meaning
            );
        }
        assert!(rules().iter().any(|r| r.limit == "0.1 % of operations"));
    }
}
