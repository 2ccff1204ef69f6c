//! The null server with real clients and raw sockets.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "test helpers panic and print like tests"
)]

#[path = "common/sockets.rs"]
mod sockets;

use cachedyno_rig::reference::{Listen, NullServer, NullSettings, ServedCounts};
use cachedyno_rig::{SearchPath, cpu};
use sockets::{TIMEOUT, ask, connect, expect};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

fn start(settings: &NullSettings) -> (NullServer, SocketAddr) {
    let server = NullServer::start(settings).unwrap();
    let Listen::Tcp(address) = *server.address() else { panic!("{server:?}") };
    (server, address)
}

/// Runs a client program of Redis; prints that the test is skipped and returns `None` if it is not
/// installed.
fn client(program: &str, at: SocketAddr, arguments: &[&str]) -> Option<Output> {
    let Some(path) = SearchPath::of_process().find(&[program]) else {
        println!("skipped: {program} is not installed");
        return None;
    };
    let port = at.port().to_string();
    let output = Command::new(path).args(["-h", "127.0.0.1", "-p", &port]).args(arguments).output();
    Some(output.unwrap())
}

#[test]
fn redis_benchmark_runs_all_its_tests() {
    let (server, at) = start(&NullSettings { value_bytes: 3, ..NullSettings::default() });
    let tests = "ping,set,get,incr,lpush,rpush,lpop,rpop,sadd,hset,spop,zadd,zpopmin,lrange,mset";
    for pipeline in ["1", "16"] {
        let arguments = ["--csv", "-n", "2000", "-P", pipeline, "-t", tests];
        let Some(output) = client("redis-benchmark", at, &arguments) else { return };
        let text = String::from_utf8(output.stdout).unwrap();
        let names: Vec<&str> = text.lines().skip(1).filter_map(|l| l.split('"').nth(1)).collect();
        assert!(output.status.success() && output.stderr.is_empty(), "{text}");
        // PING has two tests, and LRANGE five: one fills the list and four read it.
        assert_eq!(names.len(), 20, "{names:?}");
        assert!(names.iter().any(|name| name.starts_with("MSET")), "{names:?}");
    }
    let ServedCounts { connections, requests } = server.served();
    assert!(requests >= 2 * 20 * 2000, "{requests} requests");
    assert!(connections >= 2 * 20 * 50, "{connections} connections");
}

#[test]
fn redis_cli_understands_the_replies() {
    let (_server, at) = start(&NullSettings { value_bytes: 4, ..NullSettings::default() });
    for (arguments, expected) in [
        (&["PING"][..], "PONG\n"),
        (&["GET", "k"], "xxxx\n"),
        (&["-3", "GET", "k"], "xxxx\n"),
        (&["HGETALL", "k"], "f\nxxxx\n"),
        (&["-3", "HGETALL", "k"], "f xxxx\n"),
        (&["-a", "secret", "--no-auth-warning", "INCR", "k"], "1\n"),
        (&["-n", "2", "CONFIG", "GET", "appendonly"], "appendonly\nno\n"),
        (&["--raw", "EVAL", "return 1", "0"], "1\n"),
    ] {
        let Some(output) = client("redis-cli", at, arguments) else { return };
        assert_eq!(String::from_utf8(output.stdout).unwrap(), expected, "{arguments:?}");
        assert!(output.status.success() && output.stderr.is_empty(), "{arguments:?}");
    }
}

#[test]
fn the_memcached_text_protocol_works_on_the_same_port() {
    let settings = NullSettings { value_bytes: 5, threads: 2, ..NullSettings::default() };
    let (server, at) = start(&settings);
    let (mut text, mut resp) = (connect(at), connect(at));
    ask(&mut text, b"set a 0 0 2\r\nhi\r\n", b"STORED\r\n");
    ask(&mut resp, b"PING\r\n", b"+PONG\r\n");
    ask(&mut text, b"get a\r\n", b"VALUE a 0 5\r\nxxxxx\r\nEND\r\n");
    ask(&mut resp, b"*2\r\n$3\r\nGET\r\n$1\r\na\r\n", b"$5\r\nxxxxx\r\n");
    ask(&mut text, b"mg a v\r\nmn\r\n", b"VA 5\r\nxxxxx\r\nMN\r\n");
    text.write_all(b"quit\r\n").unwrap();
    assert_eq!(text.read(&mut [0]).unwrap(), 0, "quit ends the connection");
    assert_eq!(server.served(), ServedCounts { connections: 2, requests: 7 });
}

#[test]
fn split_and_pipelined_requests_are_answered_in_order() {
    let (server, at) = start(&NullSettings { value_bytes: 1, ..NullSettings::default() });
    let mut stream = connect(at);
    let echo = |n: usize| format!("*2\r\n$4\r\nECHO\r\n$6\r\n{n:06}\r\n").into_bytes();
    for byte in echo(0) {
        stream.write_all(&[byte]).unwrap();
    }
    expect(&mut stream, b"$6\r\n000000\r\n");
    let many: Vec<u8> = (0..100_000).flat_map(echo).collect();
    let answers: Vec<u8> =
        (0..100_000).flat_map(|n| format!("$6\r\n{n:06}\r\n").into_bytes()).collect();
    let mut writer = stream.try_clone().unwrap();
    let written = std::thread::spawn(move || writer.write_all(&many).unwrap());
    expect(&mut stream, &answers);
    written.join().unwrap();
    assert_eq!(server.served().requests, 100_001);
}

/// A client that requests far more than the socket buffers hold before it reads any reply.
fn reads_late(mut stream: impl Read + Write, requests: usize, value_bytes: usize) {
    let get = b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n";
    stream.write_all(&get.repeat(requests)).unwrap();
    std::thread::sleep(Duration::from_millis(50));
    let mut answer = format!("${value_bytes}\r\n").into_bytes();
    answer.resize(answer.len() + value_bytes, b'x');
    answer.extend_from_slice(b"\r\n");
    for _ in 0..requests {
        expect(&mut stream, &answer);
    }
    ask(&mut stream, b"PING\r\n", b"+PONG\r\n");
}

#[test]
fn a_slow_reader_gets_all_replies_and_delays_no_other_client() {
    let value_bytes = 100_000;
    let settings = NullSettings { value_bytes, ..NullSettings::default() };
    let (server, at) = start(&settings);
    let mut other = connect(at);
    let late = connect(at);
    let reader = std::thread::spawn(move || reads_late(late, 300, value_bytes));
    for _ in 0..100 {
        ask(&mut other, b"PING\r\n", b"+PONG\r\n");
    }
    reader.join().unwrap();
    drop(server);

    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("null.sock");
    let (listen, value_bytes) = (Listen::Unix(path.clone()), 100_000);
    let settings = NullSettings { listen, value_bytes, ..NullSettings::default() };
    let server = NullServer::start(&settings).unwrap();
    let stream = UnixStream::connect(&path).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    reads_late(stream, 300, value_bytes);
    assert_eq!(server.served(), ServedCounts { connections: 1, requests: 301 });
    drop(server);
    assert!(!path.exists());
}

#[test]
fn all_threads_share_the_remembered_values() {
    let settings = NullSettings { remember: 1000, threads: 3, ..NullSettings::default() };
    let (_server, at) = start(&settings);
    let mut streams: Vec<TcpStream> = (0..6).map(|_| connect(at)).collect();
    for n in 0..1000 {
        let set = format!("*3\r\n$3\r\nSET\r\n$4\r\nk{n:03}\r\n$9\r\nvalue{n:04}\r\n");
        ask(&mut streams[n % 6], set.as_bytes(), b"+OK\r\n");
    }
    for n in 0..1000 {
        let get = format!("*2\r\n$3\r\nGET\r\n$4\r\nk{n:03}\r\n");
        let answer = format!("$9\r\nvalue{n:04}\r\n");
        ask(&mut streams[(n + 1) % 6], get.as_bytes(), answer.as_bytes());
    }
    // The first request determines the protocol of a connection.
    ask(&mut streams[0], b"get k001\r\n", b"$9\r\nvalue0001\r\n");
    let mut text = connect(at);
    ask(&mut text, b"get k007 none\r\n", b"VALUE k007 0 9\r\nvalue0007\r\nEND\r\n");
}

#[test]
fn a_value_larger_than_one_read_is_stored_completely() {
    let (server, at) = start(&NullSettings { remember: 2, ..NullSettings::default() });
    let mut stream = connect(at);
    let value: Vec<u8> = (0..8 << 20).map(|n: u32| (n % 251) as u8).collect();
    let head = format!("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n${}\r\n", value.len());
    let set = [head.as_bytes(), &value, b"\r\n"].concat();
    ask(&mut stream, &set, b"+OK\r\n");
    let answer = [format!("${}\r\n", value.len()).as_bytes(), &value, b"\r\n"].concat();
    ask(&mut stream, b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n", &answer);
    assert_eq!(server.served().requests, 2);
}

#[test]
fn closing_either_side_is_detected_by_the_other() {
    let (server, at) = start(&NullSettings::default());
    // Requests sent before the shutdown are still answered.
    let mut half = connect(at);
    half.write_all(b"PING\r\nPING\r\n").unwrap();
    half.shutdown(std::net::Shutdown::Write).unwrap();
    let mut text = String::new();
    half.read_to_string(&mut text).unwrap();
    assert_eq!(text, "+PONG\r\n+PONG\r\n");
    let mut wrong = connect(at);
    wrong.write_all(b"*1\r\n:1\r\n").unwrap();
    text.clear();
    wrong.read_to_string(&mut text).unwrap();
    assert_eq!(text, "-ERR Protocol error: expected '$'\r\n");
    let mut open = connect(at);
    ask(&mut open, b"PING\r\n", b"+PONG\r\n");
    let started = Instant::now();
    drop(server);
    assert!(started.elapsed() < TIMEOUT, "stopping took {:?}", started.elapsed());
    assert_eq!(open.read(&mut [0]).unwrap(), 0);
    assert_eq!(TcpStream::connect(at).unwrap_err().kind(), ErrorKind::ConnectionRefused);
}

#[test]
fn invalid_settings_are_rejected() {
    let default = NullSettings::default;
    let assert_rejected = |settings: NullSettings, words: &str| {
        let error = NullServer::start(&settings).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    };
    assert_rejected(
        NullSettings { threads: 0, ..default() },
        "setting `threads` of null-server is 0 (expected 1 to 1024)",
    );
    assert_rejected(NullSettings { threads: 1025, ..default() }, "too large (expected 1 to 1024)");
    assert_rejected(NullSettings { value_bytes: (64 << 20) + 1, ..default() }, "0 B to 64 MiB");
    assert_rejected(
        NullSettings { miss: true, remember: 1, ..default() },
        "contradicts `remember`",
    );
    assert_rejected(NullSettings { cpus: vec![9999], ..default() }, "CPU `9999` cannot be used");
    let (_server, at) = start(&default());
    assert_rejected(
        NullSettings { listen: Listen::Tcp(at), ..default() },
        "cannot listen on `127.0.0.1:",
    );
    // Pinned threads.
    let cpus = cpu::allowed_cpus();
    let (_pinned, at) = start(&NullSettings { threads: 3, cpus, ..default() });
    ask(&mut connect(at), b"PING\r\n", b"+PONG\r\n");
}
