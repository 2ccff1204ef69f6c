//! Arguments of commands, and how their texts are read.

use clap::{Args, ValueEnum};
use lab::Setup;
use model::{Plan, Requirement, TargetChoice};
use rig::{Guard, Pinning};
use std::path::PathBuf;

use crate::exit::CliError;
use crate::kin::targets_help;
use crate::secrets;

/// How a result is printed.
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

/// What is printed of a run.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Printing {
    /// Print nothing but the result
    #[arg(long, short)]
    pub(crate) quiet: bool,
    #[command(flatten)]
    pub(crate) shape: Shape,
}

/// The form in which a result is printed.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Shape {
    /// How the result is printed
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: Format,
    /// Print all tables, claims, events and notes as well, as the page and Markdown have them
    #[arg(long)]
    pub(crate) details: bool,
}

impl Printing {
    /// True where nothing is said while it is measured.
    pub(crate) fn is_silent(self) -> bool {
        self.quiet || self.shape.format != Format::Text
    }
}

/// How much is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Scale {
    /// A first answer in one to three minutes
    Quick,
    /// Longer phases and more blocks, for a quarter of an hour at most
    Standard,
    /// The size of the study's source
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

/// Where records are.
#[derive(Clone, Debug, Args)]
pub(crate) struct Records {
    /// Directory that holds the records
    #[arg(long, value_name = "DIR", default_value = archive::RECORDS)]
    pub(crate) out: PathBuf,
}

const FILL_HELP: &str = "How an application cache is filled; the same as --set fill=fast\n\n\
    What is there afterwards is the same. A backend that cannot fill fast saves, and the result \
    says so.";

/// Where a run can be watched while it lasts.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Serve {
    /// Serve a live page and metrics for Prometheus while the run lasts, such as 127.0.0.1:9464
    #[arg(long, value_name = "IP:PORT", long_help = SERVE_HELP)]
    pub(crate) serve: Option<String>,
}

/// What --i-own-this-server means.
const OWN_HELP: &str = "Allow what may reach other people's data on existing servers\n\n\
    Memory and eviction belong to a server: a database number isolates nothing. Without this flag \
    a run is refused where it could fill more than 90 % of a server's memory, and stops when it \
    gets there; memcached is used only when empty; and commands of your own may name only keys \
    that begin with __key__. With it nothing of that is checked. Give it only where nobody keeps \
    data on that server. It stands in the record.";

const SERVE_HELP: &str = "Serve a live page and metrics for Prometheus while the run lasts\n\n\
    The page is at /, the metrics at /metrics, and what the page is made of at /events; all are \
    read-only. Port 0 takes one that is free. With 127.0.0.1 only this machine can read, with \
    0.0.0.0 everyone who reaches it.";

/// How the records of an application cache are saved before the first phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Fill {
    /// Each by the backend's own save (default)
    Save,
    /// Many records at once
    Fast,
}

/// Arguments of `run`.
#[derive(Debug, Args)]
pub(crate) struct Run {
    /// Name of a shipped study, or the path of a study file
    #[arg(required_unless_present = "resume")]
    pub(crate) study: Option<String>,
    /// How much is measured
    #[arg(long, value_enum, default_value = "standard", conflicts_with = "resume")]
    pub(crate) scale: Scale,
    /// Time for all blocks instead of the scale's own, such as 5m; 0s for no limit
    #[arg(long, value_name = "TIME", conflicts_with = "resume")]
    pub(crate) budget: Option<String>,
    /// Replace a value of the study, such as profile=page or redis.appendonly=yes
    #[arg(long = "set", value_name = "KEY=VALUE", conflicts_with = "resume")]
    pub(crate) sets: Vec<String>,
    /// Application cache: read records and lists from the original benchmark's files in DIR
    #[arg(long, value_name = "DIR", conflicts_with = "resume")]
    pub(crate) data_set: Option<PathBuf>,
    /// How an application cache is filled; the same as --set fill=fast
    #[arg(long, value_enum, conflicts_with = "resume", long_help = FILL_HELP)]
    pub(crate) fill: Option<Fill>,
    /// Measure only this target; with a URL, an existing store
    #[arg(long = "target", value_name = "NAME[=URL]", long_help = targets_help())]
    pub(crate) targets: Vec<String>,
    /// Measure one target twice under two names: the difference must be none
    #[arg(long, conflicts_with = "resume")]
    pub(crate) aa: bool,
    /// Seed of order, names and values (default: random)
    #[arg(long, conflicts_with = "resume")]
    pub(crate) seed: Option<u64>,
    /// Time after which an unanswered operation counts as failed, such as 500ms
    #[arg(long, value_name = "TIME", conflicts_with = "resume")]
    pub(crate) timeout: Option<String>,
    /// What every result must meet, such as p99<2ms, max<50ms, mean<300us, error<0.1% or rate>20k;
    /// else the exit code is 5
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
    /// Allow existing stores that hold data, but for application caches and memcached; only what
    /// this run made is ever removed
    #[arg(long)]
    pub(crate) allow_shared: bool,
    /// Allow what may reach other people's data on existing servers: there is none on them
    #[arg(long, long_help = OWN_HELP)]
    pub(crate) i_own_this_server: bool,
    /// Directory on the disk under test: data of private servers, and session files
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) disk: PathBuf,
    #[command(flatten)]
    pub(crate) serve: Serve,
    #[command(flatten)]
    pub(crate) printing: Printing,
    #[command(flatten)]
    pub(crate) records: Records,
}

impl Common {
    /// Places and credentials of what is measured; starts the guard.
    pub(crate) fn setup(&self, targets: &[TargetChoice], resumes: bool) -> Result<Setup, CliError> {
        if !self.disk.is_dir() {
            let disk = self.disk.display();
            return Err(CliError::usage(format!("--disk `{disk}` is not a directory")));
        }
        Ok(Setup {
            guard: Guard::start()?,
            disk: self.disk.clone(),
            pinning: Pinning::for_this_process(),
            endpoints: secrets::endpoints(targets, &self.password_files)?,
            allow_shared: self.allow_shared,
            resumes,
            i_own_this_server: self.i_own_this_server,
        })
    }
}

/// A run that is taken up again.
#[derive(Debug, Args)]
pub(crate) struct Resume {
    /// Add the missing trials to an interrupted or killed run
    #[arg(id = "resume", long = "resume", value_name = "RUN")]
    pub(crate) run: Option<String>,
    /// Resume a run that another host planned, without being asked
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
    /// Directory on the disk that would be measured
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) disk: PathBuf,
    /// Remove what killed runs left in --disk, TMPDIR and /tmp and among control groups, and
    /// nothing else
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
    /// Remove only records of runs that began longer ago, such as 30d
    #[arg(long, value_name = "TIME")]
    pub(crate) older_than: Option<String>,
    /// Remove them; else they are only named
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
    /// Write the page there instead of into the record
    #[arg(long, value_name = "FILE")]
    pub(crate) page: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) records: Records,
}

/// Arguments of `export`.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "one flag a form, of which one is given")]
#[group(id = "what", required = true, multiple = false)]
pub(crate) struct Export {
    /// Path, id, unique prefix of an id, or `latest`
    #[arg(default_value = "latest")]
    pub(crate) run: String,
    /// A line for each result, comma-separated
    #[arg(long, group = "what")]
    pub(crate) csv: bool,
    /// A line for each result and block, comma-separated
    #[arg(long, group = "what")]
    pub(crate) csv_blocks: bool,
    /// A line for each reading of what server and generator used, comma-separated
    #[arg(long, group = "what")]
    pub(crate) csv_samples: bool,
    /// A line for each probe of a search, comma-separated
    #[arg(long, group = "what")]
    pub(crate) csv_probes: bool,
    /// Percentile distributions as HdrHistogram's plotters read them: a file for each result in DIR
    #[arg(long, value_name = "DIR", group = "what")]
    pub(crate) hgrm: Option<PathBuf>,
    /// The summary that docs/FORMAT.md describes
    #[arg(long, group = "what")]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) records: Records,
}

/// How a comparison is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CompareFormat {
    /// Tables for the terminal
    Text,
    /// A test case for each line, for continuous integration
    Junit,
}

/// What fails a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FailOn {
    /// The second run is slower, sustains less or costs more in something
    Slower,
    /// That, or undecided in something
    Undecided,
}

/// Arguments of `compare`.
#[derive(Debug, Args)]
pub(crate) struct Compare {
    /// The run that the other is compared with
    pub(crate) base: String,
    /// The run to compare with it
    pub(crate) head: String,
    /// How the comparison is printed
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: CompareFormat,
    /// Exit with code 5 if the second run is slower, or if that is undecided
    #[arg(long, value_name = "WHAT", value_enum)]
    pub(crate) fail_on: Option<FailOn>,
    #[command(flatten)]
    pub(crate) records: Records,
}

/// The pairs of `--set`.
pub(crate) fn sets(pairs: &[String]) -> Result<Vec<(String, String)>, CliError> {
    let split = |pair: &String| match pair.split_once('=') {
        Some((key, value)) => Ok((key.to_string(), value.to_string())),
        None => Err(CliError::usage(format!("--set `{pair}` is not of the form KEY=VALUE"))),
    };
    pairs.iter().map(split).collect()
}

/// Requires something of every result of a plan.
pub(crate) fn require(plan: &mut Plan, texts: &[String]) -> Result<(), CliError> {
    let read = |text: &String| {
        text.parse::<Requirement>().map_err(|e| CliError::usage(format!("--require: {e}")))
    };
    plan.requirements = texts.iter().map(read).collect::<Result<_, _>>()?;
    match plan.cells.iter().find(|cell| cell.load.is_probing()) {
        Some(cell) if !texts.is_empty() => Err(CliError::usage(format!(
            "--require: `{}` is {}, which looks for a limit (expected a load that a store should \
             sustain; for a highest rate within limits: cachedyno find-max)",
            cell.id, cell.load
        ))),
        _ => Ok(()),
    }
}

/// Time-outs are kept in whole milliseconds.
pub(crate) fn timeout_ms(text: Option<&str>) -> Result<Option<u64>, CliError> {
    match duration_ns("--timeout", text)? {
        Some(ns) if ns < 1_000_000 => {
            let text = text.unwrap_or_default();
            Err(CliError::usage(format!("--timeout `{text}` is too short (expected 1ms or more)")))
        }
        ns => Ok(ns.map(|ns| ns / 1_000_000)),
    }
}

/// A time of a flag in nanoseconds.
pub(crate) fn duration_ns(flag: &str, text: Option<&str>) -> Result<Option<u64>, CliError> {
    let parse = |text| stats::parse_duration_ns(text);
    text.map(parse).transpose().map_err(|e| CliError::usage(format!("{flag}: {e}")))
}
