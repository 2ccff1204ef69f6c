//! Comparison of two runs: results, ramps and searches, inconclusive cases, and line width.

use model::{Condition, Schedule, Trial};

use super::outputs::plain;
use super::ramp::{REDIS, Store, of, ramped, stages, truncate_stages};
use super::search::{STORE, searched_in};
use super::width::{everything, too_wide};
use crate::compare::render;
use crate::fixture::{pages, run, usual};
use crate::recorded::Recorded;
use crate::view::View;
use crate::{judge, view};

fn compared(a: &Recorded, b: &Recorded) -> String {
    render(&judge(a), &judge(b), 120, false)
}

/// The first line with this start.
#[track_caller]
fn line<'a>(text: &'a str, start: &str) -> &'a str {
    text.lines().find(|l| l.starts_with(start)).unwrap_or_else(|| panic!("no {start} in {text}"))
}

/// Ratio and verdict at the end of the first line with this start.
#[track_caller]
fn judged(text: &str, start: &str) -> (f64, String) {
    let words: Vec<&str> = line(text, start).split_whitespace().collect();
    let ratio = words.iter().find_map(|word| word.strip_suffix('×')).unwrap();
    (ratio.parse().unwrap(), (*words.last().unwrap()).into())
}

/// Redis alone with a multiplied capacity.
fn redis(factor: f64, with: impl Fn(&mut Trial)) -> Recorded {
    let capacity = REDIS.capacity * factor;
    of(&[("redis", Store { capacity, cpu_ns: REDIS.cpu_ns / factor, ..REDIS })], 4, with)
}

#[test]
fn ramps_are_compared_by_sustained_rates_and_costs() {
    let text = compared(&redis(1.0, |_| ()), &redis(2.0, |_| ()));
    for name in ["knee", "answered at most", "p99 below 1.00 ms"] {
        assert_eq!(judged(&text, name), (2.0, "higher".into()), "{text}");
    }
    assert_eq!(judged(&text, "server CPU/op at knee"), (0.5, "cheaper".into()), "{text}");
    let back = compared(&redis(2.0, |_| ()), &redis(1.0, |_| ()));
    assert_eq!(judged(&back, "knee"), (0.5, "lower".into()), "{back}");
    assert_eq!(judged(&back, "server CPU/op at knee"), (2.0, "dearer".into()), "{back}");
}

#[test]
fn a_server_with_unknown_cpu_time_has_no_line_for_it() {
    let unseen = |trial: &mut Trial| {
        for stage in stages(trial) {
            stage.server_cpu_ns = None;
        }
    };
    let text = compared(&redis(1.0, unseen), &redis(2.0, unseen));
    assert!(!text.contains("CPU/op"), "{text}");
    assert_eq!(judged(&text, "knee"), (2.0, "higher".into()), "{text}");
    let text = compared(&redis(1.0, |_| ()), &redis(2.0, unseen));
    let words: Vec<&str> = line(&text, "server CPU/op at knee").split_whitespace().collect();
    assert!(words.ends_with(&["–", "–", "undecided"]), "{text}");
}

#[test]
fn two_ramps_next_to_each_other() {
    let faster = |trial: &mut Trial| {
        for stage in stages(trial) {
            stage.server_cpu_ns = stage.server_cpu_ns.map(|ns| ns / 2);
        }
    };
    let (a, b) = (judge(&ramped(4, |_| ())), judge(&ramped(4, faster)));
    insta::assert_snapshot!(render(&a, &b, 100, false));
}

#[test]
fn a_difference_below_the_distance_of_stages_is_undecided() {
    let text = compared(&redis(1.0, |_| ()), &redis(1.0, |_| ()));
    assert_eq!(judged(&text, "answered at most"), (1.0, "equal".into()), "{text}");
    // Stages are a tenth of the capacity apart, so a smaller difference is undecided.
    for name in ["knee", "p99 below 1.00 ms"] {
        assert_eq!(judged(&text, name), (1.0, "undecided".into()), "{text}");
    }
    let slightly = compared(&redis(1.0, |_| ()), &redis(1.08, |_| ()));
    for name in ["knee", "p99 below 1.00 ms"] {
        assert_eq!(judged(&slightly, name), (1.08, "undecided".into()), "{slightly}");
    }
    let few = |factor: f64| {
        let mut recorded = redis(factor, |_| ());
        recorded.trials.truncate(2);
        recorded
    };
    assert_eq!(judged(&compared(&few(1.0), &few(3.0)), "knee"), (3.0, "undecided".into()));
}

#[test]
fn the_interval_of_a_rate_within_a_limit_extends_to_the_next_stage() {
    let text = compared(&redis(1.0, |_| ()), &redis(1.0, |_| ()));
    // The ninth of twelve stages is within the limit: up to the tenth, at 1.0 of the capacity.
    let view = judge(&redis(1.0, |_| ()));
    let tenth = view.ramps[0].stages[9].metrics["asked_per_s"];
    let shown = format!(", {:.1}]", tenth.hi.unwrap() / 1e3);
    assert!(line(&text, "p99 below 1.00 ms").contains(&shown), "{shown} in {text}");
    // If the last stage is within the limit, there is no upper bound.
    let low = |trial: &mut Trial| truncate_stages(trial, 5);
    let text = compared(&redis(1.0, low), &redis(2.0, |_| ()));
    let words = line(&text, "p99 below 1.00 ms");
    assert!(words.contains("≥ 47.0 k/s  ") && words.ends_with("undecided"), "{text}");
}

#[test]
fn a_ramp_without_the_stores_limit_decides_nothing() {
    let short = |trial: &mut Trial| truncate_stages(trial, 9);
    let starved = |trial: &mut Trial| {
        for stage in stages(trial) {
            stage.server_cpu_ns = stage.server_cpu_ns.map(|ns| ns / 2);
            stage.generator_cpu_ns = stage.length_ns * 98 / 100;
        }
    };
    let cases = [
        (redis(3.0, short), "it was never saturated"),
        (redis(3.0, starved), "the generator was the limit"),
    ];
    for (b, why) in cases {
        let text = compared(&redis(1.0, |_| ()), &b);
        for name in ["knee", "answered at most", "p99 below 1.00 ms", "server CPU/op at knee"] {
            assert_eq!(judged(&text, name).1, "undecided", "{name} in {text}");
        }
        assert!(line(&text, "knee").contains("≥ "), "{text}");
        let expected =
            format!("  B: redis sustains more than measured: {why}, so it is inconclusive\n");
        assert!(text.contains(&expected), "{text}");
    }
}

#[test]
fn a_broken_ramp_is_reported() {
    let dies = |trial: &mut Trial| {
        let message = "the server ended with signal 9".into();
        trial.failure = Some(model::Failure { class: model::ErrorClass::Closed, message });
    };
    let text = compared(&redis(1.0, |_| ()), &redis(1.0, dies));
    assert!(line(&text, "knee").ends_with("–    undecided"), "{text}");
    assert!(text.contains("  B: redis failed in every block"), "{text}");
}

#[test]
fn ramps_of_other_loads_and_limits_are_not_compared() {
    let a = ramped(4, |_| ());
    let mut other = a.clone();
    for cell in &mut other.header.plan.cells {
        cell.load.clients = 32;
    }
    let text = compared(&a, &other);
    assert!(text.contains("The runs have nothing in common that can be compared: "), "{text}");
    assert!(text.contains("2 ramps are only in A.\n2 ramps are only in B.\n"), "{text}");
    let unwrapped = text.replace("\n   ", "");
    assert!(
        unwrapped.contains("! load of memcached, open: A `up to 120 % of the peak in 23"),
        "{text}"
    );
    assert!(
        unwrapped.contains("over 64 clients`") && unwrapped.contains("over 32 clients`"),
        "{text}"
    );

    let mut stricter = redis(3.0, |_| ());
    stricter.header.plan.limit_ns = Some(500_000);
    let text = compared(&redis(1.0, |_| ()), &stricter);
    assert!(text.contains("! limit of p99: A `1.00 ms`, B `500 µs`"), "{text}");
    assert_eq!(judged(&text, "p99 below its own limit").1, "undecided", "{text}");
    assert_eq!(judged(&text, "knee").1, "higher", "{text}");
}

#[test]
fn searches_are_compared_by_the_rates_found() {
    let more = super::search::Store { knee_per_s: 120_000.0, capacity_per_s: 150_000.0, ..STORE };
    let searched = |store| searched_in(5, store, |_| {});
    let text = compared(&searched(STORE), &searched(more));
    assert_eq!(judged(&text, "rate found"), (1.2, "higher".into()), "{text}");
    assert_eq!(judged(&text, "peak"), (1.15, "undecided".into()), "{text}");
    assert!(text.contains("the intervals of the rates found do not overlap"), "{text}");
    assert!(
        !text.contains(" only in ") && !text.contains("operation  "),
        "probes are not rows: {text}"
    );
    let same = compared(&searched(STORE), &searched(STORE));
    assert_eq!(judged(&same, "rate found"), (1.0, "equal".into()), "{same}");
    assert!(same.contains("the intervals of the rates found overlap"), "{same}");
    let two = compared(&searched_in(2, STORE, |_| {}), &searched(more));
    assert_eq!(judged(&two, "rate found").1, "undecided", "of two rounds: {two}");
    insta::assert_snapshot!(render(&judge(&searched(STORE)), &judge(&searched(more)), 80, false));
}

#[test]
fn a_slower_machine_is_noted() {
    let slower = |factor: f64| {
        searched_in(5, STORE, |point| {
            point.server_cpu_ns = point.server_cpu_ns.map(|ns| (ns as f64 * factor) as u64);
        })
    };
    let (usual, slow) = (slower(1.0), slower(1.25));
    let text = compared(&usual, &slow);
    assert_eq!(judged(&text, "server CPU/op"), (1.25, "dearer".into()), "{text}");
    assert!(text.contains("redis needed 1.25× the CPU time per operation in B"), "{text}");
    assert!(compared(&slow, &usual).contains("per operation in A: unless redis itself"));
    let mut quiet = slower(1.25);
    quiet.header.command.extend(["-q", "--seed", "5", "--out=records"].map(String::from));
    assert!(compared(&usual, &quiet).contains("the machine was"), "the same is measured");
    let mut other = slower(1.25);
    other.header.command = vec!["cachedyno".into(), "find-max".into(), "--value".into()];
    assert!(!compared(&usual, &other).contains("the machine was"), "other values");
    assert!(!compared(&usual, &slower(1.05)).contains("the machine was"));
}

#[test]
fn searches_with_different_limits_are_not_compared() {
    let a = searched_in(5, STORE, |_| {});
    let more = super::search::Store { knee_per_s: 120_000.0, capacity_per_s: 150_000.0, ..STORE };
    let mut b = searched_in(5, more, |_| {});
    let cell = &mut b.header.plan.cells[0];
    let Schedule::Search(search) = &mut cell.load.schedule else { panic!("{cell:?}") };
    search.slos = vec!["p99<2ms".parse().unwrap()];
    cell.target = "valkey".into();
    let due = b.trials[0].points.iter_mut().filter_map(|point| point.due.as_mut());
    due.for_each(|due| due.beyond[0].limit_ns = 2_000_000);
    b.header.plan.targets[0].name = "valkey".into();
    b.header.command.push("--clients=50".into());
    let text = compared(&a, &b);
    for expected in [
        "! limits of the search: A `p99<1ms`, B `p99<2ms`",
        "! targets of the search: A `redis`, B `valkey`",
        "! arguments: A `run sessions`, B `run sessions --clients=50`",
        "the workload, load or limits differ, so nothing is compared",
    ] {
        assert!(text.contains(expected), "no {expected} in {text}");
    }
    assert_eq!(judged(&text, "rate found"), (1.2, "undecided".into()), "{text}");
}

#[test]
fn a_rate_limited_by_clients_is_a_lower_bound() {
    let idle = super::search::Store { busy_ns: 110_000, server_cpu_share: 0.3, ..STORE };
    let slow = super::search::Store { knee_per_s: 100.0, ..STORE };
    let a = searched_in(5, STORE, |_| {});
    let text = compared(&a, &searched_in(5, idle, |_| {}));
    let found = line(&text, "rate found");
    assert!(found.contains("≥ ") && found.ends_with("undecided"), "{text}");
    assert!(text.contains("  B: redis sustains at least ") && text.contains("--clients"), "{text}");
    assert!(!text.contains("overlap"), "{text}");
    let text = compared(&a, &searched_in(5, slow, |_| {}));
    assert!(line(&text, "rate found").ends_with("–      undecided"), "{text}");
    assert!(text.contains("  B: redis does not keep p99 < 1 ms even at"), "{text}");
}

#[test]
fn runs_of_different_kinds_have_nothing_in_common() {
    let text = compared(&searched_in(2, STORE, |_| {}), &ramped(3, |_| ()));
    assert!(text.contains("The runs have nothing in common that can be compared: "), "{text}");
    assert!(text.contains("1 search is only in A.\n"), "{text}");
    assert!(text.contains("2 ramps are only in B.\n"), "{text}");
    let text = compared(&run(&["files"], 3, usual), &pages(&["files"], 3, usual));
    assert!(text.contains("6 rows are only in A.\n3 rows are only in B.\n"), "{text}");
}

#[test]
fn the_load_average_differs_only_if_a_run_has_a_warning_for_it() {
    let with = |value: &str, warning: Option<&str>| {
        let mut recorded = run(&["files"], 3, usual);
        recorded.header.conditions.facts = vec![Condition {
            group: "host".into(),
            name: "load average".into(),
            value: value.into(),
            warning: warning.map(str::to_string),
        }];
        recorded
    };
    let quiet = with("0.10", None);
    let text = compared(&quiet, &with("0.20", None));
    assert!(!text.contains("conditions of the runs differ"), "{text}");
    let text = compared(&quiet, &with("3.00", Some("stop other processes")));
    assert!(text.contains("  ! host load average: A `0.10`, B `3.00`\n"), "{text}");
}

/// Pairs of views with common results of each kind.
fn pairs() -> Vec<(View, View)> {
    let short = |trial: &mut Trial| truncate_stages(trial, 9);
    let idle = super::search::Store { busy_ns: 110_000, server_cpu_share: 0.3, ..STORE };
    let mut other = everything();
    other.header.conditions.facts[0].value = "never".into();
    other.header.plan.targets[1].settings.insert("io-threads".into(), "4".into());
    let records = [
        (everything(), other),
        (ramped(4, |_| ()), ramped(4, short)),
        (searched_in(5, STORE, |_| {}), searched_in(5, idle, |_| {})),
        (ramped(4, |_| ()), run(&["redis"], 3, usual)),
    ];
    records.iter().map(|(a, b)| (judge(a), judge(b))).collect()
}

/// B's rates without the clients' own work are 6 % higher.
#[test]
fn a_difference_between_runs_must_hold_by_wall_time_too() {
    let of = |factor: f64, own_share: f64| {
        let mut recorded = run(&["files"], 6, usual);
        for phase in recorded.trials.iter_mut().flat_map(|t| &mut t.points) {
            phase.own_share = own_share;
            phase.operations.iter_mut().for_each(|o| o.rate_per_s *= factor);
        }
        recorded
    };
    let verdict = |own_share| judged(&compared(&of(1.0, 0.02), &of(1.1, own_share)), "read").1;
    assert_eq!([verdict(0.02), verdict(0.13)], ["faster", "undecided"]);
}

#[test]
fn a_comparison_fits_the_terminal() {
    for (a, b) in pairs() {
        for columns in [80, 100, 120, 140] {
            let text = render(&a, &b, columns, false);
            let wide: Vec<&str> = text.lines().filter(|l| l.chars().count() > columns).collect();
            assert!(wide.is_empty(), "at {columns}: {wide:#?}");
        }
        for columns in [40, 60] {
            let text = render(&a, &b, columns, false);
            let wide = too_wide(&text, columns);
            assert!(wide.is_empty(), "at {columns}: {wide:#?}");
        }
    }
}

#[test]
fn at_80_columns_ramps_and_searches_are_tables() {
    for (a, b) in &pairs()[1..3] {
        let text = render(a, b, 80, false);
        let header = text.lines().find(|l| l.contains("B/A ") && l.contains("verdict"));
        assert!(header.is_some(), "{text}");
        assert!(text.contains(" ±"), "{text}");
    }
}

#[test]
fn colour_adds_no_information() {
    for (a, b) in pairs() {
        let coloured = render(&a, &b, 100, true);
        assert_eq!(plain(&coloured), render(&a, &b, 100, false));
        assert!(coloured.contains("\nA: \u{1b}["), "{coloured}");
    }
    let (a, b) = (judge(&redis(1.0, |_| ())), judge(&redis(2.0, |_| ())));
    assert_eq!(a.validity, view::Validity::Valid);
    assert!(render(&a, &b, 120, true).contains("\u{1b}[1mknee "), "what differs is emphasised");
}
