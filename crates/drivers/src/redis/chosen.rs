//! Selects the servers of a cluster that receive requests: primaries, replicas, or both in turn.

use std::sync::atomic::{AtomicUsize, Ordering};

use load::wire::route::Route;

use super::cluster::SlotMap;

/// The role of the servers that receive requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReadFrom {
    /// Servers that own slots.
    #[default]
    Primaries,
    /// Only replicas, which do not accept writes.
    Replicas,
    /// A primary and its replicas in turn.
    All,
}

/// The selected servers of a cluster, renumbered from 0.
#[derive(Debug)]
pub struct SelectedNodes {
    map: SlotMap,
    /// For each server of the map, the selected servers that receive requests for its keys.
    targets: Vec<Vec<usize>>,
    /// For each server of the map, its number among the selected servers.
    numbers: Vec<Option<usize>>,
    /// Requests so far, for taking servers in turn.
    turn: AtomicUsize,
}

impl SelectedNodes {
    /// The route, and the selected servers of the map in their new order. Errors: a primary without
    /// a replica when only replicas are selected.
    pub fn new(map: SlotMap, from: ReadFrom) -> Result<(Self, Vec<usize>), String> {
        let mut targets = vec![Vec::new(); map.nodes().len()];
        let mut numbers = vec![None; map.nodes().len()];
        let mut all = Vec::new();
        let mut number = |node: usize| {
            *numbers[node].get_or_insert_with(|| {
                all.push(node);
                all.len() - 1
            })
        };
        let owners = map.nodes().iter().enumerate().filter(|(_, n)| n.replica_of.is_none());
        for (owner, node) in owners {
            let own = (from != ReadFrom::Replicas).then_some(owner);
            let copies = map.replicas(owner).filter(|_| from != ReadFrom::Primaries);
            targets[owner] = own.into_iter().chain(copies).map(&mut number).collect();
            if targets[owner].is_empty() {
                return Err(format!("{node} of the cluster has no replica"));
            }
        }
        Ok((Self { map, targets, numbers, turn: AtomicUsize::new(0) }, all))
    }

    /// The route to primaries with given numbers: one for each server of the map, `None` for
    /// servers that are not selected. Servers with slots must have a number.
    pub(super) fn numbered(map: SlotMap, numbers: Vec<Option<usize>>) -> Self {
        let targets = numbers.iter().map(|number| number.iter().copied().collect()).collect();
        Self { map, targets, numbers, turn: AtomicUsize::new(0) }
    }

    /// The owners of all slots.
    pub fn map(&self) -> &SlotMap {
        &self.map
    }
}

impl Route for SelectedNodes {
    fn node(&self, name: &[u8]) -> usize {
        let targets = &self.targets[self.map.node(name)];
        match targets.as_slice() {
            [only] => *only,
            several => several[self.turn.fetch_add(1, Ordering::Relaxed) % several.len()],
        }
    }

    fn moved(&mut self, name: &[u8], address: &str, for_good: bool) -> Option<usize> {
        let owner = self.map.moved(name, address, false)?;
        // A server outside the selection can own the key but has no connection.
        let number = self.numbers[owner]?;
        if for_good {
            self.map.moved(name, address, true);
            if self.targets[owner].is_empty() {
                self.targets[owner].push(number);
            }
        }
        Some(number)
    }

    fn asking(&self) -> &'static [u8] {
        self.map.asking()
    }

    fn owners(&self) -> Vec<usize> {
        let first = |owner: &u16| self.targets[usize::from(*owner)].first().copied();
        self.map.owners().iter().map(|owner| first(owner).unwrap_or_default()).collect()
    }

    fn fresh(&self) -> Box<dyn Route> {
        let (map, targets) = (self.map.clone(), self.targets.clone());
        let numbers = self.numbers.clone();
        Box::new(Self { map, targets, numbers, turn: AtomicUsize::new(0) })
    }
}
