//! Limits for whatever reads and judges a record.
//!
//! A record is foreign data. Its sizes and ranges are checked where it is read, and what is left
//! is bounded here, so that no combination of them takes the machine's memory or an hour: memory by
//! the record's size, time by CPU time, and a contradiction that the judgement stumbles over ends
//! in an error like any other.

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

/// Resident memory of the program beside [`SIZE_FACTOR`] times what is read; with what is taken
/// between two looks it stays below 100 MB and ten times that.
const MEMORY_BYTES: u64 = 85_000_000;
const SIZE_FACTOR: u64 = 9;
/// CPU time beside that for what is read.
const TIME: Duration = Duration::from_secs(4);
/// Nanoseconds of CPU time for each byte: half a second a megabyte.
const NS_PER_BYTE: u64 = 500;
/// Time between two looks.
const LOOK: Duration = Duration::from_millis(2);

/// Bytes of the regular files in a directory and, so many levels deep, below; no link is followed.
pub(crate) fn size(directory: &Path, levels: u32) -> u64 {
    let entries = fs::read_dir(directory).into_iter().flatten().filter_map(Result::ok);
    let sizes = entries.map(|entry| match entry.metadata() {
        Ok(known) if known.is_file() => known.len(),
        Ok(known) if known.is_dir() && levels > 1 => size(&entry.path(), levels - 1),
        _ => 0,
    });
    sizes.fold(0, u64::saturating_add)
}

/// Does what reads `bytes` bytes of records at a path, within the limits that follow from that.
///
/// Errors: those of `read`, and contradictions in the record. Too much memory or time ends the
/// program.
pub(crate) fn within<T>(
    path: &Path,
    bytes: u64,
    read: impl FnOnce() -> Result<T, CliError>,
) -> Result<T, CliError> {
    let (done, ended) = mpsc::channel::<()>();
    let name = path.display().to_string();
    let watch = thread::Builder::new().name("limits".into()).spawn(move || {
        let start = cpu_time();
        while ended.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
            if let Some(what) = too_much(bytes, start) {
                output::say(&format!(
                    "error: `{name}` cannot be read within {what}: its files hold more than its \
                     {bytes} bytes stand for (expected a record as cachedyno wrote it)"
                ));
                low_level::exit(USAGE.into());
            }
        }
    });
    let result = caught(path, read);
    drop(done);
    if let Ok(watch) = watch {
        // It ends as soon as it sees that this side has hung up.
        let _ = watch.join();
    }
    result
}

/// The limit that is passed, in words.
fn too_much(bytes: u64, start: Duration) -> Option<String> {
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

/// What the judgement stumbles over is a fault of the record: files that passed every check and
/// contradict each other all the same.
fn caught<T>(path: &Path, read: impl FnOnce() -> Result<T, CliError>) -> Result<T, CliError> {
    let place = Arc::new(Mutex::new(None));
    let told = place.clone();
    let usual = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if let Ok(mut told) = told.lock() {
            *told = info.location().map(|at| format!("{}:{}", at.file(), at.line()));
        }
    }));
    let result = panic::catch_unwind(AssertUnwindSafe(read));
    panic::set_hook(usual);
    result.unwrap_or_else(|_| {
        let place = place.lock().ok().and_then(|mut place| place.take()).unwrap_or_default();
        Err(CliError::usage(format!(
            "record `{}` cannot be judged: its files contradict each other (found at {place})",
            path.display()
        )))
    })
}
