//! Which server a key lives on.

use std::fmt;

use super::stream::Address;

/// Knows the servers by number.
pub trait Route: fmt::Debug + Send + Sync {
    /// Number of the server on which a key of that name lives.
    fn node(&self, name: &[u8]) -> usize;

    /// Takes note that the key lives at an address now, where that is `for_good`; the number of
    /// that server, `None` when there is none of that address.
    fn moved(&mut self, _name: &[u8], _address: &str, _for_good: bool) -> Option<usize> {
        None
    }

    /// What must be said before a request that was sent on but not for good; has one reply. Nothing
    /// where keys never move.
    fn asking(&self) -> &'static [u8] {
        b""
    }

    /// For each part that the keys are divided into, the number of the server that has it; empty
    /// where parts never move.
    fn owners(&self) -> Vec<usize> {
        Vec::new()
    }

    /// The same, for another thread.
    fn fresh(&self) -> Box<dyn Route>;
}

/// Servers, and which of them a key lives on now.
#[derive(Debug)]
pub struct Layout {
    /// Where they are, in the order in which the route counts them.
    pub nodes: Vec<Address>,
    /// Which key lives where.
    pub route: Box<dyn Route>,
}

/// Asks servers that may come, go and take over keys from each other where the keys live.
pub trait Survey: fmt::Debug + Send + Sync {
    /// The present layout. Its servers begin with the `known` ones, in their order; those behind
    /// them have keys, or are at one of the addresses that were `named` by a referral. Blocks for
    /// some seconds at most; `None` where no server tells.
    fn ask(&self, known: &[Address], named: &[String]) -> Option<Layout>;
}

/// One server that has all keys.
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
