//! Compares the ring with libmemcached and checks its own properties.

use super::*;
use proptest::prelude::*;

fn server(host: &str, port: u16, weight: u32) -> Server {
    Server { host: host.into(), port, weight }
}

const KEYS: [&str; 5] = ["a", "foo", "key:000000000042", "session", "x"];

/// Results of `Memcached::getServerByKey` in PHP's extension 3.2.0 with libmemcached 1.1.4.
#[test]
fn keys_map_to_the_same_servers_as_in_libmemcached() {
    let even = Ring::new(&["10.0.0.1", "10.0.0.2", "10.0.0.3"].map(|host| server(host, 11211, 1)));
    let even = even.unwrap();
    assert_eq!(even.points.len(), 3 * 160);
    assert_eq!(KEYS.map(|key| even.node(key.as_bytes())), [1, 1, 0, 1, 0]);
    let uneven =
        [server("cache-a", 11211, 1), server("cache-b", 11212, 3), server("/run/m.sock", 0, 2)];
    let uneven = Ring::new(&uneven).unwrap();
    assert_eq!(KEYS.map(|key| uneven.node(key.as_bytes())), [1, 1, 2, 2, 2]);
}

#[test]
fn new_returns_none_without_points() {
    assert_eq!(Ring::new(&[]), None);
    assert_eq!(Ring::new(&[server("a", 1, 0)]), None);
    let one = Ring::new(&[server("a", 1, 7)]).unwrap();
    assert_eq!((one.points.len(), one.node(b"anything")), (160, 0));
}

proptest! {
    /// A new server takes over keys, and no key moves between the other servers.
    #[test]
    fn a_new_server_only_takes_over_keys(keys in prop::collection::vec("[a-z0-9:]{1,30}", 1..50)) {
        let four = ["a", "b", "c", "d"].map(|host| server(host, 11211, 1));
        let (before, after) = (Ring::new(&four[..3]).unwrap(), Ring::new(&four).unwrap());
        for key in keys {
            let (was, is) = (before.node(key.as_bytes()), after.node(key.as_bytes()));
            prop_assert!(is == was || is == 3, "{}: {} then {}", key, was, is);
        }
    }
}

#[test]
fn keys_are_distributed_by_weight() {
    let ring = Ring::new(&[server("a", 11211, 1), server("b", 11211, 3)]).unwrap();
    let keys = 20_000;
    let of_b = (0..keys).filter(|n| ring.node(format!("key:{n}").as_bytes()) == 1).count();
    let share = of_b as f64 / f64::from(keys);
    assert!((0.65..0.85).contains(&share), "{share}");
}
