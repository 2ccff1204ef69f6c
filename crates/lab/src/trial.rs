//! One measured run of one cell: start, connect, fill, warm up, measure, drain, stop.

use load::{Engine, Finished, Meter, Progress, Reading};
use model::{
    Cell, Emptied, ErrorClass, Event, Fact, Failure, Interval, Layout, Load, Noise, PageCache,
    Point, Sample, Sessions, Trial, Workload,
};
use rig::{Inside, NoiseRecorder, ProcessTree, TakenReader};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use workloads::{Client, PageClient, PlainClient, Share, SharedSession};

use crate::bench::Bench;
use crate::deadline::Deadline;
use crate::read_back::{self, Removals};
use crate::ready::Ready;
use crate::room::Watched;
use crate::sampler::Sampler;
use crate::search::{Probing, Told};
use crate::wall::Clocks;
use crate::{actions, app_cache, error_hints, kv, room, schedule};

/// What a trial gave.
pub struct Measured {
    /// Its line in the record.
    pub trial: Trial,
    /// What it recorded in the course of time; empty where it failed.
    pub intervals: Vec<Interval>,
    /// What server and generator used meanwhile, from when the store was ready until the end.
    pub samples: Vec<Sample>,
}

/// When a trial began, and what ends it early.
struct Course<'a> {
    begun: Instant,
    stop: &'a AtomicBool,
    deadline: &'a Deadline,
}

/// Runs one cell from the trial as it stands, with the points of a search that was interrupted, and
/// tells how it goes on; `None` when the user stopped it, so that it never counts.
pub fn run(
    bench: &mut Bench<'_>,
    cell: &Cell,
    trial: Trial,
    stop: &AtomicBool,
    tell: &mut dyn FnMut(Event),
) -> Option<Measured> {
    let clocks = Clocks::now();
    // What was measured before it was interrupted comes before the rest.
    let earlier = Duration::from_nanos(trial.took_ns);
    let begun = clocks.monotonic.checked_sub(earlier).unwrap_or(clocks.monotonic);
    let mut measured = Measured { trial, intervals: Vec::new(), samples: Vec::new() };
    let deadline = &Deadline::after(match &cell.workload {
        Workload::Kv(kv) => kv.deadline_ns,
        Workload::Sessions(_) | Workload::AppCache(_) => 0,
    });
    match to_its_end(bench, cell, &mut measured, &Course { begun, stop, deadline }, tell) {
        Ok(is_whole) => is_whole.then_some(())?,
        Err(failure) => measured.trial.failure = Some(failure),
    }
    let trial = &mut measured.trial;
    error_hints::explain(trial, bench.setup.endpoints.get(&cell.target));
    trial.took_ns = begun.elapsed().as_nanos() as u64;
    trial.clock_step_ms = clocks.step_ms();
    Some(measured)
}

/// Measures a cell to the end of its trial: a search goes on until its deadline, on a store made
/// ready anew, where one broke under a probe. False when the user stopped it.
fn to_its_end(
    bench: &mut Bench<'_>,
    cell: &Cell,
    measured: &mut Measured,
    course: &Course<'_>,
    tell: &mut dyn FnMut(Event),
) -> Result<bool, Failure> {
    loop {
        let result = measure(bench, cell, measured, course, tell);
        let Err(failure) = &result else { return result };
        let trial = &mut measured.trial;
        let is_known = is_told(trial, failure);
        let probing = Probing::of(bench, cell, (course.begun, course.stop), trial);
        // What would harm others is not tried again.
        let Some(mut probing) = probing.filter(|_| failure.class != ErrorClass::NotOurs) else {
            return result;
        };
        if course.stop.load(Ordering::Relaxed) {
            return Ok(false);
        }
        if let Some(failure) = course.deadline.is_over() {
            return Err(failure);
        }
        if !is_known {
            probing.not_begun(failure.clone(), tell);
        }
        if bench.plan.next_probe(trial).is_none() {
            return Ok(true);
        }
    }
}

/// True where a trial's last point ended by that failure.
fn is_told(trial: &Trial, failure: &Failure) -> bool {
    trial.points.last().is_some_and(|point| point.failure.as_ref() == Some(failure))
}

/// Makes a store ready and measures it, and adds what that gave; false when the user stopped it.
fn measure(
    bench: &mut Bench<'_>,
    cell: &Cell,
    measured: &mut Measured,
    course: &Course<'_>,
    tell: &mut dyn FnMut(Event),
) -> Result<bool, Failure> {
    let Some(target) = bench.plan.target(&cell.target) else {
        let message = format!("cell `{}` names no target of the plan", cell.id);
        return Err(Failure { class: ErrorClass::Other, message });
    };
    let trial = &mut measured.trial;
    let label = format!("{}_{}_{}", trial.block, trial.position, trial.points.len());
    let mut ready = bench.ready(target, &cell.workload, &label)?;
    let sampler = Sampler::start(&ready, &bench.setup.pinning.generator, course.begun);
    let tell = &mut |told: Told<'_>| match told {
        Told::Progress(p) => sampler.events(&cell.id, p).for_each(&mut *tell),
        Told::Ended(event) => tell(event),
    };
    let watched = Watched::of(&ready, &bench.setup.pinning.generator);
    let (offered, filled_up) = room::watched(watched, course.stop, |stop| {
        let course = Course { stop, ..*course };
        offer(bench, &mut ready, cell, trial, &course, tell)
    });
    let offered = filled_up.map_or(offered, Err);
    let offered = offered
        .map_err(|failure| if is_told(trial, &failure) { failure } else { ready.explain(failure) });
    let mut readings = sampler.stop();
    trial.events.extend(actions::seen(&readings));
    if actions::saved(&cell.workload, &trial.events) {
        trial.facts.extend(actions::copied(&readings, &trial.events));
    } else {
        trial.facts.retain(|fact| !fact.is_of_a_save());
    }
    measured.samples.append(&mut readings);
    let memory = ready.memory_use();
    trial.memory = memory.as_ref().ok().copied().flatten();
    let is_own = !ready.server_pids().is_empty();
    // Also after a fault or an interruption: what is left in an existing store is ours to remove.
    let cleaned = ready.finish(course.stop);
    trial.not_removed = cleaned.as_ref().err().filter(|_| !is_own).cloned();
    let intervals = offered?;
    memory?;
    let is_whole = intervals.is_some();
    measured.intervals.extend(intervals.into_iter().flatten());
    match cleaned {
        // What was measured stands.
        Err(_) if !is_own && is_whole => Ok(true),
        cleaned => cleaned.map(|()| is_whole),
    }
}

/// Connects to the store that was made ready and offers the load; `None` when the user stopped it.
fn offer(
    bench: &Bench<'_>,
    ready: &mut Ready,
    cell: &Cell,
    trial: &mut Trial,
    course: &Course<'_>,
    tell: &mut dyn FnMut(Told<'_>),
) -> Result<Option<Vec<Interval>>, Failure> {
    let Course { begun, stop, deadline } = *course;
    trial.version = Some(ready.version()?);
    // Of a store that was made ready anew in place of one that broke.
    trial.facts.clear();
    let seed = schedule::data_seed(bench.plan, trial.block);
    let (cpus, timeout_ns) = (bench.client_cpus(ready), bench.plan.timeout_ns);
    let mut meter = ServerMeter::new(bench, ready);
    let servers = meter.servers.clone();
    let generator = &bench.setup.pinning.generator;
    let record = || NoiseRecorder::start(generator, &bench.setup.pinning.server, &servers);
    let removals = Removals::before(ready);
    let progress = &mut |progress: Progress<'_>| tell(Told::Progress(progress));
    let (mut finished, noise) = match &cell.workload {
        Workload::Sessions(sessions) => {
            let clients = connect(ready, sessions, &cell.load, seed)?;
            let recorder = record();
            let (phases, generation) = (&sessions.phases, sessions.generation);
            let engine = Engine { phases, generation, cpus: &cpus, timeout_ns, stop };
            (engine.run(clients, &mut meter, progress), recorder.stop())
        }
        Workload::AppCache(cache) => {
            let clients = app_cache::connect(ready, cache, &cell.load, seed)?;
            meter.directory = Some(ready.options().directory.clone());
            meter.cold = cache.page_cache == PageCache::Cold;
            let recorder = record();
            let (phases, generation) = (&cache.phases, cell.workload.generation());
            let engine = Engine { phases, generation, cpus: &cpus, timeout_ns, stop };
            let inside = ready.enter_group()?;
            let finished = engine.run(clients, &mut meter, progress);
            inside.map_or(Ok(()), Inside::leave)?;
            (finished, recorder.stop())
        }
        Workload::Kv(kv) => {
            let offered = kv::Offered { kv, load: &cell.load, seed, cpus, plan: bench.plan };
            let load = offered.open(ready)?;
            ready.will_write(load.names(), kv.keys);
            let recorder = record();
            let mut watched = Watched::of(ready, generator);
            let mut finished = deadline.within(stop, |stop| {
                match Probing::of(bench, cell, (begun, stop), trial) {
                    Some(mut search) => {
                        search.run((&load, ready), watched.as_mut(), &mut meter, tell)
                    }
                    None => load.run(watched.as_mut(), stop, &mut meter, &mut |progress| {
                        tell(Told::Progress(progress));
                    }),
                }
            });
            let noise = recorder.stop();
            read_back::of_keys(ready, &load, &mut finished, stop);
            (finished, noise)
        }
    };
    finished.record(begun, trial);
    trial.noise = Noise { run_delay_share: run_delay_share(&trial.points, cell), ..noise };
    trial.facts.extend(ready.numbers());
    trial.facts.extend(meter.filled);
    trial.emptied = meter.emptied;
    look_after(ready, finished, removals, &cell.workload, trial)
}

/// Asks what can be asked once a load is over; `None` when the user stopped it.
fn look_after(
    ready: &mut Ready,
    finished: Finished,
    removals: Removals,
    workload: &Workload,
    trial: &mut Trial,
) -> Result<Option<Vec<Interval>>, Failure> {
    match finished.failure {
        Some(failure) if !finished.interrupted => return Err(failure),
        _ if finished.interrupted => return Ok(None),
        _ => {}
    }
    trial.read_back = removals.explain(finished.read_back, ready, workload);
    if let Some(backend) = ready.backend {
        trial.facts.extend(app_cache::stale_members(backend, &ready.cache_options())?);
    }
    Ok(Some(finished.intervals))
}

/// One client a thread, each with its own connection.
fn connect(
    ready: &Ready,
    workload: &Sessions,
    load: &Load,
    seed: u64,
) -> Result<Vec<Box<dyn Client>>, Failure> {
    let shared = load.one_session.then(|| Arc::new(SharedSession::default()));
    let clients = load.clients;
    (0..clients)
        .map(|client| {
            let share = Share { seed, client, clients, prefix: ready.prefix().into() };
            let workload = workload.clone();
            let (endpoint, options) = (ready.endpoint(), ready.options());
            let client: Box<dyn Client> = match workload.layout {
                Layout::Plain => {
                    let store = drivers::open_session_store(endpoint, options)?;
                    Box::new(PlainClient::new(store, workload, share))
                }
                Layout::Page => {
                    let store = drivers::open_page_store(endpoint, options)?;
                    Box::new(PageClient::new(store, workload, share, shared.clone()))
                }
            };
            Ok(client)
        })
        .collect()
}

/// Share of the generator's threads' time spent ready to run but waiting for a CPU.
pub(crate) fn run_delay_share(points: &[Point], cell: &Cell) -> f64 {
    let waited: u64 = points.iter().map(|p| p.generator_run_delay_ns).sum();
    let wall: u64 = points.iter().map(|p| p.length_ns).sum();
    waited as f64 / (wall * u64::from(cell.threads())).max(1) as f64
}

/// What the private servers have used and others took, and what the stores take once they are
/// filled; empties the page cache before cold phases.
pub(crate) struct ServerMeter {
    servers: ProcessTree,
    taken: TakenReader,
    /// Directory of the stores' files, empty without files; `None` where nobody asks for sizes.
    directory: Option<PathBuf>,
    filled: Vec<Fact>,
    /// Whether the page cache is emptied before each phase.
    cold: bool,
    emptied: Option<Emptied>,
}

impl ServerMeter {
    /// Of stores that were made ready, without those of files.
    pub(crate) fn new(bench: &Bench<'_>, ready: &Ready) -> Self {
        let servers = ProcessTree::new(&ready.server_pids());
        let (generator, server) = (bench.client_cpus(ready), &bench.setup.pinning.server);
        let taken = TakenReader::new(&generator, server, servers.clone());
        Self { servers, taken, directory: None, filled: Vec::new(), cold: false, emptied: None }
    }
}

impl Meter for ServerMeter {
    fn read(&mut self) -> Reading {
        let taken = self.taken.read();
        Reading {
            server_cpu_ns: self.servers.cpu_ns(),
            taken_from_server_ns: taken.from_servers_ns,
            others_on_generator_ns: taken.on_generator_ns,
            stolen_from_generator_ns: taken.stolen_from_generator_ns,
        }
    }

    fn filled(&mut self) {
        let Some(directory) = &self.directory else { return };
        let in_memory = self.servers.memory_bytes().unwrap_or(0);
        let has_files = !directory.as_os_str().is_empty();
        let files = if has_files { rig::directory_bytes(directory) } else { Ok(0) };
        // A directory that cannot be listed fails the trial at its own calls.
        let told = files
            .ok()
            .map(|on_disk| [(Fact::STORE_BYTES, on_disk), (Fact::SERVER_MEMORY_BYTES, in_memory)]);
        let fact = |(name, bytes): (&str, u64)| Fact {
            name: name.into(),
            value: bytes as f64,
            source: "host".into(),
        };
        self.filled.extend(told.into_iter().flatten().map(fact));
    }

    fn before_phase(&mut self) -> Result<(), Failure> {
        if self.cold {
            let directory = self.directory.as_deref().filter(|d| !d.as_os_str().is_empty());
            self.emptied = Some(rig::empty_page_cache(directory)?);
        }
        Ok(())
    }
}
