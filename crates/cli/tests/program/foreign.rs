//! Records created or edited by other users: their contents are not executed, trusted or printed
//! raw.

use std::fs;

use serde_json::{Value, json};

use super::common::{Finished, Place, Record, installed};

/// The record of a run on files without its seal, as if the run had been killed.
fn unsealed(place: &Place) -> Record {
    Place::finish(place.fast(&["--set", "clients=1", "--target", "files"])).measured();
    let record = place.record();
    fs::remove_file(record.path.join("seal.json")).unwrap();
    record
}

/// Changes the header of a record.
fn edit(record: &Record, change: impl FnOnce(&mut Value)) {
    let mut header = record.header();
    change(&mut header);
    fs::write(record.path.join("header.json"), header.to_string()).unwrap();
}

fn resume(place: &Place, more: &[&str]) -> Finished {
    let arguments = [&["--resume", "latest", "--format", "json"], more].concat();
    Place::finish(place.run(&arguments))
}

#[test]
fn a_plan_of_another_host_is_shown_and_needs_consent() {
    let place = Place::new();
    let record = unsealed(&place);
    let mark = record.header()["host_mark"].as_str().unwrap().to_string();
    assert_eq!(mark.len(), 64, "{mark}");
    resume(&place, &[]).measured();

    for change in [
        &|header: &mut Value| header["host_mark"] = json!("0".repeat(64)),
        &|header: &mut Value| drop(header.as_object_mut().unwrap().remove("host_mark")),
        // The mark of this host with another plan.
        &|header: &mut Value| {
            header["host_mark"] = json!(mark);
            header["plan"]["seed"] = json!(4711);
        },
    ] as [&dyn Fn(&mut Value); 3]
    {
        fs::remove_file(record.path.join("seal.json")).unwrap();
        edit(&record, change);
        let before = record.read("trials.jsonl");
        let refused = resume(&place, &[]);
        assert_eq!(refused.code, Some(2), "{refused:#?}");
        for words in
            ["was planned on another host", "writes files for `files` into a new", "--trust-record"]
        {
            assert!(refused.stderr.contains(words), "no `{words}` in {}", refused.stderr);
        }
        assert_eq!(record.read("trials.jsonl"), before);
        assert!(!record.path.join("seal.json").exists());
        resume(&place, &["--trust-record"]).measured();
    }
    place.assert_nothing_left();
}

#[test]
fn a_record_cannot_choose_unlisted_settings() {
    let place = Place::new();
    let record = unsealed(&place);
    let foreign = place.path().join("foreign.so");
    for (product, name, value) in [
        ("redis", "loadmodule", foreign.to_str().unwrap()),
        ("redis", "save", "1 1\nloadmodule x.so"),
        ("mysql", "loose-plugin-load-add", "x.so"),
        ("mysql", "pid_fil", "x"),
        ("mysql", "slow-query-log-file", "x"),
        ("mysql", "sql_mode", "/x"),
        ("memcached", "extended", "x"),
    ] {
        edit(&record, |header| {
            header["plan"]["targets"][0]["product"] = json!(product);
            header["plan"]["targets"][0]["settings"] = json!({ name: value });
        });
        for trust in [&[][..], &["--trust-record"]] {
            resume(&place, trust).usage_error(&[&format!("setting `{name}` of "), "expected"]);
        }
    }
    place.assert_nothing_left();
}

#[test]
fn an_unknown_run_id_is_refused_by_every_command() {
    let place = Place::new();
    let record = unsealed(&place);
    let path = record.path.to_str().unwrap();
    for id in ["", "*", "%", "../../x", "0123ABCD", "0123abc;", "$(touch x)", "\u{1b}[2J"] {
        edit(&record, |header| header["run"] = json!(id));
        for command in
            [&["show", path][..], &["report", path], &["run", "--resume", path, "--trust-record"]]
        {
            let finished = place.on_records(command);
            assert_eq!(finished.code, Some(2), "{id:?}: {finished:#?}");
            assert!(finished.stderr.contains("eight lower-case hexadecimal"), "{finished:#?}");
            assert!(!finished.stderr.contains('\u{1b}'), "{finished:#?}");
        }
        assert!(place.on_records(&["list"]).code(0).stdout.contains("no records"));
    }
}

#[test]
fn a_record_cannot_send_commands_that_access_foreign_keys() {
    if !installed(&["redis-server"]) {
        return;
    }
    let place = Place::new();
    let mut command = place.command();
    command.args(["bench", "redis", "--command", "GET __key__", "--duration", "100ms"]);
    command.args(["--clients", "1", "--blocks", "1", "--keys", "10", "--format", "json", "--out"]);
    command.arg(place.records()).arg("--disk").arg(place.disk());
    Place::finish(command).measured();
    let record = place.record();
    fs::remove_file(record.path.join("seal.json")).unwrap();
    let sends = |command: &str| {
        edit(&record, |header| {
            for cell in header["plan"]["cells"].as_array_mut().unwrap() {
                cell["workload"]["operations"][0]["command"] = json!(command);
            }
        });
    };
    for foreign in [
        "CONFIG SET port 25010",
        "REPLICAOF 127.0.0.1 25020",
        "MIGRATE 127.0.0.1 25020 __key__ 0 500 COPY",
        "SAVE",
        "EVAL \"return 1\" 0",
    ] {
        sends(foreign);
        let refused = resume(&place, &["--trust-record"]);
        let word = format!("`{}", foreign.split(' ').next().unwrap());
        refused.usage_error(&["of a plan not made on this host sends", &word]);
    }
    sends("GETRANGE __key__ 0 5");
    let asked = resume(&place, &[]);
    assert!(asked.stderr.contains("sends `GETRANGE __key__ 0 5` to `redis`"), "{asked:?}");
    place.assert_nothing_left();
}
