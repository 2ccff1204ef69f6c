use super::*;
use crate::kv::KeyChoice;

fn preset(name: &str) -> Preset {
    name.parse().unwrap()
}

fn share(preset: &Preset, operation: &str) -> f64 {
    let at = preset.operations.pairs().iter().position(|(name, _)| name == operation);
    at.map_or(0.0, |at| preset.operations.mix().shares()[at])
}

#[test]
fn every_preset_can_be_drawn() {
    assert_eq!(Preset::names().count(), LINES.len());
    for name in Preset::names() {
        let preset = preset(name);
        assert_eq!(preset.name, name);
        assert!(KeyChoice::new(preset.keys, 1_000).is_ok(), "{name}");
        let known = ["read", "update", "insert", "read-modify-write"];
        assert!(preset.operations.pairs().iter().all(|(o, _)| known.contains(&&**o)), "{name}");
    }
}

#[test]
fn the_shares_of_ycsb_match_its_files() {
    for (name, read, update, insert, modify) in [
        ("ycsb-a", 0.5, 0.5, 0.0, 0.0),
        ("ycsb-b", 0.95, 0.05, 0.0, 0.0),
        ("ycsb-c", 1.0, 0.0, 0.0, 0.0),
        ("ycsb-d", 0.95, 0.0, 0.05, 0.0),
        ("ycsb-f", 0.5, 0.0, 0.0, 0.5),
    ] {
        let preset = preset(name);
        let shares = ["read", "update", "insert", "read-modify-write"].map(|o| share(&preset, o));
        let expected = [read, update, insert, modify];
        let near = shares.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-12);
        assert!(near, "{name}: {shares:?}");
        let keys = if name == "ycsb-d" { "ycsb-latest" } else { "ycsb-zipfian" };
        assert_eq!(preset.keys.to_string(), keys, "{name}");
        assert_eq!(preset.values.fixed(), Some(1_000), "{name}");
    }
}

#[test]
fn twitter_clusters_match_the_table() {
    for (name, update, exponent, value, key, ttl) in [
        ("twitter-c12", 0.80, 0.3048, 1_030, 44, 300),
        ("twitter-c15", 1.0, 0.0242, 102, 18, 30),
        ("twitter-c31", 0.94, 0.0, 15, 41, 60),
        ("twitter-c37", 0.37, 0.4251, 20_134, 72, 20),
        ("twitter-c52", 0.0606, 1.2117, 273, 20, 86_400),
    ] {
        let preset = preset(name);
        assert!((share(&preset, "update") - update).abs() < 1e-4, "{name}");
        assert_eq!(preset.keys, Distribution::Zipf { exponent, scattered: true }, "{name}");
        assert!((preset.values.mean() - f64::from(value)).abs() < 1e-9, "{name}");
        assert_eq!((preset.name_bytes, preset.ttl_s), (Some(key), Some(ttl)), "{name}");
    }
}

#[test]
fn an_unknown_name_lists_all_presets() {
    let error = "ycsb-e".parse::<Preset>().unwrap_err().to_string();
    assert_eq!(
        error,
        "`ycsb-e` is not a published workload, expected one of ycsb-a, ycsb-b, ycsb-c, ycsb-d, \
         ycsb-f, twitter-c12, twitter-c15, twitter-c31, twitter-c37, twitter-c52"
    );
}
