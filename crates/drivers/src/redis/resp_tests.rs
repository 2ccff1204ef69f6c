//! Tests the codec with every kind of reply, every split and arbitrary bytes.

use super::resp::{
    BULK_BYTES_MAX, LINE_BYTES_MAX, Malformed, PendingReply, Reply, Shape, Step, Tree, encode,
    parse, parse_tree,
};
use proptest::prelude::*;

fn whole(bytes: &[u8]) -> Reply<'_> {
    match parse(bytes) {
        Ok(Step::Whole { shape, used }) if used == bytes.len() => shape.reply(bytes).unwrap(),
        other => panic!("{other:?}"),
    }
}

fn error(bytes: &[u8]) -> String {
    let Malformed(message) = parse(bytes).unwrap_err();
    message
}

#[test]
fn every_type_is_parsed() {
    assert_eq!(whole(b"+OK\r\n"), Reply::Status(b"OK"));
    assert_eq!(whole(b"+\r\n"), Reply::Status(b""));
    assert_eq!(whole(b"-ERR no\r\n"), Reply::Error(b"ERR no"));
    assert_eq!(whole(b":-12\r\n"), Reply::Integer(-12));
    assert_eq!(whole(b"$3\r\na\r\n\r\n"), Reply::Bulk(b"a\r\n"));
    assert_eq!(whole(b"$0\r\n\r\n"), Reply::Bulk(b""));
    assert_eq!(whole(b"$-1\r\n"), Reply::Nil);
    assert_eq!(whole(b"*-1\r\n"), Reply::Nil);
    assert_eq!(parse(b"*2\r\n"), Ok(Step::Whole { shape: Shape::Array(2), used: 4 }));
}

#[test]
fn invalid_replies_are_malformed() {
    assert!(error(b"!x\r\n").contains("0x21"));
    assert!(error(b"HTTP/1.1 400\r\n").contains("0x48"));
    assert!(error(b"$-2\r\n").contains("`-2`"));
    assert!(error(b"$99999999999999999999\r\n").contains("not a number"));
    assert!(error(b"$+3\r\n").contains("not a number"));
    assert!(error(b"$\r\n").contains("not a number"));
    assert!(error(b":1x\r\n").contains("`1x`"));
    assert!(error(b"+OK\n").contains("carriage return"));
    assert!(error(b"+\n").contains("carriage return"));
    assert!(error(b"$2\r\nabc\r\n").contains("continues beyond"));
    assert!(error(format!("${}\r\n", BULK_BYTES_MAX + 1).as_bytes()).contains("expected 0 to"));
    assert!(error(&vec![b'+'; LINE_BYTES_MAX]).contains("longer than"));
}

#[test]
fn a_big_string_reports_the_missing_bytes() {
    let head = format!("${BULK_BYTES_MAX}\r\n");
    let total = head.len() + BULK_BYTES_MAX + 2;
    assert_eq!(parse(head.as_bytes()), Ok(Step::More { total }));
}

#[test]
fn arrays_are_limited() {
    let deep = b"*1\r\n".repeat(9);
    assert!(parse_tree(&deep).is_err());
    assert!(parse_tree(b"*1048577\r\n").is_err());
    let (tree, used) = parse_tree(b"*2\r\n$1\r\n0\r\n*1\r\n:7\r\n+x").unwrap().unwrap();
    let list = Tree::List(vec![Tree::Integer(7)]);
    assert_eq!((tree, used), (Tree::List(vec![Tree::Text(b"0".to_vec()), list]), 19));
}

#[test]
fn requests_are_arrays_of_strings() {
    let mut out = Vec::new();
    encode(&mut out, &[b"SETEX", b"key", b"300", b"0123456789"]);
    assert_eq!(out, b"*4\r\n$5\r\nSETEX\r\n$3\r\nkey\r\n$3\r\n300\r\n$10\r\n0123456789\r\n");
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..300)
}

/// A reply on the wire, of any type.
fn on_the_wire() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        "[ -~]{0,80}".prop_map(|s| format!("+{s}\r\n").into_bytes()),
        "[ -~]{0,80}".prop_map(|s| format!("-{s}\r\n").into_bytes()),
        any::<i64>().prop_map(|n| format!(":{n}\r\n").into_bytes()),
        Just(b"$-1\r\n".to_vec()),
        bytes().prop_map(|b| {
            let mut out = format!("${}\r\n", b.len()).into_bytes();
            out.extend_from_slice(&b);
            out.extend_from_slice(b"\r\n");
            out
        }),
    ]
}

proptest! {
    /// However a reply is split, each incomplete part asks for more bytes and the complete reply
    /// parses the same. The number of missing bytes is never overestimated.
    #[test]
    fn any_split_parses_the_same(reply in on_the_wire(), behind in bytes()) {
        let expected = parse(&reply).unwrap();
        for cut in 0..reply.len() {
            match parse(&reply[..cut]).unwrap() {
                Step::More { total } => prop_assert!(total > cut && total <= reply.len()),
                whole @ Step::Whole { .. } => prop_assert!(false, "{whole:?} of {cut} bytes"),
            }
        }
        let mut more = reply.clone();
        more.extend_from_slice(&behind);
        prop_assert_eq!(parse(&more).unwrap(), expected);
        prop_assert_eq!(parse_tree(&more).unwrap().unwrap().1, reply.len());
    }

    #[test]
    fn arbitrary_bytes_never_panic(
        kind in prop::sample::select(b"+-:$*\0x".to_vec()), mut rest in bytes()
    ) {
        rest.insert(0, kind);
        if let Ok(Step::Whole { shape, used }) = parse(&rest) {
            prop_assert!(used <= rest.len());
            let _ = shape.reply(&rest);
        }
        if let Ok(Some((_, used))) = parse_tree(&rest) {
            prop_assert!(used <= rest.len());
        }
    }

    #[test]
    fn digits_and_line_endings_never_panic(text in "[*$:+-][0-9*$:\r\n-]{0,60}") {
        let _ = parse(text.as_bytes());
        let _ = parse_tree(text.as_bytes());
    }

    /// Nested arrays received in pieces are complete exactly when a tree can be parsed.
    #[test]
    fn a_reply_in_pieces_is_complete_when_its_tree_parses(
        text in "([*][0-3]\r\n|:[0-9]\r\n|[$]2\r\nab\r\n|[$]-1\r\n){1,30}", step in 1..9_usize
    ) {
        let mut pending = PendingReply::new();
        for end in (0..text.len()).step_by(step).chain([text.len()]) {
            let bytes = &text.as_bytes()[..end];
            let Ok(is_whole) = pending.is_whole(bytes) else { break };
            let Ok(tree) = parse_tree(bytes) else { break };
            prop_assert_eq!(is_whole.is_ok(), tree.is_some(), "{:?}", &text[..end]);
            if tree.is_some() {
                break;
            }
        }
    }

    /// A request has the form of an array reply, so the parser checks the encoder.
    #[test]
    fn requests_parse_back(parts in prop::collection::vec(bytes(), 1..6)) {
        let mut out = Vec::new();
        encode(&mut out, &parts.iter().map(Vec::as_slice).collect::<Vec<_>>());
        let expected = Tree::List(parts.into_iter().map(Tree::Text).collect());
        prop_assert_eq!(parse_tree(&out).unwrap(), Some((expected, out.len())));
    }
}
