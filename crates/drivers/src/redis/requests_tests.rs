//! Tests command lines, their requests on the wire, and the first requests of a connection.

use super::*;
use crate::redis::hello::{Login, hello};
use crate::redis::resp::{Tree, parse_tree};
use load::wire::template::{Filling, Template};
use model::Secret;
use proptest::prelude::*;
use workloads::kv::{Key, KeyNames, Stream, Values};

const FIXED: Placeholders =
    Placeholders { key_bytes: Some(16), value_bytes: Some(5), below: Some(1000) };

fn words(text: &str) -> Result<Vec<Vec<u8>>, String> {
    arguments::split(text)
}

/// The request on the wire for key 7 and values of 5 bytes, split into its arguments by the parser
/// of administration.
fn sent(request: &Request) -> Vec<Vec<u8>> {
    let (names, values) = (KeyNames::default(), Values::new(1));
    let mut out = Vec::new();
    let filling = Filling {
        key: Key(7),
        n: 1,
        digits: Stream::new(1, 2),
        value_bytes: 5,
        names: &names,
        values: &values,
    };
    let template = Template::new(request.segments.clone(), &names, Some(5));
    template.append(&mut out, &filling);
    let (tree, used) = parse_tree(&out).unwrap().unwrap();
    assert_eq!(used, out.len());
    let Tree::List(list) = tree else { panic!("{tree:?}") };
    let text = |tree| if let Tree::Text(text) = tree { text } else { panic!("{tree:?}") };
    list.into_iter().map(text).collect()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn command_lines_are_split_as_redis_cli_does() {
    let cases: [(&str, &[&[u8]]); 13] = [
        ("", &[]),
        ("  \t\n ", &[]),
        ("GET a", &[b"GET", b"a"]),
        ("  GET\t\ta \r\n", &[b"GET", b"a"]),
        (r#"SET a """#, &[b"SET", b"a", b""]),
        (r#"SET 'a b' "c d""#, &[b"SET", b"a b", b"c d"]),
        (r#""\n\r\t\b\a\\\"\q""#, &[b"\n\r\t\x08\x07\\\"q"]),
        (r#""\x00\xfF\x4g\x""#, &[b"\x00\xffx4gx"]),
        (r"'\n \' \\ '", &[br"\n ' \\ "]),
        (r#"ab"c d" e"#, &[b"abc d", b"e"]),
        (r"ab'c d'", &[b"abc d"]),
        (r"a\nb", &[br"a\nb"]),
        ("GET ü", &[b"GET", "ü".as_bytes()]),
    ];
    for (line, expected) in cases {
        assert_eq!(words(line).unwrap(), expected, "{line:?}");
    }
}

#[test]
fn an_unpaired_quotation_mark_is_located() {
    assert_eq!(
        words("GÖT \"a b").unwrap_err(),
        "the quotation mark at character 5 of `GÖT \"a b` is not closed (expected a second `\"`)"
    );
    assert_eq!(
        words("GET 'a'b").unwrap_err(),
        "the quotation mark at character 7 of `GET 'a'b` does not end a word (expected a space \
         after it)"
    );
    assert!(words("GET \"a\\").unwrap_err().contains("not closed"));
    assert!(words("GET \"a\\\"").unwrap_err().contains("not closed"));
    assert!(words("GET 'a\\'").unwrap_err().contains("not closed"));
}

#[test]
fn placeholders_are_filled_and_lengths_are_correct() {
    let own = custom("HSET __key__ field __data__", &FIXED).unwrap();
    let value = {
        let mut value = Vec::new();
        Values::new(1).append(&mut value, 7, 1, 5);
        value
    };
    let expected: [&[u8]; 4] = [b"HSET", b"key:000000000007", b"field", &value];
    assert_eq!(sent(&own), expected);
    assert!(own.writes && !own.reads_whole && own.shape == Shape::Any);

    let mixed = custom("SET {__key__}:__rand_int__:__rand_int__ <__data__>", &FIXED).unwrap();
    let sent = sent(&mixed);
    assert_eq!(sent[2], [b"<", value.as_slice(), b">"].concat());
    let key: Vec<&str> = text(&sent[1]).split(':').collect();
    assert_eq!(key[..2], ["{key", "000000000007}"]);
    assert!(key[2..].iter().all(|digits| digits.len() == 12), "{key:?}");
    assert!(key[2..].iter().all(|digits| digits.parse::<u64>().unwrap() < 1000));
    assert_ne!(key[2], key[3], "each is drawn separately");
}

#[test]
fn varying_lengths_stay_placeholders_and_cannot_be_joined() {
    let holes = Placeholders::default();
    let request = custom("SET __key__ __data__", &holes).unwrap();
    assert!(request.segments.contains(&Segment::KeyLength));
    assert!(request.segments.contains(&Segment::ValueLength));
    let problem = custom("SET a:__key__ x", &holes).unwrap_err();
    assert_eq!(
        problem,
        "argument 1 joins `__key__` with something else, and its length varies (expected __key__ \
         alone, or one length for all: key names of one length)"
    );
    let problem = custom("SET a __data____data__", &holes).unwrap_err();
    assert!(problem.starts_with("argument 2 joins `__data__`"), "{problem}");
    assert_eq!(custom(" ", &holes), Err(EMPTY.into()));
}

#[test]
fn rand_int_is_literal_without_a_bound() {
    let request = custom("GET key:__rand_int__", &Placeholders::default()).unwrap();
    assert_eq!(sent(&request), [b"GET".as_slice(), b"key:__rand_int__"]);
}

#[test]
fn operations_have_the_expected_reply_shape() {
    let shape = |name| operation(name, None, &FIXED).unwrap().shape;
    for (name, expected) in [
        ("get", Shape::Value),
        ("getdel", Shape::Value),
        ("hget", Shape::Value),
        ("lpop", Shape::Value),
        ("set", Shape::Done),
        ("setnx", Shape::Any),
        ("getset", Shape::Any),
        ("incr", Shape::Any),
        ("del", Shape::Any),
        ("ping", Shape::Any),
    ] {
        assert_eq!(shape(name), expected, "{name}");
    }
    let own = |text| custom(text, &FIXED).unwrap();
    assert_eq!(own("lpop l 2").shape, Shape::Any);
    assert_eq!(own("set k v ex 5").shape, Shape::Done);
    assert_eq!(own("Set k v Px 5 Nx").shape, Shape::Any);
    assert!(own("getex __key__ EX 9").reads_whole);
    assert!(!own("GET other").reads_whole);
    assert!(!own("HGET __key__ f").reads_whole);
    let with_life = operation("set", Some(60), &FIXED).unwrap();
    assert_eq!(sent(&with_life)[3..], [b"EX".as_slice(), b"60"]);
    assert_eq!(with_life.shape, Shape::Done);
    let problem = operation("gte", None, &FIXED).unwrap_err();
    assert!(problem.starts_with("unknown operation `gte` (expected get, set, setnx,"), "{problem}");
}

#[test]
fn each_greeting_request_has_an_expected_reply() {
    let secret = Secret::new("p w");
    let login = Login {
        user: Some("ann"),
        password: Some(&secret),
        database: 3,
        resp3: true,
        client_name: Some("me"),
        primary_only: true,
    };
    let greeting = hello(&login);
    assert_eq!(
        text(&greeting.bytes),
        "*3\r\n$4\r\nAUTH\r\n$3\r\nann\r\n$3\r\np w\r\n*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n\
         *2\r\n$6\r\nSELECT\r\n$1\r\n3\r\n*3\r\n$6\r\nCLIENT\r\n$7\r\nSETNAME\r\n$2\r\nme\r\n\
         *3\r\n$4\r\nWAIT\r\n$1\r\n0\r\n$1\r\n0\r\n"
    );
    let flags: Vec<_> =
        greeting.replies.iter().map(|r| (r.expect.shape, r.harmless, r.secret)).collect();
    assert_eq!(
        flags,
        [
            (Shape::Done, false, true),
            (Shape::Any, false, false),
            (Shape::Done, false, false),
            (Shape::Done, true, false),
            (Shape::Any, false, false)
        ]
    );
    assert!(!format!("{greeting:?}").contains("112, 32, 119"), "the password's bytes");
    let nothing = hello(&Login::default());
    assert!(nothing.bytes.is_empty() && nothing.replies.is_empty());
}

proptest! {
    /// Quoting any arguments and splitting them again returns the same arguments.
    #[test]
    fn quoted_arguments_round_trip(
        arguments in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 0..6)
    ) {
        let quote = |bytes: &Vec<u8>| {
            let inner: Vec<String> = bytes.iter().map(|b| format!("\\x{b:02x}")).collect();
            format!("\"{}\"", inner.concat())
        };
        let line: Vec<String> = arguments.iter().map(quote).collect();
        prop_assert_eq!(words(&line.join("  ")), Ok(arguments));
    }

    #[test]
    fn any_line_parses_without_panic(line in "[a-zA-Z \"'\\\\\\x00-\\x20ü_]{0,60}") {
        let _ = custom(&line, &FIXED);
    }

    /// Every request is an array of strings with correct lengths.
    #[test]
    fn requests_parse_back(
        parts in prop::collection::vec("([a-z ]|__key__|__data__|__rand_int__|__){0,6}", 1..6)
    ) {
        let arguments: Vec<Vec<u8>> = parts.iter().map(|p| p.clone().into_bytes()).collect();
        let sent = sent(&split(&arguments, &FIXED).unwrap());
        prop_assert_eq!(sent.len(), parts.len());
        for (part, sent) in parts.iter().zip(sent) {
            let holes = ["__key__", "__data__", "__rand_int__"].map(|hole| part.matches(hole).count());
            let bytes = part.len() + holes[0] * (16 - 7) - holes[1] * (8 - 5);
            prop_assert_eq!(sent.len(), bytes, "{}", part);
        }
    }
}
