//! Standard output has the original's format.

use std::process::{Command, Stdio};

use super::common::{Program, Ran, Server, form, run, tools, without_xadd};

/// Asserts that both programs print the same output for the same arguments, each against its own
/// server.
#[track_caller]
fn assert_same_as_original(settings: &[&str], arguments: &[&str]) {
    if !tools() {
        return;
    }
    let (theirs, ours) = (Server::with(settings), Server::with(settings));
    let original = theirs.run(Program::Original, arguments).code(0);
    let own = ours.run(Program::Ours, arguments).code(0);
    assert_same(&original, &own);
}

#[track_caller]
fn assert_same(original: &Ran, own: &Ran) {
    let (expected, got) = (form(&without_xadd(&original.stdout)), form(&without_xadd(&own.stdout)));
    assert!(expected.len() > 1, "{original:#?}");
    assert_eq!(got, expected, "{}\n{}", original.stdout, own.stdout);
}

#[test]
fn all_tests() {
    assert_same_as_original(&[], &["-n", "1000"]);
}

#[test]
fn all_tests_with_one_line_each() {
    assert_same_as_original(&[], &["-n", "1000", "-q"]);
}

#[test]
fn all_tests_as_csv() {
    assert_same_as_original(&[], &["-n", "1000", "--csv"]);
}

#[test]
fn two_tests_with_pipelines_and_random_keys() {
    assert_same_as_original(
        &[],
        &["-n", "4000", "-t", "set,get", "-P", "16", "-r", "1000", "-d", "100"],
    );
}

#[test]
fn a_custom_command() {
    let arguments = ["-n", "500", "-r", "100", "hset", "h:__rand_int__", "f", "a b"];
    assert_same_as_original(&[], &arguments);
    assert_same_as_original(&[], &[&["-q"], &arguments[..]].concat());
    assert_same_as_original(&[], &[&["--csv"], &arguments[..]].concat());
}

#[test]
fn threads_are_shown() {
    assert_same_as_original(&[], &["-n", "1000", "-t", "set", "--threads", "2"]);
}

#[test]
fn databases_resp3_and_tracking() {
    assert_same_as_original(&[], &["-n", "500", "-t", "set,lpush", "--dbnum", "3"]);
    assert_same_as_original(&[], &["-n", "500", "-t", "set,get", "-3", "-q"]);
    assert_same_as_original(&[], &["-n", "500", "-t", "set,get", "-3", "--enable-tracking", "-q"]);
}

#[test]
fn passwords_and_persistence() {
    let settings = ["--requirepass", "hush", "--save", "", "--appendonly", "yes"];
    assert_same_as_original(&settings, &["-n", "200", "-t", "set", "-a", "hush"]);
}

#[test]
fn a_server_without_config_command() {
    assert_same_as_original(&["--rename-command", "CONFIG", ""], &["-n", "200", "-t", "set"]);
}

#[test]
fn few_digits_and_few_clients() {
    assert_same_as_original(&[], &["-n", "2000", "-t", "set", "-c", "3", "--precision", "1"]);
    assert_same_as_original(&[], &["-n", "1", "-t", "set,get", "-q"]);
}

#[test]
fn a_unix_socket_overrides_host_and_port() {
    if !tools() {
        return;
    }
    let server = Server::new();
    let over_socket = |program: Program| {
        let mut command = program.command();
        command.args(["-h", "nowhere.invalid", "-p", "1", "-n", "500", "-q", "-t", "ping,set"]);
        run(command.arg("-s").arg(server.socket())).code(0)
    };
    assert_same(&over_socket(Program::Original), &over_socket(Program::Ours));
}

#[test]
fn uris() {
    if !tools() {
        return;
    }
    let server = Server::with(&["--requirepass", "hu:sh"]);
    let uri = format!("redis://hu%3Ash@127.0.0.1:{}/2", server.port);
    let by_uri = |program: Program| {
        run(program.command().args(["-u", &uri, "-n", "100", "-q", "-t", "set"])).code(0)
    };
    assert_same(&by_uri(Program::Original), &by_uri(Program::Ours));
    assert_eq!(server.ask(&["-n", "2", "DBSIZE"]), "1");
    server.ask(&["ACL", "SETUSER", "me", "on", ">p w", "~*", "+@all"]);
    let uri = format!("REDIS://me:p%20w@127.0.0.1:{}", server.port);
    let by_user = |program: Program| {
        run(program.command().args(["-u", &uri, "-n", "100", "-q", "-t", "set"])).code(0)
    };
    assert_same(&by_user(Program::Original), &by_user(Program::Ours));
}

#[test]
fn the_last_argument_from_standard_input() {
    if !tools() {
        return;
    }
    let server = Server::new();
    let piped = |program: Program, key: &str| {
        let mut command = program.command();
        command.arg("-p").arg(server.port.to_string()).args(["-n", "50", "-x", "set", key]);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"two\nlines").unwrap();
        Ran::of(&child.wait_with_output().unwrap()).code(0)
    };
    assert_same(&piped(Program::Original, "k1"), &piped(Program::Ours, "k2"));
    assert_eq!(server.ask(&["GET", "k2"]), "two\nlines");
    assert_eq!(server.ask(&["GET", "k1"]), "two\nlines");
}

#[test]
fn cells_have_the_same_width() {
    if !tools() {
        return;
    }
    let server = Server::new();
    let widths = |program: Program| {
        let stdout = server.run(program, &["-n", "1000", "-t", "set"]).stdout;
        let mut lines = stdout.lines().skip_while(|line| !line.contains("latency summary"));
        lines.by_ref().skip(1).map(str::len).collect::<Vec<_>>()
    };
    assert_eq!(widths(Program::Original)[..2], widths(Program::Ours)[..2]);
}

#[test]
fn progress_overwrites_itself() {
    if !tools() {
        return;
    }
    let server = Server::new();
    let stdout = server.ours(&["--duration", "2", "-q", "-t", "set"]).code(0).stdout;
    let line = stdout.lines().next().unwrap();
    let states: Vec<&str> = line.split('\r').collect();
    let updates: Vec<&&str> = states.iter().filter(|s| s.starts_with("SET: rps=")).collect();
    assert!(updates.len() >= 3, "{line}");
    for state in updates {
        let rate = state.split('=').nth(1).unwrap().split(' ').next().unwrap();
        assert!(rate.parse::<f64>().unwrap() > 100.0, "{state}");
        assert!(state.contains(" (overall: ") && state.contains(") avg_msec="), "{state}");
    }
    let last = states.last().unwrap();
    assert!(last.starts_with("SET: ") && last.contains(" requests per second, p50="), "{line}");
    // The previous text is overwritten by the same number of blanks.
    let blanks = states[states.len() - 2];
    assert!(blanks.trim().is_empty() && blanks.len() > 40, "{line}");
}

#[test]
fn help_and_version() {
    let ours = |argument: &str| {
        let mut command = Command::new(super::common::ours());
        run(command.args(["redis-benchmark", argument])).code(0)
    };
    let help = ours("--help");
    for flag in ["-h HOST", "--cluster", "--rps", "--tls-ciphersuites", "Exit codes"] {
        assert!(help.stdout.contains(flag), "no `{flag}` in {}", help.stdout);
    }
    assert!(help.stdout.lines().all(|line| line.chars().count() <= 100));
    let version = ours("--version").stdout;
    assert!(
        version.starts_with("redis-benchmark 8.") && version.contains("cachedyno"),
        "{version}"
    );
    assert_eq!(ours("-v").stdout, version);
}
