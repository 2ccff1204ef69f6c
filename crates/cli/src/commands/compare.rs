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

/// Refuses a run that cannot be compared with any other.
fn replicated(view: &View) -> Result<(), CliError> {
    if view.validity != Validity::Unreplicated {
        return Ok(());
    }
    Err(CliError::usage(format!(
        "run `{}` is {} and cannot be compared ({})",
        view.run,
        view.validity.heading(),
        view.reasons.join("; ")
    )))
}
