//! Values that are a user as a JSON object of 148 bytes, as stored by Anton Putra's client of
//! lesson 225: the UUID from the key's name, then names and an address of random characters.
//!
//! To verify a value: its UUID must be the key's, `username` contains its version, and the
//! remaining characters are a slice of the pool that follows from both.

use std::ops::Range;

use super::uuid::Uuids;

/// Keyword for these values, where sizes are given.
pub const JSON: &str = "json";
/// Length of every such value in bytes.
pub(super) const USER_BYTES: usize = 148;
/// The object with zeros for the variable parts.
const FORM: &[u8; USER_BYTES] = b"{\"uuid\":\"000000000000000000000000000000000000\",\
    \"username\":\"0000000000\",\"firstName\":\"00000\",\"lastName\":\"0000000000\",\
    \"address\":\"00000000000000000000\"}";
const UUID: Range<usize> = 9..45;
/// Position of the version, in base 62.
pub(super) const USERNAME: Range<usize> = 59..69;
/// Positions of the random characters.
const DRAWN: [Range<usize>; 3] = [84..89, 103..113, 126..146];
/// Total number of random characters.
pub(super) const DRAWN_BYTES: usize = 35;

/// The object of a key; `version` has the length of its place.
pub(super) fn user(uuids: Uuids, key: u64, version: &[u8], drawn: &[u8]) -> [u8; USER_BYTES] {
    let mut user = *FORM;
    uuids.write(&mut user[UUID], key);
    user[USERNAME].copy_from_slice(version);
    let mut rest = drawn;
    for place in DRAWN {
        let (now, later) = rest.split_at(place.len());
        user[place].copy_from_slice(now);
        rest = later;
    }
    user
}

#[cfg(test)]
#[path = "user_tests.rs"]
mod tests;
