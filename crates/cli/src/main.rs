//! cachedyno: finds which cache or session store is fastest on this machine, at what load each
//! saturates, and how certain the result is.
//!
//! One file per command; `command_line` defines the arguments, `exit` the errors and exit codes.

mod args;
mod command_line;
mod commands;
mod disks;
mod exit;
mod fault_command;
mod fleet_flags;
mod foreign;
mod limits;
mod measurement_lock;
mod orphaned;
mod output;
mod preflight;
mod progress;
mod random;
mod reach;
mod secrets;
mod serve;
mod server_names;
mod signals;
mod studies;
mod tls_flags;
mod trust;

use clap::{CommandFactory as _, Parser as _};
use command_line::{Arguments, Command};
use commands::redis_benchmark;
use exit::{CliError, DONE, FAILED, USAGE};
use std::process::ExitCode;

fn main() -> ExitCode {
    // The guard is this program with a hidden argument; it must start before any parsing.
    let role = std::env::args_os().nth(1);
    if role.as_ref().is_some_and(|first| first == rig::GUARD_ARGUMENT) {
        return guard_exit(&rig::guard_main(std::io::stdin().lock()));
    }
    if role.is_some_and(|first| first == rig::NEIGHBOUR_ARGUMENT) {
        rig::neighbour_main(std::env::args_os().skip(2).filter_map(|text| text.into_string().ok()));
        return ExitCode::from(FAILED);
    }
    if let Err(error) = secrets::hide_passwords(redis_benchmark::COMMAND) {
        return fail(&error);
    }
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return clap_exit(&error),
    };
    signals::end_with_parent();
    let done = match arguments.command {
        Command::Run(run) => commands::run::run(&run),
        Command::DataSet(data_set) => commands::data_set::run(&data_set),
        Command::Bench(bench) => commands::bench::run(&bench),
        Command::FindMax(search) => commands::find_max::run(&search),
        Command::Clean(clean) => commands::clean::run(&clean),
        Command::Studies(studies) => commands::studies::run(&studies),
        Command::Doctor(doctor) => commands::doctor::run(&doctor),
        Command::Calibrate(calibrate) => commands::calibrate::run(&calibrate),
        Command::List(list) => commands::list::run(&list),
        Command::Prune(prune) => commands::prune::run(&prune),
        Command::Show(show) => commands::show::run(&show),
        Command::Size(size) => commands::size::run(&size),
        Command::Report(report) => commands::report::run(&report),
        Command::Export(export) => commands::export::run(&export),
        Command::Compare(compare) => commands::compare::run(&compare),
        Command::RedisBenchmark { arguments } => redis_benchmark::run(&arguments),
        Command::Worker(worker) => commands::worker::run(&worker),
        Command::NullServer(server) => commands::null_server::run(&server),
        Command::ScriptedServer(server) => commands::scripted_server::run(&server),
        Command::Completions(shell) => commands::completions::run(&shell, Arguments::command()),
        Command::Man(man) => commands::man::run(&man, Arguments::command()),
    };
    match done {
        Ok(code) => code,
        Err(error) => fail(&error),
    }
}

/// Prints an error and returns its exit code.
fn fail(error: &CliError) -> ExitCode {
    output::say(&secrets::masked(&format!("error: {error}")));
    ExitCode::from(error.code())
}

/// Prints clap's error or help and returns its exit code.
fn clap_exit(error: &clap::Error) -> ExitCode {
    match output::print_clap(error) {
        Ok(()) => ExitCode::from(if error.use_stderr() { USAGE } else { DONE }),
        Err(error) => fail(&error),
    }
}

/// Exit code of the guard, which has no other output.
fn guard_exit(done: &std::io::Result<()>) -> ExitCode {
    ExitCode::from(if done.is_ok() { DONE } else { FAILED })
}
