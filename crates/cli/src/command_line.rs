//! The command line for clap: the commands, with arguments from their own files or from
//! [`args`](crate::args).

use clap::{Parser, Subcommand};

use crate::args::{Compare, Doctor, Export, List, Prune, Report, Run, Show, Studies};
use crate::commands::completions::CompletionsArguments;
use crate::commands::man::ManArguments;
use crate::commands::null_server::NullArguments;
use crate::commands::scripted_server::ScriptedArguments;

/// Find which cache or session store is fastest on this machine, at what load each saturates, and
/// how certain the result is.
#[derive(Debug, Parser)]
#[command(name = "cachedyno", version = crate::studies::TOOL_VERSION, about, max_term_width = 100)]
#[command(after_help = "Examples:\n  \
    cachedyno run sessions --scale quick\n  \
    cachedyno run app-cache --target redis=redis://10.0.0.5:6379/9\n  \
    cachedyno bench redis memcached --op get=0.9,set=0.1 --value 1KiB\n  \
    cachedyno find-max redis --slo 'p99<1ms'\n  \
    cachedyno show latest --details\n  \
    cachedyno compare RUN RUN --fail-on slower\n  \
    cachedyno size --rate 40k --slo 'p99<1ms' --value 1KiB --keys 5M\n\n\
    Exit codes: 0 done, and VALID or UNREPLICATED, 1 unexpected failure, 2 usage or study error, \
    3 a named target cannot be used, 4 the run is INVALID or NOT-STEADY, 5 a requirement is not \
    met, 6 the records do not cover a question, 130 interrupted.")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Measure a study on real stores and report which is fastest
    Run(Box<Run>),
    /// Write the data set of an application cache as files for the original benchmark
    DataSet(crate::commands::data_set::DataSet),
    /// Run your own key-value load
    Bench(Box<crate::commands::bench::Bench>),
    /// Find the highest rate that a server sustains within latency and error limits
    FindMax(Box<crate::commands::find_max::FindMax>),
    /// List the shipped studies, or print one as a template for your own
    Studies(Studies),
    /// Check installed stores, possible disturbances on this host, and leftovers of killed runs
    Doctor(Doctor),
    /// Measure this machine's limits and the generator's cost, for later records
    Calibrate(crate::commands::calibrate::Calibrate),
    /// List the records of earlier runs
    List(List),
    /// Remove records of earlier runs
    Prune(Prune),
    /// Show the result of an earlier run
    Show(Show),
    /// Say which measured target carries a rate, with how many servers and how much memory
    Size(Box<crate::commands::size::Size>),
    /// Write the page of a run again and print its path
    Report(Report),
    /// Export the numbers of a run for other programs
    Export(Export),
    /// Remove the data of a killed run from an existing store
    Clean(crate::commands::clean::Clean),
    /// Compare the common results, ramps and searches of two runs
    Compare(Compare),
    /// Run redis-benchmark's tests with its flags and output format, but correct figures
    #[command(disable_help_flag = true, disable_version_flag = true)]
    RedisBenchmark {
        /// Arguments of redis-benchmark; --help lists them
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<std::ffi::OsString>,
    },
    /// Offer a part of the load of another cachedyno, or start servers for it
    Worker(crate::commands::worker::WorkerArguments),
    /// Serve RESP and memcached at minimal cost, to measure the maximum rate of a generator
    NullServer(NullArguments),
    /// Serve RESP and memcached with known latencies and faults, to check a generator
    ScriptedServer(ScriptedArguments),
    /// Print the completion script of a shell
    Completions(CompletionsArguments),
    /// Write the manual pages
    #[command(hide = true)]
    Man(ManArguments),
}
