//! Runs a key-value cell on the wire engine: parses its texts, fills its keys, runs its phases.

use drivers::wire::{Access, Dialect};
use load::wire::{Inserting, Offer, Operation, Outcome, ProgressSnapshot, Until, Work};
use load::{Finished, Latest, Meter, PhaseRecord, Progress};
use model::{Action, Control, ErrorClass, FILL, Failure, Kv, Load, PEAK, Phase, Plan, Point, Stop};
use rig::Role;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};
use workloads::kv::{Distribution, Inserts, KeyChoice, KeyNames, Mix, Sizes, Values, values_of};

use crate::actions::{Acting, Subjects};
use crate::demand;
use crate::faults::FaultPlace;
use crate::names::{self, unreadable};
use crate::pacing;
use crate::ready::Ready;
use crate::recorded;
use crate::room::Watched;

/// Requests in flight per client while filling.
const FILL_PIPELINE: u32 = 16;
/// Maximum number of clients that fill.
const FILL_CLIENTS_MAX: u32 = 16;
/// A fill step writes at most this fraction (1/4) of the remaining bytes, since the estimated size
/// of a key may be wrong by that factor.
const STEP_OF_ROOM: f64 = 4.0;

/// A cell with the run's seed, CPUs and plan.
pub(crate) struct Offered<'a> {
    pub(crate) kv: &'a Kv,
    pub(crate) load: &'a Load,
    pub(crate) seed: u64,
    pub(crate) cpus: Vec<usize>,
    pub(crate) plan: &'a Plan,
}

/// A cell ready to be measured.
pub(crate) struct Opened<'a> {
    offered: Offered<'a>,
    access: Access,
    work: Work,
    fill: Option<Work>,
    filled: u64,
    /// Estimated size of a key on the server, bytes.
    key_bytes: f64,
    /// Zero of the clock for the writes of all its loads.
    since: Instant,
    /// Stores and servers that planned actions apply to.
    subjects: Subjects,
}

impl<'a> Offered<'a> {
    /// Parses the cell's texts and resolves the servers' addresses. Does not connect yet.
    pub(crate) fn open(self, ready: &Ready) -> Result<Opened<'a>, Failure> {
        let timeout = Duration::from_nanos(self.plan.timeout_ns);
        let access = drivers::wire::access(ready.endpoint(), timeout)?;
        let opened = self.open_at(access, ready.prefix())?;
        let server = |(_, server): (_, &rig::Server)| (server.endpoint().clone(), server.process());
        let stores = ready.endpoints().cloned().collect();
        // A proxy has no role that could change.
        let servers = ready.servers().filter(|(role, _)| *role != Role::Proxy).map(server);
        let faults = FaultPlace::new(servers.collect(), ready.groups.cable());
        let subjects = Subjects { stores, faults, command: ready.fault_command.clone() };
        Ok(Opened { subjects, ..opened })
    }

    /// The same for servers that are not a target. `own` is the prefix of every key.
    pub(crate) fn open_at(self, access: Access, own: &str) -> Result<Opened<'a>, Failure> {
        let filled = self.kv.filled_keys();
        let names = names::of(self.kv, own, self.seed).map_err(unreadable)?;
        let work = self.work(access.dialect, &names)?;
        let fill = match filled {
            0 => None,
            filled => Some(self.filling(access.dialect, &names, &work, filled)?),
        };
        let key_bytes = demand::key_bytes(self.kv, own)?;
        let since = Instant::now();
        let subjects = Subjects::default();
        Ok(Opened { offered: self, access, work, fill, filled, key_bytes, since, subjects })
    }

    fn work(&self, dialect: Dialect, names: &KeyNames) -> Result<Work, Failure> {
        let kv = self.kv;
        let (sizes, values) = values_of(&kv.value_bytes, self.seed).map_err(unreadable)?;
        let ttl_s = (kv.ttl_s > 0).then_some(kv.ttl_s);
        let operations = kv.operations.iter().map(|operation| {
            let command = operation.command.as_deref();
            let name = &operation.name;
            let spelled = drivers::kv::operation(dialect, name, command, ttl_s, names, &sizes);
            spelled.map_err(unreadable)
        });
        let distribution: Distribution = kv.distribution.parse().map_err(unreadable)?;
        Ok(Work {
            operations: operations.collect::<Result<Vec<Operation>, Failure>>()?,
            mix: Mix::new(&vec![1.0; kv.operations.len()]).map_err(unreadable)?,
            keys: KeyChoice::new(distribution, kv.keys).map_err(unreadable)?,
            names: names.clone(),
            sizes,
            values: Arc::new(values),
            seed: self.seed,
            verify_one_in: kv.verify_one_in,
            inserting: None,
            follows: kv.follows,
            keeps_writes: demand::unfollowed(kv).is_none(),
        })
    }

    /// Work that writes the first `filled` keys in order.
    fn filling(
        &self,
        dialect: Dialect,
        names: &KeyNames,
        work: &Work,
        filled: u64,
    ) -> Result<Work, Failure> {
        let ttl_s = (self.kv.ttl_s > 0).then_some(self.kv.ttl_s);
        let (name, command) = match self.kv.fill() {
            Some(command) => (FILL, Some(command)),
            None => ("set", None),
        };
        let write = dialect.operation(name, command, ttl_s, names, &work.sizes);
        Ok(Work {
            operations: vec![write.map_err(unreadable)?],
            mix: Mix::new(&[1.0]).map_err(unreadable)?,
            keys: KeyChoice::new(Distribution::Sequential, filled).map_err(unreadable)?,
            follows: false,
            ..work.clone()
        })
    }
}

impl Opened<'_> {
    /// Names of the keys that it may write.
    pub(crate) fn names(&self) -> &KeyNames {
        &self.work.names
    }

    /// Values, their sizes, and the seed of both.
    pub(crate) fn data(&self) -> (&Values, &Sizes, u64) {
        (&self.work.values, &self.work.sizes, self.work.seed)
    }

    /// The workload.
    pub(crate) fn kv(&self) -> &Kv {
        self.offered.kv
    }

    /// The load.
    pub(crate) fn load(&self) -> &Load {
        self.offered.load
    }

    /// Converts nanoseconds on the clock of writes to an instant.
    pub(crate) fn instant(&self, ns: u64) -> Instant {
        self.since + Duration::from_nanos(ns)
    }

    /// Fills, then runs every phase.
    pub(crate) fn run(
        &self,
        watched: Option<&mut Watched>,
        stop: &AtomicBool,
        meter: &mut dyn Meter,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Finished {
        let mut finished = self.fill(watched, stop, meter, progress);
        meter.filled();
        for phase in &self.offered.kv.phases {
            if finished.failure.is_some() || finished.interrupted {
                break;
            }
            let Some(load) = self.load_of(phase, &finished) else {
                finished.failure = Some(nothing_answered(&finished));
                break;
            };
            if let Some(control) = &phase.control {
                self.write_own_keys(control, stop, meter, progress, &mut finished);
                if finished.failure.is_some() || finished.interrupted {
                    break;
                }
            }
            let offer = self.offer(phase, &load);
            self.measure(phase, &offer, stop, meter, progress, &mut finished);
        }
        finished
    }

    /// Load of a phase. The rates of a ramp and of its control phases follow from the rate reached
    /// in phase [`PEAK`]; `None` if that is zero.
    fn load_of(&self, phase: &Phase, finished: &Finished) -> Option<Load> {
        let load = self.offered.load.in_phase(&phase.name);
        let control = phase.control.as_ref();
        let is_part = control.is_some() && load.is_planned();
        let needs_peak = is_part || load.needs_peak();
        let peak = finished.phase(PEAK).and_then(PhaseRecord::whole);
        let peak_per_s = peak.map_or(0.0, |whole| whole.rate_per_s);
        if needs_peak && peak_per_s <= 0.0 {
            return None;
        }
        Some(match control {
            Some(control) => {
                let kv = self.offered.kv;
                let planned = if kv.follows { kv.operations.len() } else { 1 };
                let at_once = planned / kv.operations_of_one_paced(phase);
                load.part(control.permille, peak_per_s, at_once.max(1) as u32)
            }
            None => load.at_peak(peak_per_s),
        })
    }

    /// Writes the keys of a phase that has its own keys, so that its reads hit.
    fn write_own_keys(
        &self,
        control: &Control,
        stop: &AtomicBool,
        meter: &mut dyn Meter,
        progress: &mut dyn FnMut(Progress<'_>),
        finished: &mut Finished,
    ) {
        let keys = control.keys.min(self.offered.kv.keys);
        let filling = self.offered.filling(self.access.dialect, &self.work.names, &self.work, keys);
        match filling {
            Ok(work) => {
                let mut report =
                    recorded::progress(FILL, self.offered.plan.timeout_ns, |_| None, progress);
                let mut outcome = self.one(&self.fill_offer(keys), &work, stop, meter, &mut report);
                ended(finished, &mut outcome);
            }
            Err(failure) => finished.failure = Some(failure),
        }
    }

    /// Writes the keys that the phases read, in steps. Checks before each step that there is room.
    pub(crate) fn fill(
        &self,
        mut watched: Option<&mut Watched>,
        stop: &AtomicBool,
        meter: &mut dyn Meter,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Finished {
        let mut finished = Finished::default();
        let Some(fill) = &self.fill else { return finished };
        let mut report = recorded::progress(FILL, self.offered.plan.timeout_ns, |_| None, progress);
        let mut first = 0;
        while first < self.filled && finished.failure.is_none() && !finished.interrupted {
            let batch = match watched.as_deref_mut() {
                Some(watched) => self.step(watched, self.filled - first),
                None => Ok(self.filled),
            };
            let keys = |count| KeyChoice::consecutive(first, count).map_err(unreadable);
            match batch.and_then(|count| Ok((count, keys(count)?))) {
                Ok((count, keys)) => {
                    let work = Work { keys, ..fill.clone() };
                    let offer = self.fill_offer(count);
                    let mut outcome = self.one(&offer, &work, stop, meter, &mut report);
                    ended(&mut finished, &mut outcome);
                    let names: Vec<&str> = work.operations.iter().map(|o| &*o.name).collect();
                    let written = outcome.into_phase(FILL, &names);
                    match &mut finished.fill {
                        Some(fill) => fill.followed_by(written),
                        None => finished.fill = Some(written),
                    }
                    first += count;
                }
                Err(failure) => finished.failure = Some(failure),
            }
        }
        finished
    }

    /// Keys that may be written before memory is checked again: at least 1, at most `missing`.
    fn step(&self, watched: &mut Watched, missing: u64) -> Result<u64, Failure> {
        let left_bytes = watched.left_bytes()?;
        let keys = left_bytes as f64 / STEP_OF_ROOM / self.key_bytes;
        Ok((keys as u64).clamp(1, missing))
    }

    /// Runs one phase and adds its results to `finished`.
    pub(crate) fn measure(
        &self,
        phase: &Phase,
        offer: &Offer,
        stop: &AtomicBool,
        meter: &mut dyn Meter,
        progress: &mut dyn FnMut(Progress<'_>),
        finished: &mut Finished,
    ) {
        let work = match self.of_phase(phase) {
            Ok(work) => work,
            Err(failure) => {
                finished.failure = Some(failure);
                return;
            }
        };
        let names: Vec<&str> = work.operations.iter().map(|o| o.name.as_str()).collect();
        let each = self.offered.kv.operations_of_one_paced(phase) as f64;
        let latest = |snapshot: &ProgressSnapshot<'_>| {
            let latest = recorded::latest(snapshot, (&*phase.name, &names[..]), offer);
            let planned_per_s = latest.planned_per_s.map(|p| p * each);
            Some(Latest { planned_per_s, ..latest })
        };
        let mut report = recorded::progress(&phase.name, offer.timeout_ns, latest, progress);
        let begins = Instant::now() + Duration::from_nanos(phase.warmup_ns);
        let of_phase = |action: &&Action| action.phase == phase.name;
        let actions = self.kv().actions.iter().filter(of_phase).cloned().collect();
        let acting = Acting::start(actions, self.subjects.clone(), begins);
        let mut outcome = self.one(offer, &work, stop, meter, &mut report);
        let acted = acting.map_or(Ok(Vec::new()), Acting::stop);
        ended(finished, &mut outcome);
        let mut undone = None;
        match acted {
            Ok(happened) => finished.events.extend(happened),
            Err(full) if full.class == ErrorClass::Full => undone = Some(full), // a result
            Err(failure) => finished.failure = finished.failure.take().or(Some(failure)),
        }
        let ended = finished.failure.clone().filter(Failure::is_a_result);
        let failed = finished.failure.is_some() && ended.is_none();
        let mut phase = outcome.into_phase(&phase.name, &names);
        if let Some(last) = phase.points.last_mut().filter(|_| finished.interrupted) {
            let (class, message) = (ErrorClass::Timeout, "it was stopped".into());
            last.failure = Some(Failure { class, message });
        }
        if let Some(last) = phase.points.last_mut().filter(|last| last.stage.is_none()) {
            last.failure = ended.or(last.failure.take()).or(undone);
        }
        // If a load with stages failed, keep the stages that were complete.
        let is_over = |p: &Point| p.length_ns > 0 && (!failed || p.stage.is_some());
        if phase.points.iter().any(is_over) {
            finished.phases.push(phase);
        }
    }

    /// Runs one load.
    fn one(
        &self,
        offer: &Offer,
        work: &Work,
        stop: &AtomicBool,
        meter: &mut dyn Meter,
        watcher: &mut dyn FnMut(ProgressSnapshot<'_>),
    ) -> Outcome {
        let begun = self.since.elapsed();
        let Access { dialect, servers } = &self.access;
        let mut outcome = dialect.run(offer, work, servers, stop, meter, watcher);
        if let Some(written) = &mut outcome.written {
            written.count_from_earlier(begun.as_nanos() as u64);
        }
        outcome
    }

    /// Work of a phase: its operations by weight.
    fn of_phase(&self, phase: &Phase) -> Result<Work, Failure> {
        let weighted = |o: &&Operation| phase.mix.get(&o.name).is_some_and(|w| *w > 0.0);
        let mut operations: Vec<Operation> =
            self.work.operations.iter().filter(weighted).cloned().collect();
        let (mut keys, mut follows) = (self.work.keys.clone(), self.work.follows);
        if let Some(control) = &phase.control {
            let kv = self.offered.kv;
            let distribution: Distribution = kv.distribution.parse().map_err(unreadable)?;
            keys = KeyChoice::new(distribution, control.keys.min(kv.keys)).map_err(unreadable)?;
            follows = !control.sequence.is_empty();
            if follows {
                let named = |name: &String| operations.iter().find(|o| o.name == *name).cloned();
                operations = control.sequence.iter().filter_map(named).collect();
            }
        }
        let weights: Vec<f64> =
            operations.iter().filter_map(|o| phase.mix.get(&o.name).copied()).collect();
        let mut mix = Mix::new(&weights).map_err(unreadable)?;
        let at = operations.iter().position(|o| o.name == drivers::kv::INSERT);
        let inserting = at.map(|operation| Inserting {
            operation,
            which: Inserts::new(mix.shares()[operation].min(1.0)),
        });
        if let Some(Inserting { operation, .. }) = inserting.filter(|_| operations.len() > 1) {
            let others =
                weights.iter().enumerate().map(|(i, w)| if i == operation { 0.0 } else { *w });
            mix = Mix::new(&others.collect::<Vec<f64>>()).map_err(unreadable)?;
        }
        Ok(Work { operations, mix, keys, inserting, follows, ..self.work.clone() })
    }

    /// Parameters of a phase under a load for the wire engine.
    pub(crate) fn offer(&self, phase: &Phase, load: &Load) -> Offer {
        let kv = self.offered.kv;
        let until = match phase.stop {
            Stop::AfterNs(ns) => Until::AfterNs(ns),
            Stop::Count(of_each) => Until::Requests(of_each * u64::from(load.clients)),
        };
        Offer {
            threads: kv.threads.clamp(1, load.clients),
            clients: load.clients,
            pipeline: load.pipeline,
            pacing: pacing::of_phase(kv, phase, load),
            until,
            warmup_ns: phase.warmup_ns,
            timeout_ns: self.offered.plan.timeout_ns,
            stall_ns: self.offered.plan.stall_ns,
            cpus: self.offered.cpus.clone(),
            spin: !self.offered.cpus.is_empty(),
            reconnects: true,
            stop_on_error_reply: false,
            hangs_up: load.reconnects,
            limits_ns: Vec::new(),
            number: 0,
        }
    }

    fn fill_offer(&self, keys: u64) -> Offer {
        Offer {
            threads: 1,
            // No more clients than the load has, so that the fill never exceeds its connections.
            clients: self.offered.load.clients.min(FILL_CLIENTS_MAX),
            pipeline: FILL_PIPELINE,
            pacing: pacing::of_fill(self.offered.kv),
            until: Until::Requests(keys),
            warmup_ns: 0,
            timeout_ns: self.offered.plan.timeout_ns,
            stall_ns: self.offered.plan.stall_ns,
            cpus: self.offered.cpus.clone(),
            spin: false,
            reconnects: false,
            stop_on_error_reply: true,
            hangs_up: false,
            limits_ns: Vec::new(),
            number: 0,
        }
    }
}

/// The failure of a ramp whose phase [`PEAK`] got no successful reply, with the store's error.
fn nothing_answered(finished: &Finished) -> Failure {
    let peak = finished.phase(PEAK).and_then(PhaseRecord::whole);
    let counts = peak.map(|whole| &whole.counts);
    let most = counts.and_then(|c| c.errors_by_class.iter().max_by_key(|(_, n)| **n));
    let class = most.map_or(ErrorClass::Other, |(class, _)| *class);
    let words = counts.and_then(|counts| counts.error_examples.get(&class));
    let said = words.map_or_else(String::new, |words| format!(": {words}"));
    let message = format!("no request succeeded in phase `peak`{said}");
    Failure { class, message }
}

/// Records how a load ended.
fn ended(finished: &mut Finished, outcome: &mut Outcome) {
    if let Some(written) = outcome.written.take() {
        finished.written.get_or_insert_default().followed_by(written);
    }
    finished.interrupted |= outcome.interrupted;
    finished.failure.clone_from(&outcome.failure);
}
