//! A test cluster of three Redis servers.

use std::net::TcpStream;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use cachedyno_drivers::redis::cluster::{SlotMap, slot};
use cachedyno_drivers::redis::requests::{Placeholders, custom};
use cachedyno_drivers::redis::{Control, Replies};
use load::wire::protocol::{Expect, Judged};
use load::wire::route::Route as _;
use model::{Endpoint, NetAddress};

use super::common::{DONE, Line, OK, Server, TIMEOUT, VALUE, installed};

struct Cluster {
    servers: Vec<(u16, Server)>,
}

impl Cluster {
    /// Three primaries without replicas, each with a third of the slots.
    fn start() -> Self {
        let servers: Vec<(u16, Server)> = (0..3)
            .map(|_| {
                let (port, bus) = (
                    rig::free_port(0).unwrap().to_string(),
                    rig::free_port(0).unwrap().to_string(),
                );
                let args = ["--port", &port, "--cluster-port", &bus, "--cluster-enabled", "yes"];
                (port.parse().unwrap(), Server::redis(&args))
            })
            .collect();
        let mut create = Command::new("redis-cli");
        create.args(["--cluster", "create"]);
        create.args(servers.iter().map(|(port, _)| format!("127.0.0.1:{port}")));
        let output = create.args(["--cluster-yes"]).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let cluster = Self { servers };
        let started = Instant::now();
        let known = |server: &Server| {
            server.redis_cli(&["CLUSTER", "INFO"]).contains("cluster_state:ok")
                && server.redis_cli(&["CLUSTER", "SHARDS"]).matches("online").count() == 3
        };
        while !cluster.servers.iter().all(|(_, server)| known(server)) {
            assert!(started.elapsed() < Duration::from_secs(60), "the cluster does not form");
            thread::sleep(Duration::from_millis(100));
        }
        cluster
    }

    fn map(&self, through: usize) -> SlotMap {
        let address = NetAddress::Tcp("127.0.0.1".into(), self.servers[through].0);
        let endpoint = Endpoint::redis(address);
        let mut control = Control::connect(&endpoint, None, TIMEOUT).unwrap();
        let slots = control.ask(&[b"CLUSTER", b"SLOTS"]).unwrap();
        SlotMap::from_slots(&slots, "127.0.0.1").unwrap()
    }

    /// The server with a number in the map.
    fn of(&self, map: &SlotMap, node: usize) -> &Server {
        let port = map.nodes()[node].port;
        &self.servers.iter().find(|(p, _)| *p == port).unwrap().1
    }
}

fn ask(line: &mut Line<Replies>, command: &str, expect: &Expect) -> Judged {
    line.fill_in(&custom(command, &Placeholders::default()).unwrap().segments, 0, 1);
    line.receive(expect)
}

#[test]
fn a_real_clusters_keys_are_found() {
    if !installed("redis-server") || !installed("redis-cli") {
        return;
    }
    let cluster = Cluster::start();
    let first = cluster.map(0);
    for map in (0..3).map(|through| cluster.map(through)) {
        assert_eq!((map.nodes().len(), map.uncovered()), (3, 0));
        let owner = |map: &SlotMap, name: &str| map.nodes()[map.node(name.as_bytes())].port;
        for n in 0..500 {
            let name = format!("key:{n}");
            assert_eq!(owner(&map, &name), owner(&first, &name), "{name}");
        }
    }
    let names = ["", "a", "{a}b", "x{a}", "{}a", "{a", "a}", "{{a}}", "{a}{b}", "ü{ö}", "a{}{b}"];
    for name in
        names.iter().map(ToString::to_string).chain((0..200).map(|n| format!("key:{n:012}")))
    {
        let reply = cluster.servers[0].1.redis_cli(&["CLUSTER", "KEYSLOT", &name]);
        assert_eq!(reply, slot(name.as_bytes()).to_string(), "{name}");
    }
    redirections(&cluster);
}

/// Whichever server is queried, its redirect leads to the server in the map; and a slot that moves
/// is followed, first once and then permanently.
fn redirections(cluster: &Cluster) {
    let mut map = cluster.map(0);
    let mut lines: Vec<Line<Replies>> = (0..3)
        .map(|node| {
            let port = map.nodes()[node].port;
            let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
            stream.set_read_timeout(Some(TIMEOUT)).unwrap();
            Line::over(Box::new(stream))
        })
        .collect();
    for n in 0..100 {
        let name = format!("key:{n}");
        let own = map.node(name.as_bytes());
        for (node, line) in lines.iter_mut().enumerate() {
            match ask(line, &format!("SET {name} {n}"), &DONE) {
                Judged::Redirected { address, for_good: true } if node != own => {
                    assert_eq!(map.moved(name.as_bytes(), &address, true), Some(own));
                }
                OK if node == own => {}
                other => panic!("{name} on {node}: {other:?}"),
            }
        }
    }
    let (name, slot) = ("moving", slot(b"moving").to_string());
    let from = map.node(name.as_bytes());
    let to = (from + 1) % 3;
    let id = |node| cluster.of(&map, node).redis_cli(&["CLUSTER", "MYID"]);
    let (from_id, to_id) = (id(from), id(to));
    let set_slot = |node, how: &str, id: &str| {
        let reply = cluster.of(&map, node).redis_cli(&["CLUSTER", "SETSLOT", &slot, how, id]);
        assert_eq!(reply, "OK");
    };
    set_slot(to, "IMPORTING", &from_id);
    set_slot(from, "MIGRATING", &to_id);
    let Judged::Redirected { address, for_good: false } =
        ask(&mut lines[from], "GET moving", &VALUE)
    else {
        panic!("not referred on")
    };
    set_slot(to, "NODE", &to_id);
    set_slot(from, "NODE", &to_id);
    assert_eq!(map.moved(name.as_bytes(), &address, false), Some(to));
    assert_eq!(map.node(name.as_bytes()), from);
    lines[to].send(map.asking());
    assert_eq!(lines[to].receive(&DONE), OK);
    assert_eq!(ask(&mut lines[to], "GET moving", &VALUE), Judged::Miss);
    let Judged::Redirected { address, for_good: true } =
        ask(&mut lines[from], "GET moving", &VALUE)
    else {
        panic!("not moved")
    };
    assert_eq!(map.moved(name.as_bytes(), &address, true), Some(to));
    assert_eq!(map.node(name.as_bytes()), to);
}
