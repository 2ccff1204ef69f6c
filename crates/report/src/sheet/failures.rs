//! Failed trials and probes.

use crate::section::{Block, Section};
use crate::view::{FailureView, View};

/// Lines of failures in a summary.
const FEW: usize = 3;

/// Failed trials and probes, and the logs of servers that died.
pub(crate) fn section(view: &View) -> Section {
    let told = |f: &FailureView| {
        let place = format!("{} in block {}{}", f.cell, f.block + 1, probe(f));
        let log = f.log.as_ref().map(|log| Block::item(format!("its log: {log}")));
        [Some(Block::item(format!("{place}: {}: {}", f.class, f.reason))), log]
    };
    let blocks = view.failures.iter().flat_map(told).flatten().collect();
    Section { id: "failures", title: "Failed trials", blocks }
}

/// The first failures, and how many more there are.
pub(crate) fn few(view: &View) -> Section {
    let mut section = section(view);
    let more = section.blocks.len().saturating_sub(FEW);
    section.blocks.truncate(FEW);
    section.blocks.extend((more > 0).then(|| Block::item(format!("{more} more lines"))));
    section
}

/// `, probe 12`; nothing where all of the trial failed.
pub(crate) fn probe(failure: &FailureView) -> String {
    failure.probe.map_or_else(String::new, |number| format!(", probe {number}"))
}
