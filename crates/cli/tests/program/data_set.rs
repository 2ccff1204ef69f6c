//! Records and operation lists of an application cache, exported to and read from the original's
//! files.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use nix::sys::signal::Signal;

use super::common::{Finished, Place, Started, count, row, trials_so_far, wait_until};

const SMALL: [&str; 8] =
    ["--set", "keys=300", "--set", "tags=60", "--set", "ops=400", "--set", "clients=2"];

fn write(place: &Place, directory: &Path, more: &[&str]) -> Finished {
    let mut command = place.command();
    command.arg("data-set").arg(directory).args(SMALL).args(more);
    Place::finish(command)
}

/// A run of `zend-file` with the data set in `directory`.
fn measure(place: &Place, directory: &Path, more: &[&str]) -> Command {
    let fixed = ["app-cache", "--scale", "quick", "--target", "zend-file", "--format", "json"];
    let short = ["measure_ms=60", "warmup_ms=10", "blocks_min=1", "blocks_max=1"];
    let short: Vec<&str> = short.iter().flat_map(|set| ["--set", set]).collect();
    let mut command = place.run(&[&fixed[..], &short].concat());
    command.args(more).arg("--data-set").arg(directory);
    command
}

#[test]
fn exported_files_are_measured_unchanged() {
    let place = Place::new();
    let directory = place.path().join("data");
    let chances = ["--set", "clean_chance=40", "--set", "write_chance=20", "--seed", "7"];
    let said = write(&place, &directory, &chances).code(0).stdout;
    assert!(said.contains("300 records, 60 tags, 400 operations"), "{said}");
    let records = fs::read_to_string(directory.join("data.txt")).unwrap();
    assert!(records.starts_with("300\r\n{\"key\":\"cfcd208495d565ef66e7dff9f98764da\""));
    let mut lists: Vec<_> =
        fs::read_dir(&directory).unwrap().map(|e| e.unwrap().file_name()).collect();
    lists.sort();
    assert_eq!(lists, ["data.txt", "ops-client_0.json", "ops-client_1.json"]);

    let profile = ["--set", "profile=mollenhour", "--set", "clients=2"];
    let summary = Place::finish(measure(&place, &directory, &profile)).measured().json();
    let cleans_of = |name: &str| {
        let list = fs::read_to_string(directory.join(name)).unwrap();
        list.matches("[\"clean\",").count() as u64
    };
    let cleans = cleans_of("ops-client_0.json") + cleans_of("ops-client_1.json");
    assert_eq!(count(row(&summary, "zend-file", "list.clean"), "ok"), cleans);
    let cell = &place.record().header()["plan"]["cells"][0]["workload"];
    assert_eq!((&cell["keys"], &cell["files"]["lists"]), (&300.into(), &2.into()));

    // The same seed creates the same files, and existing files are not overwritten.
    let again = place.path().join("again");
    write(&place, &again, &chances).code(0);
    assert_eq!(fs::read_to_string(again.join("data.txt")).unwrap(), records);
    write(&place, &again, &chances).usage_error(&["data.txt` already exists"]);
    place.assert_nothing_left();
}

#[test]
fn the_printed_command_measures_the_files() {
    let place = Place::new();
    let directory = place.path().join("a shop's data");
    let more = ["--scale", "quick", "--set", "clients=3", "--set", "measure_ms=60", "--seed", "7"];
    let said = write(&place, &directory, &more).code(0).stdout;
    let (_, arguments_shown) = said.trim_end().split_once("use them with: cachedyno ").unwrap();
    assert!(arguments_shown.contains("--scale quick"), "{arguments_shown}");
    let short = "--set warmup_ms=10 --set blocks_min=1 --set blocks_max=1 --target zend-file";
    let mut command = Command::new("sh");
    let ours = place.run(&["--format", "json"]);
    let line =
        format!("program=$1; shift; run=$1; shift; $program {arguments_shown} {short} \"$@\"");
    command.args(["-c", &line, "sh"]).arg(ours.get_program()).args(ours.get_args());
    command.envs(ours.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let summary = Place::finish(command).measured().json();
    assert_eq!(summary["scale"], "quick");
    let cell = &place.record().header()["plan"]["cells"][0];
    assert_eq!(cell["load"]["clients"], 3, "{cell}");
}

#[test]
fn mismatched_files_are_refused() {
    let place = Place::new();
    let directory = place.path().join("data");
    let refused = |more: &[&str], words: &[&str]| {
        Place::finish(measure(&place, &directory, more)).usage_error(words);
    };
    refused(&[], &["--data-set: ", "data.txt` cannot be read"]);
    write(&place, &directory, &[]).code(0);
    refused(&["--set", "keys=5"], &["--set keys=`5` conflicts with --data-set", "determine it"]);
    refused(&["--set", "ops=100"], &["--set ops=`100` conflicts with --data-set", "leave out one"]);
    let profile = ["--set", "profile=mollenhour"];
    refused(&profile, &["has lists for 2 clients", "expected 4", "--set clients=2"]);
    let list = directory.join("ops-client_1.json");
    fs::write(&list, "[[\"read\",\"no key\"]]").unwrap();
    refused(&[], &["ops-client_1.json`, operation 1: the key `no key`", "a key of the data set"]);
    let mut command = place.command();
    fs::remove_file(&list).unwrap();
    command.args(["run", "sessions", "--data-set"]).arg(&directory);
    Place::finish(command).usage_error(&["--data-set is only for studies of application caches"]);
    // The study is rejected before the directory is searched for a data set.
    let mut command = place.command();
    command.args(["run", "ramp", "--data-set"]).arg(place.path());
    Place::finish(command).usage_error(&["--data-set is only for", "study `ramp` is not one"]);
    assert!(place.all_records().is_empty(), "wrong arguments leave no record");
}

#[test]
fn a_run_is_only_resumed_with_unchanged_files() {
    let place = Place::new();
    let directory = place.path().join("data");
    write(&place, &directory, &[]).code(0);
    let mut command = measure(&place, &directory, &["--set", "clients=2"]);
    command.args(["--set", "blocks_max=300", "--set", "blocks_min=300"]);
    let run = Started::new(command);
    let has_trial = || (trials_so_far(&place.records()) > 0).then_some(());
    wait_until("a trial has ended", Duration::from_secs(60), has_trial);
    run.signal_group(Signal::SIGINT);
    run.finish_within(Duration::from_secs(30)).code(130);

    let list = directory.join("ops-client_0.json");
    let before = fs::read_to_string(&list).unwrap();
    fs::write(&list, before.replacen("[\"read\"", "[ \"read\"", 1)).unwrap();
    let resume = || {
        let mut command = place.command();
        command.args(["run", "--resume", "latest", "--out"]).arg(place.records());
        command
    };
    let trials = place.record().trials().len();
    let refused = Place::finish(resume());
    refused.usage_error(&["the data set of this run: ", "have changed since the run was planned"]);
    assert_eq!(place.record().trials().len(), trials, "nothing was added");

    fs::write(&list, before).unwrap();
    let again = Started::new(resume());
    let more = || (trials_so_far(&place.records()) > trials).then_some(());
    wait_until("another trial has ended", Duration::from_secs(60), more);
    again.signal_group(Signal::SIGINT);
    again.finish_within(Duration::from_secs(30)).code(130);
}
