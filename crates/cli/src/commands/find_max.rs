//! `cachedyno find-max TARGET… --slo 'p99<1ms'`: finds each store's highest rate within limits.

use clap::{Args, value_parser};

use model::search::PROBE_NS_MIN;
use model::{Load, Schedule, Search, Slo, Stop};
use std::process::ExitCode;

use super::bench::flags::{KvFlags, Times, arrivals, read};
use crate::args::duration_ns;
use crate::exit::CliError;
use crate::preflight;
use crate::server_names::private_servers;

/// Name under which runs of this command are recorded.
const STUDY: &str = "find-max";

const AFTER_HELP: &str = "Examples:\n  \
    cachedyno find-max redis --slo 'p99<1ms'\n  \
    cachedyno find-max redis://localhost:6379/1 --slo 'p99.9<5ms' --slo 'error<0.01%'\n  \
    cachedyno find-max memcached --slo 'p99<500us' --op get=1 --value 100 --clients 200\n  \
    cachedyno find-max redis memcached --slo 'p99<1ms' --blocks 3\n\n\
    A limit is a percentile and a time (p50<200us, p99<1ms, p99.9<5ms), or a share of failed \
    requests (error<0.01%). Times are measured from when a request was due.";

fn target_help() -> String {
    format!("The store: {} for a private server, a URL, or NAME=URL", private_servers())
}

/// Arguments of `find-max`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP, allow_negative_numbers = true)]
pub(crate) struct FindMax {
    #[arg(value_name = "TARGET", required = true, help = target_help())]
    targets: Vec<String>,
    /// Limit to meet, such as p99<1ms or error<0.01%; repeat to require several
    #[arg(long = "slo", value_name = "LIMIT", required = true)]
    slos: Vec<String>,
    #[command(flatten)]
    flags: KvFlags,
    /// Space requests evenly instead of at random (Poisson)
    #[arg(long)]
    even: bool,
    /// Minimum length of a probe, at least 500ms; longer probes find the rate more precisely
    #[arg(long, value_name = "TIME", default_value = "1s")]
    probe: String,
    /// Unrecorded load before each probe
    #[arg(long, value_name = "TIME", default_value = "250ms")]
    warmup: String,
    /// Confirmation rounds, 2 to 1000, each at three rates; the confidence interval is over them
    #[arg(long, default_value_t = 5, value_parser = value_parser!(u32).range(2..=1000))]
    rounds: u32,
    /// Blocks: each searches every target once; with several blocks the interval is over them and
    /// targets can be compared
    #[arg(long, default_value_t = 1, value_parser = value_parser!(u32).range(1..=1000))]
    blocks: u32,
}

pub(crate) fn run(arguments: &FindMax) -> Result<ExitCode, CliError> {
    let flags = &arguments.flags;
    let search = search(arguments)?;
    let choices = flags.common.choices(&arguments.targets)?;
    let FindMax { blocks, targets, .. } = arguments;
    let (clients, pipeline) = (flags.clients, flags.pipeline);
    flags.check_in_flight(clients)?;
    let warmup_ns = duration_ns("--warmup", Some(&arguments.warmup))?.unwrap_or(0);
    preflight::search(&search, warmup_ns, (*blocks, targets.len())).map_err(CliError::usage)?;
    let times = Times { warmup_ns, stop: Stop::AfterNs(search.probe_ns), think_ns: 0 };
    let workload = flags.workload(times)?;
    let load = Load::planned(arrivals(arguments.even), Schedule::Search(search.clone()), clients)
        .pipelined(pipeline);
    let mut plan = flags.plan(STUDY, &choices, (&workload, &load), *blocks)?;
    let limits: Vec<String> = search.slos.iter().map(ToString::to_string).collect();
    let limits = limits.join(" and ");
    plan.title = format!("Highest rate with {limits}: {}", workload.profile);
    plan.question = format!("What is the highest rate of {} with {limits}?", workload.profile);
    flags.carry_out(plan, &choices)
}

fn search(arguments: &FindMax) -> Result<Search, CliError> {
    let slos: Vec<Slo> =
        arguments.slos.iter().map(|text| read("--slo", text)).collect::<Result<_, _>>()?;
    let probe_ns = duration_ns("--probe", Some(&arguments.probe))?.unwrap_or(0);
    if probe_ns < PROBE_NS_MIN {
        let text = &arguments.probe;
        return Err(CliError::usage(format!(
            "--probe `{text}` is too short (expected 500ms or more)"
        )));
    }
    Ok(Search { slos, probe_ns, rounds: arguments.rounds })
}
