//! What a wire protocol must offer the engine, and what the engine gives it.
//!
//! A request is compiled once into a [`Template`](super::template::Template) and afterwards only
//! copied and filled in. A reply is read by a [`Parser`], one for each connection, which never sees
//! more than the bytes at hand: what it does not need to see whole, such as a value's body, it
//! counts and skips.

use model::ErrorClass;
use workloads::kv::{ValueCheck, Values};

/// What the reply to a request must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Anything that is no error, nested or not.
    Any,
    /// The protocol's word for "done" (`+OK`, `STORED`, `HD`).
    Done,
    /// A value, or the protocol's word for "not there" (nil, `END`, `EN`).
    Value,
}

/// A request that waits for its reply, as far as its reply is concerned.
#[derive(Clone, Copy, Debug)]
pub struct Expect {
    /// What the reply must be.
    pub shape: Shape,
    /// Bytes that a value must have; `None` where nobody knows.
    pub bytes: Option<u32>,
    /// True when the value's content is to be compared with that of `key`.
    pub verify: bool,
    /// Number of the key that was asked for.
    pub key: u64,
}

/// What nobody asked for may still be a message that the protocol allows at any time.
pub(crate) const UNASKED: Expect = Expect { shape: Shape::Any, bytes: None, verify: false, key: 0 };

/// The reply to one of the first requests on a connection.
#[derive(Clone, Copy, Debug)]
pub struct Greeting {
    /// What it must be.
    pub expect: Expect,
    /// True when an error is of no account, since the server may be too old to know the request.
    pub harmless: bool,
    /// True when the words of an error may repeat the password, so that only their first one, which
    /// is a code, may be shown.
    pub secret: bool,
}

/// How a reply is counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judged {
    /// As expected; `verified` when a value was compared byte by byte.
    Ok {
        /// True when a value's content was compared.
        verified: bool,
    },
    /// The key is not there.
    Miss,
    /// A value of another length or content, or a reply of another type.
    Wrong,
    /// An error reply, by class, with the server's words (at most 200 bytes of them).
    Error(ErrorClass, String),
    /// The key lives on another server (`MOVED`: for good, else `ASK`: for this time).
    Elsewhere {
        /// Host and port, as the server spells them.
        address: String,
        /// True for `MOVED`.
        for_good: bool,
    },
}

/// How a reply is counted that has neither words nor an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plain {
    /// [`Judged::Ok`].
    Ok {
        /// True when a value's content was compared.
        verified: bool,
    },
    /// [`Judged::Miss`].
    Miss,
    /// [`Judged::Wrong`].
    Wrong,
}

impl From<Plain> for Judged {
    fn from(plain: Plain) -> Self {
        match plain {
            Plain::Ok { verified } => Self::Ok { verified },
            Plain::Miss => Self::Miss,
            Plain::Wrong => Self::Wrong,
        }
    }
}

/// Bytes that are not of the protocol: the connection cannot be used any more.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Malformed(pub String);

/// How far a parser came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// The reply is whole in the first `used` bytes (of those given to this call).
    Whole {
        /// Bytes that belong to it.
        used: usize,
        /// How it is counted.
        judged: Judged,
    },
    /// The first `used` bytes were taken in; the rest must be given again, with more behind it.
    More {
        /// Bytes that need not be given again.
        used: usize,
    },
}

/// Reads the replies of one connection.
pub trait Parser: Send {
    /// The replies that are nearly all replies of a load: how the one that `bytes` begin with is
    /// counted and how many bytes it has, where all of it is at hand and none of it was taken in.
    /// `None` for all else, which [`Parser::read`] reads.
    fn at_once(&mut self, bytes: &[u8], expect: &Expect, values: &Values)
    -> Option<(usize, Plain)>;

    /// Reads on in the reply at hand by any path. `bytes` begins with the first byte not taken in
    /// yet and is not empty. Errors: what is not of the protocol, or a line longer than the
    /// parser's limit; a body is never limited, since it is not kept.
    fn read(&mut self, bytes: &[u8], expect: &Expect, values: &Values) -> Result<Step, Malformed>;

    /// The same, by the short path where that leads on.
    fn advance(
        &mut self,
        bytes: &[u8],
        expect: &Expect,
        values: &Values,
    ) -> Result<Step, Malformed> {
        if let Some((used, plain)) = self.at_once(bytes, expect, values) {
            return Ok(Step::Whole { used, judged: plain.into() });
        }
        self.read(bytes, expect, values)
    }
}

/// Compares a body as it comes.
///
/// A small help for parsers: length first, then content where it is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Body {
    left: usize,
    check: Option<ValueCheck>,
    wrong: bool,
}

impl Body {
    /// A body of `bytes` bytes begins.
    pub fn new(bytes: usize, expect: &Expect) -> Self {
        let wrong = expect.bytes.is_some_and(|expected| expected as usize != bytes);
        let check = (expect.verify && !wrong).then(|| ValueCheck::new(expect.key, bytes));
        Self { left: bytes, check, wrong }
    }

    /// Takes in what there is of it; how many bytes that was.
    pub fn take(&mut self, bytes: &[u8], values: &Values) -> usize {
        let used = self.left.min(bytes.len());
        if let Some(check) = &mut self.check {
            self.wrong |= !values.check(check, &bytes[..used]);
        }
        self.left -= used;
        used
    }

    /// Bytes that are still to come.
    pub fn left(&self) -> usize {
        self.left
    }

    /// How the value is counted, once nothing is left of it.
    pub fn judged(&self) -> Plain {
        if self.wrong { Plain::Wrong } else { Plain::Ok { verified: self.check.is_some() } }
    }
}
