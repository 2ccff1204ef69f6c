//! The scripted server over raw sockets: its log, and each fault once.
//!
//! Times are checked against the server's computed schedule. Real times are checked only against
//! bounds that a wrong queue would exceed, but not a busy machine.

#![expect(clippy::unwrap_used, reason = "test helpers panic like tests")]

#[path = "common/sockets.rs"]
mod sockets;

use cachedyno_rig::reference::{Listen, ScriptedServer, ScriptedSettings, Stamp};
use nix::time::{ClockId, clock_gettime};
use sockets::{TIMEOUT, ask, connect, expect};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

const MS: u64 = 1_000_000;
const PING: &[u8] = b"PING\r\n";
const PONG: &[u8] = b"+PONG\r\n";

fn start(script: &str) -> (ScriptedServer, SocketAddr) {
    let settings =
        ScriptedSettings { script: script.parse().unwrap(), ..ScriptedSettings::default() };
    let server = ScriptedServer::start(&settings).unwrap();
    let Listen::Tcp(address) = *server.address() else { panic!("{server:?}") };
    (server, address)
}

/// `CLOCK_MONOTONIC` in nanoseconds, the clock of the stamps.
fn now_ns() -> u64 {
    let time = clock_gettime(ClockId::CLOCK_MONOTONIC).unwrap();
    time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64
}

/// Waits until `done` returns true.
#[track_caller]
fn eventually(what: &str, mut done: impl FnMut() -> bool) {
    let since = Instant::now();
    while !done() {
        assert!(since.elapsed() < TIMEOUT, "still waiting: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Waits until every request has its reply, checks the log's invariants and returns it.
#[track_caller]
fn complete_log(server: &ScriptedServer) -> Vec<Stamp> {
    eventually("all replies are sent", || server.log().iter().all(|s| s.sent_ns.is_some()));
    let log = server.log();
    for stamp in &log {
        assert!(stamp.due_ns >= stamp.received_ns, "{stamp:?}");
        assert!(stamp.sent_ns.unwrap() >= stamp.due_ns, "too early: {stamp:?}");
    }
    let order = log.windows(2).all(|two| two[0].received_ns <= two[1].received_ns);
    assert!(order, "requests are not logged in the order of reading");
    log
}

#[test]
fn values_are_remembered_in_both_protocols() {
    let (server, at) = start("");
    let (mut resp, mut text) = (connect(at), connect(at));
    ask(&mut resp, b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$2\r\nhi\r\n", b"+OK\r\n");
    ask(&mut text, b"get a\r\n", b"VALUE a 0 2\r\nhi\r\nEND\r\n");
    ask(&mut text, b"set a 0 0 3 noreply\r\nyes\r\nget a\r\n", b"VALUE a 0 3\r\nyes\r\nEND\r\n");
    for byte in b"GET a\r\n" {
        resp.write_all(&[*byte]).unwrap();
    }
    expect(&mut resp, b"$3\r\nyes\r\n");
    ask(&mut resp, b"*1\r\n:1\r\n", b"-ERR Protocol error: expected '$'\r\n");
    assert_eq!(resp.read(&mut [0]).unwrap(), 0);
    ask(&mut text, b"mn\r\nquit\r\n", b"MN\r\n");
    assert_eq!(text.read(&mut [0]).unwrap(), 0);
    let tally = server.tally();
    assert_eq!((tally.connections, tally.requests), (2, 7));
}

#[test]
fn the_log_has_constant_service_times() {
    let (server, at) = start("service=constant:1ms");
    let mut stream = connect(at);
    let since = Instant::now();
    for _ in 0..100 {
        ask(&mut stream, PING, PONG);
    }
    assert!(since.elapsed() >= Duration::from_millis(100));
    let log = complete_log(&server);
    assert!(log.iter().all(|stamp| stamp.due_ns - stamp.received_ns == MS), "{log:?}");
    let numbers: Vec<u64> = log.iter().map(|stamp| stamp.request).collect();
    assert_eq!(numbers, (1..=100).collect::<Vec<u64>>());
    let late = server.lateness();
    assert_eq!(late.count(), 100);
    assert!(late.quantile_ns(0.5) < 2 * MS, "{} ns late", late.quantile_ns(0.5));
}

#[test]
fn due_times_can_start_at_the_arrival_of_a_request() {
    let settings = ScriptedSettings {
        script: "service=constant:1ms".parse().unwrap(),
        from_arrival: true,
        ..ScriptedSettings::default()
    };
    let server = ScriptedServer::start(&settings).unwrap();
    let Listen::Tcp(address) = *server.address() else { panic!("{server:?}") };
    let mut stream = connect(address);
    // The kernel enables timestamps with a short delay.
    ask(&mut stream, PING, PONG);
    std::thread::sleep(Duration::from_millis(50));
    let mut sent = Vec::new();
    for _ in 0..20 {
        let before_ns = now_ns();
        stream.write_all(PING).unwrap();
        sent.push((before_ns, now_ns()));
        expect(&mut stream, PONG);
    }
    // On loopback, delivery happens during the send. The two clocks are read one after the other,
    // and a pause in between makes a request look older than it is, so not all must match.
    let log = complete_log(&server);
    let arrivals = log[1..].iter().map(|stamp| stamp.due_ns - MS);
    let within = arrivals.zip(&sent).filter(|(at, (from, to))| (from..=to).contains(&at)).count();
    assert!(within >= 15, "{within} of 20: {sent:?} {log:?}");
}

#[test]
fn requests_of_all_connections_wait_in_one_queue() {
    let (server, at) = start("service=constant:5ms");
    let mut streams: Vec<TcpStream> = (0..4).map(|_| connect(at)).collect();
    for stream in &mut streams {
        stream.write_all(&PING.repeat(3)).unwrap();
    }
    for stream in &mut streams {
        expect(stream, &PONG.repeat(3));
    }
    let log = complete_log(&server);
    let mut free_ns = 0;
    for stamp in &log {
        free_ns = stamp.received_ns.max(free_ns) + 5 * MS;
        assert_eq!(stamp.due_ns, free_ns, "{stamp:?}");
    }
    let first = log.iter().filter(|stamp| stamp.connection == 1).count();
    assert_eq!((log.len(), first), (12, 3));
}

#[test]
fn parallel_servers_keep_the_order_of_each_connection() {
    let (server, at) = start("service=bimodal:1us:20ms:0.3,servers=4,seed=3");
    let mut stream = connect(at);
    let echo = |n: usize| format!("*2\r\n$4\r\nECHO\r\n$3\r\n{n:03}\r\n").into_bytes();
    let requests: Vec<u8> = (0..60).flat_map(echo).collect();
    let replies: Vec<u8> = (0..60).flat_map(|n| format!("$3\r\n{n:03}\r\n").into_bytes()).collect();
    ask(&mut stream, &requests, &replies);
    let log = complete_log(&server);
    assert!(log.windows(2).all(|two| two[0].due_ns <= two[1].due_ns));
    // About 18 slow requests of 20 ms: 360 ms one after another, 90 ms on four servers.
    let took_ns = log[59].due_ns - log[0].received_ns;
    assert!((60 * MS..240 * MS).contains(&took_ns), "{took_ns}");
}

/// Sends requests at random times of a Poisson process on several connections, and reads all
/// replies.
fn poisson_client(at: SocketAddr, count: usize, mean_us: f64) {
    let mut streams: Vec<TcpStream> = (0..8).map(|_| connect(at)).collect();
    let (mut state, begin, mut due) = (88_172_645_463_325_252_u64, Instant::now(), 0.0);
    for n in 0..count {
        // Marsaglia's xorshift64, "Xorshift RNGs" (2003).
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let unit = ((state >> 12) as f64 + 0.5) / (1u64 << 52) as f64;
        due -= unit.ln() * mean_us;
        let due = Duration::from_nanos((due * 1e3) as u64);
        std::thread::sleep(due.saturating_sub(begin.elapsed()));
        streams[n % 8].write_all(PING).unwrap();
    }
    for (number, stream) in streams.iter_mut().enumerate() {
        expect(stream, &PONG.repeat((count + 7 - number) / 8));
    }
}

#[test]
fn an_exponential_service_queues_as_m_m_1() {
    let (server, at) = start("service=exponential:600us");
    poisson_client(at, 2000, 1000.0);
    let log = complete_log(&server);
    assert_eq!(log.len(), 2000);
    // Service times, assuming a single queue: they must match the script.
    let (mut free_ns, mut served_ns, mut waited) = (0, Vec::new(), 0);
    for stamp in &log {
        let service_start_ns = stamp.received_ns.max(free_ns);
        assert!(stamp.due_ns >= service_start_ns, "served out of order: {stamp:?}");
        waited += usize::from(service_start_ns > stamp.received_ns);
        served_ns.push(stamp.due_ns - service_start_ns);
        free_ns = stamp.due_ns;
    }
    let mean_ns = served_ns.iter().sum::<u64>() as f64 / 2000.0;
    assert!((mean_ns / 600e3 - 1.0).abs() < 0.1, "{mean_ns}");
    let twice = served_ns.iter().filter(|ns| **ns > 1_200_000).count();
    assert!(twice.abs_diff(271) < 60, "{twice} of exp(-2) of 2000 are twice the mean");
    // At a utilisation of 0.6 this share has to wait: 1200. A late client sends in bursts, which
    // can only increase it.
    assert!(waited > 1000, "{waited}");
}

#[test]
fn a_stall_delays_reads_and_then_everything_is_served() {
    let (server, at) = start("stall-once=400ms@100ms");
    let mut stream = connect(at);
    ask(&mut stream, PING, PONG);
    let first_ns = server.log()[0].received_ns;
    let since = Instant::now();
    while since.elapsed() < Duration::from_millis(150) {
        ask(&mut stream, PING, PONG);
        std::thread::sleep(Duration::from_millis(1));
    }
    // A connection attempt during the stall is accepted after it.
    let mut second = connect(at);
    ask(&mut second, PING, PONG);
    let (begin_ns, end_ns) = (first_ns + 100 * MS, first_ns + 500 * MS);
    let log = complete_log(&server);
    for stamp in &log {
        assert!(!(begin_ns..end_ns).contains(&stamp.due_ns), "{stamp:?}");
        // If the server read the clock just before the stall and then waited for a CPU, it can read
        // a request during the stall.
        assert!(!(begin_ns + 200 * MS..end_ns).contains(&stamp.received_ns), "{stamp:?}");
    }
    assert!(log.iter().any(|stamp| stamp.received_ns >= end_ns));
}

#[test]
fn stalls_repeat() {
    let (server, at) = start("service=constant:1ms,stall=30ms/100ms");
    let mut stream = connect(at);
    stream.write_all(&PING.repeat(300)).unwrap();
    expect(&mut stream, &PONG.repeat(300));
    let log = complete_log(&server);
    let first_ns = log[0].received_ns;
    for stamp in &log {
        let into_ns = (stamp.due_ns - first_ns) % (100 * MS);
        assert!(stamp.due_ns - first_ns < 100 * MS || into_ns >= 30 * MS, "{stamp:?}");
    }
    // 300 ms of work in four periods: the first 100 ms, then 70 ms of each 100 ms.
    assert_eq!(log[299].due_ns - first_ns, 390 * MS);
}

#[test]
fn a_stalled_connection_does_not_delay_others() {
    let (server, at) = start("stall-connection=300ms@2");
    let (mut first, mut second) = (connect(at), connect(at));
    ask(&mut first, PING, PONG);
    let since = Instant::now();
    second.write_all(PING).unwrap();
    eventually("the second connection stalls", || server.tally().stalled == 1);
    ask(&mut first, PING, PONG);
    let other = since.elapsed();
    expect(&mut second, PONG);
    assert!(since.elapsed() >= Duration::from_millis(300));
    assert!(other < since.elapsed(), "{other:?}");
    ask(&mut second, PING, PONG);
    let log = complete_log(&server);
    let order: Vec<u64> = log.iter().map(|stamp| stamp.connection).collect();
    assert_eq!(order, [1, 1, 2, 2]);
}

#[test]
fn the_rate_is_capped() {
    let (server, at) = start("rate=1000");
    let mut stream = connect(at);
    ask(&mut stream, &PING.repeat(200), &PONG.repeat(200));
    let log = complete_log(&server);
    assert!(log.windows(2).all(|two| two[1].due_ns - two[0].due_ns >= MS), "{log:?}");
    assert_eq!(log[199].due_ns - log[0].due_ns, 199 * MS);
}

#[test]
fn a_drip_sends_replies_in_pieces() {
    let (server, at) = start("drip=2B/10ms");
    let mut stream = connect(at);
    let since = Instant::now();
    stream.write_all(b"PING\r\nPING\r\n").unwrap();
    let mut reads = Vec::new();
    let mut got = Vec::new();
    while got.len() < 14 {
        let mut piece = [0; 14];
        let count = stream.read(&mut piece).unwrap();
        reads.push(count);
        got.extend_from_slice(&piece[..count]);
    }
    assert_eq!(got, PONG.repeat(2));
    // Seven pieces; a delayed reader receives several at once.
    assert!(since.elapsed() >= Duration::from_millis(59), "{:?}", since.elapsed());
    assert!(reads.iter().all(|count| count % 2 == 0), "{reads:?}");
    let log = complete_log(&server);
    // The first reply ends in the fourth piece (bytes 7 and 8).
    assert!(log[0].sent_ns.unwrap() - log[0].due_ns >= 30 * MS);
    assert!(log[1].sent_ns.unwrap() - log[1].due_ns >= 60 * MS);
}

#[test]
fn the_requested_share_of_requests_fails_without_being_executed() {
    let (server, at) = start("error=0.2:LOADING it is");
    let mut stream = connect(at);
    let mut errors = 0;
    for _ in 0..500 {
        stream.write_all(b"INCR n\r\n").unwrap();
        let mut line = Vec::new();
        while !line.ends_with(b"\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            line.push(byte[0]);
        }
        errors += u64::from(line == b"-LOADING it is\r\n");
    }
    assert_eq!(server.tally().errors, errors);
    assert!(errors.abs_diff(100) < 40, "{errors}");
    let (server, at) = start("error=1:busy");
    ask(&mut connect(at), b"get a\r\n", b"SERVER_ERROR busy\r\n");
    assert_eq!(server.tally().errors, 1);
}

#[test]
fn wrong_and_short_values_are_counted_only_for_hits() {
    let set = b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$4\r\ngood\r\n";
    let (server, at) = start("wrong=1");
    let mut stream = connect(at);
    ask(&mut stream, set, b"+OK\r\n");
    ask(&mut stream, b"GET a\r\nGET b\r\n", b"$4\r\ngnod\r\n$-1\r\n");
    assert_eq!((server.tally().wrong, server.tally().short), (1, 0));
    let (server, at) = start("short=1");
    let mut stream = connect(at);
    ask(&mut stream, set, b"+OK\r\n");
    ask(&mut stream, b"GET a\r\n", b"$3\r\ngoo\r\n");
    assert_eq!((server.tally().wrong, server.tally().short), (0, 1));
}

#[test]
fn faults_can_be_limited_to_a_command_and_to_later_requests() {
    let (server, at) = start("error=1:no,faults-on=GET,faults-after=3");
    let mut stream = connect(at);
    ask(&mut stream, b"GET a\r\nPING\r\nget a\r\n", b"$-1\r\n+PONG\r\n$-1\r\n");
    // Faults start here, but not for this command.
    ask(&mut stream, b"PING\r\nget a\r\nGET a\r\n", b"+PONG\r\n-no\r\n-no\r\n");
    assert_eq!(server.tally().errors, 2);
}

#[test]
fn invalid_replies_are_sent() {
    let (server, at) = start("malformed=1");
    ask(&mut connect(at), PING, b"?malformed\r\n");
    assert_eq!(server.tally().malformed, 1);

    let (server, at) = start("gigantic=1");
    let (mut resp, mut text) = (connect(at), connect(at));
    ask(&mut resp, b"GET a\r\n", b"$536870912\r\nxxxxxxxxxxxxxxxx");
    ask(&mut text, b"get a\r\n", b"VALUE a 0 536870912\r\nxxxxxxxxxxxxxxxx");
    resp.write_all(PING).unwrap();
    eventually("the next request hangs", || server.tally().hung == 1);
    assert_eq!(server.tally().gigantic, 2);

    let (server, at) = start("endless=1");
    let mut stream = connect(at);
    stream.write_all(PING).unwrap();
    let mut got = vec![0; 200_000];
    stream.read_exact(&mut got).unwrap();
    assert!(got.starts_with(b"+x") && got[1..].iter().all(|b| *b == b'x'));
    assert_eq!((server.tally().endless, server.tally().replies), (1, 0));
}

#[test]
fn a_hanging_connection_is_read_but_never_answered() {
    let (server, at) = start("hang=1");
    let mut stream = connect(at);
    stream.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    stream.write_all(b"SET a 1\r\nPING\r\n").unwrap();
    eventually("both are read", || server.tally().requests == 2);
    let error = stream.read(&mut [0]).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut), "{error}");
    let tally = server.tally();
    assert_eq!((tally.requests, tally.hung, tally.replies), (2, 2, 0));
    assert!(server.log().iter().all(|stamp| stamp.sent_ns.is_none()));
}

#[test]
fn connections_are_reset() {
    let (server, at) = start("reset=1");
    let mut stream = connect(at);
    stream.write_all(PING).unwrap();
    assert_eq!(stream.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
    assert_eq!(server.tally().resets, 1);

    let (server, at) = start("reset-after=3");
    for _ in 0..2 {
        let mut stream = connect(at);
        for _ in 0..3 {
            ask(&mut stream, PING, PONG);
        }
        stream.write_all(PING).unwrap();
        assert_eq!(stream.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
    }
    let tally = server.tally();
    assert_eq!((tally.resets, tally.replies, tally.requests), (2, 6, 8));
}

#[test]
fn connections_are_refused_and_closed() {
    let (server, at) = start("max-connections=2");
    let (mut first, mut second) = (connect(at), connect(at));
    ask(&mut first, PING, PONG);
    ask(&mut second, PING, PONG);
    let mut third = connect(at);
    let mut text = String::new();
    third.read_to_string(&mut text).unwrap();
    assert_eq!(text, "-ERR max number of clients reached\r\n");
    drop(first);
    // The server must have noticed the closed connection first.
    eventually("a new connection is accepted", || {
        let mut fourth = connect(at);
        fourth.write_all(PING).unwrap();
        let mut reply = [0; 7];
        fourth.read_exact(&mut reply).is_ok() && reply == PONG
    });
    assert!(server.tally().refused >= 1);

    let (server, at) = start("close-on-accept");
    let ended = connect(at).read(&mut [0]);
    assert!(matches!(ended, Ok(0)), "{ended:?}");
    assert_eq!((server.tally().closed, server.tally().connections), (1, 1));
}

#[test]
fn a_spinning_server_works_on_a_unix_socket() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("scripted.sock");
    let settings = ScriptedSettings {
        listen: Listen::Unix(path.clone()),
        script: "service=constant:2ms,reset-after=1".parse().unwrap(),
        log: false,
        spin: true,
        from_arrival: true,
        cpus: cachedyno_rig::cpu::allowed_cpus(),
    };
    let server = ScriptedServer::start(&settings).unwrap();
    let mut stream = UnixStream::connect(&path).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    ask(&mut stream, PING, PONG);
    stream.write_all(PING).unwrap();
    assert_eq!(stream.read(&mut [0]).unwrap(), 0, "closed, because Unix sockets cannot be reset");
    assert_eq!((server.log(), server.tally().resets), (Vec::new(), 1));
    drop(server);
    assert!(!path.exists());
}

#[test]
fn the_server_stops_immediately_even_in_a_stall_or_under_load() {
    let (server, at) = start("stall-once=300s@0s");
    connect(at).write_all(PING).unwrap();
    std::thread::sleep(Duration::from_millis(20));
    let since = Instant::now();
    drop(server);
    assert!(since.elapsed() < Duration::from_secs(10), "{:?}", since.elapsed());
    let (server, at) = start("service=constant:100s");
    let mut stream = connect(at);
    stream.write_all(&PING.repeat(1000)).unwrap();
    eventually("all are read", || server.tally().requests == 1000);
    drop(server);
    let ended = stream.read(&mut [0]);
    assert!(matches!(ended, Ok(0)) || ended.is_err(), "{ended:?}");
}

#[test]
fn pipelined_requests_are_answered_after_a_half_close() {
    let (server, at) = start("service=constant:10us");
    let mut stream = connect(at);
    stream.write_all(&PING.repeat(5000)).unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let mut replies = Vec::new();
    stream.read_to_end(&mut replies).unwrap();
    assert_eq!(replies, PONG.repeat(5000));
    assert_eq!(complete_log(&server).len(), 5000);
}
