//! Runs a key-value cell on the wire engine: parses its texts, fills its keys, runs its phases.

use drivers::wire::Access;
use load::wire::{Offer, Part, ProgressSnapshot, Until, Work};
use load::{Finished, Latest, Meter, PhaseRecord, Progress};
use model::{
    Action, Control, Endpoint, ErrorClass, FILL, Failure, Kv, Load, PEAK, Phase, Plan, Point, Stop,
};
use rig::Role;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};
use workloads::kv::{KeyNames, Sizes, Values};

use crate::actions::{Acting, Subjects};
use crate::demand;
use crate::faults::FaultPlace;
use crate::fleet::{self, Fleet, Job, Offered, Requests, What};
use crate::kv_work;
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

/// A cell with the run's seed, CPUs and limits of time.
pub(crate) struct Chosen<'a> {
    pub(crate) kv: &'a Kv,
    pub(crate) load: &'a Load,
    pub(crate) seed: u64,
    pub(crate) cpus: Vec<usize>,
    /// Timeout of a request, nanoseconds.
    pub(crate) timeout_ns: u64,
    /// Time without any answer after which a load ends, nanoseconds; 0 for no limit.
    pub(crate) stall_ns: u64,
    /// Workers that offer its loads; `None` if this process does.
    pub(crate) fleet: Option<&'a Fleet>,
}

/// A cell ready to be measured.
pub(crate) struct Opened<'a> {
    offered: Chosen<'a>,
    access: Access,
    work: Work,
    /// The workers that offer its loads, with the store's endpoint and the prefix of its keys;
    /// `None` if this process does.
    fleet: Option<(&'a Fleet, Endpoint, String)>,
    filled: u64,
    /// Estimated size of a key on the server, bytes.
    key_bytes: f64,
    /// Zero of the clock for the writes of all its loads.
    since: Instant,
    /// Stores and servers that planned actions apply to.
    subjects: Subjects,
}

/// One load: its phase, work and settings.
struct One<'a> {
    /// Name of its phase.
    name: &'a str,
    what: What,
    offer: &'a Offer,
    work: &'a Work,
    /// Operations for each paced one.
    each: f64,
}

impl<'a> Chosen<'a> {
    /// A cell whose loads this process offers.
    pub(crate) fn new(
        (kv, load): (&'a Kv, &'a Load),
        seed: u64,
        cpus: Vec<usize>,
        plan: &Plan,
    ) -> Self {
        let (timeout_ns, stall_ns) = (plan.timeout_ns, plan.stall_ns);
        Self { kv, load, seed, cpus, timeout_ns, stall_ns, fleet: None }
    }

    /// The same, with loads offered by workers, if there are any.
    pub(crate) fn by(self, fleet: Option<&'a Fleet>) -> Self {
        Self { fleet, ..self }
    }

    /// Parses the cell's texts and resolves the servers' addresses. Does not connect yet.
    pub(crate) fn open(self, ready: &Ready) -> Result<Opened<'a>, Failure> {
        let timeout = Duration::from_nanos(self.timeout_ns);
        let access = drivers::wire::access(ready.endpoint(), timeout)?;
        let opened = self.open_at(access, ready.prefix())?;
        let server = |(_, server): (_, &rig::Server)| (server.endpoint().clone(), server.process());
        let stores = ready.endpoints().cloned().collect();
        // A proxy has no role that could change.
        let servers = ready.servers().filter(|(role, _)| *role != Role::Proxy).map(server);
        let faults = FaultPlace::new(servers.collect(), ready.groups.cable());
        let subjects = Subjects { stores, faults, command: ready.fault_command.clone() };
        let with = |fleet| (fleet, ready.endpoint().clone(), ready.prefix().to_string());
        let fleet = opened.offered.fleet.map(with);
        Ok(Opened { fleet, subjects, ..opened })
    }

    /// The same for servers that are not a target. `own` is the prefix of every key.
    pub(crate) fn open_at(self, access: Access, own: &str) -> Result<Opened<'a>, Failure> {
        let filled = self.kv.filled_keys();
        let names = names::of(self.kv, own, self.seed).map_err(unreadable)?;
        let work = kv_work::work(self.kv, self.seed, access.dialect, &names)?;
        if filled > 0 {
            // Reports what cannot be filled before anything is written.
            kv_work::filling(self.kv, access.dialect, &work, (0, filled))?;
        }
        let key_bytes = demand::key_bytes(self.kv, own)?;
        let since = Instant::now();
        let (subjects, fleet) = (Subjects::default(), None);
        Ok(Opened { offered: self, access, work, fleet, filled, key_bytes, since, subjects })
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
        match self.filled(0, keys, stop, meter, progress) {
            Ok(mut offered) => ended(finished, &mut offered),
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
        let mut first = 0;
        while first < self.filled && finished.failure.is_none() && !finished.interrupted {
            let batch = match watched.as_deref_mut() {
                Some(watched) => self.step(watched, self.filled - first),
                None => Ok(self.filled),
            };
            let written = batch.and_then(|count| {
                Ok((count, self.filled(first, count, stop, &mut *meter, &mut *progress)?))
            });
            match written {
                Ok((count, mut offered)) => {
                    ended(&mut finished, &mut offered);
                    match &mut finished.fill {
                        Some(fill) => fill.followed_by(offered.phase),
                        None => finished.fill = Some(offered.phase),
                    }
                    first += count;
                }
                Err(failure) => finished.failure = Some(failure),
            }
        }
        finished
    }

    /// Writes `keys` keys from `first` on.
    fn filled(
        &self,
        first: u64,
        keys: u64,
        stop: &AtomicBool,
        meter: &mut dyn Meter,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Offered, Failure> {
        let dialect = self.access.dialect;
        let work = kv_work::filling(self.offered.kv, dialect, &self.work, (first, keys))?;
        let (offer, what) = (self.fill_offer(keys), What::Fill { first, keys });
        let one = One { name: FILL, what, offer: &offer, work: &work, each: 1.0 };
        Ok(self.one(&one, stop, meter, progress))
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
        let work = match kv_work::of_phase(&self.work, self.offered.kv, phase) {
            Ok(work) => work,
            Err(failure) => {
                finished.failure = Some(failure);
                return;
            }
        };
        let each = self.offered.kv.operations_of_one_paced(phase) as f64;
        let what = What::Phase(Box::new(phase.clone()));
        let one = One { name: &phase.name, what, offer, work: &work, each };
        let begins = Instant::now() + Duration::from_nanos(phase.warmup_ns);
        let of_phase = |action: &&Action| action.phase == phase.name;
        let actions = self.kv().actions.iter().filter(of_phase).cloned().collect();
        let acting = Acting::start(actions, self.subjects.clone(), begins);
        let mut offered = self.one(&one, stop, meter, progress);
        let acted = acting.map_or(Ok(Vec::new()), Acting::stop);
        ended(finished, &mut offered);
        let mut undone = None;
        match acted {
            Ok(happened) => finished.events.extend(happened),
            Err(full) if full.class == ErrorClass::Full => undone = Some(full), // a result
            Err(failure) => finished.failure = finished.failure.take().or(Some(failure)),
        }
        let ended = finished.failure.clone().filter(Failure::is_a_result);
        let failed = finished.failure.is_some() && ended.is_none();
        let mut phase = offered.phase;
        if let Some(last) = phase.points.last_mut().filter(|_| finished.interrupted) {
            let (class, message) = (ErrorClass::Timeout, "it was stopped".into());
            // A failure of the trial is why.
            last.failure = finished.failure.clone().or(Some(Failure { class, message }));
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

    /// Runs one load, by this process or a fleet.
    fn one(
        &self,
        one: &One<'_>,
        stop: &AtomicBool,
        meter: &mut dyn Meter,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Offered {
        let One { name, what, offer, work, each } = one;
        if let Some((fleet, endpoint, prefix)) = &self.fleet {
            let requests = Requests::Cell {
                prefix: prefix.clone(),
                kv: Box::new(self.offered.kv.clone()),
                seed: self.offered.seed,
                what: what.clone(),
            };
            let load = fleet::Load::Requests { endpoint, requests, offer, work };
            let job = Job { load, since: self.since, phase: name };
            return fleet.offer(&job, stop, meter, progress);
        }
        let begun = self.since.elapsed();
        let names: Vec<&str> = work.operations.iter().map(|o| o.name.as_str()).collect();
        let is_fill = matches!(what, What::Fill { .. });
        let latest = |snapshot: &ProgressSnapshot<'_>| {
            let latest = recorded::latest(snapshot, (name, &names[..]), offer);
            let planned_per_s = latest.planned_per_s.map(|p| p * each);
            (!is_fill).then_some(Latest { planned_per_s, ..latest })
        };
        let mut report = recorded::progress(name, offer.timeout_ns, latest, progress);
        let Access { dialect, servers } = &self.access;
        let mut outcome = dialect.run(offer, work, servers, stop, meter, &mut report);
        drop(report);
        if let Some(written) = &mut outcome.written {
            written.count_from_earlier(begun.as_nanos() as u64);
        }
        Offered {
            written: outcome.written.take(),
            read_back: None,
            failure: outcome.failure.take(),
            interrupted: outcome.interrupted,
            phase: outcome.into_phase(name, &names),
        }
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
            part: Part::default(),
            clients: load.clients,
            pipeline: load.pipeline,
            pacing: pacing::of_phase(kv, phase, load),
            until,
            warmup_ns: phase.warmup_ns,
            timeout_ns: self.offered.timeout_ns,
            stall_ns: self.offered.stall_ns,
            cpus: self.offered.cpus.clone(),
            spin: !self.offered.cpus.is_empty(),
            reconnects: true,
            stop_on_error_reply: false,
            hangs_up: load.reconnects,
            limits_ns: Vec::new(),
            number: 0,
        }
    }

    /// Clients that fill: at least one for each thread of a fleet.
    fn fill_clients(&self) -> u32 {
        let threads = self.fleet.as_ref().map_or(1, |(fleet, ..)| fleet.names().count() as u32);
        self.offered.load.clients.min(FILL_CLIENTS_MAX.max(threads))
    }

    fn fill_offer(&self, keys: u64) -> Offer {
        Offer {
            threads: 1,
            part: Part::default(),
            // No more clients than the load has, so that the fill never exceeds its connections.
            clients: self.fill_clients(),
            pipeline: FILL_PIPELINE,
            pacing: pacing::of_fill(self.offered.kv),
            until: Until::Requests(keys),
            warmup_ns: 0,
            timeout_ns: self.offered.timeout_ns,
            stall_ns: self.offered.stall_ns,
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
fn ended(finished: &mut Finished, offered: &mut Offered) {
    if let Some(written) = offered.written.take() {
        finished.written.get_or_insert_default().followed_by(written);
    }
    finished.interrupted |= offered.interrupted;
    finished.failure.clone_from(&offered.failure);
}
