//! The servers of a cluster that are asked: primaries, replicas, or both in turn.

use std::sync::atomic::{AtomicUsize, Ordering};

use load::wire::route::Route;

use super::cluster::SlotMap;

/// Which servers of a cluster are asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReadFrom {
    /// Those that own slots.
    #[default]
    Primaries,
    /// Copies only, which take no writes.
    Replicas,
    /// A primary and its copies in turn.
    All,
}

/// The servers of a cluster that are asked, counted anew.
#[derive(Debug)]
pub struct Chosen {
    map: SlotMap,
    /// For each server of the map those that are asked for its keys.
    asked: Vec<Vec<usize>>,
    /// For each server of the map its number among those that are asked.
    numbers: Vec<Option<usize>>,
    /// Requests so far: they go to each in turn.
    turn: AtomicUsize,
}

impl Chosen {
    /// The route, and the servers of the map that are asked, in their new order. Errors: a server
    /// without a replica where only these are asked.
    pub fn new(map: SlotMap, from: ReadFrom) -> Result<(Self, Vec<usize>), String> {
        let mut asked = vec![Vec::new(); map.nodes().len()];
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
            asked[owner] = own.into_iter().chain(copies).map(&mut number).collect();
            if asked[owner].is_empty() {
                return Err(format!("{node} of the cluster has no replica"));
            }
        }
        Ok((Self { map, asked, numbers, turn: AtomicUsize::new(0) }, all))
    }

    /// The route where primaries are asked, and servers of the map have these `numbers`: one for
    /// each, `None` for those that are not asked. Who has slots must have one.
    pub(super) fn numbered(map: SlotMap, numbers: Vec<Option<usize>>) -> Self {
        let asked = numbers.iter().map(|number| number.iter().copied().collect()).collect();
        Self { map, asked, numbers, turn: AtomicUsize::new(0) }
    }

    /// Who has which slots.
    pub fn map(&self) -> &SlotMap {
        &self.map
    }
}

impl Route for Chosen {
    fn node(&self, name: &[u8]) -> usize {
        let asked = &self.asked[self.map.node(name)];
        match asked.as_slice() {
            [only] => *only,
            several => several[self.turn.fetch_add(1, Ordering::Relaxed) % several.len()],
        }
    }

    fn moved(&mut self, name: &[u8], address: &str, for_good: bool) -> Option<usize> {
        let owner = self.map.moved(name, address, false)?;
        // A server that is not asked may know the key and has no connection.
        let number = self.numbers[owner]?;
        if for_good {
            self.map.moved(name, address, true);
            if self.asked[owner].is_empty() {
                self.asked[owner].push(number);
            }
        }
        Some(number)
    }

    fn asking(&self) -> &'static [u8] {
        self.map.asking()
    }

    fn owners(&self) -> Vec<usize> {
        let first = |owner: &u16| self.asked[usize::from(*owner)].first().copied();
        self.map.owners().iter().map(|owner| first(owner).unwrap_or_default()).collect()
    }

    fn fresh(&self) -> Box<dyn Route> {
        let (map, asked) = (self.map.clone(), self.asked.clone());
        let numbers = self.numbers.clone();
        Box::new(Self { map, asked, numbers, turn: AtomicUsize::new(0) })
    }
}
