//! `cachedyno scripted-server`: a server with known times and faults, until it is ended.

use clap::Args;
use rig::reference::{Script, ScriptError, ScriptedServer, ScriptedSettings, Stamp, Tally};
use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use super::serving::{Place, Until, count, refused};
use crate::exit::CliError;
use crate::output;

/// The words of a script, as `rig::reference::Script` reads them.
const SCRIPT_HELP: &str = "What the server does: words joined by commas, or several flags

service=constant:TIME             each request takes so long
service=exponential:TIME          a time of the exponential distribution with this mean
service=bimodal:TIME:TIME:SHARE   the first time, or with this share the second
servers=N                         so many requests are served at once (1)
stall=TIME/TIME                   stops for the first time once every second time
stall-once=TIME@TIME              stops once, the second time after the first request
stall-connection=TIME@N           the N-th connection is not read for a time
rate=N                            at most so many replies a second
drip=SIZE/TIME                    replies go out in pieces, one each time
error=SHARE:TEXT                  this share of requests is answered by an error
wrong=SHARE, short=SHARE          a value has a changed byte, lacks its last one
malformed=SHARE                   the reply is not of the protocol
gigantic=SHARE, endless=SHARE     the reply announces 512 MiB, is a line without end
hang=SHARE                        the connection is not answered any more
faults-on=COMMAND                 faults with a share happen to this command only
faults-after=N                    and only after so many requests, over all connections
reset=SHARE, reset-after=N        the connection is reset, by chance or after N replies
close-on-accept                   connections are closed at once
max-connections=N                 more are refused as Redis does
seed=N                            another draw of random times and faults (1)";

/// Arguments of `scripted-server`.
#[derive(Debug, Args)]
#[command(
    allow_negative_numbers = true,
    after_help = "It speaks RESP and memcached's text protocol and remembers what it is \
    given. Example: --script service=exponential:100us --script stall=200ms/2s"
)]
pub(crate) struct ScriptedArguments {
    #[command(flatten)]
    place: Place,
    /// What the server does, such as service=constant:1ms,stall=200ms/2s (all words: --help)
    #[arg(long = "script", value_name = "WORDS", long_help = SCRIPT_HELP)]
    scripts: Vec<String>,
    /// Write when each request was read and its reply sent, as comma-separated lines
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Never sleep: costs a CPU and reads each request at once; over TCP replies are due as if it
    /// had been read when it came, however long the CPU was taken away
    #[arg(long)]
    spin: bool,
    /// CPUs to run on, such as 1 or 0,2
    #[arg(long, value_name = "CPU", value_delimiter = ',')]
    cpus: Vec<usize>,
    #[command(flatten)]
    until: Until,
}

pub(crate) fn run(arguments: &ScriptedArguments) -> Result<ExitCode, CliError> {
    let parsed = arguments.scripts.join(",").parse::<Script>();
    let script = parsed.map_err(|e: ScriptError| CliError::usage(format!("--script: {e}")))?;
    // Before anything is measured that could not be kept.
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
    let mut server = ScriptedServer::start(&settings).map_err(refused)?;
    output::print(&format!("listening on {}\n", server.address()))?;
    until.wait()?;
    server.stop();
    if let Some(log) = log {
        log.write(&server.log())?;
    }
    output::print(&summary(&server))?;
    Ok(ExitCode::SUCCESS)
}

/// A file that stamps are written to.
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
            |e| CliError::failed(format!("--log `{}` is not whole: {e}", self.path.display()));
        lines(BufWriter::new(self.file), stamps).map_err(failed)
    }
}

/// A line for each request; without a time where no reply was sent.
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

/// What was served, what went wrong as the script wanted it, and how exact the times were.
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
        format!("replies left {} (p50), {} (p99) after they were due\n", at(0.5), at(0.99))
    };
    requests + &faults + &late
}

/// How often each fault happened.
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
        (tally.unlogged, "without a line in the log"),
    ]
}
