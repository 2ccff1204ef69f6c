//! Data for the replies of both protocols.

use crate::reference::null::memory::Memory;

/// Pre-encoded parts of replies, and the remembered values.
#[derive(Debug)]
pub(super) struct Ready {
    /// The value as a bulk string of RESP.
    pub(super) bulk: Vec<u8>,
    /// The part of a value's reply after the key in memcached's text protocol: ` 0 <length>` and
    /// the data.
    pub(super) text: Vec<u8>,
    /// The plain value, sent after the flags of a meta reply.
    pub(super) value: Vec<u8>,
    pub(super) miss: bool,
    pub(super) memory: Option<Memory>,
}
