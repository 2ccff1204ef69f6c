use super::*;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixListener;
use std::thread;

/// Answers each connection with what it sends, until its end.
fn echo_server() -> NetAddress {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            thread::spawn(move || std::io::copy(&mut stream.try_clone().unwrap(), &mut stream));
        }
    });
    NetAddress::Tcp("127.0.0.1".into(), port)
}

fn connected(relay: &Relay) -> TcpStream {
    let NetAddress::Tcp(host, port) = relay.address() else { panic!("{relay:?}") };
    let stream = TcpStream::connect((host.as_str(), *port)).unwrap();
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream
}

#[test]
fn every_message_takes_the_round_trip_and_no_less() {
    let round_trip = Duration::from_millis(20);
    let relay = Relay::start(echo_server(), round_trip, Vec::new()).unwrap();
    let mut stream = connected(&relay);
    let mut shortest = Duration::MAX;
    for number in 0..10u32 {
        let begun = Instant::now();
        stream.write_all(&number.to_le_bytes()).unwrap();
        let mut answer = [0; 4];
        stream.read_exact(&mut answer).unwrap();
        let took = begun.elapsed();
        assert_eq!(u32::from_le_bytes(answer), number);
        assert!(took >= round_trip, "{took:?}");
        shortest = shortest.min(took);
    }
    // The best of ten is not late, even on a busy machine.
    assert!(shortest < round_trip * 2, "{shortest:?}");
}

#[test]
fn many_messages_are_under_way_at_once() {
    let round_trip = Duration::from_millis(200);
    let relay = Relay::start(echo_server(), round_trip, Vec::new()).unwrap();
    let mut stream = connected(&relay);
    let sent: Vec<u8> = (0..3 << 20).map(|n: u32| n.to_le_bytes()[1] ^ n as u8).collect();
    let mut writer = stream.try_clone().unwrap();
    let copy = sent.clone();
    let begun = Instant::now();
    let writing = thread::spawn(move || {
        for piece in copy.chunks(1000) {
            writer.write_all(piece).unwrap();
        }
        writer.shutdown(std::net::Shutdown::Write).unwrap();
    });
    let mut got = Vec::new();
    stream.read_to_end(&mut got).unwrap();
    writing.join().unwrap();
    let took = begun.elapsed();
    assert!(got == sent, "{} of {} bytes", got.len(), sent.len());
    // One after the other, the 3,146 pieces would take 10 minutes.
    assert!((round_trip..Duration::from_secs(60)).contains(&took), "{took:?}");
}

#[test]
fn a_client_that_reads_nothing_does_not_fill_memory_and_holds_up_no_other() {
    let relay = Relay::start(echo_server(), Duration::from_millis(2), Vec::new()).unwrap();
    let mut greedy = connected(&relay);
    greedy.set_write_timeout(Some(Duration::from_millis(300))).unwrap();
    let piece = vec![7; 1 << 20];
    let mut written = 0;
    while written < 256 << 20 {
        match greedy.write(&piece) {
            Ok(bytes) => written += bytes,
            Err(_) => break,
        }
    }
    assert!(written < 256 << 20, "the relay took {written} bytes");
    let mut other = connected(&relay);
    other.write_all(b"x").unwrap();
    let mut answer = [0];
    other.read_exact(&mut answer).unwrap();
}

#[test]
fn the_end_of_either_side_reaches_the_other() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("server.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let server = NetAddress::Unix(path.clone());
    let relay = Relay::start(server, Duration::from_millis(2), Vec::new()).unwrap();
    let mut client = connected(&relay);
    let (mut accepted, _) = listener.accept().unwrap();
    accepted.write_all(b"bye").unwrap();
    drop(accepted);
    let mut got = Vec::new();
    client.read_to_end(&mut got).unwrap();
    assert_eq!(got, b"bye");
    // Without a server, a client is closed at once.
    drop(listener);
    std::fs::remove_file(&path).unwrap();
    let mut refused = connected(&relay);
    assert!(matches!(refused.read(&mut [0]), Ok(0) | Err(_)));
    drop(relay);
    assert!(matches!(client.write(b"x").and_then(|_| client.read(&mut [0])), Ok(0) | Err(_)));
}
