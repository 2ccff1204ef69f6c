//! The keys that a load inserts: which request inserts which key, and which keys exist already.
//!
//! Inserts are numbered per thread, so threads agree on key names without communication: the i-th
//! insert of thread t of T is key `keys + i·T + t`. Under [`Latest`] and [`YcsbLatest`] a thread
//! requests only keys that exist: the filled ones, and those of its own inserts before its first
//! one in flight. YCSB's acknowledged counter works the same way. So the keys that a thread
//! requests depend on the replies that it has received.
//!
//! [`Latest`]: workloads::kv::Distribution::Latest
//! [`YcsbLatest`]: workloads::kv::Distribution::YcsbLatest

use std::collections::VecDeque;

use workloads::kv::Key;

use super::work::{Drawn, Inserting, Streams, Work};

/// Inserts of a thread.
#[derive(Debug)]
pub(crate) struct Inserted {
    inserting: Inserting,
    /// Number of keys before the first insert.
    keys: u64,
    thread: u64,
    threads: u64,
    /// Number of inserts before the first one in flight.
    completed: u64,
    /// Whether each insert has ended, from the first one in flight.
    later: VecDeque<bool>,
}

impl Inserted {
    /// No inserts yet; `None` if the load inserts nothing.
    pub(crate) fn new(work: &Work, (thread, threads): (u32, u32)) -> Option<Self> {
        Some(Self {
            inserting: work.inserting?,
            keys: work.keys.keys(),
            thread: thread.into(),
            threads: threads.into(),
            completed: 0,
            later: VecDeque::new(),
        })
    }

    /// Draws request `n` of all threads, which is the `own`-th of this thread.
    pub(crate) fn draw(&mut self, work: &Work, streams: &Streams, (n, own): (u64, u64)) -> Drawn {
        if let Some(ordinal) = self.inserting.which.ordinal(own) {
            self.later.push_back(false);
            return work.draw_of(streams, n, self.inserting.operation, self.key(ordinal));
        }
        let newest = Key(self.keys - 1 + self.completed);
        work.draw_with_newest(streams, n, newest, |key| {
            key.0.checked_sub(self.keys).map_or(key, |ordinal| self.key(ordinal))
        })
    }

    /// Ends a request, whatever its outcome: a failed one must not block those after it.
    pub(crate) fn ended(&mut self, drawn: &Drawn) {
        if drawn.operation as usize != self.inserting.operation {
            return;
        }
        let ordinal = (drawn.key.0 - self.keys) / self.threads;
        self.later[(ordinal - self.completed) as usize] = true;
        while self.later.front() == Some(&true) {
            self.later.pop_front();
            self.completed += 1;
        }
    }

    fn key(&self, ordinal: u64) -> Key {
        Key(self.keys + ordinal * self.threads + self.thread)
    }
}

#[cfg(test)]
#[path = "inserts_tests.rs"]
mod tests;
