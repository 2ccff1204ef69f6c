//! Periods in which servers answered nothing, tracked over all threads of a load.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use model::Outage;

use super::stream::Address;

/// A server that lost a request, cannot be reached or is silent. Times are on the engine's clock.
#[derive(Clone, Copy, Debug)]
struct SuspectedOutage {
    node: usize,
    /// The server that took over most of its keys, if it has none any more.
    successor: Option<usize>,
    since_ns: u64,
    /// Shortest length that counts as an outage.
    least_ns: u64,
    /// When a connection to it, or to its successor, was open again; `None` after a request failed
    /// or waited for long. An open connection counts as its return, even if no client needs it yet.
    open_ns: Option<u64>,
    /// When it answered again.
    until_ns: Option<u64>,
}

impl SuspectedOutage {
    fn affects(&self, node: usize) -> bool {
        self.until_ns.is_none() && (self.node == node || self.successor == Some(node))
    }

    fn counts(&self, length_ns: u64) -> bool {
        length_ns >= self.least_ns
    }
}

/// All suspected outages, including the current ones.
#[derive(Debug, Default)]
pub(crate) struct Outages {
    /// Bit `node modulo 64` is set while an answer of that server may end an outage.
    awaited: AtomicU64,
    all: Mutex<Vec<SuspectedOutage>>,
}

fn bit(node: usize) -> u64 {
    1 << (node % 64)
}

impl Outages {
    fn lock(&self) -> MutexGuard<'_, Vec<SuspectedOutage>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn update_awaited(&self, all: &[SuspectedOutage]) {
        let lasting = all.iter().filter(|suspect| suspect.until_ns.is_none());
        let awaited = lasting.flat_map(|suspect| [Some(suspect.node), suspect.successor]).flatten();
        self.awaited.store(awaited.fold(0, |bits, node| bits | bit(node)), Ordering::Relaxed);
    }

    /// A server lost a request sent at `since_ns`, or cannot be reached since then.
    pub(crate) fn lost(&self, node: usize, since_ns: u64) {
        self.suspect_since(node, since_ns, Outage::SHORTEST_NS);
    }

    /// A server has left a request waiting since then and answered nothing, which is not an outage
    /// yet.
    pub(crate) fn silent(&self, node: usize, since_ns: u64) {
        self.suspect_since(node, since_ns, Outage::SILENCE_NS);
    }

    fn suspect_since(&self, node: usize, since_ns: u64, least_ns: u64) {
        let mut all = self.lock();
        if let Some(suspect) = all.iter_mut().find(|suspect| suspect.affects(node)) {
            suspect.open_ns = None;
            suspect.least_ns = suspect.least_ns.min(least_ns);
            return;
        }
        all.push(SuspectedOutage {
            node,
            successor: None,
            since_ns,
            least_ns,
            open_ns: None,
            until_ns: None,
        });
        self.update_awaited(&all);
    }

    /// The latest answer that a thread got from a server, possibly before another thread suspected
    /// it.
    pub(crate) fn heard(&self, node: usize, answered_ns: u64) {
        let mut all = self.lock();
        for suspect in
            all.iter_mut().filter(|suspect| suspect.until_ns.is_none() && suspect.node == node)
        {
            suspect.since_ns = suspect.since_ns.max(answered_ns);
        }
    }

    /// A connection to a server is open.
    pub(crate) fn opened(&self, node: usize, now_ns: u64) {
        for suspect in self.lock().iter_mut().filter(|suspect| suspect.affects(node)) {
            suspect.open_ns.get_or_insert(now_ns);
        }
    }

    /// True while an answer of a server may end an outage.
    #[inline]
    pub(crate) fn awaits(&self, node: usize) -> bool {
        self.awaited.load(Ordering::Relaxed) & bit(node) != 0
    }

    /// An awaited server refused a request.
    pub(crate) fn refused(&self, node: usize) {
        self.lock()
            .iter_mut()
            .filter(|suspect| suspect.affects(node))
            .for_each(|g| g.open_ns = None);
    }

    /// An awaited server answered. `answered_ns` is when the calling thread last got an answer from
    /// each server: a request lost while others were answered is not an outage.
    pub(crate) fn served(&self, node: usize, now_ns: u64, answered_ns: impl Fn(usize) -> u64) {
        let mut all = self.lock();
        for suspect in all.iter_mut().filter(|suspect| suspect.affects(node)) {
            suspect.until_ns = Some(suspect.open_ns.unwrap_or(now_ns));
            suspect.since_ns = suspect.since_ns.max(answered_ns(suspect.node));
        }
        all.retain(|suspect| {
            let lasted_ns = |until_ns: u64| until_ns.saturating_sub(suspect.since_ns);
            suspect.until_ns.is_none_or(|until_ns| suspect.counts(lasted_ns(until_ns)))
        });
        self.update_awaited(&all);
    }

    /// Updates which servers have taken over from others, or have keys again, by `successor_of`.
    pub(crate) fn taken_over(&self, successor_of: impl Fn(usize) -> Option<usize>) {
        let mut all = self.lock();
        for suspect in all.iter_mut().filter(|suspect| suspect.until_ns.is_none()) {
            let successor = successor_of(suspect.node);
            if suspect.successor != successor {
                (suspect.successor, suspect.open_ns) = (successor, None);
            }
        }
        self.update_awaited(&all);
    }

    /// Outages within the measurement, by time, with an empty phase name.
    pub(crate) fn within(&self, (from_ns, to_ns): (u64, u64), nodes: &[Address]) -> Vec<Outage> {
        let outage = |suspect: &SuspectedOutage| {
            let until_ns = suspect.until_ns.or(suspect.open_ns);
            let end_ns = until_ns.unwrap_or(to_ns).min(to_ns);
            let begun_ns = suspect.since_ns.max(from_ns);
            let length_ns = end_ns.saturating_sub(begun_ns);
            let to_the_end = until_ns.is_none_or(|until_ns| until_ns > to_ns);
            suspect.counts(length_ns).then(|| Outage {
                phase: String::new(),
                server: nodes[suspect.node].to_string(),
                begun_ns: begun_ns - from_ns,
                length_ns,
                taken_over_by: suspect.successor.map(|successor| nodes[successor].to_string()),
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
    fn an_outage_ends_when_the_server_or_its_successor_answers() {
        let outages = Outages::default();
        assert!(!outages.awaits(1));
        outages.lost(1, 1_000 * MS);
        outages.lost(1, 1_500 * MS);
        assert!(outages.awaits(1) && !outages.awaits(2));
        // Another server answers.
        outages.served(2, 2_000 * MS, |_| 0);
        outages.taken_over(|node| (node == 1).then_some(2));
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
        // The part in the warm-up is left out.
        assert_eq!(lengths_ms(&outages, (2_000, 9_000)), [1_000]);
        assert_eq!(lengths_ms(&outages, (3_000, 9_000)), [0; 0]);
    }

    #[test]
    fn a_connection_lost_while_others_were_answered_is_not_an_outage() {
        let outages = Outages::default();
        outages.lost(0, 1_000 * MS);
        outages.served(0, 6_001 * MS, |_| 6_000 * MS);
        assert_eq!(lengths_ms(&outages, (0, 9_000)), [0; 0]);
    }

    #[test]
    fn an_unused_server_is_back_once_a_connection_is_open() {
        let outages = Outages::default();
        outages.lost(0, 1_000 * MS);
        outages.opened(0, 1_200 * MS);
        outages.served(0, 5_000 * MS, |_| 900 * MS);
        assert_eq!(lengths_ms(&outages, (0, 9_000)), [200]);
        // A server that accepts connections but refuses requests is not back.
        outages.lost(0, 6_000 * MS);
        outages.opened(0, 6_200 * MS);
        outages.refused(0);
        outages.served(0, 7_000 * MS, |_| 5_000 * MS);
        assert_eq!(lengths_ms(&outages, (0, 9_000)), [200, 1_000]);
    }

    #[test]
    fn a_silence_of_a_second_or_more_is_an_outage() {
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
        // A lost request makes it an outage, however short.
        outages.silent(0, 6_000 * MS);
        outages.lost(0, 6_000 * MS);
        outages.served(0, 6_600 * MS, |_| 6_000 * MS);
        assert_eq!(lengths_ms(&outages, (0, 9_000)), [2_000, 600]);
    }

    #[test]
    fn a_silence_starts_after_the_last_answer_of_any_thread() {
        let outages = Outages::default();
        outages.silent(0, 1_000 * MS);
        outages.heard(1, 1_450 * MS);
        outages.heard(0, 1_400 * MS);
        outages.served(0, 2_300 * MS, |_| 1_000 * MS);
        assert_eq!(lengths_ms(&outages, (0, 9_000)), [0; 0]);
    }

    #[test]
    fn a_server_that_leaves_requests_waiting_is_not_back() {
        let outages = Outages::default();
        outages.lost(0, 1_000 * MS);
        outages.opened(0, 1_200 * MS);
        outages.silent(0, 1_210 * MS);
        outages.served(0, 2_000 * MS, |_| 1_000 * MS);
        assert_eq!(lengths_ms(&outages, (0, 9_000)), [1_000]);
    }
}
