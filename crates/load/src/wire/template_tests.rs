use super::*;
use workloads::kv::Sizes;

fn literal(text: &str) -> Segment {
    Segment::Literal(text.as_bytes().to_vec())
}

/// Text of request 7 on key 42 with a value of 13 bytes.
fn request_text(segments: &[Segment], names: &KeyNames, value_bytes: Option<usize>) -> String {
    let values = Values::new(1);
    let filling = Filling {
        key: Key(42),
        n: 7,
        digits: Stream::new(3, 1),
        value_bytes: 13,
        names,
        values: &values,
    };
    let mut out = b"before".to_vec();
    Template::new(segments.to_vec(), names, value_bytes).append(&mut out, &filling);
    String::from_utf8(out.split_off(6)).unwrap()
}

#[test]
fn all_occurrences_of_a_key_are_filled_in() {
    let segments =
        [literal("a "), Segment::KeyLength, literal(" "), Segment::Key, Segment::Key, literal(".")];
    let names = KeyNames::default();
    assert_eq!(request_text(&segments, &names, None), "a 16 key:000000000042key:000000000042.");
    // Names of varying length are not prepared in advance, but give the same text.
    let sizes: Sizes = "20-21".parse().unwrap();
    let drawn = KeyNames::sized("key:", sizes, 1, 1_000).unwrap();
    let length = drawn.bytes(Key(42));
    let name = format!("key:{:0width$}", 42, width = length - 4);
    assert_eq!(request_text(&segments, &drawn, None), format!("a {length} {name}{name}."));
}

#[test]
fn a_value_has_its_announced_length() {
    let segments = [Segment::ValueLength, literal(":"), Segment::Value];
    for fixed in [None, Some(13)] {
        let text = request_text(&segments, &KeyNames::default(), fixed);
        let (length, value) = text.split_once(':').unwrap();
        assert_eq!((length, value.len()), ("13", 13), "{text}");
        // The stamp of version 7, then two characters from the pool.
        assert!(value.starts_with("00000000007"), "{value}");
    }
}

#[test]
fn digits_are_drawn_counted_or_shared() {
    let digits = Segment::Digits { below: 1_000 };
    let text = request_text(&[digits.clone(), literal(" "), digits], &KeyNames::default(), None);
    let (a, b) = text.split_once(' ').unwrap();
    assert!(a.len() == 12 && a.starts_with("000000000") && b.len() == 12, "{text}");
    assert_ne!(a, b);
    let shared = Segment::Shared { stream: 5, below: 1_000 };
    let text = request_text(&[shared.clone(), literal(" "), shared], &KeyNames::default(), None);
    let (a, b) = text.split_once(' ').unwrap();
    assert_eq!(a, b);
    let counted = Segment::Counted { step: 2, first: 1, below: 12 };
    assert_eq!(request_text(&[counted], &KeyNames::default(), None), "000000000003");
}
