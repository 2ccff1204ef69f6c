//! What must hold for any bytes that a parser of replies is given.
//!
//! - It never panics, and never takes more than it was given.
//! - It makes progress: a whole reply has at least one byte, and what it wants to see again is no
//!   more than a line.
//! - How the stream is cut changes nothing: the replies are the same and counted the same, and so
//!   is what is wrong with it.
//!
//! With cargo-fuzz: `cargo +nightly fuzz run --features libfuzzer resp corpus/resp seeds/resp` (or
//! `memcached`), in this directory. With stable Rust: `cargo run --release --bin mutate -- resp
//! 10000000`. The seeds are replies of real servers (Redis 7.0, memcached 1.6) and values as the
//! workload makes them.

// The same reader that the drivers' property tests use.
#[path = "../../crates/drivers/src/streams.rs"]
mod streams;

use load::wire::protocol::{Expect, Judged, Parser, Shape};
use workloads::kv::numbers;

use streams::{ANY, DONE, VALUE, VALUES, told};

/// A value that is there to be verified: its key and length.
pub const OWN_KEY: u64 = 5;
/// Its length in bytes.
pub const OWN_BYTES: u32 = 100;

/// Reads `bytes` as a stream of replies to each kind of request, whole, byte by byte and in pieces
/// that follow from the bytes.
///
/// # Panics
/// Where one of the properties does not hold.
pub fn check<P: Parser + Default>(bytes: &[u8]) {
    let sum = bytes.iter().fold(0, |sum: u64, byte| {
        sum.wrapping_mul(0x0100_0000_01b3).wrapping_add(u64::from(*byte) + 1)
    });
    let mut random = numbers(sum, 0, 0);
    let pieces: Vec<usize> = (0..8).map(|_| 1 + random.below(24) as usize).collect();
    let own = Expect { bytes: Some(OWN_BYTES), verify: true, key: OWN_KEY, ..VALUE };
    let other = Expect { bytes: Some(random.below(64) as u32), ..own };
    for expect in [ANY, DONE, VALUE, own, other] {
        let whole = told::<P>(bytes, &expect, &[bytes.len().max(1)]);
        for cut in [&[1][..], &pieces] {
            let cut = told::<P>(bytes, &expect, cut);
            assert_eq!(whole.judged, cut.judged, "replies depend on the cuts: {expect:?}");
            assert_eq!(whole.fault, cut.fault, "the fault depends on the cuts: {expect:?}");
        }
        for judged in &whole.judged {
            reasonable(judged, &expect);
        }
    }
}

/// What no bytes can lead to.
fn reasonable(judged: &Judged, expect: &Expect) {
    match judged {
        Judged::Ok { verified } => {
            assert!(!verified || (expect.verify && expect.shape == Shape::Value), "{expect:?}");
        }
        Judged::Error(_, words) => assert!(words.len() <= 200, "{} bytes", words.len()),
        Judged::Elsewhere { address, .. } => {
            let port = address.rsplit(':').next().and_then(|port| port.parse::<u16>().ok());
            assert!(port.is_some_and(|port| port > 0), "`{address}`");
        }
        Judged::Miss | Judged::Wrong => {}
    }
}

/// The value that is there to be verified, in some version.
pub fn own_value(version: u64) -> Vec<u8> {
    let mut value = Vec::new();
    VALUES.append(&mut value, OWN_KEY, version, OWN_BYTES as usize);
    value
}
