//! The server, tested over HTTP, with promtool and with Prometheus.

mod http;
mod prometheus;

use crate::{Dash, Listener};
use model::Sink as _;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// Far longer than any step takes.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A server for a run that has not started.
fn dash() -> (Dash, SocketAddr) {
    let listener = Listener::bind("127.0.0.1:0").unwrap();
    let address = listener.address();
    (listener.serve(|| {}).unwrap(), address)
}

/// A server for the fixture run in the middle of its trial.
fn mid_trial() -> (Dash, SocketAddr) {
    let (mut dash, address) = dash();
    for event in &crate::fixture::run()[..9] {
        dash.event(event).unwrap();
    }
    (dash, address)
}

/// Requests a page without reading the reply.
fn request(address: SocketAddr, path: &str, accept: &str) -> BufReader<TcpStream> {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    let head = format!(
        "GET {path} HTTP/1.1\r\nHost: {address}\r\nAccept: {accept}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    BufReader::new(stream)
}

/// Status, headers and body of a page.
fn page(address: SocketAddr, path: &str, accept: &str) -> (u16, String, Vec<u8>) {
    let mut answer = Vec::new();
    request(address, path, accept).read_to_end(&mut answer).unwrap();
    let end = answer.windows(4).position(|w| w == b"\r\n\r\n").unwrap();
    let head = String::from_utf8(answer[..end].to_vec()).unwrap().to_lowercase();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, head, answer[end + 4..].to_vec())
}

/// A client of the event stream.
struct EventReader(BufReader<TcpStream>);

impl EventReader {
    fn new(address: SocketAddr) -> Self {
        Self(request(address, "/events", "text/event-stream"))
    }

    /// Name and data of the next event; `None` at the end.
    fn next(&mut self) -> Option<(String, serde_json::Value)> {
        let (mut name, mut line) = (String::new(), String::new());
        loop {
            line.clear();
            // The last line can be truncated when the server stops.
            if self.0.read_line(&mut line).unwrap_or(0) == 0 {
                return None;
            }
            if let Some(rest) = line.strip_prefix("event: ") {
                name = rest.trim().into();
            }
            if let Some(data) = line.strip_prefix("data: ") {
                return Some((name, serde_json::from_str(data).unwrap()));
            }
        }
    }
}

/// Polls `look` until it returns a value.
fn wait_until<T>(what: &str, look: impl Fn() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(started.elapsed() < TIMEOUT, "{what}: timed out after {TIMEOUT:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}
