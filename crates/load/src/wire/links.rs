//! What a thread knows of the servers and of its connections to them.

use model::ErrorClass;

use super::connection::Connection;
use super::request::Referred;
use super::route::Route;
use super::stream::Address;
use super::surveying::Standing;

/// A thread's connections, and where keys live.
pub(super) struct Links<P> {
    /// Those of all clients to one server, then those to the next.
    pub(super) connections: Vec<Connection<P>>,
    /// What it knows of each server.
    pub(super) nodes: Vec<Node>,
    pub(super) route: Box<dyn Route>,
    /// Which of the engine's layouts it follows.
    pub(super) generation: u64,
    /// Requests that were referred to a server that cannot be asked yet.
    pub(super) referred: Vec<Referred>,
    /// Connections that are being made.
    pub(super) opening: usize,
    /// Connections that can be used.
    pub(super) open: usize,
    /// The connection that is looked at next for a time-out.
    pub(super) next_look: usize,
    /// When it was looked last whether servers are silent.
    pub(super) listened_ns: u64,
}

impl<P> Links<P> {
    /// To no server yet, with the route of that layout.
    pub(super) fn new(standing: &Standing) -> Self {
        Self {
            connections: Vec::new(),
            nodes: Vec::new(),
            route: standing.route.fresh(),
            generation: standing.generation,
            referred: Vec::new(),
            opening: 0,
            open: 0,
            next_look: 0,
            listened_ns: 0,
        }
    }
}

/// What a thread knows of a server.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) address: Address,
    /// False where it has no keys any more and is not referred to, so that nobody asks it.
    pub(super) is_needed: bool,
    /// When it answered a request last; 0 for never.
    pub(super) answered_ns: u64,
    /// Until when it may have answered while the thread did not run.
    pub(super) unheard_ns: u64,
    /// Connections to it that can be used.
    pub(super) open: u32,
    /// Since when there is none, although there was or should be; 0 where there is one.
    pub(super) down_since_ns: u64,
    /// Why a connection to it broke last.
    pub(super) last_fault: Option<(ErrorClass, String)>,
}

impl Node {
    pub(super) fn new(address: Address) -> Self {
        let (answered_ns, unheard_ns, open, down_since_ns, last_fault) = (0, 0, 0, 0, None);
        Self { address, is_needed: true, answered_ns, unheard_ns, open, down_since_ns, last_fault }
    }

    /// Must be reached from now on, if that was not so before.
    pub(super) fn needed(&mut self, now: u64) {
        if !self.is_needed {
            self.down_since_ns = if self.open == 0 { now } else { 0 };
        }
        self.is_needed = true;
    }
}
