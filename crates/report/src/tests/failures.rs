//! Failed trials: the reason first, and a server's log once.

use model::{ErrorClass, Failure};

use crate::fixture::{run, usual};
use crate::{judge, markdown, text};

#[test]
fn a_failure_starts_with_its_reason_and_shows_a_servers_log_once() {
    let mut recorded = run(&["files", "redis", "mysql"], 5, usual);
    let long = "x".repeat(5_000);
    let message = format!("the server died; a client saw: eof; its log: a | b | {long} | end");
    let failure = Failure { class: ErrorClass::Closed, message };
    for trial in recorded.trials.iter_mut().filter(|t| t.cell.starts_with("redis")) {
        trial.failure = Some(failure.clone());
    }
    let view = judge(&recorded);
    assert_eq!(view.failures.len(), 10);
    assert!(view.failures.iter().all(|f| f.reason == "the server died; a client saw: eof"));
    assert!(view.reasons.iter().all(|r| r.ends_with("a client saw: eof")), "{:?}", view.reasons);
    let logs: Vec<&String> = view.failures.iter().filter_map(|f| f.log.as_ref()).collect();
    assert_eq!(logs, [&format!("b | {}… | end", "x".repeat(160))]);
    for output in [text::render(&view, 100, false), markdown::render(&view)] {
        assert_eq!(output.matches("xxx…").count(), 1, "{output}");
    }
}
