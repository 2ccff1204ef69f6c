//! Whose turn it is: clients that may send, that think, and that are at work at all.

use std::cmp::Reverse;

use super::offer::{Pacing, Think};
use super::protocol::Parser;
use super::worker::Worker;

impl<P: Parser + Default> Worker<'_, P> {
    /// A client begins to work.
    pub(super) fn starts(&mut self, client: u32, now: u64) {
        match self.shared.offer.pacing {
            Pacing::Closed { think, .. } if think.is_drawn => self.thinks(client, now, think),
            _ => self.may_send(client),
        }
    }

    fn thinks(&mut self, client: u32, now: u64, think: Think) {
        let ns = if think.is_drawn { self.clients.pauses.below(think.ns + 1) } else { think.ns };
        self.clients.thinking.push(Reverse((now + ns, client)));
    }

    /// Clients begin to work, or will send no more, as their number says.
    pub(super) fn follow_client_schedule(&mut self, now: u64) {
        let Some(client_schedule) = &self.clients.client_schedule else { return };
        let (clients, changes_ns) = client_schedule.at(now.saturating_sub(self.clock.begun_ns));
        self.clients.schedule_changes_ns = self.clock.begun_ns.saturating_add(changes_ns);
        let before = std::mem::replace(&mut self.clients.active, clients);
        (before..clients).for_each(|client| self.starts(client, now));
    }

    /// Queues a client when it has room for a request and its connections are open.
    pub(super) fn may_send(&mut self, client: u32) {
        let own = &self.clients.all[client as usize];
        let room = match self.shared.offer.pacing {
            Pacing::Closed { .. } => own.in_flight == 0,
            Pacing::Open { .. } => own.in_flight < self.shared.offer.pipeline,
        };
        let may = self.clock.running && room && !own.queued && client < self.clients.active;
        if may && self.is_open(client) {
            self.clients.all[client as usize].queued = true;
            self.clients.free.push_back(client);
        }
    }

    /// True when all connections of a client are open, but for those to servers that nobody asks.
    fn is_open(&self, client: u32) -> bool {
        let is_open = |node| self.links.connections[self.at(client, node)].is_open();
        (0..self.links.nodes.len()).all(|node| is_open(node) || !self.links.nodes[node].is_needed)
    }

    /// A client has got a reply; with the last of them it thinks, and sends again.
    pub(super) fn answered(&mut self, client: u32, now: u64) {
        let in_flight = self.clients.all[client as usize].in_flight;
        if self.shared.offer.hangs_up {
            if in_flight == 0 {
                self.clients.hung_up.push_back(client);
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
            let client = self.clients.free.pop_front()?;
            self.clients.all[client as usize].queued = false;
            // One whose connection broke meanwhile is queued again once that is open, and one that
            // went once it is back.
            if client < self.clients.active && self.is_open(client) {
                return Some(client);
            }
        }
    }
}
