//! `bench` on servers that reply with errors, with garbage or not at all. Every fault is counted by
//! class and reported with an example; runs end in time and with bounded memory.

use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use super::common::{Finished, Place, Scripted, Started, among, count, peak_memory_kib, row};

/// Timeout, far more than any run here takes even on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(90);
/// Far less than the size of a gigantic or an endless reply.
const MEMORY_KIB_MAX: u64 = 200 << 10;
/// Faults start after the fill.
const LATE: &str = "faults-after=250";

/// `bench` of a server at that URL, small, recorded from its first request on.
fn bench(place: &Place, url: &str, more: &[&str]) -> Command {
    let mut command = place.command();
    command.arg("bench").arg(format!("x={url}")).arg("--allow-shared");
    command.args(["--duration", "400ms", "--warmup", "0ms", "--blocks", "1", "--quiet"]);
    command.args(["--keys", "200", "--clients", "4", "--verify", "1"]);
    if !more.contains(&"--timeout") {
        command.args(["--timeout", "300ms"]);
    }
    command.args(more).arg("--out").arg(place.records()).arg("--disk").arg(place.disk());
    command
}

/// Runs to the end; asserts that it ends in time and with bounded memory.
fn finish(command: Command) -> Finished {
    let mut run = Started::new(command);
    let mut peak_kib = 0;
    while run.is_running() {
        peak_kib = peak_kib.max(peak_memory_kib(run.pid()).unwrap_or(0));
        std::thread::sleep(Duration::from_millis(2));
    }
    assert!(peak_kib > 0 && peak_kib < MEMORY_KIB_MAX, "{peak_kib} KiB");
    run.finish_within(PATIENCE)
}

/// The summary of an invalid run on a server of this script.
fn invalid(script: &str, more: &[&str]) -> Value {
    let (place, server) = (Place::new(), Scripted::new(script));
    let arguments = [&["--format", "json"], more].concat();
    let summary = finish(bench(&place, &server.url(), &arguments)).code(4).json();
    assert_eq!(summary["validity"], "invalid");
    // The record with the failures can be read again.
    let mut again = place.command();
    again.args(["export", "latest", "--json", "--out"]).arg(place.records());
    let again = Place::finish(again).code(0).json();
    assert_eq!((&again["cells"], &again["reasons"]), (&summary["cells"], &summary["reasons"]));
    place.assert_nothing_left();
    summary
}

/// Asserts that all errors of the row are of one class with an example containing `words`, and that
/// the run reports it.
#[track_caller]
fn only_errors(summary: &Value, operation: &str, class: &str, words: &str) {
    let row = row(summary, "x", operation);
    let errors = count(row, "error");
    assert!(errors > 0 && count(row, "ok") > 0, "{row}");
    assert_eq!(row["counts"]["errors_by_class"], serde_json::json!({ class: errors }));
    let example = row["counts"]["error_examples"][class].as_str().unwrap();
    assert!(example.contains(words), "{example}");
    let matches = |text: &Value| text.as_str().unwrap().contains(words);
    assert!(!among(&summary["reasons"], matches).is_empty(), "{}", summary["reasons"]);
    assert!(!among(&summary["footnotes"], matches).is_empty(), "{}", summary["footnotes"]);
}

#[test]
fn error_replies_are_counted_by_class_with_an_example() {
    for (words, class) in [
        ("OOM command not allowed when used memory > 'maxmemory'.", "full"),
        ("READONLY You can't write against a read only replica.", "reply"),
        ("LOADING Redis is loading the dataset in memory", "reply"),
        ("BUSY Redis is busy running a script.", "reply"),
        ("NOPERM this user has no permissions to run the 'set' command", "denied"),
        ("ERR max number of clients reached", "refused"),
    ] {
        let script = format!("error=0.3:{words},{LATE},faults-on=set");
        let summary = invalid(&script, &["--op", "get=0.5,set=0.5"]);
        only_errors(&summary, "mixed.set", class, words);
        // Three in ten requests failed, which count as slower than all others.
        let times = &row(&summary, "x", "mixed.set")["metrics"];
        assert!(times["service_ns_p50"]["center"].is_number(), "{times}");
        assert!(times["service_ns_p90"]["at_least"].is_number(), "{times}");
        assert!(times["error_share"]["center"].as_f64().is_some_and(|s| s > 0.1), "{times}");
        let get = row(&summary, "x", "mixed.get");
        assert_eq!((count(get, "error"), count(get, "wrong")), (0, 0), "{get}");
        assert_eq!(get["counts"]["error_examples"], json!({}));
    }
}

#[test]
fn a_redirect_to_an_unreachable_server_is_an_error() {
    for words in ["MOVED 3999 127.0.0.1:1", "MOVED 3999 :0", "ASK 1 no.such.host:7000", "MOVED x"] {
        let script = format!("error=0.2:{words},{LATE},faults-on=get");
        let summary = invalid(&script, &["--op", "get=1"]);
        let words = words.split(' ').nth(2).filter(|at| !at.ends_with(":0")).unwrap_or(words);
        only_errors(&summary, "get", "reply", words);
    }
}

#[test]
fn altered_and_short_values_are_counted_as_wrong() {
    for fault in ["wrong", "short"] {
        let summary = invalid(&format!("{fault}=0.1,{LATE},faults-on=get"), &["--op", "get=1"]);
        let get = row(&summary, "x", "get");
        assert!(count(get, "wrong") > 0 && count(get, "ok") > count(get, "wrong"), "{get}");
        assert_eq!((count(get, "error"), count(get, "miss")), (0, 0), "{get}");
    }
}

#[test]
fn malformed_replies_close_the_connection_without_using_memory() {
    for (fault, class, words) in [
        ("malformed=0.02", "protocol", "a reply starts with byte 0x3f"),
        ("endless=0.02", "protocol", "a line is longer than 65536 bytes"),
        ("gigantic=0.01", "timeout", "did not answer within 300 ms"),
        ("hang=0.01", "timeout", "did not answer within 300 ms"),
        ("reset=0.02", "closed", "connection reset by peer"),
    ] {
        let summary = invalid(&format!("{fault},{LATE},faults-on=get"), &["--op", "get=1"]);
        only_errors(&summary, "get", class, words);
        let longest = &row(&summary, "x", "get")["metrics"]["service_ns_max"]["at_least"];
        let timed_out = class == "timeout";
        assert!(longest.as_f64().is_some_and(|ns| !timed_out || ns >= 3e8), "{longest}");
        // Each fault closes one of the four connections, and the client reconnects.
        assert!(count(row(&summary, "x", "get"), "error") > 1, "{fault}");
    }
    only_errors(&invalid("reset-after=150", &["--op", "get=1"]), "get", "closed", "lost");
}

#[test]
fn an_open_load_skips_no_request_when_connections_break() {
    // Enough time for a loaded machine to send all due requests.
    let rate = ["--op", "get=1", "--rate", "2000", "--even", "--timeout", "20s"];
    let summary = invalid(&format!("reset=0.05,{LATE},faults-on=get"), &rate);
    let get = row(&summary, "x", "get");
    // 2000 per second for 400 ms: all were sent, and completed or failed.
    assert_eq!(count(get, "ok") + count(get, "error"), 800, "{get}");
    assert_eq!((count(get, "wrong"), count(get, "miss")), (0, 0), "{get}");
}

#[test]
fn errors_are_shown_in_the_terminal_and_on_the_page() {
    let (place, server) = (Place::new(), Scripted::new(&format!("error=0.3:BUSY me,{LATE}")));
    let text = finish(bench(&place, &server.url(), &["--op", "get=1"])).code(4).stdout;
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("error reply (such as: BUSY me)"), "{text}");
    assert!(text.contains("INVALID: use what follows for diagnosis only"), "{text}");
    let page = String::from_utf8(place.record().read("report.html")).unwrap();
    assert!(page.contains("error reply (such as: BUSY me)"));
}

#[test]
fn a_server_that_fails_from_the_first_reply_is_not_measured() {
    for (script, words) in [
        ("close-on-accept", "connection lost: the server closed the connection"),
        ("hang=1", "timed out: no answer within 300 ms"),
        ("malformed=1", "malformed reply: a reply starts with byte 0x3f"),
        ("endless=1", "malformed reply: a line is longer than 65536 bytes"),
        ("gigantic=1", "malformed reply: a length of `536870912`"),
        ("error=1:LOADING it", "error reply: the server answered `LOADING it` (wait until"),
        ("error=1:NOAUTH Authentication required.", "denied: the server answered `NOAUTH"),
        ("max-connections=0", "refused: the server answered `ERR max number of clients reached`"),
    ] {
        let (place, server) = (Place::new(), Scripted::new(script));
        let run = finish(bench(&place, &server.url(), &["--format", "json"])).code(3);
        let why = run.json()["targets"][0]["not_run"].as_str().unwrap().to_string();
        assert!(why.starts_with(words), "{script}: {why}");
        place.assert_nothing_left();
    }
}

#[test]
fn refused_connections_are_reported_with_the_servers_error() {
    // One connection is the run's own.
    let summary = invalid("max-connections=3", &[]);
    let failures = among(&summary["failures"], |f| f["class"] == "refused");
    assert_eq!(failures.len(), 1, "{}", summary["failures"]);
    let reason = failures[0]["reason"].as_str().unwrap();
    assert!(reason.contains("answered `ERR max number of clients reached`"), "{reason}");
}

#[test]
fn a_password_quoted_by_the_server_is_not_recorded() {
    let place = Place::new();
    let server =
        Scripted::new(&format!("error=0.3:ERR who says sesame-81 here,{LATE},faults-on=get"));
    let url = server.url().replace("redis://", "redis://:sesame-81@");
    let run = finish(bench(&place, &url, &["--op", "get=1", "--format", "json"])).code(4);
    let get = row(&run.json(), "x", "get").clone();
    assert_eq!(get["counts"]["error_examples"]["reply"], "ERR who says *** here");
    assert!(!run.stdout.contains("sesame-81") && !run.stderr.contains("sesame-81"), "{run:#?}");
    assert!(!place.record().contains("sesame-81"));
}
