//! `cachedyno compare RUN RUN`: compares the results that two runs have in common.

use std::process::ExitCode;

use ::report::compare::{Against, against};
use ::report::view::{Validity, View};

use crate::args::{Compare, CompareFormat, FailOn};
use crate::exit::{CliError, DONE, NOT_VALID, UNMET};
use crate::{foreign, output};

pub(crate) fn run(arguments: &Compare) -> Result<ExitCode, CliError> {
    let records = &arguments.records.out;
    let a = super::find(records, &arguments.base)?;
    let b = super::find(records, &arguments.head)?;
    let bytes = foreign::size(&a, 1);
    let a = foreign::within(&a, bytes, || super::view_of(&a))?;
    check_replicated(&a)?;
    foreign::within(&b, bytes + foreign::size(&b, 1), || {
        let b = super::view_of(&b)?;
        check_replicated(&b)?;
        let found = against(&a, &b);
        match arguments.format {
            CompareFormat::Text => output::print_coloured(|colour| {
                ::report::compare::render(&a, &b, super::columns(), colour)
            })?,
            CompareFormat::Junit => {
                output::print(&::report::junit::of_comparison(&a, &b, &found))?;
            }
        }
        Ok(ExitCode::from(arguments.fail_on.map_or(DONE, |what| gate(what, [&a, &b], &found))))
    })
}

/// Exit code of `--fail-on`; also prints the reasons, one per line. If either run is INVALID or
/// NOT-STEADY, the code is [`NOT_VALID`].
fn gate(what: FailOn, runs: [&View; 2], found: &Against) -> u8 {
    for view in runs {
        if matches!(view.validity, Validity::Invalid | Validity::NotSteady) {
            let validity = view.validity.heading();
            output::say(&format!("--fail-on: run `{}` is {validity}, no decision", view.run));
            return NOT_VALID;
        }
    }
    let Against { slower, undecided, others } = found;
    let compared = slower.len() + undecided.len() + others.len();
    for line in slower {
        output::say(&format!("slower: {line}"));
    }
    if what == FailOn::Undecided {
        for line in undecided {
            output::say(&format!("undecided: {line}"));
        }
    }
    if compared == 0 {
        output::say("--fail-on: the runs have no results in common, no decision");
        return NOT_VALID;
    }
    let counts =
        format!("{compared} compared, {} slower, {} undecided", slower.len(), undecided.len());
    let fails = !slower.is_empty() || (what == FailOn::Undecided && !undecided.is_empty());
    output::say(&format!("--fail-on: {}: {counts}", if fails { "failed" } else { "passed" }));
    if fails { UNMET } else { DONE }
}

/// Rejects a run with too few blocks to compare. A search of one block is accepted, since its
/// interval is over its rounds.
fn check_replicated(view: &View) -> Result<(), CliError> {
    let (blocks, fewest) = (view.course.blocks, view.asked.fewest_blocks);
    if view.searches.iter().any(|search| search.blocks <= 1) {
        return Ok(());
    }
    if blocks as usize >= fewest {
        return match (view.validity, view.reasons.first()) {
            (Validity::Unreplicated, Some(why)) => Err(CliError::usage(format!(
                "run `{}` is UNREPLICATED and cannot be compared: {why}",
                view.run
            ))),
            _ => Ok(()),
        };
    }
    let plural = if blocks == 1 { "" } else { "s" };
    Err(CliError::usage(format!(
        "run `{}` has {blocks} block{plural} and cannot be compared (expected {fewest} or more: \
         measure again with --blocks {fewest}, or for a study with a longer --budget)",
        view.run
    )))
}
