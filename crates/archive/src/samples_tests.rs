//! Tests of [`super`].

use super::*;
use model::{DeviceUse, NetworkUse, Pressure, ProcessUse, ProxyUse, StoreCounters, ThreadCpu};
use std::fs::{self, OpenOptions};

/// As long as the name of a server with a database at a socket can be.
const SOCKET: &str = "unix socket /tmp/cachedyno-36b366c8/server.sock database cachedyno";

/// A sample of a server whose thread 7 does all the work, with a thread that starts later.
fn sample(n: u64) -> Sample {
    let thread = |id, name: &str, cpu_ns| ThreadCpu { id, name: name.into(), cpu_ns };
    let mut threads = vec![thread(7, "redis-server", 90_000_000 * n)];
    if n >= 3 {
        threads.push(thread(9, "bio", 1000 * n));
    }
    Sample {
        // The first server is started again under another id.
        servers: if n < 3 {
            vec![thread(7, "127.0.0.1:7001", 30 * n), thread(8, SOCKET, 25 * n)]
        } else {
            vec![thread(8, SOCKET, 25 * n), thread(9, "127.0.0.1:7001", 30 * n)]
        },
        at_ns: 12_345 + 100_000_000 * n + n % 3,
        server: (n != 5).then(|| ProcessUse {
            cpu_ns: 91_000_000 * n,
            threads,
            resident_bytes: 10_000_000 - 4096 * (n / 4),
            swapped_bytes: 0,
            voluntary_switches: 17 * n,
            involuntary_switches: n / 2,
            run_delay_ns: u64::MAX - n,
            major_faults: n,
            calls: 3 * n,
        }),
        proxy: (n != 6).then(|| ProxyUse { cpu_ns: 7_000_000 * n, resident_bytes: 5_000_000 + n }),
        generator: ProcessUse {
            cpu_ns: 1 << 40,
            threads: vec![thread(3, if n < 4 { "cachedyno" } else { "loop" }, 5 + n)],
            ..ProcessUse::default()
        },
        store: (n % 4 != 1).then(|| StoreCounters {
            used_bytes: Some(1_000_000),
            fragmentation: Some(1.25 + n as f64 / 1e3),
            keys: Some(0),
            hits: (n > 2).then_some(n),
            evicted: Some(if n == 6 { 4 } else { 0 }),
            ..StoreCounters::default()
        }),
        group_bytes: (n != 2).then_some(3_000_000 + 4096 * n),
        group_throttled_ns: (n != 2).then_some(5_000 * n),
        device: (n != 3).then(|| DeviceUse { read_bytes: n * 512, ..DeviceUse::default() }),
        pressure: (n != 4).then(|| Pressure { io_full_ns: n * 1000, ..Pressure::default() }),
        group_pressure: None,
        network: (n > 0).then(|| NetworkUse {
            interface: "lo".into(),
            received_bytes: 1_000_000 * n,
            sent_bytes: 1_000_001 * n,
            received_packets: 3,
            sent_packets: 4,
        }),
    }
}

fn of(record: &tempfile::TempDir) -> Directory {
    Directory::open(record.path()).unwrap()
}

fn read(record: &tempfile::TempDir) -> Result<SamplesByTrial, ArchiveError> {
    PackedSamples::read(record.path())?.by_trial()
}

fn samples(number: u64) -> Vec<Sample> {
    (0..number).map(sample).collect()
}

#[test]
fn samples_are_restored_exactly() {
    let record = tempfile::tempdir().unwrap();
    assert!(read(&record).unwrap().is_empty());
    let trials = [(0, "redis/steady/8", samples(8)), (1, "redis/steady/8", samples(1))];
    for (block, cell, samples) in &trials {
        append_samples(&of(&record), (*block, cell), samples).unwrap();
    }
    let idle = vec![Sample { at_ns: 1, ..Sample::default() }; 3];
    append_samples(&of(&record), (0, "files/steady/8"), &idle).unwrap();
    let read = read(&record).unwrap();
    for (block, cell, samples) in trials {
        assert_eq!(read[&(block, cell.to_string())], samples);
    }
    assert_eq!(read[&(0, "files/steady/8".to_string())], idle);
    assert_eq!(read.len(), 3);
}

#[test]
fn long_trials_yield_all_samples_and_keep_a_subset_in_memory() {
    let record = tempfile::tempdir().unwrap();
    // Unpredictable, like real samples.
    let at = |n: u64| Sample {
        at_ns: 100_000_000 * n + n.wrapping_mul(0x9E37_79B9_7F4A_7C15) % 90_000_000,
        ..sample(n.wrapping_mul(0x9E37_79B9_7F4A_7C15) % 8_000)
    };
    let long: Vec<Sample> = (0..40_000).map(at).collect();
    for block in 0..3 {
        append_samples(&of(&record), (block, "a"), &long).unwrap();
    }
    let mut told = 0;
    let packed = PackedSamples::read(record.path()).unwrap();
    packed
        .each(|(block, cell), sample| {
            assert_eq!((block, cell), (told / 40_000, "a"));
            let written = &long[told as usize % 40_000];
            assert_eq!((sample.at_ns, &sample.server), (written.at_ns, &written.server));
            told += 1;
            Ok::<(), ArchiveError>(())
        })
        .unwrap();
    assert_eq!(told, 3 * 40_000);
    let kept = packed.by_trial().unwrap();
    let bytes: usize = kept.values().flatten().map(bytes_of).sum();
    assert!(bytes <= packed.kept_max(), "{bytes}");
    for samples in kept.values() {
        assert!(samples.len() > 1_000, "{}", samples.len());
        assert!(samples.is_sorted_by_key(|s| s.at_ns));
    }
}

#[test]
fn a_repeated_trial_has_the_later_samples() {
    let record = tempfile::tempdir().unwrap();
    append_samples(&of(&record), (0, "a"), &samples(4)).unwrap();
    append_samples(&of(&record), (0, "a"), &samples(2)).unwrap();
    assert_eq!(read(&record).unwrap()[&(0, "a".to_string())], samples(2));
}

#[test]
fn a_torn_member_is_ignored_and_truncated() {
    let record = tempfile::tempdir().unwrap();
    let path = record.path().join(SAMPLES);
    append_samples(&of(&record), (0, "a"), &samples(8)).unwrap();
    let whole = fs::read(&path).unwrap();
    append_samples(&of(&record), (0, "b"), &samples(8)).unwrap();
    let both = fs::read(&path).unwrap();
    for torn in whole.len()..both.len() {
        fs::write(&path, &both[..torn]).unwrap();
        assert_eq!(read(&record).unwrap().len(), 1, "{torn}");
        cut_torn_member(&of(&record)).unwrap();
        assert_eq!(fs::read(&path).unwrap(), whole, "{torn}");
    }
    append_samples(&of(&record), (1, "c"), &samples(3)).unwrap();
    assert_eq!(read(&record).unwrap()[&(1, "c".to_string())], samples(3));
}

#[test]
fn damage_is_an_error_with_its_line() {
    let record = tempfile::tempdir().unwrap();
    let path = record.path().join(SAMPLES);
    for block in 0..2 {
        append_samples(&of(&record), (block, "a"), &samples(8)).unwrap();
    }
    let mut packed = fs::read(&path).unwrap();
    let middle = packed.len() / 4;
    packed[middle] ^= 0xff;
    fs::write(&path, &packed).unwrap();
    let text = read(&record).unwrap_err().to_string();
    assert!(text.contains("samples.jsonl.gz`, line 1, is damaged: "), "{text}");
    let long = r#"{"block":0,"cell":"a","at_ns":[1],"interface":null,"counters":{"later":[1,2]},
        "server_threads":[],"generator_threads":[],"later":{"than":"this version"}}"#;
    let line: Line = serde_json::from_str(long).unwrap();
    assert_eq!(line.samples().err().unwrap(), "a column is longer than that of the times");
    let unordered = long.replace("[1]", "[5,-3]").replace("[1,2]", "[1]");
    let line: Line = serde_json::from_str(&unordered).unwrap();
    assert_eq!(line.samples().err().unwrap(), "its samples are not in order of time");
}

#[test]
fn system_tools_can_read_the_samples() {
    let record = tempfile::tempdir().unwrap();
    for block in 0..2 {
        append_samples(&of(&record), (block, "a"), &samples(8)).unwrap();
    }
    let packed = std::process::Command::new("gzip")
        .args(["--decompress", "--stdout"])
        .stdin(OpenOptions::new().read(true).open(record.path().join(SAMPLES)).unwrap())
        .output()
        .unwrap();
    assert!(packed.status.success(), "{packed:?}");
    let text = String::from_utf8(packed.stdout).unwrap();
    assert_eq!(text.lines().count(), 2, "{text}");
    let line: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    // First reading, then differences; a constant counter needs only one entry.
    let counters = &line["counters"];
    let cpu_ns = counters["server_cpu_ns"].as_array().unwrap();
    assert_eq!(cpu_ns[..3], [0, 91_000_000, 91_000_000].map(serde_json::Value::from));
    assert_eq!(counters["server_swapped_bytes"], serde_json::json!([0, 0, 0, 0, 0, null]));
    assert_eq!(counters["store_keys"], serde_json::json!([0, null, 0, 0, 0, null]));
    assert_eq!(counters["network_received_packets"], serde_json::json!([null, 3]));
    assert!(counters.get("store_misses").is_none(), "{line}");
}
