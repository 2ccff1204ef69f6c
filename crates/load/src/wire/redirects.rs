//! Keys that have moved to another server: requests follow them, and new servers get connections.

use std::cmp::Reverse;
use std::collections::HashSet;

use model::ErrorClass;

use super::connection::Connection;
use super::links::Node;
use super::protocol::{Greeting, Parser, UNSOLICITED};
use super::request::{Answered, Pending, Referred};
use super::row::Times;
use super::stream::Address;
use super::worker::Worker;

/// How often a request may be redirected before it counts as failed.
const HOPS_MAX: u8 = 8;

impl<P: Parser + Default> Worker<'_, P> {
    /// Sends a request to the server that it was referred to, now or as soon as that can be
    /// reached; false if it never can.
    pub(super) fn refer(
        &mut self,
        client: u32,
        answered: Answered,
        address: &str,
        for_good: bool,
    ) -> bool {
        if answered.hops >= HOPS_MAX {
            return false;
        }
        let referred = Referred { client, answered, address: address.into(), for_good };
        if self.send_on(&referred) {
            return true;
        }
        let waits = self.shared.surveying.may_change();
        if waits {
            self.shared.surveying.request(Some(address));
            self.links.referred.push(referred);
        }
        waits
    }

    /// Sends a request to the server that it was referred to; false if that cannot be reached now.
    fn send_on(&mut self, referred: &Referred) -> bool {
        let Referred { client, answered, address, for_good } = referred;
        let (drawn, times) = (answered.drawn, answered.times);
        let mut name = Vec::new();
        self.shared.work.names.append(&mut name, drawn.key);
        let Some(node) = self.links.route.moved(&name, address, *for_good) else { return false };
        self.mark_needed(node);
        let asking = if *for_good { &b""[..] } else { self.links.route.asking() };
        let there = self.at(*client, node);
        if !self.links.connections[there].is_open() {
            return false;
        }
        let scratch = &mut self.scratch[node];
        scratch.extend_from_slice(asking);
        self.shared.work.append(&self.requests.streams, scratch, &drawn);
        let pending = &mut self.links.connections[there].pending;
        if !asking.is_empty() {
            let (harmless, secret) = (true, false);
            pending.push_back(Pending::Hello(Greeting { expect: UNSOLICITED, harmless, secret }));
        }
        let (intended_ns, sent_ns, hops) = (times.intended_ns, times.sent_ns, answered.hops + 1);
        pending.push_back(Pending::Request { drawn, intended_ns, sent_ns, hops });
        self.recorder.redirects += 1;
        self.send_scratch(there, node);
        true
    }

    /// Adopts a new layout of keys, and sends requests that waited for a server. Called every tick.
    pub(super) fn follow_keys(&mut self, now: u64) {
        if self.shared.surveying.generation() != self.links.generation {
            self.adopt_layout();
        }
        for referred in std::mem::take(&mut self.links.referred) {
            let Referred { client, answered, address, .. } = &referred;
            if now.saturating_sub(answered.times.sent_ns) > self.shared.offer.timeout_ns {
                let message =
                    format!("the server refers to {address}, which could not be reached in time");
                let times = Times { done_ns: now, ..answered.times };
                self.unanswered(&answered.drawn, &times, (ErrorClass::Timeout, &message));
                self.ended(*client, &answered.drawn);
                self.answered(*client, now);
            } else if !self.send_on(&referred) {
                self.shared.surveying.request(Some(address));
                self.links.referred.push(referred);
            }
        }
    }

    fn adopt_layout(&mut self) {
        let known_layout = self.shared.surveying.known_layout();
        self.links.generation = known_layout.generation;
        self.links.route = known_layout.route.fresh();
        self.add_nodes(&known_layout.nodes[self.links.nodes.len()..]);
        for node in 0..self.links.nodes.len() {
            if known_layout.has_keys(node) {
                self.mark_needed(node);
            } else {
                self.links.nodes[node].is_needed = false;
            }
        }
        // Wakes clients that waited for a server that lost its keys; thinking ones wake up anyway.
        let thinking: HashSet<u32> =
            self.clients.thinking.iter().map(|Reverse((_, c))| *c).collect();
        let clients = 0..self.clients.all.len() as u32;
        clients.filter(|c| !thinking.contains(c)).for_each(|client| self.queue_if_ready(client));
    }

    /// Adds servers that no client is connected to yet.
    pub(super) fn add_nodes(&mut self, addresses: &[Address]) {
        for address in addresses {
            let node = self.links.nodes.len() as u32;
            let clients = 0..self.clients.all.len() as u32;
            self.links.connections.extend(clients.map(|client| Connection::new(client, node)));
            self.links.nodes.push(Node::new(address.clone()));
            self.scratch.push(Vec::new());
        }
    }

    /// Marks a server as needed, so it must be reached.
    fn mark_needed(&mut self, node: usize) {
        let now = self.shared.now_ns();
        self.links.nodes[node].mark_needed(now);
    }
}
