//! A client's loop through one step of the blocking-client engine.

use model::{ErrorClass, Generation, Stop};
use std::time::{Duration, Instant};
use workloads::{Client, StoreError};

use crate::recorder::{CallTotals, Recorder, Timed, WholeOperation};
use crate::share::{ClientShare, nanos};
use crate::stall::Pulse;
use crate::state::{Shared, TICK};
use crate::step::{Planned, Step};
use crate::watch::ThreadUse;

/// Consecutive failures after which a client gives up because the store is not going to recover.
const FAILURES_IN_A_ROW: u32 = 100;

/// A client's loop through one step.
///
/// The measurement starts for all clients at the same time. Under a closed load, a call counts if
/// it ends in the measurement: one that was sent during the warm-up counts with all of its time, so
/// a long wait across the boundary is never lost. Under planned arrivals, an operation counts if it
/// was due in the measurement, however late it ends.
pub(crate) struct ClientLoop<'a> {
    shared: &'a Shared<'a>,
    client: &'a mut dyn Client,
    pulse: &'a Pulse,
    step: &'a Step,
    planned: Option<&'a Planned>,
    recorder: Recorder,
    begun: Instant,
    measured_from: Instant,
    /// When the operation was due; `None` under a closed load.
    due: Option<Instant>,
    /// CPU usage of the thread at the planned end of the measurement, if there is one.
    used_at_end: Option<ThreadUse>,
    /// CPU usage of the thread when it first was ready in the measurement.
    used_before: Option<ThreadUse>,
    flush_at: Instant,
    handed_over_at: Instant,
    untimed_ns: u64,
    restoring_ns: u64,
    early_ns: u64,
    answered: u64,
    answered_in_time: u64,
    /// By kind of call, whole operations last.
    call_totals: Vec<CallTotals>,
    failures_in_a_row: u32,
}

impl<'a> ClientLoop<'a> {
    /// A client that is about to start a step.
    pub(crate) fn new(
        shared: &'a Shared<'a>,
        (client, pulse): (&'a mut dyn Client, &'a Pulse),
        (step, planned): (&'a Step, Option<&'a Planned>),
    ) -> Self {
        let phase = &step.phase;
        client.start_phase(step.index);
        // With one kind of call and one call per operation, whole operations are enough. With an
        // empty mix, the client chooses the operations.
        let several = phase.mix.len() != 1 || client.calls(0) > 1;
        let kinds = if several { client.operations().len() } else { 0 };
        let begun = *shared.lock_begun();
        let measured_from = begun + Duration::from_nanos(phase.warmup_ns);
        Self {
            shared,
            client,
            pulse,
            step,
            planned,
            recorder: Recorder::of_phase(kinds, phase),
            begun,
            measured_from,
            due: None,
            used_at_end: None,
            used_before: None,
            flush_at: measured_from + TICK,
            handed_over_at: measured_from,
            untimed_ns: 0,
            restoring_ns: 0,
            early_ns: 0,
            answered: 0,
            answered_in_time: 0,
            call_totals: vec![CallTotals::default(); kinds + 1],
            failures_in_a_row: 0,
        }
    }

    /// Runs the step until it ends. `first` is the number of its first operation.
    pub(crate) fn run(mut self, first: u64) -> ClientShare {
        let mut now = Instant::now();
        let mut n = first;
        while !self.shared.is_over() {
            match self.planned {
                None if self.finished(n, now) => break,
                None => {}
                Some(planned) => match self.arrival(planned) {
                    Some(ready) => now = ready,
                    None => break,
                },
            }
            // A call sent in the warm-up and answered later counts with all the CPU time that it
            // used.
            let before = self.used_before.is_none().then(ThreadUse::now);
            now = self.operation(n, now);
            n += 1;
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
        if let Some(planned) = self.planned {
            // A client without arrivals took part as well.
            now = now.max(self.measured_from + planned.length());
        }
        self.hand_over(now);
        let used_before = self.used_before.unwrap_or_else(ThreadUse::now);
        ClientShare {
            span: self.counts(now).then_some((self.measured_from, now)),
            untimed_ns: self.untimed_ns,
            restoring_ns: self.restoring_ns,
            early_ns: self.early_ns,
            answered: self.answered,
            answered_in_time: self.answered_in_time,
            operations: n,
            call_totals: self.call_totals,
            used: self.used_at_end.unwrap_or_else(ThreadUse::now).since(used_before),
        }
    }

    /// Waits for the next planned arrival; returns the time at which the client is ready to send
    /// it. `None` after the last, or if it is too late to send the rest.
    fn arrival(&mut self, planned: &Planned) -> Option<Instant> {
        let after = planned.next()?;
        let due = self.begun + after;
        let ends = self.measured_from + planned.length();
        let now = Instant::now();
        if now >= ends && self.used_at_end.is_none() {
            self.used_at_end = Some(ThreadUse::now());
        }
        let timeout = Duration::from_nanos(self.shared.settings.timeout_ns);
        if now > ends + timeout {
            planned.give_up(after, self.step.phase.warmup_ns);
            return None;
        }
        self.shared.wait(due.saturating_duration_since(now));
        self.due = Some(due);
        Some(Instant::now())
    }

    /// Whether a call that ends at `done` belongs to the measurement.
    fn counts(&self, done: Instant) -> bool {
        self.due.unwrap_or(done) >= self.measured_from
    }

    /// Whether planned arrivals were still due when an operation ended at `done`.
    fn is_in_time(&self, done: Instant) -> bool {
        let ends = self.planned.map(|planned| self.measured_from + planned.length());
        ends.is_some_and(|ends| (self.measured_from..ends).contains(&done))
    }

    /// Part of a span that belongs to the measurement.
    fn measured_ns(&self, from: Instant, to: Instant) -> u64 {
        nanos(to.saturating_duration_since(from.max(self.measured_from)))
    }

    fn finished(&self, n: u64, now: Instant) -> bool {
        match self.step.phase.stop {
            Stop::Count(count) => n >= count,
            Stop::AfterNs(ns) => now >= self.measured_from + Duration::from_nanos(ns),
        }
    }

    /// Executes operation `n`, starting at `ready`; returns when the client is ready again.
    fn operation(&mut self, n: u64, mut ready: Instant) -> Instant {
        let (mut whole, mut early_ns) = (WholeOperation::default(), 0);
        self.pulse.send();
        let is_restored = self.client.restore();
        self.pulse.end(is_restored);
        if is_restored {
            let restored = Instant::now();
            self.restoring_ns += self.measured_ns(ready, restored);
            ready = restored;
        }
        let timed_drawing = self.shared.settings.generation == Generation::Inside;
        let mut call = 0;
        while self.client.has_call(n, call) {
            let plan = self.client.prepare(n, call);
            if !timed_drawing {
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
            if timed_drawing {
                self.client.draw();
                sent = Instant::now();
            }
            if call == 0 {
                self.record_lag(sent);
            }
            self.pulse.send();
            let answer = self.client.call();
            let done = Instant::now();
            self.pulse.end(!answer.as_ref().is_err_and(is_unanswered));
            let due_ns = self.measured_ns(self.measured_from, self.due.unwrap_or(intended));
            early_ns += nanos(done - free) - self.measured_ns(free, done);
            let answer = match answer {
                Ok(answer) => answer,
                Err(e) => return self.failed((plan.operation, due_ns), &e, done),
            };
            let timed = Timed {
                operation: plan.operation,
                due_ns,
                service_ns: nanos(done - sent),
                response_ns: timed_drawing.then(|| nanos(done - intended)),
            };
            let (outcome, verified) = self.client.check();
            if self.counts(done) {
                self.recorder.call(timed, outcome, verified, answer);
                if plan.operation + 1 < self.call_totals.len() {
                    self.add_call(plan.operation, timed.service_ns);
                }
            }
            whole.add(timed, outcome, verified, answer);
            whole.is_read = self.client.operations()[plan.operation] == "read";
            ready = done;
            call += 1;
        }
        self.end(whole, early_ns, ready);
        let now = Instant::now();
        self.untimed_ns += self.measured_ns(ready, now);
        now
    }

    /// Records a whole operation that ended at `ready`.
    fn end(&mut self, mut whole: WholeOperation, early_ns: u64, ready: Instant) {
        self.failures_in_a_row = 0;
        whole.response_ns = self.due.map(|due| nanos(ready - due)).or(whole.response_ns);
        self.answered_in_time += u64::from(self.is_in_time(ready));
        if self.counts(ready) {
            self.answered += 1;
            self.early_ns += early_ns;
            self.add_call(self.call_totals.len() - 1, whole.service_ns);
            let done_ns = nanos(ready.saturating_duration_since(self.measured_from));
            self.recorder.whole(&whole, done_ns);
        } else {
            self.recorder.warmed_up(whole.outcome);
        }
    }

    /// Records how late an operation is sent under planned arrivals.
    fn record_lag(&mut self, sent: Instant) {
        if let Some(due) = self.due.filter(|due| *due >= self.measured_from) {
            self.recorder.lag(nanos(sent.saturating_duration_since(due)));
        }
    }

    fn add_call(&mut self, kind: usize, service_ns: u64) {
        let own = &mut self.call_totals[kind];
        own.operations += 1;
        own.ns += service_ns;
    }

    fn failed(
        &mut self,
        (operation, due_ns): (usize, u64),
        error: &StoreError,
        done: Instant,
    ) -> Instant {
        if self.counts(done) {
            let done_ns = nanos(done.saturating_duration_since(self.measured_from));
            let why = (error.class, error.message.as_str());
            self.recorder.failed(operation, why, (due_ns, done_ns));
        }
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

/// True if the store did not answer at all.
fn is_unanswered(error: &StoreError) -> bool {
    matches!(error.class, ErrorClass::Timeout | ErrorClass::Refused | ErrorClass::Closed)
}
