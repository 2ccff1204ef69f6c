//! Memory of keys, and of what a save copies, from the facts of a record.

use model::{BackgroundWrite, Cell, Fact, PlannedTarget, StoreCounters, Trial, TrialEvent};

use super::deployment::Deployment;
use super::origin::Origin;
use super::record::{Reader, kv_of, value_bytes};
use crate::blocks::median;
use crate::view::{FactView, Value};

/// Operations of a workload of keys and values that change data.
const WRITES: [&str; 3] = ["set", "insert", "rmw"];

/// Memory of keys on a target.
#[derive(Clone, Debug)]
pub(super) struct MeasuredMemory {
    pub(super) origin: Origin,
    pub(super) deployment: Deployment,
    pub(super) value_bytes: u64,
    pub(super) keys: u64,
    /// Its ends are the lowest and the highest block.
    pub(super) bytes_per_key: Value,
    /// `None` without a save, or if its figures are incomplete.
    pub(super) saving: Option<Saving>,
}

/// What a save or a rewrite copied.
#[derive(Clone, Debug)]
pub(super) struct Saving {
    pub(super) write: BackgroundWrite,
    /// The most copied in a block, as a share of the memory of the keys.
    pub(super) copied_share: f64,
    /// The fewest writes per second during the save of a block.
    pub(super) writes_per_s: f64,
    /// The highest ratio of resident to used memory in a block.
    pub(super) resident_ratio: f64,
    pub(super) blocks: usize,
}

impl MeasuredMemory {
    /// Memory of a key in the highest block, bytes.
    pub(super) fn most(&self) -> f64 {
        self.bytes_per_key.hi.unwrap_or(self.bytes_per_key.center)
    }
}

/// The memory of keys in each cell of a record.
pub(super) fn measured(reader: &Reader<'_>) -> Vec<MeasuredMemory> {
    let facts = &reader.view.happened.facts;
    let cells = reader.recorded.header.plan.cells.iter();
    let of_cell = |cell: &Cell| {
        let kv = kv_of(cell)?;
        let deployment = reader.deployment(cell)?;
        let fact = |name: &str| {
            let own = |f: &&FactView| {
                let place = (&*f.target, &*f.workload, &f.load);
                f.name == name && place == (&*cell.target, cell.workload.profile(), &cell.load)
            };
            facts.iter().find(own)
        };
        let of_blocks = &fact(Fact::BYTES_PER_KEY)?.by_block;
        let least = of_blocks.values().copied().reduce(f64::min)?;
        let most = of_blocks.values().copied().reduce(f64::max)?;
        let mean = of_blocks.values().sum::<f64>() / of_blocks.len() as f64;
        let is_plain = kv.fill().is_none() && kv.filled_share >= 1.0 && kv.keys > 1;
        let is_alone = deployment.replicas == 0
            && !reader.recorded.header.plan.target(&cell.target).is_some_and(PlannedTarget::evicts);
        Some(MeasuredMemory {
            origin: reader.origin(cell),
            deployment,
            value_bytes: value_bytes(kv).filter(|_| is_plain && is_alone)?,
            keys: kv.keys,
            bytes_per_key: match of_blocks.len() {
                1 => Value::new(mean, None, None),
                _ => Value::new(mean, Some(least), Some(most)),
            },
            saving: BackgroundWrite::ALL.into_iter().find_map(|write| {
                let share = fact(&format!("{}_copied_share", write.name()))?;
                saving(reader, cell, write, share.by_block.values().copied().reduce(f64::max)?)
            }),
        })
    };
    cells.filter_map(of_cell).collect()
}

fn saving(
    reader: &Reader<'_>,
    cell: &Cell,
    write: BackgroundWrite,
    copied_share: f64,
) -> Option<Saving> {
    let trials = reader.recorded.latest(&cell.id);
    let writes = trials.iter().filter_map(|trial| writes_during(cell, trial, write));
    let resident = trials.iter().filter_map(|trial| {
        let counters = reader.recorded.samples_of(trial).iter().filter_map(|s| s.store.as_ref());
        let idle = |c: &&StoreCounters| c.saving == Some(0) && c.rewriting.unwrap_or(0) == 0;
        let full = |c: &&StoreCounters| c.keys >= kv_of(cell).map(|kv| kv.keys);
        median(counters.filter(idle).filter(full).filter_map(|c| c.fragmentation))
    });
    Some(Saving {
        write,
        copied_share,
        writes_per_s: writes.reduce(f64::min)?,
        resident_ratio: resident.reduce(f64::max)?.max(1.0),
        blocks: trials.len(),
    })
}

/// Writes per second while a store wrote its data in the background; `None` if it did not begin and
/// end within a phase.
fn writes_during(cell: &Cell, trial: &Trial, write: BackgroundWrite) -> Option<f64> {
    let [begins, ends] = write.events();
    let began = trial.events.iter().find(|event| event.kind == begins)?;
    let is_end = |e: &&TrialEvent| e.kind == ends && e.at_ns > began.at_ns;
    let ended = trial.events.iter().find(is_end)?;
    let series = trial.series.iter().find(|series| series.covers(began.at_ns))?;
    let interval_ns = series.interval_ns.max(1);
    let at = |ns: u64| ((ns - series.begun_ns) / interval_ns) as usize;
    let last = at(ended.at_ns).min(series.done_per_interval.len().checked_sub(1)?);
    let span = series.done_per_interval.get(at(began.at_ns)..=last)?;
    let phase = cell.workload.phases().iter().find(|phase| phase.name == series.phase)?;
    let all: f64 = phase.mix.values().sum();
    let of_writes: f64 = WRITES.iter().filter_map(|name| phase.mix.get(*name)).sum();
    let seconds = span.len() as f64 * interval_ns as f64 / 1e9;
    let done: u64 = span.iter().sum();
    (all > 0.0 && of_writes > 0.0).then(|| done as f64 / seconds * of_writes / all)
}
