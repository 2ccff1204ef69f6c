//! PHP's session handlers as the oracle: both sides read what the other wrote and wait for the
//! other's lock.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime};

use super::common::{Server, installed, options, postgres_program, text};
use cachedyno_drivers::{admin, open_page_store, open_session_store};
use model::{Endpoint, Layout};
use workloads::store::{Closed, Collected, Collects, Found, PageStore};

/// A page that counts its visits, holds its session for `hold_ms` and prints the count.
const PAGE: &str = "session_id('abc123'); session_start(); \
     $_SESSION['n'] = ($_SESSION['n'] ?? 0) + 1; echo $_SESSION['n'], \"\\n\"; flush(); \
     usleep($argv[1] * 1000); session_write_close();";

/// A session handler in PHP.
struct Handler {
    settings: Vec<String>,
    /// Code to run first.
    code: String,
}

impl Handler {
    /// One of PHP's own handlers, by its settings.
    fn of_php(settings: &[String]) -> Self {
        Self { settings: settings.to_vec(), code: String::new() }
    }

    /// Symfony's handler, as packaged by Debian, on a database by its PDO name.
    fn of_symfony(database: &str, user: &str) -> Self {
        let code = format!(
            "require 'Symfony/Component/HttpFoundation/autoload.php'; \
             session_set_save_handler(new Symfony\\Component\\HttpFoundation\\Session\\Storage\\\
             Handler\\PdoSessionHandler('{database}', ['db_username' => '{user}']), true); "
        );
        Self { settings: Vec::new(), code }
    }
}

fn php(handler: &Handler, hold_ms: u64) -> Command {
    let mut command = Command::new("php");
    command.args(["-d", "session.use_strict_mode=0", "-d", "session.use_cookies=0"]);
    command.args(["-d", "session.gc_probability=0", "-d", "session.cache_limiter="]);
    for setting in &handler.settings {
        command.arg("-d").arg(setting);
    }
    command.args(["-r", &[&handler.code, PAGE].concat(), "--"]).arg(hold_ms.to_string());
    command
}

/// Starts a page and returns once it holds its session.
fn holding(handler: &Handler, hold_ms: u64) -> Child {
    use std::io::BufRead;
    let mut child = php(handler, hold_ms).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    std::io::BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.trim().parse::<u32>().is_ok(), "{line}");
    child
}

/// Our client, then PHP, then ours again; then each while the other holds the lock.
fn both_ways(ours: &mut dyn PageStore, handler: &Handler) {
    let mut value = Vec::new();
    assert_eq!(ours.open("abc123", &mut value).unwrap().found, Found::No);
    assert_eq!(ours.close(b"n|i:41;").unwrap(), Closed::Kept);
    assert_eq!(text(&php(handler, 0).output().unwrap()), "42");
    assert_eq!(ours.open("abc123", &mut value).unwrap().found, Found::Yes);
    assert_eq!(value, b"n|i:42;");
    assert_eq!(ours.close(b"n|i:50;").unwrap(), Closed::Kept);

    let mut child = holding(handler, 200);
    let opened = ours.open("abc123", &mut value).unwrap();
    assert_eq!(value, b"n|i:51;", "we did not wait for PHP");
    assert!(opened.lock.attempts > 1 && opened.lock.waited_ns > 20_000_000, "{opened:?}");
    assert!(child.wait().unwrap().success());

    let child = php(handler, 0).stdout(Stdio::piped()).spawn().unwrap();
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
        &Handler::of_php(&[
            "session.save_handler=files".into(),
            format!("session.save_path={path}"),
        ]),
    );
}

/// PHP's collection is the oracle: the same files stay.
#[test]
fn php_and_we_remove_the_same_files() {
    if !installed("php") {
        return;
    }
    let names = ["sess_old", "sess_older", "sess_young", "other"];
    let left = |collect: &dyn Fn(&Path)| {
        let directory = tempfile::tempdir().unwrap();
        for (name, age_s) in names.into_iter().zip([320, 4_000, 280, 4_000]) {
            let file = std::fs::File::create(directory.path().join(name)).unwrap();
            file.set_modified(SystemTime::now() - Duration::from_secs(age_s)).unwrap();
        }
        collect(directory.path());
        names.map(|name| directory.path().join(name).exists())
    };
    let of_php = left(&|directory| {
        let handler = Handler::of_php(&[
            "session.save_handler=files".into(),
            format!("session.save_path={}", directory.display()),
            "session.gc_probability=1".into(),
            "session.gc_divisor=1".into(),
            "session.gc_maxlifetime=300".into(),
        ]);
        assert_eq!(text(&php(&handler, 0).output().unwrap()), "1");
    });
    let of_ours = left(&|directory| {
        let endpoint = Endpoint::Files { directory: directory.into() };
        let mut ours = open_page_store(&endpoint, &options(directory)).unwrap();
        assert_eq!(ours.collects(), Collects::BeforeOpen);
        assert_eq!(ours.collect().unwrap(), Collected { deleted: 2, files: 3 });
    });
    assert_eq!(of_php, [false, false, true, true]);
    assert_eq!(of_ours, of_php);
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
    both_ways(ours.as_mut(), &Handler::of_php(&settings));
    // The plain layout of the 2019 script has no prefix.
    let mut plain = open_session_store(&endpoint, &options(Path::new(""))).unwrap();
    assert_eq!(plain.read("abc123", &mut Vec::new()).unwrap(), Found::No);
}

/// Whether PHP has Symfony's handler and the PDO driver.
fn has_symfony(extension: &str) -> bool {
    let code = "exit((int) !@include 'Symfony/Component/HttpFoundation/autoload.php');";
    let there = Command::new("php").args(["-r", code]).status().unwrap().success();
    if !there {
        eprintln!("skipped: php-symfony-http-foundation is not installed");
    }
    there && has_extension(extension)
}

#[test]
fn symfony_and_we_share_mysql() {
    if !installed("php") || !installed("mariadbd") || !has_symfony("pdo_mysql") {
        return;
    }
    let server = Server::mariadb();
    let endpoint = server.mysql_endpoint("root", None);
    let options = options(Path::new(""));
    admin(&endpoint, options.timeout).unwrap().prepare(Layout::Page, "sessions", 1_500).unwrap();
    let mut ours = open_page_store(&endpoint, &options).unwrap();
    let database = format!("mysql:unix_socket={};dbname=shop", server.socket.display());
    both_ways(ours.as_mut(), &Handler::of_symfony(&database, "root"));
}

#[test]
fn symfony_and_we_share_sqlite() {
    if !installed("php") || !has_symfony("pdo_sqlite") {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let endpoint = Endpoint::Sqlite { directory: place.path().into() };
    let mut admin = admin(&endpoint, options(Path::new("")).timeout).unwrap();
    let directory = admin.prepare(Layout::Page, "run", 1_500).unwrap();
    let mut ours = open_page_store(&endpoint, &options(&directory)).unwrap();
    let database = format!("sqlite:{}", directory.join("sessions.sqlite").display());
    both_ways(ours.as_mut(), &Handler::of_symfony(&database, ""));
}

/// A log without the parts that differ between pages: times and statement numbers. Symfony before
/// 6.0 reads one more column.
fn plain(log: &str) -> Vec<String> {
    let digits = |c: char| if c.is_ascii_digit() { '9' } else { c };
    let lines = log.lines().map(|line| {
        // PDO's numbers have hexadecimal digits.
        let (before, after) = line.split_once("pdo_stmt_").unwrap_or((line, ""));
        let after = after.trim_start_matches(|c: char| c.is_ascii_hexdigit());
        let line = [before, after].concat();
        let line = line.replace(
            "SELECT sess_data, sess_lifetime, sess_time",
            "SELECT sess_data, sess_lifetime",
        );
        line.chars().map(digits).collect()
    });
    lines.collect()
}

#[test]
fn symfony_and_we_share_postgresql_and_send_the_same() {
    if postgres_program("postgres").is_empty() || !installed("php") || !has_symfony("pdo_pgsql") {
        return;
    }
    let server = Server::postgres();
    let endpoint = server.postgres_endpoint("postgres", None);
    let options = options(Path::new(""));
    let mut admin = admin(&endpoint, options.timeout).unwrap();
    admin.prepare(Layout::Page, "sessions", 1_500).unwrap();
    let mut ours = open_page_store(&endpoint, &options).unwrap();
    let directory = server.directory.path().display();
    let database = format!("pgsql:host={directory};dbname=shop");
    let handler = Handler::of_symfony(&database, "postgres");
    both_ways(ours.as_mut(), &handler);

    // A new session, and an existing one.
    for number in 1..=2 {
        if number == 1 {
            server.postgres_sql("DELETE FROM sessions");
        }
        let of_php = server.logged(|| {
            assert_eq!(text(&php(&handler, 0).output().unwrap()), number.to_string());
        });
        if number == 1 {
            server.postgres_sql("DELETE FROM sessions");
        } else {
            server.postgres_sql("UPDATE sessions SET sess_data = 'n|i:1;'");
        }
        let value = format!("n|i:{number};");
        let of_ours = server.logged(|| {
            ours.open("abc123", &mut Vec::new()).unwrap();
            ours.close(value.as_bytes()).unwrap();
        });
        assert_eq!(plain(&of_ours), plain(&of_php), "session {number}");
    }
}
