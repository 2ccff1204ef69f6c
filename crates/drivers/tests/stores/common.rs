//! Test servers on unix sockets in temporary directories, and checks that apply to every store.

use std::fs::{self, DirEntry};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use cachedyno_drivers::{CleanupDeadline, SessionOptions};
use model::{Connections, Database, Endpoint, ErrorClass, NetAddress, RedisOptions, Secret};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;
use workloads::app_cache::{CleanMode, Record, TaggedCache};
use workloads::store::{Closed, Collected, Found, PageStore, SessionStore};

pub(crate) fn options(directory: &Path) -> SessionOptions {
    SessionOptions {
        connections: Connections::Persistent,
        ttl_s: 300,
        value_bytes: 0,
        timeout: Duration::from_secs(5),
        table: "sessions".into(),
        directory: directory.into(),
    }
}

/// The deadline of an uninterrupted run.
pub(crate) fn patience() -> CleanupDeadline<'static> {
    static NEVER: AtomicBool = AtomicBool::new(false);
    CleanupDeadline::new(&NEVER)
}

pub(crate) fn installed(program: &str) -> bool {
    let found = Command::new("sh").args(["-c", &format!("command -v {program}")]).output();
    let there = found.is_ok_and(|o| o.status.success());
    if !there {
        eprintln!("skipped: {program} is not installed");
    }
    there
}

/// PostgreSQL's programs are not in PATH: finds the newest installed one.
pub(crate) fn postgres_program(name: &str) -> String {
    let list = format!("ls -v /usr/lib/postgresql/*/bin/{name} | tail -n 1");
    let found = Command::new("sh").args(["-c", &list]).output().unwrap();
    String::from_utf8_lossy(&found.stdout).trim().to_string()
}

/// Polls until a condition is met; panics with `what` after half a minute.
pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let since = Instant::now();
    while !is_so() {
        assert!(since.elapsed() < Duration::from_secs(30), "timed out waiting until {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// A server process; ends with the test, even if the test panics or is killed.
pub(crate) struct Server {
    child: Child,
    pub(crate) directory: TempDir,
    pub(crate) socket: PathBuf,
}

impl Server {
    fn start(directory: TempDir, program: &str, args: &[String]) -> Self {
        Self::start_at("s.sock", directory, program, args)
    }

    fn start_at(socket: &str, directory: TempDir, program: &str, args: &[String]) -> Self {
        let socket = directory.path().join(socket);
        let log = std::fs::File::create(directory.path().join("log")).unwrap();
        let child = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", program])
            .args(args)
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut server = Self { child, directory, socket };
        let started = Instant::now();
        while std::os::unix::net::UnixStream::connect(&server.socket).is_err() {
            let gone = server.child.try_wait().unwrap().is_some();
            if gone || started.elapsed() > Duration::from_secs(30) {
                let log = std::fs::read_to_string(server.directory.path().join("log")).unwrap();
                panic!("{program} did not start: {log}");
            }
            thread::sleep(Duration::from_millis(10));
        }
        server
    }

    pub(crate) fn redis(more: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("s.sock").display().to_string();
        let mut args: Vec<String> =
            ["--port", "0", "--save", "", "--dir"].iter().map(|s| (*s).into()).collect();
        args.extend([directory.path().display().to_string(), "--unixsocket".into(), socket]);
        args.extend(more.iter().map(|s| (*s).into()));
        Self::start(directory, "redis-server", &args)
    }

    pub(crate) fn memcached(more: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("s.sock").display().to_string();
        let mut args: Vec<String> = vec!["-s".into(), socket, "-u".into(), "root".into()];
        args.extend(more.iter().map(|s| (*s).into()));
        Self::start(directory, "memcached", &args)
    }

    /// A MariaDB server with the account root, without a password, and the database `shop`.
    pub(crate) fn mariadb() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let data = format!("--datadir={}", directory.path().join("data").display());
        let made = Command::new("mariadb-install-db")
            .args(["--no-defaults", "--user=root", "--skip-test-db", &data])
            .arg("--auth-root-authentication-method=normal")
            // At startup, a server removes temporary tables, including those of other servers in
            // the directory.
            .env("TMPDIR", directory.path())
            .output()
            .unwrap();
        assert!(made.status.success(), "{made:?}");
        let socket = format!("--socket={}", directory.path().join("s.sock").display());
        let temporary = format!("--tmpdir={}", directory.path().display());
        let mut args: Vec<String> = vec!["--no-defaults".into(), data, socket, temporary];
        for more in ["--user=root", "--skip-networking", "--innodb-buffer-pool-size=32M"] {
            args.push(more.into());
        }
        let server = Self::start(directory, "mariadbd", &args);
        server.sql("CREATE DATABASE shop");
        server
    }

    /// A PostgreSQL server that logs its statements, with the account `postgres`, without a
    /// password, and the database `shop`.
    pub(crate) fn postgres() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().display().to_string();
        let data = format!("{path}/data");
        std::fs::create_dir(&data).unwrap();
        // The server refuses to run as root, so it runs in a user namespace.
        let unshare: &[&str] = if nix::unistd::geteuid().is_root() {
            &["unshare", "-U", "--map-user=postgres", "-i"]
        } else {
            &["env"]
        };
        let made = Command::new(unshare[0])
            .args(&unshare[1..])
            .args([&postgres_program("initdb"), "-D", &data, "-U", "postgres", "-A", "trust"])
            .args(["-E", "UTF8", "--locale=C", "--no-sync"])
            .output()
            .unwrap();
        assert!(made.status.success(), "{made:?}");
        let mut args: Vec<String> = unshare[1..].iter().map(|word| (*word).into()).collect();
        args.extend([postgres_program("postgres"), "-D".into(), data, "-k".into(), path]);
        let own = ["listen_addresses=", "fsync=off", "log_statement=all", "log_line_prefix="];
        for setting in own.into_iter().chain(["dynamic_shared_memory_type=mmap"]) {
            args.extend(["-c".into(), setting.into()]);
        }
        let server = Self::start_at(".s.PGSQL.5432", directory, unshare[0], &args);
        let accepts = || server.psql("postgres", "SELECT 1").status.success();
        wait_until("PostgreSQL accepts connections", accepts);
        server.postgres_sql("CREATE DATABASE shop");
        server
    }

    fn psql(&self, database: &str, statement: &str) -> Output {
        let mut command = Command::new("psql");
        command.args(["-XAtq", "-U", "postgres", "-d", database, "-c", statement, "-h"]);
        command.arg(self.directory.path()).output().unwrap()
    }

    pub(crate) fn postgres_sql(&self, statement: &str) -> String {
        let database = if statement.starts_with("CREATE DATABASE") { "postgres" } else { "shop" };
        text(&self.psql(database, statement))
    }

    pub(crate) fn postgres_endpoint(&self, user: &str, password: Option<&str>) -> Endpoint {
        Endpoint::Postgres(Database {
            address: NetAddress::Unix(self.socket.clone()),
            user: user.into(),
            password: password.map(Secret::new),
            name: "shop".into(),
        })
    }

    /// The server's log output during a call.
    pub(crate) fn logged(&self, call: impl FnOnce()) -> String {
        let log = self.directory.path().join("log");
        let before = std::fs::read(&log).unwrap().len();
        call();
        // The last packet of a connection is processed asynchronously.
        thread::sleep(Duration::from_millis(100));
        String::from_utf8_lossy(&std::fs::read(&log).unwrap()[before..]).into_owned()
    }

    pub(crate) fn redis_endpoint(&self, password: Option<&str>) -> Endpoint {
        Endpoint::Redis {
            address: NetAddress::Unix(self.socket.clone()),
            user: None,
            password: password.map(Secret::new),
            database: 0,
            options: RedisOptions::default(),
        }
    }

    pub(crate) fn memcached_endpoint(&self) -> Endpoint {
        Endpoint::parse(&format!("memcached+unix://{}", self.socket.display())).unwrap()
    }

    pub(crate) fn mysql_endpoint(&self, user: &str, password: Option<&str>) -> Endpoint {
        Endpoint::Mysql(Database {
            address: NetAddress::Unix(self.socket.clone()),
            user: user.into(),
            password: password.map(Secret::new),
            name: "shop".into(),
        })
    }

    /// Queries the server with its own client, so that our code does not verify itself.
    pub(crate) fn redis_cli(&self, args: &[&str]) -> String {
        text(&Command::new("redis-cli").arg("-s").arg(&self.socket).args(args).output().unwrap())
    }

    pub(crate) fn sql(&self, statement: &str) -> String {
        let mut command = Command::new("mariadb");
        command.arg("--no-defaults").arg("-S").arg(&self.socket);
        command.args(["-u", "root", "-N", "-B", "-e", statement]);
        text(&command.output().unwrap())
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id().cast_signed()), signal).unwrap();
    }

    /// Stops the server and waits until each of its threads has stopped: a thread on another CPU
    /// can still serve a request after `kill` has returned.
    pub(crate) fn freeze(&self) {
        self.signal(Signal::SIGSTOP);
        let tasks = format!("/proc/{}/task", self.child.id());
        let is_stopped = |task: io::Result<DirEntry>| {
            let stat = fs::read_to_string(task.unwrap().path().join("stat")).unwrap();
            stat.rsplit_once(')').unwrap().1.starts_with(" T")
        };
        wait_until("the server has stopped", || fs::read_dir(&tasks).unwrap().all(is_stopped));
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    pub(crate) fn end(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn text(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stdout).trim().to_string()
}

/// Tags of a record.
pub(crate) fn tags(tags: &[&str]) -> Vec<String> {
    tags.iter().map(|tag| (*tag).to_string()).collect()
}

/// The IDs that a cache contains, of those given.
pub(crate) fn kept<'a>(cache: &mut dyn TaggedCache, ids: &[&'a str]) -> Vec<&'a str> {
    let mut value = Vec::new();
    let mut has = |id: &str| cache.load(id, &mut value).unwrap() == Found::Yes;
    ids.iter().copied().filter(|id| has(id)).collect()
}

/// Checks every cache that can clean by any of several tags.
pub(crate) fn tagged_cache(cache: &mut dyn TaggedCache) {
    let mut value = b"left over".to_vec();
    assert_eq!(cache.load("A", &mut value).unwrap(), Found::No);
    assert!(value.is_empty());
    assert_eq!(cache.remove("A").unwrap(), Found::No);
    let any = (0..=255).collect::<Vec<u8>>().repeat(100);
    for value_in in [&any[..], b"", b"short", b"s:1:\"x\";\n"] {
        cache.save(Record::new("A", value_in, &tags(&["T1", "T2"]), Some(7200))).unwrap();
        assert_eq!(cache.load("A", &mut value).unwrap(), Found::Yes);
        assert!(value == value_in);
    }
    cache.save(Record::new("B", b"b", &tags(&["T2", "T3"]), None)).unwrap();
    cache.save(Record::new("C", b"c", &[], None)).unwrap();
    cache.save(Record::new("D", b"d", &tags(&["T3"]), None)).unwrap();
    cache.clean(CleanMode::MatchingAnyTag, &tags(&["T1", "T9"])).unwrap();
    assert_eq!(kept(cache, &["A", "B", "C", "D"]), ["B", "C", "D"]);
    assert_eq!(cache.remove("C").unwrap(), Found::Yes);
    // Uses another ID: if indexes keep stale IDs, the old one would still have its old tags.
    cache.save(Record::new("E", b"again", &tags(&["T1"]), None)).unwrap();
    cache.clean(CleanMode::MatchingAnyTag, &tags(&["T2", "T3"])).unwrap();
    assert_eq!(kept(cache, &["A", "B", "C", "D", "E"]), ["E"]);
    cache.clean(CleanMode::All, &[]).unwrap();
    assert_eq!(kept(cache, &["A", "B", "C", "D", "E"]), [""; 0]);
    cache.save(Record::new("A", b"after", &tags(&["T1"]), None)).unwrap();
    assert_eq!(kept(cache, &["A"]), ["A"]);
}

/// Additional checks of caches that support all clean modes.
pub(crate) fn cleaning_modes(cache: &mut dyn TaggedCache) {
    let ids = ["A", "B", "C", "D"];
    let fill = |cache: &mut dyn TaggedCache| {
        cache.save(Record::new("A", b"a", &tags(&["T1", "T2"]), None)).unwrap();
        cache.save(Record::new("B", b"b", &tags(&["T2"]), None)).unwrap();
        cache.save(Record::new("C", b"c", &tags(&["T3"]), Some(7200))).unwrap();
        cache.save(Record::new("D", b"d", &[], Some(1))).unwrap();
    };
    fill(cache);
    cache.clean(CleanMode::MatchingTag, &tags(&["T1", "T2"])).unwrap();
    assert_eq!(kept(cache, &ids), ["B", "C", "D"]);
    fill(cache);
    cache.clean(CleanMode::NotMatchingTag, &tags(&["T1", "T3"])).unwrap();
    assert_eq!(kept(cache, &ids), ["A", "C"]);
    fill(cache);
    thread::sleep(Duration::from_millis(2100));
    cache.clean(CleanMode::Old, &[]).unwrap();
    assert_eq!(kept(cache, &ids), ["A", "B", "C"]);
    cache.clean(CleanMode::MatchingTag, &tags(&["T9"])).unwrap();
    assert_eq!(kept(cache, &ids), ["A", "B", "C"]);
}

/// Checks everything about a plain store except the result of replacing a missing session.
pub(crate) fn plain_store(store: &mut dyn SessionStore) {
    let mut value = b"left over".to_vec();
    assert_eq!(store.read("1_0", &mut value).unwrap(), Found::No);
    assert!(value.is_empty());
    let long = "x'y\"z\\\r\n\tü".repeat(500).into_bytes();
    store.create("1_0", &long).unwrap();
    store.create("1_1", b"").unwrap();
    assert_eq!(store.read("1_0", &mut value).unwrap(), Found::Yes);
    assert!(value == long);
    assert_eq!(store.read("1_1", &mut value).unwrap(), Found::Yes);
    assert!(value.is_empty());
    for shorter in ["short", "short", "longer again"] {
        assert_eq!(store.replace("1_0", shorter.as_bytes()).unwrap(), Found::Yes);
        assert_eq!(store.read("1_0", &mut value).unwrap(), Found::Yes);
        assert_eq!(value, shorter.as_bytes());
    }
}

pub(crate) fn page_store(store: &mut dyn PageStore) {
    let mut value = b"left over".to_vec();
    assert!(store.close(b"nothing is open").is_err());
    let opened = store.open("abc", &mut value).unwrap();
    assert_eq!(opened.found, Found::No);
    assert!(value.is_empty());
    let mut waits = vec![(opened.lock.attempts, opened.lock.waited_ns)];
    let mut any = (0..=255).collect::<Vec<u8>>().repeat(20);
    for _ in 0..3 {
        assert_eq!(store.close(&any).unwrap(), Closed::Kept);
        let opened = store.open("abc", &mut value).unwrap();
        assert_eq!(opened.found, Found::Yes);
        assert!(value == any);
        waits.push((opened.lock.attempts, opened.lock.waited_ns));
        any.truncate(any.len() / 3);
    }
    // If waits are only detected by time, a pause on a busy machine can count as one.
    assert!(waits.contains(&(1, 0)), "{waits:?}");
    assert_eq!(store.close(b"end").unwrap(), Closed::Kept);
    assert!(store.close(b"twice").is_err());
}

/// The second client waits until the first has closed and sees its value.
pub(crate) fn contention(first: &mut dyn PageStore, second: &mut dyn PageStore, id: &str) {
    let held = Duration::from_millis(150);
    let closed = AtomicBool::new(false);
    let mut value = Vec::new();
    first.open(id, &mut value).unwrap();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let mut value = Vec::new();
            let opened = second.open(id, &mut value).unwrap();
            assert!(
                closed.load(Ordering::SeqCst),
                "the lock was acquired while another client held it"
            );
            assert_eq!(second.close(b"second").unwrap(), Closed::Kept);
            (opened, value)
        });
        thread::sleep(held);
        closed.store(true, Ordering::SeqCst);
        assert_eq!(first.close(b"first").unwrap(), Closed::Kept);
        let (opened, value) = waiting.join().unwrap();
        assert_eq!((opened.found, value.as_slice()), (Found::Yes, &b"first"[..]));
        assert!(opened.lock.attempts > 1, "{opened:?}");
        let waited = Duration::from_nanos(opened.lock.waited_ns);
        assert!(waited > held / 2 && waited < Duration::from_secs(3), "{opened:?}");
    });
    let opened = first.open(id, &mut value).unwrap();
    assert_eq!(value, b"second");
    // If waits are only detected by time, a pause on a busy machine can count as one.
    assert!(opened.lock.attempts <= 2, "{opened:?}");
    first.close(b"end").unwrap();
}

/// An open of a locked session fails after the timeout of two seconds, and the connection stays
/// usable.
pub(crate) fn locked_open_times_out(first: &mut dyn PageStore, second: &mut dyn PageStore) {
    let mut value = Vec::new();
    first.open("held", &mut value).unwrap();
    let (result, took) = timed(|| second.open("held", &mut value));
    let e = result.unwrap_err();
    assert_eq!((e.class, e.fatal), (ErrorClass::Lock, false), "{e}");
    assert!(took < Duration::from_secs(3), "{took:?}");
    first.close(b"x").unwrap();
    assert_eq!(second.open("held", &mut value).unwrap().found, Found::Yes);
    // Without a close, the next open releases the session and its lock.
    second.open("other", &mut value).unwrap();
    first.open("held", &mut value).unwrap();
    assert_eq!(value, b"x");
}

/// A collection deletes exactly the sessions whose lifetime is over, while `holder` has one open
/// that is not.
pub(crate) fn collects_expired(store: &mut dyn PageStore, holder: Option<&mut dyn PageStore>) {
    let mut value = Vec::new();
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    // Most stores count whole seconds, so all of this happens at the start of one.
    thread::sleep(Duration::from_secs(now().as_secs() + 1).saturating_sub(now()));
    let second = now().as_secs();
    // All older ones expire at the same time.
    let left_s = [0, 0, 0, 100, 300];
    for (number, left_s) in left_s.iter().enumerate() {
        store.open(&format!("aged{number}"), &mut value).unwrap();
        store.set_lifetime(*left_s);
        store.close(b"value").unwrap();
    }
    let early = store.collect().unwrap().deleted;
    assert!(early == 0 || now().as_secs() > second, "{early} in a second that is not over");
    thread::sleep(Duration::from_millis(1_100));
    if let Some(holder) = holder {
        assert_eq!(holder.open("aged4", &mut value).unwrap().found, Found::Yes);
        assert_eq!(early + store.collect().unwrap().deleted, 3);
        holder.close(b"value").unwrap();
    } else {
        assert_eq!(early + store.collect().unwrap().deleted, 3);
    }
    let Collected { deleted, files } = store.collect().unwrap();
    assert_eq!(deleted, 0);
    assert!(files == 0 || files >= 2, "{files}");
    for (number, left_s) in left_s.iter().enumerate() {
        let opened = store.open(&format!("aged{number}"), &mut value).unwrap();
        assert_eq!(opened.found, if *left_s == 0 { Found::No } else { Found::Yes }, "{number}");
        store.close(b"value").unwrap();
    }
}

/// Duration of a call.
pub(crate) fn timed<T>(call: impl FnOnce() -> T) -> (T, Duration) {
    let started = Instant::now();
    let result = call();
    (result, started.elapsed())
}
