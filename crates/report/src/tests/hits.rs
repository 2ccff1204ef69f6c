//! Comparisons of targets with very different hit ratios.

use model::study::claims::{Conditions, Extreme};
use model::study::{Claim, Expectation};

use super::cache::{caches, rates};
use crate::fixture::change;
use crate::view::View;
use crate::{judge, text};

/// Makes `misses` of 2,000 reads in a block miss on a target.
fn with_misses(target: &str, missed: u64) -> View {
    let mut recorded = caches(6, rates);
    change(&mut recorded, target, "read", |phase, i| {
        let counts = &mut phase.operations[i].counts;
        (counts.ok, counts.miss) = (2_000 - missed, missed);
    });
    recorded.header.plan.claims = ["read", "write"]
        .map(|operation| Claim {
            id: operation.into(),
            text: "files are the fastest".into(),
            source: "a test".into(),
            source_value: None,
            profiles: Vec::new(),
            conditions: Conditions::default(),
            expect: Expectation::Highest(Extreme {
                target: "files".into(),
                operations: vec![operation.into()],
                clients: vec![8],
                among: Vec::new(),
            }),
        })
        .to_vec();
    judge(&recorded)
}

/// Targets whose row of an operation has the footnote about hit ratios.
fn marked(view: &View, operation: &str) -> Vec<String> {
    let words = "of what was read was found";
    let has = |n: &usize| view.footnotes[*n].contains(words);
    let rows = view.cells.iter().filter(|r| r.operation == operation);
    rows.filter(|r| r.footnotes.iter().any(has)).map(|r| r.target.clone()).collect()
}

/// True if the comparison of an operation says that it compares misses with hits.
fn is_doubted(view: &View, operation: &str) -> bool {
    let mut own = view.comparisons.iter().filter(|c| c.operation == operation);
    own.any(|c| c.doubt.as_ref().is_some_and(|d| d.contains("misses are compared with hits")))
}

#[test]
fn a_target_with_misses_and_its_comparisons_are_marked() {
    let slower = with_misses("redis", 1_300);
    assert_eq!(marked(&slower, "read"), ["redis"], "files are the best and have no misses");
    let best = with_misses("files", 1_300);
    assert_eq!(marked(&best, "read"), ["files", "redis"], "redis is compared by misses");
    assert!(marked(&best, "write").is_empty());
    let note = best.footnotes.iter().find(|n| n.contains("of what was read was found")).unwrap();
    let start = "steady read on files, 8 clients: 35 % of what was read was found, on other \
                 targets up to 100 %;";
    assert!(note.starts_with(start), "{note}");
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words(&text::render(&best, 100, false)).contains(&words(note)));
}

#[test]
fn the_answer_says_of_a_winner_that_it_misses() {
    let answer = |view: &View| {
        let sentences = view.answer.summary.iter().chain(&view.answer.places);
        let pieces = sentences.flat_map(|sentence| &sentence.pieces);
        pieces.map(|piece| piece.text.as_str()).collect::<String>()
    };
    let misses = answer(&with_misses("files", 1_300));
    assert!(misses.contains(", but found only 35 % of what it read)"), "{misses}");
    let slower = answer(&with_misses("redis", 1_300));
    assert!(!slower.contains("but found only"), "{slower}");
}

#[test]
fn comparisons_and_claims_say_that_misses_are_compared_with_hits() {
    let view = with_misses("files", 1_300);
    let doubt = |operation: &str| {
        view.comparisons.iter().find(|c| c.operation == operation).unwrap().doubt.clone()
    };
    let expected = "misses are compared with hits: files found 35 % of what it read, redis 100 %";
    assert!(doubt("read").unwrap().ends_with(expected), "{:?}", doubt("read"));
    assert!(!is_doubted(&view, "write"));
    let [read, write] = &view.claims[..] else { panic!("two claims") };
    assert!(
        read.note.ends_with("so misses or refusals are compared with hits or writes"),
        "{}",
        read.note
    );
    assert!(!write.note.contains("misses"), "{}", write.note);
}

#[test]
fn a_difference_below_five_points_is_not_noted() {
    let view = with_misses("files", 99);
    assert!(marked(&view, "read").is_empty() && !is_doubted(&view, "read"));
    assert_eq!(marked(&with_misses("files", 101), "read"), ["files", "redis"]);
}

#[test]
fn a_mix_is_judged_by_its_reads() {
    let mut recorded = caches(6, rates);
    for phase in recorded.trials.iter_mut().flat_map(|t| &mut t.points) {
        let is_files = phase.server_cpu_ns.is_none();
        if phase.phase == "write" {
            let mut read = phase.operations[0].clone();
            read.operation = "read".into();
            if is_files {
                (read.counts.ok, read.counts.miss) = (300, 1_700);
            }
            phase.operations.insert(0, read);
        }
    }
    let view = judge(&recorded);
    for operation in ["write", "write.read"] {
        assert!(marked(&view, operation).contains(&"files".to_string()), "{operation}");
    }
    assert!(marked(&view, "clean").is_empty());
}
