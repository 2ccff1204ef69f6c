//! Keys and values on stores without such a protocol, and on the disk itself.

use std::time::Duration;

use serde_json::Value;

use super::common::{Place, Started, among, count, installed, skipped};

/// Timeout, far more than any run here takes even on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(240);

#[test]
fn stores_on_a_disk_are_measured_beside_the_disk() {
    if !installed(&["mariadbd", "postgres"]) {
        return;
    }
    let place = Place::new();
    let targets = ["files", "sqlite", "mysql", "postgres", "disk"];
    let targets: Vec<&str> = targets.into_iter().flat_map(|name| ["--target", name]).collect();
    // Few, large values: 13,000 keys for the stores, 32,000 and 131,000 blocks for the disk.
    let sets = "profile=stores,device memory=128MiB value_bytes=16384 measure_ms=300 clients=8 \
                blocks_max=1 blocks_min=1";
    let mut arguments = vec!["beyond-ram", "--scale", "quick", "--format", "json"];
    arguments.extend(sets.split_whitespace().flat_map(|set| ["--set", set]));
    arguments.extend(targets);
    let summary = Started::new(place.run(&arguments)).finish_within(PATIENCE).json();
    if let Some(why) = summary["targets"][0]["not_run"].as_str() {
        skipped(why);
        return;
    }
    assert_eq!(summary["failures"].as_array().map_or(0, Vec::len), 0, "{}", summary["failures"]);
    let is_lost = |reason: &Value| reason.as_str().unwrap().contains("lost");
    assert!(among(&summary["reasons"], is_lost).is_empty(), "{}", summary["reasons"]);
    let rows = |name: &str| among(&summary["cells"], |row| row["target"] == name);
    for name in ["files", "sqlite", "mysql", "postgres", "disk"] {
        let own = rows(name);
        assert_eq!(own.len(), if name == "disk" { 4 } else { 2 }, "{name}");
        for row in own {
            assert!(count(row, "ok") > 0 && count(row, "miss") == 0, "{row}");
            assert_eq!(row["counts"]["wrong"].as_u64().unwrap_or(0), 0, "{row}");
            let has_disk = row["metrics"]["disk_rate_per_s"]["center"].as_f64() > Some(0.0);
            let is_watched = row["metrics"].get("device_read_bytes_per_op").is_some();
            assert_eq!(has_disk, name != "disk" && is_watched, "{row}");
        }
    }
    place.assert_nothing_left();
}
