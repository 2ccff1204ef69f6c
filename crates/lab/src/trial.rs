//! One measured run of one cell: start, connect, fill, warm up, measure, drain, stop.

use load::{Finished, Progress};
use model::{Cell, ErrorClass, Event, Failure, Interval, Noise, Point, Sample, Trial, Workload};
use rig::{NoiseRecorder, Pinning};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::crew::Opened;
use crate::deadline::Deadline;
use crate::latencies::Latencies;
use crate::provision::TargetProvisioner;
use crate::read_back::{self, Removals};
use crate::ready::Ready;
use crate::room::Watched;
use crate::sampler::Sampler;
use crate::search::{Probing, SearchReport};
use crate::server_meter::ServerMeter;
use crate::wall::Clocks;
use crate::{actions, app_cache, clients, error_hints, kv, room, schedule};

/// Result of one trial.
pub struct Measured {
    /// Its line in the record.
    pub trial: Trial,
    /// Latencies per interval; empty if the trial failed.
    pub intervals: Vec<Interval>,
    /// Resource usage of server and generator, from the prepared store to the end.
    pub samples: Vec<Sample>,
}

/// Start of a trial, and what can end it early.
struct TrialLimits<'a> {
    begun: Instant,
    stop: &'a AtomicBool,
    deadline: &'a Deadline,
}

/// Runs one cell and reports progress. `trial` has the points of an interrupted search, if any.
/// Returns `None` if the user stopped it: such a trial never counts.
pub fn run(
    provisioner: &mut TargetProvisioner<'_>,
    cell: &Cell,
    trial: Trial,
    stop: &AtomicBool,
    report: &mut dyn FnMut(Event),
) -> Option<Measured> {
    let clocks = Clocks::now();
    // An interrupted search keeps its clock: earlier probes come first.
    let earlier = Duration::from_nanos(trial.took_ns);
    let begun = clocks.monotonic.checked_sub(earlier).unwrap_or(clocks.monotonic);
    let mut measured = Measured { trial, intervals: Vec::new(), samples: Vec::new() };
    let deadline = &Deadline::after(match &cell.workload {
        Workload::Kv(kv) => kv.deadline_ns,
        Workload::Sessions(_) | Workload::AppCache(_) | Workload::CacheAside(_) => 0,
    });
    match to_its_end(
        provisioner,
        cell,
        &mut measured,
        &TrialLimits { begun, stop, deadline },
        report,
    ) {
        Ok(is_whole) => is_whole.then_some(())?,
        Err(failure) => measured.trial.failure = Some(failure),
    }
    let trial = &mut measured.trial;
    error_hints::explain(trial, provisioner.of_server(&cell.target));
    trial.took_ns = begun.elapsed().as_nanos() as u64;
    trial.clock_step_ms = clocks.step_ms();
    Some(measured)
}

/// Measures a cell until its trial is over. If a probe breaks the store, a search goes on with a
/// fresh one until its deadline. Returns false if the user stopped it.
fn to_its_end(
    provisioner: &mut TargetProvisioner<'_>,
    cell: &Cell,
    measured: &mut Measured,
    limits: &TrialLimits<'_>,
    report: &mut dyn FnMut(Event),
) -> Result<bool, Failure> {
    loop {
        let result = measure(provisioner, cell, measured, limits, report);
        let Err(failure) = &result else { return result };
        let trial = &mut measured.trial;
        let is_known = is_on_last_point(trial, failure);
        let probing = Probing::of(provisioner, cell, (limits.begun, limits.stop), trial);
        // Never retry what could harm other users' data, nor what no worker is left for.
        let is_final = matches!(failure.class, ErrorClass::NotOurs | ErrorClass::Lost);
        let Some(mut probing) = probing.filter(|_| !is_final) else {
            return result;
        };
        if limits.stop.load(Ordering::Relaxed) {
            return Ok(false);
        }
        if let Some(failure) = limits.deadline.is_over() {
            return Err(failure);
        }
        if !is_known {
            probing.not_started(failure.clone(), report);
        }
        if provisioner.plan.next_probe(trial).is_none() {
            return Ok(true);
        }
    }
}

/// True if the trial's last point failed with this failure.
fn is_on_last_point(trial: &Trial, failure: &Failure) -> bool {
    trial.points.last().is_some_and(|point| point.failure.as_ref() == Some(failure))
}

/// Prepares a store, measures it and adds the results. Returns false if the user stopped it.
fn measure(
    provisioner: &mut TargetProvisioner<'_>,
    cell: &Cell,
    measured: &mut Measured,
    limits: &TrialLimits<'_>,
    report: &mut dyn FnMut(Event),
) -> Result<bool, Failure> {
    let Some(target) = provisioner.plan.target(&cell.target) else {
        let message = format!("cell `{}` names no target of the plan", cell.id);
        return Err(Failure { class: ErrorClass::Other, message });
    };
    let trial = &mut measured.trial;
    let label = format!("{}_{}_{}", trial.block, trial.position, trial.points.len());
    let mut ready = provisioner.ready(target, &cell.workload, &label)?;
    let sampler = Sampler::start(&ready, &provisioner.setup.pinning.generator, limits.begun);
    let report = &mut |part: SearchReport<'_>| match part {
        SearchReport::Progress(p) => sampler.events(&cell.id, p).for_each(&mut *report),
        SearchReport::ProbeEnded(event) => report(event),
    };
    let watched = Watched::of(&ready, &provisioner.setup.pinning.generator);
    let (offered, filled_up) = room::watched(watched, limits.stop, |stop| {
        let limits = TrialLimits { stop, ..*limits };
        offer(provisioner, &mut ready, cell, trial, &limits, report)
    });
    let offered = filled_up.map_or(offered, Err);
    let offered = offered.map_err(|failure| {
        let is_explained = is_on_last_point(trial, &failure) || failure.is_a_result();
        if is_explained { failure } else { ready.explain(failure) }
    });
    let mut readings = sampler.stop();
    trial.events.extend(actions::events_in(&readings));
    actions::complete(trial, &cell.workload, &readings);
    measured.samples.append(&mut readings);
    trial.facts.extend(ready.groups.throttled());
    let memory = ready.memory_use();
    trial.memory = memory.as_ref().ok().copied().flatten();
    let is_own = !ready.server_pids().is_empty();
    // Clean up even after an error or interruption: what we wrote to an existing store is ours.
    let cleaned = ready.finish(limits.stop);
    if !is_own {
        let may_write_again = || provisioner.setup.fleet.as_ref()?.may_write_again();
        trial.not_removed = cleaned.as_ref().err().cloned().or_else(may_write_again);
    }
    let intervals = offered?;
    memory?;
    let is_whole = intervals.is_some();
    measured.intervals.extend(intervals.into_iter().flatten());
    match cleaned {
        // Failed cleanup does not invalidate the measurement.
        Err(_) if !is_own && is_whole => Ok(true),
        cleaned => cleaned.map(|()| is_whole),
    }
}

/// Connects to the prepared store and offers the load. Returns `None` if the user stopped it.
fn offer(
    provisioner: &TargetProvisioner<'_>,
    ready: &mut Ready,
    cell: &Cell,
    trial: &mut Trial,
    limits: &TrialLimits<'_>,
    report: &mut dyn FnMut(SearchReport<'_>),
) -> Result<Option<Vec<Interval>>, Failure> {
    let TrialLimits { begun, stop, deadline } = *limits;
    trial.version = Some(ready.version()?);
    // Drop the facts of an earlier store that broke.
    trial.facts.clear();
    let seed = schedule::data_seed(provisioner.plan, trial.block);
    let cpus = provisioner.client_cpus(ready);
    let mut meter = ServerMeter::new(provisioner, ready);
    let servers = meter.measured.clone();
    let Pinning { generator, server, .. } = &provisioner.setup.pinning;
    let record = || NoiseRecorder::start(generator, server, &servers);
    let removals = Removals::before(ready);
    let mut latencies = Latencies::of(cell, provisioner.plan.timeout_ns);
    let report = &mut |happened: SearchReport<'_>| {
        if let SearchReport::Progress(progress) = &happened {
            latencies.take(progress);
        }
        report(happened);
    };
    let progress = &mut |progress: Progress<'_>| report(SearchReport::Progress(progress));
    let (mut finished, noise) = match &cell.workload {
        Workload::Kv(kv) if ready.has_key_protocol() => {
            let chosen = kv::Chosen::new((kv, &cell.load), seed, cpus, provisioner.plan);
            let load = chosen.by(provisioner.setup.fleet.as_ref()).open(ready)?;
            meter.before_fill(ready, cell)?;
            ready.will_write(load.names(), kv.keys);
            let recorder = record();
            let mut watched = Watched::of(ready, generator);
            let mut finished = deadline.within(stop, |stop| {
                match Probing::of(provisioner, cell, (begun, stop), trial) {
                    Some(mut search) => {
                        search.run((&load, ready), watched.as_mut(), &mut meter, report)
                    }
                    None => load.run(watched.as_mut(), stop, &mut meter, &mut |progress| {
                        report(SearchReport::Progress(progress));
                    }),
                }
            });
            let noise = recorder.stop();
            read_back::of_keys(ready, &load, &mut finished, stop);
            (finished, noise)
        }
        _ => {
            let opening = clients::opening(provisioner, ready, cell, seed);
            let mut opened = Opened::open(&opening, provisioner.setup.fleet.as_ref(), stop)?;
            meter.before_fill(ready, cell)?;
            let recorder = record();
            let finished = ready.in_groups(|| {
                deadline.within(stop, |stop| {
                    opened.run(&opening.engine(&cpus, stop), &mut meter, progress)
                })
            })?;
            (finished, recorder.stop())
        }
    };
    let has_ended = ends_early(ready, &mut finished, trial);
    finished.record(begun, trial);
    let intervals = latencies.record(trial);
    trial.noise = Noise { run_delay_share: run_delay_share(&trial.points, cell), ..noise };
    meter.complete(trial);
    let is_over = after_load(ready, finished, (removals, has_ended), &cell.workload, trial)?;
    Ok(is_over.then_some(intervals))
}

/// If the store was killed by its limit or stopped answering within a measured phase, makes that
/// the failure of the phase's point, whose figures reach until then, instead of the trial's.
/// Returns true if so. Other failures leave no partial figures.
fn ends_early(ready: &Ready, finished: &mut Finished, trial: &Trial) -> bool {
    let Some(seen) = finished.failure.take() else { return false };
    let is_known = finished.interrupted || is_on_last_point(trial, &seen);
    let explained = if is_known { seen.clone() } else { ready.explain(seen.clone()) };
    let is_result = explained.is_a_result();
    let last = finished.phases.last_mut().and_then(|phase| phase.points.last_mut());
    match last.filter(|point| point.failure.is_some()) {
        Some(partial) if is_result => partial.failure = Some(explained),
        partial => {
            if partial.is_some() {
                finished.phases.pop();
            }
            finished.failure = Some(if is_result { explained } else { seen });
            return false;
        }
    }
    true
}

/// Collects what is known only after the load. Returns false if the user stopped it.
fn after_load(
    ready: &mut Ready,
    finished: Finished,
    (removals, has_ended): (Removals, bool),
    workload: &Workload,
    trial: &mut Trial,
) -> Result<bool, Failure> {
    // A store that does not answer cannot be asked.
    if !has_ended {
        trial.facts.extend(ready.numbers());
    }
    match finished.failure {
        Some(failure) if !finished.interrupted => return Err(failure),
        _ if finished.interrupted => return Ok(false),
        _ if has_ended => return Ok(true),
        _ => {}
    }
    trial.read_back = removals.explain(finished.read_back, ready, workload);
    if let Some(backend) = ready.backend {
        trial.facts.extend(app_cache::stale_members(backend, &ready.cache_options())?);
    }
    Ok(true)
}

/// Share of time that the generator's threads were runnable but waited for a CPU.
pub(crate) fn run_delay_share(points: &[Point], cell: &Cell) -> f64 {
    let waited: u64 = points.iter().map(|p| p.generator_run_delay_ns).sum();
    let wall: u64 = points.iter().map(|p| p.length_ns).sum();
    waited as f64 / (wall * u64::from(cell.threads())).max(1) as f64
}
