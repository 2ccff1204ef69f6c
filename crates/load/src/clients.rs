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

use model::{ErrorClass, FILL, Failure, PEAK, Point, ReadBack, Series};
use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::prctl;
use nix::unistd::Pid;
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use workloads::Client;
use workloads::kv::SAMPLED_MIN;

use crate::client_loop::ClientLoop;
use crate::meter::{Finished, Meter, PhaseRecord, Progress, ReadAt, Reading};
use crate::progress_reporter::ProgressReporter;
use crate::recorder::{CallTotals, Recorder, WholeOperation};
use crate::share::{ClientShare, StepTimes, nanos};
use crate::slowest;
use crate::stall::{Pulse, StallWatch};
use crate::state::{Engine, Shared, TICK};
use crate::step::{Planned, Step};

/// Time limit for reading written values back, which can be many or large.
pub const READ_BACK_MAX: Duration = Duration::from_secs(5);

/// Length of an interval in which fill operations are counted, nanoseconds.
const FILL_INTERVAL_NS: u64 = 100_000_000;

/// Names of the kinds of call, number of clients, and their reports.
type Crew<'a> = (&'a [&'a str], usize, &'a mpsc::Receiver<Report>);

enum Report {
    Filled,
    Phase(ClientShare),
}

impl Engine<'_> {
    /// Fills, then runs every phase with all clients; returns when all threads have ended.
    pub fn run(
        &self,
        clients: Vec<Box<dyn Client>>,
        meter: &mut dyn Meter,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Finished {
        let shared = Shared::new(self, clients.len());
        let names = clients.first().map_or(&[][..], |c| c.operations());
        let count = clients.len();
        let (mut fill, mut phases) = (None, Vec::new());
        let mut read_back = None;
        thread::scope(|scope| {
            let (reports, inbox) = mpsc::channel();
            let mut threads = Vec::new();
            for (client, pulse) in clients.into_iter().zip(&shared.pulses) {
                let (reports, shared) = (reports.clone(), &shared);
                let run = move || shared.client_thread(client, pulse, &reports);
                threads.push(scope.spawn(run));
            }
            drop(reports);
            fill = shared.filled((names, count, &inbox), meter, progress);
            meter.filled();
            for index in 0..self.phases.len() {
                if shared.is_over() {
                    break;
                }
                if let Err(Failure { class, message }) = meter.before_phase() {
                    shared.fail(class, message);
                    break;
                }
                let crew = (names, count, &inbox);
                phases.extend(shared.phase(index, &phases, crew, meter, progress));
            }
            *shared.lock_step() = None;
            shared.gate.wait();
            for read in threads.into_iter().filter_map(|thread| thread.join().ok().flatten()) {
                read_back.get_or_insert_with(ReadBack::default).merge(read);
            }
        });
        let failure = shared.failure.into_inner().unwrap_or_else(PoisonError::into_inner);
        Finished {
            fill,
            phases,
            read_back,
            failure,
            interrupted: self.stop.load(Ordering::Relaxed),
            ..Finished::default()
        }
    }
}

impl Shared<'_> {
    /// The coordinator's part of the fill; `None` if nothing was written.
    fn filled(
        &self,
        (names, clients, inbox): Crew<'_>,
        meter: &mut dyn Meter,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Option<PhaseRecord> {
        let begun = *self.lock_phase_start();
        let reporter = ProgressReporter::new(FILL, names, clients, self.engine.timeout_ns);
        // The fill's results are not shown during the run, only its speed.
        let progress = &mut |report: Progress<'_>| progress(Progress { latest: None, ..report });
        let (_, recorder, _) = self.collect((inbox, clients), None, meter, reporter, progress);
        let length_ns = nanos(begun.elapsed());
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
        wrote.then_some(PhaseRecord { begun, points, series, outages: Vec::new() })
    }

    /// The coordinator's part of a phase, step by step. A phase that ended early has the stages
    /// that were complete.
    fn phase(
        &self,
        index: usize,
        earlier: &[PhaseRecord],
        crew: Crew<'_>,
        meter: &mut dyn Meter,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Option<PhaseRecord> {
        let Engine { phases, planned, .. } = self.engine;
        let phase = &phases[index];
        let peak = earlier.iter().find(|record| record.series.phase == PEAK);
        let peak_per_s = peak.and_then(PhaseRecord::whole).map_or(0.0, |whole| whole.rate_per_s);
        let needs_peak = planned.is_some_and(|(load, _)| load.needs_peak()) && phase.name != PEAK;
        if needs_peak && peak_per_s <= 0.0 {
            let message = "no operation succeeded in phase `peak`".into();
            self.fail(ErrorClass::Other, message);
            return None;
        }
        let mut record: Option<PhaseRecord> = None;
        for step in Step::of_phase((index, phase), *planned, peak_per_s) {
            if self.is_over() {
                break;
            }
            let step = Arc::new(step);
            *self.lock_step() = Some(step.clone());
            let begun = Instant::now();
            *self.lock_phase_start() = begun;
            self.gate.wait();
            let first = record.as_ref().and_then(|record| record.begun).unwrap_or(begun);
            let Some(next) = self.step((&step, first), crew, meter, progress) else { break };
            match &mut record {
                Some(record) => record.add_stage(next),
                None => record = Some(next),
            }
        }
        record
    }

    /// The coordinator's part of a step, after all clients have passed the gate. The result
    /// includes the start of the measurement. `first` is the start of the phase.
    fn step(
        &self,
        (step, first): (&Step, Instant),
        (names, clients, inbox): Crew<'_>,
        meter: &mut dyn Meter,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Option<PhaseRecord> {
        let Step { phase, planned, stage, .. } = step;
        self.wait(Duration::from_nanos(phase.warmup_ns));
        let (zero, before) = (Instant::now(), ReadAt::now(meter, 0));
        let reporter = ProgressReporter::new(&phase.name, names, clients, self.engine.timeout_ns);
        let per_s = planned.as_ref().map(|planned| planned.rate_per_s);
        let reporter = reporter.at_stage(*stage, per_s, nanos(zero - first));
        // The backlog of planned arrivals is served after the measurement.
        let ends = planned.as_ref().map(|planned| zero + planned.length());
        let (shares, recorder, at_end) =
            self.collect((inbox, clients), ends, meter, reporter, progress);
        let (at, reading) = at_end.unwrap_or_else(|| (Instant::now(), meter.read()));
        let after = ReadAt { at_ns: nanos(at - zero), reading };
        let failure = self.failure();
        if self.is_over() && (failure.is_none() || stage.is_some()) {
            return None;
        }
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
            unsent: planned.as_ref().map_or(0, Planned::unsent),
            generator_cpu_ns: sum(|s| s.used.cpu_ns),
            generator_run_delay_ns: run_delay_ns,
            server_cpu_ns: before.server_cpu_ns(&after, length_ns),
            disturbance: before.disturbance(&after, run_delay_ns / shares.len().max(1) as u64),
            own_share,
            restored,
            failure,
            ..Point::default()
        };
        let (begun, points) = (Some(begun), vec![point]);
        Some(PhaseRecord { begun, points, series, outages: Vec::new() })
    }

    /// Waits until every client has reported, and reports progress during that time. Ends the load
    /// if the meter reports an error, or nothing is answered any more. Returns the clients'
    /// reports, their records, and the meter's reading at the planned end, if there is one.
    fn collect(
        &self,
        (inbox, clients): (&mpsc::Receiver<Report>, usize),
        mut ends: Option<Instant>,
        meter: &mut dyn Meter,
        mut reporter: ProgressReporter<'_>,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> (Vec<ClientShare>, Recorder, Option<(Instant, Reading)>) {
        let mut shares = Vec::with_capacity(clients);
        let (mut heard, mut at_end) = (0, None);
        let (zero, mut stall) = (Instant::now(), StallWatch::new(self.engine.stall_ns));
        while heard < clients {
            let now = Instant::now();
            if ends.is_some_and(|ends| ends <= now) {
                ends = None;
                at_end = Some((now, meter.read()));
            }
            let left = ends.map_or(TICK, |ends| ends.saturating_duration_since(now).min(TICK));
            match inbox.recv_timeout(left) {
                Ok(Report::Phase(share)) => {
                    shares.push(share);
                    heard += 1;
                }
                Ok(Report::Filled) => heard += 1,
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

    /// One client's run through the trial; returns the result of its read-back.
    fn client_thread(
        &self,
        mut client: Box<dyn Client>,
        pulse: &Pulse,
        reports: &mpsc::Sender<Report>,
    ) -> Option<ReadBack> {
        if let Err(message) = pin_to(self.engine.cpus) {
            self.fail(ErrorClass::Other, message);
        }
        if self.engine.planned.is_some() {
            // Threads wake up when an arrival is due, not up to 50 µs later. Without it they are
            // late.
            let _ = prctl::set_timerslack(1);
        }
        self.guarded(|| self.fill(client.as_mut(), pulse));
        // A closed channel means that the coordinator has given up, so the client gives up too.
        if reports.send(Report::Filled).is_err() {
            return None;
        }
        // Operations are numbered through all stages of a phase.
        let (mut index, mut operations) = (0, 0);
        loop {
            self.gate.wait();
            // Without a step, no client is measured any more.
            let Some(step) = self.lock_step().clone() else { break };
            if step.index != index {
                (index, operations) = (step.index, 0);
            }
            let share = self
                .guarded(|| ClientLoop::new(self, (client.as_mut(), pulse), &step).run(operations));
            operations = share.operations;
            if reports.send(Report::Phase(share)).is_err() {
                return None;
            }
        }
        self.guarded(|| self.read_back(client.as_mut()))
    }

    /// Reads back this client's part of the sample.
    fn read_back(&self, client: &mut dyn Client) -> Option<ReadBack> {
        let clients = self.clients as u64;
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

    /// Runs a client's work. A panic fails the trial instead of leaving the others at the gate.
    fn guarded<T: Default>(&self, work: impl FnOnce() -> T) -> T {
        panic::catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
            self.fail(ErrorClass::Other, "a generator client panicked".into());
            T::default()
        })
    }

    fn fill(&self, client: &mut dyn Client, pulse: &Pulse) {
        let (begun, mut sent) = (*self.lock_phase_start(), Instant::now());
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
