//! MySQL servers that never finish a reply: the client gives up within its limits.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use cachedyno_drivers::admin;
use model::{Endpoint, ErrorClass};

/// Timeout of a query; a working server answers at once.
const TIMEOUT: Duration = Duration::from_millis(300);
/// Much longer than several timeouts, much shorter than forever.
const SOON: Duration = Duration::from_secs(8);

/// A packet: three bytes of length, one sequence byte (MySQL's protocol, "Packets").
fn packet(sequence: u8, payload: &[u8]) -> Vec<u8> {
    let length = payload.len().to_le_bytes();
    [&length[..3], &[sequence], payload].concat()
}

/// The greeting of a server (`HandshakeV10`) with `mysql_native_password`.
fn greeting() -> Vec<u8> {
    let capabilities: u32 = 0x0000_0200 | 0x0000_8000 | 0x0008_0000 | 0x0000_0008;
    let [low, less, high, highest] = capabilities.to_le_bytes();
    let parts: [&[u8]; 9] = [
        &[10],
        b"8.0.0\0",
        &[1, 0, 0, 0],
        b"12345678\0",
        &[low, less, 45, 2, 0, high, highest, 21],
        &[0; 10],
        b"123456789012\0",
        b"mysql_native_password\0",
        &[],
    ];
    packet(0, &parts.concat())
}

/// A fake server that accepts every user and replies to each statement with a function's output.
fn server(answer: impl Fn(&mut TcpStream) + Send + Sync + 'static) -> Endpoint {
    serve(move |mut stream| {
        if stream.write_all(&greeting()).is_err() || received(&mut stream).is_none() {
            return;
        }
        let _ = stream.write_all(&packet(2, &[0, 0, 0, 2, 0, 0, 0]));
        while received(&mut stream).is_some() {
            answer(&mut stream);
        }
    })
}

fn serve(connection: impl Fn(TcpStream) + Send + Sync + 'static) -> Endpoint {
    let port = listening(connection);
    Endpoint::parse(&format!("mysql://user@127.0.0.1:{port}/base")).unwrap()
}

/// Serves each connection on a separate thread; returns the port.
pub(crate) fn listening(connection: impl Fn(TcpStream) + Send + Sync + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let connection = Arc::new(connection);
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let connection = connection.clone();
            thread::spawn(move || connection(stream));
        }
    });
    port
}

/// The client's next packet.
fn received(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let mut head = [0; 4];
    stream.read_exact(&mut head).ok()?;
    let mut payload = vec![0; u32::from_le_bytes([head[0], head[1], head[2], 0]) as usize];
    stream.read_exact(&mut payload).ok()?;
    Some(payload)
}

/// Writes endlessly, with a pause after each piece.
pub(crate) fn drip(stream: &mut TcpStream, piece: &[u8], pause: Duration) {
    while stream.write_all(piece).is_ok() {
        thread::sleep(pause);
    }
}

#[test]
fn a_dripping_greeting_times_out() {
    let endpoint = serve(|mut stream| {
        let _ = stream.write_all(&[0x10, 0x27, 0, 0, 10]);
        drip(&mut stream, b"8", TIMEOUT / 10);
    });
    let began = Instant::now();
    let failure = admin(&endpoint, TIMEOUT).err().expect("no server that can be used");
    assert_eq!(failure.class, ErrorClass::Timeout, "{failure}");
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
}

#[test]
fn a_dripping_reply_times_out() {
    let endpoint = server(|stream| {
        let _ = stream.write_all(&[0x10, 0x27, 0, 1]);
        drip(stream, b"x", TIMEOUT / 10);
    });
    let began = Instant::now();
    let mut admin = admin(&endpoint, TIMEOUT).unwrap();
    let failure = admin.facts().unwrap_err();
    assert_eq!(failure.class, ErrorClass::Timeout, "{failure}");
    assert!(failure.message.contains("no answer within 300 ms"), "{failure}");
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
}

#[test]
fn endless_rows_are_rejected() {
    let column =
        [&b"\x03def\0\0\0\x01a\0\x0c\x21\0"[..], &1024_u32.to_le_bytes(), &[0xfd, 0, 0, 0, 0, 0]];
    let head = [
        packet(1, &[2]),
        packet(2, &column.concat()),
        packet(3, &column.concat()),
        packet(4, &[0xfe, 0, 0, 2, 0]),
    ];
    let (head, half) = (head.concat(), [&b"\xfc\xff\xff"[..], &vec![b'x'; 65_535]].concat());
    let endpoint = server(move |stream| {
        let _ = stream.write_all(&head);
        let mut sequence = 5_u8;
        while stream.write_all(&packet(sequence, &half.repeat(2))).is_ok() {
            sequence = sequence.wrapping_add(1);
        }
    });
    let mut admin = admin(&endpoint, Duration::from_secs(20)).unwrap();
    let failure = admin.counters().unwrap_err();
    assert_eq!(failure.class, ErrorClass::Protocol, "{failure}");
    assert!(failure.message.contains("is too long"), "{failure}");
}
