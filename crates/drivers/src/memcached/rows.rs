//! Cached rows: `get` and `set`. A lock is an item with its owner's name: `add` takes it, and it is
//! removed by `get`, a comparison and `delete`, as by Laravel, since memcached has no such command.

use std::process;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use model::Endpoint;
use workloads::cache_aside::RowCache;
use workloads::store::{Found, StoreError};

use super::text::Text;
use crate::rows::waiting::{LOCK_EXPIRE_S, LockingCache, Waiting};

/// Opens one client of a cache in front of a database.
pub(crate) fn open_rows(
    endpoint: &Endpoint,
    ttl_s: u64,
    timeout: Duration,
) -> Result<Box<dyn RowCache>, StoreError> {
    Ok(Box::new(Waiting::new(Rows::connect(endpoint, ttl_s, timeout)?, timeout)))
}

struct Rows {
    text: Text,
    ttl_s: u64,
    owner: String,
    held: Vec<u8>,
}

impl Rows {
    fn connect(endpoint: &Endpoint, ttl_s: u64, timeout: Duration) -> Result<Self, StoreError> {
        static CLIENTS: AtomicU64 = AtomicU64::new(0);
        let client = CLIENTS.fetch_add(1, Ordering::Relaxed);
        // Process ids of several machines or containers are often equal.
        let host = nix::unistd::gethostname().unwrap_or_default();
        let owner = format!("{}|{}.{client}", host.to_string_lossy(), process::id());
        Ok(Self { text: Text::connect(endpoint, timeout)?, ttl_s, owner, held: Vec::new() })
    }
}

impl LockingCache for Rows {
    fn get(&mut self, key: &str, value: &mut Vec<u8>) -> Result<Found, StoreError> {
        let found = self.text.get(key, value)?;
        Ok(if found.is_some() { Found::Yes } else { Found::No })
    }

    fn set(&mut self, key: &str, value: &[u8]) -> Result<(), StoreError> {
        self.text.set(key, 0, self.ttl_s, value)
    }

    fn take(&mut self, lock: &str) -> Result<bool, StoreError> {
        self.text.add(lock, LOCK_EXPIRE_S, self.owner.as_bytes())
    }

    fn release(&mut self, lock: &str) -> Result<bool, StoreError> {
        self.text.get(lock, &mut self.held)?;
        let is_ours = self.held == self.owner.as_bytes();
        Ok(is_ours && self.text.delete(lock)? == Found::Yes)
    }
}
