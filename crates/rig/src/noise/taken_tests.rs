use super::*;
use crate::cpu::{allowed_cpus, pin_current_thread};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

#[test]
fn lines_of_single_cpus_are_parsed() {
    let stat = "cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 1 2 3 400 50 6 7 8 0 0\ncpu12 1 2 3 4 5\nintr 1\n";
    let read = cpu_times(stat);
    assert_eq!(read, BTreeMap::from([(0, CpuTimes { idle: 450, stolen: 8 })]));
}

#[test]
fn waits_are_weighted_by_the_work_they_delay() {
    let thread = |cpu_ns, waited_ns, runs| SchedStat { cpu_ns, waited_ns, runs };
    let before = BTreeMap::from([(1, thread(5, 5, 5)), (2, thread(0, 0, 0))]);
    // One thread works and waits a quarter of the time, one sleeps, one only wakes up.
    let mut now = BTreeMap::from([(1, thread(3_000_005, 1_000_005, 5)), (2, thread(0, 0, 0))]);
    now.insert(3, thread(0, 50_000, 10));
    assert_eq!(waited_ns(&before, &now), 1_000_000);
    assert_eq!(waited_ns(&before, &before), 0);
    // A thread that never gets a CPU.
    let starved = BTreeMap::from([(2, thread(0, 9_000_000, 0))]);
    assert_eq!(waited_ns(&before, &starved), 9_000_000);
}

fn spin_on(cpu: usize) -> Child {
    let run = "while :; do :; done";
    let mut spinning = Command::new("taskset");
    spinning.args(["-c", &cpu.to_string(), "sh", "-c", run]).stdin(Stdio::null());
    spinning.spawn().unwrap()
}

/// Two processes share a CPU. If one of them is the server, the other steals half of the time; if
/// both belong to the server, nothing is stolen.
#[test]
fn only_time_of_other_processes_counts_as_stolen() {
    let _exclusive = crate::noise::tests::exclusive();
    let cpus = allowed_cpus();
    let [generator, .., server] = cpus[..] else {
        println!("skipped: this machine has one CPU");
        return;
    };
    std::thread::spawn(move || {
        pin_current_thread(&[generator]).unwrap();
        let mut both = [spin_on(server), spin_on(server)];
        let ids = both.each_ref().map(Child::id);
        let reader =
            |pids: &[u32]| StolenCpuReader::new(&[generator], &[server], ProcessTree::new(pids));
        let (mut one, mut two, mut none) = (reader(&ids[..1]), reader(&ids), reader(&[]));
        assert_eq!(
            one.read(),
            StolenCpuTime { from_servers_ns: Some(0), ..StolenCpuTime::default() }
        );
        two.read();
        none.read();
        let mut measured = Vec::new();
        // Unrelated processes can also use that CPU, so one of several seconds must be clear.
        let is_clear = (0..10).any(|_| {
            let start = Instant::now();
            std::thread::sleep(Duration::from_secs(1));
            let stolen = [&mut one, &mut two].map(|own| own.read().from_servers_ns.unwrap());
            measured.push((stolen, start.elapsed()));
            stolen[0] > start.elapsed().as_nanos() as u64 * 3 / 10 && stolen[1] * 2 < stolen[0]
        });
        let none = none.read();
        for child in &mut both {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        assert!(is_clear, "{measured:?}");
        assert_eq!(none.from_servers_ns, None);
    })
    .join()
    .unwrap();
}
