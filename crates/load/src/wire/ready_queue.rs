//! Scheduling of clients: which ones may send, think or are active.

use std::cmp::Reverse;

use super::offer::{Pacing, ThinkTime};
use super::protocol::Parser;
use super::worker::Worker;

impl<P: Parser + Default> Worker<'_, P> {
    /// Activates a client.
    pub(super) fn start_client(&mut self, client: u32, now: u64) {
        match self.shared.offer.pacing {
            Pacing::Closed { think, .. } if think.is_drawn => {
                self.start_thinking(client, now, think);
            }
            _ => self.queue_if_ready(client),
        }
    }

    fn start_thinking(&mut self, client: u32, now: u64, think: ThinkTime) {
        let ns = if think.is_drawn { self.clients.pauses.below(think.ns + 1) } else { think.ns };
        self.clients.thinking.push(Reverse((now + ns, client)));
    }

    /// Activates or retires clients as scheduled.
    pub(super) fn follow_client_schedule(&mut self, now: u64) {
        let Some(client_schedule) = &self.clients.client_schedule else { return };
        let (clients, changes_ns) = client_schedule.at(now.saturating_sub(self.clock.begun_ns));
        self.clients.schedule_changes_ns = self.clock.begun_ns.saturating_add(changes_ns);
        let before = std::mem::replace(&mut self.clients.active, clients);
        (before..clients).for_each(|client| self.start_client(client, now));
    }

    /// Queues a client if it has room for a request and its connections are open.
    pub(super) fn queue_if_ready(&mut self, client: u32) {
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

    /// True if all connections of a client to needed servers are open.
    fn is_open(&self, client: u32) -> bool {
        let is_open = |node| self.links.connections[self.at(client, node)].is_open();
        (0..self.links.nodes.len()).all(|node| is_open(node) || !self.links.nodes[node].is_needed)
    }

    /// Called for each reply to a client. After the last one in flight the client thinks and may
    /// send again.
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
            Pacing::Closed { think, .. } if think.ns > 0 => self.start_thinking(client, now, think),
            _ => self.queue_if_ready(client),
        }
    }

    /// The next client that may send.
    pub(super) fn next_free(&mut self) -> Option<u32> {
        loop {
            let client = self.clients.free.pop_front()?;
            self.clients.all[client as usize].queued = false;
            // A client whose connection broke is queued again once it reconnects; a retired one
            // once it is activated again.
            if client < self.clients.active && self.is_open(client) {
                return Some(client);
            }
        }
    }
}
