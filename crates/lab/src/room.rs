//! Watches free memory on existing servers.
//!
//! Memory and eviction belong to the server, not to a database: writing to an empty database can
//! evict keys of others or make their writes fail. So a run uses at most [`USABLE_TENTHS`] of such
//! a server's memory. This is checked before the first write ([`fits`]), between the steps of a
//! fill ([`left_bytes`]), and throughout the load by a thread ([`watched`]), because estimates can
//! be wrong and other clients write too.

use drivers::{Admin, MemoryStats};
use model::{Endpoint, ErrorClass, Failure};
use rig::pin_current_thread;
use stats::format_bytes;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::deadline;
use crate::demand::Demand;
use crate::machine::{Machine, USABLE_TENTHS};
use crate::ready::Ready;

/// Timeout of the monitoring connection, and delay before it is reopened.
const TIMEOUT: Duration = Duration::from_secs(1);
const RETRY: Duration = Duration::from_millis(100);
/// Consecutive missing answers about memory before the server counts as not reporting it.
const SILENT_MAX: u32 = 5;
/// Shortest and longest polling interval. The less memory is left the shorter it is, so that a load
/// that fills memory at [`FILLED_PER_S`] is noticed before half of it is used.
const ASKED_WITHIN: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(100));
const FILLED_PER_S: u64 = 200 << 20;

/// The effective memory limit, bytes, and its description: the server's own limit, or else the
/// memory of its machine. `None` if the server does not report it.
fn memory(room: &MemoryStats) -> Option<(u64, &'static str)> {
    match (room.limit_bytes?, room.system_bytes) {
        (limit, _) if room.by_size_class => Some((limit, "its memory limit (-m)")),
        (0, system) => Some((system?, "the memory of its machine (it has no maxmemory)")),
        (limit, Some(system)) if system < limit => Some((system, "the memory of its machine")),
        (limit, _) => Some((limit, "its maxmemory")),
    }
}

/// True if no database of any server has keys.
pub(crate) fn is_empty(rooms: &[MemoryStats]) -> bool {
    rooms.iter().all(|room| room.keys == Some(0))
}

/// True if the limit of each server is below the memory of its machine, so that a server that is
/// full harms nothing else there.
pub(crate) fn have_own_limit(rooms: &[MemoryStats]) -> bool {
    rooms.iter().all(|room| match (room.limit_bytes, room.system_bytes) {
        (Some(limit), _) if room.by_size_class => limit > 0,
        (Some(limit), system) => limit > 0 && system.is_some_and(|system| limit < system),
        (None, _) => false,
    })
}

/// Refuses a demand that does not fit on every server; the error gives the estimate and a remedy.
pub(crate) fn fits(
    endpoint: &Endpoint,
    rooms: &[MemoryStats],
    demand: Demand,
) -> Result<(), Failure> {
    let is_empty = is_empty(rooms);
    let demand = if is_empty { demand } else { demand.with_load() };
    let anyway = match (is_empty, have_own_limit(rooms)) {
        (true, true) => "--allow-fill to fill it anyway, which evicts or refuses keys of this run",
        (true, false) => {
            "--allow-fill once it has a maxmemory below that: until then its machine would swap or \
             kill it"
        }
        (false, _) => "--i-own-this-server if nobody else's data is on that server",
    };
    let demand_bytes = demand.bytes_on_one_of(rooms.len());
    for room in rooms {
        let (Some((memory_bytes, memory)), Some(used_bytes)) = (memory(room), room.used_bytes)
        else {
            return Err(unreadable(endpoint, room));
        };
        let usable_bytes = memory_bytes / 10 * USABLE_TENTHS;
        if used_bytes.saturating_add(demand_bytes) <= usable_bytes {
            continue;
        }
        let message = format!(
            "{endpoint} has no room for this run: {}{}, this run may add {} ({demand}), and at \
             most {} may be in use, 90 % of {memory} of {}{} ({}, raise {memory}, or use {anyway})",
            using(room, used_bytes),
            room.keys.map_or_else(String::new, |keys| format!(" by {keys} keys in all databases")),
            format_bytes(demand_bytes),
            format_bytes(usable_bytes),
            format_bytes(memory_bytes),
            beyond(room),
            demand.cure,
        );
        return Err(Failure { class: ErrorClass::NotOurs, message });
    }
    Ok(())
}

fn using(room: &MemoryStats, used_bytes: u64) -> String {
    format!("{} of {} are in use", format_bytes(used_bytes), room.server)
}

/// What happens to other keys when memory is full.
fn beyond(room: &MemoryStats) -> String {
    match (room.policy.as_deref(), room.limit_bytes) {
        (None, _) | (_, Some(0)) => String::new(),
        (Some("noeviction"), _) => {
            "; at its limit, policy `noeviction` makes all writes fail, including others'".into()
        }
        (Some(policy), _) => {
            format!("; at its limit, policy `{policy}` evicts keys of every database")
        }
    }
}

fn unreadable(endpoint: &Endpoint, room: &MemoryStats) -> Failure {
    let server = &room.server;
    let lacks = if room.by_size_class {
        format!("`stats` of {server} lacks bytes or a limit_maxbytes (start it with -m, ")
    } else {
        format!(
            "`INFO` of {server} lacks used_memory, maxmemory, or both maxmemory and \
             total_system_memory (allow INFO for this account, "
        )
    };
    let message = format!(
        "{endpoint} does not report how much memory is left: {lacks}or use --i-own-this-server if \
         nobody else has data on that server)"
    );
    Failure { class: ErrorClass::NotOurs, message }
}

/// Bytes that may still be written, limited by the fullest server; `None` if one does not report
/// its memory. Errors: no bytes are left.
fn left_bytes(before: &[MemoryStats], rooms: &[MemoryStats]) -> Result<Option<u64>, Failure> {
    none_evicted(before, rooms)?;
    let mut least = u64::MAX;
    for room in rooms {
        let (Some((memory_bytes, memory)), Some(used_bytes)) = (memory(room), room.used_bytes)
        else {
            return Ok(None);
        };
        let usable_bytes = memory_bytes / 10 * USABLE_TENTHS;
        if used_bytes > usable_bytes {
            return Err(stopped(&format!(
                "{}, and at most {} may be in use, 90 % of {memory} of {}{}",
                using(room, used_bytes),
                format_bytes(usable_bytes),
                format_bytes(memory_bytes),
                beyond(room)
            )));
        }
        least = least.min(usable_bytes - used_bytes);
    }
    Ok(Some(least.saturating_mul(rooms.len() as u64)))
}

/// Errors: a server has evicted keys since the run started.
fn none_evicted(before: &[MemoryStats], rooms: &[MemoryStats]) -> Result<(), Failure> {
    for room in rooms {
        let earlier = before.iter().find(|earlier| earlier.server == room.server);
        let evicted = earlier.and_then(|earlier| room.evicted?.checked_sub(earlier.evicted?));
        if let Some(keys @ 1..) = evicted {
            let server = &room.server;
            return Err(stopped(&format!(
                "{server} has evicted {keys} keys since the run began, and any of them may be \
                 others'"
            )));
        }
    }
    Ok(())
}

fn stopped(why: &str) -> Failure {
    let message = format!(
        "stopped to protect other users' data: {why} (use fewer keys or smaller values, raise \
         maxmemory, or use --i-own-this-server if nobody else's data is on that server)"
    );
    Failure { class: ErrorClass::NotOurs, message }
}

/// An existing server and its state before the run wrote anything.
struct Existing {
    endpoint: Endpoint,
    before: Vec<MemoryStats>,
    admin: Option<Box<dyn Admin>>,
    /// Consecutive answers without memory figures.
    silent: u32,
    /// The last error of the monitoring connection.
    unanswered: Option<Failure>,
}

impl Existing {
    /// Its memory status now, read on a separate connection; `None` if it cannot be read.
    fn rooms(&mut self) -> Option<Vec<MemoryStats>> {
        let admin = self.admin.take().map_or_else(|| drivers::admin(&self.endpoint, TIMEOUT), Ok);
        let answered = admin.and_then(|mut admin| Ok((admin.memory_stats()?, admin)));
        // Drop a failed connection: its next reply could belong to an earlier request.
        match answered {
            Ok((rooms, admin)) => {
                self.admin = Some(admin);
                Some(rooms)
            }
            Err(failure) => {
                self.unanswered = Some(failure);
                None
            }
        }
    }

    /// As [`left_bytes`]; also `None` if the server cannot be reached now.
    fn ask(&mut self) -> Result<Option<u64>, Failure> {
        let Some(rooms) = self.rooms() else { return Ok(None) };
        let left_bytes = left_bytes(&self.before, &rooms)?;
        self.silent = if left_bytes.is_some() { 0 } else { self.silent + 1 };
        match rooms.first() {
            Some(room) if self.silent >= SILENT_MAX => Err(unreadable(&self.endpoint, room)),
            _ => Ok(left_bytes),
        }
    }

    /// Bytes that may still be written. Errors: no bytes are left, or the server does not answer.
    fn left_bytes(&mut self) -> Result<u64, Failure> {
        for _ in 0..SILENT_MAX {
            if let Some(left_bytes) = self.ask()? {
                return Ok(left_bytes);
            }
            thread::sleep(RETRY);
        }
        let asked = format!("cannot ask {} how much memory is left", self.endpoint);
        Err(match self.unanswered.take() {
            Some(Failure { class, message }) => {
                Failure { class, message: format!("{asked}: {message}") }
            }
            None => Failure { class: ErrorClass::Timeout, message: asked },
        })
    }
}

/// Existing servers and the local machine, as far as a trial writes to them.
pub(crate) struct Watched {
    servers: Vec<Existing>,
    machines: Vec<Machine>,
    /// CPUs of the generator, for the monitoring thread.
    cpus: Vec<usize>,
}

impl Watched {
    /// Of prepared stores; `None` if there is nothing to watch.
    pub(crate) fn of(ready: &Ready, cpus: &[usize]) -> Option<Self> {
        let existing = ready.stores.iter().filter(|store| !store.rooms.is_empty());
        let servers: Vec<Existing> = existing
            .map(|store| Existing {
                endpoint: store.endpoint.clone(),
                before: store.rooms.clone(),
                admin: None,
                silent: 0,
                unanswered: None,
            })
            .collect();
        let machines: Vec<Machine> =
            ready.stores.iter().filter_map(|store| store.machine.clone()).collect();
        let is_any = !servers.is_empty() || !machines.is_empty();
        is_any.then(|| Self { servers, machines, cpus: cpus.to_vec() })
    }

    /// Bytes that may still be written. Errors: no bytes are left, or a server does not answer.
    pub(crate) fn left_bytes(&mut self) -> Result<u64, Failure> {
        let mut least = u64::MAX;
        for server in &mut self.servers {
            least = least.min(server.left_bytes()?);
        }
        for machine in &self.machines {
            least = least.min(machine.left_bytes()?);
        }
        Ok(least)
    }

    /// Polls all, and returns the time until the next poll. Errors as [`Watched::left_bytes`], but
    /// a late answer is not an error.
    fn ask(&mut self) -> Result<Duration, Failure> {
        let mut soonest = ASKED_WITHIN.1;
        for server in &mut self.servers {
            soonest = soonest.min(server.ask()?.map_or(RETRY, pause));
        }
        for machine in &self.machines {
            soonest = soonest.min(pause(machine.left_bytes()?));
        }
        Ok(soonest)
    }

    /// Errors: a server has evicted keys since the run started.
    fn none_evicted(&mut self) -> Result<(), Failure> {
        for server in &mut self.servers {
            if let Some(rooms) = server.rooms() {
                none_evicted(&server.before, &rooms)?;
            }
        }
        Ok(())
    }

    /// Polls until `done`. On a failure, sets `ended` and returns it.
    fn watch(&mut self, ended: &AtomicBool, done: &AtomicBool) -> Option<Failure> {
        // If pinning is refused, the thread runs on any CPU.
        let _ = pin_current_thread(&self.cpus);
        loop {
            // One more poll after the load, for what happened since the last one.
            let is_last = done.load(Ordering::Acquire);
            let pause = match self.ask() {
                Ok(pause) => pause,
                Err(failure) => {
                    ended.store(true, Ordering::Relaxed);
                    return Some(failure);
                }
            };
            if is_last {
                return None;
            }
            thread::park_timeout(pause);
        }
    }
}

/// Polling interval for a server with `left_bytes` of memory left.
fn pause(left_bytes: u64) -> Duration {
    let (least, most) = ASKED_WITHIN;
    Duration::from_secs_f64(left_bytes as f64 / FILLED_PER_S as f64 / 2.0).clamp(least, most)
}

/// Runs `work` while watching memory. `work` must end soon after its flag is set: the user set
/// `stop`, or there is no room any more, which is returned as the failure.
pub(crate) fn watched<T>(
    watched: Option<Watched>,
    stop: &AtomicBool,
    work: impl FnOnce(&AtomicBool) -> T,
) -> (T, Option<Failure>) {
    let Some(mut watched) = watched else { return (work(stop), None) };
    let done = AtomicBool::new(false);
    let watch = |ended: &AtomicBool| {
        thread::scope(|scope| {
            let watching = scope.spawn(|| watched.watch(ended, &done));
            let worked = work(ended);
            done.store(true, Ordering::Release);
            watching.thread().unpark();
            (worked, watching.join().ok().flatten())
        })
    };
    // A separate thread passes `stop` on, because a hanging server blocks the polling thread.
    let ((worked, failure), _) = deadline::until(None, stop, watch);
    // Requests in flight at the stop may still have caused evictions.
    (worked, failure.map(|failure| watched.none_evicted().err().unwrap_or(failure)))
}

#[cfg(test)]
#[path = "room_tests.rs"]
pub(crate) mod tests;
