//! Stores that acknowledge writes but lose them.

use serde_json::Value;
use std::process::Command;
use std::time::Duration;

use super::common::{
    Defect, Fake, Place, PortServer, RedisServer, Started, among, installed, wait_until,
};

/// A `bench` of one block that does not verify the values it reads.
fn bench(place: &Place, arguments: &[&str]) -> Command {
    let mut command = place.command();
    command.arg("bench").args(arguments).args(["--format", "json"]);
    if !arguments.contains(&"--keys") {
        command.args(["--keys", "2000"]);
    }
    command.args(["--verify", "0", "--warmup", "50ms", "--blocks", "1"]);
    command.arg("--out").arg(place.records()).arg("--disk").arg(place.disk());
    command
}

/// A load of only sets.
const SETS: [&str; 6] = ["--op", "set=1", "--value", "40", "--duration", "300ms"];

/// Asserts that the run is INVALID because of lost writes; returns that reason.
#[track_caller]
fn reason(summary: &Value) -> String {
    assert_eq!(summary["validity"], "invalid", "{}", summary["reasons"]);
    let reasons = among(&summary["reasons"], |r| r.as_str().unwrap().contains("lost acknowledged"));
    assert_eq!(reasons.len(), 1, "{}", summary["reasons"]);
    reasons[0].as_str().unwrap().to_string()
}

/// Read-back results of each trial.
#[track_caller]
fn read_back(place: &Place) -> Vec<Value> {
    place.record().trials().iter().map(|trial| trial["read_back"].clone()).collect()
}

fn number(read_back: &Value, name: &str) -> u64 {
    read_back[name].as_u64().unwrap_or(0)
}

#[test]
fn a_store_that_keeps_old_values_is_invalid() {
    let (place, fake) = (Place::new(), Fake::new(Defect::KeepsOldOneIn(20)));
    let summary =
        Place::finish(bench(&place, &[&[&*fake.url()], &SETS[..]].concat())).code(4).json();
    let text = reason(&summary);
    assert!(text.contains("contain an older value than the last acknowledged one"), "{text}");
    let outcome = read_back(&place).remove(0);
    let (read, older) = (number(&outcome, "read"), number(&outcome, "older"));
    // One in twenty on average; the bounds allow for chance.
    assert!(read > 1_000 && (read / 60..read / 8).contains(&older), "{outcome}");
}

/// The fill writes 100,000 keys and the load overwrites few of them. Only these can contain an
/// older value.
#[test]
fn writes_to_few_of_many_keys_are_read_back_too() {
    let (place, fake) = (Place::new(), Fake::new(Defect::KeepsOldOneIn(20)));
    let mut command = bench(&place, &[&fake.url(), "--value", "40", "--keys", "100000"]);
    command.args(["--op", "get=0.9,set=0.1"]);
    command.args(["--rate", "3000", "--duration", "1s"]);
    let summary = Place::finish(command).code(4).json();
    assert!(reason(&summary).contains("contain an older value"), "{}", reason(&summary));
    // About 300 sets, one in twenty of which is dropped.
    let outcome = read_back(&place).remove(0);
    assert!((5..40).contains(&number(&outcome, "older")), "{outcome}");
}

#[test]
fn a_store_that_forgets_keys_is_invalid() {
    let (place, fake) = (Place::new(), Fake::new(Defect::ForgetsOneIn(100)));
    let summary =
        Place::finish(bench(&place, &[&[&*fake.url()], &SETS[..]].concat())).code(4).json();
    assert!(reason(&summary).contains("are missing"), "{}", reason(&summary));
}

/// One connection, so the server knows the order of writes as the client does.
#[test]
fn no_lost_write_is_miscounted() {
    let mut lost = 0;
    // Several loads, since at most 2,048 keys of one are read back.
    for requests in ["2k", "3k", "4k"] {
        let (place, fake) = (Place::new(), Fake::new(Defect::Loses));
        let load = ["--op", "set=1", "--value", "40", "--clients", "1", "-n", requests];
        Place::finish(bench(&place, &[&[&*fake.url()], &load[..]].concat())).code(4);
        let (truth, outcome) = (fake.truth(), read_back(&place).remove(0));
        let counted = ["read", "older", "missing", "wrong"].map(|name| number(&outcome, name));
        assert_eq!(counted, [truth.keys, truth.older, truth.missing, 0], "{truth:?}, {outcome}");
        assert!(truth.unknown > 200, "{truth:?}");
        lost += truth.older + truth.missing;
    }
    assert!(lost >= 1_000, "{lost}");
}

#[test]
fn a_ttl_excuses_only_expired_keys() {
    let (place, fake) = (Place::new(), Fake::new(Defect::ForgetsOneIn(100)));
    // The trial is longer than the TTL, which can expire a second early; few keys are that old.
    let ttl = ["--ttl", "3s", "--op", "set=1", "--value", "40", "--duration", "2200ms"];
    let summary = Place::finish(bench(&place, &[&[&*fake.url()], &ttl[..]].concat())).code(4);
    assert!(reason(&summary.json()).contains("are missing"));
    let outcome = read_back(&place).remove(0);
    assert!(number(&outcome, "missing") > 2 * number(&outcome, "may_be_missing"), "{outcome}");
}

#[test]
fn a_ramp_on_a_store_that_forgets_keys_is_invalid() {
    let (place, fake) = (Place::new(), Fake::new(Defect::ForgetsOneIn(100)));
    let target = format!("redis={}", fake.url());
    let mut command = place.run(&["ramp", "--scale", "quick", "--format", "json"]);
    for set in ["stage_ms=120", "measure_ms=150", "warmup_ms=20", "blocks_min=1", "blocks_max=1"] {
        command.args(["--set", set]);
    }
    // A trial is longer than the TTL.
    command.args(["--set", "keys=20000", "--set", "ttl_s=3", "--target", &target]);
    let summary = Place::finish(command).code(4).json();
    let text = reason(&summary);
    assert!(text.contains("keys read back after the load") && text.contains("missing"), "{text}");
    let missed = among(&summary["reasons"], |r| {
        r.as_str().unwrap().contains(" ramp.get: ") && r.as_str().unwrap().contains("not found")
    });
    assert_eq!(missed.len(), 1, "{}", summary["reasons"]);
}

#[test]
fn unverifiable_writes_are_reported() {
    let (place, fake) = (Place::new(), Fake::new(Defect::ForgetsOneIn(100)));
    let command = ["--command", "SET __key__ __data__", "--value", "40", "--duration", "300ms"];
    let summary = Place::finish(bench(&place, &[&[&*fake.url()], &command[..]].concat()));
    let notes = summary.measured().json()["footnotes"].clone();
    let outcome = among(&notes, |n| {
        n.as_str().unwrap().contains("acknowledged writes were not read back: operation")
    });
    assert_eq!(outcome.len(), 1, "{notes}");
}

#[test]
fn lost_session_writes_make_a_run_invalid() {
    let (place, fake) = (Place::new(), Fake::new(Defect::KeepsOldOneIn(20)));
    let target = format!("liar={}", fake.url());
    // Values read during the run are not verified.
    let unverified = ["--set", "verify_one_in=1000000", "--set", "clients=1", "--target", &target];
    let summary = Place::finish(place.fast(&unverified)).code(4).json();
    let text = reason(&summary);
    assert!(text.contains("sessions read back after the load"), "{text}");
    assert!(text.contains("contain an older value"), "{text}");
}

#[test]
fn real_stores_keep_acknowledged_writes() {
    if !installed(&["redis-server", "memcached", "setpriv"]) {
        return;
    }
    for target in ["redis", "memcached"] {
        let place = Place::new();
        let mut command = bench(&place, &[target, "--op", "set=0.4,get=0.3,rmw=0.3"]);
        command.args(["--clients", "50", "--pipeline", "4"]);
        command.args(["--dist", "zipf", "--value", "40", "--duration", "300ms"]);
        Place::finish(command).measured();
        let outcome = read_back(&place).remove(0);
        assert!(number(&outcome, "read") > 1_000, "{target}: {outcome}");
        for fault in ["older", "wrong", "missing"] {
            assert_eq!(number(&outcome, fault), 0, "{target}: {outcome}");
        }
        assert_eq!(outcome["unread"], Value::Null, "{target}: {outcome}");
    }
}

#[test]
fn evicted_keys_do_not_count_as_lost() {
    if !installed(&["memcached", "setpriv"]) {
        return;
    }
    let place = Place::new();
    let server = PortServer::memcached(&["-m", "2"]);
    let url = format!("memcached://127.0.0.1:{}", server.port);
    let mut command = bench(&place, &[&url, "--i-own-this-server", "--no-fill"]);
    command.args(["--op", "set=1", "--value", "4000", "--duration", "300ms"]);
    Place::finish(command).measured();
    assert!(server.stat("evictions") > 0);
    let outcome = read_back(&place).remove(0);
    assert!(number(&outcome, "missing") > 0, "{outcome}");
    assert_eq!((number(&outcome, "older"), number(&outcome, "wrong")), (0, 0), "{outcome}");
}

#[test]
fn data_flushed_by_another_client_counts_as_lost() {
    if !installed(&["redis-server", "setpriv"]) {
        return;
    }
    let (place, server) = (Place::new(), RedisServer::on_a_port());
    let mut command = bench(&place, &[&server.port_url(), "--op", "set=1", "--value", "40"]);
    command.args(["--rate", "200", "--duration", "2s"]);
    let run = Started::new(command);
    let filled = || (server.ask(&["DBSIZE"]) == "2000").then_some(());
    wait_until("the keys are filled", Duration::from_secs(20), filled);
    server.ask(&["FLUSHALL"]);
    let summary = run.finish_within(Duration::from_secs(30)).code(4).json();
    assert!(reason(&summary).contains("are missing"), "{}", reason(&summary));
}
