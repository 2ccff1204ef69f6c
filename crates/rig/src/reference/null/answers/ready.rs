//! What answers of both protocols are made of.

use crate::reference::null::memory::Memory;

/// Parts of answers that are ready, and what is remembered.
#[derive(Debug)]
pub(super) struct Ready {
    /// The value as a bulk string of RESP.
    pub(super) bulk: Vec<u8>,
    /// The value as it follows the key in memcached's text protocol: ` 0 <length>`, and the rest of
    /// the answer.
    pub(super) text: Vec<u8>,
    /// The value as it follows the flags in a meta answer.
    pub(super) value: Vec<u8>,
    pub(super) miss: bool,
    pub(super) memory: Option<Memory>,
}
