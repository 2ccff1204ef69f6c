//! The fixed rules by which a run is VALID, UNREPLICATED, NOT-STEADY or INVALID: [`RULES`] is the
//! list of all. To change a rule, start at its entry: it names the limit (with its reason in
//! [`limits`](crate::limits)), what people read about it, and the function that applies it.
//!
//! A rule is written once, for everything in its scope, whatever the schedule of the load: steady,
//! a ladder or a search. Where it asks nothing of a point that looks for a limit, the function says
//! so as a condition on the point's part ([`Part`](crate::measurement::Part)).
//!
//! - `served`: whether what was asked for was done; `read_back`: whether it was kept.
//! - `generator`: whether the generator had the time to ask for it.
//! - `steadiness`: whether it stayed as it was; `outages`, `taken`: whether anything came between.
//! - `whole`: whether all was measured that was planned.
//! - `searches`: whether the answer of a search may be used.

mod generator;
mod searches;
mod served;
mod steadiness;
mod whole;

use model::calibration::NULL_FACTOR_MIN;
use model::{Cell, Outage, TAKEN_SHARE_MAX, Trial};
use stats::compare::FEWEST_BLOCKS;
use std::collections::BTreeMap;

use crate::findings::Findings;
use crate::limits::{
    AGAINST_SHARE_MAX, BLAMED_MAX, BUSY_SHARE_MAX, CONTRADICTED_MAX, DRIFT_SHARE_MAX,
    ERROR_SHARE_MAX, KEPT_UP_MIN, LENGTH_SHARE_MIN, LOST_WRITES_MAX, MISS_SHARE_MAX, OWN_SHARE_MAX,
    UNHURRIED_FACTOR_MAX, WAITED_SHARE_MAX, WIDTH_MAX, WRONG_MAX,
};
use crate::measurement::{Counted, Measurement};
use crate::notes::Notes;
use crate::recorded::Recorded;
use crate::search::Sought;
use crate::view::{Rule, SearchView};
use crate::{outages, read_back, taken};

/// A rule, and what it is applied to.
pub(crate) struct Applied {
    /// What is looked at.
    name: &'static str,
    /// The limit, with its unit.
    limit: fn() -> String,
    /// What follows beyond it, and why.
    meaning: &'static str,
    scope: Scope,
}

/// Everything that a rule is applied to, and the function that does it. A trial alone breaks no
/// rule of figures: these are over all trials.
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
    Answer(fn(&Sought<'_>, &SearchView, &mut Findings)),
}

/// All rules, in the order in which they are applied.
const RULES: &[Applied] = &[
    Applied {
        name: "named targets",
        limit: || "all usable".into(),
        meaning: "INVALID: a target that the user named must be measured; one that is merely not \
                  installed need not",
        scope: Scope::Run(whole::named_targets),
    },
    Applied {
        name: "blocks",
        limit: || "at least 1 whole one".into(),
        meaning: "INVALID: what was not measured cannot be compared",
        scope: Scope::Run(whole::blocks),
    },
    Applied {
        name: "failed trials",
        limit: || "0".into(),
        meaning: "INVALID: a target that answered must finish every trial",
        scope: Scope::Trials(whole::failed_trials),
    },
    Applied {
        name: "failed probes",
        limit: || "0 at rates up to a search's answer".into(),
        meaning: "INVALID: a rate that the store sustains does not break it; a footnote above the \
                  answer, where it may",
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
        limit: || "0 in trials that came to their end".into(),
        meaning: "INVALID: what was planned was not measured; a footnote where a plan takes \
                  service or memory away, and a deadline ends what collapses",
        scope: Scope::Trials(whole::missing_phases),
    },
    Applied {
        name: "cut short",
        limit: || format!("{} of a phase's planned length at least", share(LENGTH_SHARE_MIN)),
        meaning: "INVALID: what ended it early is not in its figures",
        scope: Scope::Points(served::cut_short),
    },
    Applied {
        name: "wrong values",
        limit: || WRONG_MAX.to_string(),
        meaning: "INVALID: the store returned other data than it was given",
        scope: Scope::Operation(served::wrong),
    },
    Applied {
        name: "lost writes",
        limit: || LOST_WRITES_MAX.to_string(),
        meaning: "INVALID: of a sample read back after the load, the store did not keep what it \
                  had acknowledged, and no eviction or lifetime explains it",
        scope: Scope::Trials(read_back::check),
    },
    Applied {
        name: "errors",
        limit: || format!("{} of operations", share(ERROR_SHARE_MAX)),
        meaning: "INVALID: failing is often faster than working; a stage or a probe that looks \
                  for a limit may fail",
        scope: Scope::Operation(served::failed),
    },
    Applied {
        name: "misses",
        limit: || format!("{} of sessions that should exist", share(MISS_SHARE_MAX)),
        meaning: "INVALID: a miss is cheaper than a hit",
        scope: Scope::Operation(served::missing),
    },
    Applied {
        name: "evicted data",
        limit: || "0 keys, where a study says how much data there is".into(),
        meaning: "INVALID: the store holds less than was planned; of a cache that evicts a \
                  footnote says so",
        scope: Scope::Trials(served::evicted),
    },
    Applied {
        name: "lowest stage",
        limit: || "held in every block".into(),
        meaning: "INVALID: without a stage that held in a block, no least rate is known that the \
                  store sustains",
        scope: Scope::Points(whole::never_held),
    },
    Applied {
        name: "generator's own work",
        limit: || format!("{} of the clients' time in the median trial", share(OWN_SHARE_MAX)),
        meaning: "INVALID: the generator was measured, not the server; a footnote from half of it \
                  on",
        scope: Scope::Points(generator::own_work),
    },
    Applied {
        name: "unsent requests",
        limit: || "0".into(),
        meaning: "INVALID: the planned rate was not offered; those of a stage or a probe that \
                  looks for a limit have failed",
        scope: Scope::Points(generator::unsent),
    },
    Applied {
        name: "generator's CPUs",
        limit: || format!("{} busy, with the server's less so", share(BUSY_SHARE_MAX)),
        meaning: "INVALID: the generator was measured, not the server; a footnote where the \
                  server's CPU cannot be seen",
        scope: Scope::Points(generator::busy_threads),
    },
    Applied {
        name: "waiting generator",
        limit: || format!("{} of the time without a CPU", share(WAITED_SHARE_MAX)),
        meaning: "NOT-STEADY: requests that are due at a time were sent late; of a ramp the \
                  stages up to the knee count, of a search the long runs",
        scope: Scope::Points(generator::waiting),
    },
    Applied {
        name: "null server",
        limit: || format!("at least {NULL_FACTOR_MIN} times as fast as the target, or as the plan"),
        meaning: "INVALID: the generator was measured, not the server; a footnote where a \
                  key-value load cannot be put on the null server",
        scope: Scope::Points(generator::null_server),
    },
    Applied {
        name: "answer",
        limit: || "a rate found by every search".into(),
        meaning: "INVALID: without a rate there is nothing to plan by; the search says why",
        scope: Scope::Answer(searches::answer),
    },
    Applied {
        name: "busy clients",
        limit: || format!("{UNHURRIED_FACTOR_MAX} times the median at rest"),
        meaning: "INVALID: a search whose failing probes answer so quickly met the limit of its \
                  clients",
        scope: Scope::Answer(searches::busy_clients),
    },
    Applied {
        name: "late generator",
        limit: || format!("{} of a search's probes beyond a limit", share(BLAMED_MAX)),
        meaning: "INVALID: the generator was searched, not the server; such a probe had more \
                  requests sent late than may be beyond the limit",
        scope: Scope::Answer(searches::late_generator),
    },
    Applied {
        name: "disturbed probes",
        limit: || format!("{} of a search's probes beyond a limit", share(BLAMED_MAX)),
        meaning: "NOT-STEADY: the store may sustain more; in such a probe others had the CPUs of \
                  generator or server for longer than requests may be beyond the limit. It counts \
                  like any other",
        scope: Scope::Answer(searches::disturbed_probes),
    },
    Applied {
        name: "contradictions",
        limit: || format!("{} of a search's probes", share(CONTRADICTED_MAX)),
        meaning: "NOT-STEADY: store or machine changed while it was searched, since lower rates \
                  missed a limit that higher ones kept",
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
        meaning: "NOT-STEADY: store or machine changed while a ramp went up, since stages did not \
                  hold below the knee or held above it",
        scope: Scope::Points(steadiness::contradicted),
    },
    Applied {
        name: "drift",
        limit: || {
            format!("{} of the mean rate over a phase, surely, over all blocks", {
                share(DRIFT_SHARE_MAX)
            })
        },
        meaning: "NOT-STEADY: the rate depends on when it was measured; a footnote where data \
                  grow, a phase ends by count, the page cache is cold or one operation lasts a \
                  quarter of the phase",
        scope: Scope::Points(steadiness::drift),
    },
    Applied {
        name: "planned rate",
        limit: || {
            format!(
                "what is due in {} of the time until the last of it is answered, at least",
                share(KEPT_UP_MIN)
            )
        },
        meaning: "NOT-STEADY: a store that does not keep up has a queue that grows, so response \
                  times say how long was measured; stages and probes look for that",
        scope: Scope::Points(steadiness::kept_up),
    },
    Applied {
        name: "outages",
        limit: || {
            format!(
                "no server that loses requests or connections and gives no service for {} ms; of \
                 several, none that is silent for {} s while requests wait for it",
                Outage::SHORTEST_NS / 1_000_000,
                Outage::SILENCE_NS / 1_000_000_000
            )
        },
        meaning: "NOT-STEADY: figures of a time in which a server was gone, or another one took \
                  over, are of no one state; the silence of a server that is alone is in its \
                  response times",
        scope: Scope::Run(outages::check),
    },
    Applied {
        name: "silent servers",
        limit: || "none but those that the plan kills".into(),
        meaning: "NOT-STEADY: where a plan kills a server, another one that stops answering \
                  changes who can take over, and when",
        scope: Scope::Trials(outages::silent_servers),
    },
    Applied {
        name: "taken CPUs",
        limit: || {
            format!(
                "{} of the time of generator or server in at most half of the trials of each \
                 phase, and of a ramp's stages up to the knee and above it",
                share(TAKEN_SHARE_MAX)
            )
        },
        meaning: "NOT-STEADY: other processes or virtual machines had the CPU; nothing is left \
                  out for that",
        scope: Scope::Run(taken::check),
    },
    Applied {
        name: "repetitions",
        limit: || format!("at least {FEWEST_BLOCKS} blocks of each cell"),
        meaning: "UNREPLICATED: fewer give neither an interval nor a ranking, and cannot be \
                  compared",
        scope: Scope::Run(whole::repetitions),
    },
];

fn share(share: f64) -> String {
    format!("{} %", share * 100.0)
}

/// All rules for people, in the order in which they are applied.
pub fn rules() -> Vec<Rule> {
    let told =
        |rule: &Applied| Rule { name: rule.name, limit: (rule.limit)(), meaning: rule.meaning };
    RULES.iter().map(told).collect()
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
                    let told = findings.footnotes.drain(..).map(|text| notes.add(text));
                    carried.entry((&one.cell.id, one.phase)).or_default().extend(told);
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
                for (sought, view) in all.iter().filter_map(|one| one.search) {
                    check(sought, view, findings);
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
