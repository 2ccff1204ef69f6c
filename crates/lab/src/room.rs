//! Room on servers that were there before.
//!
//! Memory and eviction are the server's, not a database's: what a run writes into an empty database
//! can evict keys of others, or make their writes fail. So a run fills such a server up to
//! [`USABLE_TENTHS`] of its memory at most, which is seen to three times: before anything is
//! written ([`fits`]), between the steps of a fill ([`left_bytes`]), and all the while by a thread
//! that asks ([`watched`]), since estimates can be wrong and others write as well.

use drivers::{Admin, Room};
use model::{Endpoint, ErrorClass, Failure};
use rig::pin_current_thread;
use stats::format_bytes;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::demand::Demand;
use crate::ready::Ready;

/// Tenths of a server's memory that may be in use.
const USABLE_TENTHS: u64 = 9;
/// Time after which a connection that asks is given up, and how soon another one is made.
const TIMEOUT: Duration = Duration::from_secs(2);
const RETRY: Duration = Duration::from_millis(100);
/// How often a server is asked: the less memory is left, the more often, so that a load that fills
/// memory at [`FILLED_PER_S`] is seen before half of it is used up.
const ASKED_WITHIN: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(100));
const FILLED_PER_S: u64 = 200 << 20;
/// How soon a trial learns that the user stopped it.
const STOPPED_WITHIN: Duration = Duration::from_millis(10);

/// The memory that counts: the server's own limit, or where it has none that of its machine; and
/// what that is. `None` where the server does not tell.
fn memory(room: &Room) -> Option<(u64, &'static str)> {
    match (room.limit_bytes?, room.system_bytes) {
        (0, system) => Some((system?, "the memory of its machine (it has no maxmemory)")),
        (limit, Some(system)) if system < limit => Some((system, "the memory of its machine")),
        (limit, _) => Some((limit, "its maxmemory")),
    }
}

/// Bytes that may be in use; `None` where the server does not tell.
fn usable_bytes(room: &Room) -> Option<u64> {
    memory(room).map(|(bytes, _)| bytes / 10 * USABLE_TENTHS)
}

/// Refuses what does not fit on every server, with the sum and the cure.
pub(crate) fn fits(endpoint: &Endpoint, rooms: &[Room], demand: &Demand) -> Result<(), Failure> {
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
            "{endpoint} has no room for this run: {demand}, in all {} on {}, where {} are in use{}, \
             and a run may fill it to {}, 90 % of {memory} of {}{} ({}, or a higher maxmemory, or \
             --i-own-this-server if no data of others are on that server)",
            format_bytes(demand_bytes),
            room.server,
            format_bytes(used_bytes),
            room.keys.map_or_else(String::new, |keys| format!(" by {keys} keys of all databases")),
            format_bytes(usable_bytes),
            format_bytes(memory_bytes),
            beyond(room),
            demand.cure,
        );
        return Err(Failure { class: ErrorClass::NotOurs, message });
    }
    Ok(())
}

/// What becomes of others where memory is used up.
fn beyond(room: &Room) -> String {
    match room.policy.as_deref() {
        None => String::new(),
        Some("noeviction") => {
            "; beyond its limit all writes fail, those of others too (policy `noeviction`)".into()
        }
        Some(policy) => {
            format!("; beyond its limit it evicts keys, whoever wrote them (policy `{policy}`)")
        }
    }
}

fn unreadable(endpoint: &Endpoint, room: &Room) -> Failure {
    let message = format!(
        "{endpoint} does not tell how much memory is left: `INFO memory` of {} lacks used_memory, \
         or maxmemory and total_system_memory (allow INFO to this account, or use \
         --i-own-this-server if no data of others are on that server)",
        room.server
    );
    Failure { class: ErrorClass::NotOurs, message }
}

/// Bytes that may still be written, over all servers, by the fullest of them. Errors: nothing may
/// be written any more.
fn left_bytes(endpoint: &Endpoint, before: &[Room], rooms: &[Room]) -> Result<u64, Failure> {
    let mut least = u64::MAX;
    for room in rooms {
        let (Some(usable_bytes), Some(used_bytes)) = (usable_bytes(room), room.used_bytes) else {
            return Err(unreadable(endpoint, room));
        };
        let earlier = before.iter().find(|earlier| earlier.server == room.server);
        let evicted = earlier.and_then(|earlier| Some((earlier.evicted?, room.evicted?)));
        let server = &room.server;
        let stopped = |why: String| Failure {
            class: ErrorClass::NotOurs,
            message: format!(
                "stopped, since {why} (use fewer or smaller keys, a higher maxmemory, or \
                 --i-own-this-server if no data of others are on that server)"
            ),
        };
        if let Some((earlier, now)) = evicted
            && now > earlier
        {
            let keys = now - earlier;
            return Err(stopped(format!("{server} evicted {keys} keys, and any may be others'")));
        }
        if used_bytes > usable_bytes {
            let (used, usable) = (format_bytes(used_bytes), format_bytes(usable_bytes));
            let beyond = beyond(room);
            return Err(stopped(format!(
                "{used} of {server} are in use, which is more than the 90 % of its memory, \
                 {usable}, that a run may fill{beyond}"
            )));
        }
        least = least.min(usable_bytes - used_bytes);
    }
    Ok(least.saturating_mul(rooms.len() as u64))
}

/// A server that was there before, as it was before the run wrote anything.
pub(crate) struct Existing {
    endpoint: Endpoint,
    before: Vec<Room>,
    /// CPUs of the generator, for the thread that asks.
    cpus: Vec<usize>,
    admin: Option<Box<dyn Admin>>,
}

impl Existing {
    /// The one that was made ready; `None` where there is none, or nobody but us is on it.
    pub(crate) fn of(ready: &Ready, cpus: &[usize]) -> Option<Self> {
        let store = ready.stores.iter().find(|store| !store.rooms.is_empty())?;
        let (endpoint, before) = (store.endpoint.clone(), store.rooms.clone());
        Some(Self { endpoint, before, cpus: cpus.to_vec(), admin: None })
    }

    /// As [`left_bytes`], on a connection of its own; `None` where the server cannot be asked now.
    pub(crate) fn left_bytes(&mut self) -> Result<Option<u64>, Failure> {
        if self.admin.is_none() {
            self.admin = drivers::admin(&self.endpoint, TIMEOUT).ok();
        }
        // What a connection answers after a fault could be the answer to an earlier question.
        match self.admin.as_mut().map(|admin| admin.room()) {
            Some(Ok(rooms)) => left_bytes(&self.endpoint, &self.before, &rooms).map(Some),
            Some(Err(_)) => {
                self.admin = None;
                Ok(None)
            }
            None => Ok(None),
        }
    }

    /// Asks until `done`, and sets `ended` when the user stops the trial, or for what it returns.
    fn watch(
        &mut self,
        stop: &AtomicBool,
        ended: &AtomicBool,
        done: &AtomicBool,
    ) -> Option<Failure> {
        // Where it is refused, it runs anywhere.
        let _ = pin_current_thread(&self.cpus);
        let mut due = Instant::now();
        loop {
            // What happened since the last time counts as well.
            let is_done = done.load(Ordering::Acquire);
            if stop.load(Ordering::Relaxed) {
                ended.store(true, Ordering::Relaxed);
            }
            if is_done || Instant::now() >= due {
                let pause = match self.left_bytes() {
                    Ok(left_bytes) => left_bytes.map_or(RETRY, pause),
                    Err(failure) => {
                        ended.store(true, Ordering::Relaxed);
                        return Some(failure);
                    }
                };
                due = Instant::now() + pause;
            }
            if is_done {
                return None;
            }
            let now = Instant::now();
            thread::park_timeout(due.saturating_duration_since(now).min(STOPPED_WITHIN));
        }
    }
}

/// Time until a server with so much memory left is asked again.
fn pause(left_bytes: u64) -> Duration {
    let (least, most) = ASKED_WITHIN;
    Duration::from_secs_f64(left_bytes as f64 / FILLED_PER_S as f64 / 2.0).clamp(least, most)
}

/// Does a trial's work, which ends early when the flag that it is given is set: when the user sets
/// `stop`, and when the memory of an existing server is used up, of which the failure tells.
pub(crate) fn watched<T>(
    existing: Option<Existing>,
    stop: &AtomicBool,
    work: impl FnOnce(&AtomicBool) -> T,
) -> (T, Option<Failure>) {
    let Some(mut existing) = existing else { return (work(stop), None) };
    let (ended, done) = (AtomicBool::new(false), AtomicBool::new(false));
    thread::scope(|scope| {
        let watching = scope.spawn(|| existing.watch(stop, &ended, &done));
        let worked = work(&ended);
        done.store(true, Ordering::Release);
        watching.thread().unpark();
        (worked, watching.join().ok().flatten())
    })
}

#[cfg(test)]
#[path = "room_tests.rs"]
mod tests;
