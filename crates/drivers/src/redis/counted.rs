//! A connection that counts what is asked through it, for the layouts of application caches.
//!
//! Requests are written into one buffer as they are begun, part by part, and leave by one write;
//! replies are then read in their order. Lists of names lie in one buffer each.

use std::time::Duration;

use model::{Endpoint, ErrorClass};
use stats::append_number;
use workloads::app_cache::Effort;
use workloads::store::StoreError;

use super::errors::{refused, unexpected};
use super::resp::{Reply, append, begin};
use super::wire::Wire;

/// Bytes of requests that are sent before their replies are waited for: the server works on them
/// while the next are made.
const STREAMED_BYTES: usize = 64 << 10;

/// A connection with requests in flight.
pub(super) struct Counted {
    wire: Wire,
    batch: Vec<u8>,
    /// Requests in the batch.
    begun: u64,
    /// Requests that were sent and whose replies nobody has read yet, of [`Counted::stream`].
    streamed: u64,
    effort: Effort,
}

/// Names of records or tags, one behind the other.
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

/// Most pages of a scan, each asked for with a `COUNT` of at least 500: ten million members.
const PAGES_MAX: u64 = 20_000;
/// Most bytes of the names that a scan gives, 16 added for each.
const SCANNED_BYTES_MAX: usize = 1 << 30;

/// A walk through the pages of one of the `SCAN` commands, or of several, one after another. The
/// server decides when it ends, so pages and bytes are limited for all of them together.
pub(super) struct Scan {
    cursor: Vec<u8>,
    pages_left: u64,
    bytes_left: usize,
}

impl Scan {
    pub(super) fn new() -> Self {
        Self { cursor: b"0".to_vec(), pages_left: PAGES_MAX, bytes_left: SCANNED_BYTES_MAX }
    }

    /// Begins with the next key; what was used of the limits stays used, but for the one page that
    /// each key takes at least.
    pub(super) fn restart(&mut self) {
        self.cursor = b"0".to_vec();
        self.pages_left += 1;
    }

    /// Where the next page begins.
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
                "`{command}` does not end (expected at most {PAGES_MAX} pages and {} MiB of names)",
                SCANNED_BYTES_MAX >> 20
            );
            return Err(StoreError::fatal(ErrorClass::Protocol, message));
        };
        (self.pages_left, self.bytes_left) = left;
        Ok(())
    }
}

/// A script and the name by which servers know it.
pub(super) struct Script {
    pub(super) text: &'static str,
    /// SHA-1 of the text in lower-case hexadecimal.
    pub(super) sha: &'static str,
}

impl Counted {
    /// Connects to one server; a cluster keeps apart what these layouts use together.
    pub(super) fn connect(endpoint: &Endpoint, timeout: Duration) -> Result<Self, StoreError> {
        if matches!(endpoint, Endpoint::Redis { way, .. } if way.is_cluster) {
            let message = "a cluster keeps a cache's records and tags on several servers \
                           (expected one server)";
            return Err(StoreError::fatal(ErrorClass::Other, message));
        }
        let wire = Wire::connect(endpoint, timeout)?;
        Ok(Self { wire, batch: Vec::new(), begun: 0, streamed: 0, effort: Effort::default() })
    }

    pub(super) fn effort(&self) -> Effort {
        self.effort
    }

    /// Begins a request of as many parts, the command's name among them.
    pub(super) fn begin(&mut self, parts: usize) -> &mut Self {
        begin(&mut self.batch, parts);
        self.begun += 1;
        self
    }

    /// The next part of the request begun last, whose pieces are put together.
    pub(super) fn part(&mut self, pieces: &[&[u8]]) -> &mut Self {
        append(&mut self.batch, pieces);
        self
    }

    /// A whole request whose parts need no putting together.
    pub(super) fn request(&mut self, parts: &[&[u8]]) -> &mut Self {
        self.begin(parts.len());
        for part in parts {
            self.part(&[part]);
        }
        self
    }

    /// Sends what was begun, all at once; how many replies are due.
    pub(super) fn send(&mut self) -> Result<u64, StoreError> {
        self.wire.send_batch(&mut self.batch)?;
        self.effort.round_trips += 1;
        self.effort.commands += self.begun;
        Ok(std::mem::take(&mut self.begun))
    }

    /// The next reply, which is no array.
    pub(super) fn reply(&mut self) -> Result<Reply<'_>, StoreError> {
        self.wire.reply()
    }

    /// Sends what was begun and gives the reply to it, which is no array.
    pub(super) fn ask(&mut self) -> Result<Reply<'_>, StoreError> {
        self.send()?;
        self.reply()
    }

    /// Sends what was begun and gives the number that it is answered by.
    pub(super) fn ask_number(&mut self, command: &str) -> Result<i64, StoreError> {
        match self.ask()? {
            Reply::Integer(number) => Ok(number),
            other => Err(unexpected(command, &other)),
        }
    }

    /// Sends what was begun and puts the names that it is answered by behind those of `names`.
    pub(super) fn ask_names(&mut self, command: &str, names: &mut Names) -> Result<(), StoreError> {
        self.send()?;
        self.names(command, names)
    }

    /// How many elements the next reply has, each a reply of its own.
    pub(super) fn elements(&mut self, command: &str) -> Result<usize, StoreError> {
        self.wire.elements(command)
    }

    /// The next reply, a list of names.
    pub(super) fn names(&mut self, command: &str, names: &mut Names) -> Result<(), StoreError> {
        for _ in 0..self.wire.elements(command)? {
            match self.wire.reply()? {
                Reply::Bulk(name) => names.push(name),
                other => return Err(StoreError { fatal: true, ..unexpected(command, &other) }),
            }
        }
        Ok(())
    }

    /// Sends what was begun, one of the `SCAN` commands: the names of its page in place of those of
    /// `names`. `scan` is moved on. Errors: also a scan that exceeds its limits.
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
        let message = format!("`{command}` was answered by no cursor (expected one, then names)");
        Err(StoreError::fatal(ErrorClass::Protocol, message))
    }

    /// Sends what was begun, each answered by no array, and reads all replies: the first number
    /// among them, 0 for none. The first error among them is the error; the rest was done.
    pub(super) fn all(&mut self) -> Result<i64, StoreError> {
        let due = self.send()?;
        self.read_all(due)
    }

    /// Reads as many replies, as [`Counted::all`] does.
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

    /// Sends what was begun once it is enough for a write, and goes on without its replies, which
    /// the next write waits for. Until [`Counted::settle`] nothing else may be asked.
    pub(super) fn stream(&mut self) -> Result<(), StoreError> {
        if self.batch.len() < STREAMED_BYTES { Ok(()) } else { self.send_on() }
    }

    /// Sends what is left of a stream and reads all replies; errors as [`Counted::all`].
    pub(super) fn settle(&mut self) -> Result<(), StoreError> {
        self.send_on()?;
        let due = std::mem::take(&mut self.streamed);
        self.read_all(due).map(drop)
    }

    fn send_on(&mut self) -> Result<(), StoreError> {
        let due = std::mem::take(&mut self.streamed);
        self.read_all(due)?;
        if self.begun > 0 {
            self.streamed = self.send()?;
        }
        Ok(())
    }

    /// Runs a script by its name, and by its text where the server does not know it: `write` adds
    /// the `parts` that follow the script, the number of its keys first. Gives the reply, which is
    /// no array. `EVALSHA` counts as one command, whatever the script does.
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

impl Drop for Counted {
    /// What was sent is done when the connection ends: who cleans up after it finds everything.
    fn drop(&mut self) {
        let due = std::mem::take(&mut self.streamed);
        let _ = self.read_all(due);
    }
}

/// Digits of a number, for a part of a request.
pub(super) fn digits(number: u64) -> Vec<u8> {
    let mut digits = Vec::new();
    append_number(&mut digits, number);
    digits
}
