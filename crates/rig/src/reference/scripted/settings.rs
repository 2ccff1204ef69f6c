//! Settings of the scripted server.

use super::script::Script;
use crate::reference::listen::Listen;

/// What kind of scripted server to start.
#[derive(Clone, Debug, PartialEq)]
pub struct ScriptedSettings {
    /// Where it listens.
    pub listen: Listen,
    /// What it does.
    pub script: Script,
    /// Whether each request leaves a [`Stamp`](super::Stamp), of which ten million are kept.
    pub log: bool,
    /// Never sleep: costs a CPU, and saves the time that waking up takes before a request is read.
    pub spin: bool,
    /// Whether replies are due as if each request had been read when it came (TCP only): a machine
    /// that takes the server's CPU away for milliseconds delays replies that were due meanwhile,
    /// but the queue loses none of its capacity.
    pub from_arrival: bool,
    /// CPUs for its thread; empty for all that the caller may use.
    pub cpus: Vec<usize>,
}

impl Default for ScriptedSettings {
    /// Answers at once on a free port of 127.0.0.1, with stamps, on any CPU.
    fn default() -> Self {
        Self {
            listen: Listen::default(),
            script: Script::default(),
            log: true,
            spin: false,
            from_arrival: false,
            cpus: Vec::new(),
        }
    }
}
