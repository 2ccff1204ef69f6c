//! `cachedyno bench TARGET…`: custom key-value load, with a record and a page like a study's.

use clap::{Args, value_parser};
use model::program::BY_URL;
use model::{Arrivals, Load, Schedule, Stage, Stop, parse_stages};
use std::process::ExitCode;

pub(super) mod flags;
pub(super) mod targets;

use self::flags::{KvFlags, Times, arrivals};
use crate::args::{duration_ns, require};
use crate::exit::CliError;
use crate::server_names::{private_servers, titles};

/// Name under which runs of this command are recorded.
const STUDY: &str = "bench";

/// Maximum of `--requests` and of `--rate`.
const REQUESTS_MAX: u64 = 1 << 40;
const RATE_MAX: u64 = 100_000_000;

const AFTER_HELP: &str = "Examples:\n  \
    cachedyno bench redis\n  \
    cachedyno bench redis://localhost:6379/1 --op get=0.9,set=0.1 --value 1KiB --keys 1000000\n  \
    cachedyno bench redis --rate 50000 --clients 20 --dist zipf:0.99\n  \
    cachedyno bench redis --stages 10s:1000,30s:1000-50000,10s:50000 --blocks 1\n  \
    cachedyno bench redis memcached --pipeline 16\n  \
    cachedyno bench redis valkey --set io-threads=2\n  \
    cachedyno bench mc=memcached://10.0.0.1:11211,10.0.0.2:11211?protocol=meta\n  \
    cachedyno bench c=rediss+cluster://user@10.0.0.3:7000 --cacert ca.pem\n  \
    cachedyno bench redis --command 'HSET __key__ field __data__' --pipeline 16\n\n\
    With --rate, latency is measured from the time when a request was due, so server stalls are \
    fully visible.";

fn targets_help() -> String {
    let (private, others) = (private_servers(), titles(BY_URL));
    format!("Stores to measure: {private} for a private server, or NAME=URL, as for {others}")
}

/// Arguments of `bench`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP, allow_negative_numbers = true)]
pub(crate) struct Bench {
    #[arg(value_name = "TARGET", required = true, help = targets_help())]
    targets: Vec<String>,
    #[command(flatten)]
    flags: KvFlags,
    /// Active clients over time, instead of --clients and --duration: stages of a duration and a
    /// number, or two numbers for a linear ramp, such as 10s:1,60s:1-200,10s:200
    #[arg(long, value_name = "TIME:CLIENTS[-CLIENTS],...")]
    #[arg(conflicts_with_all = ["clients", "duration", "rate", "stages"])]
    client_stages: Option<String>,
    /// Requests per second, such as 20k, sent when due without waiting for earlier replies
    #[arg(long, value_name = "PER SECOND", group = "open")]
    #[arg(value_parser = |text: &str| count(text, RATE_MAX, " per second"))]
    rate: Option<u64>,
    /// Rate over time, instead of --rate and --duration: stages of a duration and a rate, or two
    /// rates for a linear ramp, such as 10s:1000,30s:1000-50000
    #[arg(long, value_name = "TIME:RATE[-RATE],...", group = "open", conflicts_with = "duration")]
    stages: Option<String>,
    /// With --rate or --stages: space requests evenly instead of at random (Poisson)
    #[arg(long, requires = "open")]
    even: bool,
    /// Pause of a client between its replies and its next requests, such as 5ms (think time)
    #[arg(long, value_name = "TIME", conflicts_with = "open")]
    think: Option<String>,
    /// Length of the measurement in each block
    #[arg(long, value_name = "TIME", default_value = "2s")]
    duration: String,
    /// Unrecorded load before the measurement
    #[arg(long, value_name = "TIME", default_value = "500ms")]
    warmup: String,
    /// Requests per block instead of --duration, such as 100k; split equally between clients,
    /// rounded up
    #[arg(long, short = 'n', value_name = "N")]
    #[arg(value_parser = |text: &str| count(text, REQUESTS_MAX, ""))]
    #[arg(conflicts_with_all = ["duration", "open", "client_stages"])]
    requests: Option<u64>,
    /// Limit for every result, such as p99<2ms, max<50ms, mean<300us, error<0.1% or rate>20k; the
    /// exit code is 5 if any result misses it
    #[arg(long = "require", value_name = "LIMIT")]
    requirements: Vec<String>,
    /// Blocks: each measures every target once; the confidence interval is over them
    #[arg(long, default_value_t = 5, value_parser = value_parser!(u32).range(1..=1000))]
    blocks: u32,
}

/// Parses a count of 1 to `max`; `unit` is appended to `max` in the error.
fn count(text: &str, max: u64, unit: &str) -> Result<u64, String> {
    let count = stats::parse_count(text).map_err(|e| e.to_string())?;
    let in_range = (1..=max).contains(&count).then_some(count);
    in_range.ok_or_else(|| format!("expected 1 to {max}{unit}"))
}

pub(crate) fn run(arguments: &Bench) -> Result<ExitCode, CliError> {
    let flags = &arguments.flags;
    let choices = flags.common.choices(&arguments.targets)?;
    let load = load(arguments)?;
    let workload = flags.workload(times(arguments)?)?;
    let mut plan = flags.plan(STUDY, &choices, (&workload, &load), arguments.blocks)?;
    require(&mut plan, &arguments.requirements)?;
    flags.carry_out(plan, &choices)
}

fn load(arguments: &Bench) -> Result<Load, CliError> {
    let Bench { flags, rate, even, .. } = arguments;
    let (clients, arrivals, schedule) = match (stages(arguments)?, *rate) {
        (Some((Arrivals::Closed, stages)), _) => {
            (Stage::highest(&stages) as u32, Arrivals::Closed, Schedule::Stages(stages))
        }
        (Some((arrivals, stages)), _) => (flags.clients, arrivals, Schedule::Stages(stages)),
        (None, Some(rate)) => (flags.clients, arrivals(*even), Schedule::Steady(rate)),
        (None, None) => (flags.clients, Arrivals::Closed, Schedule::Steady(flags.clients.into())),
    };
    flags.check_in_flight(clients)?;
    Ok(Load::planned(arrivals, schedule, clients).pipelined(flags.pipeline))
}

/// The requested stages and their kind of load: closed if the levels are clients, open if rates.
fn stages(arguments: &Bench) -> Result<Option<(Arrivals, Vec<Stage>)>, CliError> {
    let Bench { stages, client_stages, even, .. } = arguments;
    let (flag, text, arrivals) = match (stages, client_stages) {
        (Some(text), _) => ("--stages", text, arrivals(*even)),
        (None, Some(text)) => ("--client-stages", text, Arrivals::Closed),
        (None, None) => return Ok(None),
    };
    let stages =
        parse_stages(text, arrivals).map_err(|e| CliError::usage(format!("{flag}: {e}")))?;
    Ok(Some((arrivals, stages)))
}

fn times(arguments: &Bench) -> Result<Times, CliError> {
    let time = |flag, text: &str| duration_ns(flag, Some(text)).map(Option::unwrap_or_default);
    let stop = match (stages(arguments)?, arguments.requests) {
        (Some((_, stages)), _) => Stop::AfterNs(Stage::length_of(&stages)),
        (None, Some(requests)) => {
            Stop::Count(requests.div_ceil(u64::from(arguments.flags.clients)))
        }
        (None, None) => Stop::AfterNs(time("--duration", &arguments.duration)?),
    };
    if stop == Stop::AfterNs(0) {
        return Err(CliError::usage(
            "--duration `0` measures nothing (expected a longer time, such as 2s)",
        ));
    }
    Ok(Times {
        warmup_ns: time("--warmup", &arguments.warmup)?,
        stop,
        think_ns: duration_ns("--think", arguments.think.as_deref())?.unwrap_or(0),
    })
}
