//! Reads back the last writes of a load, to check that the store kept what it acknowledged.

use load::{Finished, READ_BACK_MAX};
use model::{ReadBack, StoredVersion, Workload};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use workloads::app_cache::magento;
use workloads::kv::Written;

use crate::demand::unfollowed;
use crate::kv::Opened;
use crate::ready::Ready;

/// TTLs count whole seconds, so a key may expire this much earlier.
const COUNTED: Duration = Duration::from_secs(1);

/// Reads the keys whose last writes are known, after a load that was not cut short.
pub(crate) fn of_keys(
    ready: &mut Ready,
    store: &Opened<'_>,
    finished: &mut Finished,
    stop: &AtomicBool,
) {
    if finished.failure.is_some() || finished.interrupted {
        return;
    }
    let unread = unfollowed(store.kv());
    let unread = unread.map(|why| ReadBack { unread: Some(why), ..ReadBack::default() });
    let written = finished.written.take();
    let faults = finished.events.iter().filter(|(_, kind, _)| kind.is_fault());
    let fault = faults.map(|(at, ..)| *at).min();
    finished.read_back = unread.or_else(|| Some(read(ready, store, (&written?, fault), stop)));
}

/// Reads back what was written, on the administrative connection. `fault` is the time at which the
/// plan interrupted service.
fn read(
    ready: &mut Ready,
    store: &Opened<'_>,
    (written, fault): (&Written, Option<Instant>),
    stop: &AtomicBool,
) -> ReadBack {
    let mut read_back = ReadBack::default();
    if let Err(e) = ready.reconnect() {
        return ReadBack { unread: Some(e.to_string()), ..read_back };
    }
    let until = Instant::now() + READ_BACK_MAX;
    let lifetime = Duration::from_secs(store.kv().ttl_s);
    let mut name = Vec::new();
    for key in written.keys() {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        if Instant::now() > until {
            read_back.out_of_time(READ_BACK_MAX);
            break;
        }
        name.clear();
        store.names().append(&mut name, key);
        let value = match ready.stores[0].admin.read(&name) {
            Ok(value) => value,
            Err(e) => {
                read_back.unread = Some(e.to_string());
                break;
            }
        };
        let Some(held) = written.held(key, value.as_deref(), store.data()) else { continue };
        let sent = written.sent_ns(key).map(|ns| store.instant(ns));
        let age = sent.map(|sent| sent.elapsed()).unwrap_or_default();
        let is_over = !lifetime.is_zero() && age + COUNTED >= lifetime;
        let is_again = held == StoredVersion::Last
            && sent.zip(fault).is_some_and(|(sent, fault)| sent > fault);
        read_back.rewritten += u64::from(is_again);
        read_back.may_be_missing += u64::from(held == StoredVersion::Missing && is_over);
        read_back.count(held, || String::from_utf8_lossy(&name).into_owned());
    }
    let given_up = written.given_up();
    if read_back.unread.is_none() && given_up as u64 > read_back.read {
        read_back.unread = Some(format!(
            "{given_up} sampled keys could not be checked: too many of their writes overlapped or \
             failed to tell which came last"
        ));
    }
    read_back
}

/// Removals by the store since before the load, which explain missing keys.
#[derive(Clone, Copy)]
pub(crate) struct Removals {
    evicted: u64,
    since: Instant,
}

impl Removals {
    /// Starts counting, before anything is written.
    pub(crate) fn before(ready: &mut Ready) -> Self {
        Self { evicted: ready.evicted(), since: Instant::now() }
    }

    /// Adds how many keys may be missing because of evictions or expiry.
    pub(crate) fn explain(
        self,
        read_back: Option<ReadBack>,
        ready: &mut Ready,
        workload: &Workload,
    ) -> Option<ReadBack> {
        let mut read_back = read_back?;
        if read_back.missing > 0 {
            read_back.evicted(ready.evicted().saturating_sub(self.evicted), filled(workload));
            let lifetime = lifetime(workload);
            if !lifetime.is_zero() && self.since.elapsed() + COUNTED >= lifetime {
                read_back.may_be_missing = read_back.read;
            }
        }
        Some(read_back)
    }
}

/// TTL of what clients write if the times of writes are unknown; zero for none.
fn lifetime(workload: &Workload) -> Duration {
    Duration::from_secs(match workload {
        Workload::Sessions(sessions) => sessions.ttl_s,
        Workload::AppCache(cache) => magento::lifetime_of(cache.magento).unwrap_or(0),
        // The age of each key is known, and rows of a database do not expire.
        Workload::Kv(_) | Workload::CacheAside(_) => 0,
    })
}

/// Number of keys, sessions or records that a workload fills.
fn filled(workload: &Workload) -> u64 {
    match workload {
        Workload::Kv(kv) => kv.keys,
        Workload::Sessions(sessions) => sessions.filled,
        Workload::AppCache(cache) => cache.keys,
        Workload::CacheAside(aside) => aside.rows,
    }
}
