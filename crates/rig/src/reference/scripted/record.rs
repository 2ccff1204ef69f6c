//! Counts and stamps of a scripted server.

use stats::Histogram;

/// Maximum number of stamps kept (480 MB).
const STAMPS_MAX: usize = 10_000_000;

/// Times of a request and its reply, in nanoseconds of `CLOCK_MONOTONIC`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Number of the connection in order of acceptance, from 1.
    pub connection: u64,
    /// Number of the request on its connection, from 1.
    pub request: u64,
    /// Time the request was read.
    pub received_ns: u64,
    /// Time the reply is due according to the script.
    pub due_ns: u64,
    /// Time the last byte of the reply was passed to the kernel; `None` before.
    pub sent_ns: Option<u64>,
}

/// Counts of a scripted server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Connections accepted, including refused ones.
    pub connections: u64,
    /// Requests read.
    pub requests: u64,
    /// Replies sent, including wrong ones and scripted errors.
    pub replies: u64,
    /// Requests answered with a scripted error.
    pub errors: u64,
    /// Replies with a changed value.
    pub wrong: u64,
    /// Replies with a shortened value.
    pub short: u64,
    /// Replies that violated the protocol.
    pub malformed: u64,
    /// Replies that announced 512 MiB.
    pub gigantic: u64,
    /// Endless replies.
    pub endless: u64,
    /// Requests without a reply on a connection that hangs, including after a gigantic or endless
    /// reply.
    pub hung: u64,
    /// Connections reset instead of a reply being sent.
    pub resets: u64,
    /// Connections that stalled.
    pub stalled: u64,
    /// Connections refused because there were too many.
    pub refused: u64,
    /// Connections closed immediately after being accepted.
    pub closed: u64,
    /// Requests without a stamp because the maximum was reached.
    pub unlogged: u64,
}

/// Counts and stamps, shared by the server's thread and its owner.
#[derive(Debug)]
pub(super) struct Record {
    pub(super) tally: Tally,
    pub(super) stamps: Vec<Stamp>,
    pub(super) lateness: Histogram,
    logs: bool,
}

impl Record {
    pub(super) fn new(logs: bool) -> Self {
        let (tally, stamps) = (Tally::default(), Vec::new());
        Self { tally, stamps, lateness: Histogram::new(), logs }
    }

    /// Stores a stamp; returns its index if it was stored.
    pub(super) fn log(&mut self, stamp: Stamp) -> Option<usize> {
        self.tally.requests += 1;
        if !self.logs {
            return None;
        }
        if self.stamps.len() >= STAMPS_MAX {
            self.tally.unlogged += 1;
            return None;
        }
        self.stamps.push(stamp);
        Some(self.stamps.len() - 1)
    }

    /// Records that a reply was sent.
    pub(super) fn sent(&mut self, place: Option<usize>, sent_ns: u64) {
        self.tally.replies += 1;
        if let Some(stamp) = place.and_then(|place| self.stamps.get_mut(place)) {
            stamp.sent_ns = Some(sent_ns);
        }
    }
}
