//! A relay that adds distance: it passes on what clients and a server send, half a round-trip time
//! later, as a longer cable would. It does not limit the rate.
//!
//! Connecting is not delayed: the relay accepts at once. Its own cost is a wake-up and four system
//! calls per direction and message, on the CPU that it shares with the load generator.
//!
//! - `link`: a client's connection and the server's.
//! - `queue`: what is under way.

mod link;
mod queue;

use crate::error::Result;
use crate::reference::listen::{Listen, Listener};
use crate::reference::wake::{Wake, polling_error, spawn};
use link::{Link, Side, connect};
use model::NetAddress;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use queue::{Arrival, Queue};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Name in errors and of the thread.
const NAME: &str = "relay";
/// Numbers of the descriptors besides those of links, which are twice a link's number, plus one for
/// the server's side.
const LISTENER: u64 = u64::MAX;
const WAKE: u64 = u64::MAX - 1;
const TIMER: u64 = u64::MAX - 2;
/// Events handled at once.
const EVENTS: usize = 256;

/// A running relay. Dropping it closes all its connections.
#[derive(Debug)]
pub struct Relay {
    address: NetAddress,
    wake: Arc<Wake>,
    thread: Option<JoinHandle<()>>,
}

impl Relay {
    /// Starts a relay to a server, on a free port of 127.0.0.1. Its thread runs on `cpus`, or on
    /// any if the list is empty.
    ///
    /// Errors: no port, descriptor or thread is available.
    pub fn start(server: NetAddress, round_trip: Duration, cpus: Vec<usize>) -> Result<Self> {
        let listener = Listener::bind(&Listen::default())?;
        let address = match listener.address() {
            Listen::Tcp(address) => NetAddress::Tcp(address.ip().to_string(), address.port()),
            Listen::Unix(path) => NetAddress::Unix(path.clone()),
        };
        let wake = Arc::new(Wake::new().map_err(polling_error(NAME))?);
        let station = Station::new(listener, Arc::clone(&wake), server, round_trip / 2);
        let station = station.map_err(polling_error(NAME))?;
        let (pinned, is_pinned) = mpsc::channel();
        let thread = spawn(NAME, NAME.into(), cpus, pinned, move || station.run())?;
        let relay = Self { address, wake, thread: Some(thread) };
        // An error of the channel means that the thread has panicked.
        is_pinned.recv().unwrap_or(Ok(())).map(|()| relay)
    }

    /// Address for clients.
    pub fn address(&self) -> &NetAddress {
        &self.address
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.wake.stop();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The relay's thread.
struct Station {
    listener: Listener,
    wake: Arc<Wake>,
    epoll: Epoll,
    timer: TimerFd,
    server: NetAddress,
    delay: Duration,
    links: HashMap<u64, Link>,
    /// Links so far; the number of the next one.
    opened: u64,
    queue: Queue,
}

impl Station {
    fn new(
        listener: Listener,
        wake: Arc<Wake>,
        server: NetAddress,
        delay: Duration,
    ) -> nix::Result<Self> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, flags)?;
        epoll.add(&listener, EpollEvent::new(EpollFlags::EPOLLIN, LISTENER))?;
        epoll.add(&wake, EpollEvent::new(EpollFlags::EPOLLIN, WAKE))?;
        epoll.add(&timer, EpollEvent::new(EpollFlags::EPOLLIN, TIMER))?;
        let (links, queue) = (HashMap::new(), Queue::default());
        Ok(Self { listener, wake, epoll, timer, server, delay, links, opened: 0, queue })
    }

    /// Serves until stopped, or until a wait fails.
    fn run(mut self) {
        let mut events = vec![EpollEvent::empty(); EVENTS];
        loop {
            let Ok(ready) = self.wait(&mut events) else { return };
            for event in &events[..ready] {
                match event.data() {
                    WAKE if self.wake.clear_and_check_stop() => return,
                    WAKE | TIMER => {}
                    LISTENER => self.accept(),
                    number => self.serve(number, event.events()),
                }
            }
            self.deliver();
        }
    }

    /// Waits for sockets or the next arrival.
    fn wait(&mut self, events: &mut [EpollEvent]) -> nix::Result<usize> {
        match self.queue.next_at() {
            Some(at) => {
                let left = at.saturating_duration_since(Instant::now());
                // A time of 0 would disarm the timer.
                let left = TimeSpec::from(left.max(Duration::from_nanos(1)));
                self.timer.set(Expiration::OneShot(left), TimerSetTimeFlags::empty())?;
            }
            None => self.timer.unset()?,
        }
        match self.epoll.wait(events, EpollTimeout::NONE) {
            Err(nix::errno::Errno::EINTR) => Ok(0),
            other => other,
        }
    }

    /// Accepts all pending clients. One whose server cannot be reached is closed.
    fn accept(&mut self) {
        while let Ok(client) = self.listener.accept() {
            let Ok(server) = connect(&self.server) else { continue };
            let number = self.opened;
            self.opened += 1;
            // Without an event for one of its sockets a link is useless, so it is closed.
            if let Ok(link) = Link::open(&self.epoll, number, client, server) {
                self.links.insert(number, link);
            }
        }
    }

    /// Reads and writes what is possible at one side of a link.
    fn serve(&mut self, number: u64, events: EpollFlags) {
        let (number, side) = (number / 2, Side::of(number));
        let Some(link) = self.links.get_mut(&number) else { return };
        let has_failed = events.contains(EpollFlags::EPOLLERR);
        if events.intersects(EpollFlags::EPOLLIN | EpollFlags::EPOLLHUP) || has_failed {
            let at = Instant::now() + self.delay;
            let queue = &mut self.queue;
            link.read(side, |bytes| queue.push(Arrival { at, link: number, side, bytes }));
        }
        if events.contains(EpollFlags::EPOLLOUT) {
            link.write(side);
        }
        self.settle(number);
    }

    /// Hands over everything whose time has come.
    fn deliver(&mut self) {
        while let Some(arrival) = self.queue.pop_due(Instant::now()) {
            let Some(link) = self.links.get_mut(&arrival.link) else { continue };
            link.arrive(arrival.side, arrival.bytes);
            self.settle(arrival.link);
        }
    }

    /// Adapts what a link waits for, and removes it once both sides have ended.
    fn settle(&mut self, number: u64) {
        let Some(link) = self.links.get_mut(&number) else { return };
        if link.has_ended() || link.register(&self.epoll, number).is_err() {
            // Closing the sockets removes their events.
            self.links.remove(&number);
        }
    }
}

#[cfg(test)]
mod tests;
