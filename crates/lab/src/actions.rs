//! Planned actions on a target during a phase, such as a save or a kill, and their events.

use model::{
    Action, BackgroundWrite, Endpoint, ErrorClass, EventKind, Fact, Failure, Product, Sample,
    Trial, TrialEvent, Workload,
};
use rig::ServerProcess;
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::address::place;
use crate::fault_command::FaultCommand;
use crate::faults::{FaultPlace, is_over_by};
use crate::roles::{self, Happened};
use crate::server_load;

/// Timeout of an action's request.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Stores and servers that actions apply to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Subjects {
    /// Endpoint of each store.
    pub(crate) stores: Vec<Endpoint>,
    /// Every private server.
    pub(crate) faults: FaultPlace,
    /// The user's command that interrupts service; `None` without one.
    pub(crate) command: Option<FaultCommand>,
}

/// The thread that carries out the actions of one phase.
pub(crate) struct Acting {
    /// Dropped to end the thread.
    stop: mpsc::Sender<()>,
    thread: JoinHandle<Result<Vec<Happened>, Failure>>,
}

impl Acting {
    /// Starts the `actions` of a phase whose measurement starts at `begins`; `None` if there are
    /// none. If an action interrupts service, the servers' roles are watched as well.
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
            let takes_away = actions.iter().any(|action| action.what.interrupts_service());
            let servers = &subjects.faults.servers;
            let watched = servers.iter().filter(|_| takes_away);
            let watched = watched.map(|(endpoint, _)| endpoint);
            let at_url = subjects.command.iter().map(|command| &command.endpoint);
            let has_role = |endpoint: &&Endpoint| endpoint.product() == Product::Redis;
            let watched: Vec<Endpoint> = watched.chain(at_url.filter(has_role)).cloned().collect();
            let done = AtomicBool::new(false);
            thread::scope(|scope| {
                let watching = scope.spawn(|| roles::watch(&watched, &done));
                let acted = act(&actions, &subjects, (begins, &stopped));
                done.store(true, Ordering::Relaxed);
                let mut happened = acted?;
                // That a server stops answering by the plan is not a separate event.
                let is_killed = |own: &String| happened.iter().any(|(.., of)| own == of);
                let mut watched = watching.join().unwrap_or_default();
                watched.retain(|(_, kind, of)| *kind != EventKind::Silent || !is_killed(of));
                mark_exits(&mut watched, servers);
                happened.extend(watched);
                Ok(happened)
            })
        };
        Some(Self { stop, thread: thread::spawn(run) })
    }

    /// Stops the thread without carrying out actions that are not due yet. Returns the events.
    /// Errors: an action failed.
    pub(crate) fn stop(self) -> Result<Vec<Happened>, Failure> {
        drop(self.stop);
        self.thread.join().unwrap_or(Ok(Vec::new()))
    }
}

/// Turns silence into an end for servers whose process has exited.
fn mark_exits(happened: &mut [Happened], servers: &[(Endpoint, ServerProcess)]) {
    for (endpoint, process) in servers {
        let server = place(endpoint);
        let mut of_server = happened.iter_mut().filter(|(.., of)| *of == server);
        let is_silence = |(_, kind, _): &&mut Happened| *kind == EventKind::Silent;
        if let (Some((_, kind, _)), false) = (of_server.rfind(is_silence), process.runs()) {
            *kind = EventKind::Ended;
        }
    }
}

/// Carries out each action when it is due, then waits until it is stopped.
fn act(
    actions: &[Action],
    subjects: &Subjects,
    (begins, stopped): (Instant, &mpsc::Receiver<()>),
) -> Result<Vec<Happened>, Failure> {
    let (mut happened, mut begun) = (Vec::new(), Vec::new());
    let mut faults = subjects.faults.clone();
    for action in actions {
        let due = begins + Duration::from_nanos(action.at_ns);
        if action.by_command {
            let command = subjects.command.as_ref().ok_or_else(no_command)?;
            happened.extend(command.run(action.what, (due, stopped))?);
            continue;
        }
        let Some(what) = action.what.writes() else {
            happened.extend(faults.act(action.what, (due, stopped))?);
            continue;
        };
        if is_over_by(stopped, due) {
            break;
        }
        write(subjects, what)?;
        begun.push(what);
    }
    // Returns when the sender is dropped.
    let _ = stopped.recv();
    let failed = begun.into_iter().find_map(|what| write_failure(subjects, what));
    failed.map_or(Ok(happened), Err)
}

fn no_command() -> Failure {
    let message = "no command of the user interrupts service (expected --fault-command)".into();
    Failure { class: ErrorClass::Other, message }
}

/// Makes every server write to disk in the background.
fn write(subjects: &Subjects, what: BackgroundWrite) -> Result<(), Failure> {
    subjects.stores.iter().try_for_each(|endpoint| drivers::admin(endpoint, TIMEOUT)?.write(what))
}

/// Why a background write failed; `None` also for a server that does not answer, which is a failure
/// of its own.
fn write_failure(subjects: &Subjects, what: BackgroundWrite) -> Option<Failure> {
    subjects.stores.iter().find_map(|endpoint| {
        let mut admin = drivers::admin(endpoint, TIMEOUT).ok()?;
        admin.write_failure(what).ok()?
    })
}

/// Events found in the samples: start and end of saves and rewrites, including those that a server
/// started on its own, and of swapping. Times are those of the samples.
pub(crate) fn events_in(samples: &[Sample]) -> Vec<TrialEvent> {
    let writes = BackgroundWrite::ALL.into_iter().flat_map(|write| {
        let writing = move |s: &Sample| s.store.as_ref()?.writing(write);
        changes(samples, writing, write.events())
    });
    let swapped = |s: &Sample| s.server.as_ref().map(|server| server.swapped_bytes.min(1));
    let swaps = changes(samples, swapped, [EventKind::SwapBegan, EventKind::SwapEnded]);
    writes.chain(swaps).collect()
}

/// Events at which a value, initially 0, rises or falls.
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

/// Keeps the servers' statistics about their last save and their last rewrite only if it was one
/// of this trial, and adds the memory copied meanwhile by their control group.
pub(crate) fn complete(trial: &mut Trial, workload: &Workload, samples: &[Sample]) {
    let happened = |write: &BackgroundWrite| {
        let [begins, _] = write.events();
        let began = || trial.events.iter().any(|event| event.kind == begins);
        workload.requests(*write) || (began() && !workload.may_be_resync(*write))
    };
    let (of_trial, _others): (Vec<_>, Vec<_>) =
        BackgroundWrite::ALL.into_iter().partition(happened);
    let is_resync = resync_began(&trial.events);
    // The last save of a server is then that for the resync.
    let copied_bytes = BackgroundWrite::Save.copied_bytes();
    for fact in trial.facts.iter_mut().filter(|fact| is_resync && fact.name == copied_bytes) {
        fact.name = Fact::RESYNC_COPIED_BYTES.into();
    }
    trial.facts.retain(|fact| {
        let about = fact.about();
        about.is_empty() || about.iter().any(|write| of_trial.contains(write))
    });
    // Memory that is copied and swapped out does not show in the group.
    let copied = of_trial.iter().filter_map(|write| copied(samples, &trial.events, *write));
    trial.facts.extend(copied.filter(|_| !workload.swaps()));
    trial.facts.extend(server_load::facts(&trial.points, samples, &trial.events));
}

/// True if a server began to send its data to one that was restored.
fn resync_began(events: &[TrialEvent]) -> bool {
    let restored = events.iter().find(|event| event.kind == EventKind::Restored);
    let is_later = |event: &&TrialEvent| restored.is_some_and(|r| event.at_ns >= r.at_ns);
    events.iter().filter(is_later).any(|event| event.kind == EventKind::SaveBegan)
}

/// Memory that copy-on-write added during the first background write of a kind, by the servers'
/// control group: the maximum during it less the value before.
fn copied(samples: &[Sample], events: &[TrialEvent], write: BackgroundWrite) -> Option<Fact> {
    let [begins, ends] = write.events();
    let at = |kind| events.iter().find(|event| event.kind == kind).map(|event| event.at_ns);
    let (began_ns, ended_ns) = (at(begins)?, at(ends)?);
    let before = samples.iter().rfind(|sample| sample.at_ns < began_ns)?.group_bytes?;
    let during = samples.iter().filter(|s| (began_ns..=ended_ns).contains(&s.at_ns));
    let most = during.filter_map(|sample| sample.group_bytes).max()?;
    let value = most.saturating_sub(before) as f64;
    Some(Fact { name: write.copied_bytes().into(), value, source: "memory group".into() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Kv, ProcessUse, StoreCounters};

    #[test]
    fn swapping_shows_in_samples() {
        let sample = |(at_ns, swapped_bytes)| {
            let server = ProcessUse { swapped_bytes, ..ProcessUse::default() };
            Sample { at_ns, server: Some(server), ..Sample::default() }
        };
        // Changes of the amount are not events.
        let samples = [(1, 0), (2, 4_096), (3, 1 << 20), (4, 8_192), (5, 0)].map(sample);
        let events: Vec<_> = events_in(&samples).iter().map(|e| (e.at_ns, e.kind)).collect();
        assert_eq!(events, [(2, EventKind::SwapBegan), (5, EventKind::SwapEnded)]);
    }

    #[test]
    fn saves_show_in_samples() {
        let sample = |(at_ns, saving)| {
            let store = StoreCounters { saving, ..StoreCounters::default() };
            Sample { at_ns, store: Some(store), ..Sample::default() }
        };
        // A missing answer changes nothing.
        let samples = [(1, Some(0)), (2, Some(1)), (3, None), (4, Some(1)), (5, Some(0))];
        let events = events_in(&samples.map(sample));
        let kinds: Vec<(u64, EventKind)> = events.iter().map(|e| (e.at_ns, e.kind)).collect();
        assert_eq!(kinds, [(2, EventKind::SaveBegan), (5, EventKind::SaveEnded)]);
        let with_memory = samples.into_iter().zip([100, 130, 190, 170, 110]);
        let samples: Vec<Sample> = with_memory
            .map(|(saving, bytes)| Sample { group_bytes: Some(bytes), ..sample(saving) })
            .collect();
        let copied = copied(&samples, &events, BackgroundWrite::Save).unwrap();
        assert!((copied.value - 90.0).abs() < 1e-9, "{copied:?}");
    }

    #[test]
    fn a_rewrite_has_its_own_events_and_facts() {
        let sample = |(at_ns, rewriting, bytes)| {
            let store = StoreCounters { rewriting, saving: Some(0), ..StoreCounters::default() };
            Sample { at_ns, store: Some(store), group_bytes: Some(bytes), ..Sample::default() }
        };
        let samples = [(1, Some(0), 100), (2, Some(1), 170), (3, Some(0), 120)].map(sample);
        let mut trial = Trial { events: events_in(&samples), ..Trial::default() };
        let kinds: Vec<(u64, EventKind)> = trial.events.iter().map(|e| (e.at_ns, e.kind)).collect();
        assert_eq!(kinds, [(2, EventKind::RewriteBegan), (3, EventKind::RewriteEnded)]);
        let fact = |name: &str| Fact { name: name.into(), value: 1.0, source: "INFO".into() };
        trial.facts = ["save_copied_bytes", "rewrite_copied_bytes", "fork_ns", "bytes_per_key"]
            .map(fact)
            .into();
        complete(&mut trial, &Workload::Kv(Kv::default()), &samples);
        let facts: Vec<(&str, f64)> =
            trial.facts.iter().map(|fact| (fact.name.as_str(), fact.value)).collect();
        // The server's last save was not in this trial.
        let [info, fork, key] = ["rewrite_copied_bytes", "fork_ns", "bytes_per_key"];
        assert_eq!(facts, [(info, 1.0), (fork, 1.0), (key, 1.0), (info, 70.0)]);
    }
}
