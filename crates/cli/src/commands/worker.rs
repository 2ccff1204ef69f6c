//! `cachedyno worker`: offers a part of the loads of a driver on another process or machine.

use clap::Args;
use lab::fleet::Token;
use lab::fleet::worker::{Joining, work};
use rig::{Guard, Pinning, Scratch};
use std::path::PathBuf;
use std::process::ExitCode;

use crate::exit::{CliError, DONE};
use crate::signals::watch_signals;
use crate::{limits, output, studies};

const AFTER_HELP: &str = "Examples:\n  \
    cachedyno worker --join 10.0.0.1:7000 --token-file cachedyno-fleet.token\n  \
    for host in a b c; do scp -q cachedyno-fleet.token $host: && ssh $host cachedyno worker \
    --join 10.0.0.1:7000 --token-file cachedyno-fleet.token & done\n\n\
    The driver, a `bench`, `find-max` or `run` with --fleet listen:10.0.0.1:7000,3, writes the \
    token file. The worker ends with the driver, at the latest 5 s after it is gone.";

/// Arguments of `worker`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct WorkerArguments {
    /// Address of the driver
    #[arg(long, value_name = "HOST:PORT")]
    join: String,
    /// Token file that the driver wrote
    #[arg(long, value_name = "FILE")]
    token_file: PathBuf,
    /// CPUs for its threads, such as 2,3 [default: all that it may use]
    #[arg(long, value_name = "CPU,...", value_delimiter = ',')]
    cpus: Vec<usize>,
}

pub(crate) fn run(arguments: &WorkerArguments) -> Result<ExitCode, CliError> {
    let token = Token::read(&arguments.token_file).map_err(|e| CliError::usage(e.to_string()))?;
    limits::raise();
    let stop = watch_signals(None)?;
    let guard = Guard::start()?;
    let directory = Scratch::for_sockets(&guard)?;
    let cpus = if arguments.cpus.is_empty() {
        let Pinning { generator, server, .. } = Pinning::for_this_process();
        let mut all = [generator, server].concat();
        all.sort_unstable();
        all.dedup();
        all
    } else {
        arguments.cpus.clone()
    };
    let joining = Joining {
        address: &arguments.join,
        token: &token,
        cpus,
        version: studies::TOOL_VERSION,
        host: rig::host_name(),
        directory: directory.path(),
    };
    let ended = work(&joining, &stop, &mut |line| output::say(line));
    ended.map(|()| ExitCode::from(DONE)).map_err(|e| CliError::failed(e.to_string()))
}
