//! Measures the resource use of a server under a load that other processes offer.

use std::time::{Duration, Instant};

use super::offer::Offer;
use super::stages::{Marks, Span, spans, steady_rate_per_s};
use super::work::Work;
use crate::meter::{Meter, PhaseRecord, ReadAt};
use crate::step::Step;

/// Readings of a meter at the start and the end of a load's measurement and of each of its stages.
#[derive(Debug)]
pub struct Observer {
    spans: Vec<Span>,
    /// Planned requests per second if the rate is constant.
    planned_per_s: Option<f64>,
    clients: u32,
    /// Start of the load, the zero of all times here.
    begins: Instant,
    warmup_ns: u64,
    marks: Marks<ReadAt>,
    before: Option<ReadAt>,
    after: ReadAt,
    /// Planned end of a step's measurement, after which only its backlog is served.
    ends_ns: Option<u64>,
    at_end: Option<ReadAt>,
}

impl Observer {
    /// For a whole load, of all its contributors, that starts at `begins`.
    pub fn new(offer: &Offer, work: &Work, begins: Instant) -> Self {
        let spans = spans(offer, work);
        let marks = Marks::new(&spans, offer.warmup_ns);
        Self {
            planned_per_s: steady_rate_per_s(offer, work),
            clients: offer.clients,
            begins,
            warmup_ns: offer.warmup_ns,
            marks,
            before: None,
            after: ReadAt::default(),
            spans,
            ends_ns: None,
            at_end: None,
        }
    }

    /// For a step of so many blocking clients that starts at `begins`; without a step, for
    /// everything that they do.
    pub fn of_clients(clients: u32, step: Option<&Step>, begins: Instant) -> Self {
        let warmup_ns = step.map_or(0, |step| step.phase.warmup_ns);
        let length = step.and_then(Step::planned_length);
        Self {
            planned_per_s: step.and_then(Step::planned_per_s),
            clients,
            begins,
            warmup_ns,
            marks: Marks::new(&[], warmup_ns),
            before: None,
            after: ReadAt::default(),
            spans: Vec::new(),
            ends_ns: length.map(|length| warmup_ns.saturating_add(length.as_nanos() as u64)),
            at_end: None,
        }
    }

    /// Start of the measurement.
    pub fn measured_from(&self) -> Instant {
        self.begins + Duration::from_nanos(self.warmup_ns)
    }

    fn now_ns(&self) -> u64 {
        self.begins.elapsed().as_nanos() as u64
    }

    /// Takes the readings that are due, and returns how long until the next one, at most `longest`.
    pub fn read_if_due(&mut self, meter: &mut dyn Meter, longest: Duration) -> Duration {
        let now_ns = self.now_ns();
        if self.before.is_none() && now_ns >= self.warmup_ns {
            self.before = Some(ReadAt::now(meter, now_ns));
        }
        self.marks.read_if_due(now_ns, || ReadAt::now(meter, now_ns));
        if self.ends_ns.is_some_and(|ends_ns| now_ns >= ends_ns) {
            self.ends_ns = None;
            self.at_end = Some(ReadAt::now(meter, now_ns));
        }
        let first_ns = if self.before.is_none() { self.warmup_ns } else { u64::MAX };
        let due_ns = first_ns.min(self.marks.next_ns()).min(self.ends_ns.unwrap_or(u64::MAX));
        longest.min(Duration::from_nanos(due_ns.saturating_sub(self.now_ns())))
    }

    /// Takes the last readings.
    pub fn end(&mut self, meter: &mut dyn Meter) {
        let now_ns = self.now_ns();
        self.after = self.at_end.unwrap_or_else(|| ReadAt::now(meter, now_ns));
        self.marks.end(|| self.after);
    }

    /// Sets what only the observer knows of a phase: its plan as a whole, and the server's CPU
    /// time.
    pub fn complete(&self, phase: &mut PhaseRecord) {
        phase.begun = Some(self.measured_from());
        let readings: Vec<(ReadAt, ReadAt)> = self.marks.pairs().collect();
        for point in &mut phase.points {
            let stage = point.stage.map(|stage| stage as usize);
            let (before, after) = match stage.and_then(|stage| readings.get(stage)) {
                Some(readings) => *readings,
                None => (self.before.unwrap_or(self.after), self.after),
            };
            let span = stage.and_then(|stage| self.spans.get(stage));
            point.planned_per_s = span.map_or(self.planned_per_s, Span::planned_per_s);
            point.clients = span.map_or(self.clients, Span::clients);
            point.server_cpu_ns = before.server_cpu_ns(&after, point.length_ns);
            point.disturbance.server_ns = before.disturbance(&after, 0).server_ns;
        }
    }
}
