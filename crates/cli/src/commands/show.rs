//! `cachedyno show RUN`: the result of a run again.

use std::process::ExitCode;

use crate::args::Show;
use crate::exit::CliError;

pub(crate) fn run(arguments: &Show) -> Result<ExitCode, CliError> {
    let view = super::view_of(&arguments.records.out, &arguments.run)?;
    super::print(&view, arguments.format)?;
    Ok(ExitCode::SUCCESS)
}
