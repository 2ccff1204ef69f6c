//! Tests the parser with every kind of reply, every split and arbitrary bytes.

use super::*;
use crate::lines::LINE_BYTES_MAX;
use crate::replay::{self, cuts, expects};
use crate::streams::{self, ANY, DONE, ParsedStream, VALUE, VALUES};
use model::ErrorClass;
use proptest::prelude::*;

const OK: Judged = Judged::Ok { verified: false };

fn parse(stream: &[u8], expect: &Expect, pieces: &[usize]) -> ParsedStream {
    streams::parse_stream::<Replies>(stream, expect, pieces)
}

fn reply(stream: &str, expect: &Expect) -> Judged {
    replay::reply::<Replies>(stream.as_bytes(), expect)
}

fn fault(stream: &str) -> String {
    replay::fault::<Replies>(stream.as_bytes())
}

#[test]
fn replies_are_classified_by_the_requested_shape() {
    use Judged::{Miss, Wrong};
    // Each with its classification for Any, Done and Value.
    let cases = [
        ("STORED", [OK, OK, Wrong]),
        ("DELETED", [OK, OK, Wrong]),
        ("TOUCHED", [OK, OK, Wrong]),
        ("OK", [OK, OK, Wrong]),
        ("HD", [OK, OK, Wrong]),
        ("HD c12 t60", [OK, OK, Wrong]),
        ("NOT_STORED", [OK, Wrong, Wrong]),
        ("EXISTS", [OK, Wrong, Wrong]),
        ("NS", [OK, Wrong, Wrong]),
        ("EX", [OK, Wrong, Wrong]),
        ("MN", [OK, Wrong, Wrong]),
        ("ME foo exp=-1 la=5", [OK, Wrong, Wrong]),
        ("VERSION 1.6.18", [OK, Wrong, Wrong]),
        ("RESET", [OK, Wrong, Wrong]),
        ("12", [OK, Wrong, Wrong]),
        ("18446744073709551615", [OK, Wrong, Wrong]),
        ("NOT_FOUND", [Miss, Miss, Miss]),
        ("NF", [Miss, Miss, Miss]),
        ("EN", [Miss, Miss, Miss]),
        ("END", [Miss, Miss, Miss]),
        ("VALUE k 0 2\r\nab\r\nEND", [OK, Wrong, OK]),
        ("VALUE k 7 0 99\r\n\r\nEND", [OK, Wrong, OK]),
        ("VALUE a 0 1\r\na\r\nVALUE b 0 3\r\n\r\nb\r\nEND", [OK, Wrong, Wrong]),
        ("VA 2\r\nab", [OK, Wrong, OK]),
        ("VA 0 s0 c5\r\n", [OK, Wrong, OK]),
        ("STAT pid 1\r\nSTAT uptime 2\r\nEND", [OK, Wrong, Wrong]),
    ];
    for (words, expected) in cases {
        for (expect, expected) in [ANY, DONE, VALUE].iter().zip(expected) {
            assert_eq!(reply(&format!("{words}\r\n"), expect), expected, "{words} {expect:?}");
        }
    }
}

#[test]
fn values_are_checked_for_length_and_content() {
    let mut value = Vec::new();
    VALUES.append(&mut value, 42, 3, 100);
    let mut other = value.clone();
    other[50] ^= 1;
    let framed = |value: &[u8]| {
        let value = std::str::from_utf8(value).unwrap();
        let bytes = value.len();
        [
            format!("VALUE k0042 0 {bytes}\r\n{value}\r\nEND\r\n"),
            format!("VA {bytes}\r\n{value}\r\n"),
        ]
    };
    let expect = Expect { bytes: Some(100), verify: true, key: 42, ..VALUE };
    for (good, bad) in framed(&value).into_iter().zip(framed(&other)) {
        assert_eq!(reply(&good, &expect), Judged::Ok { verified: true }, "{good}");
        assert_eq!(reply(&good, &Expect { verify: false, ..expect }), OK);
        assert_eq!(
            reply(&good, &Expect { verify: false, bytes: Some(99), ..expect }),
            Judged::Wrong
        );
        assert_eq!(reply(&bad, &expect), Judged::Wrong, "{bad}");
        assert_eq!(reply(&bad, &Expect { verify: false, ..expect }), OK);
    }
}

#[test]
fn another_keys_value_is_wrong() {
    let own = Expect { bytes: Some(2), key: 1042, ..VALUE };
    for name in ["key:000000001042", "1042", "71042", "k1042"] {
        assert_eq!(reply(&format!("VALUE {name} 0 2\r\nab\r\nEND\r\n"), &own), OK, "{name}");
        assert_eq!(reply(&format!("VA 2 k{name} t0\r\nab\r\n"), &own), OK, "{name}");
        assert_eq!(reply(&format!("HD t0 k{name}\r\n"), &Expect { shape: Shape::Done, ..own }), OK);
    }
    for name in ["key:000000001043", "042", "", "1042a", "key:000000002042"] {
        let text = format!("VALUE {name} 0 2\r\nab\r\nEND\r\n");
        assert_eq!(reply(&text, &own), Judged::Wrong, "{name}");
        assert_eq!(reply(&text, &Expect { bytes: None, ..own }), OK, "custom key");
        assert_eq!(reply(&format!("VA 2 k{name}\r\nab\r\n"), &own), Judged::Wrong, "{name}");
        let done = Expect { shape: Shape::Done, ..own };
        assert_eq!(reply(&format!("HD k{name}\r\n"), &done), Judged::Wrong, "{name}");
    }
    assert_eq!(reply("VA 2 kMTA0Mw== b\r\nab\r\n", &own), OK, "base64 names are not checked");
    assert_eq!(reply("VALUE k0 0 2\r\nab\r\nEND\r\n", &Expect { key: 0, ..own }), OK);
}

#[test]
fn errors_have_classes() {
    let classes = [
        ("SERVER_ERROR out of memory storing object", ErrorClass::Full),
        ("SERVER_ERROR out of memory", ErrorClass::Full),
        ("SERVER_ERROR object too large for cache", ErrorClass::TooLarge),
        ("SERVER_ERROR busy", ErrorClass::Reply),
        ("CLIENT_ERROR bad data chunk", ErrorClass::Reply),
        ("CLIENT_ERROR unauthenticated", ErrorClass::Denied),
        ("CLIENT_ERROR authentication failure", ErrorClass::Denied),
        ("ERROR", ErrorClass::Reply),
        ("ERROR Too many open connections", ErrorClass::Refused),
    ];
    for (words, class) in classes {
        for expect in [ANY, DONE, VALUE] {
            let judged = reply(&format!("{words}\r\n"), &expect);
            assert_eq!(judged, Judged::Error(class, words.into()));
        }
    }
    let long = reply(&format!("SERVER_ERROR {}\r\n", "x".repeat(500)), &ANY);
    assert!(matches!(long, Judged::Error(ErrorClass::Reply, words) if words.len() == 200));
    // An error can end a list early.
    let broken = "VALUE a 0 1\r\na\r\nSERVER_ERROR out of memory writing get response\r\n";
    assert!(matches!(reply(broken, &VALUE), Judged::Error(ErrorClass::Full, _)));
}

#[test]
fn invalid_replies_are_malformed() {
    assert!(
        fault("HTTP/1.1 400 Bad Request\r\n").contains("`HTTP/1.1 400 Bad Request` is not a reply")
    );
    assert!(fault("\r\n").contains("`` is not a reply"));
    assert!(fault("STORED\n").contains("carriage return"));
    assert!(fault("-1\r\n").contains("`-1` is not a reply"));
    assert!(fault("VALUE a 0\r\n").contains("without a length"));
    assert!(fault("VALUE a\r\nb 0 1\r\nx\r\nEND\r\n").contains("without a length"));
    assert!(fault("VALUE a 0 x\r\n").contains("`x` is not a length"));
    assert!(fault("VALUE a 0 1234567890123456789\r\n").contains("not a length"));
    assert!(fault("VA\r\n").contains("`` is not a length"));
    assert!(fault("VA -1\r\n").contains("`-1` is not a length"));
    assert!(fault("VA 2\r\nabc\r\n").contains("continues beyond"));
    assert!(fault("VALUE a 0 2\r\nabc\r\nEND\r\n").contains("continues beyond"));
    let line = |bytes: usize| format!("ME {}\r\n", "x".repeat(bytes));
    assert_eq!(reply(&line(LINE_BYTES_MAX - 5), &ANY), OK);
    assert!(fault(&line(LINE_BYTES_MAX - 4)).contains("longer than 65536"));
}

#[test]
fn a_huge_value_is_consumed_in_pieces() {
    let mut parser = Replies::default();
    let head = b"VA 999999999999999999\r\nabc";
    assert_eq!(parser.advance(head, &VALUE, &VALUES), Ok(Step::More { used: head.len() }));
    assert_eq!(parser.advance(&[b'x'; 4096], &VALUE, &VALUES), Ok(Step::More { used: 4096 }));
}

/// A well-formed reply.
fn a_reply() -> impl Strategy<Value = Vec<u8>> {
    let bytes = || prop::collection::vec(any::<u8>(), 0..40);
    let listed = ("[a-z]{1,8}[0-9]", 0_u32..99, bytes(), prop::option::of(0_u64..99)).prop_map(
        |(key, flags, bytes, cas)| {
            let cas = cas.map(|cas| format!(" {cas}")).unwrap_or_default();
            let head = format!("VALUE {key} {flags} {}{cas}\r\n", bytes.len());
            [head.as_bytes(), &bytes, b"\r\n"].concat()
        },
    );
    prop_oneof![
        prop::sample::select(vec!["STORED", "HD", "EN", "NF", "NOT_FOUND", "ERROR", "7", "HD kx5"])
            .prop_map(|word| format!("{word}\r\n").into_bytes()),
        "(SERVER|CLIENT)_ERROR [ -~]{0,30}".prop_map(|line| format!("{line}\r\n").into_bytes()),
        prop::collection::vec(listed, 0..3).prop_map(|mut values| {
            values.push(b"END\r\n".to_vec());
            values.concat()
        }),
        ("( [a-z][0-9]{0,3}){0,3}", bytes()).prop_map(|(flags, bytes)| {
            let head = format!("VA {}{flags}\r\n", bytes.len());
            [head.as_bytes(), &bytes, b"\r\n"].concat()
        }),
    ]
}

proptest! {
    #[test]
    fn each_reply_is_parsed_to_its_end(
        replies in prop::collection::vec(a_reply(), 1..6), expect in expects(), cuts in cuts()
    ) {
        let stream = replies.concat();
        let whole = parse(&stream, &expect, &[stream.len()]);
        prop_assert_eq!(&whole.fault, &None);
        prop_assert_eq!((whole.judged.len(), whole.taken), (replies.len(), stream.len()));
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
        text in "(VALUE|VA|END|EN|HD|STAT|STORED|ERROR|SERVER_ERROR|[0-9]{1,2}| |k5|b|a|\r?\n){1,60}",
        expect in expects(),
        cuts in cuts()
    ) {
        let whole = parse(text.as_bytes(), &expect, &[text.len()]);
        let cut = parse(text.as_bytes(), &expect, &cuts);
        prop_assert_eq!((cut.judged, cut.fault), (whole.judged, whole.fault));
    }

    #[test]
    fn a_flipped_byte_parses_the_same_however_split(
        replies in prop::collection::vec(a_reply(), 1..4),
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
