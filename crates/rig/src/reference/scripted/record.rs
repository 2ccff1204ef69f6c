//! What a scripted server has done, and when.

use stats::Histogram;

/// Stamps that are kept: 480 MB of them.
const STAMPS_MAX: usize = 10_000_000;

/// When a request was read and its reply left, nanoseconds of `CLOCK_MONOTONIC`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Number of the connection, 1 for the first that was taken.
    pub connection: u64,
    /// Number of the request on its connection, from 1.
    pub request: u64,
    /// When it was read.
    pub received_ns: u64,
    /// When its reply should leave, by the script.
    pub due_ns: u64,
    /// When the last byte of its reply was handed to the kernel; `None` while it was not.
    pub sent_ns: Option<u64>,
}

/// How often a scripted server has done what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Connections taken, refused ones among them.
    pub connections: u64,
    /// Requests read.
    pub requests: u64,
    /// Replies sent, wrong ones and errors of the script among them.
    pub replies: u64,
    /// Requests answered by the script's error.
    pub errors: u64,
    /// Replies with a changed value.
    pub wrong: u64,
    /// Replies with a shortened value.
    pub short: u64,
    /// Replies that were not of the protocol.
    pub malformed: u64,
    /// Replies that announced far too much.
    pub gigantic: u64,
    /// Replies without an end.
    pub endless: u64,
    /// Requests that were left without a reply on a connection that hangs, also after a gigantic or
    /// an endless reply.
    pub hung: u64,
    /// Connections reset instead of a reply.
    pub resets: u64,
    /// Connections that stood still for a time.
    pub stalled: u64,
    /// Connections refused because there were too many.
    pub refused: u64,
    /// Connections closed as soon as they were taken.
    pub closed: u64,
    /// Requests without a stamp because too many were there already.
    pub unlogged: u64,
}

/// What the server shares with who asks about it.
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

    /// Keeps a stamp; its place, where it is kept.
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

    /// Takes note that a reply has left.
    pub(super) fn sent(&mut self, place: Option<usize>, sent_ns: u64) {
        self.tally.replies += 1;
        if let Some(stamp) = place.and_then(|place| self.stamps.get_mut(place)) {
            stamp.sent_ns = Some(sent_ns);
        }
    }
}
