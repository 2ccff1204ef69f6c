//! Helpers for the parsers' property tests: single replies and arbitrary streams.

use load::wire::protocol::{Expect, Judged, Parser, Shape};
use proptest::prelude::*;

use crate::streams::{ANY, parse_stream};

pub(crate) const OK: Judged = Judged::Ok { verified: false };

/// The only reply in a stream, checked to be the same however the stream is split.
pub(crate) fn reply<P: Parser + Default>(stream: &[u8], expect: &Expect) -> Judged {
    let whole = parse_stream::<P>(stream, expect, &[stream.len()]);
    assert_eq!(parse_stream::<P>(stream, expect, &[1]), whole, "byte by byte");
    assert_eq!((whole.fault.as_ref(), whole.taken), (None, stream.len()), "{:?}", whole.judged);
    <[Judged; 1]>::try_from(whole.judged).unwrap()[0].clone()
}

/// The parse error of a stream, checked to be the same however the stream is split.
pub(crate) fn fault<P: Parser + Default>(stream: &[u8]) -> String {
    let whole = parse_stream::<P>(stream, &ANY, &[stream.len()]);
    assert_eq!(parse_stream::<P>(stream, &ANY, &[1]).fault, whole.fault, "byte by byte");
    whole.fault.unwrap_or_else(|| panic!("{:?}", whole.judged)).0
}

pub(crate) fn expects() -> impl Strategy<Value = Expect> {
    let shape = prop::sample::select(vec![Shape::Any, Shape::Done, Shape::Value]);
    (shape, prop::option::of(0_u32..40), any::<bool>()).prop_map(|(shape, bytes, verify)| Expect {
        shape,
        bytes,
        verify,
        key: 5,
    })
}

pub(crate) fn cuts() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(1_usize..50, 1..20)
}
