use super::*;
use Protocol::{Memcached, Resp};

/// The words of the only request in `bytes`, and its data.
fn whole(protocol: Protocol, bytes: &[u8]) -> (Vec<&[u8]>, &[u8]) {
    let mut parts = Parts::default();
    assert_eq!(request(protocol, bytes, &mut parts), Ok(Found::Complete { used: bytes.len() }));
    let words = (0..parts.len()).map(|n| parts.word(bytes, n)).collect();
    (words, &bytes[parts.data.clone()])
}

fn broken(protocol: Protocol, bytes: &[u8]) -> &'static str {
    request(protocol, bytes, &mut Parts::default()).unwrap_err().0
}

#[test]
fn the_first_bytes_determine_the_protocol() {
    for resp in ["*1", "PING\r\n", "GET a\r\n", "INFO\n", "getx a\r\n", "\r\n", "\u{80}"] {
        assert_eq!(protocol(resp.as_bytes()), Some(Resp), "{resp:?}");
    }
    for text in ["get a\r\n", "set a 0 0 1\r\n", "mn\r\n", "version\n", "flush_all\r\n"] {
        assert_eq!(protocol(text.as_bytes()), Some(Memcached), "{text:?}");
    }
    for open in ["", "get", "PING"] {
        assert_eq!(protocol(open.as_bytes()), None, "{open:?}");
    }
    assert_eq!(protocol(&vec![b'g'; LINE_BYTES_MAX + 1]), Some(Resp));
}

#[test]
fn words_and_data_are_found() {
    let set = b"*3\r\n$3\r\nSET\r\n$0\r\n\r\n$4\r\n\r\n$1\r\n";
    assert_eq!(whole(Resp, set), (vec![&b"SET"[..], b"", b"\r\n$1"], &b""[..]));
    assert_eq!(whole(Resp, b"PING  hello\r\n").0, [&b"PING"[..], b"hello"]);
    assert_eq!(whole(Resp, b"*0\r\n").0.len(), 0);
    assert_eq!(whole(Resp, b"\r\n").0.len(), 0);
    assert_eq!(whole(Memcached, b"get a bc\r\n"), (vec![&b"get"[..], b"a", b"bc"], &b""[..]));
    let (words, data) = whole(Memcached, b"set key 1 2 4 noreply\r\na\r\nb\r\n");
    assert_eq!((words.len(), words[5], data), (6, &b"noreply"[..], &b"a\r\nb"[..]));
    assert_eq!(whole(Memcached, b"ms key 2 T0\r\nab\r\n").1, b"ab");
}

#[test]
fn a_request_in_pieces_is_found_only_when_complete() {
    let requests: [(Protocol, &[u8]); 4] = [
        (Resp, b"*2\r\n$4\r\nECHO\r\n$12\r\nabcdefghijkl\r\n"),
        (Resp, b"PING\r\n"),
        (Memcached, b"set a 0 0 5\r\nhello\r\n"),
        (Memcached, b"mg a v\r\n"),
    ];
    let mut parts = Parts::default();
    for (protocol, bytes) in requests {
        for length in 0..bytes.len() {
            match request(protocol, &bytes[..length], &mut parts) {
                Ok(Found::Incomplete { missing }) => {
                    assert!((1..=bytes.len() - length).contains(&missing), "{length}: {missing}");
                }
                other => panic!("{other:?} after {length} bytes"),
            }
        }
        whole(protocol, bytes);
    }
}

#[test]
fn malformed_requests_are_rejected_with_a_reason() {
    assert_eq!(broken(Resp, b"*a\r\n"), "a length");
    assert_eq!(broken(Resp, b"*-1\r\n"), "a length");
    assert_eq!(broken(Resp, b"*1\rx"), "a line that ends in CR LF");
    assert_eq!(broken(Resp, b"*1048577\r\n"), "at most 1048576 words");
    assert_eq!(broken(Resp, b"*1\r\n:1\r\n"), "'$'");
    assert_eq!(broken(Resp, b"*1\r\n$536870913\r\n"), "a string of at most 512 MiB");
    assert_eq!(broken(Resp, b"*1\r\n$9999999999\r\n"), "a length");
    assert_eq!(broken(Resp, b"*1\r\n$1\r\nabc"), "CR LF after a string");
    assert_eq!(broken(Resp, b"\x80\x00"), "RESP or memcached's text");
    assert_eq!(broken(Resp, &vec![b'P'; LINE_BYTES_MAX]), "a line of at most 64 KiB");
    assert_eq!(broken(Memcached, b"set a 0 0 x\r\n"), "a length of at most 512 MiB");
    assert_eq!(broken(Memcached, b"set a 0 0 536870913\r\n"), "a length of at most 512 MiB");
    assert_eq!(broken(Memcached, b"set a 0 0 1\r\nabc"), "CR LF after the data");
}
