//! The workload `failover`: service is interrupted under a planned rate of gets and sets.

use serde::Deserialize;
use serde::de::IgnoredAny;
use std::ops::RangeInclusive;
use toml::Spanned;

use super::phases::{plain, timed};
use super::planning::{Keys, Run, WorkloadTables, on_targets};
use super::set::{Key, VALUE_BYTES, list, number, put};
use super::targets::Stores;
use super::{Fault, StudyError};
use crate::action::{Act, Action};
use crate::arrivals::{Arrivals, STAGE_RATE_MAX};
use crate::load::{Load, PEAK, Schedule};
use crate::plan::{Cell, Kv, PlannedTarget, Workload};

/// Operations, with equal weights.
const OPERATIONS: [&str; 2] = ["get", "set"];
/// Name of the phase.
const PHASE: &str = "steady";
/// Share of a phase's length after which the rate of a healthy store is known.
const PEAK_LENGTH: f64 = 0.15;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Defaults {
    /// Bytes of a value.
    value_bytes: usize,
    /// Requests per second of profiles without `shares`.
    rate: u64,
    /// Number of keys, all filled beforehand.
    keys: u64,
    /// Limit of the 99th percentile of the response time, milliseconds, that clients get again
    /// after the fault.
    limit_ms: u64,
    /// Shares in place of those of profiles that have some. Only from `--set`.
    #[serde(skip)]
    shares: Vec<u32>,
}

/// Allowed times of the fault: the rate before it is taken from ten intervals of 100 ms.
const FAULT_MS: RangeInclusive<u64> = 1_500..=86_400_000;
/// Allowed shares, percent of the highest rate.
const SHARES: RangeInclusive<u32> = 1..=100;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Size {
    /// Time from the start of the measurement until the fault, milliseconds.
    fault_ms: u64,
    /// The same until a killed or hanging server is restored.
    restore_ms: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Profile {
    name: Spanned<String>,
    #[serde(rename = "about")]
    _about: IgnoredAny,
    /// Name of a fault of [`Act`].
    fault: Spanned<String>,
    /// Rates as shares of the highest one that the same trial reaches before, percent; each is a
    /// separate workload. Without it, the rate of `[defaults]`.
    shares: Option<Spanned<Vec<u32>>>,
    /// Targets that it measures; all without it.
    targets: Option<Spanned<Vec<String>>>,
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
        Key("limit_ms", |own, _, text| number(&mut own.limit_ms, text, 1..=60_000, "milliseconds")),
        Key("shares", |own, _, text| {
            put(&mut own.shares, list(text, &SHARES), "1 to 100 percent, or several as in `25,50`")
        }),
        Key("fault_ms", |_, size, text| number(&mut size.fault_ms, text, FAULT_MS, "milliseconds")),
        Key("restore_ms", |_, size, text| {
            number(&mut size.restore_ms, text, FAULT_MS, "milliseconds")
        }),
    ];
    const STORES: Stores = Stores::Keys;
    const OPERATIONS: &'static [&'static str] = &OPERATIONS;

    fn fault(own: &WorkloadTables<Self>) -> Option<Fault> {
        let unknown = own.profiles.iter().find(|profile| profile.act().is_none());
        if let Some(Profile { fault, .. }) = unknown {
            let names = Act::fault_names().join(", ");
            let problem = format!("unknown fault `{}` (expected one of: {names})", fault.get_ref());
            return Some((fault.span().start, problem));
        }
        own.profiles.iter().find_map(|profile| {
            let shares = profile.shares.as_ref()?;
            let is_off = |share: &u32| !SHARES.contains(share);
            let is_wrong = shares.get_ref().is_empty() || shares.get_ref().iter().any(is_off);
            is_wrong.then(|| (shares.span().start, "shares must be 1 to 100 percent".into()))
        })
    }

    fn cells(run: &Run<'_, Self>) -> Result<Vec<Cell>, StudyError> {
        check_times(run)?;
        if run.is_set("shares") && !run.chosen().any(|profile| profile.shares.is_some()) {
            return Err(StudyError::Choice(
                "--set shares has no effect: none of the chosen profiles has shares (expected \
                 one that does, such as `--set profile=failover-proof`)"
                    .into(),
            ));
        }
        let mut cells = Vec::new();
        for profile in run.chosen() {
            let measured: Vec<&PlannedTarget> =
                run.targets.iter().filter(|target| profile.measures(target, run)).collect();
            for clients in run.clients(&[]) {
                for share in profile.rates(run) {
                    let schedule = match share {
                        Some(percent) => Schedule::Share(percent * 10),
                        None => Schedule::Steady(run.defaults.rate),
                    };
                    let load = Load::planned(Arrivals::Poisson, schedule, clients);
                    let own = measured.iter().copied();
                    cells.extend(on_targets(own, &load, |target| {
                        Workload::Kv(workload((profile, share), target, run))
                    }));
                }
            }
        }
        Ok(cells)
    }

    fn targets(profile: &Profile) -> Option<&Spanned<Vec<String>>> {
        profile.targets.as_ref()
    }

    fn limit_ns(&self) -> Option<u64> {
        Some(self.limit_ms * 1_000_000)
    }
}

/// Errors: the fault and what follows do not fit into a phase.
fn check_times(run: &Run<'_, Defaults>) -> Result<(), StudyError> {
    let (size, measure_ms) = (&run.size, run.scale.measure_ms);
    let Size { fault_ms, restore_ms } = size;
    let (least, order) = (FAULT_MS.start(), fault_ms < restore_ms && *restore_ms < measure_ms);
    if FAULT_MS.contains(fault_ms) && order {
        return Ok(());
    }
    Err(StudyError::Choice(format!(
        "fault_ms `{fault_ms}`, restore_ms `{restore_ms}` and measure_ms `{measure_ms}` do not fit \
         together (expected {least} <= fault_ms < restore_ms < measure_ms: change them with --set)"
    )))
}

impl Profile {
    /// What interrupts service; `None` if its name is unknown.
    fn act(&self) -> Option<Act> {
        Act::of_fault(self.fault.get_ref())
    }

    /// Its shares in percent; `None` for the rate of `[defaults]`.
    fn rates(&self, run: &Run<'_, Defaults>) -> Vec<Option<u32>> {
        match &self.shares {
            Some(_) if run.is_set("shares") => {
                run.defaults.shares.iter().copied().map(Some).collect()
            }
            Some(shares) => shares.get_ref().iter().copied().map(Some).collect(),
            None => vec![None],
        }
    }

    /// True if it measures a target: one that it lists, or one of the user's. Without a list, all.
    fn measures(&self, target: &PlannedTarget, run: &Run<'_, Defaults>) -> bool {
        let original = target.control_of.as_ref().unwrap_or(&target.name);
        match (&self.targets, run.study.target(original)) {
            (Some(listed), Some(own)) => listed.get_ref().contains(own.name.get_ref()),
            (None, Some(own)) => target.named || !own.on_request,
            (_, None) => true,
        }
    }
}

fn workload(
    (profile, share): (&Profile, Option<u32>),
    target: &PlannedTarget,
    run: &Run<'_, Defaults>,
) -> Kv {
    let Run { defaults, size, scale, study, .. } = run;
    let length_ns = scale.measure_ms * 1_000_000;
    let steady = timed(PHASE, &OPERATIONS, length_ns, scale);
    let peak =
        share.map(|_| timed(PEAK, &OPERATIONS, (length_ns as f64 * PEAK_LENGTH) as u64, scale));
    let act = profile.act();
    let is_restored = act.and_then(Act::fault).is_some_and(|fault| fault.is_restored);
    // Whoever runs a server at a URL restores it.
    let by_command = target.is_at_url();
    let restore = (is_restored && !by_command).then_some((size.restore_ms, Act::Restore));
    let actions = [act.map(|act| (size.fault_ms, act)), restore].into_iter().flatten();
    let actions = actions.map(|(at_ms, what)| Action {
        phase: PHASE.into(),
        at_ns: at_ms * 1_000_000,
        what,
        by_command,
    });
    let name = profile.name.get_ref();
    Kv {
        profile: share.map_or_else(|| name.clone(), |percent| format!("{name}-{percent}")),
        operations: plain(&OPERATIONS),
        keys: defaults.keys,
        distribution: "uniform".into(),
        key_prefix: "key:".into(),
        value_bytes: defaults.value_bytes.to_string(),
        filled_share: 1.0,
        verify_one_in: study.verify_one_in,
        threads: 1,
        phases: peak.into_iter().chain([steady]).collect(),
        actions: actions.collect(),
        ..Kv::default()
    }
}
