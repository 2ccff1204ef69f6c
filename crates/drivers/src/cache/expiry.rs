//! When records expire, as these layouts store it.

use crate::clock;

/// The time, in seconds since 1970, at which records expire that never do (Zend, Magento).
pub(super) const NEVER: i64 = 9_999_999_999;

/// Seconds since 1970, which these layouts store.
pub(crate) fn now_s() -> i64 {
    clock::now_s().cast_signed()
}

/// When a record expires that is stored now.
pub(crate) fn expire_s(lifetime_s: Option<u64>) -> i64 {
    lifetime_s.map_or(NEVER, |s| now_s().saturating_add(i64::try_from(s).unwrap_or(i64::MAX)))
}
