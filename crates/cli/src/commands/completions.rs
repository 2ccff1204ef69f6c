//! `cachedyno completions`: prints the completion script of a shell.

use clap::builder::PossibleValuesParser;
use clap::{Args, Command, ValueEnum};
use clap_complete::{Generator, aot};
use std::process::ExitCode;

use super::redis_benchmark;
use crate::exit::CliError;
use crate::server_names::private_server_names;
use crate::{output, studies};

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
    let program = completed(program)?;
    let script = match arguments.shell {
        Shell::Bash => script(aot::Bash, program),
        Shell::Zsh => script(aot::Zsh, program),
        Shell::Fish => script(aot::Fish, program),
    };
    output::print(&script)?;
    Ok(ExitCode::SUCCESS)
}

/// The command line with what only completions need: flags that `redis-benchmark` parses itself,
/// and names where other values are allowed as well.
fn completed(program: Command) -> Result<Command, CliError> {
    let known = |command: Command, argument: &str, names: Vec<String>| {
        command.mut_arg(argument, |own| own.value_parser(PossibleValuesParser::new(names)))
    };
    let servers = || private_server_names().map(String::from).collect();
    let studies = studies::names().map(String::from).collect();
    let targets = studies::target_names()?.into_iter().collect();
    Ok(program
        .mut_subcommand("run", |run| known(known(run, "study", studies), "targets", targets))
        .mut_subcommand("bench", |bench| known(bench, "targets", servers()))
        .mut_subcommand("find-max", |find_max| known(find_max, "targets", servers()))
        .mut_subcommand(redis_benchmark::COMMAND, |own| own.args(redis_benchmark::flags())))
}

fn script(shell: impl Generator, mut program: Command) -> String {
    let mut written = Vec::new();
    let name = program.get_name().to_string();
    clap_complete::generate(shell, &mut program, name, &mut written);
    String::from_utf8_lossy(&written).into_owned()
}
