//! How a load is offered, and to which servers.

use std::fmt;

use super::pacer::{Arrivals, Stage};
use super::protocol::Greeting;
use super::route::{Layout, Route, Survey};
use super::stream::{Address, Tls};

/// Pauses of a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Think {
    /// Between its replies and its next requests, nanoseconds; 0 for none.
    pub ns: u64,
    /// True where each is drawn evenly from 0 to that, and the first comes before a client's first
    /// request.
    pub is_drawn: bool,
}

/// How requests are paced.
#[derive(Clone, Debug, PartialEq)]
pub enum Pacing {
    /// Each client sends its next requests when its last ones are answered and it has thought.
    Closed {
        /// For how long.
        think: Think,
        /// Clients at work over time, from the start of the warm-up on; empty for all of them all
        /// the time. Those that are not at work yet or any more stay connected.
        stages: Vec<model::Stage>,
    },
    /// Requests are sent when they are due, whether or not others are answered, by the first client
    /// with room for one; where none has room they wait, and nothing is left out.
    Open {
        /// Spacing of arrivals.
        arrivals: Arrivals,
        /// Rates over time, from the start of the warm-up on; the load ends with the last one.
        stages: Vec<Stage>,
    },
}

/// When a load ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// After that many requests, over all threads.
    Requests(u64),
    /// That many nanoseconds after the warm-up.
    AfterNs(u64),
}

/// How a load is offered.
#[expect(clippy::struct_excessive_bools, reason = "each is a choice of its own")]
#[derive(Clone, Debug)]
pub struct Offer {
    /// Threads; at least 1 and at most as many as clients.
    pub threads: u32,
    /// Clients, over all threads; each has a connection to every server.
    pub clients: u32,
    /// Requests that a client may have in flight.
    pub pipeline: u32,
    /// How requests are paced.
    pub pacing: Pacing,
    /// When it ends.
    pub until: Until,
    /// Nanoseconds that are not recorded.
    pub warmup_ns: u64,
    /// Nanoseconds after which a request counts as not answered; its connection is made anew.
    pub timeout_ns: u64,
    /// CPUs of the threads; empty to leave them where they are.
    pub cpus: Vec<usize>,
    /// True when a thread may keep its CPU busy while it waits for less than its wake-up takes.
    pub spin: bool,
    /// True when broken connections are made anew, false when the first ends the load.
    pub reconnects: bool,
    /// True when an error reply ends the load.
    pub errors_end_it: bool,
    /// True when a client hangs up once all it sent is answered, and sends its next requests on
    /// connections made anew. Under a closed load they are intended from when that begins, and
    /// nobody thinks.
    pub hangs_up: bool,
    /// Of an open load: times after which an answer is too late, nanoseconds, each once; what was
    /// due is then counted by interval. Empty for none.
    pub limits_ns: Vec<u64>,
    /// Which one of several loads on the same data it is: others have other arrivals and draw
    /// other requests.
    pub number: u64,
}

/// Where the load goes. Prints without what is said first, which may hold a password.
pub struct Servers {
    /// Every server, in the order in which the route counts them.
    pub nodes: Vec<Address>,
    /// How TLS is spoken to them, where it is.
    pub tls: Option<Tls>,
    /// What a new connection says first.
    pub hello: Vec<u8>,
    /// What is answered to that.
    pub hello_replies: Vec<Greeting>,
    /// Which key lives where.
    pub route: Box<dyn Route>,
    /// How to learn that anew; `None` where keys stay where they are.
    pub survey: Option<Box<dyn Survey>>,
}

impl Servers {
    /// Where keys live now, as far as it can be learnt.
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
