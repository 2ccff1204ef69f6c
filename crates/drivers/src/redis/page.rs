//! The session handler of the PHP extension redis (phpredis) with `redis.session.locking_enabled`:
//! the key is `PHPREDIS_SESSION:<id>`, and its lock adds `_LOCK`.
//!
//! Open: `SET <lock> <secret> NX PX <expiry>` until it succeeds, then `GET <key>`. Close: `GET
//! <lock>`; if the lock is no longer ours, the handler warns and writes nothing. Otherwise `SETEX
//! <key> <ttl> <value>`, and a script removes the lock after comparing its owner (`EVALSHA`, or
//! `EVAL` if the server does not know the script yet).
//!
//! The handler's `gc` does nothing: the server expires keys by itself.

use std::thread;
use std::time::{Duration, Instant};

use model::ErrorClass;
use workloads::store::{Closed, Found, LockWait, Opened, PageStore, StoreError};

use super::errors::{refused, unexpected};
use super::lock::LockOwner;
use super::resp::Reply;
use super::wire::Wire;

pub(super) const KEY_PREFIX: &str = model::leftovers::PAGE_KEYS;
pub(super) const LOCK_SUFFIX: &str = "_LOCK";

/// `redis.session.lock_expire`, which PHP takes from `max_execution_time` when it is 0; 30 s is
/// the default of the latter on web servers.
const LOCK_EXPIRE_MS: &str = "30000";
/// `redis.session.lock_wait_time`, 20,000 µs by default.
const LOCK_WAIT: Duration = Duration::from_millis(20);
/// `redis.session.lock_retries`, 100 by default: 101 attempts.
const LOCK_RETRIES: u32 = 100;

pub(super) struct Page {
    wire: Wire,
    ttl: String,
    owner: LockOwner,
    key: String,
    lock: String,
    open: bool,
}

impl Page {
    pub(super) fn new(wire: Wire, ttl_s: u64) -> Self {
        Self {
            wire,
            ttl: ttl_s.to_string(),
            owner: LockOwner::new(),
            key: String::new(),
            lock: String::new(),
            open: false,
        }
    }

    fn take_lock(&mut self) -> Result<LockWait, StoreError> {
        let started = Instant::now();
        for attempt in 1..=LOCK_RETRIES + 1 {
            if self.owner.take(&mut self.wire, &self.lock, LOCK_EXPIRE_MS)? {
                let waited = if attempt == 1 { Duration::ZERO } else { started.elapsed() };
                return Ok(LockWait { attempts: attempt, waited_ns: waited.as_nanos() as u64 });
            }
            if attempt <= LOCK_RETRIES {
                thread::sleep(LOCK_WAIT);
            }
        }
        let message = format!("the session was still locked after {} attempts", LOCK_RETRIES + 1);
        Err(StoreError::soft(ErrorClass::Lock, message))
    }

    /// Releases the lock; true if it was still ours.
    fn release(&mut self) -> Result<bool, StoreError> {
        self.owner.release(&mut self.wire, &self.lock)
    }
}

impl PageStore for Page {
    fn open(&mut self, id: &str, value: &mut Vec<u8>) -> Result<Opened, StoreError> {
        value.clear();
        self.key.clear();
        self.key.push_str(KEY_PREFIX);
        self.key.push_str(id);
        self.lock.clear();
        self.lock.push_str(&self.key);
        self.lock.push_str(LOCK_SUFFIX);
        self.open = false;
        let lock = self.take_lock()?;
        let found = match self.wire.call(&[b"GET", self.key.as_bytes()])? {
            Reply::Bulk(bytes) => {
                value.extend_from_slice(bytes);
                Ok(Found::Yes)
            }
            Reply::Nil => Ok(Found::No),
            other => Err(unexpected("GET", &other)),
        };
        match found {
            Ok(found) => {
                self.open = true;
                Ok(Opened { found, lock })
            }
            Err(e) => {
                // A session that could not be read must not stay locked for the next request.
                if !e.fatal {
                    self.release()?;
                }
                Err(e)
            }
        }
    }

    fn close(&mut self, value: &[u8]) -> Result<Closed, StoreError> {
        if !std::mem::take(&mut self.open) {
            return Err(StoreError::soft(ErrorClass::Other, "no session is open"));
        }
        let ours = match self.wire.call(&[b"GET", self.lock.as_bytes()])? {
            Reply::Bulk(holder) => holder == self.owner.secret(),
            Reply::Nil => false,
            Reply::Error(words) => return Err(refused(words)),
            other => return Err(unexpected("GET", &other)),
        };
        if !ours {
            return Ok(Closed::LockLost);
        }
        let parts: [&[u8]; 4] = [b"SETEX", self.key.as_bytes(), self.ttl.as_bytes(), value];
        let written = self.wire.expect_ok(&parts);
        if written.as_ref().is_err_and(|e| e.fatal) {
            return written.map(|()| Closed::Kept);
        }
        // A rejected write (out of memory) releases the lock as well.
        let released = self.release()?;
        written?;
        Ok(if released { Closed::Kept } else { Closed::LockLost })
    }

    fn set_lifetime(&mut self, lifetime_s: u64) {
        // `SETEX` rejects 0.
        self.ttl = lifetime_s.max(1).to_string();
    }
}
