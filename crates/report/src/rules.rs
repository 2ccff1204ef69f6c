//! The fixed rules by which a run is VALID, UNREPLICATED, NOT-STEADY or INVALID, all listed in
//! [`RULES`]. To change a rule, start at its entry: it has the limit (with its reason in
//! [`limits`](crate::limits)), its description, and the function that applies it.
//!
//! A rule is written once for everything in its scope, whatever the schedule of the load: steady,
//! a ladder or a search. If it does not apply to points that look for a limit, its function checks
//! the point's part ([`Part`](crate::measurement::Part)).
//!
//! - `served`: requests were answered correctly; `read_back`: writes were kept.
//! - `generator`: the generator kept up with the load.
//! - `steadiness`: rates and times were steady; `outages`, `taken`: nothing disturbed the run.
//! - `workers`: each worker of a fleet did its part.
//! - `whole`: everything planned was measured.
//! - `searches`: the answer of a search can be used.

mod generator;
mod searches;
mod served;
mod steadiness;
mod whole;
mod workers;

use model::calibration::NULL_FACTOR_MIN;
use model::{Cell, Outage, TAKEN_SHARE_MAX, Trial};
use stats::compare::FEWEST_BLOCKS;
use std::collections::BTreeMap;

use crate::findings::Findings;
use crate::limits::{
    AGAINST_SHARE_MAX, BLAMED_MAX, BUSY_SHARE_MAX, CONTRADICTED_MAX, DRIFT_SHARE_MAX,
    ERROR_SHARE_MAX, KEPT_UP_MIN, LENGTH_SHARE_MIN, LOST_WRITES_MAX, MISS_SHARE_MAX, OWN_SHARE_MAX,
    PAUSED_SHARE_MAX, PAUSED_SHARE_NOTE, SLOW_WORKER_FACTOR, START_SKEW_NS_MAX,
    UNHURRIED_FACTOR_MAX, WAITED_SHARE_MAX, WIDTH_MAX, WORKER_DEVIATIONS_MAX, WORKER_SHARE_MAX,
    WRONG_MAX,
};
use crate::measurement::{Counted, Measurement};
use crate::notes::Notes;
use crate::recorded::Recorded;
use crate::search::CellSearch;
use crate::view::{Rule, SearchView};
use crate::{outages, read_back, show, taken};

/// A rule and its scope.
pub(crate) struct Applied {
    /// The quantity that the rule checks.
    name: &'static str,
    /// The limit, with its unit.
    limit: fn() -> String,
    /// Consequence of exceeding the limit, and the reason.
    meaning: &'static str,
    scope: Scope,
}

/// The scope of a rule, with the function that applies it. Rules on numbers consider all trials
/// together, never a single one.
enum Scope {
    /// Each operation of each phase of each cell.
    Operation(fn(&Measurement<'_>, &Counted, &mut Findings)),
    /// The points of each phase of each cell.
    Points(fn(&Measurement<'_>, &mut Findings)),
    /// The trials of each cell of a target that answered.
    Trials(fn(&Recorded, &Cell, &[&Trial], &mut Findings)),
    /// The run.
    Run(fn(&Recorded, &[Measurement<'_>], &mut Findings)),
    /// The answer of each search.
    Answer(fn(&CellSearch<'_>, &SearchView, &mut Findings)),
}

/// All rules, in the order in which they are applied.
const RULES: &[Applied] = &[
    Applied {
        name: "named targets",
        limit: || "all usable".into(),
        meaning: "INVALID: a target that the user named must be measured; a default target that is \
                  not installed is listed as not run",
        scope: Scope::Run(whole::named_targets),
    },
    Applied {
        name: "blocks",
        limit: || "at least 1 complete block".into(),
        meaning: "INVALID: without measurements nothing can be compared",
        scope: Scope::Run(whole::blocks),
    },
    Applied {
        name: "failed trials",
        limit: || "0".into(),
        meaning: "INVALID: a target that answered must finish every trial for which the machine \
                  has what it takes; if the plan removes service or memory, at least one, unless \
                  all were [killed or stalled](#what-ends-a-cell)",
        scope: Scope::Trials(whole::failed_trials),
    },
    Applied {
        name: "failed probes",
        limit: || "0 at rates up to a search's answer".into(),
        meaning: "INVALID: a rate that the store sustains does not break it; above the answer a \
                  failure is only a footnote",
        scope: Scope::Answer(searches::failed_probes),
    },
    Applied {
        name: "missing cells",
        limit: || "0".into(),
        meaning: "INVALID: a complete run measured every cell of every target that answered",
        scope: Scope::Trials(whole::missing_cells),
    },
    Applied {
        name: "missing phases",
        limit: || "0 in completed trials".into(),
        meaning: "INVALID: a planned phase was not measured; only a footnote if the plan removes \
                  service or memory and a deadline, a kill or a stall ends the trial",
        scope: Scope::Trials(whole::missing_phases),
    },
    Applied {
        name: "cut short",
        limit: || format!("at least {} of a phase's planned length", share(LENGTH_SHARE_MIN)),
        meaning: "INVALID: the numbers do not show what ended the phase early; at a planned rate, \
                  in a stage or in a probe, unanswered requests count as failed instead",
        scope: Scope::Points(served::cut_short),
    },
    Applied {
        name: "wrong values",
        limit: || WRONG_MAX.to_string(),
        meaning: "INVALID: the store returned other data than was written",
        scope: Scope::Operation(served::wrong),
    },
    Applied {
        name: "lost writes",
        limit: || LOST_WRITES_MAX.to_string(),
        meaning: "INVALID: a sample read back after the load lacks acknowledged writes, and no \
                  eviction or lifetime explains it",
        scope: Scope::Trials(read_back::check),
    },
    Applied {
        name: "errors",
        limit: || format!("{} of operations", share(ERROR_SHARE_MAX)),
        meaning: "INVALID: a failure is often faster than a success; a stage or a probe that \
                  looks for a limit is allowed to fail",
        scope: Scope::Operation(served::failed),
    },
    Applied {
        name: "misses",
        limit: || {
            format!("{} of sessions, keys or records that should exist", share(MISS_SHARE_MAX))
        },
        meaning: "INVALID: a miss is cheaper than a hit; records of a cache count only in phases \
                  that just read",
        scope: Scope::Operation(served::missing),
    },
    Applied {
        name: "evicted data",
        limit: || "0 keys, if the study sets the amount of data".into(),
        meaning: "INVALID: the store contains less data than planned; evictions of a cache are \
                  only a footnote",
        scope: Scope::Trials(served::evicted),
    },
    Applied {
        name: "lowest stage",
        limit: || "sustained in every block".into(),
        meaning: "INVALID: without a sustained stage, no lower bound is known of what the store \
                  sustains",
        scope: Scope::Points(whole::never_passed),
    },
    Applied {
        name: "generator's own work",
        limit: || format!("{} of the clients' time in the median trial", share(OWN_SHARE_MAX)),
        meaning: "INVALID: the generator was measured, not the server; a footnote from half of \
                  the limit. Files are exempt, since the clients do their work, and so are phases \
                  with cleans, whose clients restore records",
        scope: Scope::Points(generator::own_work),
    },
    Applied {
        name: "unsent requests",
        limit: || "0".into(),
        meaning: "INVALID: the planned rate was not offered; in a stage or a probe that looks \
                  for a limit, unsent requests count as failed",
        scope: Scope::Points(generator::unsent),
    },
    Applied {
        name: "generator's CPUs",
        limit: || {
            format!(
                "{} busy in a closed load, if the server's are less busy",
                share(BUSY_SHARE_MAX)
            )
        },
        meaning: "INVALID: the generator was measured, not the server; a footnote if the server's \
                  CPU usage is unknown",
        scope: Scope::Points(generator::busy_threads),
    },
    Applied {
        name: "waiting generator",
        limit: || format!("{} of the time waiting for a CPU", share(WAITED_SHARE_MAX)),
        meaning: "NOT-STEADY: scheduled requests were sent late; of a ramp only the stages up to \
                  the knee count, of a search only the long runs",
        scope: Scope::Points(generator::waiting),
    },
    Applied {
        name: "stopped generator",
        limit: || {
            format!(
                "{} of the time of a trial at a planned rate; a footnote above {}",
                share(PAUSED_SHARE_MAX),
                share(PAUSED_SHARE_NOTE)
            )
        },
        meaning: "NOT-STEADY: requests due while it was stopped, frozen or throttled were sent \
                  late, and they decide p99 (those of a footnote decide p99.9); of a ramp only \
                  the stages up to the knee count, of a search only the long runs",
        scope: Scope::Points(generator::stopped),
    },
    Applied {
        name: "start of workers",
        limit: || format!("{} from the planned start", show::ns(START_SKEW_NS_MAX as f64)),
        meaning: "INVALID: a tenth of the interval by which rates and limits are judged; beyond \
                  it, intervals of different workers would be added up",
        scope: Scope::Run(workers::start),
    },
    Applied {
        name: "workers' shares",
        limit: || {
            format!(
                "{} and {WORKER_DEVIATIONS_MAX} standard deviations off what all answered of their \
                 parts of the plan",
                share(WORKER_SHARE_MAX)
            )
        },
        meaning: "INVALID: the network or the machine of a worker was measured, not the server",
        scope: Scope::Run(workers::share),
    },
    Applied {
        name: "workers' CPUs",
        limit: || {
            let (busy, own) = (share(BUSY_SHARE_MAX), share(OWN_SHARE_MAX));
            format!(
                "{busy} busy in a closed load, or {own} of the clients' time in the generator's \
                 own work, if others are not"
            )
        },
        meaning: "INVALID: the slowest worker was measured, not the server",
        scope: Scope::Run(workers::busy),
    },
    Applied {
        name: "slow workers",
        limit: || format!("{SLOW_WORKER_FACTOR} times the others' time for each request"),
        meaning: "NOT-STEADY: under a closed load, a slow network or machine of a worker lowers \
                  the rate of the whole",
        scope: Scope::Run(workers::slow),
    },
    Applied {
        name: "disturbed workers",
        limit: || {
            format!(
                "{} of the time waiting for a CPU at a planned load, {} stolen by others or \
                 stopped",
                share(WAITED_SHARE_MAX),
                share(TAKEN_SHARE_MAX)
            )
        },
        meaning: "NOT-STEADY: a worker that was delayed adds its delay to the times of all",
        scope: Scope::Run(workers::disturbed),
    },
    Applied {
        name: "null server",
        limit: || {
            format!(
                "at least {NULL_FACTOR_MIN} times the rate of the target, of the plan, of the knee \
                 or of a search's answer"
            )
        },
        meaning: "INVALID: the generator was measured, not the server; a knee and a search's \
                  answer become lower bounds instead; a footnote if a key-value load cannot run \
                  against the null server, or the target is shown to be at its own limit",
        scope: Scope::Points(generator::null_server),
    },
    Applied {
        name: "answer",
        limit: || "a rate found by every search".into(),
        meaning: "INVALID: a search without a rate has no result; its sentence gives the reason",
        scope: Scope::Answer(searches::answer),
    },
    Applied {
        name: "busy clients",
        limit: || {
            format!(
                "replies of failed probes take more than {UNHURRIED_FACTOR_MAX} times the idle \
                 median, or the server's CPU is saturated"
            )
        },
        meaning: "INVALID: if the replies are as fast as on an idle server, the number of clients \
                  limits the search, not the store",
        scope: Scope::Answer(searches::busy_clients),
    },
    Applied {
        name: "late generator",
        limit: || format!("{} of a search's failed probes", share(BLAMED_MAX)),
        meaning: "INVALID: the search found the limit of the generator, not of the server; in such \
                  a probe more requests were sent late than the limit allows",
        scope: Scope::Answer(searches::late_generator),
    },
    Applied {
        name: "disturbed probes",
        limit: || format!("{} of a search's failed probes", share(BLAMED_MAX)),
        meaning: "NOT-STEADY: the store may sustain more; in such a probe the share of CPU \
                  time stolen from generator or server exceeds the share of requests that the \
                  limit allows. The probe still counts",
        scope: Scope::Answer(searches::disturbed_probes),
    },
    Applied {
        name: "contradictions",
        limit: || format!("{} of a search's probes", share(CONTRADICTED_MAX)),
        meaning: "NOT-STEADY: store or machine changed during the search: lower rates violated a \
                  limit that higher rates met",
        scope: Scope::Answer(searches::contradictions),
    },
    Applied {
        name: "wide interval",
        limit: || format!("upper end above {WIDTH_MAX} times the lower, of a search"),
        meaning: "NOT-STEADY: its probes disagree",
        scope: Scope::Answer(searches::wide_interval),
    },
    Applied {
        name: "contradicted knee",
        limit: || format!("{} of the way up, in half of the blocks", share(AGAINST_SHARE_MAX)),
        meaning: "NOT-STEADY: store or machine changed while a ramp went up, since stages failed \
                  below the knee or passed above it",
        scope: Scope::Points(steadiness::contradicted),
    },
    Applied {
        name: "drift",
        limit: || {
            format!(
                "a change of {} of the mean rate within a phase, unless the blocks leave it in \
                 doubt",
                share(DRIFT_SHARE_MAX)
            )
        },
        meaning: "NOT-STEADY: the rate depends on when it was measured; a footnote if it is in \
                  doubt, data grows, a phase ends by count, the page cache is cold or one \
                  operation takes a quarter of the phase",
        scope: Scope::Points(steadiness::drift),
    },
    Applied {
        name: "planned rate",
        limit: || {
            format!(
                "at a planned rate, the phase takes at least {} of the time until its last request \
                 is answered",
                share(KEPT_UP_MIN)
            )
        },
        meaning: "NOT-STEADY: the queue of a store that does not keep up grows, so response times \
                  depend on the length of the measurement; stages and probes look for that",
        scope: Scope::Points(steadiness::kept_up),
    },
    Applied {
        name: "outages",
        limit: || {
            format!(
                "no server that loses requests or connections is unavailable for {} ms; of several \
                 servers, none is silent for {} s while requests wait for it",
                Outage::SHORTEST_NS / 1_000_000,
                Outage::SILENCE_NS / 1_000_000_000
            )
        },
        meaning: "NOT-STEADY: numbers from before and after the loss of a server or a failover mix \
                  two states; the silence of a single server is part of its response times",
        scope: Scope::Run(outages::check),
    },
    Applied {
        name: "silent servers",
        limit: || "none except those that the plan interrupts".into(),
        meaning: "NOT-STEADY: if the plan interrupts a server, another one that stops answering \
                  changes the failover",
        scope: Scope::Trials(outages::silent_servers),
    },
    Applied {
        name: "stolen CPU time",
        limit: || {
            format!(
                "{} of the time of generator or server, exceeded in at most half of the trials of \
                 each phase; for a ramp, of its stages up to the knee and the one above it",
                share(TAKEN_SHARE_MAX)
            )
        },
        meaning: "NOT-STEADY: other processes, kernel threads or virtual machines had the CPU; no \
                  measurement is discarded for it",
        scope: Scope::Run(taken::check),
    },
    Applied {
        name: "repetitions",
        limit: || format!("at least {FEWEST_BLOCKS} blocks of each cell"),
        meaning: "UNREPLICATED: with fewer blocks there is no interval, ranking or comparison; the \
                  same if a phase is too short to judge drift",
        scope: Scope::Run(whole::repetitions),
    },
];

fn share(share: f64) -> String {
    format!("{} %", share * 100.0)
}

/// Descriptions of all rules, in the order in which they are applied.
pub fn rules() -> Vec<Rule> {
    let describe =
        |rule: &Applied| Rule { name: rule.name, limit: (rule.limit)(), meaning: rule.meaning };
    RULES.iter().map(describe).collect()
}

/// Footnotes by cell and phase, for the rows that carry them.
pub(crate) type OfPhases<'a> = BTreeMap<(&'a str, &'a str), Vec<usize>>;

/// Applies every rule to everything in its scope.
pub(crate) fn apply<'a>(
    recorded: &Recorded,
    all: &[Measurement<'a>],
    findings: &mut Findings,
    notes: &mut Notes,
) -> OfPhases<'a> {
    let mut carried = OfPhases::new();
    for rule in RULES {
        match rule.scope {
            Scope::Operation(check) => {
                for one in all {
                    one.operations().iter().for_each(|counted| check(one, counted, findings));
                }
            }
            Scope::Points(check) => {
                for one in all {
                    check(one, findings);
                    let added = findings.footnotes.drain(..).map(|text| notes.add(text));
                    carried.entry((&one.cell.id, one.phase)).or_default().extend(added);
                }
            }
            Scope::Trials(check) => {
                let cells = recorded.header.plan.cells.iter();
                for cell in cells.filter(|cell| recorded.unavailable(&cell.target).is_none()) {
                    let own = recorded.trials.iter().filter(|trial| trial.cell == cell.id);
                    check(recorded, cell, &own.collect::<Vec<_>>(), findings);
                }
            }
            Scope::Run(check) => check(recorded, all, findings),
            Scope::Answer(check) => {
                for (search, view) in all.iter().filter_map(|one| one.search) {
                    check(search, view, findings);
                }
            }
        }
        findings.footnotes.drain(..).for_each(|text| {
            notes.add(text);
        });
    }
    carried
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table of the methodology lists exactly these rules.
    #[test]
    fn the_methodology_lists_every_rule_with_its_limit() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/METHODOLOGY.md");
        let text = std::fs::read_to_string(path).unwrap();
        let start = text.find("| rule | limit |").expect("a table of rules");
        let table: Vec<&str> = text[start..].lines().take_while(|line| !line.is_empty()).collect();
        let head = ["| rule | limit | otherwise |".to_owned(), "|---|---|---|".to_owned()];
        let rows =
            rules().into_iter().map(|r| format!("| {} | {} | {} |", r.name, r.limit, r.meaning));
        let expected: Vec<String> = head.into_iter().chain(rows).collect();
        assert_eq!(table, expected, "replace the table in {path} by:\n{}", expected.join("\n"));
    }

    #[test]
    fn every_rule_has_a_limit_and_a_consequence() {
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
