//! Keys that live on another server than they did: requests follow them, and servers that are new
//! get connections.

use std::cmp::Reverse;
use std::collections::HashSet;

use model::ErrorClass;

use super::connection::Connection;
use super::links::Node;
use super::protocol::{Greeting, Parser, UNASKED};
use super::request::{Answered, Pending, Referred};
use super::row::Times;
use super::stream::Address;
use super::worker::Worker;

/// Times that a request is sent on to another server before it counts as failed.
const HOPS_MAX: u8 = 8;

impl<P: Parser + Default> Worker<'_, P> {
    /// Sends a request to the server that it was referred to, at once or when that can be asked;
    /// false where it never can.
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
            self.shared.surveying.want(Some(address));
            self.links.referred.push(referred);
        }
        waits
    }

    /// Sends a request to the server that it was referred to; false when it cannot be asked.
    fn send_on(&mut self, referred: &Referred) -> bool {
        let Referred { client, answered, address, for_good } = referred;
        let (drawn, times) = (answered.drawn, answered.times);
        let mut name = Vec::new();
        self.shared.work.names.append(&mut name, drawn.key);
        let Some(node) = self.links.route.moved(&name, address, *for_good) else { return false };
        self.needs(node);
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
            pending.push_back(Pending::Hello(Greeting { expect: UNASKED, harmless, secret }));
        }
        let (intended_ns, sent_ns, hops) = (times.intended_ns, times.sent_ns, answered.hops + 1);
        pending.push_back(Pending::Request { drawn, intended_ns, sent_ns, hops });
        self.recorder.redirects += 1;
        self.send_scratch(there, node);
        true
    }

    /// Takes over what was learnt of where keys live, and sends what waited for it; done every
    /// tick.
    pub(super) fn follow_keys(&mut self, now: u64) {
        if self.shared.surveying.generation() != self.links.generation {
            self.take_over_layout();
        }
        for referred in std::mem::take(&mut self.links.referred) {
            let Referred { client, answered, address, .. } = &referred;
            if now.saturating_sub(answered.times.sent_ns) > self.shared.offer.timeout_ns {
                let message = format!(
                    "the server refers to {address}, to which no connection could be made in time"
                );
                let times = Times { done_ns: now, ..answered.times };
                self.unanswered(&answered.drawn, &times, (ErrorClass::Timeout, &message));
                self.ended(*client, &answered.drawn);
                self.answered(*client, now);
            } else if !self.send_on(&referred) {
                self.shared.surveying.want(Some(address));
                self.links.referred.push(referred);
            }
        }
    }

    fn take_over_layout(&mut self) {
        let standing = self.shared.surveying.standing();
        self.links.generation = standing.generation;
        self.links.route = standing.route.fresh();
        self.add_nodes(&standing.nodes[self.links.nodes.len()..]);
        for node in 0..self.links.nodes.len() {
            if standing.has_keys(node) {
                self.needs(node);
            } else {
                self.links.nodes[node].is_needed = false;
            }
        }
        // Those that waited for a server that has no keys any more; who thinks comes by himself.
        let thinking: HashSet<u32> =
            self.clients.thinking.iter().map(|Reverse((_, c))| *c).collect();
        let clients = 0..self.clients.all.len() as u32;
        clients.filter(|c| !thinking.contains(c)).for_each(|client| self.may_send(client));
    }

    /// Adds servers, to which no client is connected yet.
    pub(super) fn add_nodes(&mut self, addresses: &[Address]) {
        for address in addresses {
            let node = self.links.nodes.len() as u32;
            let clients = 0..self.clients.all.len() as u32;
            self.links.connections.extend(clients.map(|client| Connection::new(client, node)));
            self.links.nodes.push(Node::new(address.clone()));
            self.scratch.push(Vec::new());
        }
    }

    /// Takes note that a server is asked, so that it must be reached.
    fn needs(&mut self, node: usize) {
        let now = self.shared.now_ns();
        self.links.nodes[node].needed(now);
    }
}
