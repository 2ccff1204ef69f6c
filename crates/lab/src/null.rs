//! Measures the generator's rate with a cell's load on a null server, which does no work.
//!
//! The null server runs like a private server: on the server's CPUs, behind the same kind of
//! socket. It answers every read with a value, so nothing is filled, all values have the same
//! (mean) length, and their content is not compared. An open load runs as a closed one without
//! think time, because the measurement looks for the generator's maximum rate.

use drivers::wire::Dialect;
use load::Unmetered;
use model::calibration::{NULL_FACTOR_CHANCE, NULL_FACTOR_MIN};
use model::plan::{KvOperation, PlannedTarget};
use model::{
    Cell, Endpoint, ErrorClass, Failure, Kv, Load, NetAddress, NullRate, Phase, Plan, Point, Stop,
    Trial,
};
use rig::Scratch;
use rig::reference::{Listen, NullServer, NullSettings};
use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use workloads::kv::values_of;

use crate::kv::Chosen;
use crate::setup::Setup;

/// Longest measurement, nanoseconds.
const MEASURED_NS: u64 = 1_000_000_000;
/// Maximum number of measurements per load, including the one before the trials. They are repeated
/// until a second one reaches [`AGREE`] of the highest, since other processes may have disturbed
/// one of them.
const TRIES: usize = 3;
const AGREE: f64 = 0.9;
/// Longest warm-up, nanoseconds.
const WARMUP_NS: u64 = 200_000_000;

/// Properties that determine a cell's rate on the null server.
#[derive(Debug, PartialEq)]
struct Shape {
    kv: Kv,
    load: Load,
    dialect: Dialect,
    /// True for TCP, false for a unix socket.
    tcp: bool,
    /// Key prefix in an existing store; as long as the run's prefix.
    own: &'static str,
}

/// Runs every distinct key-value load once on the null server. Returns a rate, or why there is
/// none, for each cell and phase.
pub fn null_rates(plan: &Plan, setup: &Setup) -> Vec<NullRate> {
    rates(plan, setup, &[])
}

/// The same; a load with a rate in `before` is measured until another measurement agrees.
fn rates(plan: &Plan, setup: &Setup, before: &[NullRate]) -> Vec<NullRate> {
    let mut known: Vec<(Shape, Result<Vec<Point>, Failure>)> = Vec::new();
    let mut rates = Vec::new();
    if plan.places.workers > 0 {
        // It would be the rate of this process, not of the workers.
        return rates;
    }
    let server_cpus = setup.pinning.server.len().max(1) as u32;
    for cell in &plan.cells {
        let (Some(kv), Some(target)) = (plan.on_event_loops(cell), plan.target(&cell.target))
        else {
            continue;
        };
        let shape = match shape(kv, cell, target, setup) {
            Ok(shape) => shape,
            Err(failure) => {
                rates.extend(of(cell, server_cpus, &Err(failure)));
                continue;
            }
        };
        let at = known.iter().position(|(other, _)| *other == shape).unwrap_or_else(|| {
            let own = before.iter().filter(|null| null.cell == cell.id);
            let first_per_s = own.filter_map(|null| null.rate_per_s).reduce(|a, b| a + b);
            let measured =
                repeated(first_per_s, |all: &Vec<_>| sum(all), || measure(&shape, plan, setup));
            known.push((shape, measured));
            known.len() - 1
        });
        rates.extend(of(cell, server_cpus, &known[at].1));
    }
    rates
}

/// Repeats the measurement for cells with a trial that came close to the null rate or exceeded it:
/// the first measurement may have been disturbed.
pub(crate) fn again(
    plan: &Plan,
    setup: &Setup,
    known: &[NullRate],
    trials: &[Trial],
) -> Vec<NullRate> {
    let highest = |null: &NullRate| {
        let own = trials.iter().filter(|t| t.cell == null.cell).flat_map(|t| &t.points);
        let rates = own.filter(|p| p.phase == null.phase).filter_map(Point::whole);
        rates.map(|whole| whole.rate_per_s).fold(0.0, f64::max)
    };
    let clear = NULL_FACTOR_MIN * (1.0 + NULL_FACTOR_CHANCE);
    let is_near =
        |null: &&NullRate| null.rate_per_s.is_some_and(|reached| reached < clear * highest(null));
    let near: BTreeSet<&str> = known.iter().filter(is_near).map(|n| n.cell.as_str()).collect();
    if near.is_empty() {
        return Vec::new();
    }
    let mut some = plan.clone();
    some.cells.retain(|cell| near.contains(cell.id.as_str()));
    rates(&some, setup, known)
}

/// The measurement with the highest rate. Without an earlier rate `first_per_s`, one measurement is
/// enough; otherwise they are repeated until one agrees with the highest so far.
fn repeated<T, E>(
    first_per_s: Option<f64>,
    rate_of: impl Fn(&T) -> f64,
    mut measure: impl FnMut() -> Result<T, E>,
) -> Result<T, E> {
    let mut best = measure()?;
    let Some(mut highest) = first_per_s else { return Ok(best) };
    let mut latest = rate_of(&best);
    for _ in 2..TRIES {
        if highest.min(latest) >= AGREE * highest.max(latest) {
            break;
        }
        highest = highest.max(latest);
        let next = measure()?;
        latest = rate_of(&next);
        if latest > rate_of(&best) {
            best = next;
        }
    }
    Ok(best)
}

/// Sum of the phases' rates, requests per second.
fn sum(points: &[Point]) -> f64 {
    points.iter().filter_map(|point| rate(point).ok()).sum()
}

/// A rate, or why there is none, for each phase of a cell.
fn of(cell: &Cell, server_cpus: u32, measured: &Result<Vec<Point>, Failure>) -> Vec<NullRate> {
    let rate = |phase: &Phase| {
        let rate = match measured {
            Ok(points) => points.iter().find(|p| p.phase == phase.name).map_or_else(
                || Err("it ended before this phase".into()),
                |p| rate(p).map_err(ToString::to_string),
            ),
            Err(failure) => Err(failure.message.clone()),
        };
        let (cell, phase) = (cell.id.clone(), phase.name.clone());
        NullRate {
            cell,
            phase,
            rate_per_s: rate.as_ref().ok().copied(),
            not_checked: rate.err(),
            server_cpus,
        }
    };
    // Control phases are parts of the same load.
    cell.workload.phases().iter().filter(|p| p.control.is_none()).map(rate).collect()
}

/// Rate of a phase on the null server, requests per second. Errors: why it has none.
fn rate(point: &Point) -> Result<f64, &'static str> {
    let whole = point.whole().ok_or("it answered nothing")?;
    if whole.counts.error > 0 {
        return Err("unknown command");
    }
    if whole.counts.wrong > 0 {
        return Err("it answers this command differently from a store");
    }
    Ok(whole.rate_per_s)
}

fn shape(kv: &Kv, cell: &Cell, target: &PlannedTarget, setup: &Setup) -> Result<Shape, Failure> {
    let (sizes, _) = values_of(&kv.value_bytes, 0).map_err(|e| failed(e.to_string()))?;
    let phases = kv.phases.iter().filter(|p| p.control.is_none()).map(|phase| Phase {
        warmup_ns: phase.warmup_ns.min(WARMUP_NS),
        stop: match phase.stop {
            Stop::AfterNs(ns) => Stop::AfterNs(ns.min(MEASURED_NS)),
            Stop::Count(_) => Stop::AfterNs(MEASURED_NS),
        },
        ..phase.clone()
    });
    let (clients, pipeline) = (cell.load.clients, cell.load.pipeline);
    let existing = setup.endpoints.get(&target.name);
    if existing.is_some_and(|endpoint| endpoint.tls().is_some()) {
        return Err(failed("it does not speak TLS".into()));
    }
    let Some(dialect) = Dialect::of(target.product, existing) else {
        let name = target.product.name();
        return Err(failed(format!("it does not speak the protocol of {name}")));
    };
    let tcp = existing.is_some_and(|endpoint| endpoint.addresses().iter().any(is_tcp));
    Ok(Shape {
        kv: Kv {
            value_bytes: format!("{:.0}", sizes.mean()),
            verify_one_in: 0,
            think_ns: 0,
            think_is_drawn: false,
            phases: phases.collect(),
            ..kv.clone()
        },
        load: Load::closed(clients).pipelined(pipeline),
        dialect,
        tcp,
        own: if existing.is_some() { "cachedyno-00000000-" } else { "" },
    })
}

fn is_tcp(address: &NetAddress) -> bool {
    matches!(address, NetAddress::Tcp(..))
}

fn measure(shape: &Shape, plan: &Plan, setup: &Setup) -> Result<Vec<Point>, Failure> {
    let scratch = Scratch::for_sockets(&setup.guard)?;
    let pinning = &setup.pinning;
    let get = |o: &KvOperation| o.command.is_none() && o.name == "get";
    let server = NullServer::start(&NullSettings {
        listen: if shape.tcp {
            Listen::default()
        } else {
            Listen::Unix(scratch.socket("null.sock")?)
        },
        threads: pinning.server.len().max(1),
        cpus: pinning.server.clone(),
        value_bytes: shape.kv.value_bytes.parse().map_err(|e| failed(format!("{e}")))?,
        miss: shape.kv.filled_share == 0.0 && shape.kv.operations.iter().all(get),
        remember: 0,
    })?;
    let endpoint = endpoint(shape.dialect, server.address());
    let access = drivers::wire::access(&endpoint, Duration::from_nanos(plan.timeout_ns))?;
    let kv = Kv { filled_share: 0.0, ..shape.kv.clone() };
    let cpus = pinning.generator.clone();
    let chosen = Chosen::new((&kv, &shape.load), plan.seed, cpus, plan);
    let load = chosen.open_at(access, shape.own)?;
    let finished = load.run(None, &AtomicBool::new(false), &mut Unmetered, &mut |_| {});
    match finished.failure {
        Some(failure) => Err(failure),
        None => Ok(finished.phases.into_iter().flat_map(|phase| phase.points).collect()),
    }
}

/// Endpoint of the null server for a protocol.
pub(crate) fn endpoint(dialect: Dialect, at: &Listen) -> Endpoint {
    dialect.endpoint(match at {
        Listen::Tcp(address) => NetAddress::Tcp(address.ip().to_string(), address.port()),
        Listen::Unix(path) => NetAddress::Unix(path.clone()),
    })
}

fn failed(message: String) -> Failure {
    Failure { class: ErrorClass::Other, message }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disturbed_measurement_is_repeated_until_two_agree() {
        let measured = |first: Option<f64>, rates: &[f64]| {
            let mut left = rates.iter().copied();
            let found = repeated(first, |rate| *rate, || left.next().ok_or("no more"));
            (found.unwrap(), left.count())
        };
        assert_eq!(measured(None, &[5.0, 100.0]), (5.0, 1), "one is enough before the trials");
        assert_eq!(measured(Some(5.0), &[100.0, 98.0, 1.0]), (100.0, 1));
        assert_eq!(measured(Some(100.0), &[95.0, 1.0]), (95.0, 1), "it agrees at once");
        assert_eq!(measured(Some(100.0), &[5.0, 99.0]), (99.0, 0));
    }
}
