//! cachedyno: which cache or session store is fastest here, where each breaks, how sure that is.
//!
//! One file a command; `args` reads the command line, `exit` maps errors to exit codes.

mod alone;
mod args;
mod commands;
mod exit;
mod foreign;
mod limits;
mod output;
mod ownerless;
mod progress;
mod secrets;
mod sense;
mod serve;
mod studies;
mod trust;

use args::{Arguments, Command};
use clap::Parser as _;
use std::process::ExitCode;

fn main() -> ExitCode {
    // The guard is this program under a hidden argument: it must start before anything is parsed.
    if std::env::args_os().nth(1).is_some_and(|first| first == rig::GUARD_ARGUMENT) {
        return exit::of_guard(&rig::guard_main(std::io::stdin().lock()));
    }
    if let Err(error) = secrets::leave_the_process_list() {
        return exit::print(&error);
    }
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return exit::of_clap(&error),
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
        Command::Show(show) => commands::show::run(&show),
        Command::Report(report) => commands::report::run(&report),
        Command::Export(export) => commands::export::run(&export),
        Command::Compare(compare) => commands::compare::run(&compare),
        Command::RedisBenchmark { arguments } => commands::redis_benchmark::run(&arguments),
        Command::NullServer(server) => commands::null_server::run(&server),
        Command::ScriptedServer(server) => commands::scripted_server::run(&server),
    };
    match done {
        Ok(code) => code,
        Err(error) => exit::print(&error),
    }
}
