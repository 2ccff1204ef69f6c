//! Which of several memcached servers a key lives on: ketama's ring, with weights, as libmemcached
//! makes it where `MEMCACHED_BEHAVIOR_KETAMA_WEIGHTED` is set
//! (`Memcached::OPT_LIBKETAMA_COMPATIBLE` of PHP).
//!
//! Each server has 160 points on a ring of 32 bits, more or fewer by its weight, always four at a
//! time: the MD5 sum of `<host>:<port>-<n>` (of `<host>-<n>` on the usual port), cut into four
//! numbers, least byte first. A key's place is the first of the four numbers of its own sum, and
//! its server the one whose point is there or follows. Sources: `libmemcached/hosts.cc` of
//! libmemcached for the facts, and PHP's extension as an oracle in the tests.

use load::wire::route::Route;
use md5::{Digest, Md5};

/// Points of a server of average weight.
const POINTS: u16 = 160;
/// Points from one sum.
const POINTS_A_SUM: u16 = 4;
/// The port that is left out.
const USUAL_PORT: u16 = 11211;

/// A server on the ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// Its host as clients name it, or the path of its socket: another spelling has other points.
    pub host: String,
    /// Its port. A socket has 0 in lists of servers (`addServers` of PHP), and the usual port when
    /// it is added by itself (`addServer`).
    pub port: u16,
    /// Its weight, at least 1.
    pub weight: u32,
}

/// The points of all servers, in their order on the ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ring {
    /// Place and number of its server.
    points: Vec<(u32, u32)>,
}

impl Ring {
    /// Puts servers on the ring; `None` when no server has a point, as when there is none. A server
    /// whose weight is below 1/40 of the average may have none.
    pub fn new(servers: &[Server]) -> Option<Self> {
        let total: u32 = servers.iter().map(|server| server.weight).sum();
        let mut points = Vec::new();
        for (number, server) in servers.iter().enumerate() {
            for n in 0..sums(server.weight, total, servers.len()) {
                let name = if server.port == USUAL_PORT {
                    format!("{}-{n}", server.host)
                } else {
                    format!("{}:{}-{n}", server.host, server.port)
                };
                let sum = Md5::digest(name.as_bytes());
                let places = sum.chunks_exact(usize::from(POINTS_A_SUM));
                points.extend(places.map(|place| (number_of(place), number as u32)));
            }
        }
        points.sort_by_key(|(place, _)| *place);
        (!points.is_empty()).then_some(Self { points })
    }

    /// Number of the server that has the key of that name.
    pub fn node(&self, name: &[u8]) -> usize {
        let place = number_of(&Md5::digest(name)[..usize::from(POINTS_A_SUM)]);
        let at = self.points.partition_point(|(point, _)| *point < place);
        // Behind the last point the ring begins again.
        self.points[at % self.points.len()].1 as usize
    }
}

/// Sums of a server: a quarter of its points. In the precision that libmemcached computes it with,
/// since its rounding decides.
fn sums(weight: u32, total: u32, servers: usize) -> u32 {
    let share = weight as f32 / total as f32;
    let sums = share * f32::from(POINTS) / f32::from(POINTS_A_SUM) * servers as f32;
    (f64::from(sums) + 1e-10) as f32 as u32
}

/// Four bytes as a number, the least first.
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
