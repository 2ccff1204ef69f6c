use super::*;
use crate::cpu::allowed_cpus;
use crate::procfs::SchedStat;
use std::process::{Child, Command};

const LOOP: &str = "while :; do :; done";

/// A process that is killed on drop.
struct Busy(Child);

impl Busy {
    /// Starts a script on a CPU.
    fn on(cpu: usize, script: &str) -> Self {
        let cpu = cpu.to_string();
        Self(Command::new("taskset").args(["-c", &cpu, "sh", "-c", script]).spawn().unwrap())
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// Scheduler statistics of this process's threads with the given name.
fn own_threads(name: &str) -> Vec<SchedStat> {
    let entries = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let named = entries.filter(|entry| {
        let comm = std::fs::read_to_string(entry.path().join("comm"));
        comm.is_ok_and(|comm| comm.trim() == name)
    });
    named
        .filter_map(|e| SchedStat::parse(&std::fs::read(e.path().join("schedstat")).ok()?))
        .collect()
}

fn permitted() -> bool {
    let permitted = is_permitted();
    if let Err(e) = &permitted {
        println!("skipped: the kernel does not permit sampling a CPU: {e}");
    }
    permitted.is_ok()
}

#[test]
fn a_process_on_the_servers_cpu_is_reported() {
    let (true, Some(cpu)) = (permitted(), allowed_cpus().last().copied()) else { return };
    let _exclusive = crate::noise::tests::exclusive();
    let busy = Busy::on(cpu, LOOP);
    let server = Busy::on(cpu, LOOP);
    let watch = Watch::start(&[cpu], &[cpu], &ProcessTree::new(&[server.0.id()])).unwrap();
    let without = Watch::start(&[cpu], &[cpu], &ProcessTree::default()).unwrap();
    thread::sleep(Duration::from_secs(2));
    for schedstat in own_threads("disturbers") {
        println!("cost: {} µs of CPU in 2 s", schedstat.cpu_ns / 1_000);
        assert!(schedstat.cpu_ns < 40_000_000, "{schedstat:?}");
    }
    let (found, without) = (watch.stop().unwrap(), without.stop().unwrap());
    // It is the only one with its name, unless unrelated processes run there, too.
    let of =
        |found: &Disturbers| found.most.iter().find(|d| d.name.as_deref() == Some("sh")).cloned();
    let (spinner, both) = (of(&found).unwrap(), of(&without).unwrap());
    assert!(spinner.cpu_ns >= 100_000_000 && !spinner.is_kernel, "{found:?}");
    assert!(
        both.processes > spinner.processes && both.cpu_ns > spinner.cpu_ns,
        "{both:?} {spinner:?}"
    );
    assert!([busy.0.id(), server.0.id()].contains(&both.pid) || both.processes > 2, "{both:?}");
    assert!(found.most.is_sorted_by(|a, b| a.cpu_ns >= b.cpu_ns));
    assert!(found.most.len() <= REPORTED_MAX);
}

/// The children live for less than the time between two readings.
#[test]
fn ended_children_of_a_server_are_not_reported() {
    let (true, Some(cpu)) = (permitted(), allowed_cpus().last().copied()) else { return };
    let _exclusive = crate::noise::tests::exclusive();
    let count = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done";
    let server = Busy::on(cpu, &format!("while :; do ({count}); done"));
    // Wait until `taskset` has executed the shell.
    while ProcessActivity::of(server.0.id()).is_none_or(|activity| activity.name != "sh") {
        thread::yield_now();
    }
    let watch = Watch::start(&[cpu], &[cpu], &ProcessTree::new(&[server.0.id()])).unwrap();
    let stranger = Watch::start(&[cpu], &[cpu], &ProcessTree::default()).unwrap();
    thread::sleep(Duration::from_secs(2));
    let sum = |found: Option<Disturbers>| {
        let found = found.unwrap().most.into_iter();
        found.filter(|d| d.name.as_deref().is_none_or(|name| name == "sh")).map(|d| d.cpu_ns).sum()
    };
    let (as_server, as_stranger): (u64, u64) = (sum(watch.stop()), sum(stranger.stop()));
    assert!(as_stranger > as_server + 50_000_000, "{as_stranger} {as_server}");
}

#[test]
fn records_are_parsed() {
    let ids = |ids: &[u32]| ids.iter().flat_map(|id| id.to_ne_bytes()).collect::<Vec<u8>>();
    assert_eq!(Record::parse(9, &ids(&[7, 8])), Some(Record::Sample { pid: 7 }));
    let fork = Record::parse(7, &ids(&[7, 3, 7, 3, 0, 0]));
    assert_eq!(fork, Some(Record::Fork { pid: 7, parent: 3 }));
    assert_eq!(Record::parse(7, &ids(&[7, 7, 8, 7, 0, 0])), None, "a thread");
    let name = [&ids(&[7, 7])[..], b"rsync\0\0\0"].concat();
    let named = Record::Name { pid: 7, name: "rsync".into() };
    assert_eq!(Record::parse(3, &name), Some(named));
    assert_eq!(Record::parse(2, &[]), Some(Record::Lost));
    assert_eq!(Record::parse(9, &[1, 2]), None);
}

#[test]
fn processes_with_the_same_name_are_combined() {
    let mut collector = SampleCollector::new(Vec::new(), &ProcessTree::default());
    // Ids that the kernel never assigns, so looking them up finds no process.
    let id = |n: u32| 0x7fff_0000 + n;
    let named = |n, name: &str| Record::Name { pid: id(n), name: name.into() };
    let samples = |n: u32, count| (0..count).map(move |_| Record::Sample { pid: id(n) });
    let mut records = vec![named(1, "cc1"), named(2, "cc1"), named(3, "make")];
    records.extend(samples(1, 3).chain(samples(2, 5)).chain(samples(3, 2)).chain(samples(4, 9)));
    records.push(Record::Fork { pid: id(5), parent: std::process::id() });
    records.extend(samples(5, 50));
    records.extend((0..50).map(|_| Record::Sample { pid: 0 }));
    collector.add(records);
    let found = collector.into_disturbers();
    let of = |d: &Disturber| (d.name.clone(), d.pid, d.processes, d.cpu_ns / PERIOD_NS);
    let name = |name: &str| Some(name.to_string());
    let expected = [(None, id(4), 1, 9), (name("cc1"), id(2), 2, 8), (name("make"), id(3), 1, 2)];
    assert_eq!(found.most.iter().map(of).collect::<Vec<_>>(), expected);
    assert!(!found.incomplete);
    let mut collector = SampleCollector::new(Vec::new(), &ProcessTree::default());
    collector.add(vec![Record::Lost]);
    assert!(collector.into_disturbers().incomplete);
}
