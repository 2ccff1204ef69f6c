//! A thread's state of its clients.

use stats::SplitMix64;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use workloads::kv::numbers;

use super::client_schedule::ClientSchedule;
use super::offer::{Offer, Pacing};

/// Random stream for think times.
const PAUSES: u64 = 0x7061_7573;

/// State of a client.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Client {
    pub(super) in_flight: u32,
    /// True while the client is queued to send.
    pub(super) queued: bool,
    /// When the client started to reconnect; 0 for its first connections.
    pub(super) redials_since_ns: u64,
}

/// A thread's clients.
pub(super) struct Clients {
    pub(super) all: Vec<Client>,
    /// Clients that may send.
    pub(super) free: VecDeque<u32>,
    /// Clients that have to reconnect.
    pub(super) hung_up: VecDeque<u32>,
    /// Thinking clients, by the time at which they may send again.
    pub(super) thinking: BinaryHeap<Reverse<(u64, u32)>>,
    /// Random numbers for think times.
    pub(super) pauses: SplitMix64,
    /// Active clients of a closed load over time, if that changes.
    pub(super) client_schedule: Option<ClientSchedule>,
    /// Number of active clients, and until when.
    pub(super) active: u32,
    pub(super) schedule_changes_ns: u64,
}

impl Clients {
    /// The clients of thread `index`; think times are drawn with `seed`.
    pub(super) fn new(offer: &Offer, index: u32, seed: u64) -> Self {
        let (number, clients) = (offer.numbered(index), offer.clients_of(index));
        let client_schedule = match &offer.pacing {
            Pacing::Closed { stages, .. } if !stages.is_empty() => {
                Some(ClientSchedule::new(stages, number))
            }
            _ => None,
        };
        Self {
            all: vec![Client::default(); clients as usize],
            free: VecDeque::new(),
            hung_up: VecDeque::new(),
            thinking: BinaryHeap::new(),
            pauses: numbers(seed, PAUSES, u64::from(number.0)),
            client_schedule,
            active: clients,
            schedule_changes_ns: u64::MAX,
        }
    }
}
