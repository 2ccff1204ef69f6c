//! Existing servers with foreign data.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

use super::proc::wait_until;

/// A server process. It is killed when the test ends, even if the test is killed.
struct Server {
    child: Child,
    directory: TempDir,
}

impl Server {
    fn start(directory: TempDir, program: &str, arguments: &[String]) -> Self {
        let child = Self::spawn(&directory, program, arguments);
        let mut server = Self { child, directory };
        server.wait_until_listening(program);
        server
    }

    fn spawn(directory: &TempDir, program: &str, arguments: &[String]) -> Child {
        let log = fs::File::create(directory.path().join("log")).unwrap();
        Command::new("setpriv")
            .args(["--pdeathsig", "KILL", program])
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap()
    }

    fn wait_until_listening(&mut self, program: &str) {
        wait_until(&format!("{program} listens"), Duration::from_secs(30), || {
            let log = || fs::read_to_string(self.directory.path().join("log")).unwrap();
            let ended = self.child.try_wait().unwrap();
            assert!(ended.is_none(), "{program} did not start: {}", log());
            std::os::unix::net::UnixStream::connect(self.directory.path().join("s.sock")).ok()
        });
    }

    fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    fn socket(&self) -> PathBuf {
        self.directory.path().join("s.sock")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A Redis server on a unix socket and optionally a port.
pub(crate) struct RedisServer {
    server: Server,
    port: u16,
    password: Option<String>,
}

impl RedisServer {
    pub(crate) fn new() -> Self {
        Self::with(0, None)
    }

    pub(crate) fn with_password(password: &str) -> Self {
        Self::with(0, Some(password.into()))
    }

    /// A server that also listens on a port of 127.0.0.1.
    pub(crate) fn on_a_port() -> Self {
        let port = rig::free_port(0).unwrap();
        Self::with(port, None)
    }

    fn with(port: u16, password: Option<String>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let at = directory.path().display();
        let mut text =
            format!("port {port}\nbind 127.0.0.1\nsave \"\"\ndir {at}\nunixsocket {at}/s.sock\n");
        if let Some(password) = &password {
            text.extend(["requirepass ", password, "\n"]);
        }
        let file = directory.path().join("redis.conf");
        fs::write(&file, text).unwrap();
        let server = Server::start(directory, "redis-server", &[file.display().to_string()]);
        Self { server, port, password }
    }

    /// URL of its database 0 by its port.
    pub(crate) fn port_url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.server.child.id().cast_signed()), signal).unwrap();
    }

    /// Kills the server, as in a crash.
    pub(crate) fn kill(&mut self) {
        self.server.kill();
    }

    /// Restarts the killed server at the same socket, without data.
    pub(crate) fn start_again(&mut self) {
        fs::remove_file(self.server.socket()).unwrap();
        let file = self.server.directory.path().join("redis.conf");
        let arguments = [file.display().to_string()];
        self.server.child = Server::spawn(&self.server.directory, "redis-server", &arguments);
        self.server.wait_until_listening("redis-server");
    }

    /// URL of its database 0, without a password.
    pub(crate) fn url(&self) -> String {
        format!("redis+unix://{}", self.server.socket().display())
    }

    /// The URL with a password; for that, a unix socket's URL needs a host.
    pub(crate) fn url_with(&self, password: &str) -> String {
        format!("redis+unix://:{password}@localhost{}", self.server.socket().display())
    }

    /// Sends a command with the server's own client, independently of cachedyno's client code.
    pub(crate) fn ask(&self, arguments: &[&str]) -> String {
        let mut command = Command::new("redis-cli");
        command.arg("-s").arg(self.server.socket()).args(arguments);
        if let Some(password) = &self.password {
            command.env("REDISCLI_AUTH", password);
        }
        text(&command.output().unwrap())
    }

    /// Every key, sorted.
    pub(crate) fn keys(&self) -> Vec<String> {
        let mut keys: Vec<String> = self.ask(&["KEYS", "*"]).lines().map(Into::into).collect();
        keys.sort();
        keys
    }
}

/// A MariaDB server on a unix socket, with the database `shop` and the account `clerk`.
pub(crate) struct MariadbServer {
    server: Server,
}

impl MariadbServer {
    pub(crate) const PASSWORD: &str = "clerks-own-word-81";

    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let data = format!("--datadir={}", directory.path().join("data").display());
        // A server removes the temporary tables in its directory when it starts.
        let temporary = format!("--tmpdir={}", directory.path().display());
        // MariaDB refuses to run as root without an explicit user.
        let user: &[&str] = if nix::unistd::geteuid().is_root() { &["--user=root"] } else { &[] };
        let made = Command::new("mariadb-install-db")
            .args(["--no-defaults", "--skip-test-db", &data, &temporary])
            .arg("--auth-root-authentication-method=normal")
            .args(user)
            .output()
            .unwrap();
        assert!(made.status.success(), "{made:?}");
        let socket = format!("--socket={}", directory.path().join("s.sock").display());
        let mut arguments: Vec<String> = vec!["--no-defaults".into(), data, temporary, socket];
        for more in [&["--skip-networking", "--innodb-buffer-pool-size=32M"], user].concat() {
            arguments.push(more.into());
        }
        let server = Self { server: Server::start(directory, "mariadbd", &arguments) };
        server.ask("CREATE DATABASE shop");
        let password = Self::PASSWORD;
        server.ask(&format!("CREATE USER clerk@localhost IDENTIFIED BY '{password}'"));
        server.ask("GRANT ALL ON shop.* TO clerk@localhost");
        server
    }

    /// URL of the clerk's `shop`, without a password.
    pub(crate) fn url(&self) -> String {
        format!("mysql+unix://{}?database=shop&user=clerk", self.server.socket().display())
    }

    /// Sends a command with the server's own client, independently of cachedyno's client code.
    pub(crate) fn ask(&self, statement: &str) -> String {
        let mut command = Command::new("mariadb");
        command.arg("--no-defaults").arg("-S").arg(self.server.socket());
        text(&command.args(["-u", "root", "-N", "-B", "-e", statement]).output().unwrap())
    }
}

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stdout).trim().to_string()
}
