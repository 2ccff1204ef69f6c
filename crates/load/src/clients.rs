//! The engine of blocking clients: one thread a client, each with its own connection.
//!
//! A closed load: a client sends its next operation when the last one is answered and its think
//! time is over, so the intended start of a call is the moment at which it is ready to be sent.
//! Where the drawing of values is timed, that moment lies before the drawing; then response and
//! service time differ.
//!
//! A rate is all operations divided by the time from the first client's start to the last one's
//! end, less the share of it that clients spent on untimed preparing and checking, so that a costly
//! check does not look like a slow store, and less the share in which they restored what operations
//! had taken away. Where clients restored, it is the number of clients by the mean free time of an
//! operation. Rates of single clients are never summed: those of clients that did not run at the
//! same time would add up to more than there was.

use model::{ErrorClass, Failure, Generation, Phase, PhaseResult, Restored, Stop};
use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Barrier, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use workloads::Client;

use crate::meter::{Finished, Meter, Progress, ReadAt};
use crate::recorder::{InCalls, Recorder, Timed, Whole};
use crate::share::{ClientShare, nanos};
use crate::telling::Telling;
use crate::watch::ThreadUse;

/// Failures in a row after which a client gives up: the store is not going to recover.
const FAILURES_IN_A_ROW: u32 = 100;
/// How often a client hands its records to all, and how often progress is told.
const TICK: Duration = Duration::from_millis(250);

/// What to offer, and how.
pub struct Engine<'a> {
    /// Phases, in order.
    pub phases: &'a [Phase],
    /// Whether values are drawn inside the timed span.
    pub generation: Generation,
    /// CPUs for the client threads; empty to leave them where they are.
    pub cpus: &'a [usize],
    /// Set by someone else to end the trial early.
    pub stop: &'a AtomicBool,
}

/// Shared by all threads of a trial.
struct Shared<'a> {
    engine: &'a Engine<'a>,
    gate: Barrier,
    /// When the phase at hand began, the same for all clients.
    begun: Mutex<Instant>,
    merged: Mutex<Recorder>,
    failure: Mutex<Option<Failure>>,
    failed: AtomicBool,
}

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
        let shared = Shared {
            engine: self,
            gate: Barrier::new(clients.len() + 1),
            begun: Mutex::new(Instant::now()),
            merged: Mutex::default(),
            failure: Mutex::default(),
            failed: AtomicBool::new(false),
        };
        let names = clients.first().map_or(&[][..], |c| c.operations());
        let count = clients.len();
        let (mut phases, mut begun) = (Vec::new(), Vec::new());
        thread::scope(|scope| {
            let (reports, inbox) = mpsc::channel();
            for client in clients {
                let (reports, shared) = (reports.clone(), &shared);
                scope.spawn(move || shared.client_thread(client, &reports));
            }
            drop(reports);
            shared.collect(&inbox, count, Telling::new("fill", names, count), &mut |_| {});
            meter.filled();
            for phase in self.phases {
                if !shared.over()
                    && let Err(Failure { class, message }) = meter.before_phase()
                {
                    shared.fail(class, message);
                }
                *shared.lock_begun() = Instant::now();
                shared.gate.wait();
                let result = shared.phase(phase, names, count, &inbox, meter, progress);
                if let Some((result, measured_from)) = result {
                    phases.push(result);
                    begun.push(measured_from);
                }
            }
        });
        let failure = shared.failure.into_inner().unwrap_or_else(PoisonError::into_inner);
        Finished {
            phases,
            begun,
            intervals: Vec::new(),
            failure,
            interrupted: self.stop.load(Ordering::Relaxed),
        }
    }
}

impl Shared<'_> {
    fn over(&self) -> bool {
        self.failed.load(Ordering::Relaxed) || self.engine.stop.load(Ordering::Relaxed)
    }

    fn fail(&self, class: ErrorClass, message: String) {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.get_or_insert(Failure { class, message });
        self.failed.store(true, Ordering::Relaxed);
    }

    /// Waits as long, or until the run is over.
    fn wait(&self, duration: Duration) {
        let until = Instant::now() + duration;
        while !self.over() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            thread::sleep(left.min(TICK));
        }
    }

    /// The coordinator's part of a phase, entered when all clients were let go; with when its
    /// measurement began.
    fn phase(
        &self,
        phase: &Phase,
        names: &[&str],
        clients: usize,
        inbox: &mpsc::Receiver<Report>,
        meter: &mut dyn Meter,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Option<(PhaseResult, Instant)> {
        self.wait(Duration::from_nanos(phase.warmup_ns));
        let (zero, before) = (Instant::now(), ReadAt::now(meter, 0));
        let telling = Telling::new(&phase.name, names, clients);
        let (shares, recorder) = self.collect(inbox, clients, telling, progress);
        let after = ReadAt::now(meter, nanos(zero.elapsed()));
        if self.over() {
            return None;
        }
        let sum = |of: fn(&ClientShare) -> u64| shares.iter().map(of).sum::<u64>();
        let spans = || shares.iter().filter_map(|s| s.span);
        let begun = spans().map(|(from, _)| from).min()?;
        let wall_ns = nanos(spans().map(|(_, to)| to).max()? - begun);
        let own_wall_ns: u64 = spans().map(|(from, to)| nanos(to - from)).sum();
        let restoring_ns = sum(|s| s.restoring_ns);
        let own_share =
            sum(|s| s.untimed_ns) as f64 / own_wall_ns.saturating_sub(restoring_ns).max(1) as f64;
        let free_share = (1.0 - own_share).max(f64::EPSILON);
        let free_s = wall_ns.max(1) as f64 / 1e9 * free_share;
        // Clients that save again are free for very different times.
        let restored: Vec<Restored> = match restoring_ns {
            0 => Vec::new(),
            _ => shares.iter().filter_map(ClientShare::restored).collect(),
        };
        let rate_per_s = match restored.as_slice() {
            [] => sum(|s| s.answered) as f64 / free_s,
            clients => Restored::rate_per_s(clients),
        };
        let run_delay_ns = sum(|s| s.used.run_delay_ns);
        let (interval_ns, done_per_interval) = recorder.intervals();
        let reads_per_interval = recorder.reads_per_interval();
        let in_calls: Vec<Vec<InCalls>> = shares.iter().map(|s| s.in_calls.clone()).collect();
        let result = PhaseResult {
            begun_ns: 0,
            stages: Vec::new(),
            phase: phase.name.clone(),
            wall_ns,
            operations: recorder.into_results(&phase.name, names, rate_per_s, &in_calls),
            generator_cpu_ns: sum(|s| s.used.cpu_ns),
            generator_run_delay_ns: run_delay_ns,
            server_cpu_ns: before.server_cpu_ns(&after, wall_ns),
            disturbance: before.disturbance(&after, run_delay_ns / shares.len().max(1) as u64),
            own_share,
            restored,
            unsent: 0,
            interval_ns,
            done_per_interval,
            reads_per_interval,
            due: None,
        };
        Some((result, begun))
    }

    /// Waits until every client has reported, telling progress meanwhile; what they reported, and
    /// what they recorded.
    fn collect(
        &self,
        inbox: &mpsc::Receiver<Report>,
        clients: usize,
        mut telling: Telling<'_>,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> (Vec<ClientShare>, Recorder) {
        let mut shares = Vec::with_capacity(clients);
        let mut reported = 0;
        while reported < clients {
            match inbox.recv_timeout(TICK) {
                Ok(Report::Phase(share)) => {
                    shares.push(share);
                    reported += 1;
                }
                Ok(Report::Filled) => reported += 1,
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => progress(telling.take(&self.merged)),
            }
        }
        let recorder = telling.end(&self.merged, progress);
        (shares, recorder)
    }

    fn lock_begun(&self) -> std::sync::MutexGuard<'_, Instant> {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_merged(&self) -> std::sync::MutexGuard<'_, Recorder> {
        self.merged.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn client_thread(&self, mut client: Box<dyn Client>, reports: &mpsc::Sender<Report>) {
        if let Err(message) = pin_to(self.engine.cpus) {
            self.fail(ErrorClass::Other, message);
        }
        self.guarded(|| self.fill(client.as_mut()));
        // A receiver that is gone means that the coordinator has given up; so do we.
        if reports.send(Report::Filled).is_err() {
            return;
        }
        for (index, phase) in self.engine.phases.iter().enumerate() {
            self.gate.wait();
            let share = self.guarded(|| ClientLoop::new(self, client.as_mut(), index, phase).run());
            if reports.send(Report::Phase(share)).is_err() {
                return;
            }
        }
    }

    /// Runs a client's work; a panic fails the trial instead of leaving the others at the gate.
    fn guarded<T: Default>(&self, work: impl FnOnce() -> T) -> T {
        panic::catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
            self.fail(ErrorClass::Other, "a client of the generator panicked".into());
            T::default()
        })
    }

    fn fill(&self, client: &mut dyn Client) {
        while !self.over() {
            match client.fill_next() {
                Ok(true) => {}
                Ok(false) => return,
                Err(e) => self.fail(e.class, format!("while filling: {}", e.message)),
            }
        }
    }
}

/// One client's way through one phase.
///
/// The measurement begins for all clients at the same moment. What counts is when a call is done:
/// one that was sent while warming up and is answered later counts with all of its time, so that a
/// long wait is never lost between the two.
struct ClientLoop<'a> {
    shared: &'a Shared<'a>,
    client: &'a mut dyn Client,
    phase: &'a Phase,
    recorder: Recorder,
    measured_from: Instant,
    /// What the thread had used when it first was ready in the measurement.
    used_before: Option<ThreadUse>,
    flush_at: Instant,
    handed_over_at: Instant,
    untimed_ns: u64,
    restoring_ns: u64,
    early_ns: u64,
    answered: u64,
    /// By kind of call, whole operations last.
    in_calls: Vec<InCalls>,
    failures_in_a_row: u32,
    timed_drawing: bool,
}

impl<'a> ClientLoop<'a> {
    fn new(
        shared: &'a Shared<'a>,
        client: &'a mut dyn Client,
        index: usize,
        phase: &'a Phase,
    ) -> Self {
        client.start_phase(index);
        // One kind of call, one call an operation: the whole says it all. An empty mix leaves the
        // choice to the client.
        let several = phase.mix.len() != 1 || client.calls() > 1;
        let kinds = if several { client.operations().len() } else { 0 };
        let measured_from = *shared.lock_begun() + Duration::from_nanos(phase.warmup_ns);
        Self {
            shared,
            client,
            phase,
            recorder: Recorder::new(kinds, interval_ns(phase)),
            measured_from,
            used_before: None,
            flush_at: measured_from + TICK,
            handed_over_at: measured_from,
            untimed_ns: 0,
            restoring_ns: 0,
            early_ns: 0,
            answered: 0,
            in_calls: vec![InCalls::default(); kinds + 1],
            failures_in_a_row: 0,
            timed_drawing: shared.engine.generation == Generation::Inside,
        }
    }

    fn run(mut self) -> ClientShare {
        let mut now = Instant::now();
        for n in 0.. {
            if self.shared.over() || self.finished(n, now) {
                break;
            }
            // What is sent while warming up and answered later counts with all that it used.
            let before = self.used_before.is_none().then(ThreadUse::now);
            now = self.operation(n, now);
            if self.counts(now) {
                self.used_before = self.used_before.or(before);
            }
            if now >= self.flush_at {
                self.flush(now);
                let after = Instant::now();
                self.untimed_ns += nanos(after - now);
                now = after;
            }
        }
        self.hand_over(now);
        let used_before = self.used_before.unwrap_or_else(ThreadUse::now);
        ClientShare {
            span: self.counts(now).then_some((self.measured_from, now)),
            untimed_ns: self.untimed_ns,
            restoring_ns: self.restoring_ns,
            early_ns: self.early_ns,
            answered: self.answered,
            in_calls: self.in_calls,
            used: ThreadUse::now().since(used_before),
        }
    }

    /// Whether what is done at that moment belongs to the measurement.
    fn counts(&self, done: Instant) -> bool {
        done >= self.measured_from
    }

    /// What of a span belongs to the measurement.
    fn measured_ns(&self, from: Instant, to: Instant) -> u64 {
        nanos(to.saturating_duration_since(from.max(self.measured_from)))
    }

    fn finished(&self, n: u64, now: Instant) -> bool {
        match self.phase.stop {
            Stop::Count(count) => n >= count,
            Stop::AfterNs(ns) => now >= self.measured_from + Duration::from_nanos(ns),
        }
    }

    /// Carries out operation `n` from `ready` on; the time at which the client is ready again.
    fn operation(&mut self, n: u64, mut ready: Instant) -> Instant {
        let (mut whole, mut early_ns) = (Whole::new(), 0);
        if self.client.restore() {
            let restored = Instant::now();
            self.restoring_ns += self.measured_ns(ready, restored);
            ready = restored;
        }
        for call in 0..self.client.calls() {
            let plan = self.client.prepare(n, call);
            if !self.timed_drawing {
                self.client.draw();
            }
            let mut intended = Instant::now();
            self.untimed_ns += self.measured_ns(ready, intended);
            let free = intended;
            if plan.think_ns > 0 {
                self.shared.wait(Duration::from_nanos(plan.think_ns));
                intended = Instant::now();
            }
            let mut sent = intended;
            if self.timed_drawing {
                self.client.draw();
                sent = Instant::now();
            }
            let answer = self.client.call();
            let done = Instant::now();
            early_ns += nanos(done - free) - self.measured_ns(free, done);
            let answer = match answer {
                Ok(answer) => answer,
                Err(e) => return self.failed(plan.operation, &e, done),
            };
            let timed = Timed {
                operation: plan.operation,
                service_ns: nanos(done - sent),
                response_ns: self.timed_drawing.then(|| nanos(done - intended)),
            };
            let (outcome, verified) = self.client.check();
            if self.counts(done) {
                self.recorder.call(timed, outcome, verified, answer);
                if plan.operation + 1 < self.in_calls.len() {
                    self.add_call(plan.operation, timed.service_ns);
                }
            }
            whole.add(timed, outcome, verified, answer);
            whole.is_read = self.client.operations()[plan.operation] == "read";
            ready = done;
        }
        self.failures_in_a_row = 0;
        if self.counts(ready) {
            self.answered += 1;
            self.early_ns += early_ns;
            self.add_call(self.in_calls.len() - 1, whole.service_ns);
            self.recorder.whole(&whole, nanos(ready - self.measured_from));
        } else {
            self.recorder.warmed_up(whole.outcome);
        }
        let now = Instant::now();
        self.untimed_ns += self.measured_ns(ready, now);
        now
    }

    fn add_call(&mut self, kind: usize, service_ns: u64) {
        let own = &mut self.in_calls[kind];
        own.operations += 1;
        own.ns += service_ns;
    }

    fn failed(
        &mut self,
        operation: usize,
        error: &workloads::StoreError,
        done: Instant,
    ) -> Instant {
        self.recorder.failed_call(operation, error.class, &error.message);
        self.recorder.failed_whole(error.class, &error.message);
        self.failures_in_a_row += 1;
        if error.fatal {
            self.shared.fail(error.class, error.message.clone());
        } else if self.failures_in_a_row >= FAILURES_IN_A_ROW {
            let message = format!("{FAILURES_IN_A_ROW} failures in a row, last: {}", error.message);
            self.shared.fail(error.class, message);
        }
        done
    }

    fn flush(&mut self, now: Instant) {
        self.flush_at = now + TICK;
        self.hand_over(now);
        self.recorder.clear();
    }

    fn hand_over(&mut self, now: Instant) {
        self.recorder.covered_ns = nanos(now.saturating_duration_since(self.handed_over_at));
        self.handed_over_at = now;
        self.shared.lock_merged().merge(&self.recorder);
    }
}

/// Lets the calling thread run on these CPUs only; an empty list changes nothing. Errors: a
/// sentence for people.
pub(crate) fn pin_to(cpus: &[usize]) -> Result<(), String> {
    let mut set = CpuSet::new();
    let all_set = cpus.iter().all(|cpu| set.set(*cpu).is_ok());
    if cpus.is_empty() || (all_set && sched_setaffinity(Pid::from_raw(0), &set).is_ok()) {
        return Ok(());
    }
    Err(format!("threads of the generator cannot be pinned to CPUs {cpus:?}"))
}

/// Twenty intervals of a time-bounded phase, but none shorter than 5 ms; 100 ms where the end is
/// not known beforehand.
fn interval_ns(phase: &Phase) -> u64 {
    match phase.stop {
        Stop::AfterNs(ns) => (ns / 20).max(5_000_000),
        Stop::Count(_) => 100_000_000,
    }
}

#[cfg(test)]
#[path = "clients_tests.rs"]
mod tests;
