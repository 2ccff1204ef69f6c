//! Searches the highest rate that a store bears within limits: one probe after the other on the
//! same filled store, each a trial of the record. Which one is next, [`stats::search`] decides.
//!
//! A store that breaks under a probe is made ready anew, and the search goes on: what it did not
//! survive was beyond what it bears.

use model::{
    Cell, ErrorClass, Event, Failure, Header, Kv, Load, Noise, Phase, Plan, PlannedTarget, Seal,
    SealStatus, Search, Stop, Trial, Workload,
};
use rig::{NoiseRecorder, ProcessTree};
use stats::search::{Next, Purpose, Settings, Step};
use std::sync::atomic::{AtomicBool, Ordering};

use load::Finished;

use crate::kv::{Offered, Opened};
use crate::read_back::{self, Removals};
use crate::room::{self, Watched};
use crate::sampler::Sampler;
use crate::trial::{Measured, ServerMeter, explain, run_delay_share};
use crate::wall::{Clocks, unix_ms};
use crate::{Bench, Ready, Setup, Sinks, check_targets, null, recorded, schedule, words};

/// Why no more is probed when all is known.
const OVER: &str = "the search is over";
/// Why no more is probed when it would harm others.
const MAY_NOT: &str = "the target may not be used any longer";
/// Unrecorded part of a rest, nanoseconds: a low rate needs no time to settle.
const REST_WARMUP_NS: u64 = 50_000_000;

/// Searches as the plan of `header` says, which has a [`Search`] and one key-value cell, and tells
/// `sinks` everything; `stop` ends it early from outside.
pub fn run(header: Header, setup: &Setup, sinks: &mut Sinks<'_>, stop: &AtomicBool) -> Seal {
    let (plan, run) = (header.plan.clone(), header.run.clone());
    let known = header.null_rates.clone();
    sinks.tell(&Event::RunStarted(Box::new(header)));
    let mut bench = Bench::new(&plan, &run, setup);
    let ready = check_targets(&plan, &mut bench, sinks, stop);
    let (trials, stopped_because) = match What::of(&plan) {
        Some(what) if ready.contains(&what.target.name) => {
            let settings = what.search.settings(plan.seed);
            let trials = Vec::new();
            let mut searching =
                Searching { plan: &plan, what, settings, bench, sinks, stop, trials };
            let because = searching.run();
            (searching.trials, because)
        }
        Some(_) => (Vec::new(), "the target cannot be measured".into()),
        None => (Vec::new(), "the plan has nothing to search for".into()),
    };
    let interrupted = stop.load(Ordering::Relaxed);
    let null_rates =
        if interrupted { Vec::new() } else { null::again(&plan, setup, &known, &trials) };
    let seal = Seal {
        status: if interrupted { SealStatus::Interrupted } else { SealStatus::Complete },
        finished_unix_ms: unix_ms(),
        blocks: trials.len() as u32,
        stopped_because,
        resumed: false,
        null_rates,
    };
    sinks.tell(&Event::RunEnded(seal.clone()));
    seal
}

/// What is searched, and where.
#[derive(Clone, Copy)]
struct What<'a> {
    search: &'a Search,
    cell: &'a Cell,
    kv: &'a Kv,
    /// How operations are chosen; how long follows from the probe.
    phase: &'a Phase,
    target: &'a PlannedTarget,
}

impl<'a> What<'a> {
    fn of(plan: &'a Plan) -> Option<Self> {
        let cell = plan.cells.first()?;
        let Workload::Kv(kv) = &cell.workload else { return None };
        let (phase, target) = (kv.phases.first()?, plan.target(&cell.target)?);
        Some(Self { search: plan.search.as_ref()?, cell, kv, phase, target })
    }
}

struct Searching<'a, 'b, 's> {
    plan: &'a Plan,
    what: What<'a>,
    settings: Settings,
    bench: Bench<'a>,
    sinks: &'b mut Sinks<'s>,
    stop: &'a AtomicBool,
    trials: Vec<Trial>,
}

/// Why a store is left.
enum Left {
    /// The search is over, or stopped.
    Over(String),
    /// The store broke.
    Broken,
}

impl Searching<'_, '_, '_> {
    /// Searches to the end; why no more was probed.
    fn run(&mut self) -> String {
        while let Some(step) = self.next() {
            match self.on_a_store() {
                Ok(Left::Over(because)) => return because,
                Ok(Left::Broken) => {}
                Err(_) if self.stop.load(Ordering::Relaxed) => return "interrupted".into(),
                Err(failure) => {
                    let is_over = failure.class == ErrorClass::NotOurs;
                    let step = self.next().unwrap_or(step);
                    let trial = Trial { failure: Some(failure), ..self.empty(step) };
                    self.take(trial);
                    if is_over {
                        return MAY_NOT.into();
                    }
                }
            }
        }
        OVER.into()
    }

    /// The next probe; `None` when the search is over.
    fn next(&self) -> Option<Step> {
        match self.settings.next(&self.what.search.seen(&self.trials)) {
            Next::Probe(step) => Some(step),
            Next::Done(_) => None,
        }
    }

    /// Tells a trial and keeps it.
    fn take(&mut self, mut trial: Trial) {
        words::explain(&mut trial, self.bench.setup.endpoints.get(&self.what.cell.target));
        self.sinks.tell(&Event::TrialEnded(Box::new(trial.clone())));
        self.trials.push(trial);
    }

    /// A trial of which nothing is known yet.
    fn empty(&self, step: Step) -> Trial {
        Trial {
            block: self.trials.len() as u32,
            cell: self.what.cell.id.clone(),
            probe: Some(step),
            started_unix_ms: unix_ms(),
            ..Trial::default()
        }
    }

    /// Makes a store ready, fills it, and probes it until it breaks or the search is over.
    fn on_a_store(&mut self) -> Result<Left, Failure> {
        let label = format!("{}", self.trials.len());
        let What { cell, kv, target, .. } = self.what;
        let mut ready = self.bench.ready(target, &cell.workload, &label)?;
        let seed = schedule::data_seed(self.plan, 0);
        let cpus = self.bench.client_cpus(&ready);
        let offered = Offered { kv, load: &cell.load, seed, cpus, plan: self.plan };
        let left = offered.open(&ready).and_then(|store| {
            ready.will_write(store.names(), kv.keys);
            self.probes(&store, &mut ready)
        });
        let left = left.map_err(|failure| explain(failure, &ready));
        // Also after a fault or an interruption: what is left in an existing store is ours.
        let cleaned = ready.finish(self.stop);
        Ok(match (left?, cleaned) {
            // What was found stands, whatever became of the store.
            (Left::Over(because), Err(failure)) => Left::Over(format!("{because}; {failure}")),
            // And what broke cannot always be cleaned.
            (left, _) => left,
        })
    }

    fn probes(&mut self, store: &Opened<'_>, ready: &mut Ready) -> Result<Left, Failure> {
        let version = ready.version()?;
        let mut meter = ServerMeter::new(&self.bench, ready);
        let (sinks, cell) = (&mut *self.sinks, self.what.cell);
        told_start(sinks, cell, "filling", 0.0);
        let generator = &self.bench.setup.pinning.generator;
        let watched = || Watched::of(ready, generator);
        let (filled, filled_up) = room::watched(watched(), self.stop, |stop| {
            store.fill(watched().as_mut(), stop, &mut meter, &mut |p| {
                recorded::events(&cell.id, p).for_each(|event| sinks.tell(&event));
            })
        });
        if let Some(failure) = filled_up.or(filled.failure) {
            return Err(failure);
        }
        loop {
            if self.stop.load(Ordering::Relaxed) {
                return Ok(Left::Over("interrupted".into()));
            }
            let Some(step) = self.next() else { return Ok(Left::Over(OVER.into())) };
            let number = self.trials.len() as u32;
            told_start(self.sinks, cell, &words(step, number), self.done_share());
            let watched = Watched::of(ready, &self.bench.setup.pinning.generator);
            let (probed, filled_up) = room::watched(watched, self.stop, |stop| {
                self.probe(store, (ready, &version), step, stop)
            });
            if let Some(failure) = filled_up {
                return Err(failure);
            }
            let Some(probed) = probed else {
                return Ok(Left::Over("interrupted".into()));
            };
            let Measured { trial, intervals, samples } = probed;
            let broke = trial.failure.is_some();
            self.take(trial);
            if !samples.is_empty() {
                let cell = cell.id.clone();
                self.sinks.tell(&Event::Samples { block: number, cell, samples });
            }
            if !intervals.is_empty() {
                let cell = Search::cell_id(&cell.id, step);
                self.sinks.tell(&Event::Intervals { cell, intervals });
            }
            if broke {
                return Ok(Left::Broken);
            }
        }
    }

    /// One probe of a store of that version; `None` when it was stopped.
    fn probe(
        &mut self,
        store: &Opened<'_>,
        (ready, version): (&mut Ready, &str),
        step: Step,
        ends: &AtomicBool,
    ) -> Option<Measured> {
        let (clocks, empty) = (Clocks::now(), self.empty(step));
        let begun = clocks.monotonic;
        let What { search, cell, .. } = self.what;
        let phase = phase_of(self.what.phase, step);
        let mut offer = store.offer(&phase, &load_of(search, &cell.load, step));
        // The first load drew what filled the store.
        offer.number = u64::from(empty.block) + 1;
        if step.purpose != Purpose::Peak {
            offer.limits_ns = search.limits_ns();
        }
        let mut meter = ServerMeter::new(&self.bench, ready);
        let servers = ProcessTree::new(&ready.server_pids());
        let generator = &self.bench.setup.pinning.generator;
        let sampler = Sampler::start(ready, generator, begun);
        let recorder = NoiseRecorder::start(generator, &self.bench.setup.pinning.server, &servers);
        let removals = Removals::before(ready);
        let mut finished = Finished::default();
        let sinks = &mut *self.sinks;
        let progress = &mut |p: load::Progress<'_>| {
            sampler.events(&cell.id, p).for_each(|event| sinks.tell(&event));
        };
        store.measure(&phase, &offer, ends, &mut meter, progress, &mut finished);
        let (noise, taken) = (recorder.stop(), sampler.stop());
        if finished.interrupted {
            return None;
        }
        read_back::of_keys(ready, store, &mut finished, ends);
        let read_back = removals.explain(finished.read_back.take(), ready, &cell.workload);
        let (took_ns, clock_step_ms) = clocks.since();
        let mut trial = empty;
        finished.record(begun, &mut trial);
        let trial = Trial {
            took_ns,
            clock_step_ms,
            version: Some(version.into()),
            read_back,
            noise: Noise { run_delay_share: run_delay_share(&trial.points, cell), ..noise },
            failure: finished.failure.map(|failure| explain(failure, ready)).or_else(|| {
                // A client may reconnect to nothing for as long as the probe lasts.
                ready.server_died().map(|(_, death)| Failure {
                    class: ErrorClass::Closed,
                    message: format!("the server died: it {death}"),
                })
            }),
            ..trial
        };
        Some(Measured { trial, intervals: finished.intervals, samples: taken })
    }

    /// About how much of the search is done: a bracket of eight probes, and the confirmation.
    fn done_share(&self) -> f64 {
        let is = |trial: &Trial, purpose| trial.probe.is_some_and(|p| p.purpose == purpose);
        let count = |purpose| self.trials.iter().filter(|t| is(t, purpose)).count() as f64;
        let all = f64::from(self.settings.rounds) * 3.0;
        let confirmed = count(Purpose::Confirm);
        let bracket = if confirmed > 0.0 { 8.0 } else { count(Purpose::Bracket).min(7.5) };
        ((bracket + confirmed * 2.0) / (8.0 + all * 2.0)).min(0.99)
    }
}

/// What a probe is for, for people.
fn words(step: Step, number: u32) -> String {
    let number = number + 1;
    match step.purpose {
        Purpose::Peak => format!("probe {number}, the peak"),
        Purpose::Rest => format!("probe {number}, rest at {}/s", step.rate_per_s),
        Purpose::Bracket => format!("probe {number}, bracket at {}/s", step.rate_per_s),
        Purpose::Confirm => format!("probe {number}, confirmation at {}/s", step.rate_per_s),
        Purpose::Hold => format!("probe {number}, a long one at {}/s", step.rate_per_s),
    }
}

fn phase_of(phase: &Phase, step: Step) -> Phase {
    let is_rest = step.purpose == Purpose::Rest;
    let warmup_ns = if is_rest { REST_WARMUP_NS.min(phase.warmup_ns) } else { phase.warmup_ns };
    Phase { warmup_ns, stop: Stop::AfterNs(step.length_ns), ..phase.clone() }
}

/// The load of a probe, by the clients of the cell's.
fn load_of(search: &Search, of_cell: &Load, step: Step) -> Load {
    match step.purpose {
        Purpose::Peak => of_cell.clone(),
        _ => search.load(of_cell, step.rate_per_s),
    }
}

fn told_start(sinks: &mut Sinks<'_>, cell: &Cell, what: &str, done_share: f64) {
    let cell = format!("{}  {what}", cell.target);
    sinks.tell(&Event::TrialStarted { block: 0, cell, done_share, left_ns: 0 });
}
