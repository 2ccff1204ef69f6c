//! Shared flags of the key-value load commands: operations, data, clients, servers and records.

use ::archive::Writer;
use clap::{Args, value_parser};
use drivers::wire::Dialect;
use model::plan::{Effort, KvOperation, Places, PlannedTarget};
use model::study::Source;
use model::{
    Arrivals, Cell, Endpoint, Kv, Load, NetAddress, Phase, Plan, Scale, Stop, TargetChoice,
    Workload,
};
use rig::Pinning;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::process::ExitCode;
use workloads::kv::{Distribution, KEYS_MAX, KeyChoice, KeyNames, Preset, Sizes, Weights};

use super::targets;
use crate::args::{Common, duration_ns, stall_ns, timeout_ms};
use crate::commands::measuring;
use crate::exit::CliError;
use crate::measurement_lock::acquire;
use crate::orphaned;
use crate::preflight::{self, IN_FLIGHT_MAX};
use crate::random::random;
use crate::{limits, serve};

/// Targets whose rates differ by at most 3 % count as equal.
const EQUIVALENCE_ZONE: f64 = 0.03;

const PRESET_HELP: &str = "A published workload: ycsb-a, -b, -c, -d, -f, twitter-c12, twitter-c15, \
    twitter-c31, twitter-c37, twitter-c52\n\n\
    --value, --dist, --key-size and --ttl override the preset and are added to the name of the \
    result. Updates of ycsb-* write the whole value of 1000 bytes, as YCSB does with \
    writeallfields=true; by default YCSB writes one field of ten. Keys are chosen as in YCSB: \
    ycsb-latest for ycsb-d, ycsb-zipfian for the others. In twitter-* all keys and all values \
    have the cluster's mean length.";

const DIST_HELP: &str = "Key distribution: uniform, zipf:0.99, ycsb-zipfian, gauss, \
    sequential, hot:0.1:0.9, latest:0.99, ycsb-latest [default: uniform]\n\n\
    zipf is Zipf's law over the keys: with 1,000 keys, zipf:0.99 sends 12.9 % of the requests to \
    the hottest key. ycsb-zipfian is YCSB's zipfian: ten billion ranks are folded into the keys, \
    so the hottest key gets 3.9 % of the requests with 1,000 keys and 3.8 % with more. latest is \
    Zipf's law with the newest key as the hottest; ycsb-latest is YCSB's latest: Gray's \
    approximation of that law over all existing keys. zipf:0.99:ordered and hot:0.1:0.9:ordered \
    do not scatter the hot keys.";

/// Flags of the key-value load commands.
#[derive(Debug, Args)]
pub(crate) struct KvFlags {
    /// Operations and their weights [default: get=0.9,set=0.1]
    #[arg(long, value_name = "NAME=WEIGHT,...", conflicts_with_all = ["preset", "commands"])]
    pub(in crate::commands) op: Option<String>,
    /// Send this command with __key__ and __data__ filled in; repeat the flag to alternate between
    /// several. On existing servers every key must start with __key__, and not all commands are
    /// allowed
    #[arg(long = "command", value_name = "TEXT", conflicts_with = "preset")]
    pub(in crate::commands) commands: Vec<String>,
    /// A published workload: ycsb-a, -b, -c, -d, -f, twitter-c12, twitter-c52, ...; --value,
    /// --dist, --key-size and --ttl override it
    #[arg(long, value_name = "NAME", long_help = PRESET_HELP)]
    pub(in crate::commands) preset: Option<String>,
    /// Clients, each with one connection
    #[arg(long, short, default_value_t = 50, value_parser = value_parser!(u32).range(1..=20_000))]
    pub(in crate::commands) clients: u32,
    /// Pipeline depth: requests that a client sends at once, or with --rate can have in flight
    #[arg(long, short = 'P', default_value_t = 1)]
    #[arg(value_parser = value_parser!(u32).range(1..=100_000))]
    pub(in crate::commands) pipeline: u32,
    /// Generator threads, at most one per client and one per generator CPU
    #[arg(long, default_value_t = 1, value_parser = value_parser!(u32).range(1..=512))]
    pub(in crate::commands) threads: u32,
    /// Value size in bytes: 1KiB, 64-4096, 100:3,1024:1, or etc (the size distribution of
    /// Facebook's ETC) [default: 1KiB]
    #[arg(long, value_name = "BYTES")]
    pub(in crate::commands) value: Option<String>,
    /// Number of keys, such as 1M
    #[arg(long, default_value = "100k", value_parser = stats::parse_count)]
    pub(in crate::commands) keys: u64,
    /// Key distribution: uniform, zipf:0.99, ycsb-zipfian, gauss, sequential,
    /// hot:0.1:0.9, latest:0.99, ycsb-latest [default: uniform]
    #[arg(long, value_name = "DISTRIBUTION", long_help = DIST_HELP)]
    pub(in crate::commands) dist: Option<String>,
    /// Prefix of all key names
    #[arg(long, value_name = "TEXT", default_value = "key:")]
    pub(in crate::commands) key_prefix: String,
    /// Length of key names in bytes [default: the prefix and twelve digits]
    #[arg(long, value_name = "BYTES")]
    pub(in crate::commands) key_size: Option<String>,
    /// Time to live of written values, such as 60s [default: none]
    #[arg(long, value_name = "TIME")]
    pub(in crate::commands) ttl: Option<String>,
    /// Share of the keys that exist before the measurement
    #[arg(long, value_name = "SHARE", default_value_t = 1.0)]
    pub(in crate::commands) hit_ratio: f64,
    /// Do not fill any keys before the measurement
    #[arg(long, conflicts_with = "hit_ratio")]
    pub(in crate::commands) no_fill: bool,
    /// Verify one in N values read, byte by byte; 1 for all, 0 for none
    #[arg(long, value_name = "N", default_value_t = 64)]
    pub(in crate::commands) verify: u64,
    /// Replace a setting of the private servers, such as appendonly=yes, redis.io-threads=4,
    /// memcached.threads=2 (of memcached: threads, memory, connections, item-size, growth,
    /// evictions)
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(in crate::commands) sets: Vec<String>,
    /// Seed of keys and values (default: random)
    #[arg(long)]
    pub(in crate::commands) seed: Option<u64>,
    /// Timeout after which an unanswered request counts as failed
    #[arg(long, value_name = "TIME", default_value = "5s")]
    pub(in crate::commands) timeout: String,
    /// Time without any answer after which the load ends with what it measured, at least 1s, or
    /// 0s for no limit (default: 30s, or the timeout if that is longer)
    #[arg(long, value_name = "TIME")]
    pub(in crate::commands) stall_limit: Option<String>,
    #[command(flatten)]
    pub(in crate::commands) common: Common,
}

/// Durations of a phase and the clients' think time.
#[derive(Clone, Copy, Debug)]
pub(in crate::commands) struct Times {
    /// Length of the unrecorded warm-up, nanoseconds.
    pub(in crate::commands) warmup_ns: u64,
    /// End of the measured phase.
    pub(in crate::commands) stop: Stop,
    /// Pause of a client between its replies and its next requests, nanoseconds.
    pub(in crate::commands) think_ns: u64,
}

impl KvFlags {
    /// Runs the plan and writes a new record.
    pub(in crate::commands) fn carry_out(
        &self,
        plan: Plan,
        choices: &[TargetChoice],
    ) -> Result<ExitCode, CliError> {
        let served = serve::bind(&self.common.serve)?;
        // Raise the limit before the guard and the servers start, since they inherit it.
        limits::allow_connections("--clients", &plan)?;
        let setup = self.common.setup(choices, false)?;
        let _lock = acquire(&setup.guard, &orphaned::disks(&setup, &plan))?;
        let silent = self.common.printing.is_silent();
        let setup = self.common.fleet.gather(setup, &plan)?;
        let header = measuring::header(plan, &setup, (&self.common.records.out, silent))?;
        let writer = Writer::create(&self.common.records.out, &header)?;
        measuring::carry_out(header, Vec::new(), writer, &setup, self.common.printing, served)
    }

    /// Creates a plan with one cell per target. Errors: a setting is invalid.
    pub(in crate::commands) fn plan(
        &self,
        study: &str,
        choices: &[TargetChoice],
        (workload, load): (&Kv, &Load),
        blocks: u32,
    ) -> Result<Plan, CliError> {
        for choice in choices {
            let dialect = targets::dialect(choice)?;
            check(workload, dialect)?;
            if choice.endpoint.is_some() && !self.common.i_own_this_server {
                check_own_keys(workload, dialect)?;
            }
        }
        let targets = targets::planned(choices, &self.sets, (load.clients, workload))?;
        let is_private = targets.iter().any(|target| target.address.is_none());
        let is_here = (is_private && !self.common.fleet.has_rig())
            || choices.iter().filter_map(|c| c.endpoint.as_ref()).any(is_here);
        preflight::bench(workload, load, blocks, targets.len(), is_here)
            .map_err(CliError::usage)?;
        let cpus = Pinning::for_this_process().generator.len();
        let workers = self.common.fleet.workers()?;
        if workers == 0 {
            preflight::threads("--threads", self.threads, load.clients, cpus)
                .map_err(CliError::usage)?;
        }
        let cell = |target: &PlannedTarget| Cell {
            id: format!("{}/{}/{}", target.name, workload.profile, load.clients),
            target: target.name.clone(),
            workload: Workload::Kv(workload.clone()),
            load: load.clone(),
        };
        let timeout_ns = timeout_ms(Some(&self.timeout))?.unwrap_or_default() * 1_000_000;
        let stall_ns = stall_ns(self.stall_limit.as_deref())?;
        let mut plan = Plan {
            study: study.into(),
            title: format!("Key-value load: {}", workload.profile),
            question: format!(
                "How do these servers perform under {} with {load}?",
                workload.profile
            ),
            source: Source::default(),
            scale: Scale::Standard,
            profiles: vec![workload.profile.clone()],
            seed: self.seed.map_or_else(random, Ok)?,
            effort: Effort { budget_ns: 0, blocks_min: blocks, blocks_max: blocks },
            equivalence_zone: EQUIVALENCE_ZONE,
            timeout_ns,
            stall_ns: stall_ns.unwrap_or_else(|| Plan::stall_ns_by_default(timeout_ns)),
            cells: targets.iter().map(cell).collect(),
            targets,
            tables: Vec::new(),
            claims: Vec::new(),
            advice: None,
            requirements: Vec::new(),
            limit_ns: None,
            places: Places::default(),
            swap_dir: None,
        };
        self.common.fleet.check_rig(&plan)?;
        self.common.fleet.divide(&mut plan)?;
        Ok(plan)
    }

    /// Rejects more requests in flight than the engine can track.
    pub(in crate::commands) fn check_in_flight(&self, clients: u32) -> Result<(), CliError> {
        let pipeline = self.pipeline;
        let in_flight = u64::from(clients) * u64::from(pipeline);
        if in_flight > IN_FLIGHT_MAX {
            return Err(CliError::usage(format!(
                "--clients {clients} times --pipeline {pipeline} is `{in_flight}` requests in \
                 flight (expected at most {IN_FLIGHT_MAX})"
            )));
        }
        Ok(())
    }

    /// The workload, with one phase.
    pub(in crate::commands) fn workload(&self, times: Times) -> Result<Kv, CliError> {
        let preset: Option<Preset> =
            self.preset.as_ref().map(|name| read("--preset", name)).transpose()?;
        let (profile, operations, weights) = self.operations(preset.as_ref())?;
        let given = |of_user: &Option<String>, of_preset: Option<String>, usual: &str| {
            of_user.clone().or(of_preset).unwrap_or_else(|| usual.into())
        };
        let (values, keys) = (
            preset.as_ref().map(|p| p.values.to_string()),
            preset.as_ref().map(|p| p.keys.to_string()),
        );
        let value_bytes = given(&self.value, values, "1KiB");
        let distribution = given(&self.dist, keys, "uniform");
        let filled_share = self.filled_share(&operations)?;
        let of_preset = preset.as_ref().and_then(|p| p.name_bytes).map(|bytes| bytes.to_string());
        Ok(Kv {
            profile,
            operations,
            keys: self.keys,
            distribution,
            key_prefix: self.key_prefix.clone(),
            key_bytes: self.key_size.clone().or(of_preset),
            value_bytes,
            ttl_s: self.ttl_s(preset.as_ref())?,
            filled_share,
            verify_one_in: self.verify,
            threads: self.threads,
            think_ns: times.think_ns,
            phases: vec![phase(weights, times)],
            ..Kv::default()
        })
    }

    fn operations(&self, preset: Option<&Preset>) -> Result<Operations, CliError> {
        if let Some(command) = self.commands.iter().find(|command| is_login(command)) {
            let name = command.split_whitespace().next().unwrap_or_default();
            return Err(CliError::usage(format!(
                "--command `{name}` would write a password to the record (log in with the \
                 target's URL, --password-file or the environment instead)"
            )));
        }
        if !self.commands.is_empty() {
            let named = self.commands.iter().enumerate().map(|(i, command)| {
                let word = command.split_whitespace().next().unwrap_or("command").to_lowercase();
                // In operation names a dot separates the part of a mix.
                let word = word.replace('.', "-");
                let twin = self.commands[..i]
                    .iter()
                    .any(|c| c.to_lowercase().replace('.', "-").starts_with(&word));
                let name = if twin { format!("{word}-{}", i + 1) } else { word };
                KvOperation { name, command: Some(command.clone()) }
            });
            let operations: Vec<KvOperation> = named.collect();
            let weights = operations.iter().map(|o| (o.name.clone(), 1.0)).collect();
            let profile = operations.iter().map(|o| o.name.as_str()).collect::<Vec<_>>().join("+");
            return Ok((profile, operations, weights));
        }
        let (profile, weights) = if let Some(preset) = preset {
            (self.name_of(preset), of_preset(preset))
        } else {
            let text = self.op.as_deref().unwrap_or("get=0.9,set=0.1");
            let weights: Weights = read("--op", text)?;
            (text.to_string(), weights.pairs().to_vec())
        };
        let operations =
            weights.iter().map(|(name, _)| KvOperation { name: name.clone(), command: None });
        Ok((profile, operations.collect(), weights.iter().cloned().collect()))
    }

    /// The name of a preset, followed by the flags that override it.
    fn name_of(&self, preset: &Preset) -> String {
        let flags = [
            ("value", &self.value),
            ("dist", &self.dist),
            ("key-size", &self.key_size),
            ("ttl", &self.ttl),
        ];
        let given = flags.iter().filter_map(|(flag, text)| Some((flag, text.as_ref()?)));
        let replaced = given.map(|(flag, text)| format!("{flag}={text}"));
        std::iter::once(preset.name.into()).chain(replaced).collect::<Vec<String>>().join(",")
    }

    fn ttl_s(&self, preset: Option<&Preset>) -> Result<u64, CliError> {
        match duration_ns("--ttl", self.ttl.as_deref())? {
            Some(ns) if ns < 1_000_000_000 => {
                let text = self.ttl.as_deref().unwrap_or_default();
                Err(CliError::usage(format!("--ttl `{text}` is too short (expected 1s or more)")))
            }
            Some(ns) => Ok(ns / 1_000_000_000),
            None => Ok(preset.and_then(|p| p.ttl_s).unwrap_or(0)),
        }
    }

    /// Share of keys to fill: 0 if an operation needs values of another type than strings.
    fn filled_share(&self, operations: &[KvOperation]) -> Result<f64, CliError> {
        let fits = |o: &KvOperation| drivers::kv::works_on_strings(&o.name, o.command.as_deref());
        let unfilled = self.no_fill || !operations.iter().all(fits);
        let share = if unfilled { 0.0 } else { self.hit_ratio };
        if (0.0..=1.0).contains(&share) {
            return Ok(share);
        }
        Err(CliError::usage(format!("--hit-ratio `{share}` is out of range (expected 0 to 1)")))
    }
}

/// Name of the workload, its operations, and their weights.
type Operations = (String, Vec<KvOperation>, BTreeMap<String, f64>);

/// Maps YCSB's operation names to those of cachedyno.
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

fn phase(mix: BTreeMap<String, f64>, times: Times) -> Phase {
    Phase {
        // Named after its operation if there is only one.
        name: match mix.keys().next() {
            Some(only) if mix.len() == 1 => only.clone(),
            _ => "mixed".into(),
        },
        mix,
        warmup_ns: times.warmup_ns,
        stop: times.stop,
        control: None,
    }
}

/// Parses all settings as the measurement does, to report errors before anything starts.
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

/// True for a server on this machine.
fn is_here(endpoint: &Endpoint) -> bool {
    endpoint.addresses().iter().any(|address| match address {
        NetAddress::Unix(_) => true,
        NetAddress::Tcp(host, _) => {
            host == "localhost" || host == "::1" || host.starts_with("127.")
        }
    })
}

/// Whether a command contains a password.
fn is_login(command: &str) -> bool {
    let words: Vec<String> = command.split_whitespace().map(str::to_lowercase).collect();
    let has = |word: &str| words.iter().any(|own| own == word);
    match words.first().map(String::as_str) {
        Some("auth") => true,
        Some("hello") => has("auth"),
        Some("acl") => has("setuser"),
        Some("config") => has("set") && (has("requirepass") || has("masterauth")),
        Some("migrate") => has("auth") || has("auth2"),
        _ => false,
    }
}

/// Rejects commands that could access keys outside the run's prefix.
fn check_own_keys(kv: &Kv, dialect: Dialect) -> Result<(), CliError> {
    let mut commands = kv.operations.iter().filter_map(|o| o.command.as_deref());
    let checked = commands.try_for_each(|c| drivers::kv::check_own_keys(dialect, c));
    checked.map_err(|e| {
        CliError::usage(format!("--command {e}; --i-own-this-server allows every command"))
    })
}

/// Arrivals of an open load: evenly spaced or Poisson.
pub(in crate::commands) fn arrivals(even: bool) -> Arrivals {
    if even { Arrivals::Constant } else { Arrivals::Poisson }
}

/// Parses a flag's value; errors name the flag.
pub(in crate::commands) fn read<T: std::str::FromStr>(flag: &str, text: &str) -> Result<T, CliError>
where
    T::Err: Display,
{
    text.parse().map_err(|e| CliError::usage(format!("{flag}: {e}")))
}
