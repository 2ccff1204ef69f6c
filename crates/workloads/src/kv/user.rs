//! Values that are a user as a JSON object, 148 bytes long, as Anton Putra's client of lesson 225
//! stores them: the UUID that is the key's name, then names and an address of random characters.
//!
//! What verifies a value: its UUID is the key's, `username` is its version, and the rest is a slice
//! of the pool that follows from both.

use std::ops::Range;

use super::uuid::Uuids;

/// How values of this kind are spelled where sizes are.
pub const JSON: &str = "json";
/// Bytes of every such value.
pub(super) const USER_BYTES: usize = 148;
/// The object with zeros in place of what differs.
const FORM: &[u8; USER_BYTES] = b"{\"uuid\":\"000000000000000000000000000000000000\",\
    \"username\":\"0000000000\",\"firstName\":\"00000\",\"lastName\":\"0000000000\",\
    \"address\":\"00000000000000000000\"}";
const UUID: Range<usize> = 9..45;
/// Where the version stands, in base 62.
pub(super) const USERNAME: Range<usize> = 59..69;
/// Where random characters stand.
const DRAWN: [Range<usize>; 3] = [84..89, 103..113, 126..146];
/// How many they are in all.
pub(super) const DRAWN_BYTES: usize = 35;

/// The object of a key; `version` has as many digits as there is room for.
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
