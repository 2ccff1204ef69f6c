//! A socket that limits each reply in time and in bytes.

use std::io::{self, Read, Write};
use std::time::{Duration, Instant};

/// Largest reply, bytes: a 64 MiB value, the longest that the protocol parsers accept, plus its
/// header and TLS overhead.
const REPLY_BYTES_MAX: usize = 66 << 20;

/// A socket with limits per request.
pub(crate) struct Bounded<S> {
    pub(crate) socket: S,
    timeout: Duration,
    deadline: Instant,
    /// Bytes that the current reply can still have.
    left: usize,
    has_read: bool,
}

impl<S> Bounded<S> {
    pub(crate) fn new(socket: S, timeout: Duration) -> Self {
        let deadline = Instant::now() + timeout;
        Self { socket, timeout, deadline, left: REPLY_BYTES_MAX, has_read: false }
    }

    pub(crate) fn begin(&mut self) {
        self.deadline = Instant::now() + self.timeout;
        self.left = REPLY_BYTES_MAX;
        self.has_read = false;
    }

    fn check_deadline(&self) -> io::Result<()> {
        if Instant::now() < self.deadline { Ok(()) } else { Err(io::ErrorKind::TimedOut.into()) }
    }
}

impl<S: Read> Read for Bounded<S> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        // The first read is limited by the socket's own timeout. It can return after the deadline:
        // the reply arrived during the wait.
        if self.has_read {
            self.check_deadline()?;
        }
        if self.left == 0 {
            let message =
                format!("the reply is longer than {} MiB (expected less)", REPLY_BYTES_MAX >> 20);
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
        }
        self.has_read = true;
        let most = into.len().min(self.left);
        let read = self.socket.read(&mut into[..most])?;
        self.left -= read;
        Ok(read)
    }
}

impl<S: Write> Write for Bounded<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.check_deadline()?;
        self.socket.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.socket.flush()
    }
}
