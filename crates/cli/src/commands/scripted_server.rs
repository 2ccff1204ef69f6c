//! `cachedyno scripted-server`: runs a server with known service times and faults until it is
//! stopped.

use clap::Args;
use rig::reference::{Script, ScriptError, ScriptedServer, ScriptedSettings, Stamp, Tally};
use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use super::serving::{ListenFlags, StopFlags, count, start_error};
use crate::exit::CliError;
use crate::output;

/// The directives that `rig::reference::Script` parses.
const SCRIPT_HELP: &str = "Server behaviour: directives separated by commas, or several flags

service=constant:TIME             each request takes this long
service=exponential:TIME          exponentially distributed service times with this mean
service=bimodal:TIME:TIME:SHARE   the first time, or the second for this share of requests
servers=N                         requests served in parallel (1)
stall=LENGTH/PERIOD               stall for this length once per period
stall-once=LENGTH@TIME            stall once, this time after the first request
stall-connection=TIME@N           do not read the N-th connection for this time
rate=N                            at most N replies per second
drip=SIZE/TIME                    send replies in pieces of this size, one per interval
error=SHARE:TEXT                  answer this share of requests with an error
wrong=SHARE, short=SHARE          corrupt one byte of a value, drop its last byte
malformed=SHARE                   send a reply that violates the protocol
gigantic=SHARE, endless=SHARE     announce a 512 MiB reply, send a line that never ends
hang=SHARE                        stop answering on this connection
faults-on=COMMAND                 limit faults that have a share to this command
faults-after=N                    and to requests after the first N of all connections
reset=SHARE, reset-after=N        reset the connection, at random or after N replies
close-on-accept                   close each connection at once
max-connections=N                 refuse further connections as Redis does
seed=N                            seed of random times and faults (1)";

/// Arguments of `scripted-server`.
#[derive(Debug, Args)]
#[command(
    allow_negative_numbers = true,
    after_help = "It speaks RESP and memcached's text protocol and stores what is written. \
    Example: --script service=exponential:100us --script stall=200ms/2s"
)]
pub(crate) struct ScriptedArguments {
    #[command(flatten)]
    place: ListenFlags,
    /// Server behaviour, such as service=constant:1ms,stall=200ms/2s (full list: --help)
    #[arg(long = "script", value_name = "DIRECTIVES", long_help = SCRIPT_HELP)]
    scripts: Vec<String>,
    /// Write the time at which each request was read and each reply sent, as CSV
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Busy-poll: uses a whole CPU and reads each request at once; over TCP, due times count from
    /// the request's arrival even if the server was preempted
    #[arg(long)]
    spin: bool,
    /// CPUs to run on, such as 1 or 0,2
    #[arg(long, value_name = "CPU", value_delimiter = ',')]
    cpus: Vec<usize>,
    #[command(flatten)]
    until: StopFlags,
}

pub(crate) fn run(arguments: &ScriptedArguments) -> Result<ExitCode, CliError> {
    let parsed = arguments.scripts.join(",").parse::<Script>();
    let script = parsed.map_err(|e: ScriptError| CliError::usage(format!("--script: {e}")))?;
    // Fail early if the log cannot be written.
    let log = arguments.log.as_deref().map(Log::create).transpose()?;
    let settings = ScriptedSettings {
        listen: arguments.place.listen(),
        script,
        log: log.is_some(),
        spin: arguments.spin,
        from_arrival: arguments.spin,
        cpus: arguments.cpus.clone(),
    };
    let until = arguments.until.watch()?;
    let mut server = ScriptedServer::start(&settings).map_err(start_error)?;
    output::print(&format!("listening on {}\n", server.address()))?;
    until.wait()?;
    server.stop();
    if let Some(log) = log {
        log.write(&server.log())?;
    }
    output::print(&summary(&server))?;
    Ok(ExitCode::SUCCESS)
}

/// The file of the request log.
struct Log<'a> {
    path: &'a Path,
    file: File,
}

impl<'a> Log<'a> {
    fn create(path: &'a Path) -> Result<Self, CliError> {
        let refused = |e| CliError::usage(format!("--log `{}`: {e}", path.display()));
        Ok(Self { path, file: File::create(path).map_err(refused)? })
    }

    fn write(self, stamps: &[Stamp]) -> Result<(), CliError> {
        let failed =
            |e| CliError::failed(format!("--log `{}` is incomplete: {e}", self.path.display()));
        lines(BufWriter::new(self.file), stamps).map_err(failed)
    }
}

/// Writes one CSV line per request; `sent_ns` is empty if no reply was sent.
fn lines(mut out: BufWriter<File>, stamps: &[Stamp]) -> io::Result<()> {
    writeln!(out, "connection,request,received_ns,sent_ns")?;
    for stamp in stamps {
        write!(out, "{},{},{},", stamp.connection, stamp.request, stamp.received_ns)?;
        match stamp.sent_ns {
            Some(sent_ns) => writeln!(out, "{sent_ns}")?,
            None => writeln!(out)?,
        }
    }
    out.flush()
}

/// Requests served, faults injected, and how late replies were sent.
fn summary(server: &ScriptedServer) -> String {
    let tally = server.tally();
    let requests = format!(
        "served {} on {} with {}\n",
        count(tally.requests, "request"),
        count(tally.connections, "connection"),
        if tally.replies == 1 { "1 reply".into() } else { format!("{} replies", tally.replies) },
    );
    let faults: Vec<String> = faults(&tally)
        .into_iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, what)| format!("{what} {number}"))
        .collect();
    let faults = match faults.join(", ").as_str() {
        "" => String::new(),
        faults => format!("faults: {faults}\n"),
    };
    let late = server.lateness();
    let at = |q| stats::format_ns(late.quantile_ns(q) as f64);
    let late = if late.is_empty() {
        String::new()
    } else {
        format!("replies sent {} (p50), {} (p99) after they were due\n", at(0.5), at(0.99))
    };
    requests + &faults + &late
}

/// Count of each injected fault.
fn faults(tally: &Tally) -> [(u64, &'static str); 12] {
    [
        (tally.errors, "errors"),
        (tally.wrong, "wrong values"),
        (tally.short, "short values"),
        (tally.malformed, "malformed"),
        (tally.gigantic, "gigantic"),
        (tally.endless, "endless"),
        (tally.hung, "never answered"),
        (tally.resets, "resets"),
        (tally.stalled, "connections stalled"),
        (tally.refused, "connections refused"),
        (tally.closed, "connections closed"),
        (tally.unlogged, "not logged"),
    ]
}
