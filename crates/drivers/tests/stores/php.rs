//! PHP's own session handlers as the oracle: each reads what the other wrote, and each waits for
//! the other's lock.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::common::{Server, installed, options, text};
use cachedyno_drivers::{open_page_store, open_session_store};
use model::Endpoint;
use workloads::store::{Closed, Found, PageStore};

/// A page that counts its visits, holds its session for `hold_ms` and tells the count.
const PAGE: &str = "session_id('abc123'); session_start(); \
     $_SESSION['n'] = ($_SESSION['n'] ?? 0) + 1; echo $_SESSION['n'], \"\\n\"; flush(); \
     usleep($argv[1] * 1000); session_write_close();";

fn php(settings: &[String], hold_ms: u64) -> Command {
    let mut command = Command::new("php");
    for setting in settings {
        command.arg("-d").arg(setting);
    }
    command.args(["-d", "session.use_strict_mode=0", "-d", "session.use_cookies=0"]);
    command.args(["-d", "session.cache_limiter=", "-r", PAGE, "--"]).arg(hold_ms.to_string());
    command
}

/// Starts a page and returns when it holds its session.
fn holding(settings: &[String], hold_ms: u64) -> Child {
    use std::io::BufRead;
    let mut child = php(settings, hold_ms).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    std::io::BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.trim().parse::<u32>().is_ok(), "{line}");
    child
}

/// Ours, then PHP, then ours; then each in the other's way.
fn both_ways(ours: &mut dyn PageStore, settings: &[String]) {
    let mut value = Vec::new();
    assert_eq!(ours.open("abc123", &mut value).unwrap().found, Found::No);
    assert_eq!(ours.close(b"n|i:41;").unwrap(), Closed::Kept);
    assert_eq!(text(&php(settings, 0).output().unwrap()), "42");
    assert_eq!(ours.open("abc123", &mut value).unwrap().found, Found::Yes);
    assert_eq!(value, b"n|i:42;");
    assert_eq!(ours.close(b"n|i:50;").unwrap(), Closed::Kept);

    let mut child = holding(settings, 200);
    let opened = ours.open("abc123", &mut value).unwrap();
    assert_eq!(value, b"n|i:51;", "we did not wait for PHP");
    assert!(opened.lock.attempts > 1 && opened.lock.waited_ns > 20_000_000, "{opened:?}");
    assert!(child.wait().unwrap().success());

    let child = php(settings, 0).stdout(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(150));
    assert_eq!(ours.close(b"n|i:60;").unwrap(), Closed::Kept);
    assert_eq!(text(&child.wait_with_output().unwrap()), "61", "PHP did not wait for us");
}

#[test]
fn php_and_we_share_files() {
    if !installed("php") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let endpoint = Endpoint::Files { directory: directory.path().into() };
    let mut ours = open_page_store(&endpoint, &options(directory.path())).unwrap();
    let path = directory.path().display();
    both_ways(
        ours.as_mut(),
        &["session.save_handler=files".into(), format!("session.save_path={path}")],
    );
}

fn has_extension(name: &str) -> bool {
    let modules = Command::new("php").arg("-m").output().unwrap();
    let there = text(&modules).lines().any(|line| line == name);
    if !there {
        eprintln!("skipped: PHP has no extension {name}");
    }
    there
}

#[test]
fn php_and_we_share_redis() {
    if !installed("php") || !installed("redis-server") || !has_extension("redis") {
        return;
    }
    let server = Server::redis(&[]);
    let endpoint = server.redis_endpoint(None);
    let mut ours = open_page_store(&endpoint, &options(Path::new(""))).unwrap();
    let settings = [
        "session.save_handler=redis".into(),
        format!("session.save_path=unix://{}", server.socket.display()),
        "redis.session.locking_enabled=1".into(),
        "redis.session.lock_expire=30".into(),
        "redis.session.lock_wait_time=20000".into(),
        "redis.session.lock_retries=100".into(),
    ];
    both_ways(ours.as_mut(), &settings);
    // The plain layout of the 2019 script has no prefix.
    let mut plain = open_session_store(&endpoint, &options(Path::new(""))).unwrap();
    assert_eq!(plain.read("abc123", &mut Vec::new()).unwrap(), Found::No);
}
