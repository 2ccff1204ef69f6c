//! A lock as a key that exists: `SET <lock> <secret> NX PX <expiry>` takes it, and a script removes
//! it after comparing its owner (`EVALSHA`, or `EVAL` if the server does not know the script yet).

use std::sync::atomic::{AtomicU64, Ordering};

use workloads::store::StoreError;

use super::errors::unexpected;
use super::resp::Reply;
use super::wire::Wire;

/// Removes the lock if it still contains our secret.
const RELEASE: &str =
    "if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end return redis.call('DEL', KEYS[1])";
/// SHA-1 of [`RELEASE`].
const RELEASE_SHA: &str = "a3a2e641cda83495175e20b2f2dca850c65f2a63";

/// The owner of locks: one client.
pub(super) struct LockOwner {
    secret: String,
}

impl LockOwner {
    /// `host|pid` plus a number, since one process runs many clients here.
    pub(super) fn new() -> Self {
        static CLIENTS: AtomicU64 = AtomicU64::new(0);
        let host = nix::unistd::gethostname().unwrap_or_default();
        let client = CLIENTS.fetch_add(1, Ordering::Relaxed);
        let secret = format!("{}|{}.{client}", host.to_string_lossy(), std::process::id());
        Self { secret }
    }

    /// What a lock of this owner contains.
    pub(super) fn secret(&self) -> &[u8] {
        self.secret.as_bytes()
    }

    /// Takes a lock for `expire_ms` milliseconds; false if another owner holds it.
    pub(super) fn take(
        &self,
        wire: &mut Wire,
        lock: &str,
        expire_ms: &str,
    ) -> Result<bool, StoreError> {
        let (lock, expire) = (lock.as_bytes(), expire_ms.as_bytes());
        match wire.call(&[b"SET", lock, self.secret(), b"NX", b"PX", expire])? {
            Reply::Status(b"OK") => Ok(true),
            Reply::Nil => Ok(false),
            other => Err(unexpected("SET", &other)),
        }
    }

    /// Releases a lock; true if it was still ours.
    pub(super) fn release(&self, wire: &mut Wire, lock: &str) -> Result<bool, StoreError> {
        let (lock, secret) = (lock.as_bytes(), self.secret());
        let known = match wire.call(&[b"EVALSHA", RELEASE_SHA.as_bytes(), b"1", lock, secret])? {
            Reply::Integer(n) => Some(n),
            Reply::Error(words) if words.starts_with(b"NOSCRIPT") => None,
            other => return Err(unexpected("EVALSHA", &other)),
        };
        if let Some(removed) = known {
            return Ok(removed == 1);
        }
        match wire.call(&[b"EVAL", RELEASE.as_bytes(), b"1", lock, secret])? {
            Reply::Integer(removed) => Ok(removed == 1),
            other => Err(unexpected("EVAL", &other)),
        }
    }
}
