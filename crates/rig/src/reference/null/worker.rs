//! One thread of the null server: an event loop over its connections.

use super::answers::Answers;
use super::connection::{Connection, Next, WorkerBuffers};
use super::mailbox::Mailbox;
use crate::reference::listen::Socket;
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use std::mem;
use std::sync::{Arc, PoisonError};

/// Maximum number of events per epoll call.
const EVENTS: usize = 256;
/// Event data of the mailbox; every other value is a connection's index.
const MAIL: u64 = u64::MAX;

/// State of one worker thread.
pub(super) struct Worker {
    mailbox: Arc<Mailbox>,
    answers: Arc<Answers>,
    epoll: Epoll,
    /// Indexed by the event data; `None` if the connection was closed.
    connections: Vec<Option<Connection>>,
    /// Unused indexes of `connections`.
    free: Vec<usize>,
    /// Connections with remaining work for which no event will arrive.
    queued: Vec<usize>,
    /// The queued connections being served now; empty between turns.
    current: Vec<usize>,
    buffers: WorkerBuffers,
}

impl Worker {
    pub(super) fn new(mailbox: Arc<Mailbox>, answers: Arc<Answers>) -> nix::Result<Self> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        epoll.add(&mailbox.wake, EpollEvent::new(EpollFlags::EPOLLIN, MAIL))?;
        let buffers = WorkerBuffers::new(mailbox.clone());
        Ok(Self {
            mailbox,
            answers,
            epoll,
            connections: Vec::new(),
            free: Vec::new(),
            queued: Vec::new(),
            current: Vec::new(),
            buffers,
        })
    }

    /// Serves connections until stopped.
    pub(super) fn run(mut self) {
        let mut events = [EpollEvent::empty(); EVENTS];
        loop {
            let idle = self.queued.is_empty();
            let timeout = if idle { EpollTimeout::NONE } else { EpollTimeout::ZERO };
            let count = match self.epoll.wait(&mut events, timeout) {
                Ok(count) => count,
                Err(Errno::EINTR) => continue,
                // Fails only if the system is out of memory: the thread cannot go on.
                Err(_) => return,
            };
            let mut mail = false;
            for event in &events[..count] {
                match event.data() {
                    MAIL => mail = true,
                    number => self.handle_event(number as usize, event.events()),
                }
            }
            self.serve_queued();
            // Last, so no event of a closed connection reaches a new one with the same index.
            if mail {
                if self.mailbox.wake.clear_and_check_stop() {
                    return;
                }
                self.take_over();
            }
        }
    }

    fn handle_event(&mut self, number: usize, events: EpollFlags) {
        let ending = EpollFlags::EPOLLRDHUP | EpollFlags::EPOLLHUP | EpollFlags::EPOLLERR;
        if events.intersects(ending)
            && let Some(connection) = &mut self.connections[number]
        {
            connection.mark_ending();
        }
        self.serve(number);
    }

    /// Serves the connections that had remaining work after their last turn.
    fn serve_queued(&mut self) {
        mem::swap(&mut self.queued, &mut self.current);
        for at in 0..self.current.len() {
            let number = self.current[at];
            if let Some(connection) = &mut self.connections[number] {
                connection.queued = false;
            }
            self.serve(number);
        }
        self.current.clear();
    }

    /// One read, its replies and one write. A connection with remaining work is queued again.
    fn serve(&mut self, number: usize) {
        let Some(connection) = &mut self.connections[number] else { return };
        let next = match connection.turn(&self.answers, &mut self.buffers) {
            Next::Full => self.wait_until_writable(number),
            next => next,
        };
        match next {
            Next::Wait | Next::Full => {}
            Next::Again => self.queue(number),
            Next::End => {
                self.connections[number] = None;
                self.free.push(number);
            }
        }
    }

    fn queue(&mut self, number: usize) {
        if let Some(connection) = self.connections[number].as_mut().filter(|c| !c.queued) {
            connection.queued = true;
            self.queued.push(number);
        }
    }

    /// Registers a unix socket for writable events only when its buffer is full. Otherwise every
    /// reply that the client reads would cause one, and that wake-up costs as much as answering.
    /// TCP reports writable only after its buffer was full.
    fn wait_until_writable(&mut self, number: usize) -> Next {
        let Some(connection) = &mut self.connections[number] else { return Next::Wait };
        if connection.watches_writable {
            return Next::Full;
        }
        connection.watches_writable = true;
        let mut event = EpollEvent::new(interest(true), number as u64);
        match self.epoll.modify(&connection.socket, &mut event) {
            Ok(()) => Next::Full,
            Err(_) => Next::End,
        }
    }

    /// Takes over the connections in the mailbox.
    fn take_over(&mut self) {
        let mut waiting = self.mailbox.sockets.lock().unwrap_or_else(PoisonError::into_inner);
        let sockets = mem::take(&mut *waiting);
        drop(waiting);
        for socket in sockets {
            let number = self.free.pop().unwrap_or_else(|| {
                self.connections.push(None);
                self.connections.len() - 1
            });
            let watches_writable = matches!(socket, Socket::Tcp(_));
            let event = EpollEvent::new(interest(watches_writable), number as u64);
            match self.epoll.add(&socket, event) {
                Ok(()) => {
                    self.connections[number] = Some(Connection::new(socket, watches_writable));
                }
                // The kernel cannot watch more sockets; this one is closed.
                Err(_) => self.free.push(number),
            }
        }
    }
}

fn interest(writable: bool) -> EpollFlags {
    let always = EpollFlags::EPOLLIN | EpollFlags::EPOLLRDHUP | EpollFlags::EPOLLET;
    if writable { always | EpollFlags::EPOLLOUT } else { always }
}
