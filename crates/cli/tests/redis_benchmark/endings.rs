//! Errors and interruptions: exit codes, the server's error replies, and hidden passwords.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::common::{Program, Ran, Server, ours, run, tools};

#[test]
fn an_error_reply_ends_the_run_and_is_shown() {
    if !tools() {
        return;
    }
    let server = Server::new();
    for command in [&["nosuchcommand", "a"][..], &["set", "a"], &["incr", "text"]] {
        server.ask(&["SET", "text", "x"]);
        let arguments = [&["-n", "10", "-q"], command].concat();
        let original = server.run(Program::Original, &arguments).code(1);
        let own = server.run(Program::Ours, &arguments).code(1);
        let words = original.stderr.lines().find(|l| l.starts_with("Error from server: ")).unwrap();
        let is_same = |line: &str| line.trim_end() == words.trim_end();
        assert!(own.stderr.lines().any(is_same), "{words}\n{own:#?}");
    }
}

#[test]
fn an_invalid_database_is_an_error() {
    if !tools() {
        return;
    }
    let server = Server::new();
    let ran = server.ours(&["-n", "10", "-q", "--dbnum", "99", "-t", "set"]).code(1);
    ran.with_stderr("DB index is out of range");
}

#[test]
fn a_missing_or_wrong_password_is_an_error() {
    if !tools() {
        return;
    }
    let server = Server::with(&["--requirepass", "right-word"]);
    let arguments = ["-n", "10", "-q", "-t", "set"];
    server.run(Program::Original, &arguments).code(1).with_stderr("NOAUTH");
    server
        .ours(&arguments)
        .code(1)
        .with_stderr("replied with error: NOAUTH Authentication required.");
    let wrong = [&["-a", "wrong-word"], &arguments[..]].concat();
    server.run(Program::Original, &wrong).code(1).with_stderr("WRONGPASS");
    let ran = server.ours(&wrong).code(1).with_stderr("WRONGPASS").without_stderr("wrong-word");
    assert_eq!(ran.stdout, "");
    // For an unknown command the server's error reply quotes the arguments.
    let open = Server::with(&["--rename-command", "AUTH", ""]);
    let ran =
        open.ours(&["-a", "my-hushed-word", "-n", "10"]).code(1).with_stderr("unknown command");
    ran.with_stderr("***").without_stderr("my-hushed-word");
}

#[test]
fn minimal_permissions_are_enough() {
    if !tools() {
        return;
    }
    let server = Server::new();
    server.ask(&["ACL", "SETUSER", "me", "on", ">pw", "~key:*", "+set", "+get"]);
    let ran = server.ours(&["--user", "me", "-a", "pw", "-n", "50", "-q", "-t", "set,get"]).code(0);
    ran.with_stderr("does not report its configuration");
    let ran = server.ours(&["--user", "me", "-a", "pw", "-n", "50", "-q", "-t", "incr"]).code(1);
    ran.with_stderr("Error from server: NOPERM");
}

#[test]
fn an_unreachable_server_is_an_error() {
    let mut command = Command::new(ours());
    let port = rig::free_port(0).unwrap().to_string();
    let ran = run(command.args(["redis-benchmark", "-p", &port, "-n", "10"])).code(1);
    let ran = ran.with_stderr("could not connect to Redis: nothing is listening at");
    assert_eq!(ran.stdout, "");
    let mut command = Command::new(ours());
    let ran = run(command.args(["redis-benchmark", "-s", "/no/such/socket", "-n", "10"])).code(1);
    ran.with_stderr("/no/such/socket");
}

#[test]
fn errors_name_the_invalid_argument() {
    for (arguments, words) in [
        (&["--foo"][..], "error: invalid option `--foo` (expected"),
        (&["-n"], "the argument of option `-n` is missing"),
        (&["-n", "1e6"], "invalid value `1e6` of option `-n` (expected a whole number)"),
        (&["--mptcp"], "not supported"),
        (&["-c", "1000", "-P", "100000", "-n", "99999999"], "is `99999999` requests in flight"),
        (
            &["-c", "1000", "-d", "1073741824"],
            "of 1073741824 bytes (-d) need `1000 GiB` (expected at",
        ),
    ] {
        let mut command = Command::new(ours());
        let ran = run(command.arg("redis-benchmark").args(arguments)).code(1).with_stderr(words);
        assert_eq!((ran.stdout.as_str(), ran.stderr.lines().count()), ("", 1));
    }
}

/// A running cachedyno; killed if the test fails.
struct Running(Option<Child>);

impl Running {
    fn new(server: &Server, arguments: &[&str]) -> Self {
        let mut command = Command::new(ours());
        command.args(["redis-benchmark", "-p", &server.port.to_string()]).args(arguments);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Self(Some(command.spawn().unwrap()))
    }

    fn pid(&self) -> u32 {
        self.0.as_ref().unwrap().id()
    }

    /// Sends SIGINT, as Ctrl-C does.
    fn interrupt(mut self) -> Ran {
        kill(Pid::from_raw(self.pid().cast_signed()), Signal::SIGINT).unwrap();
        let output = self.0.take().unwrap().wait_with_output().unwrap();
        Ran::of(&output)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[track_caller]
fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < Duration::from_secs(30), "timed out waiting until {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

fn clients(server: &Server) -> usize {
    server.ask(&["CLIENT", "LIST"]).lines().count() - 1
}

#[test]
fn ctrl_c_prints_the_result_so_far() {
    if !tools() {
        return;
    }
    let server = Server::new();
    let running = Running::new(&server, &["-n", "1000000000", "-t", "incr,lpush"]);
    wait_until("requests are counted", || server.ask(&["EXISTS", "counter:__rand_int__"]) == "1");
    thread::sleep(Duration::from_millis(300));
    let ran = running.interrupt().code(130);
    let reported = ran.stdout.split(" requests completed in ").next().unwrap();
    let reported: u64 = reported.rsplit(' ').next().unwrap().parse().unwrap();
    let counted: u64 = server.ask(&["GET", "counter:__rand_int__"]).parse().unwrap();
    // Requests in flight at the end are not counted.
    let is_close = reported <= counted && counted <= reported + 50;
    assert!(reported > 0 && is_close, "{reported} of {counted}");
    assert!(ran.stdout.contains("throughput summary") && !ran.stdout.contains("LPUSH"), "{ran:?}");
    ran.with_stderr("per request");
}

#[test]
fn loops_end_with_ctrl_c() {
    if !tools() {
        return;
    }
    let server = Server::new();
    let running = Running::new(&server, &["-l", "-q", "-n", "50", "-t", "incr"]);
    let count = || server.ask(&["GET", "counter:__rand_int__"]).parse().unwrap_or(0);
    wait_until("the next loop has started", || count() > 200);
    let ran = running.interrupt().code(130);
    assert!(ran.stdout.matches("INCR: ").count() >= 4, "{ran:?}");
    assert!(ran.stdout.contains("msec\n\n \rINCR"), "{ran:?}");
}

#[test]
fn idle_connections_do_nothing() {
    if !tools() {
        return;
    }
    let server = Server::new();
    let running = Running::new(&server, &["-I", "-c", "20"]);
    // One more connection has read the configuration.
    wait_until("all clients are connected", || clients(&server) == 21);
    thread::sleep(Duration::from_millis(400));
    assert_eq!(server.ask(&["DBSIZE"]), "0");
    let ran = running.interrupt().code(130);
    assert!(ran.stdout.starts_with("Creating 20 idle connections and waiting forever"), "{ran:?}");
    assert!(ran.stdout.contains("clients: 20\r"), "{ran:?}");
    assert_eq!(clients(&server), 0);

    let mut running = Running::new(&server, &["-I", "-c", "3"]);
    wait_until("all clients are connected", || clients(&server) == 4);
    thread::sleep(Duration::from_millis(100));
    server.ask(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
    let ran = Ran::of(&running.0.take().unwrap().wait_with_output().unwrap()).code(1);
    ran.with_stderr("closed an idle connection");
}

#[test]
fn the_limit_of_open_files_is_raised() {
    if !tools() {
        return;
    }
    let server = Server::new();
    let (program, port) = (ours().display(), server.port);
    let line =
        format!("ulimit -Sn 64; exec {program} redis-benchmark -p {port} -c 200 -n 500 -q -t incr");
    run(Command::new("sh").args(["-c", &line])).code(0);
    assert_eq!(server.ask(&["GET", "counter:__rand_int__"]), "500");
}

#[test]
fn a_lost_connection_is_an_error() {
    if !tools() {
        return;
    }
    let server = Server::new();
    let mut running = Running::new(&server, &["-n", "1000000000", "-q", "-t", "incr"]);
    wait_until("requests are counted", || server.ask(&["EXISTS", "counter:__rand_int__"]) == "1");
    server.ask(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
    let ran = Ran::of(&running.0.take().unwrap().wait_with_output().unwrap()).code(1);
    ran.with_stderr("Error: ").with_stderr("lost");
}

#[test]
fn passwords_never_appear_in_the_process_list_or_output() {
    if !tools() {
        return;
    }
    let server = Server::with(&["--requirepass", "hushed-word"]);
    server.ask(&["ACL", "SETUSER", "me", "on", ">hushed-word", "~*", "+@all"]);
    let alone = format!("redis://hushed-word@127.0.0.1:{}", server.port);
    let of_user = format!("redis://me:hushed-word@127.0.0.1:{}", server.port);
    for arguments in [&["-a", "hushed-word"][..], &["-u", &alone], &["-u", &of_user]] {
        let long = [arguments, &["-n", "1000000000", "-q", "-t", "incr", "--tls-ciphers", "x"]];
        let running = Running::new(&server, &long.concat());
        wait_until("requests are counted", || {
            server.ask(&["EXISTS", "counter:__rand_int__"]) == "1"
        });
        let proc = |file: &str| {
            let text = fs::read(format!("/proc/{}/{file}", running.pid())).unwrap();
            String::from_utf8_lossy(&text).into_owned()
        };
        let (line, environment) = (proc("cmdline"), proc("environ"));
        assert!(!environment.contains("hushed-word"), "{environment}");
        assert!(!line.contains("hushed-word") && line.contains("redis-benchmark"), "{line}");
        let ran = running.interrupt().code(130).without_stderr("hushed-word");
        assert!(!ran.stdout.contains("hushed-word"));
        server.ask(&["FLUSHALL"]);
    }
}
