//! Leftovers of a killed run in an existing store, and the command that removes them.

use std::process::Command;
use std::time::Duration;

use nix::sys::signal::Signal;

use super::common::{Place, PortServer, RedisServer, Started, installed, wait_until};

/// Starts a run on an existing server and kills it while it writes.
fn kill_while_writing(place: &Place, server: &RedisServer, command: Command, foreign: usize) {
    let run = Started::new(command);
    let written = || (server.keys().len() > foreign + 50).then_some(());
    wait_until("keys were written", Duration::from_secs(60), written);
    run.signal(Signal::SIGKILL);
    run.finish_within(Duration::from_secs(20));
    place.assert_nothing_left();
}

/// The note that `show` prints about the killed run, and its `cachedyno clean` command.
fn cleanup_note(place: &Place) -> (String, String) {
    let listed = place.on_records(&["list"]).code(0).stdout;
    let run = place.record().header()["run"].as_str().unwrap().to_string();
    let hint = "was killed and may have left data in `";
    assert!(
        listed.contains(hint) && listed.contains(&format!("`cachedyno show {run}`")),
        "{listed}"
    );
    let shown = place.on_records(&["show", "--format", "json"]).code(0).json();
    let notes = shown["footnotes"].as_array().unwrap();
    let note = notes.iter().find(|n| n.as_str().unwrap().starts_with("the run was killed"));
    let note = note.unwrap_or_else(|| panic!("no note in {notes:?}")).as_str().unwrap().to_string();
    let command =
        note.split('`').find(|part| part.starts_with("cachedyno clean ")).unwrap().to_string();
    let summary = place.on_records(&["show"]).code(0).stdout;
    let words = |text: &str| text.split_whitespace().collect::<String>();
    assert!(words(&summary).contains(&words(&command)), "{summary}");
    (note, command)
}

fn shell(place: &Place, command: &str) {
    let program = assert_cmd::cargo::cargo_bin!("cachedyno").parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let mut shell = place.command_by("sh", &["-c", command]);
    Place::finish({
        shell.env("PATH", path);
        shell
    })
    .code(0);
}

#[test]
fn the_printed_command_removes_the_keys_of_a_killed_session_run() {
    if !installed(&["redis-server", "redis-cli", "setpriv"]) {
        return;
    }
    let server = RedisServer::new();
    let foreign = ["cachedyno-00000000-1_0", "cart:17"];
    for key in foreign {
        server.ask(&["SET", key, "foreign"]);
    }
    let place = Place::new();
    let url = format!("x={}", server.url());
    let long = ["--allow-shared", "--set", "measure_ms=60000", "--set", "clients=2"];
    let command = place.fast(&[&["--target", &url], &long[..]].concat());
    kill_while_writing(&place, &server, command, foreign.len());
    let (note, command) = cleanup_note(&place);
    assert!(note.contains("this removes exactly those") && note.contains("--resume"), "{note}");
    shell(&place, &command);
    let mut left = server.keys();
    left.sort();
    assert_eq!(left, foreign, "foreign keys stay");
}

#[test]
fn the_note_about_a_killed_cache_run_names_its_database() {
    if !installed(&["redis-server", "redis-cli", "setpriv"]) {
        return;
    }
    let server = RedisServer::new();
    let place = Place::new();
    let url = format!("cm-redis={}", server.url());
    let long = ["--set", "measure_ms=60000", "--target", &url];
    kill_while_writing(&place, &server, super::app_cache::small(&place, &long), 0);
    let (note, command) = cleanup_note(&place);
    for part in ["database 0", "begin with `zc:`", "cannot be distinguished from foreign keys"] {
        assert!(note.contains(part), "no `{part}` in {note}");
    }
    shell(&place, &command);
    assert_eq!(server.keys(), [""; 0]);
}

#[test]
fn clean_removes_only_the_items_of_a_killed_bench() {
    if !installed(&["memcached", "setpriv"]) {
        return;
    }
    let server = PortServer::memcached(&["-m", "64"]);
    server.say("set cart:17 0 0 3\r\nyes\r\nset cachedyno-00000000-key:1 0 0 3\r\nyes");
    let place = Place::new();
    let target = format!("x=memcached://127.0.0.1:{}", server.port);
    let mut command = place.command();
    command.args(["bench", &target, "--i-own-this-server", "--op", "set=1,insert=1"]);
    command.args(["--key-prefix", "100%:", "--duration", "60s"]);
    command.arg("--out").arg(place.records()).arg("--disk").arg(place.disk());
    let run = Started::new(command);
    let clean = |place: &Place| place.on_records(&["clean", "latest", "--target", &target]);
    wait_until("keys were written", Duration::from_secs(60), || {
        (server.stat("curr_items") > 1_000).then_some(())
    });
    clean(&place).usage_error(&["is still running"]);
    run.signal(Signal::SIGKILL);
    run.finish_within(Duration::from_secs(20));
    wait_until("the guard has ended", Duration::from_secs(20), || {
        (!place.has_processes()).then_some(())
    });
    let cleaned = clean(&place).code(0);
    assert!(cleaned.stdout.contains(" contains no more data of run "), "{cleaned:#?}");
    assert_eq!(server.stat("curr_items"), 2, "only foreign items remain");
    let elsewhere = "x=memcached://127.0.0.1:1";
    place.on_records(&["clean", "latest", "--target", elsewhere]).usage_error(&["was not"]);
    place.on_records(&["clean", "latest", "--target", "x"]).usage_error(&["has no URL"]);
    let other = target.replace("x=", "y=");
    place.on_records(&["clean", "latest", "--target", &other]).usage_error(&["had no target `y`"]);

    // The id determines what is removed, so it must match the record.
    let record = place.record().path;
    let header = std::fs::read_to_string(record.join("header.json")).unwrap();
    let run = place.record().header()["run"].as_str().unwrap().to_string();
    std::fs::write(record.join("header.json"), header.replace(&run, "00000000")).unwrap();
    clean(&place).usage_error(&["it is of run `00000000`", "an unmodified record"]);
    assert_eq!(server.stat("curr_items"), 2, "the other run's key is kept");
}

#[test]
fn a_server_that_cannot_list_keys_is_refused_before_it_is_filled() {
    if !installed(&["redis-server", "setpriv"]) {
        return;
    }
    let server = PortServer::redis(&["--rename-command", "SCAN", ""]);
    let place = Place::new();
    let target = format!("x=redis://127.0.0.1:{}/3", server.port);
    let mut command = place.command();
    command.args(["bench", &target, "--keys", "100", "--duration", "300ms"]);
    command.arg("--out").arg(place.records()).arg("--disk").arg(place.disk());
    let finished = Place::finish(command).code(3);
    assert!(finished.stdout.contains("does not support `SCAN`"), "{finished:?}");
    let sessions = place.fast(&["--target", &target]);
    let finished = Place::finish(sessions).code(3);
    assert!(finished.stdout.contains("does not support `SCAN`"), "{finished:?}");
    assert_eq!(server.ask(&["-n", "3", "DBSIZE"]), "0");
}
