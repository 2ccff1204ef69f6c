//! A run leaves the same data in the database as the original.

use super::common::{Program, Server, tools};

/// Name, type and length or value of every key, sorted by name.
fn contents(server: &Server, database: &str) -> Vec<String> {
    let ask = |words: &[&str]| server.ask(&[&["-n", database], words].concat());
    let names = ask(&["KEYS", "*"]);
    let mut keys: Vec<&str> = names.lines().filter(|name| !name.is_empty()).collect();
    keys.sort_unstable();
    let of = |key: &&str| {
        let kind = ask(&["TYPE", key]);
        let length = match kind.as_str() {
            "string" => ask(&["GET", key]),
            "list" => ask(&["LLEN", key]) + " of " + &ask(&["LINDEX", key, "0"]),
            "set" => ask(&["SCARD", key]),
            "hash" => ask(&["HGETALL", key]).replace('\n', " "),
            "zset" => ask(&["ZCARD", key]),
            other => panic!("{other}"),
        };
        format!("{key} {kind} {length}")
    };
    keys.iter().map(of).collect()
}

/// Asserts that both programs leave the same data in the database, and returns it.
#[track_caller]
fn assert_same_as_original(arguments: &[&str], database: &str) -> Vec<String> {
    let (theirs, ours) = (Server::new(), Server::new());
    theirs.run(Program::Original, arguments).code(0);
    ours.run(Program::Ours, arguments).code(0);
    let (expected, got) = (contents(&theirs, database), contents(&ours, database));
    assert_eq!(got, expected);
    got
}

const NAMES: &str = "ping,set,get,incr,lpush,rpush,lpop,sadd,hset,zadd,lrange_100,mset";

#[test]
fn all_tests_leave_the_same_data() {
    if !tools() {
        return;
    }
    let left = assert_same_as_original(&["-n", "500", "-q", "-d", "20", "-t", NAMES], "0");
    assert_eq!(left.len(), 6, "{left:?}");
    assert!(left.contains(&"counter:__rand_int__ string 500".to_string()), "{left:?}");
    assert_same_as_original(
        &["-n", "300", "-q", "-t", "set,lpush", "--dbnum", "3", "--threads", "2"],
        "3",
    );
    assert_same_as_original(&["-n", "300", "-q", "-P", "10", "-t", "rpush,incr"], "0");
    assert_same_as_original(&["-n", "100", "-q", "set", "k:__rand_int__", "a b"], "0");
    assert_same_as_original(
        &["-n", "100", "-q", "-r", "1", "set", "k:__rand_int__", "\\x00 \"q\""],
        "0",
    );
}

#[test]
fn exactly_n_requests_are_sent() {
    if !tools() {
        return;
    }
    // The original sends whole pipelines, here 1008.
    let server = Server::new();
    let ran = server.ours(&["-n", "1000", "-P", "16", "-c", "7", "--threads", "2", "-t", "incr"]);
    assert!(ran.code(0).stdout.contains("  1000 requests completed in "));
    assert_eq!(server.ask(&["GET", "counter:__rand_int__"]), "1000");
}

#[test]
fn random_keys_are_within_the_keyspace() {
    if !tools() {
        return;
    }
    let server = Server::new();
    server.ours(&["-n", "2000", "-q", "-t", "set,sadd,zadd", "-r", "50", "-P", "4"]).code(0);
    // The chance that 2000 draws miss any of 50 keys is below 1e-15.
    assert_eq!(server.ask(&["DBSIZE"]), "52");
    assert_eq!(server.ask(&["SCARD", "myset"]), "50");
    let lowest = server.ask(&["ZRANGE", "myzset", "0", "0", "WITHSCORES"]);
    assert!(lowest.lines().nth(1).unwrap().parse::<f64>().unwrap() < 50.0, "{lowest}");
    assert_eq!(server.ask(&["GET", "key:000000000049"]), "VXK");
}

#[test]
fn reads_do_not_repeat_the_order_of_writes() {
    if !tools() {
        return;
    }
    let server = Server::new();
    let ran = server.ours(&["-n", "1000", "-q", "-t", "set,get", "-r", "1000", "--seed", "5"]);
    // SET drew about 632 of 1000 keys; GET draws independently.
    let ran = ran.code(0).with_stderr(" of 1000 GET found nothing");
    let missed = ran.stderr.split(" of 1000 GET").next().unwrap().rsplit(' ').next().unwrap();
    let missed: u64 = missed.parse().unwrap();
    assert!((280..460).contains(&missed), "{missed}");
}

#[test]
fn the_same_seed_draws_the_same_keys() {
    if !tools() {
        return;
    }
    let keys = |seed: &str| {
        let server = Server::new();
        let arguments = ["-n", "50", "-q", "-t", "set", "-r", "1000000", "--seed", seed];
        server.ours(&arguments).code(0);
        contents(&server, "0")
    };
    let first = keys("7");
    assert_eq!((first.len(), &first), (50, &keys("7")));
    assert_ne!(first, keys("8"));
}

#[test]
fn sequential_numbers_skip_no_key() {
    if !tools() {
        return;
    }
    let server = Server::new();
    let counting = ["-q", "--sequential", "--threads", "2", "-c", "5"];
    let fill = ["-n", "300", "-r", "300", "-t", "set", "-P", "7"];
    server.ours(&[&counting[..], &fill].concat()).code(0);
    assert_eq!(server.ask(&["DBSIZE"]), "300");
    // Ten keys per request.
    let fill = ["-n", "50", "-r", "500", "-t", "mset"];
    server.ours(&[&counting[..], &fill].concat()).code(0);
    assert_eq!(server.ask(&["DBSIZE"]), "500");
    let command = ["-n", "20", "-r", "20", "zadd", "z", "__rand_1st__", "m:__rand_1st__"];
    server.ours(&[&counting[..], &command].concat()).code(0);
    let pairs = server.ask(&["ZRANGE", "z", "0", "-1", "WITHSCORES"]);
    let pairs: Vec<&str> = pairs.lines().collect();
    assert_eq!(pairs.len(), 40);
    for pair in pairs.chunks(2) {
        assert_eq!(pair[0], format!("m:{:012}", pair[1].parse::<u64>().unwrap()));
    }
}

#[test]
fn shared_numbers_are_the_same_within_a_request() {
    if !tools() {
        return;
    }
    let server = Server::new();
    let command = ["set", "k:__rand_2nd__", "__rand_2nd__ __rand_3rd__ __data__"];
    server.ours(&[&["-n", "200", "-q", "-r", "100000", "-d", "9"], &command[..]].concat()).code(0);
    let mut differ = 0;
    for line in contents(&server, "0") {
        let words: Vec<&str> = line.split([' ', ':']).collect();
        let [_, key, _, second, third, data] = words[..] else { panic!("{line}") };
        assert_eq!((key, data.len()), (second, 9), "{line}");
        differ += u32::from(second != third);
    }
    assert!(differ > 100, "{differ}");
}

#[test]
fn mget_runs_if_selected() {
    if !tools() {
        return;
    }
    let server = Server::new();
    let ran = server.ours(&["-n", "100", "-q", "-t", "set,mget", "-r", "10"]).code(0);
    assert!(ran.stdout.contains("MGET (10 keys): "), "{ran:?}");
    let calls = server.ask(&["INFO", "commandstats"]);
    assert!(calls.contains("cmdstat_mget:calls=100,"), "{calls}");
}
