//! Single replies and any streams, for the property tests of parsers.

use load::wire::protocol::{Expect, Judged, Parser, Shape};
use proptest::prelude::*;

use crate::streams::{ANY, told};

pub(crate) const OK: Judged = Judged::Ok { verified: false };

/// The one reply in a stream, however it is cut.
pub(crate) fn reply<P: Parser + Default>(stream: &[u8], expect: &Expect) -> Judged {
    let whole = told::<P>(stream, expect, &[stream.len()]);
    assert_eq!(told::<P>(stream, expect, &[1]), whole, "byte by byte");
    assert_eq!((whole.fault.as_ref(), whole.taken), (None, stream.len()), "{:?}", whole.judged);
    <[Judged; 1]>::try_from(whole.judged).unwrap()[0].clone()
}

/// What is wrong with a stream, however it is cut.
pub(crate) fn fault<P: Parser + Default>(stream: &[u8]) -> String {
    let whole = told::<P>(stream, &ANY, &[stream.len()]);
    assert_eq!(told::<P>(stream, &ANY, &[1]).fault, whole.fault, "byte by byte");
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
