//! Passwords: wrong ones are said, none of them is shown anywhere.

use std::process::Command;
use std::time::Duration;

use super::common::{
    Finished, MariadbServer, Place, RedisServer, Started, command_line, installed, row, target,
    wait_until,
};

const RIGHT: &str = "open-sesame-4711";
const WRONG: &str = "shut-sesame-1174";

/// No password is in what the run printed, in its record, or in any file that it left.
#[track_caller]
fn kept_secret(place: &Place, finished: &Finished, secrets: &[&str]) {
    for secret in secrets {
        for output in [&finished.stdout, &finished.stderr] {
            assert!(!output.contains(secret), "`{secret}` is told: {output}");
        }
        for path in place.all_records() {
            let record = super::common::Record::new(path);
            assert!(!record.holds(secret), "`{secret}` is in {}", record.path.display());
        }
    }
}

/// A run whose target `x` cannot be used for its password.
#[track_caller]
fn denied(place: &Place, command: Command, secret: &str) {
    let finished = Place::finish(command).code(3);
    let summary = finished.json();
    let why = target(&summary, "x")["not_run"].as_str().unwrap();
    assert!(why.starts_with("denied: "), "{why}");
    assert!(why.contains("WRONGPASS") || why.contains("1045"), "{why}");
    assert_eq!(place.record().lines("targets.jsonl")[0]["unavailable"]["class"], "denied");
    kept_secret(place, &finished, &[secret]);
    place.assert_nothing_left();
}

#[test]
fn a_wrong_password_is_denied_wherever_it_comes_from() {
    if !installed(&["redis-server", "redis-cli", "setpriv"]) {
        return;
    }
    let server = RedisServer::with_password(RIGHT);
    let plain = format!("x={}", server.url());

    let place = Place::new();
    denied(&place, place.fast(&["--target", &format!("x={}", server.url_with(WRONG))]), WRONG);

    let place = Place::new();
    let mut command = place.fast(&["--target", &plain]);
    command.env("CACHEDYNO_PASSWORD_X", WRONG);
    denied(&place, command, WRONG);

    let place = Place::new();
    let file = place.write("password", &format!("{WRONG}\n"));
    let file = format!("x={}", file.display());
    denied(&place, place.fast(&["--target", &plain, "--password-file", &file]), WRONG);
}

#[test]
fn no_password_where_one_is_asked_for_is_denied_too() {
    if !installed(&["redis-server", "redis-cli", "setpriv"]) {
        return;
    }
    let server = RedisServer::with_password(RIGHT);
    let place = Place::new();
    let target_url = format!("x={}", server.url());
    let summary = Place::finish(place.fast(&["--target", &target_url])).code(3).json();
    let why = target(&summary, "x")["not_run"].as_str().unwrap();
    assert!(why.starts_with("denied: ") && why.contains("NOAUTH"), "{why}");
    assert!(why.contains("--password-file") && why.contains("CACHEDYNO_PASSWORD_"), "{why}");
}

#[test]
fn the_right_password_works_and_is_nowhere_to_be_seen() {
    if !installed(&["redis-server", "redis-cli", "setpriv"]) {
        return;
    }
    let server = RedisServer::with_password(RIGHT);
    let from_url = Place::new();
    let url = format!("--target=x={}", server.url_with(RIGHT));
    let by_url = from_url.fast(&["--set", "clients=1", &url]);

    let from_environment = Place::new();
    let plain = format!("x={}", server.url());
    let mut by_environment = from_environment.fast(&["--set", "clients=1", "--target", &plain]);
    by_environment.env("CACHEDYNO_PASSWORD_X", RIGHT);

    let by_environment_in = from_environment.path().to_path_buf();

    let from_file = Place::new();
    let file = from_file.write("password", RIGHT);
    let file = format!("x={}", file.display());
    let by_file =
        from_file.fast(&["--set", "clients=1", "--target", &plain, "--password-file", &file]);

    for (place, command) in
        [(from_url, by_url), (from_environment, by_environment), (from_file, by_file)]
    {
        let mut run = Started::new(command);
        let pid = run.pid();
        let is_users_own = place.path() == by_environment_in;
        wait_until("the record is begun", Duration::from_secs(20), || {
            place.all_records().pop().filter(|path| path.join("targets.jsonl").exists())
        });
        let mut looked = 0;
        while run.runs() {
            let line = command_line(pid);
            assert!(!line.contains(RIGHT), "{line}");
            let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            let environment = String::from_utf8_lossy(&environment);
            assert!(is_users_own || !environment.contains(RIGHT), "{environment}");
            looked += usize::from(line.contains("--target"));
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(looked > 0, "the process list was never seen");
        let finished = run.finish_within(Duration::from_secs(60)).measured();
        assert_eq!(row(&finished.json(), "x", "read")["blocks"], 1);
        kept_secret(&place, &finished, &[RIGHT]);
        place.assert_nothing_left();
    }
}

#[test]
fn a_password_in_a_part_of_the_url_that_holds_none_is_not_recorded() {
    let place = Place::new();
    let url = format!("x=redis+unix://{}/none?password={WRONG}", place.path().display());
    let finished = Place::finish(place.fast(&["--target", &url]));
    assert!(matches!(finished.code, Some(2 | 3)), "{finished:#?}");
    kept_secret(&place, &finished, &[WRONG]);
}

#[test]
fn a_database_account_is_treated_alike() {
    if !installed(&["mariadbd", "mariadb", "mariadb-install-db", "setpriv"]) {
        return;
    }
    let server = MariadbServer::new();
    let place = Place::new();
    let url = format!("x={}&password={WRONG}", server.url());
    denied(&place, place.fast(&["--target", &url]), WRONG);

    let place = Place::new();
    let right = MariadbServer::PASSWORD;
    let url = format!("x={}&password={right}", server.url());
    let finished = Place::finish(place.fast(&["--set", "clients=1", "--target", &url])).measured();
    assert_eq!(row(&finished.json(), "x", "read")["blocks"], 1);
    kept_secret(&place, &finished, &[right]);
    assert_eq!(server.ask("SHOW TABLES IN shop"), "");
    place.assert_nothing_left();
}

/// What a URL becomes when it is mistyped, with its password.
const MISTYPED: [&str; 15] = [
    "redis+unix:///u:shut-sesame-1174@sock",
    "redis://shut-sesame-1174@h",
    "memcached://shut-sesame-1174@h",
    "redis//:shut-sesame-1174@h/1",
    "redis:shut-sesame-1174@h",
    "redis:/:shut-sesame-1174@h",
    "redis:shut-sesame-1174",
    "://u:shut-sesame-1174@h",
    "user:shut-sesame-1174@h",
    "redis://u:12/shut-sesame-1174@h",
    "redis+unix:///none?password=a&password=shut-sesame-1174&x=1",
    "redis+unix:///none?db=0&shut-sesame-1174",
    "redis://h?auth=shut-sesame-1174",
    "memcached://a:1,u:shut-sesame-1174@b:2/3",
    " REDIS:shut-sesame-1174@h",
];

#[test]
fn a_mistyped_url_does_not_tell_its_password() {
    let place = Place::new();
    for url in MISTYPED {
        let named = format!("x={url}");
        let (target, out, mistake) =
            (format!("--target={named}"), format!("--out={url}"), format!("--scale={url}"));
        for arguments in [
            &["run", "sessions", "--target", &named][..],
            &["run", "sessions", "--target", url],
            &["run", "sessions", &target],
            &["run", url],
            &["run", "sessions", "--password-file", url],
            &["run", "sessions", "--target", "x=redis://h", "--password-file", &named],
            &[
                "run",
                "sessions",
                "--target",
                "x=redis://h",
                "--password-file",
                &format!("x={WRONG}"),
            ],
            &["run", "sessions", "--target", "x=redis://h", "--password-file", WRONG],
            &["bench", "redis", "--command", &format!("AUTH {WRONG}")],
            &["redis-benchmark", "-p", "1", url],
            &["redis-benchmark", "-p", "1", "-t", url],
            &["run", "sessions", "--set", url],
            &["run", "--resume", url],
            &["run", "sessions", &mistake],
            &["run", "sessions", "--scale", url],
            &["run", "sessions", "--target", "redis", url],
            &["show", url],
            &["show", &out],
            &["bench", url, "--requests", "1"],
            &["find-max", url, "--slo", "p99<1ms"],
            &["find-max", "redis", "--slo", url],
            &["redis-benchmark", "-u", url],
            &["redis-benchmark", "-p", url],
            &["redis-benchmark", "-p", WRONG],
            &["redis-benchmark", &format!("-a{WRONG}")],
            &["redis-benchmark", &format!("--pass={WRONG}")],
            &["redis-benchmark", &format!("--uri={url}")],
            &[url],
        ] {
            let mut command = place.command();
            command.args(arguments);
            let finished = Place::finish(command);
            assert_ne!(finished.code, Some(0), "{arguments:?}: {finished:#?}");
            kept_secret(&place, &finished, &[WRONG]);
        }
    }
    place.assert_nothing_left();
}

#[test]
fn a_password_with_an_encoded_key_leaves_the_command_line() {
    let place = Place::new();
    let socket = place.path().join("none.sock");
    for query in ["pass%77ord=SECRET", "password=SECRET&password=SECRET", "db=1&password=SECRET"] {
        let url = format!("x=redis+unix://{}?{query}", socket.display()).replace("SECRET", WRONG);
        let finished = Place::finish(place.fast(&["--target", &url])).code(3);
        kept_secret(&place, &finished, &[WRONG]);
    }
}

#[test]
fn nothing_that_is_started_gets_the_passwords() {
    let place = Place::new();
    let programs = place.path().join("programs");
    std::fs::create_dir(&programs).unwrap();
    let seen = place.path().join("seen");
    // Each program that is looked for, in whose place it notes what environment it gets.
    for program in ["redis-server", "memcached", "mysqld", "valkey-server", "chattr"] {
        let script = format!("#!/bin/sh\n/usr/bin/env >> {}\nexit 1\n", seen.display());
        let path = programs.join(program);
        std::fs::write(&path, script).unwrap();
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .unwrap();
    }
    let server = format!("x=redis+unix://{}/none", place.path().display());
    let started = ["CACHEDYNO_PASSWORD_X", "CACHEDYNO_PASSWORD_Y", "OTHERS_TOKEN"];
    let with_passwords = |mut command: Command| {
        command.env("PATH", &programs).envs(started.map(|name| (name, RIGHT)));
        command
    };
    let mut doctor = place.command();
    doctor.arg("doctor");
    Place::finish(with_passwords(doctor)).code(0);
    let more =
        ["--set", "clients=1", "--target", &server, "--target", "files", "--target", "redis"];
    let run = Started::new(with_passwords(
        place.fast(&[&more[..], &["--set", "blocks_max=400", "--set", "blocks_min=400"]].concat()),
    ));
    wait_until("a trial has ended", Duration::from_secs(60), || {
        (super::common::trials_so_far(&place.records()) >= 1).then_some(())
    });
    let children = std::fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let process = entry.unwrap().path();
        let stat = std::fs::read_to_string(process.join("stat")).ok()?;
        let parent = stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse::<u32>().ok()?;
        (parent == run.pid()).then(|| std::fs::read(process.join("environ")).unwrap())
    });
    let children: Vec<Vec<u8>> = children.collect();
    assert!(!children.is_empty(), "no guard was seen");
    for environment in children {
        assert!(!String::from_utf8_lossy(&environment).contains(RIGHT), "a guard has a password");
    }
    run.signal(nix::sys::signal::Signal::SIGINT);
    run.finish_within(Duration::from_secs(60));
    let seen = std::fs::read_to_string(seen).unwrap();
    assert!(seen.contains("PATH=") && !seen.contains(RIGHT), "{seen}");
    place.assert_nothing_left();
}

#[test]
fn what_is_not_utf_8_is_neither_changed_nor_shown() {
    use std::os::unix::ffi::OsStrExt as _;
    let place = Place::new();
    let os = |bytes: &[u8]| std::ffi::OsStr::from_bytes(bytes).to_owned();
    let run = |arguments: &[std::ffi::OsString]| {
        let mut command = place.command();
        command.args(arguments);
        Place::finish(command).code(2)
    };
    let url = os(b"x=redis://:shut-sesame-1174\xff@h");
    for arguments in [
        vec![url.clone()],
        vec!["bench".into(), url.clone()],
        vec!["bench".into(), "x=redis://:a@127.0.0.1:1".into(), url],
        vec!["bench".into(), "x=redis://:shut-sesame-1174%ff@h".into()],
    ] {
        kept_secret(&place, &run(&arguments), &[WRONG]);
    }
    let mut command = place.fast(&["--target", "x=redis://127.0.0.1:1"]);
    command.env("CACHEDYNO_PASSWORD_X", os(b"hush\xff"));
    let finished = Place::finish(command).code(2);
    assert!(finished.stderr.contains("CACHEDYNO_PASSWORD_X is not UTF-8"), "{finished:?}");
    // A directory need not be UTF-8, beside a URL with a password either.
    let out = place.path().join(os(b"out\xfe"));
    let targets = ["--target", "x=redis://:a@127.0.0.1:1", "--target", "files"];
    Place::finish(place.fast_at(&out, &place.disk(), &targets)).code(3);
    assert!(out.is_dir());
}
