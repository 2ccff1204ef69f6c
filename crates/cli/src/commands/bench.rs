//! `cachedyno bench TARGET…`: key-value load of one's own, with a record and a page like a study's.

use ::archive::Writer;
use clap::{Args, value_parser};
use drivers::wire::Dialect;
use lab::Setup;
use model::plan::{Effort, KvOperation};
use model::{
    Cell, ClientStages, Endpoint, Kv, Load, NetAddress, Phase, Plan, RateStages, Scale, Stop,
    TargetChoice, Workload,
};
use rig::{Guard, Pinning};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::PathBuf;
use std::process::ExitCode;
use workloads::kv::{Distribution, KEYS_MAX, KeyChoice, KeyNames, Preset, Sizes, Weights};

mod targets;

use self::targets::TlsFlags;
use super::run;
use crate::args::{Format, Records};
use crate::exit::CliError;
use crate::sense::{self, UNDER_WAY_MAX};
use crate::{limits, secrets};

/// Name under which runs of this command are recorded.
const STUDY: &str = "bench";
/// Ratios of several targets within 3 % count as equal.
const EQUIVALENCE_ZONE: f64 = 0.03;
const HALF_WIDTH_GOAL: f64 = 0.03;

const AFTER_HELP: &str = "Examples:\n  \
    cachedyno bench redis\n  \
    cachedyno bench redis://localhost:6379/1 --op get=0.9,set=0.1 --value 1KiB --keys 1000000\n  \
    cachedyno bench redis --rate 50000 --clients 20 --dist zipf:0.99\n  \
    cachedyno bench redis --stages 10s:1000,30s:1000-50000,10s:50000 --blocks 1\n  \
    cachedyno bench redis memcached --pipeline 16\n  \
    cachedyno bench mc=memcached://10.0.0.1:11211,10.0.0.2:11211?protocol=meta\n  \
    cachedyno bench c=rediss+cluster://user@10.0.0.3:7000 --cacert ca.pem\n  \
    cachedyno bench redis --command 'HSET __key__ field __data__' --pipeline 16\n\n\
    Latency under --rate is counted from the moment at which a request should have been sent, so \
    that a stall of the server is seen in full.";

/// Arguments of `bench`.
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP, allow_negative_numbers = true)]
pub(crate) struct Bench {
    /// Stores to measure: `redis` or `memcached` for a private server, or NAME[=URL]
    #[arg(value_name = "TARGET", required = true)]
    targets: Vec<String>,
    /// Operations and their weights [default: get=0.9,set=0.1]
    #[arg(long, value_name = "NAME=WEIGHT,...", conflicts_with_all = ["preset", "commands"])]
    op: Option<String>,
    /// Send this command, with __key__ and __data__ filled in; several are sent in turn
    #[arg(long = "command", value_name = "TEXT", conflicts_with = "preset")]
    commands: Vec<String>,
    /// A published workload: ycsb-a, -b, -c, -d, -f, twitter-c12, twitter-c52, ...
    #[arg(long, value_name = "NAME", conflicts_with_all = ["value", "dist"])]
    preset: Option<String>,
    /// Clients, each with a connection
    #[arg(long, short, default_value_t = 50, value_parser = value_parser!(u32).range(1..=20_000))]
    clients: u32,
    /// Clients at work over time, in place of --clients and --duration: stages of a length and a
    /// number, or two between which it changes evenly, such as 10s:1,60s:1-200,10s:200
    #[arg(long, value_name = "TIME:CLIENTS[-CLIENTS],...")]
    #[arg(conflicts_with_all = ["clients", "duration", "rate", "stages"])]
    client_stages: Option<String>,
    /// Requests that a client sends at once, or under --rate may have under way
    #[arg(long, short = 'P', default_value_t = 1)]
    #[arg(value_parser = value_parser!(u32).range(1..=100_000))]
    pipeline: u32,
    /// Threads of the generator
    #[arg(long, default_value_t = 1, value_parser = value_parser!(u32).range(1..=512))]
    threads: u32,
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
    /// Bytes of a value: 1KiB, 64-4096, 100:3,1024:1, etc (Facebook's ETC) [default: 1KiB]
    #[arg(long, value_name = "BYTES")]
    value: Option<String>,
    /// Keys that requests choose from
    #[arg(long, default_value_t = 100_000)]
    keys: u64,
    /// How often each is chosen: uniform, zipf:0.99, gauss, sequential, hot:0.1:0.9, latest
    /// [default: uniform]
    #[arg(long, value_name = "DISTRIBUTION")]
    dist: Option<String>,
    /// What every key's name begins with
    #[arg(long, value_name = "TEXT", default_value = "key:")]
    key_prefix: String,
    /// Bytes of a key's name [default: the prefix and twelve digits]
    #[arg(long, value_name = "BYTES")]
    key_size: Option<String>,
    /// Lifetime of what is written, such as 60s [default: none]
    #[arg(long, value_name = "TIME")]
    ttl: Option<String>,
    /// Share of the keys that are there before the measurement
    #[arg(long, value_name = "SHARE", default_value_t = 1.0)]
    hit_ratio: f64,
    /// Fill nothing before the measurement
    #[arg(long, conflicts_with = "hit_ratio")]
    no_fill: bool,
    /// Compare one in this many values read byte by byte; 1 for all, 0 for none
    #[arg(long, value_name = "N", default_value_t = 64)]
    verify: u64,
    /// Length of a block's measurement
    #[arg(long, value_name = "TIME", default_value = "2s")]
    duration: String,
    /// Unrecorded load before it
    #[arg(long, value_name = "TIME", default_value = "500ms")]
    warmup: String,
    /// Blocks: each measures every target once; the interval is over them
    #[arg(long, default_value_t = 5, value_parser = value_parser!(u32).range(1..=1000))]
    blocks: u32,
    /// Replace a setting of the private servers, such as appendonly=yes, redis.io-threads=4,
    /// memcached.threads=2 (of memcached: threads, memory, connections, item-size, growth,
    /// evictions)
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,
    /// Read the password of a target from a file
    #[arg(long = "password-file", value_name = "NAME=FILE")]
    password_files: Vec<String>,
    /// Allow existing stores that hold data; only what this run made is ever removed
    #[arg(long)]
    allow_shared: bool,
    /// Seed of keys and values (default: drawn anew)
    #[arg(long)]
    seed: Option<u64>,
    /// Time after which an unanswered request counts as failed
    #[arg(long, value_name = "TIME", default_value = "5s")]
    timeout: String,
    /// Directory for the data of private servers
    #[arg(long, value_name = "DIR", default_value = ".")]
    disk: PathBuf,
    /// Print nothing but the result
    #[arg(long, short)]
    quiet: bool,
    /// How the result is printed
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    #[command(flatten)]
    tls: TlsFlags,
    #[command(flatten)]
    records: Records,
}

pub(crate) fn run(arguments: &Bench) -> Result<ExitCode, CliError> {
    let mut choices: Vec<TargetChoice> =
        arguments.targets.iter().map(|t| TargetChoice::parse(t)).collect::<Result<_, _>>()?;
    arguments.tls.apply(&mut choices)?;
    let plan = plan(arguments, &choices)?;
    limits::allow(arguments.clients)?;
    if !arguments.disk.is_dir() {
        let disk = arguments.disk.display();
        return Err(CliError::usage(format!("--disk `{disk}` is not a directory")));
    }
    let setup = Setup {
        guard: Guard::start()?,
        disk: arguments.disk.clone(),
        pinning: Pinning::for_this_process(),
        endpoints: secrets::endpoints(&choices, &arguments.password_files)?,
        allow_shared: arguments.allow_shared,
    };
    let silent = arguments.quiet || arguments.format != Format::Text;
    let mut header = run::header(plan, &setup, (&arguments.records.out, silent))?;
    header.conditions.facts.extend(targets::doubts(&choices));
    let writer = Writer::create(&arguments.records.out, &header)?;
    run::carry_out(header, Vec::new(), writer, &setup, (arguments.quiet, arguments.format))
}

fn plan(arguments: &Bench, choices: &[TargetChoice]) -> Result<Plan, CliError> {
    let workload = workload(arguments)?;
    for choice in choices {
        check(&workload, targets::dialect(choice)?)?;
        if choice.endpoint.is_some() {
            spares_others(&workload, choice)?;
        }
    }
    let load = load(arguments)?;
    let targets = targets::planned(choices, &arguments.sets, (arguments.clients, &workload))?;
    let is_here = targets.iter().any(|target| target.address.is_none())
        || choices.iter().filter_map(|c| c.endpoint.as_ref()).any(is_here);
    sense::bench(&workload, &load, arguments.blocks, targets.len(), is_here)
        .map_err(CliError::usage)?;
    let cells = targets.iter().map(|target| Cell {
        id: format!("{}/{}/{}", target.name, workload.profile, load.clients()),
        target: target.name.clone(),
        workload: Workload::Kv(workload.clone()),
        load: load.clone(),
    });
    let timeout_ms = run::timeout_ms(Some(&arguments.timeout))?.unwrap_or_default();
    Ok(Plan {
        study: STUDY.into(),
        title: format!("Key-value load: {}", workload.profile),
        question: format!("How do these servers bear {} with {load}?", workload.profile),
        source: String::new(),
        scale: Scale::Standard,
        profiles: vec![workload.profile.clone()],
        seed: arguments.seed.map_or_else(run::random, Ok)?,
        effort: Effort {
            budget_ns: 0,
            blocks_min: arguments.blocks,
            blocks_max: arguments.blocks,
            half_width_goal: HALF_WIDTH_GOAL,
        },
        equivalence_zone: EQUIVALENCE_ZONE,
        timeout_ns: timeout_ms * 1_000_000,
        cells: cells.collect(),
        targets,
        claims: Vec::new(),
        advice: None,
        search: None,
    })
}

fn load(arguments: &Bench) -> Result<Load, CliError> {
    let (client_stages, pipeline) = (client_stages(arguments)?, arguments.pipeline);
    let clients = client_stages.as_ref().map_or(arguments.clients, ClientStages::most);
    let under_way = u64::from(clients) * u64::from(pipeline);
    if under_way > UNDER_WAY_MAX {
        return Err(CliError::usage(format!(
            "--clients {clients} times --pipeline {pipeline} are `{under_way}` requests at once \
             (expected at most {UNDER_WAY_MAX})"
        )));
    }
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

fn workload(arguments: &Bench) -> Result<Kv, CliError> {
    let preset: Option<Preset> =
        arguments.preset.as_ref().map(|name| read("--preset", name)).transpose()?;
    let (profile, operations, weights) = operations(arguments, preset.as_ref())?;
    let value_bytes = match &preset {
        Some(preset) => preset.values.to_string(),
        None => arguments.value.clone().unwrap_or_else(|| "1KiB".into()),
    };
    let distribution = match &preset {
        Some(preset) => preset.keys.to_string(),
        None => arguments.dist.clone().unwrap_or_else(|| "uniform".into()),
    };
    let filled_share = filled_share(arguments, &operations)?;
    let of_preset = preset.as_ref().and_then(|p| p.name_bytes).map(|bytes| bytes.to_string());
    Ok(Kv {
        profile,
        operations,
        keys: arguments.keys,
        distribution,
        key_prefix: arguments.key_prefix.clone(),
        key_bytes: arguments.key_size.clone().or(of_preset),
        value_bytes,
        ttl_s: ttl_s(arguments, preset.as_ref())?,
        filled_share,
        verify_one_in: arguments.verify,
        threads: arguments.threads.min(load(arguments)?.clients()),
        think_ns: run::duration_ns("--think", arguments.think.as_deref())?.unwrap_or(0),
        phases: vec![phase(arguments, weights)?],
    })
}

/// Name of the workload, its operations, and how often each is sent.
type Operations = (String, Vec<KvOperation>, BTreeMap<String, f64>);

fn operations(arguments: &Bench, preset: Option<&Preset>) -> Result<Operations, CliError> {
    if !arguments.commands.is_empty() {
        let named = arguments.commands.iter().enumerate().map(|(i, command)| {
            let word = command.split_whitespace().next().unwrap_or("command").to_lowercase();
            let twin = arguments.commands[..i].iter().any(|c| c.to_lowercase().starts_with(&word));
            let name = if twin { format!("{word}-{}", i + 1) } else { word };
            KvOperation { name, command: Some(command.clone()) }
        });
        let operations: Vec<KvOperation> = named.collect();
        let weights = operations.iter().map(|o| (o.name.clone(), 1.0)).collect();
        let profile = operations.iter().map(|o| o.name.as_str()).collect::<Vec<_>>().join("+");
        return Ok((profile, operations, weights));
    }
    let (profile, weights) = if let Some(preset) = preset {
        (preset.name.to_string(), of_preset(preset))
    } else {
        let text = arguments.op.as_deref().unwrap_or("get=0.9,set=0.1");
        let weights: Weights = read("--op", text)?;
        (text.to_string(), weights.pairs().to_vec())
    };
    let operations =
        weights.iter().map(|(name, _)| KvOperation { name: name.clone(), command: None });
    Ok((profile, operations.collect(), weights.iter().cloned().collect()))
}

/// What a preset's operations are called here.
fn of_preset(preset: &Preset) -> Vec<(String, f64)> {
    let pairs = preset.operations.pairs().iter().map(|(name, weight)| {
        let name = match name.as_str() {
            "read" => "get",
            "update" => "set",
            "read-modify-write" => drivers::kv::READ_MODIFY_WRITE,
            other => other,
        };
        (name.to_string(), *weight)
    });
    pairs.collect()
}

fn phase(arguments: &Bench, mix: BTreeMap<String, f64>) -> Result<Phase, CliError> {
    let time = |flag, text: &str| run::duration_ns(flag, Some(text)).map(Option::unwrap_or_default);
    let measured_ns = match (stages(arguments)?, client_stages(arguments)?) {
        (Some(stages), _) => stages.length_ns(),
        (None, Some(stages)) => stages.length_ns(),
        (None, None) => time("--duration", &arguments.duration)?,
    };
    if measured_ns == 0 {
        return Err(CliError::usage("--duration `0` measures nothing (expected more, as in 2s)"));
    }
    Ok(Phase {
        // All operations together; a single one bears its own name.
        name: match mix.keys().next() {
            Some(only) if mix.len() == 1 => only.clone(),
            _ => "mixed".into(),
        },
        mix,
        warmup_ns: time("--warmup", &arguments.warmup)?,
        stop: Stop::AfterNs(measured_ns),
    })
}

fn ttl_s(arguments: &Bench, preset: Option<&Preset>) -> Result<u64, CliError> {
    match run::duration_ns("--ttl", arguments.ttl.as_deref())? {
        Some(ns) if ns < 1_000_000_000 => {
            let text = arguments.ttl.as_deref().unwrap_or_default();
            Err(CliError::usage(format!("--ttl `{text}` is too short (expected 1s or more)")))
        }
        Some(ns) => Ok(ns / 1_000_000_000),
        None => Ok(preset.and_then(|p| p.ttl_s).unwrap_or(0)),
    }
}

/// None where an operation needs values of another kind than the fill's.
fn filled_share(arguments: &Bench, operations: &[KvOperation]) -> Result<f64, CliError> {
    let fits = |o: &KvOperation| drivers::kv::works_on_strings(&o.name, o.command.as_deref());
    let unfilled = arguments.no_fill || !operations.iter().all(fits);
    let share = if unfilled { 0.0 } else { arguments.hit_ratio };
    if (0.0..=1.0).contains(&share) {
        return Ok(share);
    }
    Err(CliError::usage(format!("--hit-ratio `{share}` is no share (expected 0 to 1)")))
}

/// Reads every text as the measurement will, so that what is wrong shows before anything starts.
fn check(kv: &Kv, dialect: Dialect) -> Result<(), CliError> {
    let sizes: Sizes = read("--value", &kv.value_bytes)?;
    let distribution: Distribution = read("--dist", &kv.distribution)?;
    KeyChoice::new(distribution, kv.keys).map_err(|e| CliError::usage(format!("--keys: {e}")))?;
    let misnamed = |e: &dyn Display| CliError::usage(format!("--key-prefix, --key-size: {e}"));
    let names = match &kv.key_bytes {
        None => KeyNames::new(&kv.key_prefix).map_err(|e| misnamed(&e))?,
        Some(text) => {
            let bytes: Sizes = read("--key-size", text)?;
            let inserts = kv.operations.iter().any(|o| o.name == drivers::kv::INSERT);
            let keys = if inserts { KEYS_MAX } else { kv.keys };
            KeyNames::sized(&kv.key_prefix, bytes, 0, keys).map_err(|e| misnamed(&e))?
        }
    };
    for operation in &kv.operations {
        let command = operation.command.as_deref();
        let (name, ttl_s) = (&operation.name, (kv.ttl_s > 0).then_some(kv.ttl_s));
        let spelled = drivers::kv::operation(dialect, name, command, ttl_s, &names, &sizes);
        let flag = if command.is_some() { "--command" } else { "--op" };
        spelled.map_err(|e| CliError::usage(format!("{flag}: {e}")))?;
    }
    Ok(())
}

/// True for a server of this machine.
fn is_here(endpoint: &Endpoint) -> bool {
    let Endpoint::Redis { address, .. } = endpoint else { return false };
    match address {
        NetAddress::Unix(_) => true,
        NetAddress::Tcp(host, _) => {
            host == "localhost" || host == "::1" || host.starts_with("127.")
        }
    }
}

/// Refuses what would reach beyond the run's own keys on a server that is not ours.
fn spares_others(kv: &Kv, choice: &TargetChoice) -> Result<(), CliError> {
    let mut commands = kv.operations.iter().filter_map(|o| o.command.as_deref());
    let Some(word) = commands.find_map(drivers::kv::beyond_keys) else { return Ok(()) };
    Err(CliError::usage(format!(
        "--command `{word}` on target `{}` would reach beyond the keys of this run (expected a \
         private server for that: its bare name, as in `redis`)",
        choice.name
    )))
}

fn read<T: std::str::FromStr>(flag: &str, text: &str) -> Result<T, CliError>
where
    T::Err: Display,
{
    text.parse().map_err(|e| CliError::usage(format!("{flag}: {e}")))
}
