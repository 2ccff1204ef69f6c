//! A search for the highest rate within limits, on a real server.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "helpers of tests fail like tests")]

mod common;
#[path = "common/plan.rs"]
mod on_redis;

use cachedyno_lab::{TargetProvisioner, trial};
use common::{is_installed, setup};
use model::{Arrivals, Event, Load, Plan, Point, Schedule, Search, Trial, Workload};
use std::fs;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

const S: u64 = 1_000_000_000;

/// A search longer than its deadline on a private Redis with few keys.
fn plan(deadline_ns: u64) -> Plan {
    let slos = vec!["p99<100ms".parse().unwrap()];
    let search = Search { slos, probe_ns: S / 2, rounds: 5 };
    let load = Load::planned(Arrivals::Poisson, Schedule::Search(search), 4);
    let mut plan = on_redis::plan(&[], load, (S / 20, S / 2));
    let Workload::Kv(kv) = &mut plan.cells[0].workload else { panic!("{:?}", plan.cells[0]) };
    kv.deadline_ns = deadline_ns;
    plan
}

#[test]
fn a_search_ends_at_its_deadline_and_keeps_its_probes() {
    if !is_installed("redis-server") {
        return;
    }
    let (plan, disk) = (plan(3 * S), tempfile::tempdir().unwrap());
    let setup = setup(&disk);
    let mut provisioner = TargetProvisioner::new(&plan, "5a3b1e01", &setup);
    let mut points: Vec<Point> = Vec::new();
    let mut on_event = |event: Event| {
        if let Event::PointEnded(trial) = event {
            points.extend(trial.points);
        }
    };
    let cell = &plan.cells[0];
    let trial = Trial { cell: cell.id.clone(), ..Trial::default() };
    let begun = Instant::now();
    let stop = AtomicBool::new(false);
    let trial = trial::run(&mut provisioner, cell, trial, &stop, &mut on_event).unwrap().trial;
    // Starting and stopping a server takes additional time.
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    let failure = trial.failure.as_ref().unwrap();
    let late = "the trial reached its deadline of 3.00 s (raise it with --set deadline_s=SECONDS)";
    assert_eq!(failure.message, late);
    assert!(trial.points.len() > 2, "{:?}", trial.points);
    for point in &trial.points {
        assert_eq!(point.failure, None, "the store broke under no probe");
        let (planned_ns, length_ns) = (point.probe.unwrap().length_ns, point.length_ns);
        // It ends with the last request, which may be due slightly before the planned end.
        let is_whole = length_ns >= planned_ns / 10 * 8;
        assert!(is_whole, "a probe of {planned_ns} ns was cut short after {length_ns} ns");
    }
    assert_eq!(points, trial.points);
    assert_eq!(plan.next_probe(&trial), None, "a search past its deadline is over");
    assert!(fs::read_dir(disk.path()).unwrap().next().is_none());
}
