//! Servers that never end an answer, or a question: each is given up within bounds.

use std::io::{BufRead as _, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use cachedyno_drivers::redis::Control;
use cachedyno_drivers::{Patience, admin};
use model::{Endpoint, ErrorClass, Layout, NetAddress};

use super::common::patience;

/// For a question; a server that answers at all answers at once.
const TIMEOUT: Duration = Duration::from_millis(300);
/// Far more than several time-outs, far less than for ever.
const SOON: Duration = Duration::from_secs(8);

/// Answers each command of Redis by what a function writes; false ends the connection. Commands
/// are counted.
fn server(answer: impl Fn(&str, &mut TcpStream) -> bool + Send + Sync + 'static) -> Hostile {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (asked, answer) = (Arc::new(AtomicUsize::new(0)), Arc::new(answer));
    let count = asked.clone();
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let (answer, asked) = (answer.clone(), asked.clone());
            thread::spawn(move || {
                let mut out = stream.try_clone().unwrap();
                let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
                // Of `*2`, `$4`, `SCAN`, … the command is the third line.
                while let Some(first) = lines.next() {
                    let rest =
                        first.strip_prefix('*').map_or(0, |n| 2 * n.parse::<usize>().unwrap());
                    let words: Vec<String> = lines.by_ref().take(rest).collect();
                    let command = words.get(1).unwrap_or(&first).clone();
                    asked.fetch_add(1, Ordering::Relaxed);
                    if !answer(&command, &mut out) {
                        return;
                    }
                }
            });
        }
    });
    Hostile { port, asked: count }
}

struct Hostile {
    port: u16,
    asked: Arc<AtomicUsize>,
}

impl Hostile {
    fn endpoint(&self) -> Endpoint {
        Endpoint::redis(NetAddress::Tcp("127.0.0.1".into(), self.port))
    }
}

fn say(out: &mut TcpStream, text: &str) -> bool {
    out.write_all(text.as_bytes()).is_ok()
}

/// Writes without end, with a pause after each piece.
fn drip(out: &mut TcpStream, piece: &[u8], pause: Duration) -> bool {
    while out.write_all(piece).is_ok() {
        thread::sleep(pause);
    }
    false
}

#[test]
fn an_endless_scan_ends_by_its_number_of_pages() {
    let server = server(|command, out| match command {
        "PING" => say(out, "+PONG\r\n"),
        "DBSIZE" => say(out, ":10\r\n"),
        "SCAN" => say(out, "*2\r\n$1\r\n7\r\n*0\r\n"),
        _ => say(out, "+OK\r\n"),
    });
    let mut admin = admin(&server.endpoint(), TIMEOUT).unwrap();
    let failure = admin.clean(Layout::Plain, "run-1-", &mut patience()).unwrap_err();
    assert_eq!(failure.class, ErrorClass::Protocol, "{failure}");
    assert!(failure.message.contains("`SCAN` does not end"), "{failure}");
    assert!(server.asked.load(Ordering::Relaxed) < 20_000);
}

#[test]
fn cleaning_ends_soon_after_an_interruption() {
    // A database of which nobody knows how large it is.
    let server = server(|command, out| match command {
        "PING" => say(out, "+PONG\r\n"),
        "DBSIZE" => say(out, ":9000000000000000000\r\n"),
        _ => say(out, "*2\r\n$1\r\n7\r\n*0\r\n"),
    });
    let stop = Arc::new(AtomicBool::new(false));
    let user = stop.clone();
    thread::spawn(move || {
        thread::sleep(Duration::from_millis(200));
        user.store(true, Ordering::Relaxed);
    });
    let mut admin = admin(&server.endpoint(), TIMEOUT).unwrap();
    let began = Instant::now();
    let patience = &mut Patience::new(&stop);
    let failure = admin.clean(Layout::Plain, "run-1-", patience).unwrap_err();
    assert!(failure.message.contains("cleaning was interrupted"), "{failure}");
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
}

#[test]
fn an_answer_that_drips_is_given_up() {
    // A byte comes long before each read would be late.
    let pause = TIMEOUT / 10;
    for piece in [&b"$100000\r\n"[..], b"x"] {
        let server = server(move |command, out| match command {
            "PING" => say(out, "+PONG\r\n"),
            _ => say(out, "$100000\r\n") && drip(out, piece, pause),
        });
        let began = Instant::now();
        let mut admin = admin(&server.endpoint(), TIMEOUT).unwrap();
        let failure = admin.facts().unwrap_err();
        assert_eq!(failure.class, ErrorClass::Timeout, "{failure}");
        assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
    }
}

#[test]
fn an_answer_of_many_long_strings_is_given_up() {
    let mebibyte = Arc::new([b"$1048576\r\n", &vec![b'x'; 1 << 20][..], b"\r\n"].concat());
    let server =
        server(move |_, out| say(out, "*1000000\r\n") && drip(out, &mebibyte, Duration::ZERO));
    let mut control = Control::connect(&server.endpoint(), None, Duration::from_secs(20)).unwrap();
    let failure = control.ask(&[b"SUNION", b"a"]).unwrap_err();
    assert_eq!(failure.class, ErrorClass::Protocol, "{failure}");
}

#[test]
fn memcached_that_says_nothing_but_lines_is_given_up() {
    let server = server(|_, out| drip(out, b"STAT a b\r\n", TIMEOUT / 10));
    let endpoint = Endpoint::parse(&format!("memcached://127.0.0.1:{}", server.port)).unwrap();
    let began = Instant::now();
    let mut admin = admin(&endpoint, TIMEOUT).unwrap();
    assert!(admin.facts().is_err());
    assert!(admin.counters().is_err());
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
}
