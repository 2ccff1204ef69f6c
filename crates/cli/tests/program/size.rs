//! `size`: questions, price files and records that it refuses, and answers from real records.

use std::fs;
use std::time::Duration;

use super::common::{Finished, Place, among, installed, one_block};

/// Timeout, far more than any run here takes even on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// A question that every rate answers: one request per second of which few may fail.
const EASY: [&str; 6] = ["--rate", "1", "--slo", "error<50%", "--value", "100"];

fn size(place: &Place, arguments: &[&str]) -> Finished {
    place.on_records(&[&["size"], arguments].concat())
}

/// Asserts that a question is refused with one error line that contains all of `parts`.
#[track_caller]
fn refused(arguments: &[&str], parts: &[&str]) {
    size(&Place::new(), arguments).usage_error(parts);
}

/// `bench` at a low planned rate, in blocks of a fraction of a second.
fn measured(place: &Place, blocks: &str) {
    let mut command = place.command();
    command.args(["bench", "redis", "--rate", "300", "--duration", "700ms", "--warmup", "50ms"]);
    command.args(["--value", "100", "--keys", "2000", "--quiet", "--blocks", blocks]);
    command.arg("--out").arg(place.records()).arg("--disk").arg(place.disk());
    Place::finish(command).measured();
}

/// A text on one line: long paths break lines.
fn unwrapped(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn wrong_questions_name_the_flag_and_the_expected_form() {
    let with = |flag: &'static str, value: &'static str| [&EASY[..], &[flag, value]].concat();
    let instead = |at: usize, value: &'static str| {
        let mut all = EASY;
        all[at] = value;
        all
    };
    refused(&instead(1, "0"), &["--rate is `0`", "more than 0"]);
    refused(&instead(1, "40x"), &["--rate: `40x` is not a count", "for example 50000, 20k"]);
    refused(&instead(3, "p99"), &["--slo: `p99`", "has no `<`"]);
    refused(&instead(5, "1K"), &["--value: `1K` is not a size", "KiB"]);
    refused(&instead(5, "1TiB"), &["--value is `1TiB`", "at most 512 MiB"]);
    refused(&instead(5, "0"), &["--value is `0`", "more than 0"]);
    for wrong in ["80", "0%", "101%", "NaN%", "-1"] {
        refused(&with("--headroom", wrong), &[&format!("`{wrong}`"), "percent above 0"]);
    }
    refused(&with("--keys", "many"), &["--keys: `many` is not a count"]);
    refused(&with("--op", "get=0"), &["--op: `get=0` has no weight above 0"]);
    refused(&with("--writes", "5k"), &["--writes has no effect", "--keys or --data"]);
    refused(&["--data", "50gigs"], &["--data: `50gigs` is not a size"]);
    refused(&["--data", "1GB", "--writes", "0/s"], &["--writes is `0/s`"]);
}

#[test]
fn flags_that_belong_together_are_required_together() {
    for (arguments, part) in [
        (&["--slo", "p99<1ms"][..], "--rate"),
        (&["--rate", "1", "--value", "1KiB"], "--slo"),
        (&["--rate", "1", "--slo", "p99<1ms"], "--value"),
        (&["--keys", "1M"], "--value"),
        (&["--data", "1GB", "--survive", "1"], "--rate"),
        (&["--data", "1GB", "--keys", "1M", "--value", "1KiB"], "cannot be used with"),
        (&[], "<--rate <RATE>"),
    ] {
        let finished = size(&Place::new(), arguments).code(2);
        assert!(finished.stderr.contains(part), "{finished:#?}");
    }
}

#[test]
fn without_records_the_command_of_a_run_is_printed() {
    let place = Place::new();
    let asked = ["--rate", "40k", "--slo", "p99<1ms", "--value", "1KiB", "--keys", "5M", "--tls"];
    let text = size(&place, &asked).code(6).stdout;
    assert!(text.contains("NOT COVERED") && text.contains("there are no records"), "{text}");
    let command = "cachedyno find-max redis --slo 'p99<1ms' --value 1KiB --keys 5M \
                   --set save= --set appendonly=no --set listen=tls --blocks 3 --out ";
    assert!(text.contains(command), "{text}");
    let answer = size(&place, &[&asked[..], &["--format", "json"]].concat()).code(6).json();
    assert_eq!((&answer["format"], &answer["outcome"]), (&1.into(), &"not-covered".into()));
    assert_eq!(answer["deployments"].as_array().map(Vec::len), Some(0), "{answer}");
    let memory = size(&place, &["--data", "50GB", "--writes", "20000/s"]).code(6).stdout;
    assert!(memory.contains("cachedyno run beyond-ram --set profile=save --out "), "{memory}");
}

#[test]
fn a_real_record_answers_or_is_left_out_with_its_reason() {
    if !installed(&["redis-server"]) {
        return;
    }
    let place = Place::new();
    measured(&place, "3");
    let run = place.record().header()["run"].as_str().unwrap().to_string();
    let asked = [&EASY[..], &["--keys", "2000", "--format", "json"]].concat();
    let finished = size(&place, &asked);
    let answer = finished.json();
    if finished.code == Some(6) {
        // A disturbed machine: the record is not VALID, and nothing follows from it.
        let left = &answer["left_out"][0];
        assert_eq!(left["run"], run.as_str(), "{answer}");
        assert!(left["reason"].as_str().unwrap().starts_with("NOT-STEADY: "), "{answer}");
        return;
    }
    assert_eq!((finished.code, &answer["outcome"]), (Some(0), &"covered".into()), "{answer}");
    let own = &answer["deployments"][0];
    let (rate, memory) = (&own["rate"], &own["memory"]);
    assert_eq!((&own["target"], &own["servers"]), (&"redis".into(), &1.into()), "{answer}");
    assert_eq!((&rate["mix"], &rate["keys"]), (&"get=0.9,set=0.1".into(), &2_000.into()));
    // 2,000 keys with values of 100 bytes.
    assert!(memory["data_bytes"].as_u64().unwrap() > 200_000, "{answer}");
    let origins = among(&own["measurements"], |m| m["run"] == run.as_str());
    assert_eq!(origins.len(), 2, "the rate, and the memory of a key: {answer}");
    // The run by its id, and another size of values.
    size(&place, &[&EASY[..], &[&run]].concat()).code(0);
    let other = ["--rate", "1", "--slo", "error<50%", "--value", "1KiB"];
    let text = size(&place, &other).code(6).stdout;
    assert!(text.contains("with values of 1 KiB (measured: 100 B;"), "{text}");
}

#[test]
fn a_real_failover_limits_the_rate_unless_it_is_left_out() {
    if !installed(&["redis-server"]) {
        return;
    }
    let place = Place::new();
    let mut command = place.command();
    command.args(["bench", "redis", "--rate", "300", "--duration", "700ms", "--warmup", "50ms"]);
    command.args(["--value", "100", "--keys", "2000", "--quiet", "--blocks", "3"]);
    command.args(["--set", "save=", "--set", "appendonly=no"]);
    command.arg("--out").arg(place.records()).arg("--disk").arg(place.disk());
    Place::finish(command).measured();
    let asked = [&EASY[..], &["--survive", "1", "--format", "json"]].concat();
    let finished = size(&place, &asked);
    let answer = finished.json();
    if finished.code == Some(0) {
        let command = &answer["missing"][0]["commands"][0];
        let expected = "cachedyno run failover --set value_bytes=100 --out ";
        assert!(command.as_str().unwrap().starts_with(expected), "{answer}");
        assert!(answer["deployments"][0]["rate"]["survived_share"].is_null(), "{answer}");
    }

    let sets = ["profile=failover-proof", "shares=20", "fault_ms=1500", "restore_ms=5000"];
    let sets = sets.into_iter().chain(["measure_ms=9000", "keys=5000", "value_bytes=100"]);
    let sets: Vec<&str> = sets.flat_map(|set| ["--set", set]).collect();
    let arguments = [&["failover", "--target", "redis"], &sets[..]].concat();
    one_block::started(&place, &arguments).finish_within(PATIENCE);
    let answer = size(&place, &asked).json();
    let own = &answer["deployments"][0];
    if own["rate"]["survived_share"].is_null() {
        // A disturbed machine: a record is not VALID, or no share survived.
        let is_left_out = !answer["left_out"].as_array().unwrap().is_empty();
        assert!(is_left_out || answer["outcome"] == "not-covered", "{answer}");
        return;
    }
    assert_eq!((&own["rate"]["survived_share"], &own["servers"]), (&0.2.into(), &2.into()));
    assert_eq!((&own["replicas"], &own["spare_shards"]), (&1.into(), &0.into()), "{answer}");
    let survived = |m: &serde_json::Value| {
        let what = m["what"].as_str().unwrap();
        what.contains("the death of its primary") && what.contains("all servers on one host")
    };
    assert_eq!(among(&own["measurements"], survived).len(), 1, "{answer}");
    assert_eq!(answer["missing"], serde_json::json!([]));
}

#[test]
fn a_damaged_record_is_left_out_unless_it_is_named() {
    if !installed(&["redis-server"]) {
        return;
    }
    let place = Place::new();
    measured(&place, "1");
    let record = place.record();
    let run = record.header()["run"].as_str().unwrap().to_string();
    fs::write(record.path.join("trials.jsonl"), "{\n").unwrap();
    let text = unwrapped(&size(&place, &EASY).code(6).stdout);
    assert!(text.contains(&run) && text.contains("is damaged"), "{text}");
    size(&place, &[&EASY[..], &[&run]].concat()).usage_error(&["trials.jsonl", "is damaged"]);
    fs::write(record.path.join("header.json"), "{").unwrap();
    let text = unwrapped(&size(&place, &EASY).code(6).stdout);
    assert!(text.contains("header.json") && text.contains("is damaged"), "{text}");
    size(&place, &[&EASY[..], &["nosuchrun"]].concat()).usage_error(&["no run `nosuchrun`"]);
}

#[test]
fn wrong_price_files_are_refused() {
    if !installed(&["redis-server"]) {
        return;
    }
    let place = Place::new();
    measured(&place, "3");
    let price = |text: &str| {
        let file = place.write("prices.toml", text);
        size(&place, &[&EASY[..], &["--price", file.to_str().unwrap()]].concat())
    };
    let head = "currency = \"EUR\"\n[per_hour]\n";
    price(&format!("{head}redis = -0.1\n")).usage_error(&["price of `redis` is `-0.1`", "0 or"]);
    price(&format!("{head}C3 = 1\n")).usage_error(&["price of `C3`", "in no record", ": redis)"]);
    price("[per_hour]\nredis = 1\n").usage_error(&["prices.toml`", "missing field `currency`"]);
    let priced = price(&format!("{head}redis = 3.6\n"));
    assert!(matches!(priced.code, Some(0 | 6)), "{priced:#?}");
    // 3.60 an hour for one request per second.
    assert!(priced.code == Some(6) || priced.stdout.contains("1000 EUR"), "{priced:#?}");
    let missing = size(&place, &[&EASY[..], &["--price", "/nonexistent.toml"]].concat());
    missing.usage_error(&["--price `/nonexistent.toml` cannot be read"]);
}

#[test]
#[ignore = "takes more than a minute: `make soak` runs it"]
fn the_commands_that_are_printed_run() {
    if !installed(&["redis-server"]) {
        return;
    }
    let place = Place::new();
    let asked = ["--rate", "1", "--slo", "p99<1s", "--value", "100", "--keys", "500", "--tls"];
    let answer = size(&place, &[&asked[..], &["--format", "json"]].concat()).json();
    let command = answer["missing"][0]["commands"][0].as_str().unwrap();
    let program = assert_cmd::cargo::cargo_bin!("cachedyno").display().to_string();
    let short = "--probe 500ms --warmup 50ms --rounds 2 --blocks 1 --quiet";
    let line = command.replacen("cachedyno", &program, 1).replace("--blocks 3", short);
    let run = place.command_by("sh", &["-c", &format!("{line} --disk {}", place.disk().display())]);
    Place::finish(run).measured();
    let settings = &place.record().header()["plan"]["targets"][0]["settings"];
    assert_eq!(settings["listen"], "tls");
}
