//! One end of a connection between driver and worker: TLS over TCP, served by its own thread.
//!
//! The thread answers pings when they arrive, whatever else this process does, and sends one each
//! second. So a peer that is gone, stopped or unreachable is noticed although nothing is sent to
//! it.

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::eventfd::{EfdFlags, EventFd};
use rustls::Connection;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::fmt;
use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::clock::{PINGS, Reading};

/// A peer that is silent for longer is gone.
pub(super) const SILENCE_MAX: Duration = Duration::from_secs(5);
const PING_EVERY: Duration = Duration::from_secs(1);
/// A process that was stopped for longer can be gone for its peer, which has waited since the last
/// ping.
const STOPPED_MIN: Duration = Duration::from_secs(SILENCE_MAX.as_secs() - 2 * PING_EVERY.as_secs());
/// Longest message before the peer is known, and after.
const STRANGER_BYTES_MAX: usize = 65_536;
const BYTES_MAX: usize = 1 << 28;
/// Length before each message, bytes.
const LENGTH: usize = 4;

/// What arrives at one end.
#[derive(Debug)]
pub(super) enum Arrived<M> {
    Message(M),
    /// The peer's clock, from the shortest of [`PINGS`] round trips.
    Clock(Reading),
    /// The connection is over; the last of its arrivals.
    Gone(End),
}

/// Why a connection is over.
#[derive(Debug, PartialEq)]
pub(super) enum End {
    /// The peer closed it, or ended without a word.
    Closed,
    /// The peer closed it after this process was stopped for so long that it seemed to be gone.
    ClosedAfterStop(Duration),
    /// Nothing arrived for [`SILENCE_MAX`]. The peer may continue later.
    Silent { is_handshaking: bool },
    /// The reason in words.
    Other(String),
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let silent_s = SILENCE_MAX.as_secs();
        match self {
            Self::Closed => f.write_str("the connection was closed"),
            Self::ClosedAfterStop(stop) => write!(
                f,
                "the connection was closed after this process was stopped for {:.1} s",
                stop.as_secs_f64()
            ),
            Self::Silent { is_handshaking: true } => {
                write!(f, "it was silent for {silent_s} s and may not be cachedyno")
            }
            Self::Silent { is_handshaking: false } => write!(f, "it was silent for {silent_s} s"),
            Self::Other(why) => f.write_str(why),
        }
    }
}

impl From<io::Error> for End {
    fn from(error: io::Error) -> Self {
        use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset};
        match error.kind() {
            // A killed process ends so with data on the way.
            BrokenPipe | ConnectionAborted | ConnectionReset => Self::Closed,
            _ => Self::Other(error.to_string()),
        }
    }
}

/// What is sent. The number of a ping is 0 unless its time counts.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Frame<M> {
    Ping(u32),
    Pong(u32, u64),
    Message(M),
}

/// Handed to the thread by [`Link`].
enum Order {
    Send(Vec<u8>),
    MeasureClock,
    Close,
}

/// State shared with the thread.
struct Shared {
    orders: Mutex<VecDeque<Order>>,
    wake: EventFd,
    bytes_max: AtomicUsize,
}

/// How long a last message may take to leave.
const SENT_WITHIN: Duration = Duration::from_secs(1);

/// One end of a connection. Dropping it closes the connection after everything is sent.
pub(super) struct Link {
    shared: Arc<Shared>,
    thread: JoinHandle<()>,
}

impl Link {
    /// Serves a connection. Times of pongs count from `zero`. `deliver` gets everything that
    /// arrives; it is called by the thread and must not block.
    pub(super) fn open<R: DeserializeOwned>(
        stream: TcpStream,
        connection: Connection,
        zero: Instant,
        deliver: impl FnMut(Arrived<R>) + Send + 'static,
    ) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        let shared = Arc::new(Shared {
            orders: Mutex::default(),
            wake: EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)?,
            bytes_max: AtomicUsize::new(STRANGER_BYTES_MAX),
        });
        let own = Arc::clone(&shared);
        let thread = thread::Builder::new().name("fleet".into()).spawn(move || {
            Served::new(stream, connection, own, zero, deliver).run();
        })?;
        Ok(Self { shared, thread })
    }

    /// The same, with a receiver of everything that arrives.
    pub(super) fn receiving<R: DeserializeOwned + Send + 'static>(
        stream: TcpStream,
        connection: Connection,
        zero: Instant,
    ) -> io::Result<(Self, Receiver<Arrived<R>>)> {
        let (mailbox, inbox) = channel();
        let link = Self::open(stream, connection, zero, move |arrived| {
            // Nobody listens once the receiver is gone.
            let _ = mailbox.send(arrived);
        })?;
        Ok((link, inbox))
    }

    /// Accepts long messages from now on: the peer is known.
    pub(super) fn trust(&self) {
        self.shared.bytes_max.store(BYTES_MAX, Ordering::Relaxed);
    }

    /// Sends a message soon; one that cannot be sent ends the connection.
    pub(super) fn send<S: Serialize>(&self, message: &S) {
        match framed(&Frame::Message(message)) {
            Ok(bytes) => self.order(Order::Send(bytes)),
            Err(_) => self.order(Order::Close),
        }
    }

    /// Measures the peer's clock; the result arrives as [`Arrived::Clock`].
    pub(super) fn measure_clock(&self) {
        self.order(Order::MeasureClock);
    }

    fn order(&self, order: Order) {
        self.shared.orders.lock().unwrap_or_else(PoisonError::into_inner).push_back(order);
        // A full counter wakes the thread as well.
        let _ = self.shared.wake.write(1);
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.order(Order::Close);
        // The process may end right after.
        let until = Instant::now() + SENT_WITHIN;
        while !self.thread.is_finished() && Instant::now() < until {
            thread::sleep(Duration::from_millis(1));
        }
    }
}

fn framed<M: Serialize>(frame: &Frame<M>) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; LENGTH];
    serde_json::to_writer(&mut bytes, frame)?;
    let length = u32::try_from(bytes.len() - LENGTH).map_err(io::Error::other)?;
    bytes[..LENGTH].copy_from_slice(&length.to_be_bytes());
    Ok(bytes)
}

/// The thread of a link.
struct Served<D> {
    stream: TcpStream,
    connection: Connection,
    shared: Arc<Shared>,
    zero: Instant,
    deliver: D,
    received: Vec<u8>,
    heard: Instant,
    pinged: Instant,
    /// When its last wait ended.
    turned: Instant,
    /// When this process last continued after a stop, and how long that was.
    stopped: Option<(Instant, Duration)>,
    /// The measurement of the peer's clock: pings to send, the last one's number and time, and the
    /// best reading.
    pings_left: u32,
    ping: (u32, Instant),
    best: Option<Reading>,
    closing: bool,
}

impl<D> Served<D> {
    fn new(
        stream: TcpStream,
        mut connection: Connection,
        shared: Arc<Shared>,
        zero: Instant,
        deliver: D,
    ) -> Self {
        connection.set_buffer_limit(None);
        let now = Instant::now();
        Self {
            stream,
            connection,
            shared,
            zero,
            deliver,
            received: Vec::new(),
            heard: now,
            pinged: now,
            turned: now,
            stopped: None,
            pings_left: 0,
            ping: (0, now),
            best: None,
            closing: false,
        }
    }

    fn run<R: DeserializeOwned>(mut self)
    where
        D: FnMut(Arrived<R>),
    {
        let end = loop {
            if let Err(end) = self.turn() {
                break end;
            }
        };
        let end = match (end, self.stopped) {
            (End::Closed, Some((until, stop))) if until.elapsed() < SILENCE_MAX => {
                End::ClosedAfterStop(stop)
            }
            (end, _) => end,
        };
        (self.deliver)(Arrived::Gone(end));
    }

    /// Waits for something to do, and does it. Errors: the connection is over.
    fn turn<R: DeserializeOwned>(&mut self) -> Result<(), End>
    where
        D: FnMut(Arrived<R>),
    {
        let wants_write = self.connection.wants_write();
        if self.closing && !wants_write {
            return Err(End::Closed);
        }
        let mut flags = PollFlags::POLLIN;
        flags.set(PollFlags::POLLOUT, wants_write);
        let mut polled = [
            PollFd::new(self.stream.as_fd(), flags),
            PollFd::new(self.shared.wake.as_fd(), PollFlags::POLLIN),
        ];
        let wait = PollTimeout::try_from(PING_EVERY / 4).unwrap_or(PollTimeout::ZERO);
        match poll(&mut polled, wait) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(e) => return Err(io::Error::from(e).into()),
        }
        let ready = polled[0].revents().unwrap_or(PollFlags::empty());
        let now = Instant::now();
        // A wait is shorter than a second, so a long one is a stop of this process.
        let stop = now.duration_since(std::mem::replace(&mut self.turned, now));
        if stop > STOPPED_MIN {
            self.stopped = Some((now, stop));
        }
        if ready.intersects(PollFlags::POLLIN | PollFlags::POLLHUP | PollFlags::POLLERR)
            && !self.read(now)?
        {
            return Err(End::Closed);
        }
        let _ = self.shared.wake.read();
        self.obey()?;
        if now.duration_since(self.heard) > SILENCE_MAX {
            return Err(End::Silent { is_handshaking: self.connection.is_handshaking() });
        }
        if now.duration_since(self.pinged) >= PING_EVERY && !self.connection.is_handshaking() {
            self.pinged = now;
            self.send(&Frame::<()>::Ping(0))?;
        }
        Ok(self.write()?)
    }

    fn obey(&mut self) -> io::Result<()> {
        loop {
            let mut orders = self.shared.orders.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(order) = orders.pop_front() else { return Ok(()) };
            drop(orders);
            match order {
                Order::Send(bytes) => self.connection.writer().write_all(&bytes)?,
                Order::MeasureClock => {
                    (self.pings_left, self.best) = (PINGS, None);
                    self.next_ping()?;
                }
                Order::Close => {
                    self.connection.send_close_notify();
                    self.closing = true;
                }
            }
        }
    }

    fn send<M: Serialize>(&mut self, frame: &Frame<M>) -> io::Result<()> {
        self.connection.writer().write_all(&framed(frame)?)
    }

    fn next_ping(&mut self) -> io::Result<()> {
        self.pings_left -= 1;
        self.ping = (self.pings_left + 1, Instant::now());
        self.send(&Frame::<()>::Ping(self.ping.0))
    }

    fn write(&mut self) -> io::Result<()> {
        while self.connection.wants_write() {
            match self.connection.write_tls(&mut self.stream) {
                Ok(_) => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    /// Reads all that has arrived at `now`. False if the peer has closed the connection.
    fn read<R: DeserializeOwned>(&mut self, now: Instant) -> io::Result<bool>
    where
        D: FnMut(Arrived<R>),
    {
        loop {
            match self.connection.read_tls(&mut self.stream) {
                Ok(0) => return Ok(false),
                Ok(_) => self.heard = now,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                Err(e) => return Err(e),
            }
            let state = match self.connection.process_new_packets() {
                Ok(state) => state,
                Err(e) => {
                    // The alert has the reason for the peer.
                    let _ = self.write();
                    return Err(io::Error::other(self.tls_failed(&e)));
                }
            };
            let from = self.received.len();
            self.received.resize(from + state.plaintext_bytes_to_read(), 0);
            self.connection.reader().read_exact(&mut self.received[from..])?;
            self.take_frames(now)?;
            if state.peer_has_closed() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Why TLS failed, in words.
    fn tls_failed(&self, error: &rustls::Error) -> String {
        match error {
            rustls::Error::InvalidCertificate(_) => "its certificate is not that of the token \
                 file (expected the file that it wrote when it started)"
                .into(),
            rustls::Error::AlertReceived(_) => format!(
                "it refused the TLS connection, perhaps since it has another token file ({error})"
            ),
            _ if self.connection.is_handshaking() => {
                format!("it does not speak TLS as cachedyno does ({error})")
            }
            _ => format!("TLS failed: {error}"),
        }
    }

    fn take_frames<R: DeserializeOwned>(&mut self, now: Instant) -> io::Result<()>
    where
        D: FnMut(Arrived<R>),
    {
        let mut at = 0;
        while let Some(length) = self.received[at..].first_chunk::<LENGTH>() {
            let bytes = u32::from_be_bytes(*length) as usize;
            let most = self.shared.bytes_max.load(Ordering::Relaxed);
            if bytes > most {
                return Err(io::Error::other(format!(
                    "it does not speak cachedyno's protocol: a message of {bytes} bytes (expected \
                     at most {most})"
                )));
            }
            let from = at + LENGTH;
            let Some(text) = self.received.get(from..from + bytes) else { break };
            let frame: Frame<R> = serde_json::from_slice(text).map_err(|e| {
                io::Error::other(format!(
                    "a message cannot be read, perhaps since one side has --rig-on or --listen \
                     and the other --fleet or --join ({e})"
                ))
            })?;
            at = from + bytes;
            match frame {
                Frame::Ping(number) => {
                    let at_ns = self.zero.elapsed().as_nanos() as u64;
                    self.send(&Frame::<()>::Pong(number, at_ns))?;
                }
                Frame::Pong(number, worker_ns) => self.pong(number, worker_ns, now)?,
                Frame::Message(message) => (self.deliver)(Arrived::Message(message)),
            }
        }
        self.received.drain(..at);
        Ok(())
    }

    fn pong<R>(&mut self, number: u32, worker_ns: u64, now: Instant) -> io::Result<()>
    where
        D: FnMut(Arrived<R>),
    {
        let (expected, sent) = self.ping;
        if number == 0 || number != expected {
            return Ok(());
        }
        let best = Reading::new(sent, now, worker_ns).best(self.best);
        self.best = Some(best);
        if self.pings_left > 0 {
            return self.next_ping();
        }
        self.ping.0 = 0;
        (self.deliver)(Arrived::Clock(best));
        Ok(())
    }
}
