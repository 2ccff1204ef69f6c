//! Commands on the wire, and rejected commands.

use super::*;
use load::wire::template::{Filling, Template};
use proptest::prelude::*;
use workloads::kv::{Key, KeyNames, Stream, Values};

const FIXED: Placeholders =
    Placeholders { key_bytes: Some(16), value_bytes: Some(20), below: None };
/// Values of varying length, whose placeholder the engine fills.
const VARYING: Placeholders = Placeholders { value_bytes: None, ..FIXED };

fn value() -> String {
    let mut value = Vec::new();
    Values::new(1).append(&mut value, 7, 1, 20);
    String::from_utf8(value).unwrap()
}

/// The request on the wire, for key 7 and a value of 20 bytes.
fn sent(request: &Request) -> String {
    let (names, values) = (KeyNames::default(), Values::new(1));
    let digits = Stream::new(1, 2);
    let filling =
        Filling { key: Key(7), n: 1, digits, value_bytes: 20, names: &names, values: &values };
    let mut out = Vec::new();
    Template::new(request.segments.clone(), &names, None).append(&mut out, &filling);
    String::from_utf8(out).unwrap()
}

#[test]
fn operations_are_encoded_as_text_and_meta_commands() {
    let key = "key:000000000007";
    let value = value();
    let cases = [
        ("get", format!("get {key}\r\n"), format!("mg {key} v\r\n"), Shape::Value),
        ("gat", format!("gat 60 {key}\r\n"), format!("mg {key} v T60\r\n"), Shape::Value),
        (
            "set",
            format!("set {key} 0 60 20\r\n{value}\r\n"),
            format!("ms {key} 20 T60\r\n{value}\r\n"),
            Shape::Done,
        ),
        (
            "add",
            format!("add {key} 0 60 20\r\n{value}\r\n"),
            format!("ms {key} 20 ME T60\r\n{value}\r\n"),
            Shape::Any,
        ),
        ("del", format!("delete {key}\r\n"), format!("md {key}\r\n"), Shape::Done),
        ("incr", format!("incr {key} 1\r\n"), format!("ma {key}\r\n"), Shape::Any),
        ("touch", format!("touch {key} 60\r\n"), format!("mg {key} T60\r\n"), Shape::Done),
        ("ping", "version\r\n".into(), "mn\r\n".into(), Shape::Any),
    ];
    for (name, text, meta, shape) in cases {
        for (protocol, expected) in
            [(MemcachedProtocol::Text, text), (MemcachedProtocol::Meta, meta)]
        {
            for holes in [FIXED, VARYING] {
                let request = operation(protocol, name, Some(60), &holes).unwrap();
                assert_eq!(sent(&request), expected, "{name}");
                assert_eq!(request.shape, shape, "{name}");
                assert_eq!(request.writes, expected.contains(&value), "{name}");
                assert_eq!(request.reads_whole, shape == Shape::Value, "{name}");
            }
        }
    }
    let without = operation(MemcachedProtocol::Text, "set", None, &FIXED).unwrap();
    assert!(sent(&without).starts_with("set key:000000000007 0 0 20\r\n"));
}

#[test]
fn custom_commands_are_completed() {
    let own = |text| custom(text, &FIXED).unwrap();
    assert_eq!(
        sent(&own("set a:__key__:b 5 0 <__data__>")).lines().next(),
        Some("set a:key:000000000007:b 5 0 22")
    );
    assert_eq!(sent(&own("set k 0 0 'two words'")), "set k 0 0 9\r\ntwo words\r\n");
    assert_eq!(sent(&own("set k 0 0 ''")), "set k 0 0 0\r\n\r\n");
    assert_eq!(sent(&own("get a b")), "get a b\r\n");
    assert_eq!(own("get a b").shape, Shape::Any);
    assert_eq!(own("mg k").shape, Shape::Done);
    assert_eq!(own("ms k C5 x").shape, Shape::Any);
    assert!(!own("get other").reads_whole);
    assert!(own("mg __key__ k v").reads_whole);
}

#[test]
fn invalid_commands_are_rejected() {
    let problem = |text: &str| custom(text, &FIXED).unwrap_err();
    assert_eq!(
        problem("set k 0 0 v noreply"),
        "`set` with noreply has no reply (expected it without noreply)"
    );
    assert!(problem("mg k v q").contains("with the flag q has no reply"));
    assert!(problem("set k 0 0").contains("does not have four arguments"));
    assert!(problem("ms k").contains("`ms` has no value"));
    assert!(problem("cas k 0 0 v").contains("needs a number"));
    assert!(problem("get 'a b'").contains("argument 1 contains a space"));
    assert!(problem("get \"a\\r\\nflush_all\"").contains("argument 1 contains a space"));
    assert!(problem("get ''").contains("argument 1 contains a space"));
    assert!(problem(&format!("get {}__key__", "x".repeat(235))).contains("a key of `251` bytes"));
    assert!(problem("").contains("an empty command"));
    let life = operation(MemcachedProtocol::Text, "set", Some(2_592_001), &FIXED).unwrap_err();
    assert!(
        life.starts_with("a lifetime of `2592001` seconds (expected at most 2592000"),
        "{life}"
    );
    let unknown = operation(MemcachedProtocol::Meta, "lpush", None, &FIXED).unwrap_err();
    assert!(unknown.starts_with("unknown operation `lpush` (expected get, gets,"), "{unknown}");
}

#[test]
fn accounts_log_in_with_a_value() {
    let (bytes, replies) = hello("ann", &Secret::new("p w"));
    assert_eq!(bytes, b"set login 0 0 7\r\nann p w\r\n");
    assert!(matches!(replies[..], [Greeting { secret: true, harmless: false, .. }]));
    assert_eq!(replies[0].expect.shape, Shape::Done);
}

proptest! {
    /// For any input, a request consists of lines, and only a value can contain a line ending.
    #[test]
    fn no_argument_smuggles_a_command(text in "(get|set|ms|mg|touch|x)( |'|\"|\\\\r|\\\\n|[a-z0-9]|__key__|__data__|\n){0,30}") {
        if let Ok(request) = custom(&text, &FIXED) {
            let sent = sent(&request);
            let head = sent.split("\r\n").next().unwrap();
            prop_assert!(!head.contains(['\r', '\n']), "{:?}", sent);
            // Checks the sent bytes, since quotes can surround a name or appear inside it.
            let stores = ["set", "ms"].iter().any(|name| head.split(' ').next() == Some(name));
            if !stores {
                prop_assert_eq!(sent.len(), head.len() + 2, "{:?}", sent);
            }
        }
    }
}
