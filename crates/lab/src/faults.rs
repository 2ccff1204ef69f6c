//! Interruptions of service that a plan asks for, and the restoration of servers afterwards.

use drivers::redis::operator::Operator;
use model::{Act, Endpoint, ErrorClass, EventKind, Failure};
use nix::sys::signal::Signal;
use rig::{Cable, ServerProcess};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use crate::address::place;
use crate::roles::Happened;

/// Timeout of a request to a server while the plan interrupts service.
const TIMEOUT: Duration = Duration::from_millis(500);
/// Timeout of a request that moves keys, above the one after which the server itself gives up.
const MIGRATION_TIMEOUT: Duration = Duration::from_secs(6);
/// How long before a fault its server is looked for.
const AHEAD: Duration = Duration::from_millis(300);
/// Maximum delay of a fault.
const LATE_MAX: Duration = Duration::from_secs(1);
/// Time for a server to shut down.
const RESTART_MAX: Duration = Duration::from_secs(30);
/// How long a restoration waits until another server has taken over: a server without data that
/// comes back before would be the primary again.
const TAKEOVER_WAIT_MAX: Duration = Duration::from_millis(2_500);
/// Pause between two looks at the roles meanwhile.
const TAKEOVER_PAUSE: Duration = Duration::from_millis(50);
/// Slots that a migration moves at most.
const SLOTS_MAX: usize = 1_000;

/// The private servers of a target with their processes.
#[derive(Clone, Debug, Default)]
pub(crate) struct FaultPlace {
    /// In the order in which they were started.
    pub(crate) servers: Vec<(Endpoint, ServerProcess)>,
    /// The connection of the first with the others; `None` if it cannot be cut.
    cable: Option<Arc<Cable>>,
    /// The server whose service the plan interrupted.
    affected: Option<usize>,
    /// Number of primaries before that.
    primaries: usize,
}

impl FaultPlace {
    pub(crate) fn new(servers: Vec<(Endpoint, ServerProcess)>, cable: Option<Arc<Cable>>) -> Self {
        Self { servers, cable, affected: None, primaries: 0 }
    }

    /// Carries out an action that is due then; does nothing once `stopped` reports the end of the
    /// phase. Errors: no server has the role of primary, or the action failed or was late.
    pub(crate) fn act(
        &mut self,
        act: Act,
        (due, stopped): (Instant, &Receiver<()>),
    ) -> Result<Vec<Happened>, Failure> {
        let is_over = |until: Instant| is_over_by(stopped, until);
        if is_over(due.checked_sub(AHEAD).unwrap_or(due)) {
            return Ok(Vec::new());
        }
        let endpoints: Vec<Endpoint> = self.servers.iter().map(|(own, _)| own.clone()).collect();
        let operator = Operator { servers: &endpoints, timeout: TIMEOUT };
        if act == Act::Restore {
            let may_restore = !is_over(due) && self.awaits_takeover(operator, is_over);
            return if may_restore { self.restore(operator) } else { Ok(Vec::new()) };
        }
        let primaries: Vec<&Endpoint> = operator.primaries().collect();
        self.primaries = primaries.len();
        let primary = primaries.first().copied();
        let at = primary.and_then(|own| endpoints.iter().position(|other| other == own));
        let Some(at) = at else {
            return Err(failed("no server reported itself as primary when the fault was due"));
        };
        self.affected = Some(at);
        if is_over(due) {
            return Ok(Vec::new());
        }
        if due.elapsed() > LATE_MAX {
            return Err(failed(
                "the primary was found too late to interrupt its service as planned",
            ));
        }
        let begun = |kind| vec![(Instant::now(), kind, place(&endpoints[at]))];
        match act {
            Act::KillPrimary => {
                let happened = begun(EventKind::Killed);
                self.signal(at, Signal::SIGKILL)?;
                Ok(happened)
            }
            Act::HangPrimary => {
                let happened = begun(EventKind::Hung);
                self.signal(at, Signal::SIGSTOP)?;
                Ok(happened)
            }
            Act::RestartPrimary => self.restart(at),
            Act::PartitionPrimary => {
                let happened = begun(EventKind::Partitioned);
                self.partition(at)?;
                Ok(happened)
            }
            Act::FailOver => {
                let happened = begun(EventKind::FailoverRequested);
                operator.fail_over()?;
                Ok(happened)
            }
            Act::MigrateSlots => {
                let mut happened = begun(EventKind::MigrationBegan);
                let operator = Operator { timeout: MIGRATION_TIMEOUT, ..operator };
                operator.migrate(SLOTS_MAX, &mut || is_over(Instant::now()))?;
                happened.extend(begun(EventKind::MigrationEnded));
                Ok(happened)
            }
            Act::Save | Act::Rewrite | Act::Restore => Ok(Vec::new()),
        }
    }

    /// Cuts a server off from the others.
    fn partition(&self, at: usize) -> Result<(), Failure> {
        match self.cable.as_ref().filter(|_| at == 0) {
            Some(cable) => Ok(cable.cut()?),
            None => Err(failed(
                "the primary is in the same network as the others (expected the server that was \
                 started first)",
            )),
        }
    }

    fn signal(&self, at: usize, signal: Signal) -> Result<(), Failure> {
        let cannot = |e| failed(&format!("cannot send {signal} to the primary: {e}"));
        self.servers[at].1.signal(signal).map_err(cannot)
    }

    /// Shuts a server down and starts it again.
    fn restart(&self, at: usize) -> Result<Vec<Happened>, Failure> {
        let (endpoint, process) = &self.servers[at];
        let mut happened = vec![(Instant::now(), EventKind::ShutDown, place(endpoint))];
        self.signal(at, Signal::SIGTERM)?;
        wait(|| !process.runs(), "the primary did not shut down")?;
        process.start_again(&[])?;
        happened.push((Instant::now(), EventKind::Restored, place(endpoint)));
        Ok(happened)
    }

    /// Waits until there are as many primaries without the affected server as before the fault, or
    /// for too long. False if the phase ends before.
    fn awaits_takeover(
        &self,
        operator: Operator<'_>,
        mut is_over: impl FnMut(Instant) -> bool,
    ) -> bool {
        let others: Vec<Endpoint> = (0..self.servers.len())
            .filter(|at| Some(*at) != self.affected)
            .map(|at| self.servers[at].0.clone())
            .collect();
        let others = Operator { servers: &others, ..operator };
        let until = Instant::now() + TAKEOVER_WAIT_MAX;
        while self.servers.len() > 1 && others.primaries().count() < self.primaries {
            if Instant::now() > until {
                break;
            }
            if is_over(Instant::now() + TAKEOVER_PAUSE) {
                return false;
            }
        }
        true
    }

    /// Lets the affected server continue, or starts it again as a replica of the new primary, as a
    /// managed service does: an empty server that starts as a primary would accept writes.
    fn restore(&self, operator: Operator<'_>) -> Result<Vec<Happened>, Failure> {
        let Some(at) = self.affected else { return Ok(Vec::new()) };
        let (endpoint, process) = &self.servers[at];
        let happened = vec![(Instant::now(), EventKind::Restored, place(endpoint))];
        if let Some(cable) = &self.cable {
            cable.mend()?;
        } else if process.runs() {
            self.signal(at, Signal::SIGCONT)?;
        } else {
            let follows = operator.to_follow(endpoint);
            let follows = follows.map(|(host, port)| (host, port.to_string()));
            match &follows {
                Some((host, port)) => process.start_again(&["--replicaof", host, port])?,
                None => process.start_again(&[])?,
            }
        }
        Ok(happened)
    }
}

/// Waits until then; true if the phase ends before.
pub(crate) fn is_over_by(stopped: &Receiver<()>, until: Instant) -> bool {
    let left = until.saturating_duration_since(Instant::now());
    !matches!(stopped.recv_timeout(left), Err(RecvTimeoutError::Timeout))
}

/// Errors: it does not happen in time.
fn wait(mut is_done: impl FnMut() -> bool, problem: &str) -> Result<(), Failure> {
    let until = Instant::now() + RESTART_MAX;
    while !is_done() {
        if Instant::now() > until {
            return Err(failed(&format!("{problem} within {} s", RESTART_MAX.as_secs())));
        }
        thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}

fn failed(message: &str) -> Failure {
    Failure { class: ErrorClass::Other, message: message.into() }
}
