//! `cachedyno bench TARGET…`: key-value load of one's own, with a record and a page like a study's.

use clap::{Args, value_parser};
use model::program::BY_URL;
use model::{ClientStages, Load, RateStages};
use std::process::ExitCode;

pub(super) mod flags;
pub(super) mod targets;

use self::flags::{KvFlags, Times, read};
use crate::args::duration_ns;
use crate::exit::CliError;
use crate::kin::{private_servers, titles};

/// Name under which runs of this command are recorded.
const STUDY: &str = "bench";

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
    Latency under --rate is counted from the moment at which a request should have been sent, so \
    that a stall of the server is seen in full.";

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
    /// Clients at work over time, in place of --clients and --duration: stages of a length and a
    /// number, or two between which it changes evenly, such as 10s:1,60s:1-200,10s:200
    #[arg(long, value_name = "TIME:CLIENTS[-CLIENTS],...")]
    #[arg(conflicts_with_all = ["clients", "duration", "rate", "stages"])]
    client_stages: Option<String>,
    /// Requests per second, sent when they are due, whether or not others were answered
    #[arg(long, value_name = "PER SECOND")]
    #[arg(value_parser = value_parser!(u64).range(1..=100_000_000), group = "open")]
    rate: Option<u64>,
    /// The same at a rate that changes, in place of --rate and --duration: stages of a length and a
    /// rate, or two between which it changes evenly, such as 10s:1000,30s:1000-50000
    #[arg(long, value_name = "TIME:RATE[-RATE],...", group = "open", conflicts_with = "duration")]
    stages: Option<String>,
    /// Under --rate and --stages: evenly spaced requests instead of independent ones
    #[arg(long, requires = "open")]
    even: bool,
    /// Pause of a client between its replies and its next requests, such as 5ms
    #[arg(long, value_name = "TIME", conflicts_with = "open")]
    think: Option<String>,
    /// Length of a block's measurement
    #[arg(long, value_name = "TIME", default_value = "2s")]
    duration: String,
    /// Unrecorded load before it
    #[arg(long, value_name = "TIME", default_value = "500ms")]
    warmup: String,
    /// Blocks: each measures every target once; the interval is over them
    #[arg(long, default_value_t = 5, value_parser = value_parser!(u32).range(1..=1000))]
    blocks: u32,
}

pub(crate) fn run(arguments: &Bench) -> Result<ExitCode, CliError> {
    let flags = &arguments.flags;
    let choices = flags.choices(&arguments.targets)?;
    let load = load(arguments)?;
    let workload = flags.workload(times(arguments)?)?;
    let plan = flags.plan(STUDY, &choices, (&workload, &load), arguments.blocks)?;
    flags.carry_out(plan, &choices)
}

fn load(arguments: &Bench) -> Result<Load, CliError> {
    let (client_stages, pipeline) = (client_stages(arguments)?, arguments.flags.pipeline);
    let clients = client_stages.as_ref().map_or(arguments.flags.clients, ClientStages::most);
    arguments.flags.under_way(clients)?;
    let stages = stages(arguments)?;
    let highest = stages.as_ref().map(RateStages::highest_per_s);
    let stages = stages.map(RateStages::into_vec).unwrap_or_default();
    Ok(match arguments.rate.or(highest) {
        None => Load::Closed {
            clients,
            one_session: false,
            pipeline,
            stages: client_stages.map(ClientStages::into_vec).unwrap_or_default(),
        },
        Some(rate_per_s) => {
            Load::Open { rate_per_s, poisson: !arguments.even, clients, pipeline, stages }
        }
    })
}

fn stages(arguments: &Bench) -> Result<Option<RateStages>, CliError> {
    arguments.stages.as_ref().map(|text| read("--stages", text)).transpose()
}

fn client_stages(arguments: &Bench) -> Result<Option<ClientStages>, CliError> {
    arguments.client_stages.as_ref().map(|text| read("--client-stages", text)).transpose()
}

fn times(arguments: &Bench) -> Result<Times, CliError> {
    let time = |flag, text: &str| duration_ns(flag, Some(text)).map(Option::unwrap_or_default);
    let measured_ns = match (stages(arguments)?, client_stages(arguments)?) {
        (Some(stages), _) => stages.length_ns(),
        (None, Some(stages)) => stages.length_ns(),
        (None, None) => time("--duration", &arguments.duration)?,
    };
    if measured_ns == 0 {
        return Err(CliError::usage("--duration `0` measures nothing (expected more, as in 2s)"));
    }
    Ok(Times {
        warmup_ns: time("--warmup", &arguments.warmup)?,
        measured_ns,
        think_ns: duration_ns("--think", arguments.think.as_deref())?.unwrap_or(0),
    })
}
