//! `cachedyno null-server`: runs a server with minimal cost per reply until it is stopped.

use clap::Args;
use rig::reference::{NullServer, NullSettings};
use std::process::ExitCode;
use std::time::Instant;

use super::serving::{ListenFlags, StopFlags, count};
use crate::exit::CliError;
use crate::output;

/// Arguments of `null-server`.
#[derive(Debug, Args)]
#[command(
    allow_negative_numbers = true,
    after_help = "It speaks RESP and memcached's text protocol. Without --remember, a read \
    returns a value of the right length, regardless of what was written."
)]
pub(crate) struct NullArguments {
    #[command(flatten)]
    place: ListenFlags,
    /// Number of worker threads
    #[arg(long, value_name = "N", default_value_t = 1)]
    threads: usize,
    /// CPUs to pin the threads to, one each in turn, such as 1 or 0,2
    #[arg(long, value_name = "CPU", value_delimiter = ',')]
    cpus: Vec<usize>,
    /// Length of the values in replies
    #[arg(long, value_name = "SIZE", default_value = "1KiB")]
    value: String,
    /// Keep the last value of up to N keys, so that reads return what was written
    #[arg(long, value_name = "N", default_value_t = 0, conflicts_with = "miss")]
    remember: usize,
    /// Answer every read as a miss
    #[arg(long)]
    miss: bool,
    #[command(flatten)]
    until: StopFlags,
}

pub(crate) fn run(arguments: &NullArguments) -> Result<ExitCode, CliError> {
    let value_bytes = stats::parse_bytes(&arguments.value)
        .map_err(|e| CliError::usage(format!("--value: {e}")))?;
    let settings = NullSettings {
        listen: arguments.place.listen(),
        threads: arguments.threads,
        cpus: arguments.cpus.clone(),
        value_bytes: usize::try_from(value_bytes).unwrap_or(usize::MAX),
        miss: arguments.miss,
        remember: arguments.remember,
    };
    let until = arguments.until.watch()?;
    let server = NullServer::start(&settings).map_err(super::serving::start_error)?;
    output::print(&format!("listening on {}\n", server.address()))?;
    let started = Instant::now();
    until.wait()?;
    let (done, seconds) = (server.served(), started.elapsed().as_secs_f64());
    drop(server);
    output::print(&format!(
        "served {} on {} in {}\n",
        count(done.requests, "request"),
        count(done.connections, "connection"),
        stats::format_ns(seconds * 1e9),
    ))?;
    Ok(ExitCode::SUCCESS)
}
