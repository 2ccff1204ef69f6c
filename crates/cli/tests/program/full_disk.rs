//! A full disk, for the sessions or for the record.

use std::path::Path;
use std::process::Command;

use super::common::{FAST, Place, Tmpfs, installed, row, target};

#[test]
fn files_that_do_not_fit_on_the_disk_are_refused_and_other_targets_measured() {
    if !installed(&["redis-server"]) {
        return;
    }
    let place = Place::new();
    let Some(small) = Tmpfs::new(&place, 4096) else { return };
    let arguments = ["--set", "clients=1", "--set", "sessions=4000"];
    let targets = ["--target", "redis", "--target", "files"];
    let arguments = [arguments, targets].concat();
    let command = place.fast_at(&place.records(), small.path(), &arguments);
    let summary = Place::finish(command).code(3).json();
    let why = target(&summary, "files")["not_run"].as_str().unwrap();
    for part in ["the disk of `", "has no room", "4000 sessions", "90 % of the", "--set sessions"] {
        assert!(why.contains(part), "no `{part}` in {why}");
    }
    assert_eq!(row(&summary, "redis", "read")["blocks"], 1);
    assert_eq!(std::fs::read_dir(small.path()).unwrap().count(), 0, "left on the small disk");
    place.assert_nothing_left();
}

#[test]
fn a_trial_stops_before_it_fills_the_disk() {
    if !installed(&["redis-server"]) {
        return;
    }
    let place = Place::new();
    let Some(small) = Tmpfs::new(&place, 24 << 10) else { return };
    // The append-only file grows without bound.
    let arguments = ["--set", "clients=1", "--set", "measure_ms=20000", "--target", "redis"];
    let log = ["--set", "redis.appendonly=yes"];
    let command = place.fast_at(&place.records(), small.path(), &[&arguments[..], &log].concat());
    Place::finish(command).code(4);
    let trials = place.record().trials();
    let failures: Vec<_> = trials.iter().map(|trial| &trial["failure"]).collect();
    assert_eq!(failures.len(), 1, "{failures:#?}");
    assert_eq!(failures[0]["class"], "not-ours", "{failures:#?}");
    let why = failures[0]["message"].as_str().unwrap();
    assert!(why.contains("stopped to leave space for other programs"), "{why}");
    assert_eq!(std::fs::read_dir(small.path()).unwrap().count(), 0, "left on the small disk");
    place.assert_nothing_left();
}

#[test]
fn a_full_disk_fails_the_check() {
    let place = Place::new();
    let Some(small) = Tmpfs::new(&place, 256) else { return };
    small.fill();
    let arguments = ["--set", "clients=1", "--target", "files"];
    let command = place.fast_at(&place.records(), small.path(), &arguments);
    let summary = Place::finish(command).code(3).json();
    let why = target(&summary, "files")["not_run"].as_str().unwrap();
    assert!(why.contains("full: ") || why.contains("0 B that are free"), "{why}");
    assert_eq!(std::fs::read_dir(small.path()).unwrap().count(), 1, "left on the full disk");
    place.assert_nothing_left();
}

/// A fast run on files with its records in `out`.
fn run_into(place: &Place, out: &Path, more: &[&str]) -> Command {
    let files = ["--set", "clients=1", "--target", "files"];
    place.fast_at(out, &place.disk(), &[&files, more].concat())
}

#[test]
fn a_full_disk_for_records_is_an_error_before_measuring() {
    let place = Place::new();
    let Some(small) = Tmpfs::new(&place, 256) else { return };
    small.fill();
    let finished = Place::finish(run_into(&place, small.path(), &[])).code(1);
    let finished = finished.error(&["cannot be written", "o space left on device", "--out DIR"]);
    assert!(finished.took.as_secs() < 20, "{finished:?}");
    assert_eq!(std::fs::read_dir(small.path()).unwrap().count(), 1, "left on the full disk");
    place.assert_nothing_left();
}

#[test]
fn a_result_is_printed_even_if_its_record_does_not_fit_on_the_disk() {
    let place = Place::new();
    // A record of these 24 trials takes twice this size, and its page even more.
    let Some(small) = Tmpfs::new(&place, 96) else { return };
    let blocks = ["--set", "blocks_min=24", "--set", "blocks_max=24"];
    let short = ["--set", "measure_ms=10", "--set", "warmup_ms=0"];
    let files = ["--set", "clients=1", "--target", "files"];
    let run = |format: &str| {
        let start = ["sessions", "--scale", "quick", "--format", format];
        let arguments = [&start[..], &FAST, &blocks, &short, &files].concat();
        let finished = Place::finish(place.run_at(small.path(), &place.disk(), &arguments)).code(1);
        let lost = "error: the record of this run is incomplete";
        assert!(finished.stderr.contains(lost), "no `{lost}` in {finished:#?}");
        finished
    };
    let finished = run("text");
    for part in ["warning: record is given up", "o space left on device", "--out DIR"] {
        assert!(finished.stderr.contains(part), "no `{part}` in {finished:#?}");
    }
    assert!(finished.stdout.contains("24 blocks"), "{finished:#?}");
    small.clear();
    let finished = run("json");
    assert_eq!(row(&finished.json(), "files", "read")["blocks"], 24);
    assert!(finished.stderr.contains("warning: cannot write the page"), "{finished:#?}");
    place.assert_nothing_left();
}

#[test]
fn a_file_instead_of_the_records_directory_is_an_error() {
    let place = Place::new();
    let file = place.write("records.txt", "mine");
    for out in [file.clone(), file.join("below")] {
        Place::finish(run_into(&place, &out, &[])).code(1).error(&[
            "records.txt",
            "cannot be written",
            "--out DIR",
        ]);
    }
    assert_eq!(std::fs::read_to_string(file).unwrap(), "mine");
    place.assert_nothing_left();
}
