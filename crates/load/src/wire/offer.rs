//! The settings of a load, and the servers that it goes to.

use serde::{Deserialize, Serialize};
use std::fmt;

use super::pacer::{Arrivals, Stage};
use super::protocol::Greeting;
use super::route::{Layout, Route, Survey};
use super::stream::{Address, Tls};

/// Think time of a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThinkTime {
    /// Time between the last reply and the next request, nanoseconds; 0 for none.
    pub ns: u64,
    /// True if each is drawn uniformly from 0 to `ns`, and a client also thinks before its first
    /// request.
    pub is_drawn: bool,
}

/// Pacing of requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Pacing {
    /// Each client sends its next requests when its last ones are answered and its think time is
    /// over.
    Closed {
        /// Think time between them.
        think: ThinkTime,
        /// Active clients over time, from the start of the warm-up; empty if all are always active.
        /// Inactive clients stay connected.
        stages: Vec<model::Stage>,
    },
    /// Requests are sent when they are due, whether or not others have been answered, by the first
    /// client with room for one. If no client has room they wait; none is dropped.
    Open {
        /// Spacing of arrivals.
        arrivals: Arrivals,
        /// Rates over time, from the start of the warm-up; the load ends with the last stage.
        stages: Vec<Stage>,
    },
}

/// When a load ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Until {
    /// After this many requests, over all threads.
    Requests(u64),
    /// This many nanoseconds after the warm-up.
    AfterNs(u64),
}

/// The threads of one contributor to a load that several processes offer together. Threads are
/// numbered over all of them, so that clients, keys and arrivals are divided without communication.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// Number of its first thread.
    pub first: u32,
    /// Threads of all contributors; 0 if there is only one.
    pub threads: u32,
}

/// Settings of a load.
#[expect(clippy::struct_excessive_bools, reason = "independent settings")]
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Offer {
    /// Threads of this process; at least 1 and at most as many as clients.
    pub threads: u32,
    /// Its threads among those of all contributors.
    pub part: Part,
    /// Clients, over all threads of all contributors; each has a connection to every server.
    pub clients: u32,
    /// Requests that a client may have in flight.
    pub pipeline: u32,
    /// Pacing of requests.
    pub pacing: Pacing,
    /// When the load ends.
    pub until: Until,
    /// Length of the warm-up, which is not recorded, nanoseconds.
    pub warmup_ns: u64,
    /// Nanoseconds after which a request counts as unanswered; then the client reconnects.
    pub timeout_ns: u64,
    /// Nanoseconds without any answer after which the load ends; 0 for no limit.
    pub stall_ns: u64,
    /// CPUs of the threads; empty to leave the threads unpinned.
    pub cpus: Vec<usize>,
    /// True if a thread may poll instead of sleeping when the wait is shorter than its wake-up
    /// latency.
    pub spin: bool,
    /// True if clients reconnect after a failure, false if the first failure ends the load.
    pub reconnects: bool,
    /// True if an error reply ends the load.
    pub stop_on_error_reply: bool,
    /// True if a client disconnects once all its requests are answered, and reconnects for the next
    /// ones. Under a closed load their intended start is the start of the reconnect, and there is
    /// no think time.
    pub hangs_up: bool,
    /// For an open load: response time limits, nanoseconds, without duplicates. Due and late
    /// requests are counted by interval. Empty for none.
    pub limits_ns: Vec<u64>,
    /// Number of this load among several on the same data; each has different arrivals and
    /// requests.
    pub number: u64,
}

impl Offer {
    /// Number of one of this process's threads, and the number of all threads.
    pub(crate) fn numbered(&self, index: u32) -> (u32, u32) {
        match self.part.threads {
            0 => (index, self.threads),
            all => (self.part.first + index, all),
        }
    }

    /// Clients of one of this process's threads.
    pub(super) fn clients_of(&self, index: u32) -> u32 {
        let (thread, threads) = self.numbered(index);
        self.clients / threads + u32::from(thread < self.clients % threads)
    }

    /// Clients of this process.
    pub(super) fn own_clients(&self) -> u32 {
        (0..self.threads).map(|index| self.clients_of(index)).sum()
    }

    /// Share of the planned arrivals that this process offers.
    pub(super) fn own_share(&self) -> f64 {
        let (_, all) = self.numbered(0);
        f64::from(self.threads) / f64::from(all.max(1))
    }
}

/// The servers that the load goes to. The greeting is not printed because it may contain a
/// password.
pub struct Servers {
    /// All servers, in the order of the route's numbers.
    pub nodes: Vec<Address>,
    /// TLS settings; `None` for plain connections.
    pub tls: Option<Tls>,
    /// Greeting that is sent on a new connection.
    pub hello: Vec<u8>,
    /// Expected replies to the greeting.
    pub hello_replies: Vec<Greeting>,
    /// Which server each key lives on.
    pub route: Box<dyn Route>,
    /// Updates the layout of keys; `None` if keys never move.
    pub survey: Option<Box<dyn Survey>>,
}

impl Servers {
    /// The current layout of keys, or the configured one if no server can be asked.
    pub(super) fn layout(&self) -> Layout {
        let asked = self.survey.as_ref().and_then(|survey| survey.ask(&[], &[]));
        asked.unwrap_or_else(|| Layout { nodes: self.nodes.clone(), route: self.route.fresh() })
    }
}

impl fmt::Debug for Servers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut all = f.debug_struct("Servers");
        all.field("nodes", &self.nodes).field("tls", &self.tls.is_some());
        all.field("route", &self.route).finish_non_exhaustive()
    }
}
