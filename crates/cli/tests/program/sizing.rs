//! The study of sizing: private servers on ports, with TLS and without.

use super::common::{Place, among, count, installed};

#[test]
fn a_server_with_tls_is_measured_beside_one_without() {
    if !installed(&["redis-server"]) {
        return;
    }
    let place = Place::new();
    let mut command = place.command();
    command.args(["run", "sizing", "--scale", "quick", "--budget", "1s", "--format", "json"]);
    command.args(["--set", "profile=printed-throughput,latency", "--set", "measure_ms=200"]);
    command.args(["--set", "keys=500", "--set", "rate=500", "--set", "blocks_min=1"]);
    command.arg("--out").arg(place.records()).arg("--disk").arg(place.disk());
    let summary = Place::finish(command).measured().json();
    for target in ["redis", "redis-tls"] {
        let rows = among(&summary["cells"], |row| row["target"] == target);
        assert_eq!(rows.len(), 3, "gets of one key, and gets and sets at a rate");
        assert!(rows.iter().all(|row| row["blocks"] == 1 && count(row, "ok") > 0), "{rows:?}");
    }
    let record = place.record();
    let planned = &record.header()["plan"]["targets"];
    let listens = |name: &str| {
        let mut all = planned.as_array().unwrap().iter();
        all.find(|target| target["name"] == name).unwrap()["settings"]["listen"].clone()
    };
    assert_eq!((listens("redis"), listens("redis-tls")), ("tcp".into(), "tls".into()));
    // Passwords and keys of the start are in no file of the record.
    for entry in std::fs::read_dir(&record.path).unwrap() {
        let text = std::fs::read(entry.unwrap().path()).unwrap();
        let text = String::from_utf8_lossy(&text);
        assert!(!text.contains("PRIVATE KEY") && !text.contains("requirepass"));
    }
    place.assert_nothing_left();
}

#[test]
fn a_wrong_way_to_listen_is_a_target_that_is_not_run() {
    let place = Place::new();
    let mut command = place.command();
    command.args(["run", "sizing", "--scale", "quick", "--target", "redis", "--format", "json"]);
    command.args(["--set", "redis.listen=udp", "--set", "profile=latency"]);
    command.arg("--out").arg(place.records()).arg("--disk").arg(place.disk());
    let finished = Place::finish(command);
    let text = format!("{}{}", finished.stdout, finished.stderr);
    assert!(text.contains("`unix`, `tcp`, `tls` or `stunnel`"), "{text}");
    place.assert_nothing_left();
}
