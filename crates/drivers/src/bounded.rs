//! A socket whose answer to one request is bounded in time and in bytes.

use std::io::{self, Read, Write};
use std::time::{Duration, Instant};

/// Most bytes of an answer: a value of 64 MiB, the longest that the protocols' readers take, with
/// its head and what TLS adds.
const ANSWER_BYTES_MAX: usize = 66 << 20;

/// Such a socket.
pub(crate) struct Bounded<S> {
    pub(crate) socket: S,
    timeout: Duration,
    until: Instant,
    /// Bytes that may still come.
    left: usize,
    has_read: bool,
}

impl<S> Bounded<S> {
    pub(crate) fn new(socket: S, timeout: Duration) -> Self {
        let until = Instant::now() + timeout;
        Self { socket, timeout, until, left: ANSWER_BYTES_MAX, has_read: false }
    }

    pub(crate) fn begin(&mut self) {
        self.until = Instant::now() + self.timeout;
        self.left = ANSWER_BYTES_MAX;
        self.has_read = false;
    }

    fn in_time(&self) -> io::Result<()> {
        if Instant::now() < self.until { Ok(()) } else { Err(io::ErrorKind::TimedOut.into()) }
    }
}

impl<S: Read> Read for Bounded<S> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        // The first read is bounded by the socket itself, and may come late: what was answered
        // meanwhile is there.
        if self.has_read {
            self.in_time()?;
        }
        if self.left == 0 {
            let words =
                format!("the answer is longer than {} MiB (expected less)", ANSWER_BYTES_MAX >> 20);
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, words));
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
        self.in_time()?;
        self.socket.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.socket.flush()
    }
}
