//! A test's own directory.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;

use super::{Finished, Record, Started, proc};

const SESSIONS: [&str; 5] = ["sessions", "--scale", "quick", "--format", "json"];

/// Settings that shorten a trial to a fraction of a second.
pub(crate) const FAST: [&str; 10] = [
    "--set",
    "measure_ms=60",
    "--set",
    "warmup_ms=10",
    "--set",
    "sessions=200",
    "--set",
    "blocks_min=1",
    "--set",
    "blocks_max=1",
];

/// Timeout, far more than any test run takes even on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// Separate directories for TMPDIR, the disk under test and the records of one test.
pub(crate) struct Place {
    directory: TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        let directory = tempfile::Builder::new().prefix("cdtest").tempdir().unwrap();
        for part in ["tmp", "disk"] {
            fs::create_dir(directory.path().join(part)).unwrap();
        }
        Self { directory }
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn disk(&self) -> PathBuf {
        self.path().join("disk")
    }

    pub(crate) fn records(&self) -> PathBuf {
        self.path().join("records")
    }

    /// Writes a file outside the measured directories.
    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path().join(name);
        fs::write(&path, text).unwrap();
        path
    }

    /// The program without arguments, with its environment set.
    pub(crate) fn command(&self) -> Command {
        self.started(Command::new(assert_cmd::cargo::cargo_bin!("cachedyno")))
    }

    /// Another program in the same environment, such as one that starts cachedyno with limits.
    pub(crate) fn command_by(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(arguments);
        self.started(command)
    }

    /// Another program, run by a user without rights, and the directory that it may write to, which
    /// is like /tmp. Only root can do this.
    pub(crate) fn command_by_nobody(&self, program: &Path) -> (Command, PathBuf) {
        let shared = self.path().join("tmp");
        for (directory, mode) in [(self.path(), 0o755), (&shared, 0o1777)] {
            fs::set_permissions(directory, fs::Permissions::from_mode(mode)).unwrap();
        }
        let other = ["--reuid", "65534", "--regid", "65534", "--clear-groups"];
        let mut command = self.command_by("setpriv", &other);
        command.arg(program);
        (command, shared)
    }

    fn started(&self, mut command: Command) -> Command {
        command.current_dir(self.path()).env("TMPDIR", self.path().join("tmp"));
        // As if started by a shell: the leader of its own process group.
        command.process_group(0);
        command
    }

    /// `run` with these arguments and this place's records and disk.
    pub(crate) fn run(&self, arguments: &[&str]) -> Command {
        self.run_at(&self.records(), &self.disk(), arguments)
    }

    /// `run` with its records and disk elsewhere.
    pub(crate) fn run_at(&self, records: &Path, disk: &Path, arguments: &[&str]) -> Command {
        let mut command = self.command();
        command.arg("run").args(arguments);
        command.arg("--out").arg(records).arg("--disk").arg(disk);
        command
    }

    /// `run sessions` at the smallest size plus these arguments; prints the summary as JSON.
    pub(crate) fn fast(&self, arguments: &[&str]) -> Command {
        self.run(&[&SESSIONS, &FAST[..], arguments].concat())
    }

    /// Like [`Self::fast`], with records and disk elsewhere.
    pub(crate) fn fast_at(&self, records: &Path, disk: &Path, arguments: &[&str]) -> Command {
        self.run_at(records, disk, &[&SESSIONS, &FAST[..], arguments].concat())
    }

    /// A command on the records: `list`, `show`, ….
    pub(crate) fn on_records(&self, arguments: &[&str]) -> Finished {
        let mut command = self.command();
        command.args(arguments).arg("--out").arg(self.records());
        Self::finish(command)
    }

    /// Runs to the end.
    pub(crate) fn finish(command: Command) -> Finished {
        Started::new(command).finish_within(PATIENCE)
    }

    /// The only record.
    pub(crate) fn record(&self) -> Record {
        let mut found = self.all_records();
        assert_eq!(found.len(), 1, "{found:?}");
        Record::new(found.remove(0))
    }

    pub(crate) fn all_records(&self) -> Vec<PathBuf> {
        let Ok(entries) = fs::read_dir(self.records()) else { return Vec::new() };
        entries.map(|e| e.unwrap().path()).collect()
    }

    /// Leftovers of a run, except its record: processes, then directories and files below TMPDIR
    /// and the disk.
    pub(crate) fn left(&self) -> Vec<String> {
        let mut left = proc::mentioning(self.path());
        for part in [self.path().join("tmp"), self.disk()] {
            let entries = fs::read_dir(part).unwrap();
            left.extend(entries.map(|e| e.unwrap().path().display().to_string()));
        }
        left
    }

    /// Running processes started here, each with its id and command line.
    pub(crate) fn processes(&self) -> Vec<String> {
        proc::mentioning(self.path())
    }

    /// Whether any process started here is still running.
    pub(crate) fn has_processes(&self) -> bool {
        !self.processes().is_empty()
    }

    /// Asserts that a run left nothing but its record: no directory, no server, no guard. Allows
    /// the guard of a killed run some seconds.
    pub(crate) fn assert_nothing_left(&self) {
        let started = std::time::Instant::now();
        while !self.left().is_empty() && started.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(self.left(), Vec::<String>::new(), "left behind");
    }
}
