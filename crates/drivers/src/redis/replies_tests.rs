//! The parser against every form, every cut and any bytes.

use super::*;
use crate::lines::LINE_BYTES_MAX;
use crate::replay::{self, OK, cuts, expects};
use crate::streams::{self, ANY, DONE, Told, VALUE, VALUES};
use model::ErrorClass;
use proptest::prelude::*;

/// What a stream held, however it was cut.
fn told(stream: &[u8], expect: &Expect, pieces: &[usize]) -> Told {
    streams::told::<Replies>(stream, expect, pieces)
}

fn reply(stream: &[u8], expect: &Expect) -> Judged {
    replay::reply::<Replies>(stream, expect)
}

fn fault(stream: &[u8]) -> String {
    replay::fault::<Replies>(stream)
}

#[test]
fn any_is_all_but_an_error() {
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
fn done_is_ok_and_nothing_else() {
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
fn a_value_is_a_string_or_a_miss() {
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
fn what_nobody_asked_for_answers_nothing() {
    let push = b">3\r\n+message\r\n-ERR not of the reply\r\n*1\r\n:1\r\n".as_slice();
    assert_eq!(told(push, &ANY, &[5]), Told { judged: vec![], taken: push.len(), fault: None });
    let attribute = b"|1\r\n+ttl\r\n%1\r\n+a\r\n-b\r\n".as_slice();
    for aside in [push, attribute, b">0\r\n", b"|0\r\n"] {
        assert_eq!(reply(&[aside, b"$1\r\nx\r\n"].concat(), &VALUE), OK);
        assert_eq!(reply(&[b"*2\r\n:1\r\n", aside, b":2\r\n"].concat(), &ANY), OK);
        assert_eq!(reply(&[b"*1\r\n", aside, b"*1\r\n", aside, b"_\r\n"].concat(), &ANY), OK);
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
fn an_error_within_a_reply_counts() {
    let stream = b"*3\r\n+OK\r\n-WRONGTYPE no\r\n-OOM no\r\n";
    assert_eq!(reply(stream, &ANY), Judged::Error(ErrorClass::Reply, "WRONGTYPE no".into()));
    assert_eq!(reply(b"*1\r\n!3\r\nOOM\r\n", &ANY), Judged::Error(ErrorClass::Full, "OOM".into()));
    // An address is of use for a whole request only.
    let within = reply(b"*1\r\n-MOVED 1 a:1\r\n", &ANY);
    assert_eq!(within, Judged::Error(ErrorClass::Reply, "MOVED 1 a:1".into()));
}

#[test]
fn a_key_may_live_elsewhere() {
    for address in ["127.0.0.1:6381", "2001:db8::1:7000", ":6381", "shop.example:65535"] {
        for (word, for_good) in [("MOVED", true), ("ASK", false)] {
            let line = format!("-{word} 16383 {address}\r\n");
            let expected = Judged::Elsewhere { address: address.into(), for_good };
            assert_eq!(reply(line.as_bytes(), &VALUE), expected);
        }
    }
}

#[test]
fn what_is_not_resp_is_refused() {
    assert!(fault(b"HTTP/1.1 400 Bad Request\r\n").contains("byte 0x48"));
    assert!(fault(b"+OK\n").contains("carriage return"));
    assert!(fault(b"+\n").contains("carriage return"));
    assert!(fault(b"$-2\r\n").contains("`-2` is no length"));
    assert!(fault(b"$+3\r\n").contains("`+3`"));
    assert!(fault(b"$\r\n").contains("`` is no length"));
    assert!(fault(b"$1234567890123456789\r\n").contains("no length"));
    assert!(fault(b"*1x\r\n").contains("`1x`"));
    assert!(fault(b"%-1\r\n").contains("`-1`"));
    assert!(fault(b">?\r\n").contains("`?`"));
    assert!(fault(b":1x\r\n").contains("`:1x` is no element"));
    assert!(fault(b":\r\n").contains("`:`"));
    assert!(fault(b"#x\r\n").contains("`#x`"));
    assert!(fault(b",x\r\n").contains("`,x`"));
    assert!(fault(b"_x\r\n").contains("`_x`"));
    assert!(fault(b".\r\n").contains("no aggregate is streamed"));
    assert!(fault(b"*1\r\n.\r\n").contains("no aggregate is streamed"));
    assert!(fault(b"$2\r\nabc\r\n").contains("goes on"));
    assert!(fault(b"=3\r\nabc\r\n").contains("verbatim"));
    assert!(fault(b"=5\r\nabcde\r\n").contains("names no format"));
    assert!(fault(b"$?\r\n+x\r\n").contains("expected `;`"));
    assert!(fault(b";1\r\n").contains("byte 0x3b"));
}

#[test]
fn lines_depth_and_elements_are_bounded() {
    let line = |bytes: usize| [b"+", "x".repeat(bytes).as_bytes(), b"\r\n"].concat();
    assert_eq!(told(&line(LINE_BYTES_MAX - 3), &ANY, &[1000]).judged, [OK]);
    assert!(fault(&line(LINE_BYTES_MAX - 2)).contains("longer than 65536"));
    assert!(fault(&vec![b'$'; LINE_BYTES_MAX]).contains("longer than 65536"));
    let deep = |depth| [b"*1\r\n".repeat(depth), b":1\r\n".to_vec()].concat();
    assert_eq!(reply(&deep(32), &ANY), OK);
    assert!(fault(&deep(33)).contains("more than 32"));
    assert!(fault(b"*4294967297\r\n").contains("4294967296 elements"));
    assert!(fault(b"%2147483649\r\n").contains("4294967296 elements"));
    assert!(fault(b"*2\r\n*4294967295\r\n").contains("4294967296 elements"));
    // The bound is one of a reply, not of a connection.
    let many = b"*4294967296\r\n";
    assert_eq!(told(many, &ANY, &[1]).fault, None);
    let push = b">1\r\n:1\r\n*1\r\n:1\r\n".repeat(3);
    assert_eq!(told(&push, &ANY, &[7]).judged, [OK, OK, OK]);
}

#[test]
fn a_huge_body_is_taken_as_it_comes() {
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
        let aside =
            (prop::sample::select(vec!['>', '|']), prop::collection::vec(inner.clone(), 0..3));
        let aside = aside.prop_map(|(kind, inner)| aggregate(kind, &inner));
        let several = (
            prop::sample::select(vec!['*', '~', '%']),
            any::<bool>(),
            prop::option::of(aside),
            prop::collection::vec(inner, 0..6),
        );
        several.prop_map(|(kind, streamed, aside, inner)| {
            let aside = aside.unwrap_or_default();
            if streamed {
                let head = format!("{kind}?\r\n");
                return [head.as_bytes(), &aside, &inner.concat(), b".\r\n"].concat();
            }
            [aside, aggregate(kind, &inner)].concat()
        })
    })
}

/// An aggregate of these elements; one that counts by pairs loses the last of an odd number.
fn aggregate(kind: char, inner: &[Vec<u8>]) -> Vec<u8> {
    let (announced, elements) = match kind {
        '%' | '|' => (inner.len() / 2, inner.len() / 2 * 2),
        _ => (inner.len(), inner.len()),
    };
    [format!("{kind}{announced}\r\n").as_bytes(), &inner[..elements].concat()].concat()
}

proptest! {
    #[test]
    fn replies_end_where_they_end(
        replies in prop::collection::vec(element(), 1..5), expect in expects(), cuts in cuts()
    ) {
        let stream = replies.concat();
        let whole = told(&stream, &expect, &[stream.len()]);
        prop_assert_eq!(&whole.fault, &None);
        prop_assert_eq!(whole.judged.len(), replies.len());
        prop_assert_eq!(whole.taken, stream.len());
        prop_assert_eq!(told(&stream, &expect, &cuts), whole);
    }

    #[test]
    fn any_bytes_are_survived_and_cuts_change_nothing(
        bytes in prop::collection::vec(any::<u8>(), 1..300), expect in expects(), cuts in cuts()
    ) {
        let whole = told(&bytes, &expect, &[bytes.len()]);
        let cut = told(&bytes, &expect, &cuts);
        prop_assert_eq!((cut.judged, cut.fault), (whole.judged, whole.fault));
    }

    #[test]
    fn bytes_that_look_like_replies_are_survived(
        text in "([-+:$*_#,(!=%~>|.;]([0-9?-]{1,2}|OK|t)?\r?\n|[a-z:]{0,3}){1,40}",
        expect in expects(),
        cuts in cuts()
    ) {
        let bytes = text.as_bytes();
        if bytes.is_empty() {
            return Ok(());
        }
        let whole = told(bytes, &expect, &[bytes.len()]);
        let cut = told(bytes, &expect, &cuts);
        prop_assert_eq!((cut.judged, cut.fault), (whole.judged, whole.fault));
    }

    /// One changed byte of a stream of good replies.
    #[test]
    fn a_flipped_byte_is_survived(
        replies in prop::collection::vec(element(), 1..4),
        expect in expects(), cuts in cuts(), at in any::<prop::sample::Index>(), byte in any::<u8>()
    ) {
        let mut stream = replies.concat();
        let at = at.index(stream.len());
        stream[at] = byte;
        let whole = told(&stream, &expect, &[stream.len()]);
        let cut = told(&stream, &expect, &cuts);
        prop_assert_eq!((cut.judged, cut.fault), (whole.judged, whole.fault));
    }
}
