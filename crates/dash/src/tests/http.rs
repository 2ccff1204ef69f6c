use super::*;
use crate::fixture;
use crate::server::HEADERS_WITHIN;
use model::Event;
use std::fs;

#[test]
fn pages_and_metrics_are_served_in_the_requested_format() {
    let (_dash, address) = mid_trial();
    let (status, head, body) = page(address, "/", "text/html");
    assert_eq!(status, 200);
    assert!(head.contains("content-type: text/html") && head.contains("cache-control: no-store"));
    assert!(String::from_utf8(body).unwrap().starts_with("<!doctype html>"));
    for (accept, kind) in [
        ("*/*", "text/plain; version=0.0.4"),
        ("application/openmetrics-text", "application/openmetrics-text; version=1.0.0"),
        (
            "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;\
             encoding=delimited",
            "application/vnd.google.protobuf; proto=io.prometheus.client.metricfamily",
        ),
    ] {
        let (status, head, body) = page(address, "/metrics", accept);
        assert_eq!(status, 200);
        assert!(head.contains(&format!("content-type: {kind}")), "{head}");
        assert!(body.len() > 1_000);
    }
    let (status, head, body) = page(address, "/nothing", "*/*");
    assert_eq!(status, 404);
    assert!(head.contains("x-content-type-options: nosniff"), "{head}");
    assert!(String::from_utf8(body).unwrap().contains("/metrics, /events"));
}

#[test]
fn event_streams_start_with_a_snapshot_and_continue_with_updates() {
    let (mut dash, address) = mid_trial();
    let mut reader = EventReader::new(address);
    let (name, snapshot) = reader.next().unwrap();
    assert_eq!((&*name, &snapshot["state"]["now"]["phase"]), ("snapshot", &"mixed".into()));
    assert_eq!(snapshot["points"].as_array().unwrap().len(), 1);
    dash.event(&fixture::recorded(1_200)).unwrap();
    let (name, point) = reader.next().unwrap();
    assert_eq!(name, "point");
    // A thousand requests in 600 ms.
    let rate = point["rate_per_s"].as_f64().unwrap();
    assert!((rate - 1_666.7).abs() < 0.1, "{rate}");
    drop(dash);
    assert!(reader.next().is_none(), "an event after the server was dropped");
}

#[test]
fn readers_are_notified_of_the_report_and_can_fetch_it_before_the_end() {
    let directory = tempfile::tempdir().unwrap();
    let report = directory.path().join("report.html");
    fs::write(&report, "<!doctype html>the result").unwrap();
    let (mut dash, address) = mid_trial();
    let (status, _, body) = page(address, "/report", "*/*");
    let body = String::from_utf8(body).unwrap();
    assert_eq!(status, 404);
    assert!(body.contains("written when the run ends"), "{body}");
    let mut reader = EventReader::new(address);
    assert_eq!(reader.next().unwrap().0, "snapshot");
    let fetched = std::thread::spawn(move || {
        while let Some((_, data)) = reader.next() {
            if data["ended"]["report"] == true {
                return page(address, "/report", "*/*");
            }
        }
        panic!("the stream ended without announcing the report");
    });
    for event in &fixture::run()[9..] {
        dash.event(event).unwrap();
    }
    dash.report(Some(report));
    dash.end();
    let (status, _, body) = fetched.join().unwrap();
    assert_eq!((status, &*body), (200, &b"<!doctype html>the result"[..]));
}

#[test]
fn a_stuck_reader_blocks_nobody_and_a_lagging_one_gets_a_new_snapshot() {
    let (mut dash, address) = mid_trial();
    let stuck = EventReader::new(address);
    let mut late = EventReader::new(address);
    assert_eq!(late.next().unwrap().0, "snapshot");
    // 20 MB: more than connections and channel can hold. Few events, since a reader that takes
    // nothing for three seconds is disconnected.
    for number in 2..500 {
        let Event::Recorded(mut recorded) = fixture::recorded(number * 600) else { continue };
        recorded.operations[0].operation = "get".repeat(14_000);
        dash.event(&Event::Recorded(recorded)).unwrap();
    }
    while late.next().expect("a snapshot for the lagging reader").0 != "snapshot" {}
    let (status, ..) = page(address, "/metrics", "*/*");
    assert_eq!(status, 200);
    dash.end();
    drop(stuck);
}

#[test]
fn a_report_that_is_a_symbolic_link_is_not_served() {
    let directory = tempfile::tempdir().unwrap();
    let (secret, report) = (directory.path().join("secret"), directory.path().join("report.html"));
    fs::write(&secret, "secret").unwrap();
    std::os::unix::fs::symlink(&secret, &report).unwrap();
    let (mut dash, address) = mid_trial();
    dash.report(Some(report));
    let (status, _, body) = page(address, "/report", "*/*");
    assert_eq!((status, body.windows(6).any(|part| part == b"secret")), (404, false));
}

#[test]
fn a_stuck_reader_is_disconnected() {
    let (mut dash, address) = mid_trial();
    let mut stuck = request(address, "/events", "*/*");
    // 20 MB: more than connections and channel can hold.
    for number in 2..5_000 {
        let Event::Recorded(mut recorded) = fixture::recorded(number * 600) else { continue };
        recorded.operations[0].operation = "get".repeat(1_400);
        dash.event(&Event::Recorded(recorded)).unwrap();
    }
    std::thread::sleep(std::time::Duration::from_secs(8));
    stuck.get_ref().set_read_timeout(Some(TIMEOUT)).unwrap();
    // It reads the data sent before, then the end of the connection.
    if let Err(e) = stuck.read_to_end(&mut Vec::new()) {
        assert_ne!(e.kind(), std::io::ErrorKind::WouldBlock, "the connection is still open");
    }
}

#[test]
fn too_many_readers_are_refused_with_a_message() {
    let (_dash, address) = mid_trial();
    let mut readers: Vec<EventReader> = (0..64).map(|_| EventReader::new(address)).collect();
    for reader in &mut readers {
        assert_eq!(reader.next().unwrap().0, "snapshot");
    }
    let (status, _, body) = page(address, "/events", "*/*");
    let body = String::from_utf8(body).unwrap();
    assert_eq!(status, 503);
    assert!(body.starts_with("all 64 reader slots are in use"), "{body}");
    readers.clear();
    wait_until("slots of disconnected readers are free", || {
        let mut answer = [0; 12];
        request(address, "/events", "*/*").read_exact(&mut answer).unwrap();
        answer.ends_with(b"200").then_some(())
    });
}

/// The server's reply to raw bytes.
fn reply_to(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    let mut answer = Vec::new();
    // A server that rejects the request can reset the connection during the write or the read.
    let _ = stream.write_all(request.as_bytes());
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

#[test]
fn a_loopback_server_only_answers_local_host_names() {
    let (_dash, address) = dash();
    let status = |hosts: &[&str]| {
        let hosts = hosts.join("\r\nHost: ");
        let request =
            format!("GET /metrics HTTP/1.1\r\nHost: {hosts}\r\nConnection: close\r\n\r\n");
        reply_to(address, &request).split(' ').nth(1).unwrap_or_default().to_string()
    };
    for host in ["localhost", "LOCALHOST:9464", "127.0.0.1", "127.1.2.3:1", "[::1]:9464", "[::1]"] {
        assert_eq!(status(&[host]), "200", "{host}");
    }
    for host in [
        "evil.example",
        "evil.example:9464",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "10.0.0.1",
        "[::2]",
        "",
        "localhost:x",
        "127.0.0.1@evil.example",
    ] {
        assert_eq!(status(&[host]), "421", "{host}");
    }
    assert_eq!(status(&["localhost", "evil.example"]), "400");
    let of = |head: &str| reply_to(address, &format!("{head}\r\nConnection: close\r\n\r\n"));
    assert!(of("GET /metrics HTTP/1.1").starts_with("HTTP/1.1 400"));
    assert!(of("GET /metrics HTTP/1.0").starts_with("HTTP/1.0 200"));
    let absolute = |host: &str| of(&format!("GET http://{host}/ HTTP/1.1\r\nHost: localhost"));
    assert!(absolute("evil.example").starts_with("HTTP/1.1 421"));
    assert!(absolute("localhost:9464").starts_with("HTTP/1.1 200"));
    let refused = reply_to(address, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    assert!(refused.contains("expected http://localhost"), "{refused}");
    assert!(refused.contains("x-content-type-options: nosniff"), "{refused}");
}

/// There are more of them than slots. A request does not wait until they time out.
#[test]
fn idle_connections_do_not_lock_others_out() {
    let (_dash, address) = dash();
    let half = "GET / HTTP/1.1\r\nHost: localhost\r\nX: ";
    let mut waiting = Vec::new();
    for head in ["", half, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"] {
        for _ in 0..150 {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(head.as_bytes()).unwrap();
            waiting.push(stream);
        }
        let began = Instant::now();
        assert_eq!(page(address, "/metrics", "*/*").0, 200);
        // Not much less: with so many connections at once, the kernel may drop the first SYN, which
        // is sent again after a second.
        assert!(began.elapsed() < HEADERS_WITHIN, "{:?} {head}", began.elapsed());
    }
    // Event readers stay connected.
    let (mut dash, address) = mid_trial();
    let mut reader = EventReader::new(address);
    assert!(reader.next().is_some());
    let _idle: Vec<_> = (0..300).map(|_| TcpStream::connect(address).unwrap()).collect();
    assert_eq!(page(address, "/metrics", "*/*").0, 200);
    dash.event(&fixture::recorded(1_200)).unwrap();
    assert!(reader.next().is_some());
}

#[test]
fn incomplete_requests_time_out_while_others_are_served() {
    let (_dash, address) = dash();
    let half = "GET / HTTP/1.1\r\nHost: localhost\r\nX: ";
    let mut waiting: Vec<TcpStream> = (0..400)
        .map(|_| {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(half.as_bytes()).unwrap();
            stream
        })
        .collect();
    assert_eq!(page(address, "/metrics", "*/*").0, 200);
    // The server closes each of them; it also closes an idle connection after its reply.
    for stream in &mut waiting {
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        let _ = stream.read_to_end(&mut Vec::new());
    }
    let idle = reply_to(address, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert!(idle.starts_with("HTTP/1.1 200"), "{idle}");
}

#[test]
fn oversized_headers_and_other_methods_are_refused() {
    let (_dash, address) = dash();
    let long = format!("GET / HTTP/1.1\r\nHost: localhost\r\nX: {}", "x".repeat(1 << 20));
    let refused = reply_to(address, &long);
    assert!(refused.is_empty() || refused.starts_with("HTTP/1.1 431"), "{refused}");
    for method in ["POST", "PUT", "DELETE", "OPTIONS"] {
        let request =
            format!("{method} / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        assert!(reply_to(address, &request).starts_with("HTTP/1.1 405"), "{method}");
    }
}
