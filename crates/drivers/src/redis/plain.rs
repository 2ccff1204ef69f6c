//! The layout of the 2019 script: the key is the session's name. `SETEX name ttl value` creates and
//! replaces, `GET name` reads.

use workloads::store::{Found, SessionStore, StoreError};

use super::errors::unexpected;
use super::resp::Reply;
use super::wire::Wire;

pub(super) struct Plain {
    wire: Wire,
    ttl: String,
}

impl Plain {
    pub(super) fn new(wire: Wire, ttl_s: u64) -> Self {
        Self { wire, ttl: ttl_s.to_string() }
    }
}

impl SessionStore for Plain {
    fn create(&mut self, id: &str, value: &[u8]) -> Result<(), StoreError> {
        self.wire.expect_ok(&[b"SETEX", id.as_bytes(), self.ttl.as_bytes(), value])
    }

    fn read(&mut self, id: &str, value: &mut Vec<u8>) -> Result<Found, StoreError> {
        value.clear();
        match self.wire.call(&[b"GET", id.as_bytes()])? {
            Reply::Bulk(bytes) => {
                value.extend_from_slice(bytes);
                Ok(Found::Yes)
            }
            Reply::Nil => Ok(Found::No),
            other => Err(unexpected("GET", &other)),
        }
    }

    fn replace(&mut self, id: &str, value: &[u8]) -> Result<Found, StoreError> {
        self.create(id, value)?;
        Ok(Found::Yes)
    }
}
