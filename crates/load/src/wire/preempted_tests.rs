use super::*;
use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;
use std::thread;
use std::time::{Duration, Instant};

const MS: u64 = 1_000_000;

fn watch() -> Preempted {
    Preempted::new(&[], 100)
}

#[test]
fn time_without_work_is_a_loss_until_the_queue_is_as_before() {
    let mut watch = watch();
    watch.at_work(MS, 3, 10);
    assert!(!watch.answered(MS, 10_000));
    watch.at_work(5 * MS, 3, 10);
    assert!(watch.answered(5 * MS, 10_000));
    for under_way in [20, 11, 4] {
        watch.left(10 * MS, under_way);
        assert!(watch.answered(6 * MS, 10_000), "{under_way} are under way");
    }
    watch.left(10 * MS, 3);
    assert!(!watch.answered(7 * MS, 10_000));
    assert_eq!(watch.take_lost(), Lost { times: 1, own_ns: 4 * MS, server_ns: 0 });
    assert_eq!(watch.take_lost(), Lost::default());
}

#[test]
fn a_shorter_queue_is_waited_for_from_below() {
    let mut watch = watch();
    watch.at_work(MS, 5, 0);
    watch.at_work(3 * MS, 5, 0);
    for under_way in [2, 4] {
        watch.left(10 * MS, under_way);
        assert!(watch.answered(4 * MS, 0), "{under_way} are under way");
    }
    watch.left(10 * MS, 5);
    assert!(!watch.answered(4 * MS, 0));
}

#[test]
fn a_number_is_reached_from_below_by_sending() {
    let mut watch = watch();
    watch.at_work(MS, 1, 0);
    watch.at_work(9 * MS, 1, 0);
    // Not before what the loss delayed was looked at.
    watch.joined(1);
    assert!(watch.answered(9 * MS, 8 * MS));
    watch.left(9 * MS, 0);
    assert!(watch.answered(9 * MS, 0));
    watch.joined(1);
    assert!(!watch.answered(10 * MS, 0));
}

#[test]
fn a_store_that_is_empty_is_as_it_was_after_a_while() {
    let mut watch = watch();
    watch.at_work(MS, 50, 0);
    watch.at_work(9 * MS, 50, 0);
    watch.left(10 * MS, 0);
    assert!(watch.answered(10 * MS, 0));
    watch.left(28 * MS, 0);
    assert!(watch.answered(28 * MS, 0));
    watch.left(29 * MS, 0);
    assert!(!watch.answered(29 * MS, 0));
}

#[test]
fn a_second_loss_waits_for_the_queue_before_the_first() {
    let mut watch = watch();
    watch.at_work(MS, 2, 0);
    watch.at_work(3 * MS, 2, 0);
    watch.at_work(4 * MS, 50, 300);
    watch.at_work(6 * MS, 50, 300);
    watch.left(10 * MS, 49);
    assert!(watch.answered(7 * MS, 0));
    watch.left(10 * MS, 2);
    assert!(!watch.answered(7 * MS, 0));
    assert_eq!(watch.take_lost().times, 2);
}

#[test]
fn work_and_sleep_are_no_loss() {
    let mut watch = watch();
    watch.at_work(MS, 0, 0);
    // 400 requests at 5.4 µs each.
    watch.at_work(3 * MS, 0, 400);
    watch.sleeps(20 * MS);
    watch.at_work(20 * MS + 50_000, 0, 400);
    // A reply woke it up earlier.
    watch.sleeps(40 * MS);
    watch.at_work(30 * MS, 0, 400);
    watch.at_work(30 * MS + 250_000, 0, 400);
    assert_eq!(watch.take_lost(), Lost::default());
    watch.sleeps(40 * MS);
    watch.at_work(42 * MS, 0, 400);
    assert_eq!(watch.take_lost().own_ns, 2 * MS);
}

#[test]
fn numbers_of_a_thread_are_read() {
    let used = Used { cpu_ns: 12, waited_ns: 345, runs: 6 };
    assert_eq!(parsed(b"12 345 6\n"), Some(used));
    assert_eq!(parsed(b"12 345"), None);
    assert_eq!(parsed(b""), None);
}

#[test]
fn a_wait_for_the_servers_other_threads_is_no_loss() {
    let file = File::open("/proc/self/schedstat").unwrap();
    let mut thread = RunQueue { file, last: Used::default(), excused_ns: 0 };
    let waits = |waited_ns| Used { waited_ns, ..Used::default() };
    // Others of the server work for 6 ms in looks of 2 ms; then the wait for them is told at once.
    for _ in 0..3 {
        assert_eq!(thread.lost(waits(0), 2 * MS), 0);
    }
    assert_eq!(thread.lost(waits(6 * MS), 0), 0);
    assert_eq!(thread.lost(waits(4 * MS), MS), 3 * MS);
    // What they used long ago excuses nothing beyond a while.
    assert_eq!(thread.lost(waits(0), 1_000 * MS), 0);
    assert_eq!(thread.lost(waits(60 * MS), 0), 10 * MS);
    // Waking up costs a little each time.
    assert_eq!(thread.lost(Used { waited_ns: 30_000, runs: 3, cpu_ns: 0 }, 0), 0);
}

fn to_first_cpu() {
    let mut one = CpuSet::new();
    let allowed = nix::sched::sched_getaffinity(Pid::from_raw(0)).unwrap();
    let cpu = (0..CpuSet::count()).find(|cpu| allowed.is_set(*cpu).unwrap()).unwrap();
    one.set(cpu).unwrap();
    sched_setaffinity(Pid::from_raw(0), &one).unwrap();
}

/// A process that keeps one CPU busy, and ends with the test.
struct Busy(std::process::Child);

impl Busy {
    fn start(script: &str) -> Self {
        let mut command = std::process::Command::new("sh");
        let child = command.args(["-c", script]).spawn().unwrap();
        thread::sleep(Duration::from_millis(100));
        Self(child)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// What a watch over a busy process says of 300 ms in which this thread is on the same CPU.
fn beside(script: &str) -> Lost {
    thread::spawn({
        let script = script.to_string();
        move || {
            to_first_cpu();
            let busy = Busy::start(&script);
            let mut watch = Preempted::new(&[busy.0.id()], 0);
            let begun = Instant::now();
            while begun.elapsed() < Duration::from_millis(300) {
                watch.at_work(begun.elapsed().as_nanos() as u64, 0, 0);
            }
            watch.take_lost()
        }
    })
    .join()
    .unwrap()
}

#[test]
fn a_server_that_waits_for_a_cpu_of_others_is_noticed() {
    if parsed_own().is_none() {
        println!("skipped: this kernel has no schedstat");
        return;
    }
    let lost = beside("while :; do :; done");
    assert!(lost.server_ns > 50 * MS && lost.own_ns > 50 * MS, "{lost:?}");
}

#[test]
fn a_server_with_a_child_may_wait_for_that() {
    let lost = beside("sleep 2 & while :; do :; done");
    assert_eq!(lost.server_ns, 0, "{lost:?}");
}

fn parsed_own() -> Option<Used> {
    parsed(&fs::read("/proc/thread-self/schedstat").ok()?)
}
