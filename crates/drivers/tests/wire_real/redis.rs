//! A test Redis server: every type of reply, logins, errors, command lines.

use std::io::Write as _;
use std::process::{Command, Stdio};

use cachedyno_drivers::redis::Replies;
use cachedyno_drivers::redis::hello::{Hello, Login, hello};
use cachedyno_drivers::redis::requests::{Placeholders, custom, operation};
use load::wire::protocol::{Expect, Judged, Shape};
use model::{ErrorClass, Secret};

use super::common::{ANY, DONE, Line, OK, Server, VALUE, VALUE_BYTES, installed};

const HOLES: Placeholders =
    Placeholders { key_bytes: Some(16), value_bytes: Some(VALUE_BYTES), below: None };

fn ask(line: &mut Line<Replies>, command: &str, expect: &Expect) -> Judged {
    line.fill_in(&custom(command, &HOLES).unwrap().segments, 7, 1);
    line.receive(expect)
}

fn class(judged: &Judged) -> ErrorClass {
    match judged {
        Judged::Error(class, _) => *class,
        other => panic!("{other:?}"),
    }
}

fn greet(line: &mut Line<Replies>, greeting: &Hello) -> Vec<Judged> {
    line.send(&greeting.bytes);
    greeting.replies.iter().map(|greeting| line.receive(&greeting.expect)).collect()
}

fn resp3() -> Login<'static> {
    Login { resp3: true, client_name: Some("test"), ..Login::default() }
}

#[test]
fn operations_and_values_on_a_real_server() {
    if !installed("redis-server") {
        return;
    }
    let server = Server::redis(&[]);
    for piece in [1, 7, 1000, 65_536] {
        let mut line = server.connect::<Replies>();
        line.piece = piece;
        let request = |name| operation(name, Some(60), &HOLES).unwrap().segments;
        let own = Expect { bytes: Some(VALUE_BYTES as u32), verify: true, key: 42, ..VALUE };
        let verified = Judged::Ok { verified: true };
        // Many at once, so that replies follow each other.
        for version in 0..50 {
            line.fill_in(&request("set"), 42, version);
            line.fill_in(&request("get"), 42, version);
            line.fill_in(&request("get"), 43, version);
        }
        for _ in 0..50 {
            assert_eq!(line.receive(&DONE), OK);
            assert_eq!(line.receive(&own), verified);
            assert_eq!(line.receive(&own), Judged::Miss);
        }
        line.fill_in(&request("get"), 42, 0);
        assert_eq!(line.receive(&Expect { key: 43, ..own }), Judged::Wrong);
        line.fill_in(&request("get"), 42, 0);
        assert_eq!(line.receive(&Expect { bytes: Some(1000), ..own }), Judged::Wrong);
        assert_eq!(server.redis_cli(&["STRLEN", "key:000000000042"]), VALUE_BYTES.to_string());
        for name in ["ttl", "exists", "strlen", "expire", "touch", "append", "del", "incr", "decr"]
        {
            line.fill_in(&request(name), 42, 0);
            assert_eq!(line.receive(&ANY), OK, "{name}");
        }
        line.fill_in(&request("lpush"), 42, 0);
        let wrong_type = line.receive(&ANY);
        assert!(
            matches!(&wrong_type, Judged::Error(ErrorClass::Reply, w) if w.starts_with("WRONGTYPE"))
        );
        assert_eq!(server.redis_cli(&["FLUSHALL"]), "OK");
    }
}

#[test]
fn every_type_of_both_protocols() {
    if !installed("redis-server") {
        return;
    }
    let server = Server::redis(&["--enable-debug-command", "yes"]);
    for greeting in [hello(&Login::default()), hello(&resp3())] {
        for piece in [1, 10_000] {
            let mut line = server.connect::<Replies>();
            line.piece = piece;
            assert!(greet(&mut line, &greeting).iter().all(|judged| *judged == OK));
            for kind in ["string", "integer", "double", "null", "array", "set", "map", "attrib"] {
                let judged = ask(&mut line, &format!("DEBUG PROTOCOL {kind}"), &ANY);
                assert_eq!(judged, OK, "{kind}");
            }
            for kind in ["verbatim", "true", "false", "bignum"] {
                let judged = ask(&mut line, &format!("DEBUG PROTOCOL {kind}"), &ANY);
                assert_eq!(judged, OK, "{kind}");
            }
            assert_eq!(ask(&mut line, "DEBUG PROTOCOL string", &VALUE), OK);
            assert_eq!(ask(&mut line, "DEBUG PROTOCOL verbatim", &VALUE), OK);
            assert_eq!(ask(&mut line, "DEBUG PROTOCOL null", &VALUE), Judged::Miss);
            assert_eq!(ask(&mut line, "DEBUG PROTOCOL map", &VALUE), Judged::Wrong);
            assert_eq!(class(&ask(&mut line, "DEBUG PROTOCOL error", &ANY)), ErrorClass::Reply);
            assert_eq!(ask(&mut line, "COMMAND DOCS", &ANY), OK);
            assert_eq!(ask(&mut line, "INFO everything", &VALUE), OK);
        }
    }
}

#[test]
fn pushes_are_not_replies() {
    if !installed("redis-server") {
        return;
    }
    let server = Server::redis(&["--enable-debug-command", "yes"]);
    let mut line = server.connect::<Replies>();
    greet(&mut line, &hello(&resp3()));
    assert_eq!(ask(&mut line, "CLIENT TRACKING ON BCAST", &DONE), OK);
    for _ in 0..20 {
        // The invalidation arrives before or after the next reply and does not count as one.
        assert_eq!(server.redis_cli(&["SET", "a", "1"]), "OK");
        assert_eq!(ask(&mut line, "GET a", &VALUE), OK);
    }
    let shown = server.redis_cli(&["CLIENT", "LIST"]);
    assert!(shown.contains("name=test") && shown.contains("resp=3"), "{shown}");
}

#[test]
fn logins_and_databases() {
    if !installed("redis-server") {
        return;
    }
    let server = Server::redis(&["--requirepass", "let me in"]);
    let (right, wrong) = (Secret::new("let me in"), Secret::new("open"));
    let mut line = server.connect::<Replies>();
    assert_eq!(class(&ask(&mut line, "GET a", &VALUE)), ErrorClass::Denied);
    for user in [None, Some("default")] {
        let login = Login { user, password: Some(&right), database: 3, ..resp3() };
        let mut line = server.connect::<Replies>();
        assert_eq!(greet(&mut line, &hello(&login)), [OK, OK, OK, OK]);
        let listed = ask(&mut line, "SET a 1", &DONE);
        assert_eq!(listed, OK);
        let login = Login { password: Some(&wrong), ..login };
        let mut line = server.connect::<Replies>();
        let answers = greet(&mut line, &hello(&login));
        assert!(answers.iter().all(|judged| class(judged) == ErrorClass::Denied), "{answers:?}");
    }
    let login = Login { password: Some(&right), database: 99, ..Login::default() };
    let answers = greet(&mut server.connect(), &hello(&login));
    assert_eq!((&answers[0], class(&answers[1])), (&OK, ErrorClass::Reply));
    let open = Server::redis(&[]);
    let login = Login { password: Some(&right), ..Login::default() };
    let answers = greet(&mut open.connect(), &hello(&login));
    assert_eq!(class(&answers[0]), ErrorClass::Denied, "{answers:?}");
}

#[test]
fn a_replica_is_refused_if_only_a_primary_will_do() {
    if !installed("redis-server") {
        return;
    }
    let server = Server::redis(&[]);
    let greeting = hello(&Login { primary_only: true, ..Login::default() });
    assert_eq!(greet(&mut server.connect(), &greeting), [OK]);
    assert_eq!(server.redis_cli(&["REPLICAOF", "127.0.0.1", "1"]), "OK");
    let answers = greet(&mut server.connect(), &greeting);
    assert!(matches!(&answers[..], [Judged::Error(_, text)] if text.contains("replica")));
    // Without the check, an empty replica answers reads.
    assert_eq!(ask(&mut server.connect(), "GET a", &VALUE), Judged::Miss);
}

#[test]
fn errors_have_the_right_class() {
    if !installed("redis-server") {
        return;
    }
    let server = Server::redis(&[]);
    let mut line = server.connect::<Replies>();
    assert_eq!(ask(&mut line, "CONFIG SET maxmemory 1", &DONE), OK);
    assert_eq!(class(&ask(&mut line, "SET __key__ __data__", &DONE)), ErrorClass::Full);
    assert_eq!(ask(&mut line, "CONFIG SET maxmemory 0", &DONE), OK);
    // An error inside a transaction's reply.
    for queued in ["MULTI", "SET a x", "INCR a", "GET a"] {
        assert_eq!(ask(&mut line, queued, &ANY), OK);
    }
    assert_eq!(class(&ask(&mut line, "EXEC", &ANY)), ErrorClass::Reply);
    assert_eq!(ask(&mut line, "CONFIG SET maxclients 1", &DONE), OK);
    let mut refused = server.connect::<Replies>();
    assert_eq!(class(&refused.receive(&ANY)), ErrorClass::Refused);
}

/// Checks that arguments are split as in redis-cli, using a server's echo.
#[test]
fn command_lines_are_split_as_redis_cli_does() {
    if !installed("redis-cli") || !installed("redis-server") {
        return;
    }
    let server = Server::redis(&[]);
    let arguments = [
        r"plain",
        r#""a b""#,
        r"'a b'",
        r#""\x41\x7a\xZZ""#,
        r#""\t\b\a\\\"""#,
        r"'it\'s'",
        r"a\tb",
        r#"a"b c""#,
        r"a'b c'",
        r#""""#,
        r"'\\ \x41'",
        r#""\q\x4""#,
        r#"ü"ä""#,
    ];
    let mut line = server.connect::<Replies>();
    for (number, argument) in arguments.iter().enumerate() {
        let key = format!("of:{number}");
        // Our result is stored and compared with redis-cli's parsing of the same text.
        assert_eq!(ask(&mut line, &format!("SET {key} {argument}"), &DONE), OK, "{argument}");
        let mut cli = Command::new("redis-cli")
            .arg("-s")
            .arg(server.socket())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let script = r"return redis.call('GET', KEYS[1]) == ARGV[1] and 'same' or 'other'";
        let text = format!("EVAL \"{script}\" 1 {key} {argument}\n");
        cli.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        let output = cli.wait_with_output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "same", "{argument}");
    }
    for broken in [r#""a"#, r"'a", r#""a"b"#, r"'a'b", r#""a\"#] {
        assert!(custom(&format!("SET k {broken}"), &HOLES).is_err(), "{broken}");
        assert_eq!(custom("GET k", &HOLES).unwrap().shape, Shape::Value);
    }
}
