//! What a wire load consists of: operations with their requests, keys, sizes and values.

use stats::SplitMix64;
use std::sync::Arc;

use workloads::kv::{Inserts, Key, KeyChoice, KeyNames, Mix, Sizes, Stream, Values};

use super::protocol::{Expect, Judged, Shape};
use super::template::{Filling, Template};

/// Odd and without pattern, so that seeds of other numbers are far apart.
const NUMBERED: u64 = 0xd1b5_4a32_d192_ed03;

/// One kind of request.
#[derive(Clone, Debug)]
pub struct Operation {
    /// Its name in results.
    pub name: String,
    /// How it is spelled.
    pub template: Template,
    /// What its reply must be.
    pub shape: Shape,
    /// True when it writes the value of its key, in a new version.
    pub writes: bool,
    /// True when a value that it reads was written by this load, so that its length is known.
    pub reads_own: bool,
    /// What follows on the same key once this is answered by a value or by its absence: the write
    /// of a read-modify-write. Both are one request, from the sending of the first to the reply to
    /// the second, and its time-out is for both.
    pub then: Option<Box<Operation>>,
}

/// Which requests of a load insert a key that nobody wrote before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inserting {
    /// Index of the operation that does; what the mix says of it is of no account.
    pub operation: usize,
    /// Which of a thread's requests it is.
    pub which: Inserts,
}

/// Operations on data: what a thread sends is a pure function of (seed, number of the request).
#[derive(Clone, Debug)]
pub struct Work {
    /// Kinds of request; at least one.
    pub operations: Vec<Operation>,
    /// How often each is sent.
    pub mix: Mix,
    /// Which keys are asked for.
    pub keys: KeyChoice,
    /// How they are named.
    pub names: KeyNames,
    /// How long their values are.
    pub sizes: Sizes,
    /// What their values consist of.
    pub values: Arc<Values>,
    /// Seed of all choices.
    pub seed: u64,
    /// One in this many values read is compared byte by byte; 0 for none, 1 for all.
    pub verify_one_in: u64,
    /// Which requests insert keys; `None` for none.
    pub inserting: Option<Inserting>,
    /// True where operations follow each other: what is drawn is the first, and each next one goes
    /// to the same key as soon as the one before is answered well, by the same client. Each counts
    /// by itself; loads are counted and paced by the first.
    pub follows: bool,
    /// True where every write replaces the whole value of its key and nothing else changes one, so
    /// that what keys hold at the end follows from the writes: those of a sample are kept.
    pub keeps_writes: bool,
}

/// The random numbers of a load.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Streams {
    choices: Stream,
    digits: Stream,
}

/// A request as it was drawn: enough to spell it again, and to judge its reply.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Drawn {
    /// Number of the request, over all threads.
    pub(crate) n: u64,
    /// Index of its operation.
    pub(crate) operation: u32,
    /// Bytes of its key's value.
    bytes: u32,
    /// The key.
    pub(crate) key: Key,
    verify: bool,
    /// What was read before; `None` unless this is the write of a read-modify-write.
    pub(crate) read: Option<Read>,
}

impl Drawn {
    /// The write that follows such a reading.
    pub(crate) fn after(self, read: Read) -> Self {
        Self { read: Some(read), ..self }
    }
}

/// How the read of a read-modify-write ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Read {
    Found { verified: bool },
    Missed,
}

impl Read {
    /// `None` where nothing may be written after such a reply.
    pub(crate) fn of(judged: &Judged) -> Option<Self> {
        match judged {
            Judged::Ok { verified } => Some(Self::Found { verified: *verified }),
            Judged::Miss => Some(Self::Missed),
            Judged::Wrong | Judged::Error(..) | Judged::Elsewhere { .. } => None,
        }
    }

    /// How both are counted when the write was answered.
    pub(crate) fn and(self, write: &Judged) -> Judged {
        match (self, write) {
            (Self::Found { verified }, Judged::Ok { .. }) => Judged::Ok { verified },
            (Self::Missed, Judged::Ok { .. }) => Judged::Miss,
            (_, other) => other.clone(),
        }
    }
}

impl Work {
    /// True when nothing follows from a reply: no other operation, no inserted key.
    pub(crate) fn is_plain(&self) -> bool {
        !self.follows
            && self.inserting.is_none()
            && self.operations.iter().all(|o| o.then.is_none())
    }

    /// Operations that come of one that is paced.
    pub(crate) fn requests_each(&self) -> usize {
        if self.follows { self.operations.len() } else { 1 }
    }

    /// What requests of the load of that number are drawn from.
    pub(crate) fn streams(&self, number: u64) -> Streams {
        let seed = self.seed_of(number);
        Streams { choices: Stream::new(seed, 0), digits: Stream::new(seed, 1) }
    }

    /// Seed of all that differs between loads on the same data; that of load 0 is the data's.
    pub(crate) fn seed_of(&self, number: u64) -> u64 {
        self.seed.wrapping_add(number.wrapping_mul(NUMBERED))
    }

    /// Draws request `n`, counted over all threads.
    #[inline]
    pub(crate) fn draw(&self, streams: &Streams, n: u64) -> Drawn {
        self.draw_with_newest(streams, n, Key(self.keys.keys() - 1), |key| key)
    }

    /// The same, where keys up to `newest` are there, as `which` they are known.
    #[inline]
    pub(crate) fn draw_with_newest(
        &self,
        streams: &Streams,
        n: u64,
        newest: Key,
        which: impl Fn(Key) -> Key,
    ) -> Drawn {
        let (random, operation, key) = self.chosen(streams, n, newest);
        self.drawn(random, n, operation, which(key))
    }

    /// The operation and the key of request `n`, and the random numbers that follow. The only place
    /// where keys are picked, so that the compiler inlines the picking.
    fn chosen(&self, streams: &Streams, n: u64, newest: Key) -> (SplitMix64, usize, Key) {
        let mut random = streams.choices.at(n);
        let chosen = self.operations.len() > 1 && !self.follows;
        let operation = if chosen { self.mix.pick(&mut random) } else { 0 };
        let key = self.keys.pick_with_newest(&mut random, n, newest);
        (random, operation, key)
    }

    /// Request `n` as this operation on this key.
    pub(crate) fn draw_of(&self, streams: &Streams, n: u64, operation: usize, key: Key) -> Drawn {
        self.drawn(streams.choices.at(n), n, operation, key)
    }

    #[inline]
    fn drawn(&self, mut random: SplitMix64, n: u64, operation: usize, key: Key) -> Drawn {
        let kind = &self.operations[operation];
        let sized = kind.writes || kind.reads_own;
        let bytes = if sized { self.sizes.bytes(self.seed, key) as u32 } else { 0 };
        let verify = kind.reads_own
            && match self.verify_one_in {
                0 => false,
                1 => true,
                one_in => random.below(one_in) == 0,
            };
        Drawn { n, operation: operation as u32, bytes, key, verify, read: None }
    }

    /// Appends the request.
    pub(crate) fn append(&self, streams: &Streams, out: &mut Vec<u8>, drawn: &Drawn) {
        let filling = Filling {
            key: drawn.key,
            n: drawn.n,
            digits: streams.digits,
            value_bytes: drawn.bytes as usize,
            names: &self.names,
            values: &self.values,
        };
        self.sent(drawn).template.append(out, &filling);
    }

    /// What its reply must be.
    pub(crate) fn expect(&self, drawn: &Drawn) -> Expect {
        let kind = self.sent(drawn);
        Expect {
            shape: kind.shape,
            bytes: (kind.reads_own && kind.shape == Shape::Value).then_some(drawn.bytes),
            verify: drawn.verify,
            key: drawn.key.0,
        }
    }

    /// True when the request, as a whole, writes the value of its key.
    #[inline]
    pub(crate) fn writes(&self, drawn: &Drawn) -> bool {
        let kind = &self.operations[drawn.operation as usize];
        kind.writes || kind.then.is_some()
    }

    /// What is sent: the operation, or the write that follows it.
    #[inline]
    fn sent(&self, drawn: &Drawn) -> &Operation {
        let kind = &self.operations[drawn.operation as usize];
        if drawn.read.is_none() { kind } else { kind.then.as_deref().unwrap_or(kind) }
    }
}
