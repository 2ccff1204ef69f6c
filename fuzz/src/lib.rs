//! Properties of the reply parsers that must hold for any input.
//!
//! - A parser never panics and never consumes more than its input.
//! - It makes progress: a complete reply has at least one byte, and at most one line is parsed
//!   again.
//! - Splitting the stream does not change the result: replies, counts and errors are the same.
//!
//! With cargo-fuzz: `cargo +nightly fuzz run --features libfuzzer resp corpus/resp seeds/resp` (or
//! `memcached`), in this directory. With stable Rust: `cargo run --release --bin mutate -- resp
//! 10000000`. The seeds are replies of real servers (Redis 7.0, memcached 1.6) and values from the
//! workload's generator.

// Shared with the drivers' property tests.
#[path = "../../crates/drivers/src/streams.rs"]
mod streams;

use load::wire::protocol::{Expect, Judged, Parser, Shape};
use workloads::kv::numbers;

use streams::{ANY, DONE, VALUE, VALUES, parse_stream};

/// Key of the value used for verification.
pub const OWN_KEY: u64 = 5;
/// Length of the value in bytes.
pub const OWN_BYTES: u32 = 100;

/// Parses `bytes` as a stream of replies to each kind of request: at once, byte by byte, and in
/// pieces derived from the bytes.
///
/// # Panics
/// If one of the properties is violated.
pub fn check<P: Parser + Default>(bytes: &[u8]) {
    let sum = bytes.iter().fold(0, |sum: u64, byte| {
        sum.wrapping_mul(0x0100_0000_01b3).wrapping_add(u64::from(*byte) + 1)
    });
    let mut random = numbers(sum, 0, 0);
    let pieces: Vec<usize> = (0..8).map(|_| 1 + random.below(24) as usize).collect();
    let own = Expect { bytes: Some(OWN_BYTES), verify: true, key: OWN_KEY, ..VALUE };
    let other = Expect { bytes: Some(random.below(64) as u32), ..own };
    for expect in [ANY, DONE, VALUE, own, other] {
        let whole = parse_stream::<P>(bytes, &expect, &[bytes.len().max(1)]);
        for cut in [&[1][..], &pieces] {
            let cut = parse_stream::<P>(bytes, &expect, cut);
            assert_eq!(whole.judged, cut.judged, "replies depend on the cuts: {expect:?}");
            assert_eq!(whole.fault, cut.fault, "the fault depends on the cuts: {expect:?}");
        }
        for judged in &whole.judged {
            assert_plausible(judged, &expect);
        }
    }
}

/// Asserts that a reply is plausible for its request.
fn assert_plausible(judged: &Judged, expect: &Expect) {
    match judged {
        Judged::Ok { verified } => {
            assert!(!verified || (expect.verify && expect.shape == Shape::Value), "{expect:?}");
        }
        Judged::Error(_, words) => assert!(words.len() <= 200, "{} bytes", words.len()),
        Judged::Redirected { address, .. } => {
            let port = address.rsplit(':').next().and_then(|port| port.parse::<u16>().ok());
            assert!(port.is_some_and(|port| port > 0), "`{address}`");
        }
        Judged::Miss | Judged::Wrong => {}
    }
}

/// The value used for verification, in the given version.
pub fn own_value(version: u64) -> Vec<u8> {
    let mut value = Vec::new();
    VALUES.append(&mut value, OWN_KEY, version, OWN_BYTES as usize);
    value
}
