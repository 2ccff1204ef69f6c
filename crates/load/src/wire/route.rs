//! Which server a key lives on.

use std::fmt;

/// Knows the servers by number.
pub trait Route: fmt::Debug + Send + Sync {
    /// Number of the server on which a key of that name lives.
    fn node(&self, name: &[u8]) -> usize;

    /// Takes note that the key lives at an address now, where that is `for_good`; the number of
    /// that server, `None` when there is none of that address.
    fn moved(&mut self, name: &[u8], address: &str, for_good: bool) -> Option<usize>;

    /// What must be said before a request that was sent on but not for good; has one reply.
    fn asking(&self) -> &'static [u8];

    /// The same, for another thread.
    fn fresh(&self) -> Box<dyn Route>;
}

/// One server that has all keys.
#[derive(Clone, Copy, Debug)]
pub struct Single;

impl Route for Single {
    fn node(&self, _name: &[u8]) -> usize {
        0
    }

    fn moved(&mut self, _name: &[u8], _address: &str, _for_good: bool) -> Option<usize> {
        None
    }

    fn asking(&self) -> &'static [u8] {
        b""
    }

    fn fresh(&self) -> Box<dyn Route> {
        Box::new(Self)
    }
}
