//! Passwords: a wrong one is reported, and none is ever shown or recorded.

use std::process::Command;
use std::time::Duration;

use super::common::{
    Finished, MariadbServer, Place, RedisServer, Started, command_line, installed, row, target,
    wait_until,
};

const RIGHT: &str = "open-sesame-4711";
const WRONG: &str = "shut-sesame-1174";

/// Asserts that no password is in the output of the run or in its record.
#[track_caller]
fn assert_secret(place: &Place, finished: &Finished, secrets: &[&str]) {
    for secret in secrets {
        for output in [&finished.stdout, &finished.stderr] {
            assert!(!output.contains(secret), "`{secret}` is printed: {output}");
        }
        for path in place.all_records() {
            let record = super::common::Record::new(path);
            assert!(!record.contains(secret), "`{secret}` is in {}", record.path.display());
        }
    }
}

/// Asserts that target `x` is not run because the server denies its password.
#[track_caller]
fn assert_denied(place: &Place, command: Command, secret: &str) {
    let finished = Place::finish(command).code(3);
    let summary = finished.json();
    let reason = target(&summary, "x")["not_run"].as_str().unwrap();
    assert!(reason.starts_with("denied: "), "{reason}");
    assert!(reason.contains("WRONGPASS") || reason.contains("1045"), "{reason}");
    assert_eq!(place.record().lines("targets.jsonl")[0]["unavailable"]["class"], "denied");
    assert_secret(place, &finished, &[secret]);
    place.assert_nothing_left();
}

#[test]
fn a_wrong_password_from_any_source_is_denied() {
    if !installed(&["redis-server", "redis-cli", "setpriv"]) {
        return;
    }
    let server = RedisServer::with_password(RIGHT);
    let plain = format!("x={}", server.url());

    let place = Place::new();
    assert_denied(
        &place,
        place.fast(&["--target", &format!("x={}", server.url_with(WRONG))]),
        WRONG,
    );

    let place = Place::new();
    let mut command = place.fast(&["--target", &plain]);
    command.env("CACHEDYNO_PASSWORD_X", WRONG);
    assert_denied(&place, command, WRONG);

    let place = Place::new();
    let file = place.write("password", &format!("{WRONG}\n"));
    let file = format!("x={}", file.display());
    assert_denied(&place, place.fast(&["--target", &plain, "--password-file", &file]), WRONG);
}

#[test]
fn a_missing_password_is_denied() {
    if !installed(&["redis-server", "redis-cli", "setpriv"]) {
        return;
    }
    let server = RedisServer::with_password(RIGHT);
    let place = Place::new();
    let target_url = format!("x={}", server.url());
    let summary = Place::finish(place.fast(&["--target", &target_url])).code(3).json();
    let reason = target(&summary, "x")["not_run"].as_str().unwrap();
    assert!(reason.starts_with("denied: ") && reason.contains("NOAUTH"), "{reason}");
    assert!(reason.contains("--password-file"), "{reason}");
    assert!(reason.contains("CACHEDYNO_PASSWORD_"), "{reason}");
}

#[test]
fn the_right_password_works_and_is_never_shown() {
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

    let environment_place = from_environment.path().to_path_buf();

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
        let is_set_by_user = place.path() == environment_place;
        wait_until("the record exists", Duration::from_secs(20), || {
            place.all_records().pop().filter(|path| path.join("targets.jsonl").exists())
        });
        let mut samples = 0;
        while run.is_running() {
            let line = command_line(pid);
            assert!(!line.contains(RIGHT), "{line}");
            let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            let environment = String::from_utf8_lossy(&environment);
            assert!(is_set_by_user || !environment.contains(RIGHT), "{environment}");
            samples += usize::from(line.contains("--target"));
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(samples > 0, "the command line was never read");
        let finished = run.finish_within(Duration::from_secs(60)).measured();
        assert_eq!(row(&finished.json(), "x", "read")["blocks"], 1);
        assert_secret(&place, &finished, &[RIGHT]);
        place.assert_nothing_left();
    }
}

#[test]
fn a_password_in_a_wrong_part_of_the_url_is_not_recorded() {
    let place = Place::new();
    let url = format!("x=redis+unix://{}/none?password={WRONG}", place.path().display());
    let finished = Place::finish(place.fast(&["--target", &url]));
    assert!(matches!(finished.code, Some(2 | 3)), "{finished:#?}");
    assert_secret(&place, &finished, &[WRONG]);
}

#[test]
fn a_database_password_is_checked_and_never_shown() {
    if !installed(&["mariadbd", "mariadb", "mariadb-install-db", "setpriv"]) {
        return;
    }
    let server = MariadbServer::new();
    let place = Place::new();
    let url = format!("x={}&password={WRONG}", server.url());
    assert_denied(&place, place.fast(&["--target", &url]), WRONG);

    let place = Place::new();
    let right = MariadbServer::PASSWORD;
    let url = format!("x={}&password={right}", server.url());
    let finished = Place::finish(place.fast(&["--set", "clients=1", "--target", &url])).measured();
    assert_eq!(row(&finished.json(), "x", "read")["blocks"], 1);
    assert_secret(&place, &finished, &[right]);
    assert_eq!(server.ask("SHOW TABLES IN shop"), "");
    place.assert_nothing_left();
}

/// Mistyped URLs, each with the password [`WRONG`].
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
fn a_mistyped_url_does_not_show_its_password() {
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
            assert_secret(&place, &finished, &[WRONG]);
        }
    }
    place.assert_nothing_left();
}

#[test]
fn a_password_with_an_encoded_key_is_not_shown() {
    let place = Place::new();
    let socket = place.path().join("none.sock");
    for query in ["pass%77ord=SECRET", "password=SECRET&password=SECRET", "db=1&password=SECRET"] {
        let url = format!("x=redis+unix://{}?{query}", socket.display()).replace("SECRET", WRONG);
        let finished = Place::finish(place.fast(&["--target", &url])).code(3);
        assert_secret(&place, &finished, &[WRONG]);
    }
}

#[test]
fn started_programs_do_not_get_the_passwords() {
    let place = Place::new();
    let programs = place.path().join("programs");
    std::fs::create_dir(&programs).unwrap();
    let log = place.path().join("environments");
    // Fake programs log their environment.
    for program in ["redis-server", "memcached", "mysqld", "valkey-server", "chattr"] {
        let script = format!("#!/bin/sh\n/usr/bin/env >> {}\nexit 1\n", log.display());
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
    assert!(!children.is_empty(), "no guard process found");
    for environment in children {
        assert!(!String::from_utf8_lossy(&environment).contains(RIGHT), "a guard has a password");
    }
    run.signal(nix::sys::signal::Signal::SIGINT);
    run.finish_within(Duration::from_secs(60));
    let environments = std::fs::read_to_string(log).unwrap();
    assert!(environments.contains("PATH="), "{environments}");
    assert!(!environments.contains(RIGHT), "{environments}");
    place.assert_nothing_left();
}

#[test]
fn arguments_that_are_not_utf_8_are_neither_changed_nor_shown() {
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
        assert_secret(&place, &run(&arguments), &[WRONG]);
    }
    let mut command = place.fast(&["--target", "x=redis://127.0.0.1:1"]);
    command.env("CACHEDYNO_PASSWORD_X", os(b"hush\xff"));
    let finished = Place::finish(command).code(2);
    assert!(finished.stderr.contains("CACHEDYNO_PASSWORD_X is not UTF-8"), "{finished:?}");
    // A directory does not have to be UTF-8, even with a password in a URL.
    let out = place.path().join(os(b"out\xfe"));
    let targets = ["--target", "x=redis://:a@127.0.0.1:1", "--target", "files"];
    Place::finish(place.fast_at(&out, &place.disk(), &targets)).code(3);
    assert!(out.is_dir());
}
