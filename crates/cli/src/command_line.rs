//! The command line as clap reads it: the commands, each with the arguments of its own file or of
//! [`args`](crate::args).

use clap::{Parser, Subcommand};

use crate::args::{Compare, Doctor, Export, List, Prune, Report, Run, Show, Studies};
use crate::commands::null_server::NullArguments;
use crate::commands::scripted_server::ScriptedArguments;

/// Which cache or session store is fastest here, where each breaks, and how sure that is.
#[derive(Debug, Parser)]
#[command(name = "cachedyno", version = crate::studies::TOOL_VERSION, about, max_term_width = 100)]
#[command(after_help = "Examples:\n  \
    cachedyno run sessions --scale quick\n  \
    cachedyno run app-cache --target redis=redis://10.0.0.5:6379/9\n  \
    cachedyno bench redis memcached --op get=0.9,set=0.1 --value 1KiB\n  \
    cachedyno find-max redis --slo 'p99<1ms'\n  \
    cachedyno show latest --details\n  \
    cachedyno compare RUN RUN --fail-on slower\n\n\
    Exit codes: 0 done, and VALID or UNREPLICATED, 1 unexpected failure, 2 usage or study error, \
    3 a named target cannot be used, 4 the run is INVALID or NOT-STEADY, 5 a requirement is not \
    met, 130 interrupted.")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Measure a study on real stores and say which is fastest
    Run(Box<Run>),
    /// Write a data set of an application cache as files that the original benchmark reads
    DataSet(crate::commands::data_set::DataSet),
    /// Run a key-value load of your own
    Bench(Box<crate::commands::bench::Bench>),
    /// Find the highest rate that a server sustains within limits of latency and errors
    FindMax(Box<crate::commands::find_max::FindMax>),
    /// List the shipped studies, or print one to start your own from
    Studies(Studies),
    /// Say which stores are installed, what on this host would disturb a measurement, and what
    /// killed runs left here
    Doctor(Doctor),
    /// Measure what this machine can do and what the generator costs, for later records
    Calibrate(crate::commands::calibrate::Calibrate),
    /// List the records of earlier runs
    List(List),
    /// Remove records of earlier runs
    Prune(Prune),
    /// Show the result of a run again
    Show(Show),
    /// Make the page of a run again and print its path
    Report(Report),
    /// Print the numbers of a run for other programs
    Export(Export),
    /// Remove what a killed run left in an existing store
    Clean(crate::commands::clean::Clean),
    /// Compare what two runs have in common: results, ramps, searches
    Compare(Compare),
    /// Run the tests of redis-benchmark, with its flags and its output, and correct its figures
    #[command(disable_help_flag = true, disable_version_flag = true)]
    RedisBenchmark {
        /// As redis-benchmark takes them; --help lists them
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<std::ffi::OsString>,
    },
    /// Serve RESP and memcached at the least cost, to see what a generator can do at most
    NullServer(NullArguments),
    /// Serve RESP and memcached at times and with faults that are known, to judge a generator by
    ScriptedServer(ScriptedArguments),
}
