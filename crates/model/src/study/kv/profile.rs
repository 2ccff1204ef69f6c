//! Profiles of keys and values as a file has them, and what is wrong with one.

use serde::Deserialize;
use serde::de::IgnoredAny;
use std::ops::RangeInclusive;
use toml::Spanned;

use super::super::Fault;
use super::super::collections::Collections;
use super::super::phases::fault_in_length;
use super::super::set::VALUE_BYTES;
use super::super::wire::StudyScale;
use crate::action::Act;
use crate::arrivals::STAGE_RATE_MAX;
use crate::memory::MemoryShare;
use crate::search::{LIMITS_MAX, Slo};

/// Operations; each has its own phase.
pub(super) const OPERATIONS: [&str; 2] = ["set", "get"];
/// Numbers of keys, requests at once, and requests per second.
pub(super) const KEYS: RangeInclusive<u64> = 1..=1_000_000_000;
pub(super) const PIPELINE: RangeInclusive<u32> = 1..=1_000;
pub(super) const RATE: RangeInclusive<u64> = 1..=STAGE_RATE_MAX;
/// Maximum amount of data, as a multiple of the memory.
const DATA_MAX: f64 = 64.0;
/// Largest exponent of Zipf's law.
const ZIPF_MAX: f64 = 5.0;

/// Keys of a profile.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(try_from = "toml::Value")]
pub(super) enum ProfileKeys {
    /// Their number, which is part of the load.
    Number(u64),
    /// Those that fill this share of the memory of the target's tier. A target without such a limit
    /// has the keys of `[defaults]`.
    Share(MemoryShare),
}

impl TryFrom<toml::Value> for ProfileKeys {
    type Error = String;

    fn try_from(value: toml::Value) -> Result<Self, String> {
        let wrong = || {
            let (least, most) = (KEYS.start(), KEYS.end());
            format!(
                "keys {value} is invalid (expected {least} to {most}, or a share as in `\"75% of \
                 memory\"`)"
            )
        };
        let number = value.as_integer().and_then(|number| u64::try_from(number).ok());
        let share = || MemoryShare::parse(value.as_str()?)?.ok();
        let number = number.filter(|number| KEYS.contains(number)).map(Self::Number);
        number.or_else(|| share().map(Self::Share)).ok_or_else(wrong)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::study) struct Profile {
    pub(super) name: Spanned<String>,
    #[serde(rename = "about")]
    pub(super) _about: IgnoredAny,
    /// Amounts of data as multiples of the memory; each is a separate workload, as is each size of
    /// values and each pipeline. Without it, the number of keys is that of `[defaults]`.
    pub(super) data: Option<Spanned<Vec<f64>>>,
    /// Keys in place of those of `[defaults]`.
    pub(super) keys: Option<ProfileKeys>,
    /// Numbers of clients, in place of those of the study.
    #[serde(default)]
    pub(super) clients: Vec<u32>,
    /// Requests per second of all clients, at random times; without it, each client sends its next
    /// requests when it has the answers.
    pub(super) rate: Option<Spanned<u64>>,
    /// Limits that must all be met: the highest rate within them is searched.
    pub(super) limits: Option<Spanned<Vec<Slo>>>,
    /// True if each request has its own connection.
    #[serde(default)]
    pub(super) reconnect: bool,
    /// Operations, in the order of their phases.
    pub(super) operations: Spanned<Vec<String>>,
    /// Targets that it measures; all without it.
    pub(super) targets: Option<Spanned<Vec<String>>>,
    /// Lists or hashes behind the keys, in place of strings.
    pub(super) collections: Option<Collections>,
    /// Sizes of values, bytes, in place of those of `[defaults]`; of an element of a collection.
    pub(super) value_bytes: Option<Spanned<Vec<usize>>>,
    /// Keys filled per second; 0 for as many as the server takes. Only stores with a protocol of
    /// keys are filled at a pace.
    #[serde(default)]
    pub(super) fill_per_s: u64,
    /// True if keys are accessed one after the other.
    #[serde(default)]
    pub(super) in_order: bool,
    /// Exponent of Zipf's law, by which keys are chosen; without it, all are equally likely.
    pub(super) zipf: Option<Spanned<f64>>,
    /// Length of a phase in units of the scale's `measure_ms`.
    pub(super) length: Spanned<f64>,
    /// Requests that a client sends at once.
    pub(super) pipeline: Spanned<Vec<u32>>,
    /// True if memory is limited and the remaining data goes to swap.
    #[serde(default)]
    pub(super) swap: bool,
    /// When the store saves its data, as a share of the first phase.
    pub(super) save_at: Option<Spanned<f64>>,
    /// When the store rewrites its log of changes, as a share of the first phase.
    pub(super) rewrite_at: Option<Spanned<f64>>,
}

impl Profile {
    /// What the store writes in the background: key, time and action.
    pub(super) fn writes(&self) -> Vec<(&'static str, &Spanned<f64>, Act)> {
        let all =
            [("save_at", &self.save_at, Act::Save), ("rewrite_at", &self.rewrite_at, Act::Rewrite)];
        all.into_iter().filter_map(|(key, at, act)| Some((key, at.as_ref()?, act))).collect()
    }

    /// True if it can have the number of keys of `[defaults]`.
    pub(super) fn follows_defaults(&self) -> bool {
        self.data.is_none() && !matches!(self.keys, Some(ProfileKeys::Number(_)))
    }

    /// True if its clients send one request at a time.
    pub(super) fn is_one_by_one(&self) -> bool {
        self.rate.is_some() || self.limits.is_some() || self.reconnect
    }

    /// Length of a phase, or of a probe, nanoseconds.
    pub(super) fn length_ns(&self, scale: &StudyScale) -> u64 {
        ((scale.measure_ms as f64 * self.length.get_ref() * 1e6) as u64).max(1)
    }
}

/// What is out of range or contradicts itself.
pub(super) fn fault_in_profile(profile: &Profile) -> Option<Fault> {
    let Profile { data, operations, length, value_bytes, zipf, pipeline, rate, .. } = profile;
    let is_share = |share: &f64| (0.0..1.0).contains(share);
    let is_amount = |data: &f64| *data > 0.0 && *data <= DATA_MAX;
    let collections = profile.collections.as_ref();
    let is_known = |name: &String| match collections {
        Some(own) => own.names().any(|own| own == name),
        None => OPERATIONS.contains(&name.as_str()),
    };
    if let Some(fault) = collections.and_then(Collections::fault) {
        return Some(fault);
    }
    let is_off = |data: &&Spanned<Vec<f64>>| {
        data.get_ref().is_empty() || !data.get_ref().iter().all(is_amount)
    };
    if let Some(data) = data.as_ref().filter(is_off) {
        return Some((
            data.span().start,
            format!("data must be numbers above 0, up to {DATA_MAX}"),
        ));
    }
    if operations.get_ref().is_empty() || !operations.get_ref().iter().all(is_known) {
        let expected = match collections {
            Some(_) => "commands of its collections",
            None => "`set` or `get`",
        };
        return Some((operations.span().start, format!("operations must be {expected}")));
    }
    if let Some(fault) = fault_in_length(length) {
        return Some(fault);
    }
    let is_size = |bytes: &usize| (1..=*VALUE_BYTES.end()).contains(bytes);
    let is_off = |sizes: &&Spanned<Vec<usize>>| {
        sizes.get_ref().is_empty() || !sizes.get_ref().iter().all(is_size)
    };
    if let Some(sizes) = value_bytes.as_ref().filter(is_off) {
        let expected = format!("value_bytes must be 1 to {}", VALUE_BYTES.end());
        return Some((sizes.span().start, expected));
    }
    let at_once = pipeline.get_ref();
    if at_once.is_empty() || !at_once.iter().all(|n| PIPELINE.contains(n)) {
        let expected = format!("pipeline must be 1 to {}", PIPELINE.end());
        return Some((pipeline.span().start, expected));
    }
    if profile.is_one_by_one() && *at_once != [1] {
        let problem = "pipeline must be [1] with `rate`, `limits` or `reconnect`";
        return Some((pipeline.span().start, problem.into()));
    }
    if let Some(limits) = &profile.limits
        && let Some(problem) = fault_in_search(profile, limits.get_ref())
    {
        return Some((limits.span().start, problem));
    }
    if profile.reconnect && rate.is_some() {
        return Some((pipeline.span().start, "`rate` contradicts `reconnect`".into()));
    }
    if let Some(rate) = rate.as_ref().filter(|rate| !RATE.contains(rate.get_ref())) {
        let expected = format!("rate must be 1 to {} requests per second", RATE.end());
        return Some((rate.span().start, expected));
    }
    let is_exponent = |exponent: &f64| *exponent > 0.0 && *exponent <= ZIPF_MAX;
    if let Some(exponent) = zipf.as_ref().filter(|exponent| !is_exponent(exponent.get_ref())) {
        let expected = format!("zipf must be a number above 0, up to {ZIPF_MAX}");
        return Some((exponent.span().start, expected));
    }
    let mut times = profile.writes().into_iter().map(|(key, at, _)| (key, at));
    let (key, at) = times.find(|(_, at)| !is_share(at.get_ref()))?;
    Some((at.span().start, format!("{key} must be a share from 0 to below 1")))
}

/// What a search for the highest rate within limits contradicts.
fn fault_in_search(profile: &Profile, limits: &[Slo]) -> Option<String> {
    let contradicts = profile.rate.is_some() || profile.reconnect || !profile.writes().is_empty();
    match (limits.len(), profile.operations.get_ref().len()) {
        (count, _) if !(1..=LIMITS_MAX).contains(&count) => {
            Some(format!("limits must be 1 to {LIMITS_MAX}"))
        }
        (_, operations) if operations != 1 => Some("`limits` needs exactly one operation".into()),
        _ if contradicts => {
            Some("`limits` contradicts `rate`, `reconnect`, `save_at` and `rewrite_at`".into())
        }
        _ => None,
    }
}
