//! `cachedyno show RUN`: prints the result of an earlier run.

use std::process::ExitCode;

use crate::args::Show;
use crate::exit::CliError;

pub(crate) fn run(arguments: &Show) -> Result<ExitCode, CliError> {
    super::judged(&arguments.records.out, &arguments.run, |view| {
        super::print(&view, arguments.shape)
    })?;
    Ok(ExitCode::SUCCESS)
}
