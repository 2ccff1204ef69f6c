//! Arguments of commands and their parsing.

use clap::{Args, ValueEnum};
use lab::{Protection, Setup};
use model::{Plan, Requirement, TargetChoice};
use rig::{Guard, Pinning};
use std::path::PathBuf;

use crate::disks;
use crate::exit::CliError;
use crate::fleet_flags::FleetFlags;
use crate::secrets;
use crate::server_names::targets_help;
use crate::tls_flags::TlsFlags;

/// Output format of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Tables for the terminal
    Text,
    /// The summary that docs/FORMAT.md describes
    Json,
    /// Tables for a document
    Markdown,
    /// Test cases for continuous integration: validity, requirements, limits and claims
    Junit,
}

/// Output options of a run.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Printing {
    /// Print only the result
    #[arg(long, short)]
    pub(crate) quiet: bool,
    #[command(flatten)]
    pub(crate) shape: Shape,
}

/// Format and level of detail of a result.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Shape {
    /// Format of the result; `cachedyno export` writes CSV
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: Format,
    /// Also print all tables, claims, events and notes, like the page and Markdown
    #[arg(long)]
    pub(crate) details: bool,
}

impl Printing {
    /// True if no progress is shown.
    pub(crate) fn is_silent(self) -> bool {
        self.quiet || self.shape.format != Format::Text
    }
}

/// Scale of a study.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Scale {
    /// A first answer in one to three minutes
    Quick,
    /// Longer phases and more blocks: 10 to 20 minutes, `failover` 40
    Standard,
    /// As large as in the publication that the study follows
    Full,
}

impl From<Scale> for model::Scale {
    fn from(scale: Scale) -> Self {
        match scale {
            Scale::Quick => Self::Quick,
            Scale::Standard => Self::Standard,
            Scale::Full => Self::Full,
        }
    }
}

/// Location of records.
#[derive(Clone, Debug, Args)]
pub(crate) struct Records {
    /// Directory of the records
    #[arg(long, value_name = "DIR", default_value = archive::RECORDS)]
    pub(crate) out: PathBuf,
}

const FILL_HELP: &str = "How an application cache is filled; the same as --set fill=fast\n\n\
    The resulting data is the same. A backend without a fast fill uses saves, which the result \
    notes.";

/// Address of the live page.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Serve {
    /// Serve a live page and Prometheus metrics during the run, for example on 127.0.0.1:9464
    #[arg(long, value_name = "IP:PORT", long_help = SERVE_HELP)]
    pub(crate) serve: Option<String>,
}

/// Help of --i-own-this-server.
const OWN_HELP: &str = "Skip the checks that protect other data on existing servers\n\n\
    All databases of a server share its memory and its evictions. Without this flag, a run is \
    refused if it could fill more than 90 % of a server's memory, and stops at that limit; \
    memcached must be empty; and your own commands may only use keys that start with __key__. \
    With it, none of this is checked. Use it only if the server contains no data of other users. \
    The record notes the flag.";

/// Help of --allow-fill.
const FILL_BEYOND_HELP: &str = "Fill existing servers beyond their memory if they contain \
    no keys\n\n\
    Without this flag, a run is refused if it could fill more than 90 % of the memory of a Redis \
    or memcached server at a URL (maxmemory, or else the machine's memory; -m). With it, a server \
    that has no keys in any database may evict keys or refuse writes: those of the run, and those \
    that others send while it lasts. A server with keys needs --i-own-this-server, and a Redis \
    without maxmemory is refused as before, since its machine would swap or kill it. The record \
    notes the flag.";

/// Help of --fault-command.
const FAULT_COMMAND_HELP: &str = "Command that causes the fault on targets at a URL\n\n\
    cachedyno never kills, stops, restarts or fails over a server that it did not start. In the \
    study `failover`, this command does it instead, for example --fault-command 'kubectl delete \
    pod redis-0'. It is run with `sh -c` at the time of each fault, once per trial, in your \
    environment (without CACHEDYNO_PASSWORD_NAME) with CACHEDYNO_FAULT (kill, hang, restart, \
    partition, failover or migration), CACHEDYNO_TARGET (the target's name) and CACHEDYNO_ADDRESS \
    (HOST:PORT). The fault begins when the command does. An exit code other than 0, or a command \
    that still runs when the measurement ends, is a failure of the trial, with the last line of \
    its standard error. Nothing restores the server: the next trial needs it again. The record \
    contains only the name of the program, but other users can read the process list: let the \
    command read passwords from the environment or a file.";

const SERVE_HELP: &str = "Serve a live page and Prometheus metrics during the run\n\n\
    The page is at /, the metrics at /metrics, and the page's data at /events; all are read-only. \
    Port 0 picks a free port. With 127.0.0.1 only this machine can connect, with 0.0.0.0 everyone \
    who can reach it.";

/// Method of filling an application cache before the first phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Fill {
    /// Save each record with the backend (default)
    Save,
    /// Write many records at once
    Fast,
}

/// Arguments of `run`.
#[derive(Debug, Args)]
pub(crate) struct Run {
    /// Name of a shipped study, or the path of a study file
    #[arg(required_unless_present = "resume")]
    pub(crate) study: Option<String>,
    /// Length and number of blocks
    #[arg(long, value_enum, default_value = "standard", conflicts_with = "resume")]
    pub(crate) scale: Scale,
    /// Time for all blocks instead of that of the scale, for example 5m; 0s for no limit
    #[arg(long, value_name = "TIME", conflicts_with = "resume")]
    pub(crate) budget: Option<String>,
    /// Replace a value of the study, for example profile=page or redis.appendonly=yes
    #[arg(long = "set", value_name = "KEY=VALUE", conflicts_with = "resume")]
    pub(crate) sets: Vec<String>,
    /// Application cache: read records and lists from the original benchmark's files in DIR
    #[arg(long, value_name = "DIR", conflicts_with = "resume")]
    pub(crate) data_set: Option<PathBuf>,
    /// Method of filling an application cache; same as --set fill=fast
    #[arg(long, value_enum, conflicts_with = "resume", long_help = FILL_HELP)]
    pub(crate) fill: Option<Fill>,
    /// Measure only this target; with a URL, an existing store; with a directory, data there
    #[arg(long = "target", value_name = "[LABEL:]NAME[=URL|=DIR]", long_help = targets_help())]
    pub(crate) targets: Vec<String>,
    /// Command that causes the fault on targets at a URL, which cachedyno never interrupts itself
    #[arg(long, value_name = "COMMAND", long_help = FAULT_COMMAND_HELP)]
    pub(crate) fault_command: Option<String>,
    /// Measure one target twice under two names; no difference is expected
    #[arg(long, conflicts_with = "resume")]
    pub(crate) aa: bool,
    /// Seed of order, names and values (default: random)
    #[arg(long, conflicts_with = "resume")]
    pub(crate) seed: Option<u64>,
    /// Time after which an unanswered operation counts as failed, for example 500ms
    #[arg(long, value_name = "TIME", conflicts_with = "resume")]
    pub(crate) timeout: Option<String>,
    /// Time without any answer after which a cell ends with what it measured, at least 1s, or
    /// 0s for no limit (default: 30s, or the timeout if that is longer)
    #[arg(long, value_name = "TIME", conflicts_with = "resume")]
    pub(crate) stall_limit: Option<String>,
    /// Require a limit of every result, for example p99<2ms, max<50ms, mean<300us, error<0.1% or
    /// rate>20k; otherwise the exit code is 5
    #[arg(long = "require", value_name = "LIMIT", conflicts_with = "resume")]
    pub(crate) requirements: Vec<String>,
    #[command(flatten)]
    pub(crate) resume: Resume,
    #[command(flatten)]
    pub(crate) common: Common,
}

/// Flags of every command that measures: stores, disk and output.
#[derive(Debug, Args)]
pub(crate) struct Common {
    /// Read the password of a target from a file
    #[arg(long = "password-file", value_name = "NAME=FILE")]
    pub(crate) password_files: Vec<String>,
    #[command(flatten)]
    pub(crate) tls: TlsFlags,
    /// Allow existing stores with data, except for application caches and memcached; only data of
    /// this run is ever removed
    #[arg(long)]
    pub(crate) allow_shared: bool,
    /// Skip the checks that protect other data on existing servers
    #[arg(long, long_help = OWN_HELP)]
    pub(crate) i_own_this_server: bool,
    /// Fill existing servers beyond their memory if they contain no keys
    #[arg(long, long_help = FILL_BEYOND_HELP)]
    pub(crate) allow_fill: bool,
    /// Directory on the disk under test, for data of private servers and for files; a target can
    /// have its own
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) disk: PathBuf,
    #[command(flatten)]
    pub(crate) fleet: FleetFlags,
    #[command(flatten)]
    pub(crate) serve: Serve,
    #[command(flatten)]
    pub(crate) printing: Printing,
    #[command(flatten)]
    pub(crate) records: Records,
}

impl Common {
    /// Parses targets and applies the TLS flags to them.
    pub(crate) fn choices(&self, targets: &[String]) -> Result<Vec<TargetChoice>, CliError> {
        let mut choices: Vec<TargetChoice> =
            targets.iter().map(|t| TargetChoice::parse(t)).collect::<Result<_, _>>()?;
        self.tls.apply(&mut choices)?;
        Ok(choices)
    }

    /// Directories, endpoints and credentials of a run; starts the guard.
    pub(crate) fn setup(&self, targets: &[TargetChoice], resumes: bool) -> Result<Setup, CliError> {
        if !self.disk.is_dir() {
            let disk = self.disk.display();
            return Err(CliError::usage(format!("--disk `{disk}` is not a directory")));
        }
        disks::check(targets)?;
        let guard = Guard::start()?;
        Ok(Setup {
            rig_on: self.fleet.rig(&guard)?,
            guard,
            disk: self.disk.clone(),
            pinning: Pinning::for_this_process(),
            endpoints: secrets::endpoints(targets, &self.password_files)?,
            allow_shared: self.allow_shared,
            resumes,
            protection: match (self.i_own_this_server, self.allow_fill) {
                (true, _) => Protection::Off,
                (false, true) => Protection::EmptyMayFill,
                (false, false) => Protection::Full,
            },
            fleet: None,
            fault_command: None,
        })
    }
}

/// A run to resume.
#[derive(Debug, Args)]
pub(crate) struct Resume {
    /// Add the missing trials to an interrupted or killed run
    #[arg(id = "resume", long = "resume", value_name = "RUN")]
    pub(crate) run: Option<String>,
    /// Resume a run planned on another host without asking
    #[arg(long, requires = "resume")]
    pub(crate) trust_record: bool,
}

/// Arguments of `studies`.
#[derive(Debug, Args)]
pub(crate) struct Studies {
    /// Print this study's file
    pub(crate) name: Option<String>,
}

/// Arguments of `doctor`.
#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Directory on the disk under test
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) disk: PathBuf,
    /// Remove leftovers of killed runs in --disk, TMPDIR, /tmp and control groups, and nothing else
    #[arg(long)]
    pub(crate) clean: bool,
}

/// Arguments of `list`.
#[derive(Debug, Args)]
pub(crate) struct List {
    #[command(flatten)]
    pub(crate) records: Records,
}

/// Arguments of `prune`.
#[derive(Debug, Args)]
#[group(id = "which", required = true, multiple = true, args = ["keep", "older_than"])]
pub(crate) struct Prune {
    /// Keep the newest N records
    #[arg(long, value_name = "N")]
    pub(crate) keep: Option<usize>,
    /// Remove only records of runs older than this, for example 30d
    #[arg(long, value_name = "TIME")]
    pub(crate) older_than: Option<String>,
    /// Remove the records; without this flag they are only listed
    #[arg(long)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) records: Records,
}

/// Arguments of `show`.
#[derive(Debug, Args)]
pub(crate) struct Show {
    /// Path, id, unique prefix of an id, or `latest`
    #[arg(default_value = "latest")]
    pub(crate) run: String,
    #[command(flatten)]
    pub(crate) shape: Shape,
    #[command(flatten)]
    pub(crate) records: Records,
}

/// Arguments of `report`.
#[derive(Debug, Args)]
pub(crate) struct Report {
    /// Path, id, unique prefix of an id, or `latest`
    #[arg(default_value = "latest")]
    pub(crate) run: String,
    /// Write the page to this file instead of into the record
    #[arg(long, value_name = "FILE")]
    pub(crate) page: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) records: Records,
}

/// Arguments of `export`.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "one flag per format, mutually exclusive")]
#[group(id = "what", required = true, multiple = false)]
pub(crate) struct Export {
    /// Path, id, unique prefix of an id, or `latest`
    #[arg(default_value = "latest")]
    pub(crate) run: String,
    /// CSV with a line per result
    #[arg(long, group = "what")]
    pub(crate) csv: bool,
    /// CSV with a line per result and block
    #[arg(long, group = "what")]
    pub(crate) csv_blocks: bool,
    /// CSV with a line per sample of resource usage
    #[arg(long, group = "what")]
    pub(crate) csv_samples: bool,
    /// CSV with a line per probe of a search
    #[arg(long, group = "what")]
    pub(crate) csv_probes: bool,
    /// Percentile distributions for HdrHistogram's plotters: a file per result in DIR
    #[arg(long, value_name = "DIR", group = "what")]
    pub(crate) hgrm: Option<PathBuf>,
    /// The summary that docs/FORMAT.md describes
    #[arg(long, group = "what")]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) records: Records,
}

/// Output format of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CompareFormat {
    /// Tables for the terminal
    Text,
    /// A test case per line, for continuous integration
    Junit,
}

/// Condition for the exit code of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FailOn {
    /// In some result, the second run is slower, sustains less or costs more
    Slower,
    /// The same, or undecided in some result
    Undecided,
}

/// Arguments of `compare`.
#[derive(Debug, Args)]
pub(crate) struct Compare {
    /// Baseline run
    pub(crate) base: String,
    /// Run to compare with the baseline
    pub(crate) head: String,
    /// Format of the comparison
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: CompareFormat,
    /// Exit with code 5 if the second run is slower, or also if that is undecided
    #[arg(long, value_name = "WHAT", value_enum)]
    pub(crate) fail_on: Option<FailOn>,
    #[command(flatten)]
    pub(crate) records: Records,
}

/// Parses the pairs of `--set`.
pub(crate) fn sets(pairs: &[String]) -> Result<Vec<(String, String)>, CliError> {
    let split = |pair: &String| match pair.split_once('=') {
        Some((key, value)) => Ok((key.to_string(), value.to_string())),
        None => Err(CliError::usage(format!("--set `{pair}` is not of the form KEY=VALUE"))),
    };
    pairs.iter().map(split).collect()
}

/// Adds requirements to a plan.
pub(crate) fn require(plan: &mut Plan, texts: &[String]) -> Result<(), CliError> {
    let read = |text: &String| {
        text.parse::<Requirement>().map_err(|e| CliError::usage(format!("--require: {e}")))
    };
    plan.requirements = texts.iter().map(read).collect::<Result<_, _>>()?;
    match plan.cells.iter().find(|cell| cell.load.is_probing()) {
        Some(cell) if !texts.is_empty() => Err(CliError::usage(format!(
            "--require: `{}` is {}, which searches for a limit (expected a load that a store \
             should sustain; for the highest rate within limits: cachedyno find-max)",
            cell.id, cell.load
        ))),
        _ => Ok(()),
    }
}

/// Parses a timeout to whole milliseconds.
pub(crate) fn timeout_ms(text: Option<&str>) -> Result<Option<u64>, CliError> {
    match duration_ns("--timeout", text)? {
        Some(ns) if ns < 1_000_000 => {
            let text = text.unwrap_or_default();
            Err(CliError::usage(format!("--timeout `{text}` is too short (expected 1ms or more)")))
        }
        ns => Ok(ns.map(|ns| ns / 1_000_000)),
    }
}

/// Shortest limit of a stall, nanoseconds: shorter ones would end cells for pauses of a shared
/// machine.
const STALL_NS_MIN: u64 = 1_000_000_000;

/// Parses `--stall-limit` to nanoseconds.
pub(crate) fn stall_ns(text: Option<&str>) -> Result<Option<u64>, CliError> {
    let ns = duration_ns("--stall-limit", text)?;
    match (ns, text) {
        (Some(1..STALL_NS_MIN), Some(text)) => Err(CliError::usage(format!(
            "--stall-limit `{text}` is too short to tell a stall from a pause of this machine \
             (expected 1s or more, or 0s for no limit)"
        ))),
        _ => Ok(ns),
    }
}

/// Parses a flag's duration to nanoseconds.
pub(crate) fn duration_ns(flag: &str, text: Option<&str>) -> Result<Option<u64>, CliError> {
    let parse = |text| stats::parse_duration_ns(text);
    text.map(parse).transpose().map_err(|e| CliError::usage(format!("{flag}: {e}")))
}
