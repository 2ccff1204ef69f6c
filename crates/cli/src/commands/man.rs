//! `cachedyno man`: writes the manual pages, one for the program and one for each command.

use clap::{Args, Command};
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use crate::exit::CliError;

/// Arguments of `man`.
#[derive(Debug, Args)]
pub(crate) struct ManArguments {
    /// Directory to write to, created if missing
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

/// `program` is the command line that the pages describe.
pub(crate) fn run(arguments: &ManArguments, program: Command) -> Result<ExitCode, CliError> {
    let directory = &arguments.directory;
    let failed = |e| CliError::failed(format!("cannot write to `{}`: {e}", directory.display()));
    fs::create_dir_all(directory).map_err(failed)?;
    // Each command has its own page; `help` would have one more of each.
    clap_mangen::generate_to(program.disable_help_subcommand(true), directory).map_err(failed)?;
    Ok(ExitCode::SUCCESS)
}
