//! Keys that a load inserts: which request inserts which, and which are known to be there.
//!
//! Inserts are numbered by thread, so that threads agree on names without asking each other: the
//! i-th insert of thread t of T is key `keys + i·T + t`. Under [`Latest`] and [`YcsbLatest`] a
//! thread asks for the keys that all of its own inserts up to some moment have made, and before
//! those for the ones that were filled; an insert that is still in flight is asked for by nobody,
//! as YCSB's acknowledged counter has it. What a thread asks for therefore depends on which replies
//! it has.
//!
//! [`Latest`]: workloads::kv::Distribution::Latest
//! [`YcsbLatest`]: workloads::kv::Distribution::YcsbLatest

use std::collections::VecDeque;

use workloads::kv::Key;

use super::work::{Drawn, Inserting, Streams, Work};

/// What a thread has inserted.
#[derive(Debug)]
pub(crate) struct Inserted {
    inserting: Inserting,
    /// Keys that are there at first.
    keys: u64,
    thread: u64,
    threads: u64,
    /// Inserts before the first that is in flight.
    over: u64,
    /// Of that one and those after it, whether they are over.
    later: VecDeque<bool>,
}

impl Inserted {
    /// Nothing yet; `None` where the load inserts nothing.
    pub(crate) fn new(work: &Work, (thread, threads): (u32, u32)) -> Option<Self> {
        Some(Self {
            inserting: work.inserting?,
            keys: work.keys.keys(),
            thread: thread.into(),
            threads: threads.into(),
            over: 0,
            later: VecDeque::new(),
        })
    }

    /// Draws request `n` of all, which is this thread's `own`-th.
    pub(crate) fn draw(&mut self, work: &Work, streams: &Streams, (n, own): (u64, u64)) -> Drawn {
        if let Some(ordinal) = self.inserting.which.ordinal(own) {
            self.later.push_back(false);
            return work.draw_of(streams, n, self.inserting.operation, self.key(ordinal));
        }
        let newest = Key(self.keys - 1 + self.over);
        work.draw_with_newest(streams, n, newest, |key| {
            key.0.checked_sub(self.keys).map_or(key, |ordinal| self.key(ordinal))
        })
    }

    /// A request is over, however it ended: one that failed must not hold up those after it.
    pub(crate) fn ended(&mut self, drawn: &Drawn) {
        if drawn.operation as usize != self.inserting.operation {
            return;
        }
        let ordinal = (drawn.key.0 - self.keys) / self.threads;
        self.later[(ordinal - self.over) as usize] = true;
        while self.later.front() == Some(&true) {
            self.later.pop_front();
            self.over += 1;
        }
    }

    fn key(&self, ordinal: u64) -> Key {
        Key(self.keys + ordinal * self.threads + self.thread)
    }
}

#[cfg(test)]
#[path = "inserts_tests.rs"]
mod tests;
