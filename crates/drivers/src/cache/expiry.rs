//! Expiry times of records, as these layouts store them.

use crate::clock;

/// Expiry time of records that never expire (Zend, Magento), seconds since 1970.
pub(super) const NEVER: i64 = 9_999_999_999;

/// The current time as these layouts store it, seconds since 1970.
pub(crate) fn now_s() -> i64 {
    clock::now_s().cast_signed()
}

/// Expiry time of a record that is stored now.
pub(crate) fn expire_s(lifetime_s: Option<u64>) -> i64 {
    lifetime_s.map_or(NEVER, |s| now_s().saturating_add(i64::try_from(s).unwrap_or(i64::MAX)))
}
