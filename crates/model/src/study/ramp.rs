//! Ramps: a load that is raised in stages until a store breaks. What a study says of one, and how
//! that becomes a load and a workload.

use serde::Deserialize;
use stats::SplitMix64;
use std::fmt;
use std::ops::RangeInclusive;

use super::StudyError;
use super::choices::{Choices, Resolved, bad, within};
use super::wire::{Profile, RAMP_OPERATIONS, ScaleSize, Study};
use crate::load::{Load, PEAK, RampSteps};
use crate::plan::{Control, Kv, KvOperation, Phase, Stop};
use crate::stages::{ClientStage, SETTLE_SHARE, STAGE_CLIENTS_MAX, STAGE_RATE_MAX};

/// Name of the phase whose load is raised.
pub const RAMP: &str = "ramp";
/// Names of the phases that tell what an operation takes apart from what its place takes: a pair,
/// the same in the other order, and each operation by itself.
const PAIR: &str = "pair";
const SWAPPED: &str = "swapped";
const APART: &str = "apart";
/// Keys of such a phase at most: few enough that each is written again long before it expires.
const CONTROL_KEYS: u64 = 10_000;
/// Largest share of the load at which they may run, in thousandths.
const CONTROL_PERMILLE_MAX: u32 = 500;
/// Largest share of the peak that may be planned, in thousandths.
const PERMILLE_MAX: u32 = 10_000;
/// Most stages on the way up.
const STEPS_MAX: usize = 1_000;
/// How long a stage may be, milliseconds: from the spans in which answers are counted
/// ([`SAMPLE_NS`](crate::saturation::SAMPLE_NS)) to a day.
const STAGE_MS: RangeInclusive<u64> = 100..=86_400_000;
/// Fewest requests of a stage at a given rate: with fewer, chance decides.
const REQUESTS_MIN: f64 = 20.0;
/// Most threads of the generator.
const THREADS_MAX: u32 = 1_024;
/// What says in a plan that a value is the JSON object of a user.
const JSON: &str = "json";
/// What says in a plan that names are UUIDs.
const UUID: &str = "uuid";

/// What is raised from stage to stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pace {
    /// The rate at which requests are planned.
    #[default]
    Open,
    /// The number of clients, which wait for their replies and pause.
    Clients,
}

/// The order in which the rates of a ramp come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StageOrder {
    /// From the lowest to the highest, and back.
    #[default]
    UpDown,
    /// From the lowest to the highest.
    Up,
    /// At random, each once: the same order in every block.
    Shuffled,
}

/// A limit of latency as studies and users write it: `1ms`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct LatencyLimit(u64);

impl LatencyLimit {
    /// What users are told to give.
    pub const EXPECTED: &str = "1us to 60s, as in `1ms`";

    /// Reads a time; `None` when it is none, or too short or too long.
    pub fn parse(text: &str) -> Option<Self> {
        let ns = stats::parse_duration_ns(text).ok()?;
        (1_000..=60_000_000_000).contains(&ns).then_some(Self(ns))
    }

    /// Nanoseconds.
    pub fn ns(self) -> u64 {
        self.0
    }
}

impl TryFrom<String> for LatencyLimit {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text)
            .ok_or_else(|| format!("`{text}` is no limit of latency (expected {})", Self::EXPECTED))
    }
}

impl fmt::Display for LatencyLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&stats::format_ns(self.0 as f64))
    }
}

impl Resolved {
    /// A `--set` key that only ramps have; `None` for any other.
    pub(super) fn set_of_ramp(&mut self, key: &str, value: &str) -> Option<Result<(), StudyError>> {
        let (defaults, size) = (&mut self.defaults, &mut self.size);
        let set = match key {
            "value_bytes" => match value {
                JSON => Ok(0),
                size => within(key, size, &(32..=16 << 20), "`json`, or 32 to 16777216 bytes"),
            }
            .map(|bytes| defaults.value_bytes = bytes),
            "limit" => LatencyLimit::parse(value)
                .map(|limit| defaults.limit = Some(limit))
                .ok_or_else(|| bad(key, value, LatencyLimit::EXPECTED)),
            "order" => match value {
                "up-down" => Ok(StageOrder::UpDown),
                "up" => Ok(StageOrder::Up),
                "shuffled" => Ok(StageOrder::Shuffled),
                _ => Err(bad(key, value, "`up-down`, `up` or `shuffled`")),
            }
            .map(|order| defaults.order = order),
            "rates" => rates(key, value).map(|rates| self.rates = Some(rates)),
            "threads" => within(key, value, &(1..=THREADS_MAX), "1 to 1024 threads")
                .map(|threads| defaults.threads = threads),
            "stage_ms" => within(key, value, &STAGE_MS, "100 to 86400000 milliseconds")
                .map(|ms| size.stage_ms = ms),
            "stages" => {
                within(key, value, &(1..=STEPS_MAX as u32), "1 to 1000").map(|n| size.stages = n)
            }
            "step" => within(key, value, &(1..=1_000), "1 to 1000 clients").map(|n| size.step = n),
            _ => return None,
        };
        Some(set)
    }

    /// Stages must have requests, and a limit must be one that an answer can miss.
    pub(super) fn agree_on_times(&self) -> Result<(), StudyError> {
        let seconds = self.size.stage_ms as f64 * (1.0 - SETTLE_SHARE) / 1e3;
        let lowest = self.rates.as_ref().and_then(|rates| rates.first());
        if let Some(rate) = lowest.filter(|rate| **rate as f64 * seconds < REQUESTS_MIN) {
            return Err(StudyError::Choice(format!(
                "--set rates: a stage at `{rate}` a second has {:.0} request(s) to be judged by, \
                 in {seconds} s (expected at least {REQUESTS_MIN}: a higher rate, or a longer \
                 --set stage_ms)",
                *rate as f64 * seconds
            )));
        }
        let timeout_ms = self.defaults.timeout_ms;
        let beyond = |limit: &LatencyLimit| limit.ns() > timeout_ms.saturating_mul(1_000_000);
        if let Some(limit) = self.defaults.limit.filter(beyond) {
            return Err(StudyError::Choice(format!(
                "the limit `{limit}` is beyond the time-out of {timeout_ms} ms, after which a \
                 request has failed (expected no more than that: lower --set limit, or raise \
                 --timeout)"
            )));
        }
        Ok(())
    }

    /// What was set must be of use to one of the profiles that run.
    pub(super) fn agree_on_pace(&self, study: &Study, choices: &Choices) -> Result<(), StudyError> {
        let chosen = || study.profiles.iter().filter(|p| self.profiles.contains(p.name.get_ref()));
        for (keys, pace, cure) in [
            (&["clients", "order", "rates"][..], Pace::Open, "whose stages are clients"),
            (&["stages", "step", "think_ms"][..], Pace::Clients, "whose stages are rates"),
        ] {
            let set = choices.sets.iter().find(|(key, _)| keys.contains(&key.as_str()));
            if let Some((key, value)) = set
                && chosen().all(|profile| profile.pace != pace)
            {
                return Err(StudyError::Choice(format!(
                    "--set {key}=`{value}` has no effect on profile `{}`, {cure} (leave it out, or \
                     choose another profile with --set profile=NAME)",
                    self.profiles.join("`, `")
                )));
            }
        }
        for profile in chosen().filter(|p| p.pace == Pace::Clients) {
            let most = most_clients(profile, &self.size);
            if most > STAGE_CLIENTS_MAX {
                return Err(StudyError::Choice(format!(
                    "profile `{}` ends with `{most}` clients (expected at most \
                     {STAGE_CLIENTS_MAX}: fewer stages or a smaller step)",
                    profile.name.get_ref()
                )));
            }
        }
        Ok(())
    }
}

/// Rates as users write them: `1000,2000,5000`, ascending.
fn rates(key: &str, text: &str) -> Result<Vec<u64>, StudyError> {
    let expected = "operations per second from low to high, as in `1000,2000,5000`";
    let rates: Vec<u64> = text
        .split(',')
        .map(|rate| within(key, rate, &(1..=STAGE_RATE_MAX), expected))
        .collect::<Result<_, _>>()?;
    let ascends = rates.is_sorted_by(|a, b| a < b) && rates.len() <= STEPS_MAX;
    if ascends { Ok(rates) } else { Err(bad(key, text, expected)) }
}

fn most_clients(profile: &Profile, size: &ScaleSize) -> u64 {
    let groups = profile.groups.as_ref().map_or(1, |groups| *groups.get_ref());
    u64::from(groups) * u64::from(size.step) * u64::from(size.stages)
}

impl Study {
    /// What makes no sense of a ramp's values.
    pub(super) fn fault_in_scales(&self) -> Option<(usize, String)> {
        let empty = |size: &&ScaleSize| size.stages == 0 || size.step == 0 || size.keys == 0;
        let short = |size: &&ScaleSize| !STAGE_MS.contains(&size.stage_ms);
        let problem = if self.scales.values().find(empty).is_some() {
            "stages, step and keys of a scale must be above 0"
        } else if self.scales.values().find(short).is_some() {
            "stage_ms of a scale must be 100 to 86400000 (answers are counted every 100 ms)"
        } else if self.defaults.threads == 0 {
            "threads must be above 0"
        } else {
            return None;
        };
        Some((self.defaults.profile.span().start, problem.into()))
    }
}

/// What makes no sense of a ramp's profile, with its place.
pub(super) fn fault_in_profile(profile: &Profile) -> Option<(usize, String)> {
    let name = profile.name.get_ref();
    let (at, offset) = (|at: usize, problem: String| Some((at, problem)), profile.name.span());
    if let Some(share) = &profile.control_permille
        && !(1..=CONTROL_PERMILLE_MAX).contains(share.get_ref())
    {
        return at(share.span().start, "control_permille must be 1 to 500".into());
    }
    let (permille, groups) = (profile.permille.as_ref(), profile.groups.as_ref());
    match (profile.pace, permille, groups) {
        (Pace::Open, None, _) => {
            at(offset.start, format!("profile `{name}` has no permille (its rates)"))
        }
        (Pace::Clients, _, None) => {
            at(offset.start, format!("profile `{name}` has no groups (of clients)"))
        }
        (Pace::Open, _, Some(groups)) => {
            at(groups.span().start, "`groups` needs `pace = \"clients\"`".into())
        }
        (Pace::Clients, Some(permille), _) => {
            at(permille.span().start, "`permille` needs `pace = \"open\"`".into())
        }
        (Pace::Open, Some(permille), None) => {
            let shares = permille.get_ref();
            let good = !shares.is_empty()
                && shares.len() <= STEPS_MAX
                && shares.iter().all(|share| (1..=PERMILLE_MAX).contains(share))
                && shares.is_sorted_by(|a, b| a < b);
            let problem = "permille must be 1 to 1000 ascending numbers from 1 to 10000";
            if good { None } else { at(permille.span().start, problem.into()) }
        }
        (Pace::Clients, None, Some(groups)) => {
            let problem = "groups must be 1 to 1000";
            let good = (1..=1_000).contains(groups.get_ref());
            if good { None } else { at(groups.span().start, problem.into()) }
        }
    }
}

/// The loads of a profile.
pub(super) fn loads(profile: &Profile, resolved: &Resolved, seed: u64) -> Vec<Load> {
    let size = &resolved.size;
    let stage_ns = size.stage_ms * 1_000_000;
    if profile.pace == Pace::Clients {
        let groups = profile.groups.as_ref().map_or(1, |groups| *groups.get_ref());
        let stage = |number: u32| {
            let clients = groups * size.step * number;
            ClientStage { length_ns: stage_ns, from_clients: clients, to_clients: clients }
        };
        return vec![Load::Closed {
            clients: most_clients(profile, size) as u32,
            one_session: false,
            pipeline: 1,
            stages: (1..=size.stages).map(stage).collect(),
        }];
    }
    let order = resolved.defaults.order;
    let steps = match (&resolved.rates, &profile.permille) {
        (Some(rates), _) => RampSteps::PerS(in_order(rates, order, seed)),
        (None, Some(shares)) => RampSteps::Permille(in_order(shares.get_ref(), order, seed)),
        (None, None) => RampSteps::Permille(vec![1_000]),
    };
    let mut clients = resolved.defaults.clients.clone();
    clients.sort_unstable();
    clients.dedup();
    // A stage behind one that was too much would begin with its queue.
    let rest_ns = if order == StageOrder::Shuffled { stage_ns } else { 0 };
    let load =
        |clients| Load::Ramp { clients, poisson: true, stage_ns, rest_ns, steps: steps.clone() };
    clients.into_iter().map(load).collect()
}

/// What ascends, in the order of time.
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

/// The phases, by name, that tell apart what an operation takes and what its place takes.
fn controls(permille: u32, keys: u64) -> [(&'static str, Control); 3] {
    let keys = keys.min(CONTROL_KEYS);
    let names = RAMP_OPERATIONS.map(String::from);
    let control = |sequence: Vec<String>| Control { sequence, permille, keys };
    [
        (PAIR, control(names.to_vec())),
        (SWAPPED, control(names.iter().rev().cloned().collect())),
        (APART, control(Vec::new())),
    ]
}

/// The workload of a profile under a load.
pub(super) fn workload(profile: &Profile, load: &Load, resolved: &Resolved) -> Kv {
    let (defaults, size) = (&resolved.defaults, &resolved.size);
    let operation = |name: &&str| KvOperation { name: (*name).into(), command: None };
    let phase = |name: &str, length_ns: u64| Phase {
        name: name.into(),
        mix: RAMP_OPERATIONS.iter().map(|name| ((*name).into(), 1.0)).collect(),
        warmup_ns: size.warmup_ms * 1_000_000,
        stop: Stop::AfterNs(length_ns),
        control: None,
    };
    let stage_ns = size.stage_ms * 1_000_000;
    let (mut phases, ramp_ns, think_ms) = match load {
        Load::Ramp { .. } => (vec![phase(PEAK, size.measure_ms * 1_000_000)], load.ramp_ns(), 0.0),
        Load::Closed { .. } | Load::Open { .. } => {
            (Vec::new(), stage_ns * u64::from(size.stages), defaults.think_ms)
        }
    };
    if let Some(share) = &profile.control_permille {
        phases.extend(
            controls(*share.get_ref(), size.keys)
                .map(|(name, control)| Phase { control: Some(control), ..phase(name, stage_ns) }),
        );
    }
    phases.push(phase(RAMP, ramp_ns));
    Kv {
        profile: profile.name.get_ref().clone(),
        operations: RAMP_OPERATIONS.iter().map(operation).collect(),
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
        verify_one_in: defaults.verify_one_in,
        threads: defaults.threads.min(load.clients()),
        think_ns: (think_ms * 1e6) as u64,
        think_is_drawn: think_ms > 0.0,
        follows: true,
        phases,
    }
}

#[cfg(test)]
#[path = "ramp_tests.rs"]
mod tests;
