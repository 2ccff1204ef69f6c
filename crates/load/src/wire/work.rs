//! The requests of a wire load: operations, keys, sizes and values.

use stats::SplitMix64;
use std::sync::Arc;

use workloads::kv::{Inserts, Key, KeyChoice, KeyNames, Mix, Sizes, Stream, Values};

use super::protocol::{Expect, Judged, Shape};
use super::template::{Filling, Template};

/// Odd and without a pattern, so consecutive load numbers give unrelated seeds.
const NUMBERED: u64 = 0xd1b5_4a32_d192_ed03;

/// One kind of request.
#[derive(Clone, Debug)]
pub struct Operation {
    /// Name of the operation in results.
    pub name: String,
    /// Its request.
    pub template: Template,
    /// Required kind of its reply.
    pub shape: Shape,
    /// True if it writes the value of its key, in a new version.
    pub writes: bool,
    /// True if the values that it reads were written by this load, so their length is known.
    pub reads_own: bool,
    /// The write of a read-modify-write: sent to the same key once this operation is answered by a
    /// value or a miss. Both are one request, timed from the first sending to the second reply,
    /// with one timeout for both.
    pub then: Option<Box<Operation>>,
}

/// The requests of a load that insert new keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inserting {
    /// Index of the inserting operation; its share in the mix is ignored.
    pub operation: usize,
    /// Which of a thread's requests insert.
    pub which: Inserts,
}

/// Operations on data. What a thread sends is a pure function of the seed and the request's number.
#[derive(Clone, Debug)]
pub struct Work {
    /// Kinds of request; at least one.
    pub operations: Vec<Operation>,
    /// Share of each operation.
    pub mix: Mix,
    /// Choice of keys.
    pub keys: KeyChoice,
    /// Names of keys.
    pub names: KeyNames,
    /// Lengths of values.
    pub sizes: Sizes,
    /// Contents of values.
    pub values: Arc<Values>,
    /// Seed of all random choices.
    pub seed: u64,
    /// One in this many values read is compared byte by byte; 0 for none, 1 for all.
    pub verify_one_in: u64,
    /// Requests that insert keys; `None` for none.
    pub inserting: Option<Inserting>,
    /// True if operations are chained: the first one is drawn, and each next one goes to the same
    /// key on the same client as soon as the previous one succeeds. Each is counted separately; the
    /// load is counted and paced by the first.
    pub follows: bool,
    /// True if every write replaces the whole value of its key and nothing else changes it. Then
    /// the writes of a sample of keys are kept, since they determine the final values.
    pub keeps_writes: bool,
}

/// The random streams of a load.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Streams {
    choices: Stream,
    digits: Stream,
}

/// A drawn request, with all that is needed to generate it again and to judge its reply.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Drawn {
    /// Number of the request, over all threads.
    pub(crate) n: u64,
    /// Index of its operation.
    pub(crate) operation: u32,
    /// Length of its key's value, bytes.
    bytes: u32,
    /// The key.
    pub(crate) key: Key,
    verify: bool,
    /// Result of the read; `None` unless this is the write of a read-modify-write.
    pub(crate) read: Option<Read>,
}

impl Drawn {
    /// The write that follows a read.
    pub(crate) fn after(self, read: Read) -> Self {
        Self { read: Some(read), ..self }
    }
}

/// Result of the read in a read-modify-write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Read {
    Found { verified: bool },
    Missed,
}

impl Read {
    /// `None` if nothing may be written after such a reply.
    pub(crate) fn of(judged: &Judged) -> Option<Self> {
        match judged {
            Judged::Ok { verified } => Some(Self::Found { verified: *verified }),
            Judged::Miss => Some(Self::Missed),
            Judged::Wrong | Judged::Error(..) | Judged::Redirected { .. } => None,
        }
    }

    /// Judgement of the whole read-modify-write once the write is answered.
    pub(crate) fn and(self, write: &Judged) -> Judged {
        match (self, write) {
            (Self::Found { verified }, Judged::Ok { .. }) => Judged::Ok { verified },
            (Self::Missed, Judged::Ok { .. }) => Judged::Miss,
            (_, other) => other.clone(),
        }
    }
}

impl Work {
    /// True if replies have no consequences: no chained operation, no inserted key.
    pub(crate) fn is_plain(&self) -> bool {
        !self.follows
            && self.inserting.is_none()
            && self.operations.iter().all(|o| o.then.is_none())
    }

    /// Number of operations that each paced request leads to.
    pub(crate) fn requests_each(&self) -> usize {
        if self.follows { self.operations.len() } else { 1 }
    }

    /// Random streams of load `number`.
    pub(crate) fn streams(&self, number: u64) -> Streams {
        let seed = self.seed_of(number);
        Streams { choices: Stream::new(seed, 0), digits: Stream::new(seed, 1) }
    }

    /// Seed of load `number`, for everything that differs between loads on the same data; load 0
    /// uses the data's seed.
    pub(crate) fn seed_of(&self, number: u64) -> u64 {
        self.seed.wrapping_add(number.wrapping_mul(NUMBERED))
    }

    /// Draws request `n`, numbered over all threads.
    #[inline]
    pub(crate) fn draw(&self, streams: &Streams, n: u64) -> Drawn {
        self.draw_with_newest(streams, n, Key(self.keys.keys() - 1), |key| key)
    }

    /// Like [`Self::draw`], but with keys up to `newest`; `which` maps a drawn key to its actual
    /// one.
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

    /// Chooses the operation and key of request `n`; also returns the random numbers after that.
    /// Keys are picked only here, so the compiler inlines it.
    fn chosen(&self, streams: &Streams, n: u64, newest: Key) -> (SplitMix64, usize, Key) {
        let mut random = streams.choices.at(n);
        let chosen = self.operations.len() > 1 && !self.follows;
        let operation = if chosen { self.mix.pick(&mut random) } else { 0 };
        let key = self.keys.pick_with_newest(&mut random, n, newest);
        (random, operation, key)
    }

    /// Request `n` with the given operation and key.
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

    /// What is expected of its reply.
    pub(crate) fn expect(&self, drawn: &Drawn) -> Expect {
        let kind = self.sent(drawn);
        Expect {
            shape: kind.shape,
            bytes: (kind.reads_own && kind.shape == Shape::Value).then_some(drawn.bytes),
            verify: drawn.verify,
            key: drawn.key.0,
        }
    }

    /// True if the request, including its follow-up write, writes the value of its key.
    #[inline]
    pub(crate) fn writes(&self, drawn: &Drawn) -> bool {
        let kind = &self.operations[drawn.operation as usize];
        kind.writes || kind.then.is_some()
    }

    /// The operation that is sent: the drawn one, or the write that follows it.
    #[inline]
    fn sent(&self, drawn: &Drawn) -> &Operation {
        let kind = &self.operations[drawn.operation as usize];
        if drawn.read.is_none() { kind } else { kind.then.as_deref().unwrap_or(kind) }
    }
}
