//! Connections that have not said who they are. Each has some seconds to say it.

use rustls::{Connection, ServerConfig, ServerConnection};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use super::link::{Arrived, Link};

/// How long a connection may take to say who it is.
const HELLO_WITHIN: Duration = Duration::from_secs(5);
/// Most connections that have not said who they are.
const STRANGERS_MAX: usize = 256;
/// How often connections are looked for once nobody is let in.
const SELDOM: Duration = Duration::from_millis(100);

/// What arrived, with the number of its connection.
pub(super) type Mail<R> = (usize, Arrived<R>);

/// A connection that has not said who it is.
pub(super) struct Stranger {
    pub(super) link: Link,
    pub(super) from: SocketAddr,
    /// True if it comes from this machine.
    pub(super) is_local: bool,
    since: Instant,
}

/// Accepts connections, whose messages are `R`.
pub(super) struct Strangers<R> {
    listener: TcpListener,
    config: Arc<ServerConfig>,
    waiting: BTreeMap<usize, Stranger>,
    /// Number of the next connection.
    next: usize,
    mailbox: Sender<Mail<R>>,
    inbox: Receiver<Mail<R>>,
}

impl<R: DeserializeOwned + Send + 'static> Strangers<R> {
    /// `listener` must not block.
    pub(super) fn new(listener: TcpListener, config: Arc<ServerConfig>) -> Self {
        let (mailbox, inbox) = channel();
        Self { listener, config, waiting: BTreeMap::new(), next: 0, mailbox, inbox }
    }

    /// What arrives next within `wait`. With it comes the stranger that sent it, who waits no
    /// longer; none if the connection was let in before.
    pub(super) fn hear(&mut self, wait: Duration) -> Option<(Mail<R>, Option<Stranger>)> {
        if self.waiting.len() < STRANGERS_MAX {
            self.greet();
        }
        self.waiting.retain(|_, stranger| stranger.since.elapsed() < HELLO_WITHIN);
        let mail = self.inbox.recv_timeout(wait).ok()?;
        let stranger = self.waiting.remove(&mail.0);
        Some((mail, stranger))
    }

    /// Accepts a connection, if one is waiting.
    fn greet(&mut self) {
        let Ok((stream, from)) = self.listener.accept() else { return };
        let Ok(connection) = ServerConnection::new(Arc::clone(&self.config)) else { return };
        let is_local = stream.local_addr().is_ok_and(|own| own.ip() == from.ip());
        let (mailbox, number) = (self.mailbox.clone(), self.next);
        self.next += 1;
        let link = Link::open(stream, Connection::Server(connection), Instant::now(), {
            move |arrived| {
                // Nobody listens once all are gone.
                let _ = mailbox.send((number, arrived));
            }
        });
        let Ok(link) = link else { return };
        self.waiting.insert(number, Stranger { link, from, is_local, since: Instant::now() });
    }

    /// Where the messages of those arrive that were let in. Those that still wait are refused.
    pub(super) fn part<S: Serialize>(&mut self, refusal: &S) -> Receiver<Mail<R>> {
        for stranger in std::mem::take(&mut self.waiting).into_values() {
            stranger.link.send(refusal);
        }
        let (mailbox, inbox) = channel();
        self.mailbox = mailbox;
        std::mem::replace(&mut self.inbox, inbox)
    }

    /// Answers every first message with a refusal, until `is_over` is set.
    pub(super) fn turn_away<S: Serialize>(
        &mut self,
        is_over: &AtomicBool,
        refusal: impl Fn(R) -> Option<S>,
    ) {
        while !is_over.load(Ordering::Relaxed) {
            if let Some(((_, Arrived::Message(message)), Some(stranger))) = self.hear(SELDOM)
                && let Some(refusal) = refusal(message)
            {
                stranger.link.send(&refusal);
            }
        }
    }
}
