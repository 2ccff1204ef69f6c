//! Test servers, and a connection that parses replies in pieces of any size.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use load::wire::protocol::{Expect, Judged, Parser, Shape, Step};
use load::wire::template::{Filling, Segment, Template};
use tempfile::TempDir;
use workloads::kv::{Key, KeyNames, Stream, Values};

pub(crate) const OK: Judged = Judged::Ok { verified: false };
pub(crate) const ANY: Expect = Expect { shape: Shape::Any, bytes: None, verify: false, key: 0 };
pub(crate) const DONE: Expect = Expect { shape: Shape::Done, ..ANY };
pub(crate) const VALUE: Expect = Expect { shape: Shape::Value, ..ANY };
/// Bytes of the values that templates write.
pub(crate) const VALUE_BYTES: usize = 1024;

/// Longest time for a server to reply or to continue reading.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(20);

pub(crate) fn installed(program: &str) -> bool {
    let found = Command::new("sh").args(["-c", &format!("command -v {program}")]).output();
    let there = found.is_ok_and(|o| o.status.success());
    if !there {
        eprintln!("skipped: {program} is not installed");
    }
    there
}

/// A server process; ends with the test, even if the test panics or is killed.
pub(crate) struct Server {
    child: Child,
    directory: TempDir,
}

impl Server {
    /// Starts a server with the socket `s.sock` in its own directory, from which `args` are built.
    pub(crate) fn start(program: &str, args: impl FnOnce(&str) -> Vec<String>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let log = std::fs::File::create(directory.path().join("log")).unwrap();
        let child = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", program])
            .args(args(&directory.path().display().to_string()))
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut server = Self { child, directory };
        let started = Instant::now();
        while UnixStream::connect(server.socket()).is_err() {
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
        Self::start("redis-server", |directory| {
            let text = format!("--save '' --dir {directory} --unixsocket {directory}/s.sock");
            let mut args: Vec<String> =
                text.split(' ').map(|word| word.replace('\'', "")).collect();
            if !more.contains(&"--port") {
                args.extend(["--port".into(), "0".into()]);
            }
            args.extend(more.iter().map(|word| (*word).into()));
            args
        })
    }

    pub(crate) fn memcached(more: &[&str]) -> Self {
        Self::start("memcached", |directory| {
            let mut args: Vec<String> =
                ["-u", "root", "-t", "1", "-s"].iter().map(|word| (*word).into()).collect();
            args.push(format!("{directory}/s.sock"));
            args.extend(more.iter().map(|word| word.replace("{directory}", directory)));
            args
        })
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.directory.path().join("s.sock")
    }

    pub(crate) fn connect<P: Parser + Default>(&self) -> Line<P> {
        let stream = UnixStream::connect(self.socket()).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        stream.set_write_timeout(Some(TIMEOUT)).unwrap();
        Line::over(Box::new(stream))
    }

    /// Queries the server with its own client, so that our code does not verify itself.
    pub(crate) fn redis_cli(&self, args: &[&str]) -> String {
        let output =
            Command::new("redis-cli").arg("-s").arg(self.socket()).args(args).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stdout).trim().to_string()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Both directions of a connection.
pub(crate) trait Both: Read + Write {}

impl<T: Read + Write> Both for T {}

/// A connection whose replies go through a parser.
pub(crate) struct Line<P> {
    stream: Box<dyn Both>,
    parser: P,
    at_hand: Vec<u8>,
    /// Bytes per read.
    pub(crate) piece: usize,
    values: Values,
}

impl<P: Parser + Default> Line<P> {
    pub(crate) fn over(stream: Box<dyn Both>) -> Self {
        let (parser, at_hand, values) = (P::default(), Vec::new(), Values::new(1));
        Self { stream, parser, at_hand, piece: 16 << 10, values }
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    /// The next reply.
    pub(crate) fn receive(&mut self, expect: &Expect) -> Judged {
        loop {
            if !self.at_hand.is_empty() {
                let step = self.parser.advance(&self.at_hand, expect, &self.values).unwrap();
                let (Step::Whole { used, .. } | Step::More { used }) = step;
                self.at_hand.drain(..used);
                if let Step::Whole { judged, .. } = step {
                    return judged;
                }
            }
            let mut piece = vec![0; self.piece];
            let read = match self.stream.read(&mut piece) {
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                read => read.unwrap(),
            };
            assert!(read > 0, "the server ended the connection");
            self.at_hand.extend_from_slice(&piece[..read]);
        }
    }

    pub(crate) fn ask(&mut self, bytes: &[u8], expect: &Expect) -> Judged {
        self.send(bytes);
        self.receive(expect)
    }

    /// Sends a template filled in for a key and a version.
    pub(crate) fn fill_in(&mut self, segments: &[Segment], key: u64, version: u64) {
        let names = KeyNames::default();
        let filling = Filling {
            key: Key(key),
            n: version,
            digits: Stream::new(1, 2),
            value_bytes: VALUE_BYTES,
            names: &names,
            values: &self.values,
        };
        let mut out = Vec::new();
        Template::new(segments.to_vec(), &names, Some(VALUE_BYTES)).append(&mut out, &filling);
        self.send(&out);
    }
}
