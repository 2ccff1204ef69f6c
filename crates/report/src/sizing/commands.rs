//! The commands of the runs that would measure what is missing.

use model::{Slo, shell_words};

use super::deployment::{Deployment, LISTEN};
use super::question::{Amount, Mix, Question, RateAsked, is_implied};
use super::view::DeploymentView;

/// Most shards that a run starts itself.
const SHARDS_MAX: u32 = 9;
/// Settings of a private Redis like those of the study `sizing`, whose clusters it can then be
/// compared with; in addition to where it listens.
const SETTINGS: [&str; 2] = ["save=", "appendonly=no"];
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
    let sets = deployment.map_or_else(usual, sets);
    search(&target, question, (rate, rate.mix.as_ref()), sets)
}

/// Searches on `shards` servers: on this machine as far as a run starts that many, and on existing
/// ones.
pub(super) fn of_shards(
    question: &Question,
    (rate, mix): (&RateAsked, &Mix),
    deployment: &Deployment,
    shards: u32,
) -> Vec<String> {
    let family = &deployment.family;
    let mut commands = Vec::new();
    let is_local = family.address.is_none() && family.starts != "memcached";
    if is_local && shards <= SHARDS_MAX && !family.tls {
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

/// The study that measures which rate survives the failure of a server; empty if no study does.
pub(super) fn failover(
    question: &Question,
    rate: &RateAsked,
    deployment: &DeploymentView,
) -> Vec<String> {
    let at_url = deployment.address.is_some();
    let is_redis = !deployment.product.starts_with("memcached");
    let times = rate.slos.iter().filter_map(Slo::time_ns);
    let limit_ms = times.map(|ns| (ns / NS_PER_MS).max(1)).min();
    let kept = Slo::Percentile {
        thousandths: 99_000,
        limit_ns: limit_ms.map_or(u64::MAX, |ms| ms * NS_PER_MS),
    };
    let is_kept = rate.slos.iter().all(|slo| is_implied(slo, &kept));
    // Private replicas do not use TLS.
    let has_replicas = at_url || (is_redis && !deployment.tls);
    if rate.survive > 1 || !has_replicas || !is_kept {
        return Vec::new();
    }
    let mut words: Vec<String> = ["cachedyno", "run", "failover"].map(String::from).into();
    let mut add = |flag: &str, value: String| words.extend([flag.to_string(), value]);
    if at_url {
        add("--target", format!("{}=URL", deployment.target));
        add("--fault-command", "COMMAND".into());
    }
    if let Some(bytes) = question.value_bytes {
        add("--set", format!("value_bytes={bytes}"));
    }
    if let Some(ms) = limit_ms {
        add("--set", format!("limit_ms={ms}"));
    }
    vec![shell_words(words)]
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
