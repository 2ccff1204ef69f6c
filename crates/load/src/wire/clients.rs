//! What a thread knows of its clients.

use stats::SplitMix64;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use workloads::kv::numbers;

use super::client_schedule::ClientSchedule;
use super::offer::{Offer, Pacing};

/// Stream of random numbers that pauses are drawn from.
const PAUSES: u64 = 0x7061_7573;

/// What a client has in flight.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Client {
    pub(super) in_flight: u32,
    /// True while it stands in the queue of those that may send.
    pub(super) queued: bool,
    /// When its connections began to be made anew; 0 for those of the start.
    pub(super) redials_since_ns: u64,
}

/// A thread's clients.
pub(super) struct Clients {
    pub(super) all: Vec<Client>,
    /// Those that may send.
    pub(super) free: VecDeque<u32>,
    /// Those whose connections are to be made anew.
    pub(super) hung_up: VecDeque<u32>,
    /// Those that think, by the time at which they may send again.
    pub(super) thinking: BinaryHeap<Reverse<(u64, u32)>>,
    /// What pauses are drawn from.
    pub(super) pauses: SplitMix64,
    /// Which of a closed load are at work, where that changes.
    pub(super) client_schedule: Option<ClientSchedule>,
    /// How many are, and until when.
    pub(super) active: u32,
    pub(super) schedule_changes_ns: u64,
}

impl Clients {
    /// The share of thread `index`; pauses are drawn by `seed`.
    pub(super) fn new(offer: &Offer, index: u32, seed: u64) -> Self {
        let threads = offer.threads;
        let clients = offer.clients / threads + u32::from(index < offer.clients % threads);
        let client_schedule = match &offer.pacing {
            Pacing::Closed { stages, .. } if !stages.is_empty() => {
                Some(ClientSchedule::new(stages, (index, threads)))
            }
            _ => None,
        };
        Self {
            all: vec![Client::default(); clients as usize],
            free: VecDeque::new(),
            hung_up: VecDeque::new(),
            thinking: BinaryHeap::new(),
            pauses: numbers(seed, PAUSES, u64::from(index)),
            client_schedule,
            active: clients,
            schedule_changes_ns: u64::MAX,
        }
    }
}
