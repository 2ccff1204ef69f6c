//! Behaviour of a scripted server.
//!
//! Written as comma-separated directives, such as
//! `service=exponential:1ms,stall=200ms/2s,wrong=0.01`:
//!
//! | directive | meaning |
//! |---|---|
//! | `service=constant:TIME` | each request takes this time |
//! | `service=exponential:TIME` | each takes an exponentially distributed time with this mean |
//! | `service=bimodal:TIME:TIME:SHARE` | the first time, or the second for this share |
//! | `servers=N` | number of requests served in parallel (1) |
//! | `stall=LENGTH/PERIOD` | stalls for this length once per period |
//! | `stall-once=LENGTH@TIME` | stalls once, this long after the first request |
//! | `stall-connection=TIME@N` | connection N is not read for this time |
//! | `rate=N` | at most N replies per second |
//! | `drip=SIZE/TIME` | replies are sent in pieces of this size, one per interval |
//! | `error=SHARE:TEXT` | this share of requests is answered with an error |
//! | `wrong=SHARE` | one byte of a value is changed |
//! | `short=SHARE` | the last byte of a value is missing |
//! | `malformed=SHARE` | the reply violates the protocol |
//! | `gigantic=SHARE` | the reply announces 512 MiB, but almost nothing follows |
//! | `endless=SHARE` | the reply is an endless line |
//! | `hang=SHARE` | the connection gets no further replies |
//! | `reset=SHARE` | the connection is reset instead of a reply |
//! | `faults-on=COMMAND` | faults with a share affect only this command |
//! | `faults-after=N` | faults with a share start after N requests, over all connections |
//! | `reset-after=N` | each connection is reset after N replies |
//! | `close-on-accept` | connections are closed immediately |
//! | `max-connections=N` | further connections are refused as Redis does |
//! | `seed=N` | seed of random times and faults (1) |
//!
//! Stalls and the rate can be combined with any service. At most one fault with a share happens per
//! request.

/// Service time of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Service {
    /// No service time: a reply is due when its request was read.
    #[default]
    None,
    /// Constant.
    Constant {
        /// Nanoseconds.
        ns: u64,
    },
    /// Exponentially distributed.
    Exponential {
        /// Mean in nanoseconds.
        mean_ns: u64,
    },
    /// One of two times.
    Bimodal {
        /// The usual time in nanoseconds.
        fast_ns: u64,
        /// The slow time in nanoseconds.
        slow_ns: u64,
        /// Share of slow requests, 0 to 1.
        slow_share: f64,
    },
}

/// A stall of the whole server. During it, the server neither reads, replies nor accepts, and
/// service times do not advance, as if the process were stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stall {
    /// Periodic; the first stall starts `every_ns` after the first request.
    Every {
        /// Length in nanoseconds; less than `every_ns`.
        for_ns: u64,
        /// Time between two starts, in nanoseconds.
        every_ns: u64,
    },
    /// Once, `after_ns` after the first request.
    Once {
        /// Length in nanoseconds.
        for_ns: u64,
        /// Start, in nanoseconds after the first request.
        after_ns: u64,
    },
}

/// A stall of one connection: from its first data on, it is not read for a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionStall {
    /// Number of the connection in order of acceptance, from 1.
    pub connection: u64,
    /// Length in nanoseconds.
    pub for_ns: u64,
}

/// Sending of replies in small pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drip {
    /// Bytes per piece, at least 1.
    pub bytes: usize,
    /// Time between two pieces, in nanoseconds.
    pub every_ns: u64,
}

/// A fault injected into the handling of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The request is answered with this error and not executed.
    Error(String),
    /// One byte of the (first) value in the reply is changed. Other replies are unchanged.
    Wrong,
    /// The last byte of the (first) value in the reply is missing. Other replies are unchanged.
    Short,
    /// The reply is a line that violates the protocol.
    Malformed,
    /// The reply announces 512 MiB; 16 bytes follow, then nothing more on this connection.
    Gigantic,
    /// The reply is an endless line: 16 KiB per millisecond, as long as the client reads.
    Endless,
    /// The request is executed, but neither it nor a later one on its connection is answered.
    Hang,
    /// The request is executed, then the connection is reset instead of a reply: TCP sends RST; a
    /// unix socket has no equivalent and is closed.
    Reset,
}

/// Behaviour of a scripted server. By default it replies immediately and correctly.
#[derive(Clone, Debug, PartialEq)]
pub struct Script {
    /// Service time of a request.
    pub service: Service,
    /// Number of requests served in parallel, at least 1. Further requests of all connections wait
    /// in one queue in the order they were read.
    pub servers: usize,
    /// Stalls of the whole server.
    pub stalls: Vec<Stall>,
    /// Stalls of single connections.
    pub connection_stalls: Vec<ConnectionStall>,
    /// Maximum replies per second, evenly spaced at that rate and in order of arrival.
    pub rate_per_s: Option<f64>,
    /// Sending of replies in pieces; `None` to send them as fast as possible.
    pub drip: Option<Drip>,
    /// Faults with the share of requests that each affects; the sum is at most 1.
    pub faults: Vec<(Fault, f64)>,
    /// The command, in lower case, that these faults affect; `None` for all commands.
    pub faults_on: Option<String>,
    /// Number of requests, over all connections, before the first of these faults.
    pub faults_after: u64,
    /// Number of replies after which a connection is reset.
    pub reset_after: Option<u64>,
    /// Whether connections are closed immediately.
    pub close_on_accept: bool,
    /// Maximum number of open connections; further ones get an error and are closed.
    pub connections_max: Option<u64>,
    /// Seed of random times and faults. They are drawn independently, so adding faults does not
    /// change the times.
    pub seed: u64,
}

impl Default for Script {
    fn default() -> Self {
        Self {
            service: Service::None,
            servers: 1,
            stalls: Vec::new(),
            connection_stalls: Vec::new(),
            rate_per_s: None,
            drip: None,
            faults: Vec::new(),
            faults_on: None,
            faults_after: 0,
            reset_after: None,
            close_on_accept: false,
            connections_max: None,
            seed: 1,
        }
    }
}
