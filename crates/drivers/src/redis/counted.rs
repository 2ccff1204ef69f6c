//! A connection that counts its requests, for the layouts of application caches.
//!
//! Requests are built part by part in one buffer and sent with one write; their replies are then
//! read in order. A list of names uses a single buffer.

use std::time::Duration;

use model::{Endpoint, ErrorClass};
use stats::append_number;
use workloads::app_cache::Effort;
use workloads::store::StoreError;

use super::errors::{refused, unexpected};
use super::resp::{Reply, append, begin};
use super::wire::Wire;

/// Bytes of requests sent before waiting for their replies: the server processes them while the
/// next are built.
const STREAMED_BYTES: usize = 64 << 10;

/// A connection with requests in flight.
pub(super) struct CountingConnection {
    wire: Wire,
    batch: Vec<u8>,
    /// Requests in the batch.
    pending: u64,
    /// Requests sent by [`CountingConnection::stream`] whose replies are still unread.
    streamed: u64,
    effort: Effort,
}

/// Names of records or tags, concatenated.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Names {
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    pub(super) fn push(&mut self, name: &[u8]) {
        self.bytes.extend_from_slice(name);
        self.ends.push(self.bytes.len());
    }

    pub(super) fn get(&self, at: usize) -> &[u8] {
        let start = if at == 0 { 0 } else { self.ends[at - 1] };
        &self.bytes[start..self.ends[at]]
    }

    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = &[u8]> + ExactSizeIterator {
        (0..self.len()).map(|at| self.get(at))
    }
}

/// Most pages of a scan, each requested with a `COUNT` of at least 500: ten million members.
const PAGES_MAX: u64 = 20_000;
/// Most bytes of the names that a scan returns, plus 16 per name.
const SCANNED_BYTES_MAX: usize = 1 << 30;

/// A walk through the pages of one or more of the `SCAN` commands, one after another. The server
/// decides when a scan ends, so pages and bytes are limited for all scans together.
pub(super) struct Scan {
    cursor: Vec<u8>,
    pages_left: u64,
    bytes_left: usize,
}

impl Scan {
    pub(super) fn new() -> Self {
        Self { cursor: b"0".to_vec(), pages_left: PAGES_MAX, bytes_left: SCANNED_BYTES_MAX }
    }

    /// Starts on the next key. The limits are not reset, but each key adds the one page that it
    /// needs at least.
    pub(super) fn restart(&mut self) {
        self.cursor = b"0".to_vec();
        self.pages_left += 1;
    }

    /// Cursor of the next page.
    pub(super) fn cursor(&self) -> &[u8] {
        &self.cursor
    }

    /// True after the last page, and before the first.
    pub(super) fn is_over(&self) -> bool {
        self.cursor == b"0"
    }

    fn count(&mut self, command: &str, page: &Names) -> Result<(), StoreError> {
        let bytes = page.bytes.len() + 16 * page.len();
        let left = self.pages_left.checked_sub(1).zip(self.bytes_left.checked_sub(bytes));
        let Some(left) = left else {
            let message = format!(
                "`{command}` does not finish (expected at most {PAGES_MAX} pages and {} MiB \
                 of names)",
                SCANNED_BYTES_MAX >> 20
            );
            return Err(StoreError::fatal(ErrorClass::Protocol, message));
        };
        (self.pages_left, self.bytes_left) = left;
        Ok(())
    }
}

/// A script and its name on the server.
pub(super) struct Script {
    pub(super) text: &'static str,
    /// SHA-1 of the text in lower-case hexadecimal.
    pub(super) sha: &'static str,
}

impl CountingConnection {
    /// Connects to one server. A cluster is rejected: these layouts need their keys on the same
    /// server.
    pub(super) fn connect(endpoint: &Endpoint, timeout: Duration) -> Result<Self, StoreError> {
        if matches!(endpoint, Endpoint::Redis { options, .. } if options.is_cluster) {
            let message = "a cluster spreads a cache's records and tags over several servers \
                           (expected one server)";
            return Err(StoreError::fatal(ErrorClass::Other, message));
        }
        let wire = Wire::connect(endpoint, timeout)?;
        Ok(Self { wire, batch: Vec::new(), pending: 0, streamed: 0, effort: Effort::default() })
    }

    pub(super) fn effort(&self) -> Effort {
        self.effort
    }

    /// Starts a request of `parts` parts, including the command's name.
    pub(super) fn begin(&mut self, parts: usize) -> &mut Self {
        begin(&mut self.batch, parts);
        self.pending += 1;
        self
    }

    /// Appends the next part to the current request; its pieces are concatenated.
    pub(super) fn part(&mut self, pieces: &[&[u8]]) -> &mut Self {
        append(&mut self.batch, pieces);
        self
    }

    /// Adds a complete request whose parts each have one piece.
    pub(super) fn request(&mut self, parts: &[&[u8]]) -> &mut Self {
        self.begin(parts.len());
        for part in parts {
            self.part(&[part]);
        }
        self
    }

    /// Sends all pending requests at once and returns the number of replies due.
    pub(super) fn send(&mut self) -> Result<u64, StoreError> {
        self.wire.send_batch(&mut self.batch)?;
        self.effort.round_trips += 1;
        self.effort.commands += self.pending;
        Ok(std::mem::take(&mut self.pending))
    }

    /// Reads the next reply, which must not be an array.
    pub(super) fn reply(&mut self) -> Result<Reply<'_>, StoreError> {
        self.wire.reply()
    }

    /// Sends the pending request and returns its reply, which must not be an array.
    pub(super) fn ask(&mut self) -> Result<Reply<'_>, StoreError> {
        self.send()?;
        self.reply()
    }

    /// Sends the pending request and returns its integer reply.
    pub(super) fn ask_number(&mut self, command: &str) -> Result<i64, StoreError> {
        match self.ask()? {
            Reply::Integer(number) => Ok(number),
            other => Err(unexpected(command, &other)),
        }
    }

    /// Sends the pending request and appends the names in its reply to `names`.
    pub(super) fn ask_names(&mut self, command: &str, names: &mut Names) -> Result<(), StoreError> {
        self.send()?;
        self.names(command, names)
    }

    /// Number of elements of the next reply; each element is then read as its own reply.
    pub(super) fn elements(&mut self, command: &str) -> Result<usize, StoreError> {
        self.wire.elements(command)
    }

    /// Reads the next reply, a list of names, and appends it to `names`.
    pub(super) fn names(&mut self, command: &str, names: &mut Names) -> Result<(), StoreError> {
        for _ in 0..self.wire.elements(command)? {
            match self.wire.reply()? {
                Reply::Bulk(name) => names.push(name),
                other => return Err(StoreError { fatal: true, ..unexpected(command, &other) }),
            }
        }
        Ok(())
    }

    /// Sends the pending `SCAN` command, replaces `names` with the names of its page and advances
    /// `scan`. Errors: also a scan that exceeds its limits.
    pub(super) fn ask_page(
        &mut self,
        command: &str,
        scan: &mut Scan,
        names: &mut Names,
    ) -> Result<(), StoreError> {
        self.send()?;
        names.clear();
        if self.elements(command)? == 2
            && let Reply::Bulk(next) = self.reply()?
        {
            scan.cursor.clear();
            scan.cursor.extend_from_slice(next);
            self.names(command, names)?;
            return scan.count(command, names);
        }
        let message = format!("`{command}` did not return a cursor (expected one, then names)");
        Err(StoreError::fatal(ErrorClass::Protocol, message))
    }

    /// Sends all pending requests and reads their replies, none of which may be an array. Returns
    /// the first integer among them, or 0. Fails with the first error reply; the other requests
    /// have been executed.
    pub(super) fn all(&mut self) -> Result<i64, StoreError> {
        let due = self.send()?;
        self.read_all(due)
    }

    /// Reads `due` replies as [`CountingConnection::all`] does.
    pub(super) fn read_all(&mut self, due: u64) -> Result<i64, StoreError> {
        let (mut first, mut error) = (None, None);
        for _ in 0..due {
            match self.wire.reply()? {
                Reply::Error(words) if error.is_none() => error = Some(refused(words)),
                Reply::Integer(number) if first.is_none() => first = Some(number),
                _ => {}
            }
        }
        error.map_or(Ok(first.unwrap_or_default()), Err)
    }

    /// Sends pending requests once they fill a write, without waiting for replies; the next write
    /// waits for those. No other request is allowed until [`CountingConnection::settle`].
    pub(super) fn stream(&mut self) -> Result<(), StoreError> {
        if self.batch.len() < STREAMED_BYTES { Ok(()) } else { self.send_streamed() }
    }

    /// Sends the remaining requests of a stream and reads all replies; errors as
    /// [`CountingConnection::all`].
    pub(super) fn settle(&mut self) -> Result<(), StoreError> {
        self.send_streamed()?;
        let due = std::mem::take(&mut self.streamed);
        self.read_all(due).map(drop)
    }

    fn send_streamed(&mut self) -> Result<(), StoreError> {
        let due = std::mem::take(&mut self.streamed);
        self.read_all(due)?;
        if self.pending > 0 {
            self.streamed = self.send()?;
        }
        Ok(())
    }

    /// Runs a script by its SHA-1, or by its text if the server does not know it. `write` appends
    /// the `parts` that follow the script, starting with the number of its keys. Returns the reply,
    /// which must not be an array. `EVALSHA` counts as one command, whatever the script does.
    pub(super) fn run(
        &mut self,
        script: &Script,
        parts: usize,
        write: impl Fn(&mut Self),
    ) -> Result<Reply<'_>, StoreError> {
        self.begin(2 + parts).part(&[b"EVALSHA"]).part(&[script.sha.as_bytes()]);
        write(self);
        self.send()?;
        if !self.wire.next_is_error(b"NOSCRIPT")? {
            return self.reply();
        }
        self.reply()?;
        self.begin(2 + parts).part(&[b"EVAL"]).part(&[script.text.as_bytes()]);
        write(self);
        self.ask()
    }
}

impl Drop for CountingConnection {
    /// Waits for all replies: requests that were sent have been executed when the connection ends,
    /// so a later cleanup finds every key.
    fn drop(&mut self) {
        let due = std::mem::take(&mut self.streamed);
        let _ = self.read_all(due);
    }
}

/// Decimal digits of a number, as part of a request.
pub(super) fn digits(number: u64) -> Vec<u8> {
    let mut digits = Vec::new();
    append_number(&mut digits, number);
    digits
}
