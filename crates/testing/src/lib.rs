//! What the tests of several crates share. Only tests use this crate.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, Hasher as _};
use std::net::{Ipv4Addr, TcpListener};

/// Below the ports that the kernel gives to outgoing connections. At one of those, a connection of
/// another test can take the port before the server does, and a client that tries until the server
/// listens can connect to itself.
const PORTS: std::ops::Range<u16> = 10_000..32_768;

/// A random port of 127.0.0.1 without a listener.
///
/// # Panics
///
/// If none of a hundred ports is free.
#[must_use]
pub fn free_port() -> u16 {
    let is_free = |port: &u16| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok();
    (0..100).map(|_| drawn()).find(is_free).expect("none of a hundred ports is free")
}

fn drawn() -> u16 {
    let length = u64::from(PORTS.end - PORTS.start);
    let offset = RandomState::new().build_hasher().finish() % length;
    PORTS.start + u16::try_from(offset).expect("less than the length of PORTS")
}
