//! `cachedyno compare RUN RUN`: what two runs have in common.

use std::process::ExitCode;

use crate::args::Compare;
use crate::exit::CliError;
use crate::output;

pub(crate) fn run(arguments: &Compare) -> Result<ExitCode, CliError> {
    let records = &arguments.records.out;
    let a = super::view_of(records, &arguments.run)?;
    let b = super::view_of(records, &arguments.with)?;
    output::print(&::report::compare::render(&a, &b, super::columns(), true))?;
    Ok(ExitCode::SUCCESS)
}
