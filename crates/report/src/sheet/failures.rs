//! Failed trials and probes.

use crate::section::{Block, Section};
use crate::show;
use crate::view::{FailureView, View};

/// Maximum lines of failures in a summary.
const FEW: usize = 3;

/// Failed trials and probes, with the logs of dead servers.
pub(crate) fn section(view: &View) -> Section {
    let items = |f: &FailureView| {
        let phase = f.phase.as_ref().filter(|_| f.probe.is_none());
        let phase = phase.map_or_else(String::new, |phase| format!(" {phase}"));
        let place = format!("{}{phase} in block {}{}", f.cell, f.block + 1, probe(f));
        let log = f.log.as_ref().map(|log| Block::item(format!("its log: {log}")));
        [Some(Block::item(format!("{place}: {}: {}", f.class, f.reason))), log]
    };
    let blocks = view.failures.iter().flat_map(items).flatten().collect();
    Section { id: "failures", title: "Failed trials", blocks }
}

/// The first failures, and the number of further ones.
pub(crate) fn few(view: &View) -> Section {
    let mut section = section(view);
    let more = section.blocks.len().saturating_sub(FEW);
    section.blocks.truncate(FEW);
    section.blocks.extend((more > 0).then(|| Block::item(show::more_lines(more))));
    section
}

/// `, probe 12`, or empty if the whole trial failed.
pub(crate) fn probe(failure: &FailureView) -> String {
    failure.probe.map_or_else(String::new, |number| format!(", probe {number}"))
}
