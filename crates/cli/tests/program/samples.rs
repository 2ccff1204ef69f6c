//! Resource usage of server and generator over time, in the record and as CSV.

use std::collections::BTreeMap;
use std::fs;

use super::common::{Place, RedisServer, installed};

/// The lines of `export --csv-samples`, by column name. No field of these runs contains a comma.
fn samples(place: &Place, run: &str) -> Vec<BTreeMap<String, String>> {
    let csv = place.on_records(&["export", run, "--csv-samples"]).code(0).stdout;
    let mut lines = csv.lines().map(|line| line.split(',').map(String::from));
    let names: Vec<String> = lines.next().unwrap().collect();
    lines.map(|fields| names.iter().cloned().zip(fields).collect()).collect()
}

fn number(sample: &BTreeMap<String, String>, name: &str) -> u64 {
    sample[name].parse().unwrap_or_else(|_| panic!("`{name}` of {sample:?}"))
}

#[test]
fn a_private_server_is_sampled_and_exported() {
    if !installed(&["redis-server", "setpriv"]) {
        return;
    }
    let place = Place::new();
    let mut command = place.command();
    command.args(["bench", "redis", "--op", "get", "--keys", "500", "--clients", "4"]);
    command.args(["--duration", "700ms", "--warmup", "100ms", "--blocks", "2"]);
    command.args(["--format", "json"]);
    command.arg("--out").arg(place.records()).arg("--disk").arg(place.disk());
    Place::finish(command).measured();
    let record = place.record();
    let samples = samples(&place, "latest");
    for (block, trial) in record.trials().iter().enumerate() {
        let of_trial: Vec<_> =
            samples.iter().filter(|s| number(s, "block") == block as u64).collect();
        assert!(of_trial.len() >= 5, "{} samples", of_trial.len());
        assert!(of_trial.iter().all(|s| s["cell"] == trial["cell"].as_str().unwrap()));
        let (first, last) = (of_trial[0], of_trial[of_trial.len() - 1]);
        for counter in ["at_ns", "server_cpu_ns", "generator_cpu_ns"] {
            assert!(number(last, counter) > number(first, counter), "{counter}");
        }
        let readings: Vec<u64> =
            of_trial.iter().filter_map(|s| s["store_commands"].parse().ok()).collect();
        assert!(readings.len() >= 3 && readings.is_sorted(), "{readings:?}");
        assert!(readings.last() > readings.first(), "{readings:?}");
        let phase = &trial["points"][0];
        let begun_ns = phase["begun_ns"].as_u64().unwrap();
        let ended_ns = begun_ns + phase["length_ns"].as_u64().unwrap();
        let within = |at_ns: u64| (begun_ns..ended_ns).contains(&at_ns);
        assert!(of_trial.iter().filter(|s| within(number(s, "at_ns"))).count() >= 3, "{phase}");
        assert!(ended_ns <= number(last, "at_ns"), "{phase}");
        assert!(last["server_threads"].contains("redis-server/"), "{last:?}");
        assert_eq!(last["network_interface"], "");
    }
    let run = record.header()["run"].as_str().unwrap().to_string();
    assert!(samples.iter().all(|s| s["run"] == run));

    // A record with a torn last line, and one without samples.
    let file = record.path.join("samples.jsonl.gz");
    let whole = fs::read(&file).unwrap();
    fs::write(&file, &whole[..whole.len() - 7]).unwrap();
    let left = self::samples(&place, "latest");
    assert!(!left.is_empty() && left.iter().all(|s| number(s, "block") == 0));
    fs::remove_file(&file).unwrap();
    assert!(self::samples(&place, "latest").is_empty());
    place.on_records(&["show"]).code(0);
    fs::write(&file, "not packed at all").unwrap();
    place
        .on_records(&["export", "--csv-samples"])
        .error(&["samples.jsonl.gz`, line 1, is damaged"]);
}

#[test]
fn an_existing_server_is_sampled_with_its_traffic() {
    if !installed(&["redis-server", "redis-cli", "setpriv"]) {
        return;
    }
    let server = RedisServer::on_a_port();
    let place = Place::new();
    let mut command = place.command();
    command.args(["bench", &server.port_url(), "--op", "set", "--keys", "500", "--clients", "4"]);
    command.args(["--duration", "700ms", "--warmup", "100ms", "--blocks", "1"]);
    command.args(["--format", "json"]);
    command.arg("--out").arg(place.records()).arg("--disk").arg(place.disk());
    Place::finish(command).measured();
    let samples = samples(&place, "latest");
    let (first, last) = (&samples[0], &samples[samples.len() - 1]);
    assert_eq!(last["server_cpu_ns"], "");
    let readings: Vec<_> = samples.iter().filter(|s| !s["store_keys"].is_empty()).collect();
    assert!(readings.len() >= 3, "{} of {}", readings.len(), samples.len());
    assert!(readings.iter().any(|s| number(s, "store_keys") == 500), "{readings:?}");
    assert!(readings.iter().all(|s| number(s, "store_connections") >= 1), "{readings:?}");
    for counter in ["network_received_bytes", "network_sent_packets"] {
        assert!(number(last, counter) > number(first, counter), "{counter}");
    }
    // Sampling leaves nothing behind in the store.
    assert_eq!(server.keys(), [""; 0]);
}
