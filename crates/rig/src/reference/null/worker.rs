//! One thread of the null server: an event loop over its connections.

use super::answers::Answers;
use super::connection::{Connection, Hands, Next};
use super::mailbox::Mailbox;
use crate::reference::listen::Socket;
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use std::mem;
use std::sync::{Arc, PoisonError};

/// Events that are taken at once.
const EVENTS: usize = 256;
/// The event of the mailbox, which is no connection's.
const MAIL: u64 = u64::MAX;

/// A thread's own state.
pub(super) struct Worker {
    mailbox: Arc<Mailbox>,
    answers: Arc<Answers>,
    epoll: Epoll,
    /// By the number that their events carry; `None` where one has ended.
    connections: Vec<Option<Connection>>,
    /// Numbers without a connection.
    free: Vec<usize>,
    /// Connections that have more to do though no event will say so.
    again: Vec<usize>,
    /// Those of them whose turn it is; empty between turns.
    turn: Vec<usize>,
    hands: Hands,
}

impl Worker {
    pub(super) fn new(mailbox: Arc<Mailbox>, answers: Arc<Answers>) -> nix::Result<Self> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        epoll.add(&mailbox.wake, EpollEvent::new(EpollFlags::EPOLLIN, MAIL))?;
        let hands = Hands::new(mailbox.clone());
        Ok(Self {
            mailbox,
            answers,
            epoll,
            connections: Vec::new(),
            free: Vec::new(),
            again: Vec::new(),
            turn: Vec::new(),
            hands,
        })
    }

    /// Serves until it is told to end.
    pub(super) fn run(mut self) {
        let mut events = [EpollEvent::empty(); EVENTS];
        loop {
            let idle = self.again.is_empty();
            let timeout = if idle { EpollTimeout::NONE } else { EpollTimeout::ZERO };
            let count = match self.epoll.wait(&mut events, timeout) {
                Ok(count) => count,
                Err(Errno::EINTR) => continue,
                // Without memory for a system call there is nothing to serve with.
                Err(_) => return,
            };
            let mut mail = false;
            for event in &events[..count] {
                match event.data() {
                    MAIL => mail = true,
                    number => self.happened(number as usize, event.events()),
                }
            }
            self.serve_again();
            // Last, so that no event of an ended connection meets a new one of its number.
            if mail {
                if self.mailbox.wake.answered() {
                    return;
                }
                self.take_over();
            }
        }
    }

    fn happened(&mut self, number: usize, events: EpollFlags) {
        let ending = EpollFlags::EPOLLRDHUP | EpollFlags::EPOLLHUP | EpollFlags::EPOLLERR;
        if events.intersects(ending)
            && let Some(connection) = &mut self.connections[number]
        {
            connection.ends();
        }
        self.serve(number);
    }

    /// Serves those that had more to do after their last turn.
    fn serve_again(&mut self) {
        mem::swap(&mut self.again, &mut self.turn);
        for at in 0..self.turn.len() {
            let number = self.turn[at];
            if let Some(connection) = &mut self.connections[number] {
                connection.queued = false;
            }
            self.serve(number);
        }
        self.turn.clear();
    }

    /// One read, its answers and one write; a connection with more to do waits for its next turn.
    fn serve(&mut self, number: usize) {
        let Some(connection) = &mut self.connections[number] else { return };
        let next = match connection.turn(&self.answers, &mut self.hands) {
            Next::Full => self.wait_for_room(number),
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
            self.again.push(number);
        }
    }

    /// A unix socket tells of room only when it was asked to: it would tell after every reply that
    /// the client has read, and waking up for that costs as much as answering. TCP tells only of
    /// room after there was none.
    fn wait_for_room(&mut self, number: usize) -> Next {
        let Some(connection) = &mut self.connections[number] else { return Next::Wait };
        if connection.asked_for_room {
            return Next::Full;
        }
        connection.asked_for_room = true;
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
            let asked_for_room = matches!(socket, Socket::Tcp(_));
            let event = EpollEvent::new(interest(asked_for_room), number as u64);
            match self.epoll.add(&socket, event) {
                Ok(()) => self.connections[number] = Some(Connection::new(socket, asked_for_room)),
                // The kernel watches no more sockets: this one is closed.
                Err(_) => self.free.push(number),
            }
        }
    }
}

fn interest(room: bool) -> EpollFlags {
    let always = EpollFlags::EPOLLIN | EpollFlags::EPOLLRDHUP | EpollFlags::EPOLLET;
    if room { always | EpollFlags::EPOLLOUT } else { always }
}
