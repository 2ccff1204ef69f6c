//! PostgreSQL servers that never finish a login or a reply: the client gives up within its limits.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use super::hostile_mysql::{drip, listening};
use cachedyno_drivers::admin;
use model::{Endpoint, ErrorClass};

/// Timeout of a query; a working server answers at once.
const TIMEOUT: Duration = Duration::from_millis(300);
/// Much longer than several timeouts, much shorter than forever.
const SOON: Duration = Duration::from_secs(8);

/// A fake server that accepts everyone and replies to the first statement with a function's output.
const WELCOME: &[u8] = b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I";

/// The error class for a fake server whose connections a function serves after the greeting.
fn given_up(serve: impl Fn(&mut TcpStream) + Send + Sync + 'static) -> ErrorClass {
    let port = listening(move |mut stream| {
        let _ = stream.read(&mut [0; 512]);
        serve(&mut stream);
    });
    let endpoint = Endpoint::parse(&format!("postgres://user:hush@127.0.0.1:{port}/base")).unwrap();
    let began = Instant::now();
    let failure = match admin(&endpoint, TIMEOUT) {
        Err(failure) => failure,
        Ok(mut admin) => admin.facts().unwrap_err(),
    };
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
    assert!(!failure.message.contains("hush"), "{failure}");
    failure.class
}

#[test]
fn an_endless_login_times_out() {
    // It requests the password again and again, as text and with MD5.
    for request in [&b"R\0\0\0\x08\0\0\0\x03"[..], b"R\0\0\0\x0c\0\0\0\x05salt"] {
        let class = given_up(move |stream| {
            while stream.write_all(request).is_ok() && stream.read(&mut [0; 512]).is_ok() {
                std::thread::sleep(TIMEOUT / 10);
            }
        });
        assert_eq!(class, ErrorClass::Timeout);
    }
}

#[test]
fn a_server_without_scram_proof_is_rejected() {
    // SCRAM starts, but the server accepts the client without a proof of its own.
    let class = given_up(|stream| {
        let _ = stream.write_all(b"R\0\0\0\x17\0\0\0\x0aSCRAM-SHA-256\0\0");
        let _ = stream.read(&mut [0; 512]);
        let _ = stream.write_all(WELCOME);
        std::thread::sleep(TIMEOUT * 2);
    });
    assert_eq!(class, ErrorClass::Protocol);
}

#[test]
fn a_huge_announced_length_allocates_no_memory() {
    for length in [b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff"] {
        let class = given_up(move |stream| {
            let _ = stream.write_all(&[WELCOME, b"D", length].concat());
            std::thread::sleep(TIMEOUT * 2);
        });
        assert_eq!(class, ErrorClass::Protocol);
    }
}

#[test]
fn a_dripping_reply_times_out() {
    let class = given_up(|stream| {
        let _ = stream.write_all(&[WELCOME, b"D\0\0\x10\0"].concat());
        drip(stream, b"x", TIMEOUT / 10);
    });
    assert_eq!(class, ErrorClass::Timeout);
}

#[test]
fn endless_rows_are_rejected() {
    // A row with the maximum number of columns, all NULL.
    let columns = u16::MAX;
    let body = [&columns.to_be_bytes()[..], &vec![0xff; usize::from(columns) * 4]].concat();
    let length = u32::try_from(body.len() + 4).unwrap().to_be_bytes();
    let row = [b"D", &length[..], &body].concat();
    let class = given_up(move |stream| {
        let _ = stream.write_all(WELCOME);
        while stream.write_all(&row).is_ok() {}
    });
    assert!(matches!(class, ErrorClass::Timeout | ErrorClass::Protocol), "{class}");
}

#[test]
fn the_reason_of_a_shutdown_is_reported() {
    let port = listening(|mut stream| {
        let _ = stream.read(&mut [0; 512]);
        let _ = stream.write_all(WELCOME);
        let _ = stream.read(&mut [0; 512]);
        let fields = b"SFATAL\0C25P03\0Mterminating because it was idle\0\0";
        let length = u32::try_from(fields.len() + 4).unwrap().to_be_bytes();
        let _ = stream.write_all(&[b"E", &length[..], fields].concat());
    });
    let endpoint = Endpoint::parse(&format!("postgres://user@127.0.0.1:{port}/base")).unwrap();
    let failure = admin(&endpoint, TIMEOUT).unwrap().facts().unwrap_err();
    assert!(failure.message.contains("terminating because it was idle"), "{failure}");
}
