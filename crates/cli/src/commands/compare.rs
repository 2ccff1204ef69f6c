//! `cachedyno compare RUN RUN`: what two runs have in common.

use std::process::ExitCode;

use ::report::view::{Validity, View};

use crate::args::Compare;
use crate::exit::CliError;
use crate::{foreign, output};

pub(crate) fn run(arguments: &Compare) -> Result<ExitCode, CliError> {
    let records = &arguments.records.out;
    let a = super::find(records, &arguments.run)?;
    let b = super::find(records, &arguments.with)?;
    let bytes = foreign::size(&a, 1);
    let a = foreign::within(&a, bytes, || super::view_of(&a))?;
    replicated(&a)?;
    foreign::within(&b, bytes + foreign::size(&b, 1), || {
        let b = super::view_of(&b)?;
        replicated(&b)?;
        output::print_painted(|colour| ::report::compare::render(&a, &b, super::columns(), colour))
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Refuses a run of fewer blocks than tell anything apart; a search of one block has its rounds.
fn replicated(view: &View) -> Result<(), CliError> {
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
