//! Resource limits for reading and judging a record.
//!
//! A record is untrusted data. Its sizes and ranges are checked when it is read. In addition,
//! memory and CPU time are limited by the record's size, so that no combination of valid values
//! exhausts the machine, and a panic over contradictory data becomes a normal error.

use nix::time::{ClockId, clock_gettime};
use signal_hook::low_level;
use std::fs;
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use crate::exit::{CliError, USAGE};
use crate::output;

/// Resident memory limit in addition to [`SIZE_FACTOR`] times the data. Including growth between
/// two checks, the program stays below 100 MB plus ten times the data.
const MEMORY_BYTES: u64 = 85_000_000;
const SIZE_FACTOR: u64 = 9;
/// CPU time limit in addition to that for the data.
const TIME: Duration = Duration::from_secs(4);
/// CPU time limit per byte of data, nanoseconds: half a second per megabyte.
const NS_PER_BYTE: u64 = 500;
/// Interval between two checks.
const CHECK_EVERY: Duration = Duration::from_millis(2);

/// Total size of the regular files in a directory, bytes, down to `levels` levels below it; links
/// are not followed.
pub(crate) fn size(directory: &Path, levels: u32) -> u64 {
    let entries = fs::read_dir(directory).into_iter().flatten().filter_map(Result::ok);
    let sizes = entries.map(|entry| match entry.metadata() {
        Ok(known) if known.is_file() => known.len(),
        Ok(known) if known.is_dir() && levels > 1 => size(&entry.path(), levels - 1),
        _ => 0,
    });
    sizes.fold(0, u64::saturating_add)
}

/// Runs `read`, which processes `bytes` bytes of records at a path, within the limits for that
/// size.
///
/// Errors: those of `read`, and contradictions in the record. Exceeding a limit exits the program.
pub(crate) fn within<T>(
    path: &Path,
    bytes: u64,
    read: impl FnOnce() -> Result<T, CliError>,
) -> Result<T, CliError> {
    let (done, ended) = mpsc::channel::<()>();
    let name = path.display().to_string();
    let watch = thread::Builder::new().name("limits".into()).spawn(move || {
        let start = cpu_time();
        while ended.recv_timeout(CHECK_EVERY) == Err(RecvTimeoutError::Timeout) {
            if let Some(what) = exceeded_limit(bytes, start) {
                output::say(&format!(
                    "error: `{name}` cannot be read within {what}: its files need far more than \
                     {bytes} bytes of data should (expected a record written by cachedyno)"
                ));
                low_level::exit(USAGE.into());
            }
        }
    });
    let result = catch_panic(path, read);
    drop(done);
    if let Ok(watch) = watch {
        // The thread ends when the channel is closed.
        let _ = watch.join();
    }
    result
}

/// The exceeded limit as text; `None` while all limits are kept.
fn exceeded_limit(bytes: u64, start: Duration) -> Option<String> {
    let memory_max = MEMORY_BYTES.saturating_add(bytes.saturating_mul(SIZE_FACTOR));
    if resident_bytes().is_some_and(|resident| resident > memory_max) {
        return Some(format!("{} MB of memory", memory_max / 1_000_000));
    }
    let time_max = TIME + Duration::from_nanos(bytes.saturating_mul(NS_PER_BYTE));
    (cpu_time().saturating_sub(start) > time_max)
        .then(|| format!("{} s of CPU time", time_max.as_secs()))
}

fn cpu_time() -> Duration {
    clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).map_or(Duration::ZERO, Duration::from)
}

/// Source: proc(5), `/proc/self/statm`, in pages.
fn resident_bytes() -> Option<u64> {
    let pages: u64 =
        fs::read_to_string("/proc/self/statm").ok()?.split(' ').nth(1)?.parse().ok()?;
    let page = nix::unistd::sysconf(nix::unistd::SysconfVar::PAGE_SIZE).ok()??;
    Some(pages.saturating_mul(page.unsigned_abs()))
}

/// Turns a panic while judging into an error. Its cause is files that are valid but contradict each
/// other.
fn catch_panic<T>(path: &Path, read: impl FnOnce() -> Result<T, CliError>) -> Result<T, CliError> {
    let place = Arc::new(Mutex::new(None));
    let location = place.clone();
    let previous = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if let Ok(mut location) = location.lock() {
            *location = info.location().map(|at| format!("{}:{}", at.file(), at.line()));
        }
    }));
    let result = panic::catch_unwind(AssertUnwindSafe(read));
    panic::set_hook(previous);
    result.unwrap_or_else(|_| {
        let place = place.lock().ok().and_then(|mut place| place.take()).unwrap_or_default();
        Err(CliError::usage(format!(
            "record `{}` cannot be judged: its files contradict each other (found at {place})",
            path.display()
        )))
    })
}
