//! Tests the parser with every kind of reply, every split and arbitrary bytes.

use super::*;
use crate::lines::LINE_BYTES_MAX;
use crate::replay::{self, OK, cuts, expects};
use crate::streams::{self, ANY, DONE, ParsedStream, VALUE, VALUES};
use model::ErrorClass;
use proptest::prelude::*;

/// Parses a stream in pieces of these lengths.
fn parse(stream: &[u8], expect: &Expect, pieces: &[usize]) -> ParsedStream {
    streams::parse_stream::<Replies>(stream, expect, pieces)
}

fn reply(stream: &[u8], expect: &Expect) -> Judged {
    replay::reply::<Replies>(stream, expect)
}

fn fault(stream: &[u8]) -> String {
    replay::fault::<Replies>(stream)
}

#[test]
fn any_accepts_everything_but_errors() {
    let good = [
        "+OK\r\n",
        "+\r\n",
        ":1\r\n",
        ":-12\r\n",
        ":+3\r\n",
        ":123456789012345678901\r\n",
        "$-1\r\n",
        "$0\r\n\r\n",
        "$4\r\na\r\nb\r\n",
        "*-1\r\n",
        "*0\r\n",
        "*2\r\n$1\r\na\r\n*2\r\n:1\r\n$-1\r\n",
        "_\r\n",
        ",1.5e3\r\n",
        ",-inf\r\n",
        ",nan\r\n",
        "#t\r\n",
        "#f\r\n",
        "(-3492890328409238509324850943850943825024385\r\n",
        "=8\r\ntxt:abcd\r\n",
        "%0\r\n",
        "%2\r\n+a\r\n:1\r\n+b\r\n%1\r\n+c\r\n_\r\n",
        "~3\r\n:1\r\n#t\r\n$1\r\nx\r\n",
        "$?\r\n;0\r\n",
        "$?\r\n;4\r\nHell\r\n;5\r\no wor\r\n;0\r\n",
        "*?\r\n:1\r\n*?\r\n.\r\n$?\r\n;1\r\na\r\n;0\r\n.\r\n",
        "%?\r\n+a\r\n:1\r\n.\r\n",
        "~?\r\n.\r\n",
    ];
    for text in good {
        assert_eq!(reply(text.as_bytes(), &ANY), OK, "{text:?}");
    }
}

#[test]
fn done_accepts_only_ok() {
    assert_eq!(reply(b"+OK\r\n", &DONE), OK);
    let others: [&[u8]; 9] = [
        b"+QUEUED\r\n",
        b"+ok\r\n",
        b":1\r\n",
        b"$2\r\nOK\r\n",
        b"$-1\r\n",
        b"_\r\n",
        b"*1\r\n+OK\r\n",
        b"=6\r\ntxt:OK\r\n",
        b"$?\r\n;2\r\nOK\r\n;0\r\n",
    ];
    for other in others {
        assert_eq!(reply(other, &DONE), Judged::Wrong, "{other:?}");
    }
}

#[test]
fn value_accepts_strings_and_misses() {
    for string in
        [&b"$3\r\nabc\r\n"[..], b"=7\r\ntxt:abc\r\n", b"$?\r\n;1\r\na\r\n;2\r\nbc\r\n;0\r\n"]
    {
        assert_eq!(reply(string, &VALUE), OK, "{string:?}");
        assert_eq!(reply(string, &Expect { bytes: Some(3), ..VALUE }), OK, "{string:?}");
        assert_eq!(reply(string, &Expect { bytes: Some(2), ..VALUE }), Judged::Wrong);
        assert_eq!(reply(string, &Expect { bytes: Some(4), ..VALUE }), Judged::Wrong);
    }
    for nil in [&b"$-1\r\n"[..], b"*-1\r\n", b"_\r\n"] {
        assert_eq!(reply(nil, &VALUE), Judged::Miss, "{nil:?}");
    }
    for other in [&b"+OK\r\n"[..], b":1\r\n", b"*1\r\n$1\r\na\r\n", b"%0\r\n", b"#t\r\n", b",1\r\n"]
    {
        assert_eq!(reply(other, &VALUE), Judged::Wrong, "{other:?}");
    }
}

#[test]
fn a_value_is_compared_byte_by_byte() {
    let mut value = Vec::new();
    VALUES.append(&mut value, 42, 3, 100);
    let expect = Expect { bytes: Some(100), verify: true, key: 42, ..VALUE };
    let framed = |value: &[u8]| [&b"$100\r\n"[..], value, b"\r\n"].concat();
    assert_eq!(reply(&framed(&value), &expect), Judged::Ok { verified: true });
    assert_eq!(reply(&framed(&value), &Expect { key: 43, ..expect }), Judged::Wrong);
    let streamed =
        [b"$?\r\n;60\r\n", &value[..60], b"\r\n;40\r\n", &value[60..], b"\r\n;0\r\n"].concat();
    assert_eq!(reply(&streamed, &expect), Judged::Ok { verified: true });
    for at in [0, 11, 50, 59, 60, 99] {
        let mut other = value.clone();
        other[at] = if other[at] == b'*' { b'+' } else { b'*' };
        assert_eq!(reply(&framed(&other), &expect), Judged::Wrong, "byte {at}");
        assert_eq!(reply(&framed(&other), &Expect { verify: false, ..expect }), OK);
    }
}

#[test]
fn pushes_and_attributes_are_not_replies() {
    let push = b">3\r\n+message\r\n-ERR not of the reply\r\n*1\r\n:1\r\n".as_slice();
    assert_eq!(
        parse(push, &ANY, &[5]),
        ParsedStream { judged: vec![], taken: push.len(), fault: None }
    );
    let attribute = b"|1\r\n+ttl\r\n%1\r\n+a\r\n-b\r\n".as_slice();
    for out_of_band in [push, attribute, b">0\r\n", b"|0\r\n"] {
        assert_eq!(reply(&[out_of_band, b"$1\r\nx\r\n"].concat(), &VALUE), OK);
        assert_eq!(reply(&[b"*2\r\n:1\r\n", out_of_band, b":2\r\n"].concat(), &ANY), OK);
        assert_eq!(
            reply(&[b"*1\r\n", out_of_band, b"*1\r\n", out_of_band, b"_\r\n"].concat(), &ANY),
            OK
        );
    }
}

fn failure(words: &str) -> (ErrorClass, String) {
    let line = reply(format!("-{words}\r\n").as_bytes(), &VALUE);
    let string = reply(format!("!{}\r\n{words}\r\n", words.len()).as_bytes(), &DONE);
    assert_eq!(line, string, "an error of one line and one of any");
    match line {
        Judged::Error(class, text) => (class, text),
        other => panic!("{words}: {other:?}"),
    }
}

#[test]
fn errors_have_classes() {
    let classes = [
        ("OOM command not allowed when used memory > 'maxmemory'.", ErrorClass::Full),
        ("NOAUTH Authentication required.", ErrorClass::Denied),
        ("WRONGPASS invalid username-password pair or user is disabled.", ErrorClass::Denied),
        ("NOPERM this user has no permissions", ErrorClass::Denied),
        ("ERR invalid password", ErrorClass::Denied),
        ("ERR Client sent AUTH, but no password is set", ErrorClass::Denied),
        ("ERR AUTH <password> called without any password configured", ErrorClass::Denied),
        ("ERR max number of clients reached", ErrorClass::Refused),
        ("LOADING Redis is loading the dataset in memory", ErrorClass::Reply),
        ("CLUSTERDOWN The cluster is down", ErrorClass::Reply),
        ("READONLY You can't write against a read only replica.", ErrorClass::Reply),
        ("WRONGTYPE Operation against a key", ErrorClass::Reply),
        ("MOVED", ErrorClass::Reply),
        ("MOVED 16384 a:1", ErrorClass::Reply),
        ("MOVED 1 a:0", ErrorClass::Reply),
        ("MOVED 1 a:65536", ErrorClass::Reply),
        ("MOVED 1 a", ErrorClass::Reply),
        ("ASK x a:1", ErrorClass::Reply),
    ];
    for (words, class) in classes {
        assert_eq!(failure(words), (class, words.to_string()));
    }
    assert_eq!(failure(&"x".repeat(5000)).1, "x".repeat(200));
    assert_eq!(
        reply(b"-a\xff\x07b\r\n", &ANY),
        Judged::Error(ErrorClass::Reply, "a\u{fffd}\\u{7}b".into())
    );
}

#[test]
fn an_error_inside_a_reply_counts() {
    let stream = b"*3\r\n+OK\r\n-WRONGTYPE no\r\n-OOM no\r\n";
    assert_eq!(reply(stream, &ANY), Judged::Error(ErrorClass::Reply, "WRONGTYPE no".into()));
    assert_eq!(reply(b"*1\r\n!3\r\nOOM\r\n", &ANY), Judged::Error(ErrorClass::Full, "OOM".into()));
    // A redirect only applies to a whole request.
    let within = reply(b"*1\r\n-MOVED 1 a:1\r\n", &ANY);
    assert_eq!(within, Judged::Error(ErrorClass::Reply, "MOVED 1 a:1".into()));
}

#[test]
fn moved_and_ask_are_redirects() {
    for address in ["127.0.0.1:6381", "2001:db8::1:7000", ":6381", "shop.example:65535"] {
        for (word, for_good) in [("MOVED", true), ("ASK", false)] {
            let line = format!("-{word} 16383 {address}\r\n");
            let expected = Judged::Redirected { address: address.into(), for_good };
            assert_eq!(reply(line.as_bytes(), &VALUE), expected);
        }
    }
}

#[test]
fn invalid_replies_are_malformed() {
    assert!(fault(b"HTTP/1.1 400 Bad Request\r\n").contains("byte 0x48"));
    assert!(fault(b"+OK\n").contains("carriage return"));
    assert!(fault(b"+\n").contains("carriage return"));
    assert!(fault(b"$-2\r\n").contains("`-2` is not a length"));
    assert!(fault(b"$+3\r\n").contains("`+3`"));
    assert!(fault(b"$\r\n").contains("`` is not a length"));
    assert!(fault(b"$1234567890123456789\r\n").contains("not a length"));
    assert!(fault(b"*1x\r\n").contains("`1x`"));
    assert!(fault(b"%-1\r\n").contains("`-1`"));
    assert!(fault(b">?\r\n").contains("`?`"));
    assert!(fault(b":1x\r\n").contains("`:1x` is not a RESP element"));
    assert!(fault(b":\r\n").contains("`:`"));
    assert!(fault(b"#x\r\n").contains("`#x`"));
    assert!(fault(b",x\r\n").contains("`,x`"));
    assert!(fault(b"_x\r\n").contains("`_x`"));
    assert!(fault(b".\r\n").contains("outside a streamed aggregate"));
    assert!(fault(b"*1\r\n.\r\n").contains("outside a streamed aggregate"));
    assert!(fault(b"$2\r\nabc\r\n").contains("continues beyond"));
    assert!(fault(b"=3\r\nabc\r\n").contains("verbatim"));
    assert!(fault(b"=5\r\nabcde\r\n").contains("has no format"));
    assert!(fault(b"$?\r\n+x\r\n").contains("expected `;`"));
    assert!(fault(b";1\r\n").contains("byte 0x3b"));
}

#[test]
fn lines_depth_and_elements_are_limited() {
    let line = |bytes: usize| [b"+", "x".repeat(bytes).as_bytes(), b"\r\n"].concat();
    assert_eq!(parse(&line(LINE_BYTES_MAX - 3), &ANY, &[1000]).judged, [OK]);
    assert!(fault(&line(LINE_BYTES_MAX - 2)).contains("longer than 65536"));
    assert!(fault(&vec![b'$'; LINE_BYTES_MAX]).contains("longer than 65536"));
    let deep = |depth| [b"*1\r\n".repeat(depth), b":1\r\n".to_vec()].concat();
    assert_eq!(reply(&deep(32), &ANY), OK);
    assert!(fault(&deep(33)).contains("more than 32"));
    assert!(fault(b"*4294967297\r\n").contains("4294967296 elements"));
    assert!(fault(b"%2147483649\r\n").contains("4294967296 elements"));
    assert!(fault(b"*2\r\n*4294967295\r\n").contains("4294967296 elements"));
    // The limit applies to a reply, not to a connection.
    let many = b"*4294967296\r\n";
    assert_eq!(parse(many, &ANY, &[1]).fault, None);
    let push = b">1\r\n:1\r\n*1\r\n:1\r\n".repeat(3);
    assert_eq!(parse(&push, &ANY, &[7]).judged, [OK, OK, OK]);
}

#[test]
fn a_huge_value_is_consumed_in_pieces() {
    let mut parser = Replies::default();
    let head = b"$999999999999999999\r\nabc";
    let step = parser.advance(head, &VALUE, &VALUES);
    assert_eq!(step, Ok(Step::More { used: head.len() }));
    assert_eq!(parser.advance(&[b'x'; 4096], &VALUE, &VALUES), Ok(Step::More { used: 4096 }));
}

/// A well-formed element of any type.
fn element() -> impl Strategy<Value = Vec<u8>> {
    let string = |kind: char| {
        prop::collection::vec(any::<u8>(), 0..40).prop_map(move |bytes| {
            [format!("{kind}{}\r\n", bytes.len()).as_bytes(), &bytes, b"\r\n"].concat()
        })
    };
    let leaf = prop_oneof![
        "[+-][ -~]{0,40}".prop_map(|line| format!("{line}\r\n").into_bytes()),
        any::<i64>().prop_map(|n| format!(":{n}\r\n").into_bytes()),
        prop::sample::select(vec!["$-1", "*-1", "_", "#t", "#f", ",1.5", "(12", "-MOVED 7 a:1"])
            .prop_map(|line| format!("{line}\r\n").into_bytes()),
        string('$'),
        string('!'),
        "[a-z]{3}:[ -~]{0,30}".prop_map(|s| format!("={}\r\n{s}\r\n", s.len()).into_bytes()),
        prop::collection::vec("[ -~]{1,20}", 0..4).prop_map(|pieces| {
            let pieces = pieces.iter().map(|p| format!(";{}\r\n{p}\r\n", p.len()));
            format!("$?\r\n{};0\r\n", pieces.collect::<String>()).into_bytes()
        }),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        let out_of_band =
            (prop::sample::select(vec!['>', '|']), prop::collection::vec(inner.clone(), 0..3));
        let out_of_band = out_of_band.prop_map(|(kind, inner)| aggregate(kind, &inner));
        let several = (
            prop::sample::select(vec!['*', '~', '%']),
            any::<bool>(),
            prop::option::of(out_of_band),
            prop::collection::vec(inner, 0..6),
        );
        several.prop_map(|(kind, streamed, out_of_band, inner)| {
            let out_of_band = out_of_band.unwrap_or_default();
            if streamed {
                let head = format!("{kind}?\r\n");
                return [head.as_bytes(), &out_of_band, &inner.concat(), b".\r\n"].concat();
            }
            [out_of_band, aggregate(kind, &inner)].concat()
        })
    })
}

/// An aggregate of these elements; kinds that count pairs drop the last of an odd number.
fn aggregate(kind: char, inner: &[Vec<u8>]) -> Vec<u8> {
    let (announced, elements) = match kind {
        '%' | '|' => (inner.len() / 2, inner.len() / 2 * 2),
        _ => (inner.len(), inner.len()),
    };
    [format!("{kind}{announced}\r\n").as_bytes(), &inner[..elements].concat()].concat()
}

proptest! {
    #[test]
    fn each_reply_is_parsed_to_its_end(
        replies in prop::collection::vec(element(), 1..5), expect in expects(), cuts in cuts()
    ) {
        let stream = replies.concat();
        let whole = parse(&stream, &expect, &[stream.len()]);
        prop_assert_eq!(&whole.fault, &None);
        prop_assert_eq!(whole.judged.len(), replies.len());
        prop_assert_eq!(whole.taken, stream.len());
        prop_assert_eq!(parse(&stream, &expect, &cuts), whole);
    }

    #[test]
    fn arbitrary_bytes_parse_the_same_however_split(
        bytes in prop::collection::vec(any::<u8>(), 1..300), expect in expects(), cuts in cuts()
    ) {
        let whole = parse(&bytes, &expect, &[bytes.len()]);
        let cut = parse(&bytes, &expect, &cuts);
        prop_assert_eq!((cut.judged, cut.fault), (whole.judged, whole.fault));
    }

    #[test]
    fn reply_like_bytes_parse_the_same_however_split(
        text in "([-+:$*_#,(!=%~>|.;]([0-9?-]{1,2}|OK|t)?\r?\n|[a-z:]{0,3}){1,40}",
        expect in expects(),
        cuts in cuts()
    ) {
        let bytes = text.as_bytes();
        if bytes.is_empty() {
            return Ok(());
        }
        let whole = parse(bytes, &expect, &[bytes.len()]);
        let cut = parse(bytes, &expect, &cuts);
        prop_assert_eq!((cut.judged, cut.fault), (whole.judged, whole.fault));
    }

    /// One changed byte in a stream of valid replies.
    #[test]
    fn a_flipped_byte_parses_the_same_however_split(
        replies in prop::collection::vec(element(), 1..4),
        expect in expects(), cuts in cuts(), at in any::<prop::sample::Index>(), byte in any::<u8>()
    ) {
        let mut stream = replies.concat();
        let at = at.index(stream.len());
        stream[at] = byte;
        let whole = parse(&stream, &expect, &[stream.len()]);
        let cut = parse(&stream, &expect, &cuts);
        prop_assert_eq!((cut.judged, cut.fault), (whole.judged, whole.fault));
    }
}
