//! A reader that misses takes the row's lock, or waits until the client that holds it has cached
//! the row. It asks every few milliseconds, for at most the timeout of a call.

use std::thread;
use std::time::{Duration, Instant};

use model::ErrorClass;
use workloads::cache_aside::{Locked, RowCache};
use workloads::store::{Found, LockWait, StoreError};

/// Pause between two attempts. Libraries wait longer (Laravel's `block` 250 ms, Symfony's locks
/// 100 ms), which would hide how long the query takes.
const PAUSE: Duration = Duration::from_millis(5);
/// Lifetime of a lock whose owner died.
pub(crate) const LOCK_EXPIRE_S: u64 = 10;

/// What a cache must offer for locks.
pub(crate) trait LockingCache: Send {
    fn get(&mut self, key: &str, value: &mut Vec<u8>) -> Result<Found, StoreError>;
    fn set(&mut self, key: &str, value: &[u8]) -> Result<(), StoreError>;
    /// Takes a lock for [`LOCK_EXPIRE_S`] seconds; false if another client holds it.
    fn take(&mut self, lock: &str) -> Result<bool, StoreError>;
    /// Releases a lock; false if it was no longer ours.
    fn release(&mut self, lock: &str) -> Result<bool, StoreError>;
}

/// A cache whose clients wait for each other's locks.
pub(crate) struct Waiting<C> {
    cache: C,
    timeout: Duration,
    lock: String,
}

impl<C: LockingCache> Waiting<C> {
    pub(crate) fn new(cache: C, timeout: Duration) -> Self {
        Self { cache, timeout, lock: String::new() }
    }

    fn name(&mut self, key: &str) {
        self.lock.clear();
        self.lock.extend(["lock:", key]);
    }
}

impl<C: LockingCache> RowCache for Waiting<C> {
    fn get(&mut self, key: &str, value: &mut Vec<u8>) -> Result<Found, StoreError> {
        self.cache.get(key, value)
    }

    fn set(&mut self, key: &str, value: &[u8]) -> Result<(), StoreError> {
        self.cache.set(key, value)
    }

    fn lock(&mut self, key: &str, value: &mut Vec<u8>) -> Result<Locked, StoreError> {
        self.name(key);
        let (started, mut attempts) = (Instant::now(), 0);
        loop {
            attempts += 1;
            let is_ours = self.cache.take(&self.lock)?;
            let is_first = attempts == 1;
            let waited = if is_first && is_ours { Duration::ZERO } else { started.elapsed() };
            let wait = LockWait { attempts, waited_ns: waited.as_nanos() as u64 };
            // A client that held the lock before may have cached the row since it was missed.
            if self.cache.get(key, value)? == Found::Yes {
                if is_ours {
                    self.cache.release(&self.lock)?;
                }
                return Ok(Locked::Cached(wait));
            }
            if is_ours {
                return Ok(Locked::Ours(wait));
            }
            if started.elapsed() >= self.timeout {
                let message = format!("the row was still locked after {attempts} attempts");
                return Err(StoreError::soft(ErrorClass::Lock, message));
            }
            thread::sleep(PAUSE);
        }
    }

    fn unlock(&mut self, key: &str) -> Result<bool, StoreError> {
        self.name(key);
        self.cache.release(&self.lock)
    }
}
