//! Servers, the two programs, and output with masked numbers.

use std::fs;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// Timeout in seconds, far more than any call takes even on a loaded machine.
const PATIENCE_S: &str = "120";

/// Whether the programs are installed. If not, the test prints a note and is skipped; with CI=true
/// it panics.
pub(crate) fn installed(programs: &[&str]) -> bool {
    let is_missing = |program: &&&str| {
        let found = Command::new("sh").args(["-c", &format!("command -v {program}")]).output();
        !found.is_ok_and(|output| output.status.success())
    };
    let Some(program) = programs.iter().find(is_missing) else { return true };
    let is_ci = std::env::var_os("CI").is_some_and(|ci| ci == "true");
    assert!(!is_ci, "{program} is not installed, and CI=true");
    eprintln!("skipped: {program} is not installed");
    false
}

/// Whether the programs that most tests need are installed.
pub(crate) fn tools() -> bool {
    installed(&["redis-server", "redis-benchmark", "redis-cli", "setpriv"])
}

/// A Redis server on a port and a unix socket. It is killed when the test ends, even if the test is
/// killed.
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

    /// A server with additional command-line arguments.
    pub(crate) fn with(more: &[&str]) -> Self {
        let directory = tempfile::Builder::new().prefix("rbtest").tempdir().unwrap();
        let port = rig::free_port(0).unwrap();
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
            let exited = child.try_wait().unwrap();
            let log = || fs::read_to_string(directory.path().join("log")).unwrap();
            let late = started.elapsed() > Duration::from_secs(30);
            assert!(exited.is_none() && !late, "redis-server did not start: {}", log());
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

    /// Sends a command with redis-cli, independently of cachedyno's own client code.
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

    /// Runs one of the programs against the server's port.
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

    /// Runs cachedyno against the server's port.
    pub(crate) fn ours(&self, arguments: &[&str]) -> Ran {
        self.run(Program::Ours, arguments)
    }

    /// Runs cachedyno with additional environment variables.
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

/// The original or cachedyno.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Program {
    Original,
    Ours,
}

impl Program {
    /// A command that is killed after [`PATIENCE_S`] seconds.
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

/// Exit code and output of a program.
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

    /// Panics unless standard error contains `words`.
    #[track_caller]
    pub(crate) fn with_stderr(self, words: &str) -> Self {
        assert!(self.stderr.contains(words), "no `{words}` in {self:#?}");
        self
    }

    #[track_caller]
    pub(crate) fn without_stderr(self, words: &str) -> Self {
        assert!(!self.stderr.contains(words), "`{words}` in {self:#?}");
        self
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The lines of standard output with masked numbers. Equal adjacent lines are merged, since the
/// number of listed latencies varies. Of overwritten lines only the last state is kept and marked.
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
            // Cells are right-aligned: blanks before a number belong to it.
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

/// Length in bytes of the number at the start. The original also prints `nan` and `inf`, after
/// divisions by zero.
fn number(text: &str) -> usize {
    for word in ["-nan", "nan", "inf"] {
        if text.starts_with(word) {
            return word.len();
        }
    }
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    if text.starts_with(|c: char| c.is_ascii_digit()) { end } else { 0 }
}

/// Standard output without the XADD test, which redis-benchmark has only since 7.2.
pub(crate) fn without_xadd(stdout: &str) -> String {
    let mut kept = String::new();
    let mut inside = false;
    for line in stdout.split_inclusive('\n') {
        let last = line.rsplit('\r').next().unwrap();
        inside = match last {
            _ if last.starts_with("====== ") => last.starts_with("====== XADD"),
            _ if last.starts_with("XADD:") || last.starts_with("\"XADD\"") => true,
            // The blank line after the last test.
            _ => inside && !kept_blank(stdout, line),
        };
        if !inside {
            kept.push_str(line);
        }
    }
    kept
}

/// True for a blank last line.
fn kept_blank(stdout: &str, line: &str) -> bool {
    let end = stdout.as_ptr() as usize + stdout.len();
    line == "\n" && line.as_ptr() as usize + line.len() == end
}
