//! A directory of a test's own.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;

use super::{Finished, Record, Started, proc};

const SESSIONS: [&str; 5] = ["sessions", "--scale", "quick", "--format", "json"];

/// Settings under which a trial takes a fraction of a second.
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

/// Far more than any run of a test takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// TMPDIR, the disk under test and the records of one test, each its own directory.
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

    /// A file of the test's own, outside of what is measured.
    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path().join(name);
        fs::write(&path, text).unwrap();
        path
    }

    /// The program, with nothing but its environment set.
    pub(crate) fn command(&self) -> Command {
        self.started(Command::new(assert_cmd::cargo::cargo_bin!("cachedyno")))
    }

    /// Another program in the same environment, such as one that starts ours with less.
    pub(crate) fn command_by(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(arguments);
        self.started(command)
    }

    fn started(&self, mut command: Command) -> Command {
        command.current_dir(self.path()).env("TMPDIR", self.path().join("tmp"));
        // As a shell starts it: the leader of a process group of its own.
        command.process_group(0);
        command
    }

    /// `run` with these arguments, this place's records and disk.
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

    /// `run sessions` in the smallest size, then these arguments, with the summary as result.
    pub(crate) fn fast(&self, arguments: &[&str]) -> Command {
        self.run(&[&SESSIONS, &FAST[..], arguments].concat())
    }

    /// The same with its records and disk elsewhere.
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

    /// What a run made that is still there, besides its record: processes, then directories and
    /// files below TMPDIR and the disk.
    pub(crate) fn left(&self) -> Vec<String> {
        let mut left = proc::that_name(self.path());
        for part in [self.path().join("tmp"), self.disk()] {
            let entries = fs::read_dir(part).unwrap();
            left.extend(entries.map(|e| e.unwrap().path().display().to_string()));
        }
        left
    }

    /// Living processes that were started here, each as its id and its command line.
    pub(crate) fn processes(&self) -> Vec<String> {
        proc::that_name(self.path())
    }

    /// Whether there is any.
    pub(crate) fn has_processes(&self) -> bool {
        !self.processes().is_empty()
    }

    /// Nothing that a run made is there any more but its record: no directory, no server, no
    /// guard. The guard of a killed run gets some seconds.
    pub(crate) fn assert_nothing_left(&self) {
        let started = std::time::Instant::now();
        while !self.left().is_empty() && started.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(self.left(), Vec::<String>::new(), "left behind");
    }
}
