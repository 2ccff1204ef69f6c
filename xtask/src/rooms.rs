//! Forbidden calls: pure crates must not use clocks, sockets or processes. Only `cli`, this crate
//! and tests may exit or `unwrap`. Only certain files may print or start other programs.

use crate::repo::{File, Repo, Violation};
use crate::rust::{Path, Source};

/// Pure crates, whose results depend only on their inputs.
const PURE_ROOMS: [&str; 4] = ["stats", "model", "workloads", "report"];

/// Paths that pure crates must not use, and their kind.
const IMPURE: [(&str, &str); 13] = [
    ("std::time::Instant", "a clock"),
    ("std::time::SystemTime", "a clock"),
    ("Instant::now", "a clock"),
    ("SystemTime::now", "a clock"),
    ("Timestamp::now", "a clock"),
    ("Zoned::now", "a clock"),
    ("std::thread::sleep", "a clock"),
    ("thread::sleep", "a clock"),
    ("std::net", "a socket"),
    ("std::os::unix::net", "a socket"),
    ("std::process", "a process"),
    ("process::Command", "a process"),
    ("process::id", "a process"),
];

/// Paths that `report` must not use in addition: it only creates text and does not write files.
const WRITING: [(&str, &str); 5] = [
    ("fs::write", "a file that is written"),
    ("File::create", "a file that is written"),
    ("File::create_new", "a file that is written"),
    ("File::options", "a file that is written"),
    ("OpenOptions", "a file that is written"),
];

/// Macros that print.
const PRINTING: [&str; 4] = ["println", "eprintln", "print", "eprint"];

/// The only file that writes to the terminal; it filters its output.
const PRINTER: &str = "crates/cli/src/output.rs";

/// Functions that write to the terminal, in addition to the macros.
const WRITERS: [&str; 3] = ["anstream", "io::stdout", "io::stderr"];

/// Files that may start other programs. Those get an environment without passwords, except when
/// cachedyno restarts itself.
const STARTERS: [&str; 3] = [
    "crates/rig/src/child.rs",
    "crates/cli/src/secrets.rs",
    "crates/cli/src/commands/redis_benchmark/mod.rs",
];

/// Checks all Rust code except tests.
pub(crate) fn check(repo: &Repo) -> Vec<Violation> {
    let mut found = Vec::new();
    for (file, source) in repo.rust() {
        found.extend(impure_paths(file, source));
        found.extend(misplaced_calls(file, source));
        found.extend(unfiltered(file, source));
    }
    found.retain(|v| !repo.files.iter().any(|f| f.path == v.path && f.is_test_line(v.line)));
    found.dedup();
    found
}

/// Clocks, sockets and processes in pure rooms, and written files in `report`.
fn impure_paths(file: &File, source: &Source) -> Vec<Violation> {
    let Some(room) = file.room().filter(|r| PURE_ROOMS.contains(r)) else { return Vec::new() };
    if !file.path.starts_with(&format!("crates/{room}/src/")) {
        return Vec::new();
    }
    let writing = if room == "report" { &WRITING[..] } else { &[] };
    let mut found = Vec::new();
    for Path { text: path, line, .. } in source.paths() {
        let ban = IMPURE.iter().chain(writing).find(|(banned, _)| names(&path, banned));
        if let Some((_, what)) = ban {
            let text = format!(
                "`{path}` is {what}, and `{room}` is a pure room: take its result as an argument"
            );
            found.push(file.violation(line, text));
        }
    }
    found
}

/// True if `path` contains the segments of `banned` in sequence.
fn names(path: &str, banned: &str) -> bool {
    let path: Vec<_> = path.split("::").collect();
    let banned: Vec<_> = banned.split("::").collect();
    path.windows(banned.len()).any(|window| window == banned)
}

/// Printing, exiting and `unwrap` outside of `cli`, `xtask` and build scripts.
fn misplaced_calls(file: &File, source: &Source) -> Vec<Violation> {
    let free = file.room() == Some("cli") || file.path.starts_with("xtask/");
    if free || file.name() == "build.rs" {
        return Vec::new();
    }
    let mut found = Vec::new();
    for (i, token) in source.tokens.iter().enumerate() {
        let text = if source.reads(i + 1, &["!"]) && PRINTING.iter().any(|p| token.is(p)) {
            format!("`{}!` outside of cli: return the text, or send an event", token.text)
        } else if source.reads(i, &[".", "unwrap", "(", ")"]) {
            "`.unwrap()` outside of tests: return an error, or `expect` why it cannot fail".into()
        } else {
            continue;
        };
        found.push(file.violation(token.first, text));
    }
    for Path { text: path, line, .. } in source.paths() {
        if names(&path, "process::exit") {
            let text = "`process::exit` outside of cli: return an error".to_owned();
            found.push(file.violation(line, text));
        }
    }
    found
}

/// Output that bypasses the terminal filter, and programs started with the full environment.
fn unfiltered(file: &File, source: &Source) -> Vec<Violation> {
    let is_source = file.path.starts_with("crates/") && file.path.contains("/src/");
    if !is_source {
        return Vec::new();
    }
    let mut found = Vec::new();
    if file.room() == Some("cli") && file.path != PRINTER {
        for (i, token) in source.tokens.iter().enumerate() {
            if source.reads(i + 1, &["!"]) && PRINTING.iter().any(|p| token.is(p)) {
                let text = format!("`{}!` prints unfiltered: use `output`", token.text);
                found.push(file.violation(token.first, text));
            }
        }
        for Path { text: path, line, .. } in source.paths() {
            if WRITERS.iter().any(|writer| names(&path, writer)) {
                let text = format!("`{path}` prints unfiltered: use `output`");
                found.push(file.violation(line, text));
            }
        }
    }
    if !STARTERS.contains(&file.path.as_str()) {
        for Path { text: path, line, .. } in source.paths() {
            if names(&path, "Command::new") {
                let text = format!("`{path}` hands on passwords: use `rig`'s `child::command`");
                found.push(file.violation(line, text));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(path: &str, text: &str) -> Vec<String> {
        check(&Repo::of(&[(path, text)])).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_clock_a_socket_or_a_process_in_a_pure_room_fails_however_it_is_named() {
        for (code, what) in [
            ("use std::time::Instant;", "`std::time::Instant` is a clock"),
            ("use std::{fmt, time::{Duration, SystemTime}};", "`std::time::SystemTime` is a clock"),
            ("use std::time; fn f() { time::Instant::now(); }", "`time::Instant::now` is a clock"),
            ("fn f() { std::thread::sleep(d); }", "`std::thread::sleep` is a clock"),
            ("use std::net::TcpStream;", "`std::net::TcpStream` is a socket"),
            ("use std::{net, fmt};", "`std::net` is a socket"),
            ("fn f() { std::process::id(); }", "`std::process::id` is a process"),
        ] {
            for room in PURE_ROOMS {
                let got = of(&format!("crates/{room}/src/lib.rs"), code);
                let expected = format!(
                    "crates/{room}/src/lib.rs:1: {what}, and `{room}` is a pure room: take its \
                     result as an argument"
                );
                assert_eq!(got, [expected]);
            }
            assert_eq!(of("crates/rig/src/lib.rs", code), [""; 0]);
        }
    }

    #[test]
    fn words_that_only_look_alike_pass() {
        let code = "use std::time::Duration; // std::net\nconst S: &str = \"std::process\";\n\
                    fn instant(networks: Process) { my::networks(); }\n\
                    #[cfg(test)]\nmod tests { use std::time::Instant; }\n";
        assert_eq!(of("crates/stats/src/lib.rs", code), [""; 0]);
        assert_eq!(of("crates/stats/tests/all.rs", "use std::time::Instant;"), [""; 0]);
    }

    #[test]
    fn only_report_may_not_write_files() {
        for code in ["fn f() { std::fs::write(p, t); }", "fn f() { File::create(p); }"] {
            assert_eq!(of("crates/report/src/csv.rs", code).len(), 1, "{code}");
            assert_eq!(of("crates/archive/src/lib.rs", code), [""; 0]);
        }
        assert_eq!(of("crates/report/src/csv.rs", "fn f() { std::fs::read(p); }"), [""; 0]);
    }

    #[test]
    fn printing_exiting_and_unwrapping_belong_to_cli_and_tests() {
        let cases = [
            ("fn f() { println!(\"x\"); }", "`println!` outside of cli"),
            ("fn f() { eprint!(\"x\"); }", "`eprint!` outside of cli"),
            ("fn f() { std::process::exit(1); }", "`process::exit` outside of cli"),
            ("use std::process::{exit};", "`process::exit` outside of cli"),
            ("fn f() { g()\n .unwrap(); }", "`.unwrap()` outside of tests"),
        ];
        for (code, what) in cases {
            let got = of("crates/lab/src/lib.rs", code);
            assert!(got.len() == 1 && got[0].contains(what), "{code}: {got:?}");
            assert_eq!(of("crates/cli/src/output.rs", code), [""; 0]);
            assert_eq!(of("xtask/src/main.rs", code), [""; 0]);
            assert_eq!(of("crates/lab/tests/run.rs", code), [""; 0]);
            let inside = format!("#[cfg(test)]\nmod tests {{\n{code}\n}}\n");
            assert_eq!(of("crates/lab/src/lib.rs", &inside), [""; 0]);
        }
        let fine =
            "/// println!(x).unwrap()\nfn f() { x.unwrap_or(1); writeln!(o); s(\"print!\"); }";
        assert_eq!(of("crates/lab/src/lib.rs", fine), [""; 0]);
    }

    #[test]
    fn one_file_prints_and_few_start_programs() {
        for (code, path, what) in [
            ("fn f() { eprintln!(\"x\"); }", "crates/cli/src/serve.rs", "`eprintln!` prints"),
            ("fn f() { anstream::print!(\"x\"); }", "crates/cli/src/serve.rs", "`print!` prints"),
            (
                "fn f() { std::io::stderr(); }",
                "crates/cli/src/serve.rs",
                "`std::io::stderr` prints",
            ),
            ("fn f() { Command::new(p); }", "crates/rig/src/shelf.rs", "hands on passwords"),
            ("fn f() { std::process::Command::new(p); }", "crates/lab/src/lib.rs", "hands on"),
        ] {
            let got = of(path, code);
            assert!(!got.is_empty() && got[0].contains(what), "{code}: {got:?}");
            let (printer, starter) = (of(PRINTER, code), of(STARTERS[0], code));
            assert!(printer.is_empty() || starter.is_empty(), "{printer:?} {starter:?}");
            assert_eq!(of("crates/lab/tests/run.rs", code), [""; 0]);
        }
    }
}
