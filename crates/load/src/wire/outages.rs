//! When servers answered nothing, over all threads of a load.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use model::Outage;

use super::stream::Address;

/// A server that lost a request, could not be reached, or is silent. Times are the engine's.
#[derive(Clone, Copy, Debug)]
struct Gone {
    node: usize,
    /// Who has most of what it had, where it has nothing any more.
    heir: Option<usize>,
    since_ns: u64,
    /// Shortest length that counts.
    least_ns: u64,
    /// When a connection to it, or to the heir, was open again and none of its requests has failed
    /// since or waits for long: nobody may ask for a while.
    open_ns: Option<u64>,
    /// When it answered again.
    until_ns: Option<u64>,
}

impl Gone {
    fn lasts_at(&self, node: usize) -> bool {
        self.until_ns.is_none() && (self.node == node || self.heir == Some(node))
    }

    fn counts(&self, length_ns: u64) -> bool {
        length_ns >= self.least_ns
    }
}

/// All of them, the present ones among them.
#[derive(Debug, Default)]
pub(crate) struct Outages {
    /// Bit `node modulo 64` is set while an answer of that server may end one.
    awaited: AtomicU64,
    all: Mutex<Vec<Gone>>,
}

fn bit(node: usize) -> u64 {
    1 << (node % 64)
}

impl Outages {
    fn lock(&self) -> MutexGuard<'_, Vec<Gone>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn changed(&self, all: &[Gone]) {
        let lasting = all.iter().filter(|gone| gone.until_ns.is_none());
        let awaited = lasting.flat_map(|gone| [Some(gone.node), gone.heir]).flatten();
        self.awaited.store(awaited.fold(0, |bits, node| bits | bit(node)), Ordering::Relaxed);
    }

    /// A server lost a request that was sent then, or cannot be reached since then.
    pub(crate) fn lost(&self, node: usize, since_ns: u64) {
        self.begins(node, since_ns, Outage::SHORTEST_NS);
    }

    /// A server has left a request waiting since then and answered nothing; that is no outage yet.
    pub(crate) fn silent(&self, node: usize, since_ns: u64) {
        self.begins(node, since_ns, Outage::SILENCE_NS);
    }

    fn begins(&self, node: usize, since_ns: u64, least_ns: u64) {
        let mut all = self.lock();
        if let Some(gone) = all.iter_mut().find(|gone| gone.lasts_at(node)) {
            gone.open_ns = None;
            gone.least_ns = gone.least_ns.min(least_ns);
            return;
        }
        all.push(Gone { node, heir: None, since_ns, least_ns, open_ns: None, until_ns: None });
        self.changed(&all);
    }

    /// A thread was answered by a server last at that time, maybe before another thread found it
    /// gone.
    pub(crate) fn heard(&self, node: usize, answered_ns: u64) {
        let mut all = self.lock();
        for gone in all.iter_mut().filter(|gone| gone.until_ns.is_none() && gone.node == node) {
            gone.since_ns = gone.since_ns.max(answered_ns);
        }
    }

    /// A connection to a server can be used.
    pub(crate) fn opened(&self, node: usize, now_ns: u64) {
        for gone in self.lock().iter_mut().filter(|gone| gone.lasts_at(node)) {
            gone.open_ns.get_or_insert(now_ns);
        }
    }

    /// True while an answer of a server may end an outage.
    #[inline]
    pub(crate) fn awaits(&self, node: usize) -> bool {
        self.awaited.load(Ordering::Relaxed) & bit(node) != 0
    }

    /// A server that is awaited refused a request.
    pub(crate) fn refused(&self, node: usize) {
        self.lock().iter_mut().filter(|gone| gone.lasts_at(node)).for_each(|g| g.open_ns = None);
    }

    /// A server that is awaited answered; by `answered_ns` the asking thread knows when each server
    /// answered it before. What one thread lost while others were answered was no outage.
    pub(crate) fn served(&self, node: usize, now_ns: u64, answered_ns: impl Fn(usize) -> u64) {
        let mut all = self.lock();
        for gone in all.iter_mut().filter(|gone| gone.lasts_at(node)) {
            gone.until_ns = Some(gone.open_ns.unwrap_or(now_ns));
            gone.since_ns = gone.since_ns.max(answered_ns(gone.node));
        }
        all.retain(|gone| {
            let lasted_ns = |until_ns: u64| until_ns.saturating_sub(gone.since_ns);
            gone.until_ns.is_none_or(|until_ns| gone.counts(lasted_ns(until_ns)))
        });
        self.changed(&all);
    }

    /// Servers have taken over from others, or these have something again: `heir_of` tells of each.
    pub(crate) fn inherited(&self, heir_of: impl Fn(usize) -> Option<usize>) {
        let mut all = self.lock();
        for gone in all.iter_mut().filter(|gone| gone.until_ns.is_none()) {
            let heir = heir_of(gone.node);
            if gone.heir != heir {
                (gone.heir, gone.open_ns) = (heir, None);
            }
        }
        self.changed(&all);
    }

    /// Those within the measurement, which began and ended then, by time; of a phase without name.
    pub(crate) fn within(&self, (from_ns, to_ns): (u64, u64), nodes: &[Address]) -> Vec<Outage> {
        let outage = |gone: &Gone| {
            let until_ns = gone.until_ns.or(gone.open_ns);
            let end_ns = until_ns.unwrap_or(to_ns).min(to_ns);
            let begun_ns = gone.since_ns.max(from_ns);
            let length_ns = end_ns.saturating_sub(begun_ns);
            let to_the_end = until_ns.is_none_or(|until_ns| until_ns > to_ns);
            gone.counts(length_ns).then(|| Outage {
                phase: String::new(),
                server: nodes[gone.node].to_string(),
                begun_ns: begun_ns - from_ns,
                length_ns,
                taken_over_by: gone.heir.map(|heir| nodes[heir].to_string()),
                to_the_end,
            })
        };
        let mut outages: Vec<Outage> = self.lock().iter().filter_map(outage).collect();
        outages.sort_by_key(|outage| outage.begun_ns);
        outages
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn nodes() -> Vec<Address> {
        (1..4).map(|n| Address::Unix(format!("/{n}").into())).collect()
    }

    fn lengths_ms(outages: &Outages, span_ms: (u64, u64)) -> Vec<u64> {
        let found = outages.within((span_ms.0 * MS, span_ms.1 * MS), &nodes());
        found.iter().map(|outage| outage.length_ns / MS).collect()
    }

    #[test]
    fn an_outage_ends_with_an_answer_of_the_server_or_its_heir() {
        let outages = Outages::default();
        assert!(!outages.awaits(1));
        outages.lost(1, 1_000 * MS);
        outages.lost(1, 1_500 * MS);
        assert!(outages.awaits(1) && !outages.awaits(2));
        // Another server answers.
        outages.served(2, 2_000 * MS, |_| 0);
        outages.inherited(|node| (node == 1).then_some(2));
        assert!(outages.awaits(2));
        assert_eq!(lengths_ms(&outages, (0, 2_500)), [1_500]);
        assert!(outages.within((0, 2_500 * MS), &nodes())[0].to_the_end);
        outages.served(2, 3_000 * MS, |_| 900 * MS);
        outages.served(2, 4_000 * MS, |_| 900 * MS);
        assert!(!outages.awaits(1) && !outages.awaits(2));
        let found = outages.within((500 * MS, 9_000 * MS), &nodes());
        let by = Some("unix socket /3".to_string());
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].begun_ns, found[0].length_ns), (500 * MS, 2_000 * MS));
        assert_eq!((&found[0].server[..], &found[0].taken_over_by), ("unix socket /2", &by));
        // What belongs to the warm-up is left out.
        assert_eq!(lengths_ms(&outages, (2_000, 9_000)), [1_000]);
        assert_eq!(lengths_ms(&outages, (3_000, 9_000)), [0; 0]);
    }

    #[test]
    fn a_connection_that_broke_while_others_were_answered_is_no_outage() {
        let outages = Outages::default();
        outages.lost(0, 1_000 * MS);
        outages.served(0, 6_001 * MS, |_| 6_000 * MS);
        assert_eq!(lengths_ms(&outages, (0, 9_000)), [0; 0]);
    }

    #[test]
    fn a_server_that_nobody_asks_is_back_once_it_can_be_asked() {
        let outages = Outages::default();
        outages.lost(0, 1_000 * MS);
        outages.opened(0, 1_200 * MS);
        outages.served(0, 5_000 * MS, |_| 900 * MS);
        assert_eq!(lengths_ms(&outages, (0, 9_000)), [200]);
        // One that is open and refuses is not back.
        outages.lost(0, 6_000 * MS);
        outages.opened(0, 6_200 * MS);
        outages.refused(0);
        outages.served(0, 7_000 * MS, |_| 5_000 * MS);
        assert_eq!(lengths_ms(&outages, (0, 9_000)), [200, 1_000]);
    }

    #[test]
    fn a_silence_is_an_outage_from_a_second_on() {
        let outages = Outages::default();
        outages.silent(0, 1_000 * MS);
        assert!(outages.awaits(0));
        assert_eq!(lengths_ms(&outages, (0, 1_900)), [0; 0]);
        assert_eq!(lengths_ms(&outages, (0, 2_100)), [1_100]);
        outages.served(0, 1_900 * MS, |_| 1_000 * MS);
        assert_eq!(lengths_ms(&outages, (0, 9_000)), [0; 0]);
        outages.silent(0, 3_000 * MS);
        outages.served(0, 5_000 * MS, |_| 3_000 * MS);
        assert_eq!(lengths_ms(&outages, (0, 9_000)), [2_000]);
        // One that loses a request is gone, however short.
        outages.silent(0, 6_000 * MS);
        outages.lost(0, 6_000 * MS);
        outages.served(0, 6_600 * MS, |_| 6_000 * MS);
        assert_eq!(lengths_ms(&outages, (0, 9_000)), [2_000, 600]);
    }

    #[test]
    fn a_server_that_another_thread_heard_is_not_silent_since_before() {
        let outages = Outages::default();
        outages.silent(0, 1_000 * MS);
        outages.heard(1, 1_450 * MS);
        outages.heard(0, 1_400 * MS);
        outages.served(0, 2_300 * MS, |_| 1_000 * MS);
        assert_eq!(lengths_ms(&outages, (0, 9_000)), [0; 0]);
    }

    #[test]
    fn a_server_that_is_open_and_leaves_requests_waiting_is_not_back() {
        let outages = Outages::default();
        outages.lost(0, 1_000 * MS);
        outages.opened(0, 1_200 * MS);
        outages.silent(0, 1_210 * MS);
        outages.served(0, 2_000 * MS, |_| 1_000 * MS);
        assert_eq!(lengths_ms(&outages, (0, 9_000)), [1_000]);
    }
}
