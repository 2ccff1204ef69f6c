//! What is done to a target in the course of a phase, and what happened to it.

use model::{Act, Action, Endpoint, EventKind, Fact, Failure, Sample, TrialEvent};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How long a server may take to begin what it is asked for.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Something that happened, and to whom.
pub(crate) type Happened = (Instant, EventKind, String);

/// The actions of one phase, done by a thread of their own.
pub(crate) struct Acting {
    /// Dropped to end the thread.
    stop: mpsc::Sender<()>,
    thread: JoinHandle<Result<Vec<Happened>, Failure>>,
}

impl Acting {
    /// Does `actions` to the stores at `endpoints` in a phase whose measurement begins at `begins`;
    /// `None` where there are none.
    pub(crate) fn start(
        mut actions: Vec<Action>,
        endpoints: Vec<Endpoint>,
        begins: Instant,
    ) -> Option<Self> {
        if actions.is_empty() {
            return None;
        }
        actions.sort_by_key(|action| action.at_ns);
        let (stop, stopped) = mpsc::channel::<()>();
        let run = move || {
            let mut happened = Vec::new();
            for action in actions {
                let due = begins + Duration::from_nanos(action.at_ns);
                let left = due.saturating_duration_since(Instant::now());
                if !matches!(stopped.recv_timeout(left), Err(RecvTimeoutError::Timeout)) {
                    break;
                }
                happened.extend(done(action.what, &endpoints)?);
            }
            Ok(happened)
        };
        Some(Self { stop, thread: thread::spawn(run) })
    }

    /// Ends it; actions that are not due yet are not done. What happened by them. Errors: one could
    /// not be done.
    pub(crate) fn stop(self) -> Result<Vec<Happened>, Failure> {
        drop(self.stop);
        self.thread.join().unwrap_or(Ok(Vec::new()))
    }
}

/// Does it now, and says what no sample will tell.
fn done(act: Act, endpoints: &[Endpoint]) -> Result<Vec<Happened>, Failure> {
    for endpoint in endpoints {
        drivers::admin(endpoint, TIMEOUT)?.act(act)?;
    }
    Ok(Vec::new())
}

/// What samples tell of saves, of those that a server began by itself as well: to the time from one
/// sample to the next.
pub(crate) fn saves(samples: &[Sample]) -> Vec<TrialEvent> {
    let told = samples.iter().filter_map(|s| Some((s.at_ns, s.store.as_ref()?.saving?)));
    let (mut before, mut events) = (0, Vec::new());
    for (at_ns, saving) in told {
        let kind = if saving > before { EventKind::SaveBegan } else { EventKind::SaveEnded };
        if saving != before {
            events.push(TrialEvent { at_ns, kind, subject: String::new() });
        }
        before = saving;
    }
    events
}

/// What the kernel copied while servers saved, by their control group: the most memory of the first
/// save, less what there was before it.
pub(crate) fn copied(samples: &[Sample], events: &[TrialEvent]) -> Option<Fact> {
    let at = |kind| events.iter().find(|event| event.kind == kind).map(|event| event.at_ns);
    let (began_ns, ended_ns) = (at(EventKind::SaveBegan)?, at(EventKind::SaveEnded)?);
    let before = samples.iter().rfind(|sample| sample.at_ns < began_ns)?.group_bytes?;
    let during = samples.iter().filter(|s| (began_ns..=ended_ns).contains(&s.at_ns));
    let most = during.filter_map(|sample| sample.group_bytes).max()?;
    let value = most.saturating_sub(before) as f64;
    Some(Fact { name: "copied_bytes".into(), value, source: "memory group".into() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::StoreCounters;

    #[test]
    fn saves_are_seen_in_samples() {
        let sample = |(at_ns, saving)| {
            let store = StoreCounters { saving, ..StoreCounters::default() };
            Sample { at_ns, store: Some(store), ..Sample::default() }
        };
        // An answer that is missing says nothing.
        let samples = [(1, Some(0)), (2, Some(1)), (3, None), (4, Some(1)), (5, Some(0))];
        let events = saves(&samples.map(sample));
        let told: Vec<(u64, EventKind)> = events.iter().map(|e| (e.at_ns, e.kind)).collect();
        assert_eq!(told, [(2, EventKind::SaveBegan), (5, EventKind::SaveEnded)]);
        let with_memory = samples.into_iter().zip([100, 130, 190, 170, 110]);
        let samples: Vec<Sample> = with_memory
            .map(|(told, bytes)| Sample { group_bytes: Some(bytes), ..sample(told) })
            .collect();
        assert_eq!(copied(&samples, &events).unwrap().value, 90.0);
    }
}
