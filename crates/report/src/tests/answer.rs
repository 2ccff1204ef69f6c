//! The answer: which target, by how much, and how sure.

use stats::Verdict;

use crate::answer::answer;
use crate::fixture::{pages, run, usual};
use crate::judge;
use crate::view::{PieceStyle, Sentence, View};

fn summary(view: &View) -> Vec<String> {
    view.answer.summary.iter().map(Sentence::text).collect()
}

/// Changes the verdict of every comparison of an operation at the load of `clients` clients.
fn with_verdict(view: &mut View, (operation, clients): (&str, u32), verdict: Verdict) {
    let here =
        |c: &&mut crate::view::Comparison| c.operation == operation && c.load.clients == clients;
    for comparison in view.comparisons.iter_mut().filter(here) {
        comparison.verdict = verdict;
        comparison.doubt = (verdict == Verdict::Undecided).then(|| "of noise".to_string());
    }
    view.answer = answer(view, &[]);
}

#[test]
fn the_fastest_is_named_with_its_ratio_to_the_next() {
    let view = judge(&run(&["redis", "files"], 5, usual));
    let found = summary(&view);
    assert!(
        found[0]
            .starts_with("steady, 1 client: redis and files are equal within ±3 % at writing (1."),
        "{found:?}"
    );
    let fastest =
        "steady, 8 clients: redis is fastest at writing (2.10× [2.08, 2.12] as fast as files), ";
    assert!(found[1].starts_with(fastest), "{found:?}");
    assert!(view.answer.places.is_empty(), "the summary says as much");
    let names = view.answer.summary[1].pieces.iter().filter(|p| p.style == PieceStyle::Target);
    let names: Vec<&str> = names.map(|piece| piece.text.as_str()).collect();
    assert_eq!(names, ["redis", "files", "files", "files"]);
}

#[test]
fn an_undecided_answer_has_its_reason() {
    let mut view = judge(&run(&["redis", "files"], 5, usual));
    with_verdict(&mut view, ("read", 8), Verdict::Undecided);
    let found = summary(&view).remove(1);
    assert!(found.contains("; undecided: reading between redis and files (2.1"), "{found}");
    assert!(found.ends_with("), of noise"), "{found}");
    with_verdict(&mut view, ("read", 8), Verdict::Equal);
    let found = summary(&view).remove(1);
    assert!(found.contains("; redis and files are equal within ±3 % at reading (2.1"), "{found}");
}

#[test]
fn few_blocks_name_no_winner() {
    for (blocks, words) in [(1, "1 block gives"), (2, "2 blocks give")] {
        let view = judge(&run(&["redis", "files"], blocks, usual));
        let found = summary(&view);
        assert!(
            found[0].contains("no winner can be named") && found[0].contains(words),
            "{found:?}"
        );
    }
}

#[test]
fn a_single_target_is_answered_by_its_results() {
    let view = judge(&run(&["redis"], 5, usual));
    let found = summary(&view);
    assert!(found.iter().all(|found| found.contains(": redis reached ")), "{found:?}");
}

#[test]
fn a_page_is_compared_as_a_whole() {
    let found = summary(&judge(&pages(&["redis", "files"], 5, usual)));
    let whole = "page, 8 clients on one session: redis is fastest at a whole page (2.10× ";
    assert!(found[0].starts_with(whole) && !found[0].contains("page."), "{found:?}");
}

/// Many profiles and loads have a summary sentence, and one sentence each below it.
#[test]
fn many_places_are_summarized() {
    let mut view = judge(&run(&["redis", "files"], 5, usual));
    let others: Vec<_> = view.cells.iter().filter(|row| row.load.clients == 8).cloned().collect();
    let compared = view.comparisons.iter().filter(|c| c.load.clients == 8).cloned();
    let compared: Vec<_> = compared.collect();
    view.cells
        .extend(others.into_iter().map(|row| crate::view::Row { workload: "other".into(), ..row }));
    view.comparisons.extend(
        compared.into_iter().map(|c| crate::view::Comparison { workload: "other".into(), ..c }),
    );
    let answer = answer(&view, &[]);
    assert_eq!(answer.summary.len(), 1);
    assert_eq!(answer.places.len(), 3);
    let found = answer.summary[0].text();
    let fastest =
        "redis is fastest at writing in 2 of 3 cases (2.10× as fast as the next), reading";
    assert!(found.starts_with(fastest), "{found}");
    let equal = "; equal within ±3 %: writing in 1 of 3 cases, reading in 1 of 3 cases";
    assert!(found.contains(equal), "{found}");
}
