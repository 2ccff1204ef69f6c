//! Streams of replies for tests and for fuzzing: read in pieces, as the engine reads them.

use std::sync::LazyLock;

use load::wire::protocol::{Expect, Judged, Malformed, Parser, Shape, Step};
use workloads::kv::Values;

pub(crate) const ANY: Expect = Expect { shape: Shape::Any, bytes: None, verify: false, key: 0 };
pub(crate) const DONE: Expect = Expect { shape: Shape::Done, ..ANY };
pub(crate) const VALUE: Expect = Expect { shape: Shape::Value, ..ANY };
/// Longest piece that a parser may want to see again.
const LINE_BYTES_MAX: usize = 64 << 10;
pub(crate) static VALUES: LazyLock<Values> = LazyLock::new(|| Values::new(7));

/// What a stream held: how its replies were counted, bytes taken in, and what was wrong at its end.
#[derive(Debug, PartialEq)]
pub(crate) struct Told {
    pub(crate) judged: Vec<Judged>,
    pub(crate) taken: usize,
    pub(crate) fault: Option<Malformed>,
}

/// Reads a stream in pieces of these lengths, over and over.
pub(crate) fn told<P: Parser + Default>(stream: &[u8], expect: &Expect, pieces: &[usize]) -> Told {
    let mut parser = P::default();
    let mut told = Told { judged: Vec::new(), taken: 0, fault: None };
    let mut come = 0;
    for piece in pieces.iter().cycle() {
        come = (come + piece).min(stream.len());
        while told.taken < come {
            let at_hand = &stream[told.taken..come];
            match parser.advance(at_hand, expect, &VALUES) {
                Ok(Step::Whole { used, judged }) => {
                    assert!(used > 0 && used <= at_hand.len(), "{used} of {}", at_hand.len());
                    told.taken += used;
                    told.judged.push(judged);
                }
                Ok(Step::More { used }) => {
                    let again = at_hand.len().checked_sub(used).unwrap();
                    assert!(again < LINE_BYTES_MAX, "{again} bytes are to be given again");
                    told.taken += used;
                    break;
                }
                Err(fault) => {
                    told.fault = Some(fault);
                    return told;
                }
            }
        }
        if come == stream.len() {
            return told;
        }
    }
    told
}
