//! `cachedyno completions`: prints the completion script of a shell.

use clap::{Args, Command, ValueEnum};
use clap_complete::{Generator, aot};
use std::process::ExitCode;

use crate::exit::CliError;
use crate::output;

/// Shells with a completion script.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Shell {
    /// For ~/.local/share/bash-completion/completions/cachedyno
    Bash,
    /// For a file `_cachedyno` in a directory of $fpath
    Zsh,
    /// For ~/.config/fish/completions/cachedyno.fish
    Fish,
}

/// Arguments of `completions`.
#[derive(Debug, Args)]
pub(crate) struct CompletionsArguments {
    /// Shell that reads the script
    shell: Shell,
}

/// `program` is the command line that the script completes.
pub(crate) fn run(
    arguments: &CompletionsArguments,
    program: Command,
) -> Result<ExitCode, CliError> {
    let script = match arguments.shell {
        Shell::Bash => script(aot::Bash, program),
        Shell::Zsh => script(aot::Zsh, program),
        Shell::Fish => script(aot::Fish, program),
    };
    output::print(&script)?;
    Ok(ExitCode::SUCCESS)
}

fn script(shell: impl Generator, mut program: Command) -> String {
    let mut written = Vec::new();
    let name = program.get_name().to_string();
    clap_complete::generate(shell, &mut program, name, &mut written);
    String::from_utf8_lossy(&written).into_owned()
}
