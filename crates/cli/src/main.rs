//! cachedyno: which cache or session store is fastest here, where each breaks, how sure that is.
//!
//! One file a command; `command_line` is what clap reads, `exit` gives errors their exit codes.

mod args;
mod command_line;
mod commands;
mod exit;
mod foreign;
mod kin;
mod limits;
mod measurement_lock;
mod output;
mod ownerless;
mod preflight;
mod progress;
mod random;
mod reach;
mod secrets;
mod serve;
mod signals;
mod studies;
mod trust;

use clap::Parser as _;
use command_line::{Arguments, Command};
use commands::redis_benchmark;
use exit::{CliError, DONE, FAILED, USAGE};
use std::process::ExitCode;

fn main() -> ExitCode {
    // The guard is this program under a hidden argument: it must start before anything is parsed.
    if std::env::args_os().nth(1).is_some_and(|first| first == rig::GUARD_ARGUMENT) {
        return of_guard(&rig::guard_main(std::io::stdin().lock()));
    }
    if let Err(error) = secrets::leave_the_process_list(redis_benchmark::COMMAND) {
        return fail(&error);
    }
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return of_clap(&error),
    };
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
        Command::Report(report) => commands::report::run(&report),
        Command::Export(export) => commands::export::run(&export),
        Command::Compare(compare) => commands::compare::run(&compare),
        Command::RedisBenchmark { arguments } => redis_benchmark::run(&arguments),
        Command::NullServer(server) => commands::null_server::run(&server),
        Command::ScriptedServer(server) => commands::scripted_server::run(&server),
    };
    match done {
        Ok(code) => code,
        Err(error) => fail(&error),
    }
}

/// Prints the error and gives its exit code.
fn fail(error: &CliError) -> ExitCode {
    output::say(&secrets::masked(&format!("error: {error}")));
    ExitCode::from(error.code())
}

/// Prints what clap found wrong, or the help that was asked for, and gives its exit code.
fn of_clap(error: &clap::Error) -> ExitCode {
    match output::say_clap(error) {
        Ok(()) => ExitCode::from(if error.use_stderr() { USAGE } else { DONE }),
        Err(error) => fail(&error),
    }
}

/// The guard has nobody to talk to: its exit code is all it says.
fn of_guard(done: &std::io::Result<()>) -> ExitCode {
    ExitCode::from(if done.is_ok() { DONE } else { FAILED })
}
