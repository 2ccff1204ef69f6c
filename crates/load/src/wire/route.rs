//! Which server a key lives on.

use std::fmt;

use super::stream::Address;

/// Maps keys to servers, which are numbered.
pub trait Route: fmt::Debug + Send + Sync {
    /// Number of the server that a key with that name lives on.
    fn node(&self, name: &[u8]) -> usize;

    /// Number of the server at `address`, which the key was referred to; `None` if no server has
    /// that address. Remembers the key's new server if the move is `for_good`.
    fn moved(&mut self, _name: &[u8], _address: &str, _for_good: bool) -> Option<usize> {
        None
    }

    /// Bytes to send before a request that is redirected only temporarily; they have one reply.
    /// Empty if keys never move.
    fn asking(&self) -> &'static [u8] {
        b""
    }

    /// The number of the owning server for each partition of the keys; empty if partitions never
    /// move.
    fn owners(&self) -> Vec<usize> {
        Vec::new()
    }

    /// A copy for another thread.
    fn fresh(&self) -> Box<dyn Route>;
}

/// The servers, and which of them each key lives on now.
#[derive(Debug)]
pub struct Layout {
    /// Server addresses, in the order of the route's numbers.
    pub nodes: Vec<Address>,
    /// Which server each key lives on.
    pub route: Box<dyn Route>,
}

/// Asks servers for the current layout of keys, in a cluster whose servers and partitions can
/// change.
pub trait Survey: fmt::Debug + Send + Sync {
    /// The current layout. Its servers start with the `known` ones in the same order; additional
    /// ones have keys or one of the addresses `named` in a referral. Blocks for a few seconds at
    /// most; `None` if no server answers.
    fn ask(&self, known: &[Address], named: &[String]) -> Option<Layout>;
}

/// A single server that has all keys.
#[derive(Clone, Copy, Debug)]
pub struct Single;

impl Route for Single {
    fn node(&self, _name: &[u8]) -> usize {
        0
    }

    fn fresh(&self) -> Box<dyn Route> {
        Box::new(Self)
    }
}
