//! Words for what clients noticed of faults.

use model::{EventKind, Trial, TrialEvent};

use super::happened::killed;
use crate::view::View;
use crate::{judge, text};

/// Everything that the terminal shows of a run, with all white space as single blanks.
fn flat(view: &View) -> String {
    let details = text::render(view, 400, false);
    details.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The text of a fact.
fn shown(view: &View, name: &str) -> String {
    view.happened.facts.iter().find(|fact| fact.name == name).unwrap().shown.clone()
}

#[test]
fn two_primaries_may_last_until_the_end() {
    let view = judge(&killed(|trial: &mut Trial| {
        let fault = &mut trial.events[0];
        fault.kind = EventKind::Partitioned;
        let at_ns = fault.at_ns + 500_000_000;
        let kind = EventKind::Promoted;
        trial.events.push(TrialEvent { at_ns, kind, subject: "127.0.0.1:7002".into() });
    }));
    assert_eq!(shown(&view, "two_primaries_ns"), "until the end");
    let all = flat(&view);
    assert!(all.contains(" two primaries at once until the end "), "{all}");
    assert!(all.contains(" – – until the end – 0 ") && !all.contains("not at all"), "{all}");
}
