//! Reply streams for tests and fuzzing, parsed in pieces as the engine receives them.

use std::sync::LazyLock;

use load::wire::protocol::{Expect, Judged, Malformed, Parser, Shape, Step};
use workloads::kv::Values;

pub(crate) const ANY: Expect = Expect { shape: Shape::Any, bytes: None, verify: false, key: 0 };
pub(crate) const DONE: Expect = Expect { shape: Shape::Done, ..ANY };
pub(crate) const VALUE: Expect = Expect { shape: Shape::Value, ..ANY };
/// Most bytes that a parser can leave unconsumed.
const LINE_BYTES_MAX: usize = 64 << 10;
pub(crate) static VALUES: LazyLock<Values> = LazyLock::new(|| Values::new(7));

/// Result of parsing a stream: the classified replies, the bytes consumed and the error that ended
/// it.
#[derive(Debug, PartialEq)]
pub(crate) struct ParsedStream {
    pub(crate) judged: Vec<Judged>,
    pub(crate) taken: usize,
    pub(crate) fault: Option<Malformed>,
}

/// Parses a stream in pieces of these lengths, repeated in a cycle.
pub(crate) fn parse_stream<P: Parser + Default>(
    stream: &[u8],
    expect: &Expect,
    pieces: &[usize],
) -> ParsedStream {
    let mut parser = P::default();
    let mut parsed = ParsedStream { judged: Vec::new(), taken: 0, fault: None };
    let mut received = 0;
    for piece in pieces.iter().cycle() {
        received = (received + piece).min(stream.len());
        while parsed.taken < received {
            let unread = &stream[parsed.taken..received];
            match parser.advance(unread, expect, &VALUES) {
                Ok(Step::Whole { used, judged }) => {
                    assert!(used > 0 && used <= unread.len(), "{used} of {}", unread.len());
                    parsed.taken += used;
                    parsed.judged.push(judged);
                }
                Ok(Step::More { used }) => {
                    let left = unread.len().checked_sub(used).unwrap();
                    assert!(left < LINE_BYTES_MAX, "{left} bytes left unconsumed");
                    parsed.taken += used;
                    break;
                }
                Err(fault) => {
                    parsed.fault = Some(fault);
                    return parsed;
                }
            }
        }
        if received == stream.len() {
            return parsed;
        }
    }
    parsed
}
