//! What a load gave.

use std::time::Instant;

use model::{Disturbance, Failure, Outage, PhaseResult};
use workloads::kv::Written;

use super::recorder::{INTERVAL_NS, WireRecorder};
use super::stages::{StageUse, stage_results};

/// What a load gave.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Everything recorded.
    pub recorder: WireRecorder,
    /// When the measurement began; `None` for a load that nobody offered.
    pub begun: Option<Instant>,
    /// From the start of the measurement to the last reply, nanoseconds.
    pub wall_ns: u64,
    /// CPU time of the threads from the start of the measurement, nanoseconds.
    pub generator_cpu_ns: u64,
    /// The part of it in user mode, nanoseconds.
    pub generator_user_ns: u64,
    /// Time in which threads were ready to run and waited for a CPU, nanoseconds.
    pub generator_run_delay_ns: u64,
    /// CPU time of the server, where it can be seen, nanoseconds.
    pub server_cpu_ns: Option<u64>,
    /// What others took meanwhile.
    pub disturbance: Disturbance,
    /// Requests of an open load that could not be sent within the time-out after its end, those
    /// that would have followed them included.
    pub unsent: u64,
    /// What was written to a sample of keys, warm-up included, where that is kept.
    pub written: Option<Written>,
    /// When servers answered nothing.
    pub outages: Vec<Outage>,
    /// From the start of the measurement to its last reply, or to its end where nothing failed,
    /// nanoseconds: stages that were over by then are whole.
    pub(super) whole_ns: u64,
    /// What was used in each stage.
    pub(super) stage_uses: Vec<StageUse>,
    /// Why it ended early.
    pub failure: Option<Failure>,
    /// True when the user stopped it.
    pub interrupted: bool,
}

impl Outcome {
    /// The same as a measured phase of a trial.
    pub fn into_phase(self, phase: &str, names: &[&str]) -> PhaseResult {
        let seconds = self.wall_ns as f64 / 1e9;
        let (stages, uses) = (&self.recorder.stages, &self.stage_uses);
        PhaseResult {
            stages: stage_results(stages, uses, (phase, names), self.whole_ns),
            phase: phase.into(),
            wall_ns: self.wall_ns,
            operations: self.recorder.results(phase, names, seconds),
            generator_cpu_ns: self.generator_cpu_ns,
            generator_run_delay_ns: self.generator_run_delay_ns,
            server_cpu_ns: self.server_cpu_ns,
            disturbance: self.disturbance,
            own_share: 0.0,
            restored: Vec::new(),
            unsent: self.unsent,
            outages: self.outages,
            interval_ns: INTERVAL_NS,
            due: self.recorder.due.as_ref().map(|due| due.to_due()),
            done_per_interval: self.recorder.done_per_interval().to_vec(),
            reads_per_interval: Vec::new(),
            begun_ns: 0,
        }
    }
}
