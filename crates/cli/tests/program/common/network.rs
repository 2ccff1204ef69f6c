//! Servers and clusters on loopback ports, and certificates for TLS.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

use super::proc::wait_until;

const PATIENCE: Duration = Duration::from_secs(60);

/// A server on a loopback port. It is killed when the test ends, even if the test is killed.
pub(crate) struct PortServer {
    child: Child,
    directory: TempDir,
    pub(crate) port: u16,
}

impl PortServer {
    fn start(program: &str, arguments: &[&str], port: u16, directory: TempDir) -> Self {
        let log = fs::File::create(directory.path().join("log")).unwrap();
        let child = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", program])
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut server = Self { child, directory, port };
        wait_until(&format!("{program} listens"), PATIENCE, || {
            let ended = server.child.try_wait().unwrap();
            assert!(ended.is_none(), "{program} did not start: {}", server.log());
            TcpStream::connect(("127.0.0.1", port)).ok()
        });
        server
    }

    /// Starts memcached with additional options.
    pub(crate) fn memcached(more: &[&str]) -> Self {
        let (port, directory) = (rig::free_port(0).unwrap(), tempfile::tempdir().unwrap());
        let number = port.to_string();
        let own = ["-l", "127.0.0.1", "-p", &number, "-t", "1", "-u", "root"];
        Self::start("memcached", &[&own[..], more].concat(), port, directory)
    }

    /// Starts nutcracker before Redis servers.
    pub(crate) fn nutcracker(servers: &[&Self]) -> Self {
        let (port, directory) = (rig::free_port(0).unwrap(), tempfile::tempdir().unwrap());
        let server = |(number, server): (usize, &&Self)| {
            format!("  - 127.0.0.1:{}:1 s{number}\n", server.port)
        };
        let lines: String = servers.iter().enumerate().map(server).collect();
        let text = format!(
            "x:\n  listen: 127.0.0.1:{port}\n  redis: true\n  hash: fnv1a_64\n  \
             distribution: ketama\n  timeout: 5000\n  servers:\n{lines}"
        );
        let file = directory.path().join("nutcracker.yml");
        fs::write(&file, text).unwrap();
        let (file, statistics) =
            (file.display().to_string(), rig::free_port(0).unwrap().to_string());
        let arguments = ["-c", &file, "-a", "127.0.0.1", "-s", &statistics];
        Self::start("nutcracker", &arguments, port, directory)
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id().cast_signed()), signal).unwrap();
    }

    /// Starts Redis with additional settings; if they contain a certificate, the port uses TLS.
    pub(crate) fn redis(more: &[&str]) -> Self {
        let (port, directory) = (rig::free_port(0).unwrap(), tempfile::tempdir().unwrap());
        let number = port.to_string();
        let is_tls = more.contains(&"--tls-cert-file");
        let [plain, tls] = if is_tls { ["0", &number] } else { [&*number, "0"] };
        let at = directory.path().display().to_string();
        let socket = format!("{at}/s.sock");
        let own = ["--port", plain, "--tls-port", tls, "--bind", "127.0.0.1", "--dir", &at];
        let more = [&own[..], &["--save", "", "--unixsocket", &socket], more].concat();
        Self::start("redis-server", &more, port, directory)
    }

    /// Sends a command with redis-cli, independently of cachedyno's own client code.
    pub(crate) fn ask(&self, words: &[&str]) -> String {
        let socket = self.directory.path().join("s.sock");
        let output = Command::new("redis-cli").arg("-s").arg(socket).args(words).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stdout).trim().to_string()
    }

    /// Number of calls of a command on a Redis server.
    pub(crate) fn calls(&self, command: &str) -> u64 {
        let start = format!("cmdstat_{command}:calls=");
        let stats = self.ask(&["INFO", "commandstats"]);
        let of = |line: &str| line.strip_prefix(&start)?.split(',').next()?.parse().ok();
        stats.lines().find_map(of).unwrap_or(0)
    }

    /// Sends a request to memcached and returns its whole reply.
    pub(crate) fn say(&self, text: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(format!("{text}\r\nquit\r\n").as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// The server's log so far.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.directory.path().join("log")).unwrap()
    }

    /// A memcached statistic.
    pub(crate) fn stat(&self, name: &str) -> u64 {
        let (stats, start) = (self.say("stats"), format!("STAT {name} "));
        let found = stats.lines().find_map(|line| line.strip_prefix(&start)?.parse().ok());
        found.unwrap_or_else(|| panic!("no {name} in {stats}"))
    }
}

impl Drop for PortServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A cluster of three Redis primaries, optionally with one replica each.
pub(crate) struct Cluster(pub(crate) Vec<PortServer>);

impl Cluster {
    /// Starts servers and creates a cluster. Errors: the output of redis-cli.
    fn created(replicas: bool) -> Result<Self, String> {
        let (servers, timeout_ms) = if replicas { (6, "1000") } else { (3, "15000") };
        let cluster = Self((0..servers).map(|_| Self::server(timeout_ms)).collect());
        let output = Command::new("redis-cli")
            .args(["--cluster", "create"])
            .args(cluster.0.iter().map(|server| format!("127.0.0.1:{}", server.port)))
            .args(["--cluster-replicas", if replicas { "1" } else { "0" }, "--cluster-yes"])
            .output()
            .unwrap();
        if output.status.success() { Ok(cluster) } else { Err(format!("{output:?}")) }
    }

    /// A server that can join a cluster with this node timeout.
    pub(crate) fn server(timeout_ms: &str) -> PortServer {
        let bus = rig::free_port(0).unwrap().to_string();
        let own = ["--cluster-enabled", "yes", "--cluster-port", &bus];
        let timeout = ["--cluster-node-timeout", timeout_ms];
        PortServer::redis(&[&own[..], &timeout].concat())
    }

    pub(crate) fn new() -> Self {
        Self::formed(false)
    }

    /// A cluster whose primaries each have a synchronised replica.
    pub(crate) fn with_replicas() -> Self {
        let cluster = Self::formed(true);
        wait_until("replicas are in sync", PATIENCE, || {
            let in_step = |server: &&PortServer| {
                let info = server.ask(&["INFO", "replication"]);
                info.contains("master_link_status:up") || info.contains("state=online")
            };
            (cluster.0.iter().filter(in_step).count() == 6).then_some(())
        });
        cluster
    }

    fn formed(replicas: bool) -> Self {
        // Retry once: a free port can be taken before a server binds it.
        let cluster = Self::created(replicas).or_else(|_| Self::created(replicas)).unwrap();
        wait_until("the cluster forms", PATIENCE, || {
            let ready = |server: &PortServer| {
                let servers = server.ask(&["CLUSTER", "SHARDS"]).matches("online").count();
                server.ask(&["CLUSTER", "INFO"]).contains("cluster_state:ok")
                    && servers == cluster.0.len()
            };
            cluster.0.iter().all(ready).then_some(())
        });
        cluster
    }

    /// Number of keys on each server.
    pub(crate) fn sizes(&self) -> Vec<u64> {
        self.0.iter().map(|server| server.ask(&["DBSIZE"]).parse().unwrap()).collect()
    }
}

/// A certificate authority `ca.pem`, and certificates signed by it, with their keys.
pub(crate) struct Certificates(TempDir);

impl Certificates {
    /// One certificate for each pair of name and extension.
    pub(crate) fn new(names: &[(&str, &str)]) -> Self {
        let made = Self(tempfile::tempdir().unwrap());
        made.openssl(
            "req -x509 -newkey rsa:2048 -nodes -days 2 -keyout ca.key -out ca.pem -subj /CN=ca",
        );
        for (name, extension) in names {
            fs::write(made.0.path().join("ext"), extension).unwrap();
            made.openssl(&format!(
                "req -newkey rsa:2048 -nodes -keyout {name}.key -out {name}.csr -subj /CN={name}"
            ));
            made.sign(name, "2");
        }
        made
    }

    /// Makes a certificate expire yesterday.
    pub(crate) fn expire(&self, name: &str) {
        self.sign(name, "-1");
    }

    /// Signs a request with the extension of the file `ext`, for a number of days from now.
    fn sign(&self, name: &str, days: &str) {
        self.openssl(&format!(
            "x509 -req -in {name}.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days {days} \
             -out {name}.pem -extfile ext"
        ));
    }

    fn openssl(&self, arguments: &str) {
        let mut command = Command::new("openssl");
        let output = command.args(arguments.split(' ')).current_dir(self.0.path()).output();
        let output = output.unwrap();
        assert!(output.status.success(), "{output:?}");
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }

    /// Starts a Redis server with the certificate of this name.
    pub(crate) fn redis(&self, name: &str, more: &[&str]) -> PortServer {
        let [cert, key] = ["pem", "key"].map(|end| self.path(&format!("{name}.{end}")));
        let ca = self.path("ca.pem");
        let own = ["--tls-cert-file", &cert, "--tls-key-file", &key, "--tls-ca-cert-file", &ca];
        PortServer::redis(&[&own[..], more].concat())
    }
}
