//! The scripted server's thread: reads requests and sends replies when they are due.

use super::connection::{Connection, SendResult, State};
use super::record::Record;
use super::schedule::{FaultSampler, Schedule};
use super::script::Script;
use super::settings::ScriptedSettings;
use super::store::Store;
use crate::reference::listen::{Listener, Socket};
use crate::reference::scan::Parts;
use crate::reference::wake::Wake;
use nix::cmsg_space;
use nix::errno::Errno;
use nix::libc::linger;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::socket::{setsockopt, sockopt};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use nix::time::{ClockId, clock_gettime};
use std::collections::{BTreeMap, HashMap};
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Shorter waits spin on the clock, because a sleeping thread wakes up too late.
const SPIN_NS: u64 = 60_000;
/// Maximum number of pending replies; beyond it nothing is read until the next one is due.
const AGENDA_MAX: usize = 1 << 20;
/// Bytes per read.
const INBOX_BYTES: usize = 64 << 10;
/// Maximum age of an arrival; a greater one means that the wall clock was set.
const AGE_NS_MAX: u64 = 60_000_000_000;
/// Maximum number of events per epoll call.
const EVENTS: usize = 256;
/// Event data that does not belong to a connection.
const LISTENER: u64 = u64::MAX;
const WAKE: u64 = u64::MAX - 1;
const TIMER: u64 = u64::MAX - 2;
/// Size of the pieces of an endless line, and the time between two of them.
const FLOOD: [u8; 16 << 10] = [b'x'; 16 << 10];
const FLOOD_EVERY_NS: u64 = 1_000_000;

/// A scheduled action.
#[derive(Debug)]
pub(super) enum Action {
    /// Sends the outcome of a request.
    Answer { connection: u64, outcome: Outcome },
    /// Sends the next piece of a drip.
    Piece { connection: u64 },
    /// Resumes reading a connection.
    Resume { connection: u64 },
    /// Sends more of an endless line.
    Flood { connection: u64 },
}

/// Outcome of a request.
#[derive(Debug)]
pub(super) enum Outcome {
    /// A reply, correct or wrong, and the index of its stamp.
    Reply {
        bytes: Vec<u8>,
        stamp: Option<usize>,
    },
    /// An incomplete reply.
    Bytes(Vec<u8>),
    /// The start of an endless line.
    Endless(Vec<u8>),
    Reset,
}

/// State of a scripted server.
pub(super) struct Engine {
    pub(super) script: Script,
    pub(super) schedule: Schedule,
    pub(super) fault_sampler: FaultSampler,
    pub(super) store: Store,
    pub(super) listener: Listener,
    epoll: Epoll,
    timer: TimerFd,
    wake: Arc<Wake>,
    record: Arc<Mutex<Record>>,
    spin: bool,
    /// Connections by number.
    pub(super) connections: HashMap<u64, Connection>,
    /// Connections accepted so far; the number of the last one.
    pub(super) accepted_connections: u64,
    /// Requests accepted so far, over all connections.
    pub(super) accepted_requests: u64,
    /// Scheduled actions by due time and by order of scheduling.
    agenda: BTreeMap<(u64, u64), Action>,
    scheduled: u64,
    pub(super) inbox: Vec<u8>,
    /// Buffer for arrival timestamps; empty if they are not used.
    pub(super) control: Vec<u8>,
    pub(super) parts: Parts,
}

impl Engine {
    pub(super) fn new(
        settings: &ScriptedSettings,
        listener: Listener,
        wake: Arc<Wake>,
        record: Arc<Mutex<Record>>,
    ) -> nix::Result<Self> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        let timer = TimerFd::new(nix::sys::timerfd::ClockId::CLOCK_MONOTONIC, flags)?;
        epoll.add(&listener, EpollEvent::new(EpollFlags::EPOLLIN, LISTENER))?;
        epoll.add(&wake, EpollEvent::new(EpollFlags::EPOLLIN, WAKE))?;
        epoll.add(&timer, EpollEvent::new(EpollFlags::EPOLLIN, TIMER))?;
        Ok(Self {
            schedule: Schedule::new(&settings.script),
            fault_sampler: FaultSampler::new(&settings.script),
            script: settings.script.clone(),
            store: Store::default(),
            listener,
            epoll,
            timer,
            wake,
            record,
            spin: settings.spin,
            connections: HashMap::new(),
            accepted_connections: 0,
            accepted_requests: 0,
            agenda: BTreeMap::new(),
            scheduled: 0,
            inbox: vec![0; INBOX_BYTES],
            control: if settings.from_arrival { cmsg_space!(TimeSpec) } else { Vec::new() },
            parts: Parts::default(),
        })
    }

    /// Serves until stopped, or until a wait fails.
    pub(super) fn run(mut self) {
        // If this fails, the end of a stall takes a little more spinning.
        let _ = nix::sys::prctl::set_timerslack(1);
        while self.step().is_ok_and(|goes_on| goes_on) {}
    }

    /// One round; false if the server must stop.
    fn step(&mut self) -> nix::Result<bool> {
        let now = now_ns();
        if let Some(until_ns) = self.schedule.stalled_until(now) {
            return self.stall_until(until_ns);
        }
        self.act(now);
        match self.agenda.first_key_value() {
            Some(((at_ns, _), _)) if self.agenda.len() >= AGENDA_MAX => self.stall_until(*at_ns),
            first => self.wait(first.map(|((at_ns, _), _)| *at_ns)),
        }
    }

    /// The record shared with the server's owner.
    pub(super) fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn schedule_action(&mut self, at_ns: u64, action: Action) {
        self.scheduled += 1;
        self.agenda.insert((at_ns, self.scheduled), action);
    }

    /// Does nothing until a time, unless stopped; false if stopped.
    fn stall_until(&self, until_ns: u64) -> nix::Result<bool> {
        loop {
            let left_ns = until_ns.saturating_sub(now_ns());
            if left_ns == 0 {
                return Ok(true);
            }
            if left_ns > SPIN_NS {
                let timeout = TimeSpec::from(Duration::from_nanos(left_ns - SPIN_NS));
                let mut wake = [PollFd::new(self.wake.as_fd(), PollFlags::POLLIN)];
                match ppoll(&mut wake, Some(timeout), None) {
                    Ok(0) | Err(Errno::EINTR) => {}
                    Ok(_) if self.wake.clear_and_check_stop() => return Ok(false),
                    Ok(_) => {}
                    Err(e) => return Err(e),
                }
            }
        }
    }

    /// Waits for the sockets or the next due action, and reads what arrived.
    fn wait(&mut self, next_ns: Option<u64>) -> nix::Result<bool> {
        let left_ns = next_ns.map(|at_ns| at_ns.saturating_sub(now_ns()));
        let timeout = match left_ns {
            _ if self.spin => EpollTimeout::ZERO,
            Some(left_ns) if left_ns <= SPIN_NS => EpollTimeout::ZERO,
            Some(left_ns) => {
                let rest = TimeSpec::from(Duration::from_nanos(left_ns - SPIN_NS));
                self.timer.set(Expiration::OneShot(rest), TimerSetTimeFlags::empty())?;
                EpollTimeout::NONE
            }
            None => EpollTimeout::NONE,
        };
        let mut events = [EpollEvent::empty(); EVENTS];
        let count = match self.epoll.wait(&mut events, timeout) {
            Err(Errno::EINTR) => 0,
            count => count?,
        };
        // If the sleep ran into a stall, stall before reading.
        if self.schedule.stalled_until(now_ns()).is_some() {
            return Ok(!self.wake.clear_and_check_stop());
        }
        for event in &events[..count] {
            match event.data() {
                WAKE if self.wake.clear_and_check_stop() => return Ok(false),
                WAKE => {}
                // Only a wake-up: due actions are handled next.
                TIMER => drop(self.timer.wait()),
                LISTENER => self.accept(),
                number if event.events() == EpollFlags::EPOLLOUT => self.flush(number, now_ns()),
                number => self.receive(number),
            }
            // Due actions do not wait for the other sockets.
            self.act(now_ns());
        }
        Ok(true)
    }

    /// Runs the due actions. Consecutive replies of a connection are sent in one write.
    fn act(&mut self, now: u64) {
        if self.schedule.stalled_until(now).is_some() {
            return;
        }
        let mut touched: Option<(u64, u64)> = None;
        while let Some(entry) = self.agenda.first_entry() {
            let at_ns = entry.key().0;
            if at_ns > now {
                break;
            }
            let action = entry.remove();
            let number = self.perform(action, at_ns);
            if let Some((other, at_ns)) = touched.filter(|(other, _)| *other != number) {
                self.flush(other, at_ns);
            }
            touched = Some((number, at_ns));
        }
        if let Some((number, at_ns)) = touched {
            self.flush(number, at_ns);
        }
    }

    /// Runs one action; returns the connection that now has something to send.
    fn perform(&mut self, action: Action, at_ns: u64) -> u64 {
        match action {
            Action::Answer { connection, outcome } => {
                self.record().lateness.record(now_ns().saturating_sub(at_ns));
                self.answer(connection, outcome, at_ns);
                connection
            }
            Action::Piece { connection } => {
                if let Some(known) = self.connections.get_mut(&connection) {
                    known.drips = false;
                }
                connection
            }
            Action::Resume { connection } => {
                let known = self.connections.get_mut(&connection);
                if let Some(known) = known.filter(|known| known.state == State::Stalled) {
                    known.state = State::Open;
                }
                connection
            }
            Action::Flood { connection } => {
                if let Some(known) = self.connections.get_mut(&connection) {
                    if known.all_sent() {
                        known.push(&FLOOD);
                    }
                    self.schedule_action(at_ns + FLOOD_EVERY_NS, Action::Flood { connection });
                }
                connection
            }
        }
    }

    fn answer(&mut self, number: u64, outcome: Outcome, at_ns: u64) {
        let Some(connection) = self.connections.get_mut(&number) else { return };
        connection.waiting -= 1;
        match outcome {
            Outcome::Reply { bytes, stamp } => connection.push_reply(&bytes, stamp),
            Outcome::Bytes(bytes) => connection.push(&bytes),
            Outcome::Endless(bytes) => {
                connection.push(&bytes);
                let flood = Action::Flood { connection: number };
                self.schedule_action(at_ns + FLOOD_EVERY_NS, flood);
            }
            Outcome::Reset => {
                if let Socket::Tcp(stream) = &connection.socket {
                    // If this fails, the client sees an orderly close instead.
                    let _ =
                        setsockopt(stream, sockopt::Linger, &linger { l_onoff: 1, l_linger: 0 });
                }
                // Counted first, so a client that sees it also sees the count.
                self.record().tally.resets += 1;
                self.remove(number);
            }
        }
    }

    /// Sends what is due. The interval to the next piece of a drip starts at `at_ns`, the due time.
    pub(super) fn flush(&mut self, number: u64, at_ns: u64) {
        let drip = self.script.drip;
        let Some(connection) = self.connections.get_mut(&number) else { return };
        if !connection.drips {
            let sent_ns = now_ns();
            let Ok(sent) = connection.send(drip) else { return self.remove(number) };
            let marks: Vec<_> = std::iter::from_fn(|| connection.next_sent()).collect();
            let drip = drip.filter(|_| sent == SendResult::Piece);
            connection.drips = drip.is_some();
            for mark in marks {
                self.record().sent(mark.stamp, sent_ns);
            }
            if let Some(drip) = drip {
                let next_ns = (at_ns + drip.every_ns).max(sent_ns);
                self.schedule_action(next_ns, Action::Piece { connection: number });
            }
        }
        self.watch(number);
    }

    /// Updates the events that a socket is watched for; removes a finished connection.
    pub(super) fn watch(&mut self, number: u64) {
        let Some(connection) = self.connections.get_mut(&number) else { return };
        if connection.is_over() {
            return self.remove(number);
        }
        let (wants, watched) = (connection.wants(), connection.watched);
        connection.watched = wants;
        let mut event = EpollEvent::new(wants, number);
        let done = match (watched.is_empty(), wants.is_empty()) {
            _ if wants == watched => Ok(()),
            (true, _) => self.epoll.add(&connection.socket, event),
            (_, true) => self.epoll.delete(&connection.socket),
            _ => self.epoll.modify(&connection.socket, &mut event),
        };
        if done.is_err() {
            self.remove(number);
        }
    }

    pub(super) fn remove(&mut self, number: u64) {
        self.connections.remove(&number);
    }
}

/// Nanoseconds of `CLOCK_MONOTONIC`.
pub(super) fn now_ns() -> u64 {
    // Every Linux has this clock, and its time is positive.
    since_epoch_ns(clock_gettime(ClockId::CLOCK_MONOTONIC).unwrap_or(TimeSpec::new(0, 0)))
}

/// Converts a recent wall-clock time to nanoseconds of `CLOCK_MONOTONIC`. Returns the current time
/// if the wall clock was set in between.
pub(super) fn arrival_ns(at: TimeSpec) -> u64 {
    let now = now_ns();
    let Ok(wall) = clock_gettime(ClockId::CLOCK_REALTIME) else { return now };
    let age_ns = since_epoch_ns(wall).checked_sub(since_epoch_ns(at));
    age_ns.filter(|age_ns| *age_ns < AGE_NS_MAX).map_or(now, |age_ns| now.saturating_sub(age_ns))
}

fn since_epoch_ns(time: TimeSpec) -> u64 {
    time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64
}
