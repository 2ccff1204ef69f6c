//! The blocking-client engine: one thread per client, each with its own connection.
//!
//! Under a closed load, a client sends its next operation when the previous one is answered and its
//! think time is over. So the intended start of a call is the time at which it is ready to be sent.
//! If drawing values is timed, that time precedes the drawing; then response and service time
//! differ. Under planned arrivals, a client takes the next arrival of the common schedule and sends
//! it when it is due, or as soon as the client is free; response time counts from when it was due.
//!
//! A rate under a closed load is the number of operations divided by the time from the first
//! client's start to the last one's end, or to the mean of the clients' ends if the phase ends by
//! time. The share of that time that clients spent on untimed preparation and checks is subtracted,
//! so a costly check does not make a store look slow. So is the share in which they restored what
//! operations had removed. If clients restored, the rate is the number of clients divided by the
//! mean time per operation, without these shares. Rates of single clients are never summed: clients
//! that did not run concurrently would add up to more than the store answered.

use model::{ErrorClass, FILL, Failure, Point, ReadBack, Series};
use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::prctl;
use nix::unistd::Pid;
use std::panic::{self, AssertUnwindSafe};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};
use workloads::Client;
use workloads::kv::SAMPLED_MIN;

use crate::client_loop::ClientLoop;
use crate::crew::{Crew, Part};
use crate::meter::{Meter, PhaseRecord, Progress, ReadAt, Reading, Unmetered};
use crate::progress_reporter::ProgressReporter;
use crate::recorder::{CallTotals, Recorder, WholeOperation};
use crate::share::{ClientShare, StepTimes, nanos};
use crate::slowest;
use crate::stall::{Pulse, StallWatch};
use crate::state::{Settings, Shared, TICK};
use crate::step::{Planned, Step};

/// Time limit for reading written values back, which can be many or large.
pub const READ_BACK_MAX: Duration = Duration::from_secs(5);

/// Length of an interval in which fill operations are counted, nanoseconds.
const FILL_INTERVAL_NS: u64 = 100_000_000;

/// The clients of a load in this process, connected.
#[derive(Default)]
pub struct Clients {
    all: Vec<Member>,
    /// Names of the kinds of call.
    names: &'static [&'static str],
}

/// A client and its place in the load.
struct Member {
    client: Box<dyn Client>,
    /// Index of its last phase, and number of its operations there: they are numbered through all
    /// stages of a phase.
    phase: usize,
    operations: u64,
}

impl Clients {
    /// Clients before their fill.
    pub fn new(clients: Vec<Box<dyn Client>>) -> Self {
        let names = clients.first().map_or(&[][..], |client| client.operations());
        let member = |client| Member { client, phase: 0, operations: 0 };
        Self { all: clients.into_iter().map(member).collect(), names }
    }
}

/// A crew of clients in this process, each of which has a thread while it works.
pub struct Threads<'a> {
    clients: &'a mut Clients,
    settings: Settings<'a>,
}

impl<'a> Threads<'a> {
    /// The clients with settings.
    pub fn new(clients: &'a mut Clients, settings: Settings<'a>) -> Self {
        Self { clients, settings }
    }

    /// Runs `work` with every client on its own thread. All start together at a time that the meter
    /// gives, while `coordinate` takes their results.
    fn each<T: Send + Default, R>(
        &mut self,
        shared: &Shared<'_>,
        work: impl Fn(&mut Member, &Pulse) -> T + Sync,
        meter: &mut dyn Meter,
        coordinate: impl FnOnce(&Receiver<T>, &mut dyn Meter) -> R,
    ) -> R {
        thread::scope(|scope| {
            let (results, inbox) = mpsc::channel();
            for (member, pulse) in self.clients.all.iter_mut().zip(&shared.pulses) {
                let (results, work) = (results.clone(), &work);
                scope.spawn(move || {
                    shared.settle();
                    // First until all are there, then until the start.
                    shared.gate.wait();
                    shared.gate.wait();
                    // A closed channel means that the coordinator has given up.
                    let _ = results.send(shared.guarded(|| work(member, pulse)));
                });
            }
            drop(results);
            shared.gate.wait();
            let begins = meter.begins(shared.settings.stop);
            *shared.lock_begun() = begins;
            shared.gate.wait();
            coordinate(&inbox, meter)
        })
    }
}

impl Crew for Threads<'_> {
    /// `None` as the record if nothing was written.
    fn fill(&mut self, meter: &mut dyn Meter, progress: &mut dyn FnMut(Progress<'_>)) -> Part {
        let (settings, names, clients) =
            (self.settings, self.clients.names, self.clients.all.len());
        let shared = &Shared::new(settings, clients);
        let fill = |member: &mut Member, pulse: &Pulse| shared.fill(member.client.as_mut(), pulse);
        let (begun, length_ns, recorder) = self.each(shared, fill, meter, |inbox, meter| {
            let begun = *shared.lock_begun();
            let reporter = ProgressReporter::new(FILL, names, clients, settings.timeout_ns);
            let (_, recorder, _) = shared.collect(inbox, None, meter, reporter, progress);
            (begun, nanos(begun.elapsed()), recorder)
        });
        let (interval_ns, done_per_interval) = recorder.intervals();
        let series = Series {
            phase: FILL.into(),
            begun_ns: 0,
            interval_ns,
            done_per_interval,
            reads_per_interval: Vec::new(),
            failed_per_interval: Vec::new(),
            p99: Vec::new(),
        };
        let rate_per_s = recorder.answered() as f64 / (length_ns.max(1) as f64 / 1e9);
        let point = Point {
            phase: FILL.into(),
            length_ns,
            clients: clients as u32,
            operations: recorder.into_results(FILL, names, rate_per_s, &[]),
            ..Point::default()
        };
        let wrote = point.whole().is_some_and(|whole| whole.counts.total() > 0);
        let (begun, points) = (Some(begun), vec![point]);
        let record = PhaseRecord { begun, points, series, outages: Vec::new() };
        Part { record: wrote.then_some(record), failure: shared.failure() }
    }

    fn step(
        &mut self,
        step: &Step,
        first: Option<Instant>,
        meter: &mut dyn Meter,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Part {
        let (names, clients) = (self.clients.names, self.clients.all.len());
        let shared = &Shared::new(self.settings, clients);
        let planned = &Planned::of(step);
        let run = |member: &mut Member, pulse: &Pulse| {
            if planned.is_some() {
                // Threads wake up when an arrival is due, not up to 50 µs later. Without it they
                // are late.
                let _ = prctl::set_timerslack(1);
            }
            if member.phase != step.index {
                (member.phase, member.operations) = (step.index, 0);
            }
            let planned = (step, planned.as_ref());
            let client = ClientLoop::new(shared, (member.client.as_mut(), pulse), planned);
            let share = client.run(member.operations);
            member.operations = share.operations;
            share
        };
        let record = self.each(shared, run, meter, |inbox, meter| {
            let planned = planned.as_ref();
            shared.measured((step, planned, first), (names, clients, inbox), meter, progress)
        });
        Part { record, failure: shared.failure() }
    }

    fn read_back(&mut self) -> Option<ReadBack> {
        let clients = self.clients.all.len();
        let shared = &Shared::new(self.settings, clients);
        let read = |member: &mut Member, _: &Pulse| {
            shared.read_back(member.client.as_mut(), clients as u64)
        };
        let all = self.each(shared, read, &mut Unmetered, |inbox, _| {
            let mut all: Option<ReadBack> = None;
            for read in inbox.iter().flatten() {
                all.get_or_insert_default().merge(read);
            }
            all
        });
        all.filter(|_| !shared.is_over())
    }
}

/// A result of a client's thread.
trait Report {
    /// Its share of a step, if it is one.
    fn share(self) -> Option<ClientShare>;
}

impl Report for () {
    fn share(self) -> Option<ClientShare> {
        None
    }
}

impl Report for ClientShare {
    fn share(self) -> Option<ClientShare> {
        Some(self)
    }
}

/// Names of the kinds of call, number of clients, and their results.
type Inbox<'a> = (&'a [&'a str], usize, &'a Receiver<ClientShare>);

impl Shared<'_> {
    /// The coordinator's part of a step, after all clients have started.
    fn measured(
        &self,
        (step, planned, first): (&Step, Option<&Planned>, Option<Instant>),
        (names, clients, inbox): Inbox<'_>,
        meter: &mut dyn Meter,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Option<PhaseRecord> {
        let Step { phase, stage, .. } = step;
        self.wait(Duration::from_nanos(phase.warmup_ns));
        let (zero, before) = (Instant::now(), ReadAt::now(meter, 0));
        let reporter = ProgressReporter::new(&phase.name, names, clients, self.settings.timeout_ns);
        let per_s = step.planned_per_s();
        let from_ns = first.map_or(0, |first| nanos(zero.saturating_duration_since(first)));
        let reporter = reporter.at_stage(*stage, per_s, from_ns);
        // The backlog of planned arrivals is served after the measurement.
        let ends = step.planned_length().map(|length| zero + length);
        let (shares, recorder, at_end) = self.collect(inbox, ends, meter, reporter, progress);
        let (at, reading) = at_end.unwrap_or_else(|| (Instant::now(), meter.read()));
        let after = ReadAt { at_ns: nanos(at - zero), reading };
        let sum = |of: fn(&ClientShare) -> u64| shares.iter().map(of).sum::<u64>();
        let StepTimes { begun, length_ns, rate_per_s, own_share, restored } =
            StepTimes::of(&shares, step)?;
        let run_delay_ns = sum(|s| s.used.run_delay_ns);
        let (interval_ns, done_per_interval) = recorder.intervals();
        let call_totals: Vec<Vec<CallTotals>> =
            shares.iter().map(|s| s.call_totals.clone()).collect();
        let series = Series {
            phase: phase.name.clone(),
            begun_ns: 0,
            interval_ns,
            done_per_interval,
            reads_per_interval: recorder.reads_per_interval(),
            failed_per_interval: recorder.failed_per_interval().to_vec(),
            p99: Vec::new(),
        };
        let point = Point {
            phase: phase.name.clone(),
            stage: *stage,
            length_ns,
            planned_per_s: per_s,
            clients: clients as u32,
            operations: recorder.into_results(&phase.name, names, rate_per_s, &call_totals),
            unsent: planned.map_or(0, Planned::unsent),
            generator_cpu_ns: sum(|s| s.used.cpu_ns),
            generator_run_delay_ns: run_delay_ns,
            server_cpu_ns: before.server_cpu_ns(&after, length_ns),
            disturbance: before.disturbance(&after, run_delay_ns / shares.len().max(1) as u64),
            own_share,
            restored,
            failure: self.failure(),
            ..Point::default()
        };
        let (begun, points) = (Some(begun), vec![point]);
        Some(PhaseRecord { begun, points, series, outages: Vec::new() })
    }

    /// Waits until every client has reported, and reports progress during that time. Ends the load
    /// if the meter reports an error, or nothing is answered any more. Returns the clients'
    /// reports, their records, and the meter's reading at the planned end, if there is one.
    fn collect<T: Report>(
        &self,
        inbox: &Receiver<T>,
        mut ends: Option<Instant>,
        meter: &mut dyn Meter,
        mut reporter: ProgressReporter<'_>,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> (Vec<ClientShare>, Recorder, Option<(Instant, Reading)>) {
        let clients = self.pulses.len();
        let mut shares = Vec::with_capacity(clients);
        let (mut heard, mut at_end) = (0, None);
        let (zero, mut stall) = (Instant::now(), StallWatch::new(self.settings.stall_ns));
        while heard < clients {
            let now = Instant::now();
            if ends.is_some_and(|ends| ends <= now) {
                ends = None;
                at_end = Some((now, meter.read()));
            }
            let left = ends.map_or(TICK, |ends| ends.saturating_duration_since(now).min(TICK));
            match inbox.recv_timeout(left) {
                Ok(report) => {
                    shares.extend(report.share());
                    heard += 1;
                }
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    let stalled = || stall.look(&self.pulses, nanos(zero.elapsed()));
                    if let Some(Failure { class, message }) = meter.check().err().or_else(stalled) {
                        self.fail(class, message);
                    }
                    progress(reporter.take(&self.merged));
                }
            }
        }
        let recorder = reporter.end(&self.merged, progress);
        (shares, recorder, at_end)
    }

    /// Reads back this client's part of the sample.
    fn read_back(&self, client: &mut dyn Client, clients: u64) -> Option<ReadBack> {
        let (mut read_back, until) = (ReadBack::default(), Instant::now() + READ_BACK_MAX);
        for n in 0..SAMPLED_MIN.div_ceil(clients) {
            if self.is_over() {
                break;
            }
            if Instant::now() > until {
                read_back.out_of_time(READ_BACK_MAX);
                break;
            }
            match client.read_back(n, SAMPLED_MIN.div_ceil(clients)) {
                Ok(Some((held, name))) => read_back.count(held, || name),
                Ok(None) => {}
                Err(e) => {
                    read_back.unread = Some(e.to_string());
                    break;
                }
            }
        }
        (!self.is_over()).then_some(read_back)
    }

    /// Prepares the calling thread for a client.
    fn settle(&self) {
        if let Err(message) = pin_to(self.settings.cpus) {
            self.fail(ErrorClass::Other, message);
        }
    }

    /// Runs a client's work. A panic fails the trial instead of ending the process.
    fn guarded<T: Default>(&self, work: impl FnOnce() -> T) -> T {
        panic::catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
            self.fail(ErrorClass::Other, "a generator client panicked".into());
            T::default()
        })
    }

    fn fill(&self, client: &mut dyn Client, pulse: &Pulse) {
        let (begun, mut sent) = (*self.lock_begun(), Instant::now());
        let mut recorder = Recorder::new(0, FILL_INTERVAL_NS, slowest::interval_ns(None));
        while !self.is_over() {
            pulse.send();
            let filled = client.fill_next();
            pulse.end(filled.is_ok());
            match filled {
                Ok(true) => {
                    let now = Instant::now();
                    let (due_ns, service_ns) = (nanos(sent - begun), nanos(now - sent));
                    let whole = WholeOperation { due_ns, service_ns, ..WholeOperation::default() };
                    recorder.whole(&whole, nanos(now - begun));
                    sent = now;
                }
                Ok(false) => break,
                Err(e) => self.fail(e.class, format!("while filling: {}", e.message)),
            }
        }
        recorder.covered_ns = nanos(begun.elapsed());
        self.lock_merged().merge(&recorder);
    }
}

/// Pins the calling thread to these CPUs; an empty list changes nothing. An error is a sentence for
/// the user.
pub(crate) fn pin_to(cpus: &[usize]) -> Result<(), String> {
    let mut set = CpuSet::new();
    let all_set = cpus.iter().all(|cpu| set.set(*cpu).is_ok());
    if cpus.is_empty() || (all_set && sched_setaffinity(Pid::from_raw(0), &set).is_ok()) {
        return Ok(());
    }
    Err(format!("cannot pin generator threads to CPUs {cpus:?}"))
}

#[cfg(test)]
#[path = "clients_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "planned_tests.rs"]
mod planned_tests;
