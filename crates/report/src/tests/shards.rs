//! Efficiency of shards.

use model::NullRate;

use super::quick;
use crate::fixture::recorded;
use crate::recorded::Recorded;
use crate::view::{ShardsView, View};
use crate::{judge, text};

/// The profile `shards` on as many CPUs for servers; each further shard adds half of the rate of
/// the first one, and replicas and a proxy halve it.
fn run(server_cpus: u32) -> View {
    let mut run = recorded(quick::plan(quick::SIZING, "shards"), 3, |cell, _, _| {
        let target = cell.split('/').next().unwrap();
        let shards: f64 = target.chars().find_map(|c| c.to_digit(10)).unwrap_or(1).into();
        let slower = target.ends_with("replicated") || target.ends_with("proxied");
        10_000.0 * (1.0 + 0.5 * (shards - 1.0)) / if slower { 2.0 } else { 1.0 }
    });
    run.header.null_rates = on_cpus(&run, server_cpus);
    judge(&run)
}

/// Rates of the null server for each cell, on as many CPUs for servers.
fn on_cpus(run: &Recorded, server_cpus: u32) -> Vec<NullRate> {
    let null = |cell: &model::Cell| NullRate {
        cell: cell.id.clone(),
        phase: "get".into(),
        rate_per_s: Some(1e6),
        not_checked: None,
        server_cpus,
    };
    run.header.plan.cells.iter().map(null).collect()
}

fn of<'a>(view: &'a View, target: &str) -> &'a ShardsView {
    let mut own = view.happened.shards.iter().filter(|own| own.target == target);
    own.find(|own| own.operation == "get").unwrap()
}

#[test]
fn each_form_is_compared_with_its_own_single_shard() {
    let view = run(6);
    let efficiency = |target: &str| {
        let own = of(&view, target);
        (own.single.clone(), own.efficiency.map(|value| (value.center * 100.0).round()))
    };
    assert_eq!(efficiency("redis-1-shard"), ("redis-1-shard".into(), None));
    assert_eq!(efficiency("redis-2-shards"), ("redis-1-shard".into(), Some(75.0)));
    assert_eq!(efficiency("redis-6-shards"), ("redis-1-shard".into(), Some(58.0)));
    let replicated = "redis-3-shards-replicated";
    assert_eq!(efficiency(replicated), ("redis-1-shard-replicated".into(), Some(67.0)));
    assert_eq!(efficiency("redis-3-proxied"), ("redis-1-proxied".into(), Some(67.0)));
    assert!(view.happened.shards.iter().all(|own| own.target != "redis"), "no shards");
    assert!(of(&view, "redis-6-shards").efficiency.unwrap().lo.is_some(), "over three blocks");
    // Six CPUs are enough for all.
    assert!(view.happened.shards.iter().all(|own| own.limited_by.is_empty()));
}

#[test]
fn a_flat_line_on_few_cpus_is_the_machines() {
    let view = run(1);
    assert!(of(&view, "redis-1-shard").limited_by.is_empty());
    let two = "2 shards share 1 CPU: the ratio shows this machine, not Redis";
    assert_eq!(of(&view, "redis-2-shards").limited_by, [two]);
    let replicated = &of(&view, "redis-3-shards-replicated").limited_by[0];
    assert!(replicated.starts_with("3 shards with their replicas, 6 servers, share 1 CPU:"));
    for shown in [text::summary(&view, 120, false), text::render(&view, 120, false)] {
        assert!(shown.contains("redis-2-shards") && shown.contains("75.1 %"), "{shown}");
        assert_eq!(shown.matches(two).count(), 1, "{shown}");
    }
}

/// Footnotes on the rows of a target of the profile `threads` on as many CPUs for servers.
fn notes_on(target: &str, server_cpus: u32) -> String {
    let mut run = recorded(quick::plan(quick::SIZING, "threads"), 3, |_, _, _| 10_000.0);
    run.header.null_rates = on_cpus(&run, server_cpus);
    let view = judge(&run);
    let row = view.cells.iter().find(|row| row.target == target && row.operation == "get").unwrap();
    row.footnotes.iter().map(|at| view.footnotes[*at].as_str()).collect::<Vec<_>>().join("|")
}

#[test]
fn more_io_threads_than_cpus_show_the_machine() {
    let four = notes_on("redis-4-threads", 2);
    let words = "redis-4-threads: 4 I/O threads share 2 CPUs, where they wait for each other";
    assert!(four.contains(words), "{four}");
    let one = notes_on("redis-2-threads", 1);
    assert!(one.contains("redis-2-threads: 2 I/O threads share 1 CPU,"), "{one}");
    for (target, cpus) in [("redis", 1), ("redis-2-threads", 2), ("redis-4-threads", 4)] {
        let enough = notes_on(target, cpus);
        assert!(!enough.contains("I/O threads"), "{enough}");
    }
}

#[test]
fn shards_need_a_single_one() {
    let mut plan = quick::plan(quick::SIZING, "shards");
    plan.cells.retain(|cell| !cell.id.starts_with("redis-1-shard/"));
    let view = judge(&recorded(plan, 3, |_, _, _| 10_000.0));
    let targets: Vec<&str> = view.happened.shards.iter().map(|own| &*own.target).collect();
    assert!(!targets.contains(&"redis-2-shards"), "{targets:?}");
    assert!(targets.contains(&"redis-3-proxied"), "{targets:?}");
}
