//! What is under way between clients and server, in the order of its arrival: all of it takes
//! equally long.

use super::link::Side;
use std::collections::VecDeque;
use std::time::Instant;

/// Bytes from one side of a link, or its end.
#[derive(Debug)]
pub(super) struct Arrival {
    /// When the other side gets them.
    pub(super) at: Instant,
    pub(super) link: u64,
    /// The side that sent them.
    pub(super) side: Side,
    /// Empty for the end.
    pub(super) bytes: Vec<u8>,
}

#[derive(Debug, Default)]
pub(super) struct Queue(VecDeque<Arrival>);

impl Queue {
    pub(super) fn push(&mut self, arrival: Arrival) {
        self.0.push_back(arrival);
    }

    pub(super) fn next_at(&self) -> Option<Instant> {
        self.0.front().map(|arrival| arrival.at)
    }

    /// The next arrival, if its time has come.
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<Arrival> {
        if self.next_at()? > now { None } else { self.0.pop_front() }
    }
}
