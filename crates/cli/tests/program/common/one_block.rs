//! Runs of a study with one block, and what their summaries say.

use serde_json::Value;

use super::{Place, Started, among};

/// Starts one block of a study with these arguments.
pub(crate) fn started(place: &Place, arguments: &[&str]) -> Started {
    let block = ["--scale", "quick", "--format", "json", "--set", "blocks_max=1"];
    Started::new(place.run(&[arguments, &block, &["--set", "blocks_min=1"]].concat()))
}

/// The value of a fact in the only block.
pub(crate) fn fact(summary: &Value, workload: &str, name: &str, source: &str) -> Option<f64> {
    let facts = &summary["facts"];
    let own = |f: &Value| f["workload"] == workload && f["name"] == name && f["source"] == source;
    among(facts, own).first()?["value"]["center"].as_f64()
}

/// Times of the events of a kind, seconds since the start of their phase.
pub(crate) fn events(summary: &Value, kind: &str) -> Vec<f64> {
    let found = among(&summary["events"], |event| event["kind"] == kind);
    found.iter().map(|event| event["at_s"].as_f64().unwrap()).collect()
}
