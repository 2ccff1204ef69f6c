//! The workload `failover`: a primary is killed under a steady rate of gets and sets.

use serde::Deserialize;
use serde::de::IgnoredAny;
use std::ops::RangeInclusive;
use toml::Spanned;

use super::phases::{plain, timed};
use super::planning::{Keys, Run, WorkloadTables};
use super::set::{Key, VALUE_BYTES, number};
use super::targets::Stores;
use super::{Fault, StudyError};
use crate::action::{Act, Action};
use crate::arrivals::{Arrivals, STAGE_RATE_MAX};
use crate::load::{Load, Schedule};
use crate::plan::{Cell, Kv, Workload};

/// Operations, with equal weights.
const OPERATIONS: [&str; 2] = ["get", "set"];
/// Name of the phase.
const PHASE: &str = "steady";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Defaults {
    /// Bytes of a value.
    value_bytes: usize,
    /// Requests per second.
    rate: u64,
    /// Number of keys, all filled beforehand.
    keys: u64,
}

/// Allowed times of the kill: the rate before it is taken from ten intervals of 100 ms.
const KILL_MS: RangeInclusive<u64> = 1_500..=86_400_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Size {
    /// Time from the start of the measurement until the primary is killed, milliseconds.
    kill_ms: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Profile {
    name: Spanned<String>,
    #[serde(rename = "about")]
    _about: IgnoredAny,
}

impl Keys for Defaults {
    type Size = Size;
    type Profile = Profile;
    const SET: &'static [Key<Self, Size>] = &[
        Key("value_bytes", |own, _, text| number(&mut own.value_bytes, text, VALUE_BYTES, "bytes")),
        Key("rate", |own, _, text| {
            number(&mut own.rate, text, 1..=STAGE_RATE_MAX, "requests per second")
        }),
        Key("keys", |own, _, text| number(&mut own.keys, text, 1..=100_000_000, "")),
        Key("kill_ms", |_, size, text| number(&mut size.kill_ms, text, KILL_MS, "milliseconds")),
    ];
    const STORES: Stores = Stores::Keys;
    const OPERATIONS: &'static [&'static str] = &OPERATIONS;

    fn fault(_: &WorkloadTables<Self>) -> Option<Fault> {
        None
    }

    fn cells(run: &Run<'_, Self>) -> Result<Vec<Cell>, StudyError> {
        let Run { defaults, size, scale, .. } = run;
        if !KILL_MS.contains(&size.kill_ms) || size.kill_ms >= scale.measure_ms {
            let (kill_ms, measure_ms, least) = (size.kill_ms, scale.measure_ms, KILL_MS.start());
            return Err(StudyError::Choice(format!(
                "kill_ms `{kill_ms}` does not fit measure_ms `{measure_ms}` (expected kill_ms >= \
                 {least} and kill_ms < measure_ms: change it with --set kill_ms or --set \
                 measure_ms)"
            )));
        }
        let mut cells = Vec::new();
        for profile in run.chosen() {
            for clients in run.clients(&[]) {
                let rate = Schedule::Steady(defaults.rate);
                let load = Load::planned(Arrivals::Poisson, rate, clients);
                let kv = workload(profile, run);
                cells.extend(run.on_each_target(&load, |_| Workload::Kv(kv.clone())));
            }
        }
        Ok(cells)
    }
}

fn workload(profile: &Profile, run: &Run<'_, Defaults>) -> Kv {
    let Run { defaults, size, scale, study, .. } = run;
    let phase = timed(PHASE, &OPERATIONS, scale.measure_ms * 1_000_000, scale);
    let kill =
        Action { phase: PHASE.into(), at_ns: size.kill_ms * 1_000_000, what: Act::KillPrimary };
    Kv {
        profile: profile.name.get_ref().clone(),
        operations: plain(&OPERATIONS),
        keys: defaults.keys,
        distribution: "uniform".into(),
        key_prefix: "key:".into(),
        value_bytes: defaults.value_bytes.to_string(),
        filled_share: 1.0,
        verify_one_in: study.verify_one_in,
        threads: 1,
        phases: vec![phase],
        actions: vec![kill],
        ..Kv::default()
    }
}
