//! What the records show about rates and memory, one measurement each with its origin.

use model::{Cell, Kv, Load, Slo};

use super::deployment::Deployment;
use super::measured_memory::{self, MeasuredMemory};
use super::origin::{LeftOut, Origin};
use super::question::{Mix, is_implied};
use super::record::{Reader, kv_of, mix, value_bytes};
use super::survival::Survival;
use crate::recorded::Recorded;
use crate::view::{RampOutcome, Row, SearchOutcome, Status, Validity, Value, View};

/// Percentiles that rows have, in thousandths of a percent, with their names.
const PERCENTILES: [(u32, &str); 6] = [
    (50_000, "p50"),
    (90_000, "p90"),
    (95_000, "p95"),
    (99_000, "p99"),
    (99_900, "p999"),
    (99_990, "p9999"),
];

/// Millionths of a percent per 1.
const MILLIONTHS: f64 = 1e8;

/// What several records show.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    pub(super) rates: Vec<MeasuredRate>,
    pub(super) scalings: Vec<Scaling>,
    pub(super) memories: Vec<MeasuredMemory>,
    pub(super) survivals: Vec<Survival>,
    /// Names of all targets with key-value loads, sorted.
    pub(super) targets: Vec<String>,
    /// Number of records that were read.
    pub(super) records: u32,
    pub(super) left_out: Vec<LeftOut>,
}

/// How far a measurement went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// The highest rate within the limits.
    Highest,
    /// A rate within the limits; why no higher one was found.
    AtLeast(&'static str),
}

/// A rate that a target answered within limits.
#[derive(Clone, Debug)]
pub(super) struct MeasuredRate {
    pub(super) origin: Origin,
    pub(super) deployment: Deployment,
    pub(super) value_bytes: u64,
    pub(super) keys: u64,
    pub(super) mix: Mix,
    pub(super) load: Load,
    /// Limits that it kept.
    pub(super) kept: Vec<Slo>,
    /// Requests per second.
    pub(super) rate: Value,
    pub(super) reach: Reach,
    /// CPUs that its servers used at that rate; `None` if it is unknown.
    pub(super) server_cpus: Option<f64>,
    /// The `maxmemory` of each server, bytes; `None` without one, and for private memcached, whose
    /// limit a run fits to its data.
    pub(super) memory_limit_bytes: Option<u64>,
}

/// Rates of two targets that differ only by their number of servers, as a ratio.
#[derive(Clone, Debug)]
pub(super) struct Scaling {
    pub(super) origin: Origin,
    pub(super) from: Deployment,
    pub(super) to: Deployment,
    pub(super) value_bytes: u64,
    pub(super) mix: Mix,
    pub(super) load: Load,
    /// The rate of `to` divided by that of `from`.
    pub(super) ratio: Value,
}

impl MeasuredRate {
    /// True if a limit was kept: the same or a stricter one is among those that were.
    pub(super) fn keeps(&self, asked: &Slo) -> bool {
        self.kept.iter().any(|own| is_implied(asked, own))
    }

    /// Lower end of the interval, requests per second; `None` without an interval.
    pub(super) fn lowest(&self) -> Option<f64> {
        self.rate.interval().map(|(lo, _)| lo)
    }
}

impl Evidence {
    /// What one record shows; `when` is its start in text form. A record that is not VALID, or that
    /// has no complete run, is left out with the reason.
    pub fn of(recorded: &Recorded, view: &View, when: &str) -> Self {
        let run = &recorded.header.run;
        let mut found = Self { records: 1, ..Self::default() };
        let kv_cells = || recorded.header.plan.cells.iter().filter(|c| kv_of(c).is_some());
        found.targets = kv_cells().map(|cell| cell.target.clone()).collect();
        if found.targets.is_empty() {
            return found;
        }
        if let Some(reason) = unusable(view) {
            found.left_out.push(LeftOut { run: run.clone(), cell: None, reason });
            return found;
        }
        let reader = Reader { recorded, view, when };
        for cell in kv_cells() {
            reader.rates(cell, &mut found);
        }
        reader.scalings(&mut found);
        found.memories = measured_memory::measured(&reader);
        found.survivals = reader.survivals();
        found
    }

    /// Adds what another record shows.
    pub fn add(&mut self, other: Self) {
        self.rates.extend(other.rates);
        self.scalings.extend(other.scalings);
        self.memories.extend(other.memories);
        self.survivals.extend(other.survivals);
        self.targets.extend(other.targets);
        self.targets.sort();
        self.targets.dedup();
        self.records += other.records;
        self.left_out.extend(other.left_out);
    }

    /// Notes a record that cannot be read: its directory, and why.
    pub fn unreadable(&mut self, record: impl Into<String>, reason: impl Into<String>) {
        self.left_out.push(LeftOut { run: record.into(), cell: None, reason: reason.into() });
    }

    /// Names of all targets with key-value loads in the records, sorted.
    pub fn targets(&self) -> &[String] {
        &self.targets
    }
}

/// Why no figure of a run can be used; `None` if they can.
fn unusable(view: &View) -> Option<String> {
    let first = |validity: Validity| {
        let reason = view.reasons.first().map_or_else(String::new, |why| format!(": {why}"));
        format!("{}{reason}", validity.heading())
    };
    let complete = || format!(" (complete it: `{}`)", view.course.resume);
    match (view.validity, view.course.status) {
        _ if !view.course.changed.is_empty() => {
            Some(format!("changed after it was sealed: {}", view.course.changed.join(", ")))
        }
        (_, Status::Running) => Some("still running".into()),
        (_, Status::Interrupted) => Some(format!("interrupted{}", complete())),
        (_, Status::Unsealed) => Some(format!("killed before its end{}", complete())),
        (validity @ (Validity::Invalid | Validity::NotSteady), _) => Some(first(validity)),
        (Validity::Valid | Validity::Unreplicated, Status::Complete) => None,
    }
}

impl Reader<'_> {
    /// Adds the rates of a cell.
    fn rates(&self, cell: &Cell, found: &mut Evidence) {
        let Some(kv) = kv_of(cell) else { return };
        let (Some(deployment), true) = (self.deployment(cell), cell.load.is_planned()) else {
            return;
        };
        let (value_bytes, reason) = match why_not(kv, cell) {
            Ok(value_bytes) => (value_bytes, None),
            Err(reason) => (0, Some(reason)),
        };
        for of_phase in self.of_phases(cell) {
            let without = "one block, so its rate has no interval (repeat it with more)";
            let reason = reason.or(of_phase.rate.interval().is_none().then_some(without));
            if let Some(reason) = reason {
                found.left_out.push(LeftOut {
                    run: self.recorded.header.run.clone(),
                    cell: Some(cell.id.clone()),
                    reason: reason.into(),
                });
                return;
            }
            let Some(mix) = mix(kv, &of_phase.phase) else { continue };
            found.rates.push(MeasuredRate {
                origin: self.origin(cell),
                deployment: deployment.clone(),
                value_bytes,
                keys: kv.keys,
                mix,
                load: cell.load.clone(),
                kept: of_phase.kept,
                rate: of_phase.rate,
                reach: of_phase.reach,
                server_cpus: of_phase.server_cpus,
                memory_limit_bytes: self.memory_limit(cell, &deployment),
            });
        }
    }

    /// Limit of the memory of one server: by its settings, or at a URL as the servers report it.
    fn memory_limit(&self, cell: &Cell, deployment: &Deployment) -> Option<u64> {
        if deployment.family.address.is_none() {
            let own = deployment.family.settings.get("maxmemory")?;
            return stats::parse_bytes(own).ok().filter(|bytes| *bytes > 0);
        }
        let trials = self.recorded.latest(&cell.id);
        let samples = trials.iter().flat_map(|trial| self.recorded.samples_of(trial));
        let limits = samples.filter_map(|sample| sample.store.as_ref()?.limit_bytes);
        Some(limits.max()? / u64::from(deployment.servers()))
    }

    /// The rates of a cell's phases within limits: of a search, a ramp, or planned ones that were
    /// answered.
    fn of_phases(&self, cell: &Cell) -> Vec<OfPhase> {
        let is_own = |target: &str, workload: &str, load: &Load| {
            (target, workload, load) == (&*cell.target, cell.workload.profile(), &cell.load)
        };
        let searches = self.view.searches.iter().filter_map(|search| {
            let slos = &cell.load.search()?.slos;
            let is_found = search.outcome == SearchOutcome::Found;
            let reach = match search.lower_bound_reason() {
                _ if is_found => Reach::Highest,
                reason => Reach::AtLeast(reason?),
            };
            let own = is_own(&search.target, &search.workload, &search.load);
            let found = || OfPhase::new(&search.operation, slos.clone(), search.answer?, reach);
            let server_cpus = search.costs.get("server_cpus").map(|cpus| cpus.center);
            own.then(found)?.map(|of| OfPhase { server_cpus, ..of })
        });
        let ramps = self.view.ramps.iter().filter_map(|ramp| {
            let reach = match ramp.outcome {
                RampOutcome::Found => Reach::Highest,
                RampOutcome::NeverMissed => Reach::AtLeast("it was never saturated"),
                RampOutcome::Generator => Reach::AtLeast("the generator was the limit"),
                RampOutcome::NeverHeld | RampOutcome::Broken => return None,
            };
            let kept = Slo::Percentile { thousandths: 99_000, limit_ns: ramp.limit_ns? };
            let rate = *ramp.metrics.get("within_limit_per_s")?;
            let own = is_own(&ramp.target, &ramp.workload, &ramp.load);
            own.then(|| OfPhase::new(&ramp.operation, vec![kept], rate, reach))?
        });
        let phases = cell.workload.phases();
        let is_whole = |row: &&Row| {
            is_own(&row.target, &row.workload, &row.load)
                && phases.iter().any(|p| p.name == row.operation && p.control.is_none())
        };
        let rows = self.view.cells.iter().filter(is_whole).filter_map(|row| {
            let reach = Reach::AtLeast("no higher rate was offered");
            let rate = offered(row.load.steady_per_s(), *row.metrics.get("rate_per_s")?);
            OfPhase::new(&row.operation, kept_by(row), rate, reach)
        });
        searches.chain(ramps).chain(rows).collect()
    }

    /// Adds the ratios of rates of targets that differ only by their number of servers.
    fn scalings(&self, found: &mut Evidence) {
        for comparison in self.view.comparisons.iter().filter(|c| c.metric == "rate_per_s") {
            let plan = &self.recorded.header.plan;
            let cell_of =
                |target: &str| plan.cell_at(target, &comparison.workload, &comparison.load);
            let (Some(a), Some(b)) = (cell_of(&comparison.a), cell_of(&comparison.b)) else {
                continue;
            };
            let Some(kv) = kv_of(a).filter(|kv| kv.keys > 1) else { continue };
            let both = self.deployment(a).zip(self.deployment(b));
            let both = both.filter(|(a, b)| a.family == b.family && !a.is_same(b));
            let (Some((to, from)), Some(value_bytes)) = (both, value_bytes(kv)) else { continue };
            let is_usable = comparison.ratio.interval().is_some() && comparison.doubt.is_none();
            let Some(mix) = mix(kv, &comparison.operation).filter(|_| is_usable) else { continue };
            let one = Scaling {
                origin: self.origin(a),
                from,
                to,
                value_bytes,
                mix,
                load: comparison.load.clone(),
                ratio: comparison.ratio,
            };
            let back = Scaling {
                from: one.to.clone(),
                to: one.from.clone(),
                ratio: one.ratio.inverse(),
                origin: self.origin(b),
                ..one.clone()
            };
            found.scalings.extend([one, back]);
        }
    }
}

/// The rate of one phase.
struct OfPhase {
    phase: String,
    kept: Vec<Slo>,
    rate: Value,
    reach: Reach,
    server_cpus: Option<f64>,
}

impl OfPhase {
    fn new(phase: &str, kept: Vec<Slo>, rate: Value, reach: Reach) -> Option<Self> {
        (!kept.is_empty()).then(|| Self {
            phase: phase.into(),
            kept,
            rate,
            reach,
            server_cpus: None,
        })
    }
}

/// Size of a cell's values. Errors: why its rates cannot stand for those of a store in use.
fn why_not(kv: &Kv, cell: &Cell) -> Result<u64, &'static str> {
    match value_bytes(kv) {
        _ if kv.keys < 2 => Err("all of its requests are for one key"),
        _ if kv.filled_share < 1.0 && !kv.follows => {
            Err("some of its keys are missing, and misses are cheap")
        }
        _ if cell.workload.may_fail() => Err("its plan takes a server or memory away"),
        None => Err("its values have several sizes"),
        Some(bytes) => Ok(bytes),
    }
}

/// The rate that a load offered: the planned one if the interval of the measured one contains it,
/// since the number of requests that were due varies by chance.
fn offered(planned_per_s: Option<u64>, measured: Value) -> Value {
    let planned = planned_per_s.map(|per_s| per_s as f64).zip(measured.interval());
    let planned = planned.filter(|(per_s, (lo, hi))| (*lo..=*hi).contains(per_s));
    planned.map_or(measured, |(per_s, _)| Value::new(per_s, Some(per_s), Some(per_s)))
}

/// The strictest limits that a row at a planned rate kept: each percentile with the upper end of
/// its interval, and the share of failures.
fn kept_by(row: &Row) -> Vec<Slo> {
    let percentile = |(thousandths, name): (u32, &str)| {
        let time = row.metrics.get(&format!("response_ns_{name}")).filter(|t| !t.at_least)?;
        let (_, highest) = time.interval()?;
        Some(Slo::Percentile { thousandths, limit_ns: (highest.ceil() as u64).saturating_add(1) })
    };
    let failed = row.counts.failed() as f64 / (row.counts.total() as f64).max(1.0);
    let errors = Slo::Errors { millionths: (failed * MILLIONTHS).ceil() as u32 + 1 };
    PERCENTILES.into_iter().filter_map(percentile).chain([errors]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chance_does_not_lower_a_planned_rate() {
        let measured = Value::new(9_950.0, Some(9_890.0), Some(10_010.0));
        let ends = |planned| offered(planned, measured).interval();
        assert_eq!(ends(Some(10_000)), Some((10_000.0, 10_000.0)));
        assert_eq!(ends(Some(10_100)), Some((9_890.0, 10_010.0)), "some were not answered");
        assert_eq!(ends(None), Some((9_890.0, 10_010.0)));
    }
}
