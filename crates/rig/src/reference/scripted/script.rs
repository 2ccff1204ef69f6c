//! What a scripted server does, as a value.
//!
//! Written as words joined by commas, such as `service=exponential:1ms,stall=200ms/2s,wrong=0.01`:
//!
//! | word | meaning |
//! |---|---|
//! | `service=constant:TIME` | each request takes so long |
//! | `service=exponential:TIME` | takes a time of the exponential distribution with this mean |
//! | `service=bimodal:TIME:TIME:SHARE` | takes the first time, or with this share the second |
//! | `servers=N` | so many requests are served at once (1) |
//! | `stall=TIME/TIME` | stops for the first time once every second time |
//! | `stall-once=TIME@TIME` | stops for the first time, the second time after the first request |
//! | `stall-connection=TIME@N` | the N-th connection is not read for this time |
//! | `rate=N` | at most so many replies a second |
//! | `drip=SIZE/TIME` | replies go out in pieces of this size, one each time |
//! | `error=SHARE:TEXT` | this share of requests is answered by an error |
//! | `wrong=SHARE` | one byte of a value is changed |
//! | `short=SHARE` | a value lacks its last byte |
//! | `malformed=SHARE` | the reply is not of the protocol |
//! | `gigantic=SHARE` | the reply announces 512 MiB, of which hardly anything follows |
//! | `endless=SHARE` | the reply is a line that does not end |
//! | `hang=SHARE` | the connection is not answered any more |
//! | `reset=SHARE` | the connection is reset instead of a reply |
//! | `faults-on=COMMAND` | faults with a share happen to requests of this command only |
//! | `faults-after=N` | faults with a share begin after this many requests, over all connections |
//! | `reset-after=N` | each connection is reset instead of a reply after N of them |
//! | `close-on-accept` | connections are closed at once |
//! | `max-connections=N` | more connections than that are refused as Redis does |
//! | `seed=N` | another draw of random times and faults (1) |
//!
//! Stalls and the rate may be given together with any service. Faults with a share exclude each
//! other: of each request at most one happens.

/// How long a request is served.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Service {
    /// No time at all: a reply is due when its request was read.
    #[default]
    None,
    /// Always as long.
    Constant {
        /// Nanoseconds.
        ns: u64,
    },
    /// Of the exponential distribution.
    Exponential {
        /// Its mean, in nanoseconds.
        mean_ns: u64,
    },
    /// One of two times.
    Bimodal {
        /// The one, in nanoseconds.
        fast_ns: u64,
        /// The other, in nanoseconds.
        slow_ns: u64,
        /// Share of requests that take the other, 0 to 1.
        slow_share: f64,
    },
}

/// When the whole server stops. While it does, nothing is read, answered or accepted, and the time
/// counts for no request: it is as if the process were stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stall {
    /// For `for_ns` once every `every_ns`, for the first time `every_ns` after the first request.
    Every {
        /// How long, in nanoseconds; less than `every_ns`.
        for_ns: u64,
        /// From one beginning to the next, in nanoseconds.
        every_ns: u64,
    },
    /// Once, `after_ns` after the first request.
    Once {
        /// How long, in nanoseconds.
        for_ns: u64,
        /// When it begins, in nanoseconds after the first request.
        after_ns: u64,
    },
}

/// One connection that stops: what it sends is not read for a time from when it first sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionStall {
    /// Number of the connection, 1 for the first that was taken.
    pub connection: u64,
    /// How long, in nanoseconds.
    pub for_ns: u64,
}

/// How reply bytes go out piecemeal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drip {
    /// Bytes of a piece, at least 1.
    pub bytes: usize,
    /// Time from one piece to the next, in nanoseconds.
    pub every_ns: u64,
}

/// What goes wrong with a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It is answered by an error of this text, and not carried out.
    Error(String),
    /// One byte of the (first) value in the reply is changed. Other replies stay as they are.
    Wrong,
    /// The (first) value in the reply lacks its last byte. Other replies stay as they are.
    Short,
    /// The reply is a line that is not of the protocol.
    Malformed,
    /// The reply announces 512 MiB; 16 bytes follow, and then nothing on this connection.
    Gigantic,
    /// The reply is a line without end: 16 KiB a millisecond, as long as they are taken.
    Endless,
    /// It is carried out, but neither it nor a later one on its connection is answered.
    Hang,
    /// It is carried out and the connection is reset instead of a reply: with RST on TCP; a unix
    /// socket knows no such thing and is closed.
    Reset,
}

/// What a scripted server does. Without anything it answers at once and rightly.
#[derive(Clone, Debug, PartialEq)]
pub struct Script {
    /// How long a request is served.
    pub service: Service,
    /// How many requests are served at once, at least 1. The others of all connections wait in one
    /// queue, in the order in which they were read.
    pub servers: usize,
    /// When the whole server stops.
    pub stalls: Vec<Stall>,
    /// Which connections stop.
    pub connection_stalls: Vec<ConnectionStall>,
    /// Most replies a second; they leave at least this far apart, in order of arrival.
    pub rate_per_s: Option<f64>,
    /// How reply bytes go out; `None` for as fast as they are taken.
    pub drip: Option<Drip>,
    /// Each fault with the share of requests that it happens to; all shares together are at most 1.
    pub faults: Vec<(Fault, f64)>,
    /// The command, in lower case, that these faults happen to; `None` for every command.
    pub faults_on: Option<String>,
    /// Requests, over all connections, before the first of these faults may happen.
    pub faults_after: u64,
    /// Replies after which a connection is reset.
    pub reset_after: Option<u64>,
    /// Connections are closed at once.
    pub close_on_accept: bool,
    /// Connections that may be open at once; one more is told so and closed.
    pub connections_max: Option<u64>,
    /// Where random times and faults begin. They are drawn apart, so that times stay the same when
    /// faults are added.
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
