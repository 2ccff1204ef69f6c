//! The workload `ramp`: keys and values under a load that is raised in stages until a store breaks.

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use stats::SplitMix64;
use std::ops::{Range, RangeInclusive};
use toml::Spanned;

use super::phases::{plain, timed};
use super::planning::{Keys, Run, WorkloadTables};
use super::set::{Key, THINK_MS, THREADS_MAX, VALUE_BYTES, list, named, number, put, within};
use super::targets::Stores;
use super::{Fault, StudyError};
use crate::arrivals::{Arrivals, STAGE_CLIENTS_MAX, STAGE_RATE_MAX};
use crate::load::{Load, PEAK, Schedule, Shares};
use crate::phase::{Control, Phase};
use crate::plan::{Cell, Kv, Workload};
use crate::search::{LIMITS_MAX, PROBE_NS_MIN, ROUNDS, Search, Slo};
use crate::stages::{SETTLE_SHARE, Stage};

/// Name of the phase whose load is raised.
pub const RAMP: &str = "ramp";
/// Operations, in the order in which they are chained.
const OPERATIONS: [&str; 2] = ["set", "get"];
/// Names of the phases that separate the cost of an operation from that of its place: a pair, the
/// pair in the other order, and each operation alone.
const PAIR: &str = "pair";
const SWAPPED: &str = "swapped";
const APART: &str = "apart";
/// Maximum keys of such a phase: few enough that each is rewritten long before it expires.
const CONTROL_KEYS: u64 = 10_000;
/// Largest share of the load for these phases, in thousandths.
const CONTROL_PERMILLE_MAX: u32 = 500;
/// Largest share of the peak that can be planned, in thousandths.
const PERMILLE_MAX: u32 = 10_000;
/// Maximum stages on the way up.
const STEPS_MAX: usize = 1_000;
/// Allowed length of a stage, milliseconds: from the interval in which replies are counted
/// ([`SAMPLE_NS`](crate::saturation::SAMPLE_NS)) to a day.
const STAGE_MS: RangeInclusive<u64> = 100..=86_400_000;
/// Minimum requests of a stage at a given rate; with fewer, chance determines the result.
const REQUESTS_MIN: f64 = 20.0;
/// Expected form of rates, for errors.
const RATES: &str = "operations per second from low to high, as in `1000,2000,5000`";
/// Value size in a plan: values are the JSON object of a user.
const JSON: &str = "json";
/// Key length in a plan: names are UUIDs.
const UUID: &str = "uuid";

/// Quantity that is raised from stage to stage.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Pace {
    /// The rate at which requests are planned.
    Open,
    /// The number of clients, which wait for their replies and then pause.
    Clients,
    /// The rate, by probes that search for the highest within limits.
    Search,
}

/// Order of the rates of a ramp.
#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum StageOrder {
    /// From the lowest to the highest, and back.
    #[default]
    UpDown,
    /// From the lowest to the highest.
    Up,
    /// At random, each once: the same order in every block.
    Shuffled,
}

/// Parses a latency limit, nanoseconds; `None` if it is not a time from 1 µs to 60 s.
fn limit(text: &str) -> Option<u64> {
    let ns = stats::parse_duration_ns(text).ok()?;
    (1_000..=60_000_000_000).contains(&ns).then_some(ns)
}

fn limit_of_file<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    // The check against the range of `--set` reports invalid text.
    Ok(limit(&String::deserialize(from)?))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Defaults {
    /// Bytes of a value; 0, the default, for the JSON object of a user, which has 148.
    #[serde(default)]
    value_bytes: usize,
    /// Lifetime of values, seconds.
    ttl_s: u64,
    /// Longest pause of a client before its set, in profiles of pace `clients`, milliseconds;
    /// pauses are uniform from 0 to this.
    think_ms: f64,
    /// Limit on the 99th percentile for the highest rate within a limit, a time such as `1ms`.
    #[serde(default, rename = "limit", deserialize_with = "limit_of_file")]
    limit_ns: Option<u64>,
    /// Order of the rates of a profile of pace `open`.
    #[serde(default)]
    order: StageOrder,
    /// Threads of the generator.
    #[serde(default = "one")]
    threads: u32,
    /// Rates that the user set, instead of the profile's.
    #[serde(skip)]
    rates: Option<Vec<u64>>,
}

fn one() -> u32 {
    1
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Size {
    /// Number of keys, written in turn and then again from the first.
    keys: u64,
    /// Length of a stage, milliseconds.
    stage_ms: u64,
    /// Number of stages in profiles of pace `clients`.
    stages: u32,
    /// Clients added to each group per stage.
    step: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Profile {
    name: Spanned<String>,
    #[serde(rename = "about")]
    _about: IgnoredAny,
    pace: Pace,
    /// For pace `open`: rates on the way up, in thousandths of the peak.
    permille: Option<Spanned<Vec<u32>>>,
    /// For pace `clients`: number of groups of clients, which all grow equally.
    groups: Option<Spanned<u32>>,
    /// If given, phases before the ramp separate the cost of an operation from that of its place
    /// in a pair, at this share of the peak (pace `clients`: of the most clients), in thousandths.
    /// Each is as long as a stage.
    control_permille: Option<Spanned<u32>>,
    /// CPUs of each private server; by default all that servers may use.
    server_cpus: Option<Spanned<u32>>,
    /// For pace `search`: limits that must all be met, such as `p99<1ms`.
    limits: Option<Spanned<Vec<Slo>>>,
}

impl Keys for Defaults {
    type Size = Size;
    type Profile = Profile;
    const SET: &'static [Key<Self, Size>] = &[
        Key("value_bytes", |own, _, text| {
            let bytes = if text == JSON { Some(0) } else { within(text, &VALUE_BYTES) };
            put(&mut own.value_bytes, bytes, "`json`, or 32 to 16777216 bytes")
        }),
        Key("ttl_s", |own, _, text| number(&mut own.ttl_s, text, 1..=31_536_000, "seconds")),
        Key("think_ms", |own, _, text| number(&mut own.think_ms, text, THINK_MS, "milliseconds")),
        Key("limit", |own, _, text| {
            put(&mut own.limit_ns, limit(text).map(Some), "1us to 60s, as in `1ms`")
        }),
        Key("order", |own, _, text| {
            put(&mut own.order, named(text), "`up-down`, `up` or `shuffled`")
        }),
        Key("rates", |own, _, text| put(&mut own.rates, rates(text).map(Some), RATES)),
        Key("threads", |own, _, text| number(&mut own.threads, text, 1..=THREADS_MAX, "threads")),
        Key("keys", |_, size, text| number(&mut size.keys, text, 1..=100_000_000, "")),
        Key("stage_ms", |_, size, text| number(&mut size.stage_ms, text, STAGE_MS, "milliseconds")),
        Key("stages", |_, size, text| number(&mut size.stages, text, 1..=STEPS_MAX as u32, "")),
        Key("step", |_, size, text| number(&mut size.step, text, 1..=1_000, "clients")),
    ];
    const STORES: Stores = Stores::Keys;
    const OPERATIONS: &'static [&'static str] = &OPERATIONS;
    const IS_RAISED: bool = true;

    fn fault(own: &WorkloadTables<Self>) -> Option<Fault> {
        own.profiles.iter().find_map(fault_in_profile)
    }

    fn cells(run: &Run<'_, Self>) -> Result<Vec<Cell>, StudyError> {
        check_settings_of_pace(run)?;
        check_stage_length(run)?;
        let mut cells = Vec::new();
        for profile in run.chosen() {
            for load in loads(profile, run) {
                let workload = Workload::Kv(workload(profile, &load, run));
                cells.extend(run.on_each_target(&load, |_| workload.clone()));
            }
        }
        Ok(cells)
    }

    fn limit_ns(&self) -> Option<u64> {
        self.limit_ns
    }
}

/// Rejects stages with too few requests and stages too short for a probe.
fn check_stage_length(run: &Run<'_, Defaults>) -> Result<(), StudyError> {
    let Run { defaults, size, .. } = run;
    let seconds = size.stage_ms as f64 * (1.0 - SETTLE_SHARE) / 1e3;
    let lowest = defaults.rates.as_ref().and_then(|rates| rates.first());
    if let Some(rate) = lowest.filter(|rate| **rate as f64 * seconds < REQUESTS_MIN) {
        return Err(StudyError::Choice(format!(
            "--set rates: a stage at `{rate}`/s has only {:.0} request(s) in {seconds} s (expected \
             at least {REQUESTS_MIN}: a higher rate, or a longer --set stage_ms)",
            *rate as f64 * seconds
        )));
    }
    let stage_ms = size.stage_ms;
    let searches = run.chosen().any(|profile| profile.pace == Pace::Search);
    if searches && stage_ms * 1_000_000 < PROBE_NS_MIN {
        return Err(StudyError::Choice(format!(
            "--set stage_ms=`{stage_ms}` is too short for the probes of a search (expected \
             {} or more)",
            PROBE_NS_MIN / 1_000_000
        )));
    }
    Ok(())
}

/// Rejects settings without effect on any chosen profile.
fn check_settings_of_pace(run: &Run<'_, Defaults>) -> Result<(), StudyError> {
    for (keys, paces, why) in [
        (&["order", "rates"][..], &[Pace::Open][..], "whose stages have no fixed rates"),
        (&["clients"], &[Pace::Open, Pace::Search], "whose stages set the number of clients"),
        (&["stages", "step", "think_ms"], &[Pace::Clients], "whose stages set the rate"),
    ] {
        let set = run.choices.sets.iter().find(|(key, _)| keys.contains(&key.as_str()));
        if let Some((key, value)) = set
            && run.chosen().all(|profile| !paces.contains(&profile.pace))
        {
            return Err(StudyError::Choice(format!(
                "--set {key}=`{value}` has no effect on profile `{}`, {why} (leave it out, or \
                 choose another profile with --set profile=NAME)",
                run.study.profile.get_ref().join("`, `")
            )));
        }
    }
    let growing = run.chosen().filter(|profile| profile.pace == Pace::Clients);
    let mut ends = growing.map(|profile| (profile, most_clients(profile, &run.size)));
    match ends.find(|(_, most)| *most > STAGE_CLIENTS_MAX) {
        None => Ok(()),
        Some((profile, most)) => Err(StudyError::Choice(format!(
            "profile `{}` ends with `{most}` clients (expected at most {STAGE_CLIENTS_MAX}: fewer \
             stages or a smaller step)",
            profile.name.get_ref()
        ))),
    }
}

/// Parses ascending rates such as `1000,2000,5000`.
fn rates(text: &str) -> Option<Vec<u64>> {
    list(text, &(1..=STAGE_RATE_MAX)).filter(|rates| are_steps(rates))
}

fn are_steps<T: PartialOrd>(steps: &[T]) -> bool {
    (1..=STEPS_MAX).contains(&steps.len()) && steps.is_sorted_by(|a, b| a < b)
}

fn most_clients(profile: &Profile, size: &Size) -> u64 {
    let groups = profile.groups.as_ref().map_or(1, |groups| *groups.get_ref());
    u64::from(groups) * u64::from(size.step) * u64::from(size.stages)
}

fn fault_in_profile(profile: &Profile) -> Option<Fault> {
    let Profile { name, pace, permille, groups, control_permille, limits, .. } = profile;
    let fault = |at: Range<usize>, problem: &str| Some((at.start, problem.to_string()));
    let missing = |what| fault(name.span(), &format!("profile `{}` has no {what}", name.get_ref()));
    let shares = 1..=PERMILLE_MAX;
    let are_shares = |all: &[u32]| are_steps(all) && all.iter().all(|s| shares.contains(s));
    let share = control_permille.as_ref();
    if let Some(share) = share.filter(|s| !(1..=CONTROL_PERMILLE_MAX).contains(s.get_ref())) {
        return fault(share.span(), "control_permille must be 1 to 500");
    }
    if let Some(cpus) = profile.server_cpus.as_ref().filter(|cpus| *cpus.get_ref() == 0) {
        return fault(cpus.span(), "server_cpus must be 1 or more");
    }
    if let (Pace::Search, Some(share)) = (pace, control_permille) {
        return fault(share.span(), "`control_permille` needs `pace = \"open\"` or `\"clients\"`");
    }
    match (pace, limits) {
        (Pace::Search, None) => return missing("limits (such as `p99<1ms`)"),
        (Pace::Search, Some(limits)) if !(1..=LIMITS_MAX).contains(&limits.get_ref().len()) => {
            return fault(limits.span(), &format!("limits must be 1 to {LIMITS_MAX}"));
        }
        (Pace::Open | Pace::Clients, Some(limits)) => {
            return fault(limits.span(), "`limits` needs `pace = \"search\"`");
        }
        _ => {}
    }
    match (pace, permille, groups) {
        (Pace::Open, None, _) => missing("permille (its rates)"),
        (Pace::Clients, _, None) => missing("groups (of clients)"),
        (Pace::Open | Pace::Search, _, Some(groups)) => {
            fault(groups.span(), "`groups` needs `pace = \"clients\"`")
        }
        (Pace::Clients | Pace::Search, Some(permille), _) => {
            fault(permille.span(), "`permille` needs `pace = \"open\"`")
        }
        (Pace::Open, Some(all), None) if !are_shares(all.get_ref()) => {
            fault(all.span(), "permille must be 1 to 1000 ascending numbers from 1 to 10000")
        }
        (Pace::Clients, None, Some(groups)) if !(1..=1_000).contains(groups.get_ref()) => {
            fault(groups.span(), "groups must be 1 to 1000")
        }
        _ => None,
    }
}

/// The loads of a profile.
fn loads(profile: &Profile, run: &Run<'_, Defaults>) -> Vec<Load> {
    let Run { defaults, size, choices, .. } = run;
    let seed = choices.seed;
    let stage_ns = size.stage_ms * 1_000_000;
    if profile.pace == Pace::Clients {
        let groups = profile.groups.as_ref().map_or(1, |groups| *groups.get_ref());
        let level = |number: u32| Stage::level(u64::from(groups * size.step * number), stage_ns);
        let stages = Schedule::Stages((1..=size.stages).map(level).collect());
        let clients = most_clients(profile, size) as u32;
        return vec![Load { schedule: stages, ..Load::closed(clients) }];
    }
    let order = defaults.order;
    let clients = run.clients(&[]).into_iter();
    let planned =
        |schedule: &Schedule, clients| Load::planned(Arrivals::Poisson, schedule.clone(), clients);
    if let Some(limits) = &profile.limits {
        let slos = limits.get_ref().clone();
        let search = Schedule::Search(Search { slos, probe_ns: stage_ns, rounds: ROUNDS });
        return clients.map(|clients| planned(&search, clients)).collect();
    }
    // A stage after an overloaded one would inherit its queue.
    let rest_ns = if order == StageOrder::Shuffled { stage_ns } else { 0 };
    let shares = |permille| Schedule::Shares(Shares { permille, stage_ns, rest_ns });
    let schedule = match (&defaults.rates, &profile.permille) {
        (Some(rates), _) => {
            Schedule::Stages(Stage::with_pauses(&in_order(rates, order, seed), stage_ns, rest_ns))
        }
        (None, Some(all)) => shares(in_order(all.get_ref(), order, seed)),
        (None, None) => shares(vec![1_000]),
    };
    clients.map(|clients| planned(&schedule, clients)).collect()
}

/// Arranges ascending values in the order of their stages.
fn in_order<T: Copy>(ascending: &[T], order: StageOrder, seed: u64) -> Vec<T> {
    let mut all = ascending.to_vec();
    match order {
        StageOrder::Up => {}
        StageOrder::UpDown => all.extend(ascending.iter().rev().skip(1)),
        StageOrder::Shuffled => {
            let mut random = SplitMix64::new(seed);
            for last in (1..all.len()).rev() {
                all.swap(last, random.index(last + 1));
            }
        }
    }
    all
}

/// Phases, by name, that separate the cost of an operation from that of its place.
fn controls(permille: u32, keys: u64) -> [(&'static str, Control); 3] {
    let keys = keys.min(CONTROL_KEYS);
    let names = OPERATIONS.map(String::from);
    let control = |sequence: Vec<String>| Control { sequence, permille, keys };
    [
        (PAIR, control(names.to_vec())),
        (SWAPPED, control(names.iter().rev().cloned().collect())),
        (APART, control(Vec::new())),
    ]
}

/// The workload of a profile under a load.
fn workload(profile: &Profile, load: &Load, run: &Run<'_, Defaults>) -> Kv {
    let Run { defaults, size, scale, study, .. } = run;
    let phase = |name: &str, length_ns: u64| timed(name, &OPERATIONS, length_ns, scale);
    let stage_ns = size.stage_ms * 1_000_000;
    let (mut phases, think_ms) = match profile.pace {
        Pace::Open => (vec![phase(PEAK, scale.measure_ms * 1_000_000)], 0.0),
        Pace::Clients => (Vec::new(), defaults.think_ms),
        Pace::Search => (Vec::new(), 0.0),
    };
    if let Some(share) = &profile.control_permille {
        phases.extend(
            controls(*share.get_ref(), size.keys)
                .map(|(name, control)| Phase { control: Some(control), ..phase(name, stage_ns) }),
        );
    }
    let ramp_ns = if profile.pace == Pace::Search { stage_ns } else { load.stages_ns() };
    phases.push(phase(RAMP, ramp_ns));
    Kv {
        profile: profile.name.get_ref().clone(),
        operations: plain(&OPERATIONS),
        keys: size.keys,
        distribution: "sequential".into(),
        key_prefix: String::new(),
        key_bytes: Some(UUID.into()),
        value_bytes: match defaults.value_bytes {
            0 => JSON.into(),
            bytes => bytes.to_string(),
        },
        ttl_s: defaults.ttl_s,
        filled_share: 0.0,
        verify_one_in: study.verify_one_in,
        threads: defaults.threads.min(load.clients),
        think_ns: (think_ms * 1e6) as u64,
        think_is_drawn: think_ms > 0.0,
        follows: true,
        phases,
        server_cpus: profile.server_cpus.as_ref().map(|cpus| *cpus.get_ref()),
        ..Kv::default()
    }
}

#[cfg(test)]
#[path = "ramp_tests.rs"]
mod tests;
