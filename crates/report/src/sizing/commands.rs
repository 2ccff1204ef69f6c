//! The commands of the runs that would measure what is missing.

use model::memory::MemoryLimit;
use model::{Slo, shell_words};
use std::collections::BTreeSet;

use super::deployment::{Deployment, LISTEN, OF_GROUP};
use super::question::{Amount, Mix, Question, RateAsked, is_implied};

/// Most shards that a run starts itself.
const SHARDS_MAX: u32 = 9;
/// Settings of a private Redis like those of the study `sizing`, whose clusters it can then be
/// compared with; in addition to where it listens.
const SETTINGS: [&str; 2] = ["save=", "appendonly=no"];
/// The profile of the study `failover` that measures a cluster, with its target and its shards.
const OF_CLUSTER: (&str, &str, u32) = ("profile=cluster-proof", "redis-cluster", 3);
/// Memory of a tier for each byte of data: a server has buffers and page cache as well, so the
/// tiers of the study `sizing` keep 80 % for data, too.
const TIER_MEMORY: f64 = 1.25;
/// Nanoseconds per millisecond, in which limits of a study are given.
const NS_PER_MS: u64 = 1_000_000;
/// Blocks of a search that several targets are compared by; with fewer, a rate has no interval over
/// blocks.
const BLOCKS: &str = "3";

/// The search for the highest rate that would answer the question, on servers like `deployment`, or
/// on a private Redis.
pub(super) fn highest_rate(
    question: &Question,
    rate: &RateAsked,
    deployment: Option<&Deployment>,
) -> String {
    let starts = deployment.map_or("redis", |own| own.family.starts);
    let target = match deployment.and_then(|own| own.family.address.as_ref()) {
        Some(_) => format!("{}=URL", deployment.map_or(starts, |own| &own.target)),
        None => starts.to_string(),
    };
    let usual = || {
        let way = if question.tls { "tls" } else { "tcp" };
        let settings = SETTINGS.iter().map(|set| (*set).to_string());
        settings.chain([format!("{LISTEN}={way}")]).collect()
    };
    let sets = deployment.map_or_else(usual, |own| [sets(own), sets_of_group(own)].concat());
    search(&target, question, (rate, rate.mix.as_ref()), sets)
}

/// The same on servers like `deployment` in a tier with memory for `data_bytes`.
pub(super) fn with_memory(
    question: &Question,
    rate: &RateAsked,
    deployment: &Deployment,
    data_bytes: u64,
) -> String {
    let mib = (data_bytes as f64 * TIER_MEMORY / f64::from(1 << 20)).ceil();
    let mut tier = deployment.family.tier();
    tier.memory = MemoryLimit::parse(&format!("{mib}MiB"));
    let larger = Deployment { family: deployment.family.in_tier(&tier), ..deployment.clone() };
    highest_rate(question, rate, Some(&larger))
}

/// Searches on `shards` servers: on this machine as far as a run starts that many, and on existing
/// ones. Servers in a tier share its limits on this machine, so more of them carry no more.
pub(super) fn of_shards(
    question: &Question,
    (rate, mix): (&RateAsked, &Mix),
    deployment: &Deployment,
    shards: u32,
) -> Vec<String> {
    let family = &deployment.family;
    let mut commands = Vec::new();
    let is_local = family.address.is_none() && family.starts != "memcached";
    if is_local && shards <= SHARDS_MAX && !family.tls && family.tier.is_empty() {
        let mut sets = sets(deployment);
        sets.retain(|set| !set.starts_with(LISTEN));
        sets.push(format!("shards={shards}"));
        commands.push(search(family.starts, question, (rate, Some(mix)), sets));
    }
    let url = match (family.starts, family.tls) {
        ("memcached", false) => "memcached=memcached://HOST:PORT,HOST:PORT",
        ("memcached", true) => "memcached=memcacheds://HOST:PORT,HOST:PORT",
        (_, false) => "cluster=redis+cluster://HOST:PORT",
        (_, true) => "cluster=rediss+cluster://HOST:PORT",
    };
    commands.push(search(url, question, (rate, Some(mix)), Vec::new()));
    commands
}

/// Settings of the servers of a target, as values of `--set`.
fn sets(deployment: &Deployment) -> Vec<String> {
    let settings = deployment.family.settings.iter();
    // A Unix socket is where a server listens anyway.
    let given = settings.filter(|(name, value)| (&***name, &***value) != (LISTEN, "unix"));
    given.map(|(name, value)| format!("{name}={value}")).collect()
}

/// The tier of a private target, and how many servers it has.
fn sets_of_group(deployment: &Deployment) -> Vec<String> {
    let family = &deployment.family;
    if family.address.is_some() {
        return Vec::new();
    }
    let is_spread = deployment.is_cluster || deployment.shards > Some(1);
    let shards = deployment.shards.filter(|_| is_spread).map(|count| format!("shards={count}"));
    let replicas = Some(deployment.replicas).filter(|count| *count > 0);
    let replicas = replicas.map(|count| format!("replicas={count}"));
    shards.into_iter().chain(replicas).chain(tier(deployment, family.starts)).collect()
}

/// The tier of a target of this name, as the value of `--set`; `None` without one.
fn tier(deployment: &Deployment, target: &str) -> Option<String> {
    let limits = &deployment.family.tier;
    (!limits.is_empty()).then(|| format!("tier.{target}={limits}"))
}

fn search(
    target: &str,
    question: &Question,
    (rate, mix): (&RateAsked, Option<&Mix>),
    sets: Vec<String>,
) -> String {
    let mut words: Vec<String> = ["cachedyno", "find-max", target].map(String::from).into();
    let mut add = |flag: &str, value: String| words.extend([flag.to_string(), value]);
    for slo in &rate.slos {
        add("--slo", slo.to_string());
    }
    if let Some(bytes) = question.value_bytes {
        add("--value", size(bytes));
    }
    if let Some(keys) = keys(question) {
        add("--keys", count(keys));
    }
    if let Some(mix) = mix {
        add("--op", mix.to_string());
    }
    for set in sets {
        add("--set", set);
    }
    add("--blocks", BLOCKS.into());
    shell_words(words)
}

/// Number of keys of a question.
pub(super) fn keys(question: &Question) -> Option<u64> {
    match (question.amount?, question.value_bytes) {
        (Amount::Keys(keys), _) => Some(keys),
        (Amount::Bytes(bytes), Some(value)) => Some((bytes / value).max(1)),
        (Amount::Bytes(_), None) => None,
    }
}

/// The study that measures memory while Redis saves its data.
pub(super) fn memory(question: &Question) -> String {
    let mut words: Vec<String> =
        ["cachedyno", "run", "beyond-ram", "--set", "profile=save"].map(String::from).into();
    words.extend(
        question
            .value_bytes
            .into_iter()
            .flat_map(|bytes| ["--set".to_string(), format!("value_bytes={bytes}")]),
    );
    shell_words(words)
}

/// The study that measures which rate survives the failure of a server, at these `shares` in
/// percent or its own; empty if no study does.
pub(super) fn failover(
    question: &Question,
    rate: &RateAsked,
    deployment: &Deployment,
    shares: &BTreeSet<u32>,
) -> Vec<String> {
    let times = rate.slos.iter().filter_map(Slo::time_ns);
    let limit_ms = times.map(|ns| (ns / NS_PER_MS).max(1)).min();
    let kept = Slo::Percentile {
        thousandths: 99_000,
        limit_ns: limit_ms.map_or(u64::MAX, |ms| ms * NS_PER_MS),
    };
    let is_kept = rate.slos.iter().all(|slo| is_implied(slo, &kept));
    let Some(of_target) = failing(deployment).filter(|_| rate.survive == 1 && is_kept) else {
        return Vec::new();
    };
    let mut words: Vec<String> = ["cachedyno", "run", "failover"].map(String::from).into();
    words.extend(of_target);
    let mut set = |key: &str, value: String| {
        words.extend(["--set".to_string(), format!("{key}={value}")]);
    };
    if let Some(bytes) = question.value_bytes {
        set("value_bytes", bytes.to_string());
    }
    if let Some(keys) = keys(question) {
        set("keys", keys.to_string());
    }
    if let Some(ms) = limit_ms {
        set("limit_ms", ms.to_string());
    }
    if !shares.is_empty() {
        let percent: Vec<String> = shares.iter().map(ToString::to_string).collect();
        set("shares", percent.join(","));
    }
    vec![shell_words(words)]
}

/// Flags by which the study `failover` measures such servers with replicas; `None` if it cannot.
fn failing(deployment: &Deployment) -> Option<Vec<String>> {
    let family = &deployment.family;
    if family.address.is_some() {
        let target = format!("{}=URL", deployment.target);
        return Some(["--target", &target, "--fault-command", "COMMAND"].map(String::from).into());
    }
    // Only nodes of a cluster replicate by TLS.
    let is_cluster = deployment.is_cluster || family.tls;
    let (profile, target, study_shards) = OF_CLUSTER;
    let is_alone = family.tier().has_network() || family.settings.contains_key("proxy");
    let has_study = match family.starts {
        "memcached" => false,
        "redis" => true,
        _ => !is_cluster,
    };
    if is_alone || !has_study {
        return None;
    }
    let mut flags = Vec::new();
    let mut add = |flag: &str, value: String| flags.extend([flag.to_string(), value]);
    if is_cluster {
        add("--set", profile.into());
        let shards = deployment.shards.filter(|count| *count > study_shards);
        if let Some(shards) = shards {
            add("--set", format!("redis.shards={}", shards.min(SHARDS_MAX)));
        }
        if family.tls {
            add("--set", format!("redis.{LISTEN}=tls"));
        }
    } else if family.starts != "redis" {
        add("--target", family.starts.into());
    }
    for (name, value) in &family.settings {
        let set = format!("{name}={value}");
        if !OF_GROUP.contains(&&**name) && !SETTINGS.contains(&&*set) {
            add("--set", format!("redis.{set}"));
        }
    }
    if let Some(tier) = tier(deployment, if is_cluster { target } else { family.starts }) {
        add("--set", tier);
    }
    Some(flags)
}

/// Adds the directory of records to commands, if it is not the default one.
pub(super) fn in_records(missing: &mut [super::view::Missing], records: Option<&str>) {
    let Some(records) = records else { return };
    for command in missing.iter_mut().flat_map(|lack| &mut lack.commands) {
        command.push(' ');
        command.push_str(&shell_words(["--out", records]));
    }
}

/// A count in the largest unit in which it is whole.
fn count(number: u64) -> String {
    let units = [(1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k")];
    let unit = units.into_iter().find(|(by, _)| number.is_multiple_of(*by) && number >= *by);
    unit.map_or_else(|| number.to_string(), |(by, name)| format!("{}{name}", number / by))
}

/// A size in the largest unit in which it is whole.
fn size(bytes: u64) -> String {
    let units = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let unit = units.into_iter().find(|(by, _)| bytes.is_multiple_of(*by) && bytes >= *by);
    unit.map_or_else(|| bytes.to_string(), |(by, name)| format!("{}{name}", bytes / by))
}
