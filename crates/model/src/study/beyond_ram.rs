//! The workload `beyond-ram`: keys and values larger than memory, and the cost of a save.

use serde::Deserialize;
use serde::de::IgnoredAny;
use toml::Spanned;

use super::phases::{fault_in_length, plain, timed};
use super::planning::{Keys, Run, WorkloadTables};
use super::set::{Key, VALUE_BYTES, number, put};
use super::targets::Stores;
use super::{Fault, StudyError};
use crate::action::{Act, Action};
use crate::load::Load;
use crate::memory::{MemoryLimit, MemoryPlan};
use crate::plan::{Cell, Kv, Workload};

/// Operations; each has its own phase.
const OPERATIONS: [&str; 2] = ["set", "get"];
/// Key names as `redis-benchmark` generated them in 2013: 21 bytes.
const KEY_PREFIX: &str = "key:rand:";
const KEY_BYTES: u64 = 21;
/// Redis' overhead per key in addition to name and value: an entry of the hash table (24 bytes),
/// its slot (8, or 16 after the table grew), an object (16), and two string headers (8).
const ENTRY_BYTES: u64 = 24 + 12 + 16 + 8;
/// Maximum amount of data, as a multiple of the memory.
const DATA_MAX: f64 = 8.0;
/// Memory of a store that must not swap, as a multiple of its data: a save may copy all of it.
const MEMORY_FACTOR: u64 = 4;
/// Swap, as a multiple of the data.
const SWAP_FACTOR: u64 = 2;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Defaults {
    /// Bytes of a value.
    value_bytes: usize,
    /// Time after which a trial ends with a partial result, seconds.
    deadline_s: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Size {
    /// Memory of the store.
    memory: MemoryLimit,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Profile {
    name: Spanned<String>,
    #[serde(rename = "about")]
    _about: IgnoredAny,
    /// Amounts of data as multiples of the memory; each is a separate workload.
    data: Spanned<Vec<f64>>,
    /// Operations, in the order of their phases.
    operations: Spanned<Vec<String>>,
    /// Length of a phase in units of the scale's `measure_ms`.
    length: Spanned<f64>,
    /// Requests that a client sends at once.
    pipeline: u32,
    /// True if memory is limited and the remaining data goes to swap.
    #[serde(default)]
    swap: bool,
    /// When the store saves its data, as a share of the first phase.
    save_at: Option<Spanned<f64>>,
}

impl Keys for Defaults {
    type Size = Size;
    type Profile = Profile;
    const SET: &'static [Key<Self, Size>] = &[
        Key("value_bytes", |own, _, text| number(&mut own.value_bytes, text, VALUE_BYTES, "bytes")),
        Key("deadline_s", |own, _, text| number(&mut own.deadline_s, text, 1..=86_400, "seconds")),
        Key("memory", |_, size, text| {
            put(&mut size.memory, MemoryLimit::parse(text), MemoryLimit::EXPECTED)
        }),
    ];
    const STORES: Stores = Stores::Keys;
    const OPERATIONS: &'static [&'static str] = &OPERATIONS;

    fn fault(own: &WorkloadTables<Self>) -> Option<Fault> {
        own.profiles.iter().find_map(fault_in_profile)
    }

    fn cells(run: &Run<'_, Self>) -> Result<Vec<Cell>, StudyError> {
        let mut cells = Vec::new();
        for profile in run.chosen() {
            for clients in run.clients(&[]) {
                let pipeline = profile.pipeline;
                let load = Load::closed(clients).pipelined(pipeline);
                for data in profile.data.get_ref() {
                    let kv = workload(profile, *data, run);
                    cells.extend(run.on_each_target(&load, |_| Workload::Kv(kv.clone())));
                }
            }
        }
        Ok(cells)
    }
}

fn fault_in_profile(profile: &Profile) -> Option<Fault> {
    let Profile { data, operations, length, save_at, .. } = profile;
    let is_share = |share: &f64| (0.0..1.0).contains(share);
    let is_amount = |data: &f64| *data > 0.0 && *data <= DATA_MAX;
    let is_known = |name: &String| OPERATIONS.contains(&name.as_str());
    if data.get_ref().is_empty() || !data.get_ref().iter().all(is_amount) {
        return Some((
            data.span().start,
            format!("data must be numbers above 0, up to {DATA_MAX}"),
        ));
    }
    if operations.get_ref().is_empty() || !operations.get_ref().iter().all(is_known) {
        return Some((operations.span().start, "operations must be `set` or `get`".into()));
    }
    if let Some(fault) = fault_in_length(length) {
        return Some(fault);
    }
    let save_at = save_at.as_ref().filter(|at| !is_share(at.get_ref()));
    save_at.map(|at| (at.span().start, "save_at must be a share from 0 to below 1".into()))
}

/// The workload of a profile; `data` is a multiple of the memory.
fn workload(profile: &Profile, data: f64, run: &Run<'_, Defaults>) -> Kv {
    let Run { defaults, size, scale, study, .. } = run;
    let memory_bytes = size.memory.bytes();
    let data_bytes = (memory_bytes as f64 * data) as u64;
    let length_ns = ((scale.measure_ms as f64 * profile.length.get_ref() * 1e6) as u64).max(1);
    let operations = profile.operations.get_ref();
    let phase = |name: &String| timed(name, &[name], length_ns, scale);
    let save = |at: &Spanned<f64>| Action {
        phase: operations.first().cloned().unwrap_or_default(),
        at_ns: (length_ns as f64 * at.get_ref()) as u64,
        what: Act::Save,
    };
    let memory = if profile.swap {
        MemoryPlan { limit_bytes: memory_bytes, swap_bytes: data_bytes * SWAP_FACTOR }
    } else {
        MemoryPlan { limit_bytes: data_bytes.max(memory_bytes) * MEMORY_FACTOR, swap_bytes: 0 }
    };
    let name = profile.name.get_ref();
    Kv {
        profile: if profile.data.get_ref().len() > 1 {
            format!("{name}-{data}")
        } else {
            name.clone()
        },
        operations: plain(&OPERATIONS),
        keys: (data_bytes / redis_bytes(defaults.value_bytes as u64)).max(1),
        distribution: "uniform".into(),
        key_prefix: KEY_PREFIX.into(),
        value_bytes: defaults.value_bytes.to_string(),
        filled_share: 1.0,
        verify_one_in: study.verify_one_in,
        threads: 1,
        phases: operations.iter().map(phase).collect(),
        actions: profile.save_at.iter().map(save).collect(),
        deadline_ns: defaults.deadline_s * 1_000_000_000,
        memory: Some(memory),
        ..Kv::default()
    }
}

/// Approximate memory that Redis uses for a key and its value; jemalloc rounds each string up.
fn redis_bytes(value_bytes: u64) -> u64 {
    ENTRY_BYTES + size_class(KEY_BYTES + 2) + size_class(value_bytes + 6)
}

/// jemalloc's allocation for a size: multiples of 16 up to 128, then four sizes per doubling
/// (jemalloc(3), size classes).
fn size_class(bytes: u64) -> u64 {
    let spacing = if bytes <= 128 { 16 } else { 1 << ((bytes - 1).ilog2() - 2) };
    bytes.next_multiple_of(spacing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn string_sizes_are_rounded_up_to_jemalloc_classes() {
        let classes = [23, 64, 128, 129, 1006, 1024, 1025, 4000].map(size_class);
        assert_eq!(classes, [32, 64, 128, 160, 1024, 1024, 1280, 4096]);
    }
}
