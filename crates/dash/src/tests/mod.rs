//! The server as its readers see it: over HTTP, by promtool and by Prometheus.

mod http;
mod prometheus;

use crate::{Dash, Listener};
use model::Sink as _;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// Far more than anything here takes.
const PATIENCE: Duration = Duration::from_secs(30);

/// A server of a run that is not begun.
fn dash() -> (Dash, SocketAddr) {
    let listener = Listener::bind("127.0.0.1:0").unwrap();
    let address = listener.address();
    (listener.serve(|| {}).unwrap(), address)
}

/// The same with the made-up run under way in its trial.
fn under_way() -> (Dash, SocketAddr) {
    let (mut dash, address) = dash();
    for event in &crate::fixture::run()[..9] {
        dash.event(event).unwrap();
    }
    (dash, address)
}

/// Asks for a page; the answer is not read yet.
fn asked(address: SocketAddr, path: &str, accept: &str) -> BufReader<TcpStream> {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {address}\r\nAccept: {accept}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).unwrap();
    BufReader::new(stream)
}

/// Status, headers and body of a page.
fn page(address: SocketAddr, path: &str, accept: &str) -> (u16, String, Vec<u8>) {
    let mut answer = Vec::new();
    asked(address, path, accept).read_to_end(&mut answer).unwrap();
    let end = answer.windows(4).position(|w| w == b"\r\n\r\n").unwrap();
    let head = String::from_utf8(answer[..end].to_vec()).unwrap().to_lowercase();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, head, answer[end + 4..].to_vec())
}

/// One who reads events.
struct Listening(BufReader<TcpStream>);

impl Listening {
    fn new(address: SocketAddr) -> Self {
        Self(asked(address, "/events", "text/event-stream"))
    }

    /// Name and data of the next event; `None` at the end.
    fn next(&mut self) -> Option<(String, serde_json::Value)> {
        let (mut name, mut line) = (String::new(), String::new());
        loop {
            line.clear();
            // The end of the server may cut the last line.
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

/// Looks again and again until there is something.
fn wait_until<T>(what: &str, look: impl Fn() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed() < PATIENCE, "{what}: not within {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}
