//! Explanations cover only the columns of a table.

use super::cache::{caches, rates};
use super::ramp::ramped;
use crate::fixture::{run, usual};
use crate::view::{StageWay, View};
use crate::{judge, markdown, text};

/// The outputs for people.
fn outputs(view: &View) -> [String; 2] {
    [text::render(view, 140, false), markdown::render(view)]
}

#[test]
fn only_outcomes_that_occurred_are_explained() {
    let mut view = judge(&run(&["redis", "files"], 5, usual));
    view.cells[0].counts.miss = 3;
    for text in outputs(&view) {
        assert!(text.contains("missed: not found\n"), "{text}");
        assert!(!text.contains("lost:") && !text.contains("stale:"), "{text}");
    }
    view.cells[0].counts.stale = 1;
    for text in outputs(&view) {
        assert!(text.contains("missed: not found; stale: older than allowed\n"), "{text}");
    }
    view.cells[0].counts.error = 1;
    (view.cells[0].counts.miss, view.cells[0].counts.stale) = (0, 0);
    for text in outputs(&view) {
        assert!(text.contains("errors") && !text.contains("not found"), "{text}");
    }
}

#[test]
fn effort_has_only_columns_with_values() {
    let mut view = judge(&caches(5, rates));
    for row in &mut view.cells {
        for metric in ["calls_rate_per_s", "files_per_op"] {
            row.metrics.remove(metric);
        }
        row.metrics.insert("round_trips_per_op".into(), crate::view::Value::alone(2.0));
    }
    for text in outputs(&view) {
        let effort = &text[text.find("Effort of an operation").unwrap()..];
        assert!(effort.contains("means of an operation") && !effort.contains("the others"));
        let header = effort.lines().find(|line| line.contains("target")).unwrap();
        assert!(header.contains("round trips"), "{header}");
        assert!(!header.contains("calls/s") && !header.contains("files"), "{header}");
    }
}

#[test]
fn a_rising_ramp_has_no_way_down() {
    let mut view = judge(&ramped(3, |_| {}));
    for text in outputs(&view) {
        let unwrapped = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(unwrapped.contains("p99 down: the same stage on the way back"), "{text}");
    }
    for ramp in &mut view.ramps {
        ramp.stages.retain(|stage| stage.way == StageWay::Up);
        ramp.stages.iter_mut().for_each(|stage| stage.held = stage.blocks);
    }
    for text in outputs(&view) {
        assert!(!text.contains("p99 down") && !text.contains("marked !"), "{text}");
    }
}
