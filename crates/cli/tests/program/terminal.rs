//! Escape sequences and other control characters in data never reach the terminal.

use std::fs;

use serde_json::json;

use super::common::{Defect, Fake, Finished, Place};

/// Clears the screen, sets the title, hides text, returns the carriage, rings the bell and reverses
/// text.
const HOSTILE: &str =
    "x\u{1b}[2J\u{1b}]0;title\u{7}\u{1b}[8m\u{1b}[1;31m\r\u{8}\u{9b}2J\u{7f}\u{202e}y";

#[track_caller]
fn is_clean(finished: &Finished) {
    for output in [&finished.stdout, &finished.stderr] {
        let is_bad = |c: char| c.is_control() && !"\n\t".contains(c) || c == '\u{202e}';
        let found = output.replace("\r\n", "\n").chars().find(|c| is_bad(*c));
        assert_eq!(found, None, "{output:?}");
    }
}

fn coloured(place: &Place, arguments: &[&str]) -> Finished {
    let mut command = place.command();
    command.args(arguments).arg("--out").arg(place.records()).env("CLICOLOR_FORCE", "1");
    Place::finish(command)
}

#[test]
fn record_fields_are_filtered_for_the_terminal() {
    let place = Place::new();
    Place::finish(place.fast(&["--set", "clients=1", "--target", "files"])).measured();
    let record = place.record();
    assert!(coloured(&place, &["show"]).stdout.contains("\u{1b}[1m"), "our own colours pass");

    let mut header = record.header();
    for field in ["title", "question", "source"] {
        header["plan"][field] = json!(HOSTILE);
    }
    header["plan"]["study"] = json!(HOSTILE);
    header["tool"] = json!(HOSTILE);
    for fact in header["conditions"]["facts"].as_array_mut().unwrap() {
        fact["value"] = json!(HOSTILE);
        fact["warning"] = json!(HOSTILE);
    }
    fs::write(record.path.join("header.json"), header.to_string()).unwrap();
    let mut target = record.lines("targets.jsonl").remove(0);
    target["version"] = json!(HOSTILE);
    target["configuration"] = json!([[HOSTILE, HOSTILE]]);
    fs::write(record.path.join("targets.jsonl"), format!("{target}\n")).unwrap();
    let mut trials = record.trials();
    trials[0]["failure"] = json!({ "class": "other", "message": HOSTILE });
    let lines: String = trials.iter().flat_map(|trial| [trial.to_string(), "\n".into()]).collect();
    fs::write(record.path.join("trials.jsonl"), lines).unwrap();

    for arguments in [
        &["show"][..],
        &["show", "--format", "markdown"],
        &["show", "--format", "json"],
        &["list"],
        &["report"],
        &["compare", "latest", "latest"],
        &["export", "--csv"],
        &["export", "--csv-blocks"],
        &["export", "--json"],
        &["export", "--csv-samples"],
        &["run", "--resume", "latest"],
        &["show", HOSTILE],
        &["run", "--scale", HOSTILE],
        &[HOSTILE],
    ] {
        let finished = coloured(&place, arguments);
        is_clean(&finished);
    }
    let lines = coloured(&place, &["export", "--csv"]).stdout;
    assert!(lines.starts_with("run,") && lines.ends_with("\r\n"), "{lines:?}");
    let shown = coloured(&place, &["show", "--format", "json"]).json();
    assert_eq!(shown["title"], HOSTILE, "JSON escapes without loss");
}

#[test]
fn server_replies_are_filtered_for_the_terminal() {
    let fake = Fake::new(Defect::WithEscapes);
    let place = Place::new();
    let bench = ["bench", &fake.url(), "--duration", "100ms", "--warmup", "0ms", "--keys", "10"];
    let mut command = place.command();
    command.args(bench).arg("--out").arg(place.records());
    let finished = Place::finish(command);
    is_clean(&finished);
    assert!(finished.stderr.contains("0.0.7"), "the version was printed: {finished:#?}");
    let address = fake.url();
    let port = address.rsplit_once(':').unwrap().1.split('/').next().unwrap();
    let mut command = place.command();
    command.args(["redis-benchmark", "-p", port, "-n", "10", "-t", "set"]);
    let finished = Place::finish(command);
    assert!(finished.stdout.contains("SET") || finished.stderr.contains("ERR"), "{finished:#?}");
    let escapes = |text: &str| text.contains('\u{1b}') || text.contains('\u{7}');
    assert!(!escapes(&finished.stdout) && !escapes(&finished.stderr), "{finished:#?}");
}
