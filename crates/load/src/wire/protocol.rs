//! The interface between the engine and a wire protocol.
//!
//! A request is compiled once into a [`Template`](super::template::Template); after that it is only
//! copied and filled in. Replies are read by a [`Parser`], one per connection, which sees only the
//! received bytes. Parts that it does not need as a whole, such as a value's body, it counts and
//! skips.

use model::ErrorClass;
use serde::{Deserialize, Serialize};
use workloads::kv::{ValueCheck, Values};

/// Required kind of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Shape {
    /// Anything but an error, including a nested one.
    Any,
    /// The protocol's success reply (`+OK`, `STORED`, `HD`).
    Done,
    /// A value, or the protocol's reply for a missing key (nil, `END`, `EN`).
    Value,
}

/// What is expected of the reply to a request.
#[derive(Clone, Copy, Debug)]
pub struct Expect {
    /// Required kind of the reply.
    pub shape: Shape,
    /// Expected length of a value in bytes; `None` if unknown.
    pub bytes: Option<u32>,
    /// True if the value must be compared with the content of `key`.
    pub verify: bool,
    /// Number of the requested key.
    pub key: u64,
}

/// Any message that the protocol allows without a request.
pub(crate) const UNSOLICITED: Expect =
    Expect { shape: Shape::Any, bytes: None, verify: false, key: 0 };

/// The reply to one part of a connection's greeting.
#[derive(Clone, Copy, Debug)]
pub struct Greeting {
    /// What is expected of it.
    pub expect: Expect,
    /// True if an error is ignored because the server may be too old to know the request.
    pub harmless: bool,
    /// True if an error text may repeat the password, so only its first word, the error code, may
    /// be shown.
    pub secret: bool,
}

/// Judgement of a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judged {
    /// As expected.
    Ok {
        /// True when a value's content was compared.
        verified: bool,
    },
    /// The key does not exist.
    Miss,
    /// A value of a different length or content, or a reply of a different type.
    Wrong,
    /// An error reply: its class and its text (at most 200 bytes).
    Error(ErrorClass, String),
    /// The key lives on another server: permanently (`MOVED`) or for this request (`ASK`).
    Redirected {
        /// Host and port as given by the server.
        address: String,
        /// True for `MOVED`.
        for_good: bool,
    },
}

/// Judgement of a reply without an error text or address.
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

/// Bytes that violate the protocol; the connection cannot be used any more.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Malformed(pub String);

/// Progress of a parser.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// The reply is complete within the first `used` bytes passed to this call.
    Whole {
        /// Number of bytes that belong to it.
        used: usize,
        /// Its judgement.
        judged: Judged,
    },
    /// The first `used` bytes were consumed; the remaining ones must be passed again together with
    /// more.
    More {
        /// Bytes that must not be passed again.
        used: usize,
    },
}

/// Reads the replies of one connection.
pub trait Parser: Send {
    /// Fast path for the most common replies: the length and judgement of the reply at the start of
    /// `bytes`, if it is complete and no part of it was consumed before. `None` for all other
    /// replies, which go to [`Parser::read`].
    fn at_once(&mut self, bytes: &[u8], expect: &Expect, values: &Values)
    -> Option<(usize, Plain)>;

    /// Continues to read the current reply, of any kind. `bytes` starts with the first byte not yet
    /// consumed and is not empty. Errors: bytes that violate the protocol, or a line above the
    /// parser's limit. The length of a body is not limited, since it is not stored.
    fn read(&mut self, bytes: &[u8], expect: &Expect, values: &Values) -> Result<Step, Malformed>;

    /// Continues to read the current reply, on the fast path if possible.
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

/// Checks a value's body as it arrives.
///
/// Helper for parsers: compares the length first, then the content if required.
#[derive(Clone, Copy, Debug)]
pub struct Body {
    left: usize,
    check: Option<ValueCheck>,
    wrong: bool,
}

impl Body {
    /// Start of a body of `bytes` bytes.
    pub fn new(bytes: usize, expect: &Expect) -> Self {
        let wrong = expect.bytes.is_some_and(|expected| expected as usize != bytes);
        let check = (expect.verify && !wrong).then(|| ValueCheck::new(expect.key, bytes));
        Self { left: bytes, check, wrong }
    }

    /// Consumes the received part of the body; returns its length in bytes.
    pub fn take(&mut self, bytes: &[u8], values: &Values) -> usize {
        let used = self.left.min(bytes.len());
        if let Some(check) = &mut self.check {
            self.wrong |= !values.check(check, &bytes[..used]);
        }
        self.left -= used;
        used
    }

    /// Bytes still to come.
    pub fn left(&self) -> usize {
        self.left
    }

    /// Judgement of the value once all of it was consumed.
    pub fn judged(&self) -> Plain {
        if self.wrong { Plain::Wrong } else { Plain::Ok { verified: self.check.is_some() } }
    }
}
