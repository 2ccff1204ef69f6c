//! Compares the ring with PHP's extension memcached, which uses libmemcached.

use std::fmt::Write as _;
use std::process::Command;

use cachedyno_drivers::memcached::ketama::{Ring, Server};

/// Prints the host and port of each key's server. Input: the method for adding servers, servers as
/// `host port weight`, an empty line, and keys.
const ORACLE: &str = r#"
$lines = file('php://stdin', FILE_IGNORE_NEW_LINES);
$cache = new Memcached();
$cache->setOption(Memcached::OPT_LIBKETAMA_COMPATIBLE, true);
$at = array_search('', $lines, true);
foreach (array_slice($lines, 1, $at - 1) as $line) {
    [$host, $port, $weight] = explode(' ', $line);
    $servers[] = [$host, (int) $port, (int) $weight];
}
if ($lines[0] === 'list') {
    $cache->addServers($servers);
} else {
    foreach ($servers as $server) {
        $cache->addServer(...$server);
    }
}
foreach (array_slice($lines, $at + 1) as $key) {
    $server = $cache->getServerByKey($key);
    echo $server['host'], ' ', $server['port'], "\n";
}
"#;

fn has_extension() -> bool {
    let asked = Command::new("php").args(["-r", "echo (int) class_exists('Memcached');"]).output();
    let there = asked.is_ok_and(|output| output.stdout == b"1");
    if !there {
        eprintln!("skipped: php with the extension memcached is not installed (php-memcached)");
    }
    there
}

fn asked(how: &str, servers: &[Server], keys: &[String]) -> Vec<String> {
    let mut input = format!("{how}\n");
    for Server { host, port, weight } in servers {
        writeln!(input, "{host} {port} {weight}").unwrap();
    }
    writeln!(input, "\n{}", keys.join("\n")).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("input");
    std::fs::write(&file, input).unwrap();
    let stdin = std::fs::File::open(file).unwrap();
    let output = Command::new("php").args(["-r", ORACLE]).stdin(stdin).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().lines().map(String::from).collect()
}

#[test]
fn keys_map_to_the_same_servers_as_in_php() {
    if !has_extension() {
        return;
    }
    let server = |host: &str, port, weight| Server { host: host.into(), port, weight };
    let many: Vec<Server> =
        (0..17).map(|n| server(&format!("cache{n}.shop.example"), 11211, 1 + n % 5)).collect();
    let three = ["10.0.0.1", "10.0.0.2", "10.0.0.3"].map(|host| server(host, 11211, 1)).to_vec();
    let sets = [
        ("one by one", vec![server("127.0.0.1", 11211, 1)]),
        ("one by one", three),
        ("list", vec![server("localhost", 11211, 1), server("localhost", 11212, 1)]),
        ("list", vec![server("a", 11211, 1), server("b", 11300, 3), server("/run/m.sock", 0, 2)]),
        ("one by one", vec![server("b", 11300, 3), server("/run/m.sock", 11211, 2)]),
        ("list", vec![server("a", 11211, 33), server("b", 11211, 33), server("c", 11211, 67)]),
        ("list", vec![server("a", 11211, 1), server("b", 11211, 100)]),
        ("list", many),
    ];
    let forms =
        |n: u32| [format!("key:{n:012}"), format!("memc.sess.key.{:x}", n * 7_919), n.to_string()];
    let keys: Vec<String> = (0..2000).flat_map(forms).collect();
    for (how, servers) in sets {
        let ring = Ring::new(&servers).unwrap();
        let answers = asked(how, &servers, &keys);
        assert_eq!(answers.len(), keys.len());
        for (key, answer) in keys.iter().zip(answers) {
            let Server { host, port, .. } = &servers[ring.node(key.as_bytes())];
            assert_eq!(answer, format!("{host} {port}"), "{key} on {servers:?} {how}");
        }
    }
}
