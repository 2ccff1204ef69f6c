//! Output of a search: its table with the notes below it, its counts, and its CSV.

use model::{ErrorClass, Failure, Point};
use stats::search::Purpose;

use super::search::{STORE, searched_in};
use crate::recorded::Recorded;
use crate::view::View;
use crate::{csv, judge, markdown, text};

/// Searches the usual store in two rounds, each probe changed by `with`.
fn searched(with: impl Fn(&mut Point)) -> Recorded {
    searched_in(2, STORE, with)
}

/// The lines of the table of probes at 100 columns, without its title and header.
fn table(view: &View) -> Vec<String> {
    let shown = text::render(view, 100, false);
    let (_, below) = shown.split_once("\nProbes\n").unwrap();
    below.lines().skip(1).take_while(|l| !l.starts_with("Verdicts")).map(Into::into).collect()
}

/// The whole text with single spaces.
fn words(view: &View) -> String {
    text::render(view, 100, false).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// After two probes the store stays slow for several cool-downs.
fn stays_slow(point: &mut Point) {
    let is_rest = point.probe.is_some_and(|step| step.purpose == Purpose::CoolDown);
    if is_rest && (3..=5).contains(&point.stage.unwrap()) {
        let service = &mut point.operations[0].service;
        *service = stats::Histogram::new();
        service.record_many(5_000_000, 1_000);
    }
}

#[test]
fn consecutive_cool_downs_share_a_line_with_their_numbers() {
    let view = judge(&searched(stays_slow));
    let search = &view.searches[0];
    assert_eq!(search.probes.iter().filter(|p| p.purpose == Purpose::CoolDown).count(), 3);
    let lines = table(&view);
    let rests: Vec<&String> = lines.iter().filter(|line| line.contains("rest")).collect();
    assert_eq!(rests.len(), 1, "{lines:#?}");
    assert!(rests[0].trim_start().starts_with("4–6  rest"), "{lines:#?}");
    assert!(rests[0].ends_with("slow, 3 times"), "{lines:#?}");
    let text = words(&view);
    assert!(text.contains("still slow: a cool-down after which"), "{text}");
    assert!(text.contains("numbers that are not listed are cool-downs after which"), "{text}");
    let document = markdown::render(&view);
    assert!(document.contains("| 4–6 | rest |"), "{document}");
    assert!(document.contains("numbers that are not listed"), "{document}");
}

#[test]
fn occurring_verdicts_are_explained_once() {
    let view = judge(&searched(|_| {}));
    let text = words(&view);
    for part in [
        "Verdicts are 95 % certain; slow requests of one burst depend on each other and count as",
        "holds: within the limit",
        "missed: beyond the limit",
        "undecided: neither is certain",
    ] {
        assert_eq!(text.matches(part).count(), 1, "{part} in {text}");
    }
    for absent in ["not judged", "broke", "still slow", "queue grew"] {
        assert!(!text.contains(absent), "{text}");
    }
    assert!(markdown::render(&view).contains("holds: within the limit"));
}

#[test]
fn a_long_message_is_below_the_table_with_its_probe_number() {
    let message = "the server died ".to_string() + &"of something long, ".repeat(10);
    let mortal = |point: &mut Point| {
        if point.probe.is_some_and(|p| p.rate_per_s > 105_000) {
            point.operations.clear();
            point.failure =
                Some(Failure { class: ErrorClass::Closed, message: message.trim().into() });
        }
    };
    let view = judge(&searched(mortal));
    let lines = table(&view);
    assert!(lines.len() > 8 && lines.iter().all(|l| l.chars().count() <= 80), "{lines:#?}");
    let broke = lines.iter().find(|line| line.ends_with("broke")).unwrap();
    let number = broke.split_whitespace().next().unwrap();
    let text = words(&view);
    let below = format!("redis/get=1/50 in block 1, probe {number}: ");
    assert_eq!(text.matches(&below).count(), 1, "{text}");
    assert!(text.contains("broke: it failed, see below, or"), "{text}");
    let document = markdown::render(&view);
    assert_eq!(document.matches(&below).count(), 1, "{document}");
}

#[test]
fn probes_are_counted_with_their_cool_downs() {
    let mut recorded = searched(|_| {});
    let view = judge(&recorded);
    let probes = recorded.trials[0].points.iter().filter_map(|point| point.probe);
    assert_eq!(probes.filter(|step| step.purpose == Purpose::CoolDown).count(), 14);
    assert_eq!((view.course.blocks, view.searches[0].tried, view.searches[0].rests), (1, 28, 14));
    assert!(words(&view).contains("28 probes, 14 of them cool-downs;"), "{}", words(&view));
    // An unfinished trial does not count as a block.
    recorded.seal = None;
    recorded.trials[0].points.truncate(9);
    let view = judge(&recorded);
    assert_eq!((view.course.blocks, view.searches[0].tried, view.searches[0].rests), (0, 9, 4));
}

#[test]
fn an_interruption_is_reported_once() {
    let mut recorded = searched(|_| {});
    let seal = recorded.seal.as_mut().unwrap();
    seal.status = model::SealStatus::Interrupted;
    seal.stopped_because = "interrupted".into();
    let facts = text::facts(&judge(&recorded));
    let expected = "run 0123abcd, interrupted; `cachedyno run --resume 0123abcd` resumes it";
    assert!(facts.ends_with(expected), "{facts}");
}

#[test]
fn csv_has_a_line_per_probe() {
    let view = judge(&searched(stays_slow));
    let search = &view.searches[0];
    let probes = csv::render_probes(&view);
    let lines: Vec<Vec<&str>> = probes.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(lines.len(), 1 + search.probes.len());
    assert!(lines.iter().all(|line| line.len() == lines[0].len()), "{probes}");
    let at = |name: &str| lines[0].iter().position(|column| *column == name).unwrap();
    let field = |line: usize, name: &str| lines[line][at(name)];
    assert_eq!((field(1, "purpose"), field(1, "planned_per_s")), ("peak", ""));
    assert_eq!((field(1, "answered_per_s"), field(1, "verdict")), ("130000", ""));
    assert_eq!(field(1, "beyond p99<1ms"), "");
    assert_eq!((field(2, "number"), field(2, "purpose")), ("3", "bracket"));
    assert_eq!((field(2, "planned_per_s"), field(2, "verdict")), ("91000", "holds"));
    assert!((field(2, "beyond p99<1ms").parse::<f64>().unwrap() - 0.00154).abs() < 1e-5);
    assert_eq!((field(3, "purpose"), field(3, "reason")), ("rest", "still slow"));
}
