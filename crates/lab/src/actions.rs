//! What is done to a target in the course of a phase, and what happened to it.

use drivers::redis::sentinel::{Role, RoleReader};
use model::{
    Act, Action, Endpoint, ErrorClass, EventKind, Fact, Failure, Sample, TrialEvent, Workload,
};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::address::place;
use crate::roles::{self, Happened};

/// How long a server may take to begin what it is asked for.
const TIMEOUT: Duration = Duration::from_secs(10);

/// How long a server may take to say what it is, before it is killed.
const ROLE_TIMEOUT: Duration = Duration::from_millis(500);
/// By how much an action that takes service away may be late.
const LATE_MAX: Duration = Duration::from_secs(1);

/// The stores and servers that actions are done to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Subjects {
    /// How each store is reached.
    pub(crate) stores: Vec<Endpoint>,
    /// Every private server, with its process.
    pub(crate) servers: Vec<(Endpoint, u32)>,
}

/// The actions of one phase, done by a thread of their own.
pub(crate) struct Acting {
    /// Dropped to end the thread.
    stop: mpsc::Sender<()>,
    thread: JoinHandle<Result<Vec<Happened>, Failure>>,
}

impl Acting {
    /// Does `actions` in a phase whose measurement begins at `begins`; `None` where there are none.
    /// Where one takes service away, the servers' roles are watched as well.
    pub(crate) fn start(
        mut actions: Vec<Action>,
        subjects: Subjects,
        begins: Instant,
    ) -> Option<Self> {
        if actions.is_empty() {
            return None;
        }
        actions.sort_by_key(|action| action.at_ns);
        let (stop, stopped) = mpsc::channel::<()>();
        let run = move || {
            let takes_away = actions.iter().any(|action| action.what.takes_service_away());
            let watched = subjects.servers.iter().filter(|_| takes_away);
            let watched: Vec<Endpoint> = watched.map(|(endpoint, _)| endpoint.clone()).collect();
            let done = AtomicBool::new(false);
            thread::scope(|scope| {
                let watching = scope.spawn(|| roles::watch(&watched, &done));
                let acted = act(&actions, &subjects, (begins, &stopped));
                done.store(true, Ordering::Relaxed);
                let mut happened = acted?;
                // A killed server stops answering: that is no event of its own.
                let is_killed = |own: &String| happened.iter().any(|(.., of)| own == of);
                let mut watched = watching.join().unwrap_or_default();
                watched.retain(|(_, kind, of)| *kind != EventKind::Silent || !is_killed(of));
                tell_ends(&mut watched, &subjects.servers);
                happened.extend(watched);
                Ok(happened)
            })
        };
        Some(Self { stop, thread: thread::spawn(run) })
    }

    /// Ends it; actions that are not due yet are not done. What happened meanwhile. Errors: one
    /// could not be done.
    pub(crate) fn stop(self) -> Result<Vec<Happened>, Failure> {
        drop(self.stop);
        self.thread.join().unwrap_or(Ok(Vec::new()))
    }
}

/// Tells servers whose process is over from those that only do not answer.
fn tell_ends(happened: &mut [Happened], servers: &[(Endpoint, u32)]) {
    for (endpoint, pid) in servers {
        let server = place(endpoint);
        let mut of_server = happened.iter_mut().filter(|(.., of)| *of == server);
        let is_silence = |(_, kind, _): &&mut Happened| *kind == EventKind::Silent;
        if let (Some((_, kind, _)), None) =
            (of_server.rfind(is_silence), rig::process_memory_bytes(*pid))
        {
            *kind = EventKind::Ended;
        }
    }
}

/// Does each action when it is due, then waits until it is stopped.
fn act(
    actions: &[Action],
    subjects: &Subjects,
    (begins, stopped): (Instant, &mpsc::Receiver<()>),
) -> Result<Vec<Happened>, Failure> {
    let mut happened = Vec::new();
    for action in actions {
        let due = begins + Duration::from_nanos(action.at_ns);
        let left = due.saturating_duration_since(Instant::now());
        if !matches!(stopped.recv_timeout(left), Err(RecvTimeoutError::Timeout)) {
            return Ok(happened);
        }
        match action.what {
            Act::Save => {
                for endpoint in &subjects.stores {
                    drivers::admin(endpoint, TIMEOUT)?.save()?;
                }
            }
            Act::KillPrimary => happened.push(kill_primary(&subjects.servers, due)?),
        }
    }
    // Nobody sends: it ends when the other side is dropped.
    let _ = stopped.recv();
    Ok(happened)
}

/// Ends the server that says of itself that it is the primary.
fn kill_primary(servers: &[(Endpoint, u32)], due: Instant) -> Result<Happened, Failure> {
    let is_primary = |(endpoint, _): &&(Endpoint, u32)| {
        let role = RoleReader::new(endpoint.clone(), ROLE_TIMEOUT).role();
        matches!(role, Ok(Role::Primary { .. }))
    };
    let failed = |message: &str| Failure { class: ErrorClass::Other, message: message.into() };
    let Some((endpoint, pid)) = servers.iter().find(is_primary) else {
        return Err(failed(
            "no server answered that it is the primary when the plan was to kill it",
        ));
    };
    let at = Instant::now();
    if at.saturating_duration_since(due) > LATE_MAX {
        return Err(failed("the primary was not found in time to be killed when it was due"));
    }
    kill(Pid::from_raw(pid.cast_signed()), Signal::SIGKILL)
        .map_err(|error| failed(&format!("the primary cannot be killed: {error}")))?;
    Ok((at, EventKind::Killed, place(endpoint)))
}

/// What samples tell of saves, of those that a server began by itself as well, and of swap: to the
/// time from one sample to the next.
pub(crate) fn seen(samples: &[Sample]) -> Vec<TrialEvent> {
    let saving = |s: &Sample| s.store.as_ref()?.saving;
    let swapped = |s: &Sample| s.server.as_ref().map(|server| server.swapped_bytes.min(1));
    let saves = changes(samples, saving, [EventKind::SaveBegan, EventKind::SaveEnded]);
    let swaps = changes(samples, swapped, [EventKind::SwapBegan, EventKind::SwapEnded]);
    saves.chain(swaps).collect()
}

/// When a number that is 0 at first rises and falls.
fn changes(
    samples: &[Sample],
    read: impl Fn(&Sample) -> Option<u64>,
    [rises, falls]: [EventKind; 2],
) -> impl Iterator<Item = TrialEvent> {
    let mut before = 0;
    samples.iter().filter_map(move |sample| {
        let now = read(sample)?;
        let kind = if now > before { rises } else { falls };
        let changed = mem::replace(&mut before, now) != now;
        changed.then(|| TrialEvent { at_ns: sample.at_ns, kind, subject: String::new() })
    })
}

/// Whether what a server tells of its last save is of a save of this trial, and of nothing else.
pub(crate) fn saved(workload: &Workload, events: &[TrialEvent]) -> bool {
    let began = || events.iter().any(|event| event.kind == EventKind::SaveBegan);
    let is_planned = workload.actions().iter().any(|action| action.what == Act::Save);
    is_planned || (began() && !workload.saves_may_be_resyncs())
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
    Some(Fact { name: Fact::COPIED_BYTES.into(), value, source: "memory group".into() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{ProcessUse, StoreCounters};

    #[test]
    fn a_server_that_swaps_is_seen_in_samples() {
        let sample = |(at_ns, swapped_bytes)| {
            let server = ProcessUse { swapped_bytes, ..ProcessUse::default() };
            Sample { at_ns, server: Some(server), ..Sample::default() }
        };
        // How much there is of it is a series.
        let samples = [(1, 0), (2, 4_096), (3, 1 << 20), (4, 8_192), (5, 0)].map(sample);
        let told: Vec<_> = seen(&samples).iter().map(|e| (e.at_ns, e.kind)).collect();
        assert_eq!(told, [(2, EventKind::SwapBegan), (5, EventKind::SwapEnded)]);
    }

    #[test]
    fn saves_are_seen_in_samples() {
        let sample = |(at_ns, saving)| {
            let store = StoreCounters { saving, ..StoreCounters::default() };
            Sample { at_ns, store: Some(store), ..Sample::default() }
        };
        // An answer that is missing says nothing.
        let samples = [(1, Some(0)), (2, Some(1)), (3, None), (4, Some(1)), (5, Some(0))];
        let events = seen(&samples.map(sample));
        let told: Vec<(u64, EventKind)> = events.iter().map(|e| (e.at_ns, e.kind)).collect();
        assert_eq!(told, [(2, EventKind::SaveBegan), (5, EventKind::SaveEnded)]);
        let with_memory = samples.into_iter().zip([100, 130, 190, 170, 110]);
        let samples: Vec<Sample> = with_memory
            .map(|(told, bytes)| Sample { group_bytes: Some(bytes), ..sample(told) })
            .collect();
        let copied = copied(&samples, &events).unwrap();
        assert!((copied.value - 90.0).abs() < 1e-9, "{copied:?}");
    }
}
