//! Updates the layout of keys while a load runs. A separate thread asks the servers, since an
//! answer can take long and event loops must not wait for it. The event loops adopt the new layout
//! at their next tick.

use std::mem;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::outages::Outages;
use super::route::{Layout, Route, Survey};
use super::stream::Address;

/// Shortest time between two surveys.
const PAUSE: Duration = Duration::from_millis(50);

/// The known layout of keys.
#[derive(Debug)]
pub(crate) struct KnownLayout {
    /// All servers so far; none is ever removed.
    pub(crate) nodes: Vec<Address>,
    pub(crate) route: Box<dyn Route>,
    /// Number of layouts before this one.
    pub(crate) generation: u64,
    owners: Vec<usize>,
    /// For each server that lost all of its partitions, the server that took over most of them.
    successors: Vec<Option<usize>>,
}

impl KnownLayout {
    fn new(layout: Layout) -> Self {
        let (owners, successors) = (layout.route.owners(), vec![None; layout.nodes.len()]);
        let Layout { nodes, route } = layout;
        Self { nodes, route, generation: 0, owners, successors }
    }

    /// True if a server has keys.
    pub(crate) fn has_keys(&self, node: usize) -> bool {
        self.owners.is_empty() || self.owners.contains(&node)
    }

    /// The state after `layout`; `None` if nothing has changed.
    fn next(&self, layout: Layout) -> Option<Self> {
        let next = Self::new(layout);
        if next.owners == self.owners && next.nodes.len() == self.nodes.len() {
            return None;
        }
        let successor = |node: usize| {
            if next.has_keys(node) {
                return None;
            }
            if node >= self.nodes.len() || !self.has_keys(node) {
                return self.successors.get(node).copied().flatten();
            }
            let mut parts = vec![0_u32; next.nodes.len()];
            let moved = self.owners.iter().zip(&next.owners).filter(|(was, _)| **was == node);
            moved.for_each(|(_, is)| parts[*is] += 1);
            (0..parts.len()).filter(|node| parts[*node] > 0).max_by_key(|node| parts[*node])
        };
        let successors = (0..next.nodes.len()).map(successor).collect();
        Some(Self { successors, generation: self.generation + 1, ..next })
    }
}

/// A request for a survey.
#[derive(Debug, Default)]
struct SurveyRequest {
    is_pending: bool,
    /// Unknown addresses that servers referred to.
    named: Vec<String>,
    is_over: bool,
}

/// The current layout and the requests to update it, shared by all threads.
#[derive(Debug)]
pub(crate) struct Surveying<'a> {
    survey: Option<&'a dyn Survey>,
    known_layout: Mutex<Arc<KnownLayout>>,
    generation: AtomicU64,
    requested: Mutex<SurveyRequest>,
    changed: Condvar,
}

impl<'a> Surveying<'a> {
    /// Starts with `layout`; without a `survey` it never changes.
    pub(crate) fn new(layout: Layout, survey: Option<&'a dyn Survey>) -> Self {
        Self {
            survey,
            known_layout: Mutex::new(Arc::new(KnownLayout::new(layout))),
            generation: AtomicU64::new(0),
            requested: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// True if servers may take over keys from each other.
    pub(crate) fn may_change(&self) -> bool {
        self.survey.is_some()
    }

    /// The current layout.
    pub(crate) fn known_layout(&self) -> Arc<KnownLayout> {
        lock(&self.known_layout).clone()
    }

    /// Number of the current layout, from 0.
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Requests a survey, which includes the server at address `named` if given.
    pub(crate) fn request(&self, named: Option<&str>) {
        if !self.may_change() {
            return;
        }
        let mut requested = lock(&self.requested);
        requested.is_pending = true;
        if let Some(named) = named.filter(|named| requested.named.iter().all(|n| n != named)) {
            requested.named.push(named.into());
        }
        self.changed.notify_one();
    }

    /// Ends [`Surveying::run`].
    pub(crate) fn end(&self) {
        lock(&self.requested).is_over = true;
        self.changed.notify_one();
    }

    /// Body of the survey thread.
    pub(crate) fn run(&self, outages: &Outages) {
        let Some(survey) = self.survey else { return };
        loop {
            let nothing =
                |requested: &mut SurveyRequest| !requested.is_pending && !requested.is_over;
            let woken = self.changed.wait_while(lock(&self.requested), nothing);
            let mut requested = woken.unwrap_or_else(PoisonError::into_inner);
            if requested.is_over {
                return;
            }
            requested.is_pending = false;
            let named = mem::take(&mut requested.named);
            drop(requested);
            let known_layout = self.known_layout();
            let layout = survey.ask(&known_layout.nodes, &named);
            if let Some(next) = layout.and_then(|layout| known_layout.next(layout)) {
                outages.taken_over(|node| next.successors[node]);
                let generation = next.generation;
                *lock(&self.known_layout) = Arc::new(next);
                self.generation.store(generation, Ordering::Release);
            }
            let ended = lock(&self.requested);
            drop(self.changed.wait_timeout_while(ended, PAUSE, |requested| !requested.is_over));
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
