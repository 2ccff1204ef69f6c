//! A replica takes over from a primary that is killed under load.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "helpers of tests fail like tests")]

mod common;
#[path = "common/plan.rs"]
mod on_redis;

use cachedyno_lab::{TargetProvisioner, trial};
use common::{is_installed, setup};
use drivers::redis::sentinel::{Role as Reported, RoleReader};
use model::{Arrivals, ErrorClass, Event, Load, Plan, Schedule, Trial};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rig::Role;
use std::fs;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

const S: u64 = 1_000_000_000;

/// Reads and writes at a steady rate for eight seconds, on a primary with one replica.
fn plan() -> Plan {
    let load = Load::planned(Arrivals::Poisson, Schedule::Steady(2_000), 16);
    on_redis::plan(&[("redis.replicas", "1"), ("redis.sentinels", "3")], load, (0, 8 * S))
}

/// The first server that this process started, which is the primary.
fn primary() -> Pid {
    let own = std::process::id();
    let children = fs::read_dir(format!("/proc/{own}/task")).unwrap().flatten();
    let lists = children.map(|t| fs::read_to_string(t.path().join("children")).unwrap_or_default());
    let pids: Vec<u32> = lists
        .flat_map(|l| l.split(' ').filter_map(|p| p.parse().ok()).collect::<Vec<_>>())
        .collect();
    let is_server = |pid: &&u32| {
        let title = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        title.contains("redis-server 127.0.0.1:") && !title.contains("[sentinel]")
    };
    Pid::from_raw(pids.iter().filter(is_server).min().unwrap().cast_signed())
}

#[test]
fn the_load_continues_on_the_server_that_takes_over() {
    if !is_installed("redis-server") {
        return;
    }
    let (plan, disk) = (plan(), tempfile::tempdir().unwrap());
    let setup = setup(&disk);
    let mut provisioner = TargetProvisioner::new(&plan, "5a3b1e00", &setup);
    let (mut begun, mut is_dead) = (None, false);
    let mut on_event = |event: Event| {
        if let Event::Progress { phase, .. } = event
            && phase == "mixed"
            && begun.get_or_insert_with(Instant::now).elapsed() > Duration::from_secs(1)
            && !is_dead
        {
            kill(primary(), Signal::SIGKILL).unwrap();
            is_dead = true;
        }
    };
    let stop = AtomicBool::new(false);
    let cell = &plan.cells[0];
    let trial = Trial { cell: cell.id.clone(), ..Trial::default() };
    let trial = trial::run(&mut provisioner, cell, trial, &stop, &mut on_event).unwrap().trial;
    assert!(trial.failure.is_none(), "{trial:?}");
    let [outage] = &trial.outages[..] else { panic!("{:?}", trial.outages) };
    assert!((S..5 * S).contains(&outage.begun_ns), "{outage:?}");
    // Sentinel waits a second before it promotes a replica.
    assert!((S..5 * S).contains(&outage.length_ns), "{outage:?}");
    assert!(outage.taken_over_by.as_ref().is_some_and(|by| *by != outage.server), "{outage:?}");
    for operation in &trial.points[0].operations {
        let counts = &operation.counts;
        // Requests in flight when it died.
        assert!(counts.error <= 16, "{counts:?}");
        assert!(counts.errors_by_class.keys().all(|class| *class == ErrorClass::Closed));
        assert_eq!((counts.miss, counts.wrong), (0, 0), "{counts:?}");
    }
    let done = &trial.series.last().unwrap().done_per_interval;
    assert!(done[70..79].iter().sum::<u64>() > 1000, "{done:?}");
    let read_back = trial.read_back.unwrap();
    assert!(read_back.read > 900 && read_back.unread.is_none(), "{read_back:?}");
    assert!(fs::read_dir(disk.path()).unwrap().next().is_none());
}

#[test]
fn servers_report_their_roles() {
    if !is_installed("redis-server") {
        return;
    }
    let (plan, disk) = (plan(), tempfile::tempdir().unwrap());
    let setup = setup(&disk);
    let mut provisioner = TargetProvisioner::new(&plan, "5a3b1e00", &setup);
    let ready = provisioner.ready(&plan.targets[0], &plan.cells[0].workload, "x").unwrap();
    let servers: Vec<_> = ready.servers().collect();
    let mut readers: Vec<RoleReader> = servers
        .iter()
        .map(|(_, server)| RoleReader::new(server.endpoint().clone(), Duration::from_secs(1)))
        .collect();
    let mut role = |n: usize| readers[n].role();
    let Reported::Primary { replicas, .. } = role(0).unwrap() else { panic!("{:?}", role(0)) };
    assert_eq!(replicas.len(), 1);
    let Reported::Replica { link, .. } = role(1).unwrap() else { panic!("{:?}", role(1)) };
    assert_eq!(link, "connected");
    let Reported::Sentinel { primary: first } = role(2).unwrap() else { panic!("{:?}", role(2)) };
    assert_eq!(servers[2].0, Role::Sentinel);

    kill(Pid::from_raw(servers[0].1.pid().cast_signed()), Signal::SIGKILL).unwrap();
    let deadline = Instant::now() + Duration::from_secs(20);
    while !matches!(role(1), Ok(Reported::Primary { .. })) {
        assert!(Instant::now() < deadline, "{:?}", role(1));
        thread::sleep(Duration::from_millis(10));
    }
    while matches!(role(2), Ok(Reported::Sentinel { primary }) if primary == first) {
        assert!(Instant::now() < deadline, "{:?}", role(2));
        thread::sleep(Duration::from_millis(10));
    }
    let class = role(0).unwrap_err().class;
    assert!(matches!(class, ErrorClass::Refused | ErrorClass::Closed), "{class}");
    assert_eq!(ready.server_died(), None);
}
