//! Valid ranges of a plan's numbers. A plan made by this program always passes. A plan from a
//! record is untrusted, and its lists are iterated when the record is judged or resumed.

use crate::arrivals::STAGE_RATE_MAX;
use crate::cache_aside::ROW_BYTES_MIN;
use crate::load::{Load, Schedule, Shares};
use crate::plan::{Cell, Phase, Plan, Stop, Workload};
use crate::search::{LIMITS_MAX, Slo};
use crate::stages::Stage;

/// Maximum lengths of a plan's lists.
const TARGETS_MAX: usize = 256;
const CELLS_MAX: usize = 4_096;
const PHASES_MAX: usize = 64;
const STAGES_MAX: usize = 10_000;
const CLAIMS_MAX: usize = 1_000;
const ROWS_MAX: usize = 1_000;
/// A hundred days, nanoseconds.
const TIME_NS_MAX: u64 = 100 * 86_400 * 1_000_000_000;
/// Blocks, or rounds of a confirmation.
const BLOCKS_MAX: u64 = 10_000;
/// More than a process can have file descriptors.
const CLIENTS_MAX: u64 = 1 << 20;
/// Numbers of keys, records, sessions, tags and operations.
const COUNT_MAX: u64 = 1 << 50;

impl Plan {
    /// Checks that every number is in its valid range. Errors: the key as in `header.json`, its
    /// value, and what was expected.
    pub fn check(&self) -> Result<(), String> {
        let effort = &self.effort;
        within("plan.targets", self.targets.len(), 0, TARGETS_MAX as u64)?;
        within("plan.cells", self.cells.len(), 0, CELLS_MAX as u64)?;
        within("plan.tables", self.tables.len(), 0, ROWS_MAX as u64)?;
        within("plan.claims", self.claims.len(), 0, CLAIMS_MAX as u64)?;
        within("plan.profiles", self.profiles.len(), 0, ROWS_MAX as u64)?;
        within("plan.effort.blocks_min", effort.blocks_min, 0, BLOCKS_MAX)?;
        within("plan.effort.blocks_max", effort.blocks_max, 0, BLOCKS_MAX)?;
        within("plan.timeout_ns", self.timeout_ns, 1, TIME_NS_MAX)?;
        within("plan.stall_ns", self.stall_ns, 0, TIME_NS_MAX)?;
        if !(0.0..=10.0).contains(&self.equivalence_zone) {
            let zone = self.equivalence_zone;
            return Err(format!("`plan.equivalence_zone` is `{zone}` (expected 0 to 10)"));
        }
        if let Some(advice) = &self.advice {
            within("plan.advice.rows", advice.rows.len(), 0, ROWS_MAX as u64)?;
            within("plan.advice.sizes", advice.sizes.len(), 0, ROWS_MAX as u64)?;
        }
        self.check_limits()?;
        self.cells.iter().enumerate().try_for_each(|(i, cell)| {
            let named = |e: String| e.replacen("cell.", &format!("plan.cells[{i}]."), 1);
            check(cell).map_err(named).and_then(|()| self.check_actions(cell))
        })
    }

    /// Checks that no limit exceeds the timeout, after which requests fail anyway.
    fn check_limits(&self) -> Result<(), String> {
        let searches = self.cells.iter().filter_map(|cell| cell.load.search());
        let of_searches = searches.flat_map(|search| &search.slos).filter_map(Slo::time_ns);
        let mut limits = of_searches.chain(self.limit_ns);
        let Some(limit_ns) = limits.find(|limit_ns| *limit_ns > self.timeout_ns) else {
            return Ok(());
        };
        let [limit, timeout] = [limit_ns, self.timeout_ns].map(|ns| stats::format_ns(ns as f64));
        Err(format!(
            "the limit `{limit}` exceeds the timeout of {timeout}, after which a request fails \
             (expected a lower limit, or a longer --timeout)"
        ))
    }

    /// Checks that actions and memory limits apply only to private servers, and that the product
    /// supports the actions.
    fn check_actions(&self, cell: &Cell) -> Result<(), String> {
        let (actions, memory) = (cell.workload.actions(), cell.workload.memory());
        let Some(target) = self.target(&cell.target) else { return Ok(()) };
        let name = &target.name;
        let own = actions.iter().filter(|action| !action.by_command);
        if !target.is_at_url() && own.clone().count() < actions.len() {
            return Err(format!(
                "target `{name}` is a private server, with an action by a command of the user \
                 (expected an action of cachedyno's own)"
            ));
        }
        if target.is_at_url() && (own.clone().count() > 0 || memory.is_some()) {
            return Err(format!(
                "cachedyno does not limit, save or kill the server of target `{name}`, which it \
                 did not start (expected a private server: leave out its URL; or a run without \
                 these actions)"
            ));
        }
        let Some(action) = own.clone().next().filter(|_| !target.product.supports_actions()) else {
            return Ok(());
        };
        let (product, cannot) = (target.product.name(), action.what.cannot());
        Err(format!("target `{name}` is {product}, which {cannot} (expected a redis target)"))
    }
}

fn check(cell: &Cell) -> Result<(), String> {
    within("cell.workload.phases", cell.workload.phases().len(), 0, PHASES_MAX as u64)?;
    cell.workload.phases().iter().try_for_each(phase)?;
    match &cell.workload {
        Workload::Sessions(sessions) => {
            within("cell.workload.filled", sessions.filled, 0, COUNT_MAX)?;
            within("cell.workload.value_bytes", sessions.value_bytes, 0, 1 << 30)?;
            within("cell.workload.ttl_s", sessions.ttl_s, 0, COUNT_MAX)?;
            within("cell.workload.think_ns", sessions.think_ns, 0, TIME_NS_MAX)?;
        }
        Workload::Kv(kv) => {
            within("cell.workload.operations", kv.operations.len(), 0, ROWS_MAX as u64)?;
            within("cell.workload.keys", kv.keys, 0, COUNT_MAX)?;
            within("cell.workload.ttl_s", kv.ttl_s, 0, COUNT_MAX)?;
            within("cell.workload.threads", kv.threads, 0, 1 << 16)?;
            within("cell.workload.think_ns", kv.think_ns, 0, TIME_NS_MAX)?;
            within("cell.workload.actions", kv.actions.len(), 0, ROWS_MAX as u64)?;
            for action in &kv.actions {
                within("cell.workload.actions.at_ns", action.at_ns, 0, TIME_NS_MAX)?;
            }
            within("cell.workload.deadline_ns", kv.deadline_ns, 0, TIME_NS_MAX)?;
        }
        Workload::CacheAside(aside) => {
            let least = ROW_BYTES_MIN as u64;
            within("cell.workload.rows", aside.rows, 1, COUNT_MAX)?;
            within("cell.workload.row_bytes", aside.row_bytes, least, 1 << 16)?;
            within("cell.workload.ttl_s", aside.ttl_s, 1, COUNT_MAX)?;
        }
        Workload::AppCache(cache) => {
            let (tags, bytes) = (cache.tags_of_record, cache.record_bytes);
            within("cell.workload.keys", cache.keys, 0, COUNT_MAX)?;
            within("cell.workload.tags", cache.tags, 0, COUNT_MAX)?;
            within("cell.workload.tags_of_record[1]", tags.1, 0, 1 << 20)?;
            within("cell.workload.tags_of_record[0]", tags.0, 0, tags.1)?;
            within("cell.workload.record_bytes[1]", bytes.1, 0, 1 << 30)?;
            within("cell.workload.record_bytes[0]", bytes.0, 0, bytes.1)?;
        }
    }
    load(&cell.load)?;
    let expected = |expected| format!("`cell.load` is `{}` (expected {expected})", cell.load);
    cell.workload.supports(&cell.load).map_err(expected)
}

fn phase(phase: &Phase) -> Result<(), String> {
    within("cell.workload.phases.mix", phase.mix.len(), 0, ROWS_MAX as u64)?;
    within("cell.workload.phases.warmup_ns", phase.warmup_ns, 0, TIME_NS_MAX)?;
    if let Some(control) = &phase.control {
        let sequence = control.sequence.len();
        within("cell.workload.phases.control.sequence", sequence, 0, ROWS_MAX as u64)?;
        within("cell.workload.phases.control.permille", control.permille, 1, 10_000)?;
        within("cell.workload.phases.control.keys", control.keys, 1, COUNT_MAX)?;
    }
    match phase.stop {
        Stop::AfterNs(ns) => within("cell.workload.phases.stop.after_ns", ns, 0, TIME_NS_MAX),
        Stop::Count(count) => within("cell.workload.phases.stop.count", count, 0, COUNT_MAX),
    }
}

fn load(load: &Load) -> Result<(), String> {
    within("cell.load.clients", load.clients, 0, CLIENTS_MAX)?;
    within("cell.load.pipeline", load.pipeline, 0, CLIENTS_MAX)?;
    let planned = load.is_planned();
    let clients = u64::from(load.clients);
    let (unit, least, most) =
        if planned { ("rate", 1, STAGE_RATE_MAX * 1_000) } else { ("clients", clients, clients) };
    let counted = match &load.schedule {
        Schedule::Steady(level) => {
            within(&format!("cell.load.schedule.steady ({unit})"), *level, least, most)?;
            0
        }
        Schedule::Stages(stages) => {
            let highest = Stage::highest(stages);
            within(&format!("cell.load.schedule.stages ({unit})"), highest, least, most)?;
            stages.len()
        }
        Schedule::Shares(_) | Schedule::Share(_) | Schedule::Search(_) if !planned => {
            return Err("`cell.load.arrivals` is `closed` (expected `poisson` or `constant` \
                        arrivals: shares of a peak and searches need planned rates)"
                .into());
        }
        Schedule::Share(permille) => {
            within("cell.load.schedule.share", *permille, 1, STAGE_RATE_MAX)?;
            0
        }
        Schedule::Shares(Shares { permille, stage_ns, rest_ns }) => {
            let least = permille.iter().min().copied().unwrap_or(0);
            let most = permille.iter().max().copied().unwrap_or(0);
            within("cell.load.schedule.shares.permille", least, 1, STAGE_RATE_MAX)?;
            within("cell.load.schedule.shares.permille", most, 1, STAGE_RATE_MAX)?;
            within("cell.load.schedule.shares.rest_ns", *rest_ns, 0, TIME_NS_MAX)?;
            within("cell.load.schedule.shares.stage_ns", *stage_ns, 1, TIME_NS_MAX)?;
            permille.len()
        }
        Schedule::Search(search) => {
            within("cell.load.schedule.search.slos", search.slos.len(), 1, LIMITS_MAX as u64)?;
            within("cell.load.schedule.search.probe_ns", search.probe_ns, 1, TIME_NS_MAX)?;
            within("cell.load.schedule.search.rounds", search.rounds, 1, BLOCKS_MAX)?;
            0
        }
    };
    within("cell.load.stages", counted, 0, STAGES_MAX as u64)?;
    let total_ns = load.stages_ns();
    within("cell.load.stages (total length in ns)", total_ns, 0, TIME_NS_MAX)
}

fn within<N: TryInto<u64> + Copy + std::fmt::Display>(
    key: &str,
    value: N,
    least: u64,
    most: u64,
) -> Result<(), String> {
    if value.try_into().is_ok_and(|value| (least..=most).contains(&value)) {
        return Ok(());
    }
    Err(format!("`{key}` is out of range: `{value}` (expected {least} to {most})"))
}
