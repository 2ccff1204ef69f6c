//! The result of a load.

use std::time::Instant;

use model::{Disturbance, Failure, Outage, Point, Series, Silence};
use workloads::kv::Written;

use super::recorder::WireRecorder;
use super::row::INTERVAL_NS;
use super::stages::{StageUse, stage_points};
use crate::meter::PhaseRecord;

/// The result of a load.
#[derive(Debug, Default)]
pub struct Outcome {
    /// All records.
    pub recorder: WireRecorder,
    /// Zero of the times of `written`; `None` if the load never ran.
    pub zero: Option<Instant>,
    /// Start of the measurement; `None` if the load never ran.
    pub begun: Option<Instant>,
    /// Number of clients.
    pub clients: u32,
    /// Planned requests per second if the rate is constant; `None` under a closed load.
    pub planned_per_s: Option<f64>,
    /// From the start of the measurement to the last reply, nanoseconds.
    pub wall_ns: u64,
    /// From the start of the measurement to the end of the offered load, nanoseconds.
    pub(super) offered_ns: u64,
    /// CPU time of the threads from the start of the measurement, nanoseconds.
    pub generator_cpu_ns: u64,
    /// User-mode part of it, nanoseconds.
    pub generator_user_ns: u64,
    /// Time in which threads were ready to run but waited for a CPU, nanoseconds.
    pub generator_run_delay_ns: u64,
    /// CPU time of the server, nanoseconds; `None` if it cannot be read.
    pub server_cpu_ns: Option<u64>,
    /// CPU time taken by other processes during the measurement.
    pub disturbance: Disturbance,
    /// Requests of an open load that could not be sent within the timeout after its end, including
    /// those that would have followed them.
    pub unsent: u64,
    /// Writes to a sample of keys, warm-up included, if they are kept.
    pub written: Option<Written>,
    /// Periods in which servers answered nothing.
    pub outages: Vec<Outage>,
    /// From the start of the measurement to the last reply if the load failed, else unlimited;
    /// nanoseconds. Stages that ended by then are complete.
    pub(super) whole_ns: u64,
    /// Resource use of each stage.
    pub(super) stage_uses: Vec<StageUse>,
    /// Why the load ended early.
    pub failure: Option<Failure>,
    /// True if the user stopped it.
    pub interrupted: bool,
}

impl Outcome {
    /// Converts to a measured phase: its complete stages if the load had stages, else a single
    /// point.
    pub fn into_phase(self, phase: &str, names: &[&str]) -> PhaseRecord {
        let (stages, uses) = (&self.recorder.stages, &self.stage_uses);
        let mut points = if stages.is_empty() {
            vec![self.point(phase, names)]
        } else {
            stage_points(stages, uses, (phase, names), self.whole_ns)
        };
        if let Some(first) = points.first_mut() {
            first.warmup.wrong += self.recorder.wrong_in_warmup;
        }
        let series = Series {
            phase: phase.into(),
            begun_ns: 0,
            interval_ns: INTERVAL_NS,
            done_per_interval: self.recorder.done_per_interval().to_vec(),
            reads_per_interval: Vec::new(),
            failed_per_interval: self.recorder.failed_per_interval().to_vec(),
            p99: Vec::new(),
        };
        let of_phase = |outage| Outage { phase: phase.into(), ..outage };
        let outages = self.outages.into_iter().map(of_phase).collect();
        PhaseRecord { begun: self.begun, points, series, outages }
    }

    /// Periods in which an operation got no answers.
    fn silences(&self, names: &[&str]) -> Vec<Silence> {
        let served = self.recorder.served.iter().zip(names);
        served.flat_map(|(served, name)| served.silences(name, self.offered_ns)).collect()
    }

    fn point(&self, phase: &str, names: &[&str]) -> Point {
        let seconds = self.wall_ns as f64 / 1e9;
        Point {
            phase: phase.into(),
            length_ns: self.wall_ns,
            planned_per_s: self.planned_per_s,
            clients: self.clients,
            operations: self.recorder.results(phase, names, seconds),
            unsent: self.unsent,
            generator_cpu_ns: self.generator_cpu_ns,
            generator_run_delay_ns: self.generator_run_delay_ns,
            server_cpu_ns: self.server_cpu_ns,
            disturbance: self.disturbance,
            due: self.recorder.due.as_ref().map(|due| due.to_due()),
            silences: self.silences(names),
            ..Point::default()
        }
    }
}
