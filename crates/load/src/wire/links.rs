//! A thread's state of the servers and of its connections to them.

use model::ErrorClass;

use super::connection::Connection;
use super::request::Referred;
use super::route::Route;
use super::stream::Address;
use super::surveying::KnownLayout;

/// A thread's connections, and the route of keys to servers.
pub(super) struct Links<P> {
    /// All clients' connections to the first server, then those to the next.
    pub(super) connections: Vec<Connection<P>>,
    /// State of each server.
    pub(super) nodes: Vec<Node>,
    pub(super) route: Box<dyn Route>,
    /// Generation of the layout that the thread has adopted.
    pub(super) generation: u64,
    /// Requests that were referred to a server that cannot be reached yet.
    pub(super) referred: Vec<Referred>,
    /// Number of connections being opened.
    pub(super) opening: usize,
    /// Number of open connections.
    pub(super) open: usize,
    /// Index of the connection that is checked next for a timeout.
    pub(super) next_timeout_check: usize,
    /// When servers were last checked for silence.
    pub(super) silence_checked_ns: u64,
}

impl<P> Links<P> {
    /// No servers yet, with the route of `known_layout`.
    pub(super) fn new(known_layout: &KnownLayout) -> Self {
        Self {
            connections: Vec::new(),
            nodes: Vec::new(),
            route: known_layout.route.fresh(),
            generation: known_layout.generation,
            referred: Vec::new(),
            opening: 0,
            open: 0,
            next_timeout_check: 0,
            silence_checked_ns: 0,
        }
    }
}

/// A thread's state of a server.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) address: Address,
    /// False if it has no keys any more and no referral points to it, so no requests go there.
    pub(super) is_needed: bool,
    /// When it last answered a request; 0 for never.
    pub(super) answered_ns: u64,
    /// Until when an answer may have gone unnoticed because the thread did not run.
    pub(super) unobserved_until_ns: u64,
    /// Open connections to it.
    pub(super) open: u32,
    /// Since when it has had no open connection although it is needed; 0 while it has one.
    pub(super) down_since_ns: u64,
    /// The latest connection failure.
    pub(super) last_fault: Option<(ErrorClass, String)>,
}

impl Node {
    pub(super) fn new(address: Address) -> Self {
        let (answered_ns, unobserved_until_ns, open, down_since_ns, last_fault) =
            (0, 0, 0, 0, None);
        Self {
            address,
            is_needed: true,
            answered_ns,
            unobserved_until_ns,
            open,
            down_since_ns,
            last_fault,
        }
    }

    /// Marks the server as one that must be reached.
    pub(super) fn mark_needed(&mut self, now: u64) {
        if !self.is_needed {
            self.down_since_ns = if self.open == 0 { now } else { 0 };
        }
        self.is_needed = true;
    }
}
