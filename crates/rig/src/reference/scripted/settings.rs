//! Settings of the scripted server.

use super::script::Script;
use crate::reference::listen::Listen;

/// Settings of a scripted server.
#[derive(Clone, Debug, PartialEq)]
pub struct ScriptedSettings {
    /// Listening address.
    pub listen: Listen,
    /// Its behaviour.
    pub script: Script,
    /// Whether to keep a [`Stamp`](super::Stamp) of each request, up to ten million.
    pub log: bool,
    /// Never sleep: occupies a CPU, but saves the wake-up time before each read.
    pub spin: bool,
    /// Whether due times are computed from each request's arrival instead of its read (TCP only).
    /// If the server loses its CPU for milliseconds, replies due in that time are late, but the
    /// queue keeps its capacity.
    pub from_arrival: bool,
    /// CPUs for its thread; empty for all CPUs available to the caller.
    pub cpus: Vec<usize>,
}

impl Default for ScriptedSettings {
    /// Replies immediately, on a free port of 127.0.0.1, with stamps, on any CPU.
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
