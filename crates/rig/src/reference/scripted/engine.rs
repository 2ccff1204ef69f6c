//! The thread of a scripted server: waits for requests, and sends replies when they are due.

use super::connection::{Connection, Sent, State};
use super::record::Record;
use super::schedule::{Dice, Schedule};
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

/// A wait shorter than this is spent looking at the clock: a sleeping thread wakes up too late.
const SPIN_NS: u64 = 60_000;
/// Replies that may wait for their time; with more, nothing is read until the next one is due.
const AGENDA_MAX: usize = 1 << 20;
/// Room for what is read at once.
const INBOX_BYTES: usize = 64 << 10;
/// Nothing waits longer in a socket before it is read.
const AGE_NS_MAX: u64 = 60_000_000_000;
/// Events that are taken at once.
const EVENTS: usize = 256;
/// Events that are no connection's.
const LISTENER: u64 = u64::MAX;
const WAKE: u64 = u64::MAX - 1;
const TIMER: u64 = u64::MAX - 2;
/// Pieces of a line that does not end, and the time between two of them.
const FLOOD: [u8; 16 << 10] = [b'x'; 16 << 10];
const FLOOD_EVERY_NS: u64 = 1_000_000;

/// Something to be done at a time.
#[derive(Debug)]
pub(super) enum Action {
    /// A connection gets what one of its requests leads to.
    Answer { connection: u64, outcome: Outcome },
    /// The next piece of a drip may leave.
    Piece { connection: u64 },
    /// A connection is read again.
    Resume { connection: u64 },
    /// More of a line that does not end.
    Flood { connection: u64 },
}

/// What a request leads to.
#[derive(Debug)]
pub(super) enum Outcome {
    /// A reply, right or wrong, and the place of its stamp.
    Reply {
        bytes: Vec<u8>,
        stamp: Option<usize>,
    },
    /// Bytes that are no whole reply.
    Bytes(Vec<u8>),
    /// The beginning of a line that does not end.
    Endless(Vec<u8>),
    Reset,
}

/// A scripted server's own state.
pub(super) struct Engine {
    pub(super) script: Script,
    pub(super) schedule: Schedule,
    pub(super) dice: Dice,
    pub(super) store: Store,
    pub(super) listener: Listener,
    epoll: Epoll,
    timer: TimerFd,
    wake: Arc<Wake>,
    record: Arc<Mutex<Record>>,
    spin: bool,
    /// By their number.
    pub(super) connections: HashMap<u64, Connection>,
    /// Connections taken, the number of the last one.
    pub(super) taken: u64,
    /// Requests taken, over all connections.
    pub(super) admitted: u64,
    /// What is to be done, by its time and by the order in which it was decided.
    agenda: BTreeMap<(u64, u64), Action>,
    decided: u64,
    pub(super) inbox: Vec<u8>,
    /// Room for the time at which what is read had come; empty where that does not count.
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
            dice: Dice::new(&settings.script),
            script: settings.script.clone(),
            store: Store::default(),
            listener,
            epoll,
            timer,
            wake,
            record,
            spin: settings.spin,
            connections: HashMap::new(),
            taken: 0,
            admitted: 0,
            agenda: BTreeMap::new(),
            decided: 0,
            inbox: vec![0; INBOX_BYTES],
            control: if settings.from_arrival { cmsg_space!(TimeSpec) } else { Vec::new() },
            parts: Parts::default(),
        })
    }

    /// Serves until it is told to end, or the system refuses to wait.
    pub(super) fn run(mut self) {
        // Where it is refused, the end of a stall is found by looking at the clock a little longer.
        let _ = nix::sys::prctl::set_timerslack(1);
        while self.step().is_ok_and(|goes_on| goes_on) {}
    }

    /// One round; false when it was told to end.
    fn step(&mut self) -> nix::Result<bool> {
        let now = now_ns();
        if let Some(until_ns) = self.schedule.stalled_until(now) {
            return self.stand_still(until_ns);
        }
        self.act(now);
        match self.agenda.first_key_value() {
            Some(((at_ns, _), _)) if self.agenda.len() >= AGENDA_MAX => self.stand_still(*at_ns),
            first => self.wait(first.map(|((at_ns, _), _)| *at_ns)),
        }
    }

    /// What the server shares with who asks about it.
    pub(super) fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn decide(&mut self, at_ns: u64, action: Action) {
        self.decided += 1;
        self.agenda.insert((at_ns, self.decided), action);
    }

    /// Does nothing until a time, but for hearing that it must end; false then.
    fn stand_still(&self, until_ns: u64) -> nix::Result<bool> {
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
                    Ok(_) if self.wake.answered() => return Ok(false),
                    Ok(_) => {}
                    Err(e) => return Err(e),
                }
            }
        }
    }

    /// Waits for the sockets or until the next thing is due, and takes in what came.
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
        // Who slept into a stall stands still before reading.
        if self.schedule.stalled_until(now_ns()).is_some() {
            return Ok(!self.wake.answered());
        }
        for event in &events[..count] {
            match event.data() {
                WAKE if self.wake.answered() => return Ok(false),
                WAKE => {}
                // It was set for this, and what is due is seen next.
                TIMER => drop(self.timer.wait()),
                LISTENER => self.accept(),
                number if event.events() == EpollFlags::EPOLLOUT => self.flush(number, now_ns()),
                number => self.receive(number),
            }
            // What is due does not wait for the other sockets.
            self.act(now_ns());
        }
        Ok(true)
    }

    /// Does what is due, and sends replies of a connection that follow each other in one write.
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

    /// Does one thing; gives the connection that has something to send now.
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
                    self.decide(at_ns + FLOOD_EVERY_NS, Action::Flood { connection });
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
                self.decide(at_ns + FLOOD_EVERY_NS, flood);
            }
            Outcome::Reset => {
                if let Socket::Tcp(stream) = &connection.socket {
                    // Where it is refused, the client sees an orderly end instead.
                    let _ =
                        setsockopt(stream, sockopt::Linger, &linger { l_onoff: 1, l_linger: 0 });
                }
                // Who sees it finds it counted.
                self.record().tally.resets += 1;
                self.remove(number);
            }
        }
    }

    /// Sends what may be sent; `at_ns` is when that was due, from which the next piece of a drip is
    /// counted.
    pub(super) fn flush(&mut self, number: u64, at_ns: u64) {
        let drip = self.script.drip;
        let Some(connection) = self.connections.get_mut(&number) else { return };
        if !connection.drips {
            let sent_ns = now_ns();
            let Ok(sent) = connection.send(drip) else { return self.remove(number) };
            let marks: Vec<_> = std::iter::from_fn(|| connection.next_sent()).collect();
            let drip = drip.filter(|_| sent == Sent::Piece);
            connection.drips = drip.is_some();
            for mark in marks {
                self.record().sent(mark.stamp, sent_ns);
            }
            if let Some(drip) = drip {
                let next_ns = (at_ns + drip.every_ns).max(sent_ns);
                self.decide(next_ns, Action::Piece { connection: number });
            }
        }
        self.watch(number);
    }

    /// Watches a socket for what its connection wants now; removes a connection that is over.
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
    // This clock is there on every Linux, and it is after 0.
    since_epoch_ns(clock_gettime(ClockId::CLOCK_MONOTONIC).unwrap_or(TimeSpec::new(0, 0)))
}

/// What was at a time of the wall clock a moment ago, in nanoseconds of `CLOCK_MONOTONIC`. Now,
/// where the wall clock has been set meanwhile.
pub(super) fn arrival_ns(at: TimeSpec) -> u64 {
    let now = now_ns();
    let Ok(wall) = clock_gettime(ClockId::CLOCK_REALTIME) else { return now };
    let age_ns = since_epoch_ns(wall).checked_sub(since_epoch_ns(at));
    age_ns.filter(|age_ns| *age_ns < AGE_NS_MAX).map_or(now, |age_ns| now.saturating_sub(age_ns))
}

fn since_epoch_ns(time: TimeSpec) -> u64 {
    time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64
}
