//! Servers, the two programs, and texts without their numbers.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// Far more than any call of a test takes on a busy machine.
const PATIENCE_S: &str = "120";

/// Whether the programs are there. Without them a test is skipped with a word, but on a machine
/// that is there to test (CI=true) that is a failure.
pub(crate) fn installed(programs: &[&str]) -> bool {
    let there = |program: &&&str| {
        let found = Command::new("sh").args(["-c", &format!("command -v {program}")]).output();
        !found.is_ok_and(|output| output.status.success())
    };
    let Some(program) = programs.iter().find(there) else { return true };
    let must = std::env::var_os("CI").is_some_and(|ci| ci == "true");
    assert!(!must, "{program} is not installed, and CI=true");
    eprintln!("skipped: {program} is not installed");
    false
}

/// What most tests need.
pub(crate) fn tools() -> bool {
    installed(&["redis-server", "redis-benchmark", "redis-cli", "setpriv"])
}

/// A Redis server on a port and a unix socket; ends with the test, also when that is killed.
pub(crate) struct Server {
    child: Child,
    directory: TempDir,
    pub(crate) port: u16,
    password: Option<String>,
    is_tls: bool,
}

impl Server {
    pub(crate) fn new() -> Self {
        Self::with(&[])
    }

    /// With more settings, as on its command line.
    pub(crate) fn with(more: &[&str]) -> Self {
        let directory = tempfile::Builder::new().prefix("rbtest").tempdir().unwrap();
        let port = free_port();
        let is_tls = more.contains(&"--tls-cert-file");
        let number = port.to_string();
        let [plain, tls] = if is_tls { ["0", &number] } else { [&number, "0"] };
        let mut child = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "redis-server", "--save", "3600 1 300 100"])
            .args(["--port", plain, "--tls-port", tls])
            .args(["--bind", "127.0.0.1", "--enable-debug-command", "yes", "--dir"])
            .arg(directory.path())
            .arg("--unixsocket")
            .arg(directory.path().join("s.sock"))
            .args(more)
            .stdin(Stdio::null())
            .stdout(fs::File::create(directory.path().join("log")).unwrap())
            .spawn()
            .unwrap();
        let started = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            let gone = child.try_wait().unwrap();
            let log = || fs::read_to_string(directory.path().join("log")).unwrap();
            let late = started.elapsed() > Duration::from_secs(30);
            assert!(gone.is_none() && !late, "it did not start: {}", log());
            std::thread::sleep(Duration::from_millis(10));
        }
        let password = more.iter().position(|word| *word == "--requirepass");
        let password = password.map(|at| more[at + 1].to_string());
        Self { child, directory, port, password, is_tls }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.directory.path().join("s.sock")
    }

    /// Asks by the server's own client, so that nothing of ours checks itself.
    pub(crate) fn ask(&self, words: &[&str]) -> String {
        let mut command = Command::new("redis-cli");
        command.arg("-s").arg(self.socket()).args(words);
        if let Some(password) = &self.password {
            command.env("REDISCLI_AUTH", password);
        }
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        text(&output.stdout).trim().to_string()
    }

    /// Runs one of the programs against its port, or with TLS as `more` says.
    pub(crate) fn run(&self, program: Program, arguments: &[&str]) -> Ran {
        run(self.call(program).args(arguments))
    }

    fn call(&self, program: Program) -> Command {
        let mut command = program.command();
        if self.is_tls {
            command.args(["-h", "localhost"]);
        }
        command.arg("-p").arg(self.port.to_string());
        command
    }

    /// The same, ours.
    pub(crate) fn ours(&self, arguments: &[&str]) -> Ran {
        self.run(Program::Ours, arguments)
    }

    /// The same with an environment of its own.
    pub(crate) fn ours_with(&self, variables: &[(&str, String)], arguments: &[&str]) -> Ran {
        let mut command = self.call(Program::Ours);
        run(command.args(arguments).envs(variables.iter().cloned()))
    }

    pub(crate) fn password(&self) -> Option<&str> {
        self.password.as_deref()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// The original, or ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Program {
    Original,
    Ours,
}

impl Program {
    /// Ends by itself, however long it would take.
    pub(crate) fn command(self) -> Command {
        let mut command = Command::new("timeout");
        command.args(["--foreground", PATIENCE_S]);
        match self {
            Self::Original => command.arg("redis-benchmark"),
            Self::Ours => command.arg(ours()).arg("redis-benchmark"),
        };
        command
    }
}

pub(crate) fn ours() -> &'static Path {
    Path::new(assert_cmd::cargo::cargo_bin!("cachedyno"))
}

/// How a program ended.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

pub(crate) fn run(command: &mut Command) -> Ran {
    Ran::of(&command.stdin(Stdio::null()).output().unwrap())
}

impl Ran {
    pub(crate) fn of(output: &Output) -> Self {
        let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
        Self { code: output.status.code(), stdout, stderr }
    }

    #[track_caller]
    pub(crate) fn code(self, expected: i32) -> Self {
        assert_eq!(self.code, Some(expected), "{self:#?}");
        self
    }

    /// Panics unless standard error holds the words.
    #[track_caller]
    pub(crate) fn says(self, words: &str) -> Self {
        assert!(self.stderr.contains(words), "no `{words}` in {self:#?}");
        self
    }

    #[track_caller]
    pub(crate) fn says_nothing_of(self, words: &str) -> Self {
        assert!(!self.stderr.contains(words), "`{words}` in {self:#?}");
        self
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The lines of standard output with numbers masked: how many latencies are listed depends on
/// chance, so equal lines beside each other are one. Of a line that was overwritten only the last
/// state is kept, with a mark.
pub(crate) fn form(stdout: &str) -> Vec<String> {
    let mut lines: Vec<String> = stdout.split('\n').map(masked).collect();
    lines.dedup();
    lines
}

fn masked(line: &str) -> String {
    let (mark, line) = match line.rsplit_once('\r') {
        Some((_, last)) => ("\\r", last),
        None => ("", line),
    };
    let mut out = mark.to_string();
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        let number = number(rest);
        if number > 0 {
            // Cells are set to the right: blanks before a number belong to it.
            let blanks = out.len() - out.trim_end_matches(' ').len();
            out.truncate(out.len() - blanks);
            out.push_str(if blanks > 0 { " N" } else { "N" });
            rest = &rest[number..];
        } else {
            out.push(first);
            rest = &rest[first.len_utf8()..];
        }
    }
    out
}

/// Bytes of the number at the beginning; the original also prints what division by zero gives.
fn number(text: &str) -> usize {
    for word in ["-nan", "nan", "inf"] {
        if text.starts_with(word) {
            return word.len();
        }
    }
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    if text.starts_with(|c: char| c.is_ascii_digit()) { end } else { 0 }
}

/// The same without the test that redis-benchmark has only from 7.2 on.
pub(crate) fn without_xadd(stdout: &str) -> String {
    let mut kept = String::new();
    let mut inside = false;
    for line in stdout.split_inclusive('\n') {
        let last = line.rsplit('\r').next().unwrap();
        inside = match last {
            _ if last.starts_with("====== ") => last.starts_with("====== XADD"),
            _ if last.starts_with("XADD:") || last.starts_with("\"XADD\"") => true,
            // The blank line behind the last test.
            _ => inside && !kept_blank(stdout, line),
        };
        if !inside {
            kept.push_str(line);
        }
    }
    kept
}

/// True for the very last line, a blank one.
fn kept_blank(stdout: &str, line: &str) -> bool {
    let end = stdout.as_ptr() as usize + stdout.len();
    line == "\n" && line.as_ptr() as usize + line.len() == end
}
