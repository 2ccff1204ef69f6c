//! Phases of workloads that choose operations by weight, for a duration or a number of operations.

use serde::Deserialize;
use std::collections::BTreeMap;
use toml::Spanned;

use super::wire::StudyScale;
use super::{Fault, quoted_list};
use crate::phase::{Phase, Stop};
use crate::plan::KvOperation;

/// How a profile's phases end.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum StopKind {
    /// After `measure_ms`, on data filled beforehand.
    Time,
    /// After a number of operations per client.
    Count,
}

/// A measured phase.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StudyPhase {
    name: String,
    /// Operations and weights; empty if the original's list determines them.
    mix: Spanned<BTreeMap<String, f64>>,
    /// Duration in units of the scale's `measure_ms`; 1 by default.
    length: Option<Spanned<f64>>,
}

/// Returns the fault of a phase length that is out of range.
pub(super) fn fault_in_length(length: &Spanned<f64>) -> Option<Fault> {
    let (is_length, at) = ((0.001..=1_000.0).contains(length.get_ref()), length.span().start);
    let problem = format!("length `{}` is invalid (expected 0.001 to 1000)", length.get_ref());
    (!is_length).then_some((at, problem))
}

impl StudyPhase {
    /// Its name.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// True if its mix has this operation.
    pub(super) fn does(&self, operation: &str) -> bool {
        self.mix.get_ref().contains_key(operation)
    }

    /// Returns the fault of a mix with unknown operations or without positive weights, or of a mix
    /// where a list determines the operations.
    pub(super) fn fault(&self, known: &[&str], is_listed: bool) -> Option<Fault> {
        let mix = self.mix.get_ref();
        let unknown = mix.keys().find(|o| !known.contains(&o.as_str()));
        let is_drawn = !mix.is_empty() && mix.values().all(|w| w.is_finite() && *w > 0.0);
        let problem = match unknown {
            Some(name) => unknown_operation(name, known),
            None if is_listed && !mix.is_empty() => {
                "the original's list determines the operations (expected an empty mix: `{}`)".into()
            }
            None if !is_listed && !is_drawn => "weights of a mix must be above 0".into(),
            None => return self.length.as_ref().and_then(fault_in_length),
        };
        Some((self.mix.span().start, problem))
    }

    /// The planned phase; `operations` is the number per client if it stops by count.
    pub(super) fn planned(&self, stop: StopKind, operations: u64, scale: &StudyScale) -> Phase {
        let (warmup_ns, stop) = match stop {
            StopKind::Time => {
                let length = self.length.as_ref().map_or(1.0, |length| *length.get_ref());
                let measured_ns = (scale.measure_ms as f64 * length * 1e6) as u64;
                (scale.warmup_ms * 1_000_000, Stop::AfterNs(measured_ns.max(1)))
            }
            StopKind::Count => (0, Stop::Count(operations)),
        };
        let (name, mix) = (self.name.clone(), self.mix.get_ref().clone());
        Phase { name, mix, warmup_ns, stop, control: None }
    }
}

/// Key-value operations with the product's own commands.
pub(super) fn plain(operations: &[&str]) -> Vec<KvOperation> {
    let plain = |name: &&str| KvOperation { name: (*name).into(), command: None };
    operations.iter().map(plain).collect()
}

/// A phase of this length with equal weights for all operations.
pub(super) fn timed(name: &str, operations: &[&str], length_ns: u64, scale: &StudyScale) -> Phase {
    Phase {
        name: name.into(),
        mix: operations.iter().map(|name| ((*name).into(), 1.0)).collect(),
        warmup_ns: scale.warmup_ms * 1_000_000,
        stop: Stop::AfterNs(length_ns),
        control: None,
    }
}

pub(super) fn unknown_operation(operation: &str, known: &[&str]) -> String {
    format!("unknown operation `{operation}` (known: {})", quoted_list(known.iter().copied()))
}
