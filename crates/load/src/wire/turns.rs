//! Whose turn it is: clients that may send, that think, and that are at work at all.

use std::cmp::Reverse;

use workloads::kv::Random;

use super::engine::{Pacing, Think};
use super::protocol::Parser;
use super::worker::Worker;

/// Stream of [`Random`] that pauses are drawn from.
const PAUSES: u64 = 0x7061_7573;

/// What a client has under way.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Client {
    pub(super) in_flight: u32,
    /// True while it stands in the queue of those that may send.
    queued: bool,
    /// When its connections began to be made anew; 0 for those of the start.
    pub(super) redials_since_ns: u64,
}

/// What the pauses of a thread's clients are drawn from.
pub(super) fn pauses(seed: u64, thread: u32) -> Random {
    Random::new(seed, PAUSES, u64::from(thread))
}

impl<P: Parser + Default> Worker<'_, P> {
    /// A client begins to work.
    pub(super) fn starts(&mut self, client: u32, now: u64) {
        match self.shared.offer.pacing {
            Pacing::Closed { think, .. } if think.is_drawn => self.thinks(client, now, think),
            _ => self.may_send(client),
        }
    }

    fn thinks(&mut self, client: u32, now: u64, think: Think) {
        let ns = if think.is_drawn { self.pauses.below(think.ns + 1) } else { think.ns };
        self.thinking.push(Reverse((now + ns, client)));
    }

    /// Clients begin to work, or will send no more, as their number says.
    pub(super) fn come_and_go(&mut self, now: u64) {
        let Some(crowd) = &self.crowd else { return };
        let (clients, changes_ns) = crowd.at(now.saturating_sub(self.begun_ns));
        self.crowd_changes_ns = self.begun_ns.saturating_add(changes_ns);
        let before = std::mem::replace(&mut self.at_work, clients);
        (before..clients).for_each(|client| self.starts(client, now));
    }

    /// Queues a client when it has room for a request and its connections are open.
    pub(super) fn may_send(&mut self, client: u32) {
        let own = &self.clients[client as usize];
        let room = match self.shared.offer.pacing {
            Pacing::Closed { .. } => own.in_flight == 0,
            Pacing::Open { .. } => own.in_flight < self.shared.offer.pipeline,
        };
        let may = self.running && room && !own.queued && client < self.at_work;
        if may && self.is_open(client) {
            self.clients[client as usize].queued = true;
            self.free.push_back(client);
        }
    }

    /// True when all connections of a client are open, but for those to servers that nobody asks.
    fn is_open(&self, client: u32) -> bool {
        let is_open = |node| self.connections[self.at(client, node)].is_open();
        (0..self.nodes.len()).all(|node| is_open(node) || !self.nodes[node].is_needed)
    }

    /// A client has got a reply; with the last of them it thinks, and sends again.
    pub(super) fn answered(&mut self, client: u32, now: u64) {
        let in_flight = self.clients[client as usize].in_flight;
        if self.shared.offer.hangs_up {
            if in_flight == 0 {
                self.hung_up.push_back(client);
            }
            return;
        }
        match self.shared.offer.pacing {
            Pacing::Closed { .. } if in_flight > 0 => {}
            Pacing::Closed { think, .. } if think.ns > 0 => self.thinks(client, now, think),
            _ => self.may_send(client),
        }
    }

    /// The next client that may send.
    pub(super) fn next_free(&mut self) -> Option<u32> {
        loop {
            let client = self.free.pop_front()?;
            self.clients[client as usize].queued = false;
            // One whose connection broke meanwhile is queued again once that is open, and one that
            // went once it is back.
            if client < self.at_work && self.is_open(client) {
                return Some(client);
            }
        }
    }
}
