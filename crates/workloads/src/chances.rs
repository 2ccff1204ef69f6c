//! Random choice of operations by the weights of a phase's mix.

use std::collections::BTreeMap;

/// Operations of a mix with their shares.
#[derive(Clone, Debug, Default)]
pub(crate) struct Chances {
    /// Upper bound of each operation's share, scaled to 64 bits, and the operation's index.
    thresholds: Vec<(u64, usize)>,
}

impl Chances {
    /// The shares of `mix`, whose weights need not add up to 1. Operations are identified by their
    /// index in `operations`.
    pub(crate) fn new(mix: &BTreeMap<String, f64>, operations: &[&str]) -> Self {
        let all: f64 = mix.values().sum();
        let mut up_to = 0.0;
        let mut thresholds: Vec<(u64, usize)> = operations
            .iter()
            .enumerate()
            .filter_map(|(operation, name)| Some((operation, mix.get(*name)?)))
            .map(|(operation, weight)| {
                up_to += weight / all;
                // A float of 2^64 saturates, so the last threshold is `u64::MAX`.
                ((up_to * 2f64.powi(64)) as u64, operation)
            })
            .collect();
        if let Some(last) = thresholds.last_mut() {
            last.0 = u64::MAX;
        }
        Self { thresholds }
    }

    /// The operation selected by a scattered number; `None` if the mix is empty.
    pub(crate) fn choose(&self, draw: u64) -> Option<usize> {
        let chosen = self.thresholds.iter().find(|(up_to, _)| draw <= *up_to);
        chosen.map(|(_, operation)| *operation)
    }
}
