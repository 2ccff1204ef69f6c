//! Learning where keys live while a load runs. A thread of its own asks, since an answer may take
//! long and no event loop waits for it; threads take over what it learnt at their next tick.

use std::mem;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::outages::Outages;
use super::route::{Layout, Route, Survey};
use super::stream::Address;

/// Least time between two questions.
const PAUSE: Duration = Duration::from_millis(50);

/// Where keys live, as it is known.
#[derive(Debug)]
pub(crate) struct Standing {
    /// All servers so far; none is ever taken out.
    pub(crate) nodes: Vec<Address>,
    pub(crate) route: Box<dyn Route>,
    /// How many there were before it.
    pub(crate) generation: u64,
    owners: Vec<usize>,
    /// For each server that had parts and lost all of them, who has most of these.
    heirs: Vec<Option<usize>>,
}

impl Standing {
    fn new(layout: Layout) -> Self {
        let (owners, heirs) = (layout.route.owners(), vec![None; layout.nodes.len()]);
        let Layout { nodes, route } = layout;
        Self { nodes, route, generation: 0, owners, heirs }
    }

    /// True where a server has keys.
    pub(crate) fn has_keys(&self, node: usize) -> bool {
        self.owners.is_empty() || self.owners.contains(&node)
    }

    /// What follows on it; `None` where nothing has changed.
    fn next(&self, layout: Layout) -> Option<Self> {
        let next = Self::new(layout);
        if next.owners == self.owners && next.nodes.len() == self.nodes.len() {
            return None;
        }
        let heir = |node: usize| {
            if next.has_keys(node) {
                return None;
            }
            if node >= self.nodes.len() || !self.has_keys(node) {
                return self.heirs.get(node).copied().flatten();
            }
            let mut parts = vec![0_u32; next.nodes.len()];
            let moved = self.owners.iter().zip(&next.owners).filter(|(was, _)| **was == node);
            moved.for_each(|(_, is)| parts[*is] += 1);
            (0..parts.len()).filter(|node| parts[*node] > 0).max_by_key(|node| parts[*node])
        };
        let heirs = (0..next.nodes.len()).map(heir).collect();
        Some(Self { heirs, generation: self.generation + 1, ..next })
    }
}

/// What the threads want to know.
#[derive(Debug, Default)]
struct Wanted {
    a_survey: bool,
    /// Addresses that servers referred to and that are not known.
    named: Vec<String>,
    is_over: bool,
}

/// What is known, shared by all threads.
#[derive(Debug)]
pub(crate) struct Surveying<'a> {
    survey: Option<&'a dyn Survey>,
    standing: Mutex<Arc<Standing>>,
    generation: AtomicU64,
    wanted: Mutex<Wanted>,
    told: Condvar,
}

impl<'a> Surveying<'a> {
    /// Begins with a layout; without a `survey` it stays.
    pub(crate) fn new(layout: Layout, survey: Option<&'a dyn Survey>) -> Self {
        Self {
            survey,
            standing: Mutex::new(Arc::new(Standing::new(layout))),
            generation: AtomicU64::new(0),
            wanted: Mutex::default(),
            told: Condvar::new(),
        }
    }

    /// True where servers may take over from each other.
    pub(crate) fn may_change(&self) -> bool {
        self.survey.is_some()
    }

    /// Where keys live now.
    pub(crate) fn standing(&self) -> Arc<Standing> {
        lock(&self.standing).clone()
    }

    /// Number of what is known now, from 0.
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Asks for a new survey, of a server of that address as well where it is `named`.
    pub(crate) fn want(&self, named: Option<&str>) {
        if !self.may_change() {
            return;
        }
        let mut wanted = lock(&self.wanted);
        wanted.a_survey = true;
        if let Some(named) = named.filter(|named| wanted.named.iter().all(|n| n != named)) {
            wanted.named.push(named.into());
        }
        self.told.notify_one();
    }

    /// Ends [`Surveying::run`].
    pub(crate) fn end(&self) {
        lock(&self.wanted).is_over = true;
        self.told.notify_one();
    }

    /// The life of the thread that asks.
    pub(crate) fn run(&self, outages: &Outages) {
        let Some(survey) = self.survey else { return };
        loop {
            let nothing = |wanted: &mut Wanted| !wanted.a_survey && !wanted.is_over;
            let woken = self.told.wait_while(lock(&self.wanted), nothing);
            let mut wanted = woken.unwrap_or_else(PoisonError::into_inner);
            if wanted.is_over {
                return;
            }
            wanted.a_survey = false;
            let named = mem::take(&mut wanted.named);
            drop(wanted);
            let standing = self.standing();
            let layout = survey.ask(&standing.nodes, &named);
            if let Some(next) = layout.and_then(|layout| standing.next(layout)) {
                outages.inherited(|node| next.heirs[node]);
                let generation = next.generation;
                *lock(&self.standing) = Arc::new(next);
                self.generation.store(generation, Ordering::Release);
            }
            let ended = lock(&self.wanted);
            drop(self.told.wait_timeout_while(ended, PAUSE, |wanted| !wanted.is_over));
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
