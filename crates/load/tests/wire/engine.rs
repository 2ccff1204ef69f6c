//! The wire engine against a line-protocol server with configurable faults.
//!
//! A request is a key's name and a line feed. A reply is a line: `+` for success, `?` for a miss,
//! `-` and a text for an error, `!` for a wrong value.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use cachedyno_load as load;
use load::wire::pacer::{Arrivals, Stage};
use load::wire::protocol::{Expect, Judged, Malformed, Parser, Plain, Shape, Step};
use load::wire::route::{Route, Single};
use load::wire::template::{Segment, Template};
use load::wire::{
    Address, Offer, Operation, Outcome, Pacing, Part, Servers, ThinkTime, Until, Work,
};
use load::{Meter, Reading, Unmetered};
use model::ErrorClass;
use nix::sched::{CpuSet, sched_getaffinity};
use nix::unistd::Pid;
use stats::Histogram;
use workloads::kv::{Distribution, KeyChoice, KeyNames, Mix, Sizes, Values};

pub(super) const S: u64 = 1_000_000_000;

#[derive(Default)]
pub(super) struct Lines;

impl Parser for Lines {
    fn at_once(&mut self, bytes: &[u8], _: &Expect, _: &Values) -> Option<(usize, Plain)> {
        let plain = match bytes[0] {
            b'+' => Plain::Ok { verified: false },
            b'?' => Plain::Miss,
            b'!' => Plain::Wrong,
            _ => return None,
        };
        let end = bytes.iter().position(|b| *b == b'\n')?;
        Some((end + 1, plain))
    }

    fn read(&mut self, bytes: &[u8], _: &Expect, _: &Values) -> Result<Step, Malformed> {
        let Some(end) = bytes.iter().position(|b| *b == b'\n') else {
            return Ok(Step::More { used: 0 });
        };
        let text = String::from_utf8_lossy(&bytes[1..end]).into_owned();
        let judged = match bytes[0] {
            b'+' => Judged::Ok { verified: false },
            b'?' => Judged::Miss,
            b'!' => Judged::Wrong,
            b'-' => Judged::Error(ErrorClass::Reply, text),
            b'>' => Judged::Redirected { address: text, for_good: true },
            other => return Err(Malformed(format!("a line begins with {other}"))),
        };
        Ok(Step::Whole { used: end + 1, judged })
    }
}

/// Behaviour of a connection's thread for a request: the reply, or `None` to close the connection.
type Behaviour = dyn Fn(u64, &str) -> Option<String> + Send + Sync;

/// A server that counts its requests over all connections; it ends with the test process.
pub(super) struct Server {
    pub(super) address: Address,
    served: Arc<AtomicU64>,
    connections: Arc<AtomicU64>,
}

impl Server {
    pub(super) fn start(behaviour: Arc<Behaviour>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = Address::Tcp(listener.local_addr().unwrap());
        let (served, connections) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let (all, opened) = (served.clone(), connections.clone());
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (behaviour, all) = (behaviour.clone(), all.clone());
                opened.fetch_add(1, Ordering::SeqCst);
                thread::spawn(move || serve(&stream.unwrap(), behaviour.as_ref(), &all));
            }
        });
        Self { address, served, connections }
    }

    pub(super) fn good() -> Self {
        Self::start(Arc::new(|_, _| Some("+\n".into())))
    }

    pub(super) fn servers(&self) -> Servers {
        Servers {
            nodes: vec![self.address.clone()],
            tls: None,
            hello: Vec::new(),
            hello_replies: Vec::new(),
            route: Box::new(Single),
            survey: None,
        }
    }
}

fn serve(stream: &TcpStream, behaviour: &Behaviour, all: &AtomicU64) {
    stream.set_nodelay(true).unwrap();
    let mut lines = BufReader::new(stream.try_clone().unwrap());
    let (mut stream, mut line) = (stream, String::new());
    while lines.read_line(&mut line).is_ok_and(|n| n > 0) {
        let n = all.fetch_add(1, Ordering::SeqCst);
        let Some(reply) = behaviour(n, line.trim_end()) else { return };
        if stream.write_all(reply.as_bytes()).is_err() {
            return;
        }
        line.clear();
    }
}

pub(super) fn work() -> Work {
    let names = KeyNames::default();
    let segments = vec![Segment::Key, Segment::Literal(b"\n".to_vec())];
    let operation = Operation {
        name: "ask".into(),
        template: Template::new(segments, &names, None),
        shape: Shape::Any,
        writes: false,
        reads_own: false,
        then: None,
    };
    Work {
        operations: vec![operation],
        mix: Mix::new(&[1.0]).unwrap(),
        keys: KeyChoice::new(Distribution::Uniform, 1_000).unwrap(),
        names,
        sizes: Sizes::all(10),
        values: Arc::new(Values::new(1)),
        seed: 1,
        verify_one_in: 0,
        inserting: None,
        follows: false,
        keeps_writes: false,
    }
}

pub(super) fn offer(clients: u32, pipeline: u32, until: Until) -> Offer {
    Offer {
        part: Part::default(),
        threads: 1,
        clients,
        pipeline,
        pacing: Pacing::Closed { think: ThinkTime::default(), stages: Vec::new() },
        until,
        warmup_ns: 0,
        timeout_ns: 2 * S,
        stall_ns: 0,
        cpus: Vec::new(),
        spin: false,
        reconnects: true,
        stop_on_error_reply: false,
        hangs_up: false,
        limits_ns: Vec::new(),
        number: 0,
    }
}

fn run(offer: &Offer, servers: &Servers) -> Outcome {
    run_with(&work(), offer, servers)
}

pub(super) fn run_with(work: &Work, offer: &Offer, servers: &Servers) -> Outcome {
    let stop = AtomicBool::new(false);
    load::wire::run::<Lines>(offer, work, servers, &stop, &mut Unmetered, &mut |_| {})
}

#[test]
fn a_counted_load_sends_exactly_its_count() {
    for (threads, clients, pipeline, requests) in [(1, 1, 1, 100), (2, 7, 3, 10_001), (3, 3, 50, 7)]
    {
        let server = Server::good();
        let offer = Offer { threads, ..offer(clients, pipeline, Until::Requests(requests)) };
        let outcome = run(&offer, &server.servers());
        assert_eq!(outcome.failure, None);
        let row = outcome.recorder.whole();
        assert_eq!((row.counts().ok, row.answered()), (requests, requests));
        assert_eq!(server.served.load(Ordering::SeqCst), requests);
        assert_eq!(server.connections.load(Ordering::SeqCst), u64::from(clients));
        assert_eq!(outcome.recorder.done_per_interval().iter().sum::<u64>(), requests);
        assert!(row.lag().is_none());
    }
}

/// The overall row contains exactly the times of all operations, also after it was written to a
/// record and read back, and its slow intervals are those of the histograms.
#[test]
fn the_row_of_all_operations_is_their_sum() {
    let operations = [(); 2].map(|()| work().operations.remove(0)).to_vec();
    let work = Work { operations, mix: Mix::new(&[1.0, 1.0]).unwrap(), ..work() };
    let offer = Offer { threads: 2, ..offer(4, 2, Until::Requests(5_000)) };
    let outcome = run_with(&work, &offer, &Server::good().servers());
    let point = outcome.into_phase("all", &["one", "two"]).points.remove(0);
    let (all, parts) = point.operations.split_last().unwrap();
    assert_eq!((all.operation.as_str(), parts.len()), ("all", 2));
    let (mut sum, mut of_record, mut longest) = (Histogram::new(), Histogram::new(), Vec::new());
    for part in parts {
        sum.merge(&part.service);
        of_record.merge(&Histogram::decode(&part.service.encode()).unwrap());
        let service = &part.slowest.as_ref().unwrap().service;
        longest.resize(service.len().max(longest.len()), 0);
        longest.iter_mut().zip(service).for_each(|(all, one)| *all = u64::max(*all, *one));
    }
    assert_eq!((sum.count(), &sum, &of_record), (5_000, &all.service, &all.service));
    let all_of_record = Histogram::decode(&all.service.encode()).unwrap();
    for q in [0.5, 0.99, 0.999, 0.9999] {
        let [one, two] = [&all_of_record, &all.service].map(|times| times.quantile_ns(q));
        assert_eq!([one, two], [of_record.quantile_ns(q), sum.quantile_ns(q)], "{q}");
    }
    assert_eq!(longest, all.slowest.as_ref().unwrap().service);
    let most_ns = longest.iter().max().unwrap();
    assert!(sum.max_ns().abs_diff(*most_ns) <= most_ns / 1_000, "{longest:?}");
}

#[test]
fn the_greeting_is_never_printed() {
    let servers = Servers { hello: b"AUTH hush".to_vec(), ..Server::good().servers() };
    let text = format!("{servers:?} {:?}", servers.hello_replies);
    assert!(!text.contains("hush") && !text.contains("104, 117, 115, 104"), "{text}");
}

#[test]
fn no_client_has_more_in_flight_than_its_pipeline() {
    // A connection's requests are answered only once no more of them arrive.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = Address::Tcp(listener.local_addr().unwrap());
    let most = Arc::new(AtomicU64::new(0));
    let seen = most.clone();
    thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        stream.set_read_timeout(Some(Duration::from_millis(30))).unwrap();
        let (mut lines, mut in_flight) = (BufReader::new(stream.try_clone().unwrap()), 0);
        loop {
            let mut line = String::new();
            match lines.read_line(&mut line) {
                Ok(0) => return,
                Ok(_) => in_flight += 1,
                Err(_) => {
                    seen.fetch_max(in_flight, Ordering::SeqCst);
                    (&stream).write_all("+\n".repeat(in_flight as usize).as_bytes()).unwrap();
                    in_flight = 0;
                }
            }
        }
    });
    let servers = Servers { nodes: vec![address], ..Server::good().servers() };
    let outcome = run(&offer(1, 4, Until::Requests(16)), &servers);
    assert_eq!((outcome.recorder.whole().counts().ok, most.load(Ordering::SeqCst)), (16, 4));
}

#[test]
fn a_stall_is_in_the_response_times_of_an_open_load() {
    // The server stalls for 200 ms in every second; all requests due during that time must wait.
    let begun = Instant::now();
    let server = Server::start(Arc::new(move |_, _| {
        let into = begun.elapsed().as_millis() % 1_000;
        if into < 200 {
            thread::sleep(Duration::from_millis(200 - into as u64));
        }
        Some("+\n".into())
    }));
    let stage = Stage { rate_from_per_s: 500.0, rate_to_per_s: 500.0, length_ns: 4 * S };
    let pacing = Pacing::Open { arrivals: Arrivals::Constant, stages: vec![stage] };
    let offer = Offer { pacing, ..offer(4, 1, Until::AfterNs(4 * S)) };
    let outcome = run(&offer, &server.servers());
    let row = outcome.recorder.whole();
    assert_eq!((outcome.failure, outcome.unsent, row.answered()), (None, 0, 2_000));
    // b + S − (1 − q)·T/k: 190 ms at p99, 150 ms at p95; a generous upper bound for a busy machine.
    for (q, expected_ms) in [(0.95, 150), (0.99, 190)] {
        let ms = row.response().quantile_ns(q) / 1_000_000;
        assert!((expected_ms - 10..expected_ms + 100).contains(&ms), "{q}: {ms} ms");
    }
    // Four clients had only four requests in flight before each stall; only these have slow service
    // times.
    let slow_by_service = row.service().quantile_ns(0.98);
    assert!(slow_by_service < row.response().quantile_ns(0.95), "{slow_by_service}");
    assert!(row.lag().unwrap().quantile_ns(0.95) > 100_000_000);
}

#[test]
fn requests_count_in_the_interval_they_were_due_in_and_against_every_limit() {
    // One reply in ten is an error; the server stalls from 0.3 s to 0.6 s.
    let begun = Instant::now();
    let server = Server::start(Arc::new(move |n, _| {
        let into = begun.elapsed().as_millis();
        if (300..600).contains(&into) {
            thread::sleep(Duration::from_millis(600 - into as u64));
        }
        Some(if n % 10 == 9 { "-NO\n" } else { "+\n" }.into())
    }));
    let stage = Stage { rate_from_per_s: 500.0, rate_to_per_s: 500.0, length_ns: 2 * S };
    let pacing = Pacing::Open { arrivals: Arrivals::Constant, stages: vec![stage] };
    let limits_ns = vec![1, S / 20, u64::MAX];
    let offer = Offer { pacing, limits_ns, ..offer(4, 1, Until::AfterNs(2 * S)) };
    let point = run(&offer, &server.servers()).into_phase("get", &["get"]).points.remove(0);
    let due = point.due.unwrap();
    assert_eq!(due.due_per_interval, [50; 20], "each in its due interval, however late");
    let over: Vec<u64> = due.beyond.iter().map(|b| b.over_per_interval.iter().sum()).collect();
    assert_eq!((over[0], over[2]), (1_000, 100), "all take some time, one in ten failed");
    // Requests due from 0.3 s to 0.55 s waited longer than 50 ms.
    assert!((200..1_000).contains(&over[1]), "{over:?}");
    let limits: Vec<u64> = due.beyond.iter().map(|b| b.limit_ns).collect();
    assert_eq!(limits, offer.limits_ns);
}

#[test]
fn polling_for_replies_does_not_count_as_work() {
    let server = Server::start(Arc::new(|_, _| {
        thread::sleep(Duration::from_millis(8));
        Some("+\n".into())
    }));
    let stage = Stage { rate_from_per_s: 100.0, rate_to_per_s: 100.0, length_ns: S };
    let pacing = Pacing::Open { arrivals: Arrivals::Constant, stages: vec![stage] };
    let spun_before = load::watch::spun_ns();
    let offer = Offer { pacing, spin: true, ..offer(1, 1, Until::AfterNs(S)) };
    let outcome = run(&offer, &server.servers());
    let spun_ns = load::watch::spun_ns() - spun_before;
    assert_eq!(outcome.recorder.whole().answered(), 100);
    // A request is in flight for 0.8 s; other processes may take some of that CPU time.
    assert!(spun_ns > S / 20, "{spun_ns}");
    let cpu_ns = outcome.generator_cpu_ns;
    // Polling that was preempted by other processes is excluded too.
    assert!(cpu_ns < S / 4, "100 requests took {cpu_ns} ns");
}

/// Keeps a CPU busy from another process until the test ends.
pub(super) struct Busy(Child);

impl Busy {
    pub(super) fn on(cpu: usize) -> Self {
        let mut command = Command::new("taskset");
        let cpu = cpu.to_string();
        Self(command.args(["-c", &cpu, "sh", "-c", "while :; do :; done"]).spawn().unwrap())
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// A CPU that this test may use.
pub(super) fn a_cpu() -> usize {
    let allowed = sched_getaffinity(Pid::from_raw(0)).unwrap();
    (0..CpuSet::count()).find(|cpu| allowed.is_set(*cpu).unwrap()).unwrap()
}

/// Reports that other processes use the generator's CPUs all the time.
struct Crowded(Instant);

impl Meter for Crowded {
    fn read(&mut self) -> Reading {
        let other_processes_on_generator_ns = self.0.elapsed().as_nanos() as u64;
        Reading {
            other_processes_on_generator_ns,
            taken_from_server_ns: Some(7),
            ..Reading::default()
        }
    }
}

#[test]
fn stolen_cpu_time_is_reported_and_the_delayed_requests_count() {
    let server = Server::start(Arc::new(|_, _| Some("+\n".into())));
    let stage = Stage { rate_from_per_s: 2_000.0, rate_to_per_s: 2_000.0, length_ns: S };
    let pacing = Pacing::Open { arrivals: Arrivals::Constant, stages: vec![stage] };
    let cpu = a_cpu();
    let (limits_ns, cpus) = (vec![1_000_000], vec![cpu]);
    let offer = Offer { pacing, limits_ns, cpus, spin: true, ..offer(4, 16, Until::AfterNs(S)) };
    let busy = Busy::on(cpu);
    let (stop, mut meter) = (AtomicBool::new(false), Crowded(Instant::now()));
    let work = work();
    let servers = server.servers();
    let outcome = load::wire::run::<Lines>(&offer, &work, &servers, &stop, &mut meter, &mut |_| {});
    let point = outcome.into_phase("get", &["get"]).points.remove(0);
    drop(busy);
    // The scheduler makes each of the two wait for a few milliseconds at a time.
    let taken = point.disturbance;
    assert!(taken.generator_ns > 20_000_000, "{taken:?}");
    assert_eq!(taken.server_ns, Some(0));
    let due = point.due.unwrap();
    let sum = |counts: &[u64]| counts.iter().sum::<u64>();
    let late = point.operations[0].response.recorded().filter(|(ns, _)| *ns > 1_010_000);
    let over = sum(&due.beyond[0].over_per_interval);
    assert!(over >= 20 && late.map(|(_, n)| n).sum::<u64>() <= over, "{over}");
    assert_eq!(sum(&due.due_per_interval), 2_000);
}

#[test]
fn loads_with_different_numbers_draw_different_keys_at_different_times() {
    let asked = |number| {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let own = seen.clone();
        let server = Server::start(Arc::new(move |_, request: &str| {
            own.lock().unwrap().push(request.to_string());
            Some("+\n".into())
        }));
        let offer = Offer { number, ..offer(1, 1, Until::Requests(50)) };
        assert_eq!(run(&offer, &server.servers()).recorder.whole().answered(), 50);
        seen.lock().unwrap().clone()
    };
    let (first, again, other) = (asked(0), asked(0), asked(1));
    assert_eq!(first, again);
    assert_ne!(first, other);
}

#[test]
fn a_stall_across_the_end_of_the_warm_up_adds_no_requests_to_the_measurement() {
    // Requests due from the 100th to the 300th millisecond of the warm-up are answered after it.
    let server = Server::start(Arc::new(|n, _| {
        thread::sleep(Duration::from_millis(if n == 20 { 250 } else { 0 }));
        Some("+\n".into())
    }));
    let stage = Stage { rate_from_per_s: 200.0, rate_to_per_s: 200.0, length_ns: S * 7 / 10 };
    let pacing = Pacing::Open { arrivals: Arrivals::Constant, stages: vec![stage] };
    let offer = Offer { pacing, warmup_ns: S / 5, ..offer(1, 4, Until::AfterNs(S / 2)) };
    let outcome = run(&offer, &server.servers());
    assert_eq!((outcome.failure, outcome.unsent), (None, 0));
    assert_eq!(outcome.recorder.whole().answered(), 100);
}

#[test]
fn unsent_requests_are_reported() {
    // The server answers twenty requests per second, but two hundred are due.
    let server = Server::start(Arc::new(|_, _| {
        thread::sleep(Duration::from_millis(50));
        Some("+\n".into())
    }));
    let stage = Stage { rate_from_per_s: 200.0, rate_to_per_s: 200.0, length_ns: S };
    let pacing = Pacing::Open { arrivals: Arrivals::Constant, stages: vec![stage] };
    let offer = Offer { pacing, timeout_ns: S / 5, ..offer(1, 1, Until::AfterNs(S)) };
    let outcome = run(&offer, &server.servers());
    let sent = outcome.recorder.whole().counts().total();
    assert_eq!((outcome.failure, outcome.unsent + sent), (None, 200));
    assert!((5..=30).contains(&sent), "{sent}");
}

#[test]
fn clients_reconnect_and_requests_in_flight_count_as_failed() {
    let server = Server::start(Arc::new(|n, _| (n % 100 != 99).then(|| "+\n".into())));
    let outcome = run(&offer(3, 5, Until::Requests(2_000)), &server.servers());
    let counts = outcome.recorder.whole().counts().clone();
    assert_eq!((outcome.failure, counts.total()), (None, 2_000));
    assert!(outcome.recorder.reconnects >= 15, "{}", outcome.recorder.reconnects);
    assert_eq!(counts.errors_by_class.get(&ErrorClass::Closed), Some(&counts.error), "{counts:?}");
    assert!((20..=110).contains(&counts.error), "{counts:?}");
}

#[test]
fn every_kind_of_reply_is_counted() {
    let server = Server::start(Arc::new(|n, _| {
        Some(["+\n", "?\n", "!\n", "-NO not now\n", ">nowhere:1\n"][(n % 5) as usize].into())
    }));
    let outcome = run(&offer(1, 1, Until::Requests(500)), &server.servers());
    let row = outcome.recorder.whole();
    let counts = row.counts();
    let kinds = (counts.ok, counts.miss, counts.wrong, counts.error);
    assert_eq!((outcome.failure, kinds), (None, (100, 100, 100, 200)));
    assert_eq!(row.answered(), 300);
    let offer = Offer { stop_on_error_reply: true, ..offer(1, 1, Until::Requests(500)) };
    let failure = run(&offer, &server.servers()).failure.unwrap();
    assert_eq!(failure.message, "the server answered `NO not now`");
}

#[test]
fn an_unreachable_server_ends_the_load_immediately() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let servers = Servers { nodes: vec![Address::Tcp(free)], ..Server::good().servers() };
    let begun = Instant::now();
    let failure = run(&offer(2, 1, Until::Requests(10)), &servers).failure.unwrap();
    assert_eq!(failure.class, ErrorClass::Refused);
    assert!(failure.message.starts_with(&format!("cannot connect to {free}: ")), "{failure}");
    assert!(begun.elapsed() < Duration::from_secs(2));
    let missing = Address::Unix("/nonexistent/socket".into());
    let servers = Servers { nodes: vec![missing], ..servers };
    let failure = run(&offer(1, 1, Until::Requests(10)), &servers).failure.unwrap();
    assert_eq!(failure.class, ErrorClass::Refused);
}

#[test]
fn requests_to_a_hanging_server_time_out() {
    let server = Server::start(Arc::new(|n, _| {
        if n >= 50 {
            thread::sleep(Duration::from_secs(60));
        }
        Some("+\n".into())
    }));
    let offer = Offer { timeout_ns: 300_000_000, ..offer(2, 1, Until::AfterNs(S)) };
    let outcome = run(&offer, &server.servers());
    let counts = outcome.recorder.whole().counts().clone();
    assert_eq!(counts.ok, 50);
    let timeouts = counts.errors_by_class.get(&ErrorClass::Timeout).copied().unwrap_or(0);
    // Two clients time out every 300 ms and reconnect until the end of the second.
    assert!((4..=10).contains(&timeouts), "{counts:?}");
}

#[test]
fn an_invalid_reply_ends_the_connection() {
    let server = Server::start(Arc::new(|n, _| {
        Some(if n == 20 { "nonsense\n" } else { "+\n" }.to_string())
    }));
    let outcome = run(&offer(1, 1, Until::Requests(100)), &server.servers());
    let counts = outcome.recorder.whole().counts().clone();
    assert_eq!((counts.ok, counts.error), (99, 1));
    assert_eq!(counts.errors_by_class.get(&ErrorClass::Protocol), Some(&1));
    let offer = Offer { reconnects: false, ..offer(1, 1, Until::Requests(100)) };
    let again = Server::start(Arc::new(|_, _| Some("nonsense\n".into())));
    let failure = run(&offer, &again.servers()).failure.unwrap();
    assert_eq!(failure.class, ErrorClass::Protocol);
    // An endless line is not a valid reply either.
    let endless = Server::start(Arc::new(|_, _| Some("+".repeat(1 << 20))));
    let failure = run(&offer, &endless.servers()).failure.unwrap();
    assert!(failure.message.ends_with("sent an endless reply"), "{failure}");
}

/// Even keys are on one server, odd ones on the other; the first server refers some to the second.
#[derive(Clone, Debug)]
struct TwoServers {
    moved: Arc<Mutex<Vec<String>>>,
}

impl Route for TwoServers {
    fn node(&self, name: &[u8]) -> usize {
        let name = String::from_utf8_lossy(name).into_owned();
        let odd = name.ends_with(['1', '3', '5', '7', '9']);
        usize::from(odd || self.moved.lock().unwrap().contains(&name))
    }

    fn moved(&mut self, name: &[u8], address: &str, _: bool) -> Option<usize> {
        self.moved.lock().unwrap().push(String::from_utf8_lossy(name).into_owned());
        (address == "second").then_some(1)
    }

    fn asking(&self) -> &'static [u8] {
        b"asking\n"
    }

    fn fresh(&self) -> Box<dyn Route> {
        Box::new(self.clone())
    }
}

#[test]
fn keys_go_to_their_server_and_follow_a_referral() {
    let first = Server::start(Arc::new(|_, key: &str| {
        Some(if key.ends_with('4') { ">second\n" } else { "+\n" }.to_string())
    }));
    let second = Server::good();
    let moved = Arc::new(Mutex::new(Vec::new()));
    let servers = Servers {
        nodes: vec![first.address.clone(), second.address.clone()],
        route: Box::new(TwoServers { moved: moved.clone() }),
        ..first.servers()
    };
    let outcome = run(&offer(2, 4, Until::Requests(4_000)), &servers);
    assert_eq!((outcome.failure, outcome.recorder.whole().counts().ok), (None, 4_000));
    let referred = outcome.recorder.redirects;
    assert!(referred > 50 && moved.lock().unwrap().len() as u64 == referred, "{referred}");
    let (a, b) = (first.served.load(Ordering::SeqCst), second.served.load(Ordering::SeqCst));
    assert_eq!(a + b, 4_000 + referred);
    assert!(b > 2_000, "{a} {b}");
}
