//! Cached rows: `GET` and `SETEX`, with locks of [`super::lock`].

use workloads::store::{Found, StoreError};

use super::errors::unexpected;
use super::lock::LockOwner;
use super::resp::Reply;
use super::wire::Wire;
use crate::rows::waiting::{LOCK_EXPIRE_S, LockingCache};

pub(super) struct Rows {
    wire: Wire,
    ttl: String,
    owner: LockOwner,
    lock_expire_ms: String,
}

impl Rows {
    pub(super) fn new(wire: Wire, ttl_s: u64) -> Self {
        let lock_expire_ms = (LOCK_EXPIRE_S * 1_000).to_string();
        Self { wire, ttl: ttl_s.to_string(), owner: LockOwner::new(), lock_expire_ms }
    }
}

impl LockingCache for Rows {
    fn get(&mut self, key: &str, value: &mut Vec<u8>) -> Result<Found, StoreError> {
        value.clear();
        match self.wire.call(&[b"GET", key.as_bytes()])? {
            Reply::Bulk(bytes) => {
                value.extend_from_slice(bytes);
                Ok(Found::Yes)
            }
            Reply::Nil => Ok(Found::No),
            other => Err(unexpected("GET", &other)),
        }
    }

    fn set(&mut self, key: &str, value: &[u8]) -> Result<(), StoreError> {
        self.wire.expect_ok(&[b"SETEX", key.as_bytes(), self.ttl.as_bytes(), value])
    }

    fn take(&mut self, lock: &str) -> Result<bool, StoreError> {
        self.owner.take(&mut self.wire, lock, &self.lock_expire_ms)
    }

    fn release(&mut self, lock: &str) -> Result<bool, StoreError> {
        self.owner.release(&mut self.wire, lock)
    }
}
