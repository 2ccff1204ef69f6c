//! The interfaces of a database with rows and of a cache in front of it, each for one client with
//! its own connection.

use super::users::User;
use crate::store::{Found, LockWait, StoreError};

/// One client of the database.
pub trait RowDatabase: Send {
    /// Inserts rows that do not exist yet, in one statement.
    fn insert(&mut self, users: &[User]) -> Result<(), StoreError>;

    /// Reads the row with this number by its primary key into `user`, replacing its content. A row
    /// with other columns is a non-fatal error of class `Protocol`.
    fn query(&mut self, number: u64, user: &mut User) -> Result<Found, StoreError>;
}

/// Result of [`RowCache::lock`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Locked {
    /// The lock is ours, and the row is still missing.
    Ours(LockWait),
    /// Another client has cached the row meanwhile; no lock is held.
    Cached(LockWait),
}

/// One client of the cache.
pub trait RowCache: Send {
    /// Reads a value, replacing the content of `value`.
    fn get(&mut self, key: &str, value: &mut Vec<u8>) -> Result<Found, StoreError>;

    /// Stores a value for its lifetime.
    fn set(&mut self, key: &str, value: &[u8]) -> Result<(), StoreError>;

    /// Takes the lock of a key whose value is missing. While another client holds it, asks again
    /// for the value every few milliseconds. Failure to get either is a non-fatal error of class
    /// `Lock`.
    fn lock(&mut self, key: &str, value: &mut Vec<u8>) -> Result<Locked, StoreError>;

    /// Releases the lock taken last, if it is still ours; true if it was.
    fn unlock(&mut self, key: &str) -> Result<bool, StoreError>;
}
