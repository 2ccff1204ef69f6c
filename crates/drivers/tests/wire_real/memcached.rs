//! A test memcached: every operation in both protocols, errors, accounts.

use std::thread;
use std::time::Duration;

use cachedyno_drivers::memcached::Replies;
use cachedyno_drivers::memcached::requests::{Placeholders, custom, hello, operation};
use load::wire::protocol::{Expect, Judged};
use model::{ErrorClass, MemcachedProtocol, Secret};

use super::common::{ANY, DONE, Line, OK, Server, VALUE, VALUE_BYTES, installed};

const HOLES: Placeholders =
    Placeholders { key_bytes: Some(16), value_bytes: Some(VALUE_BYTES), below: None };
const PROTOCOLS: [MemcachedProtocol; 2] = [MemcachedProtocol::Text, MemcachedProtocol::Meta];

/// Runs a named operation on a key and returns its reply.
fn done(
    line: &mut Line<Replies>,
    protocol: MemcachedProtocol,
    name: &str,
    key: u64,
    ttl_s: u64,
) -> Judged {
    let request = operation(protocol, name, Some(ttl_s), &HOLES).unwrap();
    line.fill_in(&request.segments, key, 1);
    let bytes = request.reads_whole.then_some(VALUE_BYTES as u32);
    line.receive(&Expect { shape: request.shape, bytes, verify: request.reads_whole, key })
}

fn class(judged: &Judged) -> ErrorClass {
    match judged {
        Judged::Error(class, _) => *class,
        other => panic!("{other:?}"),
    }
}

#[test]
fn operations_agree_in_text_and_meta_commands() {
    if !installed("memcached") {
        return;
    }
    let server = Server::memcached(&[]);
    for protocol in PROTOCOLS {
        for piece in [1, 50, 100_000] {
            let mut line = server.connect::<Replies>();
            line.piece = piece;
            let verified = Judged::Ok { verified: true };
            let mut expect = |name, ttl_s, expected: Judged| {
                let judged = done(&mut line, protocol, name, 42, ttl_s);
                assert_eq!(judged, expected, "{protocol:?} {name}");
            };
            for absent in ["get", "gets", "gat", "touch", "del", "incr", "decr"] {
                expect(absent, 0, Judged::Miss);
            }
            expect("replace", 0, OK);
            expect("append", 0, OK);
            expect("get", 0, Judged::Miss);
            expect("add", 0, OK);
            expect("get", 0, verified.clone());
            expect("set", 60, OK);
            for there in ["get", "gets", "gat"] {
                expect(there, 60, verified.clone());
            }
            expect("touch", 60, OK);
            expect("ping", 0, OK);
            expect("del", 0, OK);
            expect("get", 0, Judged::Miss);
            let own = custom("set __key__ 0 0 5", &HOLES).unwrap();
            line.fill_in(&own.segments, 42, 1);
            assert_eq!(line.receive(&DONE), OK);
            assert_eq!(done(&mut line, protocol, "incr", 42, 0), OK);
            assert_eq!(
                done(&mut line, protocol, "get", 42, 0),
                Judged::Wrong,
                "a value of one byte"
            );
            assert_eq!(line.ask(b"get key:000000000042\r\n", &VALUE), OK);
            assert_eq!(done(&mut line, protocol, "del", 42, 0), OK);
        }
    }
}

#[test]
fn lifetimes_expire() {
    if !installed("memcached") {
        return;
    }
    let server = Server::memcached(&[]);
    let mut line = server.connect::<Replies>();
    for (key, protocol) in (0..).zip(PROTOCOLS) {
        assert_eq!(done(&mut line, protocol, "set", key, 1), OK);
    }
    thread::sleep(Duration::from_millis(2500));
    for (key, protocol) in (0..).zip(PROTOCOLS) {
        assert_eq!(done(&mut line, protocol, "get", key, 0), Judged::Miss);
    }
}

#[test]
fn pipelined_replies_come_in_order() {
    if !installed("memcached") {
        return;
    }
    let server = Server::memcached(&[]);
    for protocol in PROTOCOLS {
        let mut line = server.connect::<Replies>();
        let request = |name| operation(protocol, name, None, &HOLES).unwrap().segments;
        // As many as always fit into the socket buffers.
        let keys = 1000..1020;
        for key in keys.clone() {
            line.fill_in(&request("set"), key, 1);
            line.fill_in(&request("get"), key, 1);
            line.fill_in(&request("get"), key + 5000, 1);
        }
        for key in keys {
            let own = Expect { bytes: Some(VALUE_BYTES as u32), verify: true, key, ..VALUE };
            assert_eq!(line.receive(&DONE), OK);
            assert_eq!(line.receive(&own), Judged::Ok { verified: true });
            assert_eq!(line.receive(&own), Judged::Miss);
        }
        // The name would reveal a reply to another key's request, even without verification.
        line.fill_in(&custom("get __key__", &HOLES).unwrap().segments, 1001, 1);
        let other = Expect { bytes: Some(VALUE_BYTES as u32), key: 1002, ..VALUE };
        assert_eq!(line.receive(&other), Judged::Wrong);
    }
}

#[test]
fn commands_of_all_kinds_are_understood() {
    if !installed("memcached") {
        return;
    }
    let server = Server::memcached(&[]);
    let mut line = server.connect::<Replies>();
    assert_eq!(line.ask(b"set a 5 0 1\r\nx\r\n", &DONE), OK);
    assert_eq!(line.ask(b"set b 0 0 0\r\n\r\n", &DONE), OK);
    assert_eq!(line.ask(b"gets a b c\r\n", &ANY), OK);
    assert_eq!(line.ask(b"get a b\r\n", &VALUE), Judged::Wrong);
    assert_eq!(line.ask(b"mg a s v f t c k Oab\r\n", &VALUE), OK);
    assert_eq!(line.ask(b"mg YQ== b k v\r\n", &VALUE), OK);
    assert_eq!(line.ask(b"mg a t\r\n", &DONE), OK);
    assert_eq!(line.ask(b"me a\r\n", &ANY), OK);
    assert_eq!(line.ask(b"me none\r\n", &ANY), Judged::Miss);
    assert_eq!(line.ask(b"ms a 1 C1\r\ny\r\n", &ANY), OK);
    assert_eq!(line.ask(b"stats\r\n", &ANY), OK);
    assert_eq!(line.ask(b"stats settings\r\n", &ANY), OK);
    assert_eq!(line.ask(b"verbosity 0\r\n", &DONE), OK);
    assert_eq!(class(&line.ask(b"nonsense\r\n", &ANY)), ErrorClass::Reply);
    assert_eq!(class(&line.ask(b"incr a 1\r\n", &ANY)), ErrorClass::Reply);
    let mut large = b"set big 0 0 3000000\r\n".to_vec();
    large.resize(large.len() + 3_000_000, b'x');
    large.extend_from_slice(b"\r\n");
    assert_eq!(class(&line.ask(&large, &DONE)), ErrorClass::TooLarge);
    assert_eq!(line.ask(b"mn\r\n", &ANY), OK, "the connection is still in step");
}

#[test]
fn a_full_server_reports_it() {
    if !installed("memcached") {
        return;
    }
    let server = Server::memcached(&["-M", "-m", "2"]);
    for protocol in PROTOCOLS {
        let mut line = server.connect::<Replies>();
        let full = (0..100_000)
            .map(|key| done(&mut line, protocol, "set", key, 0))
            .find(|judged| *judged != OK);
        assert_eq!(class(&full.unwrap()), ErrorClass::Full, "{protocol:?}");
    }
}

#[test]
fn accounts_are_required() {
    if !installed("memcached") {
        return;
    }
    let accounts = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(accounts.path(), "ann:let-me-in\n").unwrap();
    let server = Server::memcached(&["-Y", &accounts.path().display().to_string()]);
    let mut line = server.connect::<Replies>();
    assert_eq!(class(&line.ask(b"get a\r\n", &VALUE)), ErrorClass::Denied);
    let mut greet = |password: &str| {
        let (bytes, replies) = hello("ann", &Secret::new(password));
        line.ask(&bytes, &replies[0].expect)
    };
    assert_eq!(class(&greet("wrong")), ErrorClass::Denied);
    assert_eq!(greet("let-me-in"), OK);
    for protocol in PROTOCOLS {
        assert_eq!(done(&mut line, protocol, "set", 1, 0), OK);
    }
}
