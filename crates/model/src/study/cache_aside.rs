//! The workload `cache-aside`: an application that reads rows of a database through a cache.

use serde::Deserialize;
use serde::de::IgnoredAny;
use toml::Spanned;

use super::phases::{fault_in_length, timed};
use super::planning::{Keys, Run, WorkloadTables};
use super::ramp::RAMP;
use super::set::{Key, number};
use super::targets::Stores;
use super::{Fault, StudyError};
use crate::arrivals::Arrivals;
use crate::cache_aside::{CacheAside, ROW_BYTES_MIN};
use crate::load::{Load, PEAK, Schedule, Shares};
use crate::plan::{Cell, Phase, Workload};

const READ: &str = "read";
/// Most stages of a load, and the highest share of the peak in thousandths.
const STAGES_MAX: usize = 100;
const PERMILLE_MAX: u32 = 100_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Defaults {
    /// Bytes of a row as it is cached.
    row_bytes: usize,
    /// Exponent of Zipf's law, by which reads choose rows; 0 for all rows alike.
    zipf: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Size {
    /// Rows in the database.
    rows: u64,
    /// Lifetime of a cached row, seconds.
    ttl_s: u64,
    /// Length of each stage of a load that rises, milliseconds.
    stage_ms: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Profile {
    name: Spanned<String>,
    #[serde(rename = "about")]
    _about: IgnoredAny,
    /// Rates of the stages, ascending, in thousandths of the rate that the database alone reaches
    /// in phase `peak`. Without it, the load is closed.
    permille: Option<Spanned<Vec<u32>>>,
    /// Length of a closed load in lifetimes of a cached row.
    lifetimes: Option<Spanned<f64>>,
    /// True if all clients read the same row.
    #[serde(default)]
    one_row: bool,
    /// True if a reader that misses takes a lock before its query.
    #[serde(default)]
    lock: bool,
}

impl Keys for Defaults {
    type Size = Size;
    type Profile = Profile;
    const SET: &'static [Key<Self, Size>] = &[
        Key("rows", |_, size, text| number(&mut size.rows, text, 1..=100_000_000, "")),
        Key("row_bytes", |own, _, text| {
            number(&mut own.row_bytes, text, ROW_BYTES_MIN..=1 << 16, "bytes")
        }),
        Key("zipf", |own, _, text| number(&mut own.zipf, text, 0.0..=10.0, "")),
        Key("ttl_s", |_, size, text| number(&mut size.ttl_s, text, 1..=2_592_000, "seconds")),
        Key("stage_ms", |_, size, text| {
            number(&mut size.stage_ms, text, 100..=3_600_000, "milliseconds")
        }),
    ];
    const STORES: Stores = Stores::Databases;
    const OPERATIONS: &'static [&'static str] = &[READ];
    const IS_RAISED: bool = true;

    fn fault(own: &WorkloadTables<Self>) -> Option<Fault> {
        own.profiles.iter().find_map(|profile| {
            let (name, at) = (profile.name.get_ref(), profile.name.span().start);
            let permille = match (&profile.permille, &profile.lifetimes) {
                (Some(permille), None) => permille,
                (None, Some(lifetimes)) => return fault_in_length(lifetimes),
                _ => {
                    let expected = "either `permille` or `lifetimes`";
                    return Some((at, format!("profile `{name}` needs {expected}")));
                }
            };
            let all = permille.get_ref();
            let is_rising = all.is_sorted_by(|a, b| a < b);
            let are_shares = all.iter().all(|share| (1..=PERMILLE_MAX).contains(share));
            let fits = is_rising && are_shares && (1..=STAGES_MAX).contains(&all.len());
            let expected = format!("1 to {STAGES_MAX} ascending numbers from 1 to {PERMILLE_MAX}");
            (!fits).then(|| (permille.span().start, format!("permille must be {expected}")))
        })
    }

    fn cells(run: &Run<'_, Self>) -> Result<Vec<Cell>, StudyError> {
        let mut cells = Vec::new();
        for profile in run.chosen() {
            for load in run.clients(&[]).into_iter().map(|clients| load(profile, clients, run)) {
                let workload = Workload::CacheAside(workload(profile, &load, run));
                cells.extend(run.on_each_target(&load, |_| workload.clone()));
            }
        }
        Ok(cells)
    }
}

fn load(profile: &Profile, clients: u32, run: &Run<'_, Defaults>) -> Load {
    let Some(permille) = &profile.permille else { return Load::closed(clients) };
    // A backlog is served before the next stage starts, so no pauses are needed.
    let (permille, rest_ns) = (permille.get_ref().clone(), 0);
    let shares = Shares { permille, stage_ns: run.size.stage_ms * 1_000_000, rest_ns };
    Load::planned(Arrivals::Poisson, Schedule::Shares(shares), clients)
}

fn workload(profile: &Profile, load: &Load, run: &Run<'_, Defaults>) -> CacheAside {
    let Run { defaults, size, scale, study, .. } = run;
    let phase = |name: &str, length_ns| timed(name, &[READ], length_ns, scale);
    let phases = match &profile.lifetimes {
        None => {
            let peak = phase(PEAK, scale.measure_ms * 1_000_000);
            vec![peak, phase(RAMP, load.stages_ns())]
        }
        Some(lifetimes) => {
            // Rows expire from the first lifetime on.
            let lifetime_ns = size.ttl_s as f64 * 1e9;
            let length_ns = (lifetime_ns * lifetimes.get_ref()) as u64;
            let read = phase(READ, length_ns.max(1));
            vec![Phase { warmup_ns: read.warmup_ns.max(lifetime_ns as u64), ..read }]
        }
    };
    CacheAside {
        profile: profile.name.get_ref().clone(),
        rows: if profile.one_row { 1 } else { size.rows },
        row_bytes: defaults.row_bytes,
        zipf: defaults.zipf,
        ttl_s: size.ttl_s,
        lock: profile.lock,
        verify_one_in: study.verify_one_in,
        phases,
    }
}
