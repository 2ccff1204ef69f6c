//! Distributes keys over several memcached servers: the weighted ketama ring that libmemcached uses
//! with `MEMCACHED_BEHAVIOR_KETAMA_WEIGHTED` (`Memcached::OPT_LIBKETAMA_COMPATIBLE` in PHP).
//!
//! Each server has 160 points on a 32-bit ring, more or fewer by its weight, in groups of four: the
//! MD5 sum of `<host>:<port>-<n>` (of `<host>-<n>` on the default port), split into four
//! little-endian numbers. A key's position is the first of the four numbers of its own sum. Its
//! server owns the first point at or after that position. Sources: `libmemcached/hosts.cc` of
//! libmemcached for the facts, and PHP's extension as an oracle in the tests.

use load::wire::route::Route;
use md5::{Digest, Md5};

/// Points of a server with average weight.
const POINTS: u16 = 160;
/// Points per MD5 sum.
const POINTS_PER_SUM: u16 = 4;
/// The default port, which is omitted from names.
const DEFAULT_PORT: u16 = 11211;

/// A server on the ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// Its host as clients write it, or the path of its socket; another form gives other points.
    pub host: String,
    /// Its port. A socket has 0 in server lists (`addServers` in PHP) and the default port when
    /// added alone (`addServer`).
    pub port: u16,
    /// Its weight, at least 1.
    pub weight: u32,
}

/// The points of all servers in ring order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ring {
    /// Position and server number of each point.
    points: Vec<(u32, u32)>,
}

impl Ring {
    /// Builds the ring; `None` if no server has a point, for example without servers. A server
    /// whose weight is below 1/40 of the average can have none.
    pub fn new(servers: &[Server]) -> Option<Self> {
        let total: u32 = servers.iter().map(|server| server.weight).sum();
        let mut points = Vec::new();
        for (number, server) in servers.iter().enumerate() {
            for n in 0..sums(server.weight, total, servers.len()) {
                let name = if server.port == DEFAULT_PORT {
                    format!("{}-{n}", server.host)
                } else {
                    format!("{}:{}-{n}", server.host, server.port)
                };
                let sum = Md5::digest(name.as_bytes());
                let positions = sum.chunks_exact(usize::from(POINTS_PER_SUM));
                points.extend(positions.map(|position| (number_of(position), number as u32)));
            }
        }
        points.sort_by_key(|(position, _)| *position);
        (!points.is_empty()).then_some(Self { points })
    }

    /// Number of the server that owns the key with this name.
    pub fn node(&self, name: &[u8]) -> usize {
        let position = number_of(&Md5::digest(name)[..usize::from(POINTS_PER_SUM)]);
        let at = self.points.partition_point(|(point, _)| *point < position);
        // The ring wraps around after the last point.
        self.points[at % self.points.len()].1 as usize
    }
}

/// Number of MD5 sums of a server: a quarter of its points. Uses the float precision of
/// libmemcached, since its rounding affects the result.
fn sums(weight: u32, total: u32, servers: usize) -> u32 {
    let share = weight as f32 / total as f32;
    let sums = share * f32::from(POINTS) / f32::from(POINTS_PER_SUM) * servers as f32;
    (f64::from(sums) + 1e-10) as f32 as u32
}

/// Reads a little-endian number.
fn number_of(bytes: &[u8]) -> u32 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u32::from(*byte))
}

impl Route for Ring {
    fn node(&self, name: &[u8]) -> usize {
        self.node(name)
    }

    fn fresh(&self) -> Box<dyn Route> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
#[path = "ketama_tests.rs"]
mod tests;
