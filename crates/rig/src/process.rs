//! A started program: pinned, logged, owned by the guard, and killed on drop.

use crate::child;
use crate::control_group::procs;
use crate::cpu::{allowed_by_the_system, cpu_set};
use crate::error::{Result, RigError};
use crate::guard::Guard;
use crate::network::Network;
use crate::procfs::Identity;
use crate::search::SearchPath;
use crate::tree::ProcessTree;
use model::Failure;
use nix::errno::Errno;
use nix::sched::{CloneFlags, CpuSet, sched_setaffinity, setns};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::{Pid, getpid, getppid};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Bytes at the end of a log that are searched for its last lines.
const LOG_TAIL_BYTES: u64 = 8 * 1024;
/// Lines of a log that are shown.
const LOG_TAIL_LINES: usize = 6;

/// `oom_score_adj` of a server with a memory limit (proc(5), at most 1000), so that the kernel
/// kills it first when its group runs out of memory.
const OOM_SCORE: &str = "900";

/// Time that killed helper processes have to end.
const HELPERS_WITHIN: Duration = Duration::from_secs(5);
/// Time that a server has to quit after the signal.
const QUIT_WITHIN: Duration = Duration::from_secs(2);

/// A program to start.
#[derive(Debug)]
pub(crate) struct Launch {
    pub(crate) name: &'static str,
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<OsString>,
    /// Working directory, and its TMPDIR and HOME.
    pub(crate) directory: PathBuf,
    /// Receives standard output and standard error.
    pub(crate) log: PathBuf,
    pub(crate) cpus: Option<Vec<usize>>,
    /// Control group with a memory limit to start it in; `None` for that of this process.
    pub(crate) group: Option<PathBuf>,
    /// Control groups with other limits to start it in.
    pub(crate) other_groups: Vec<PathBuf>,
    /// Network to start it in; `None` for that of this process.
    pub(crate) network: Option<Arc<Network>>,
    pub(crate) search: SearchPath,
}

impl Launch {
    /// A program that creates files in `directory` and exits; its log is `install.log` there.
    pub(crate) fn installer(
        name: &'static str,
        program: PathBuf,
        arguments: Vec<OsString>,
        directory: &Path,
        search: &SearchPath,
    ) -> Self {
        let log = directory.join("install.log");
        let (cpus, group, other_groups, network) = (None, None, Vec::new(), None);
        let (directory, search) = (directory.into(), search.clone());
        Self {
            name,
            program,
            arguments,
            directory,
            log,
            cpus,
            group,
            other_groups,
            network,
            search,
        }
    }
}

#[derive(Debug)]
pub(crate) struct Process {
    launch: Launch,
    running: Mutex<Running>,
    command_line: Vec<String>,
    oom_kills_before: u64,
    /// Signal that asks it to quit before it is killed.
    quit_signal: Option<Signal>,
    guard: Guard,
}

#[derive(Debug)]
struct Running {
    child: Child,
    /// True after [`Process::end`]: it must not be started again.
    is_over: bool,
}

impl Process {
    /// Starts it as the leader of its own process group, so that Ctrl-C in the terminal does not
    /// reach it. The kernel kills it when the calling thread ends.
    pub(crate) fn spawn(guard: &Guard, launch: Launch) -> Result<Self> {
        let oom_kills_before = oom_kills();
        File::create(&launch.log).map_err(RigError::io("create log", &launch.log))?;
        let child = launch.run(&[], true)?;
        let command_line = std::iter::once(launch.program.as_os_str())
            .chain(launch.arguments.iter().map(OsString::as_os_str))
            .map(|a| a.to_string_lossy().into_owned())
            .collect();
        let pid = child.id();
        let running = Mutex::new(Running { child, is_over: false });
        // From now on, dropping it kills it.
        let (quit_signal, guard) = (None, guard.clone());
        let process = Self { launch, running, command_line, oom_kills_before, quit_signal, guard };
        process.owned(pid)?;
        Ok(process)
    }

    /// Starts it again after it has ended, with the same files and arguments and those of `also`.
    /// It does not end with the calling thread, but with this process.
    pub(crate) fn start_again(&self, also: &[&str]) -> Result<()> {
        let mut running = self.running();
        let failed = |reason: &str| {
            let program = self.launch.name.into();
            Err(RigError::Start { program, reason: reason.into() })
        };
        match running.child.try_wait() {
            _ if running.is_over => return failed("it was stopped for good"),
            Ok(Some(_)) => {}
            Ok(None) => return failed("it still runs"),
            Err(e) => return failed(&e.to_string()),
        }
        let _ = self.guard.disown_process(running.child.id());
        running.child = self.launch.run(also, false)?;
        self.owned(running.child.id())
    }

    /// Hands it to the guard.
    fn owned(&self, pid: u32) -> Result<()> {
        self.guard.own_process(pid)?;
        if self.launch.group.is_some() {
            // When the group runs out of memory, the kernel should kill the server and not its
            // clients. Best effort: some systems refuse the write.
            let _ = fs::write(format!("/proc/{pid}/oom_score_adj"), OOM_SCORE);
        }
        Ok(())
    }

    fn running(&self) -> MutexGuard<'_, Running> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends `signal` before killing it, for a server with resources that outlive a killed process.
    pub(crate) fn with_quit_signal(mut self, signal: Signal) -> Self {
        self.quit_signal = Some(signal);
        self
    }

    /// Id of the process that runs, or ran last.
    pub(crate) fn pid(&self) -> u32 {
        self.running().child.id()
    }

    /// Sends it a signal. Errors: it has ended, or the system refuses it.
    pub(crate) fn signal(&self, signal: Signal) -> io::Result<()> {
        let mut running = self.running();
        match running.child.try_wait()? {
            // Not reaped yet, so the id is still its own.
            None => Ok(kill(Pid::from_raw(running.child.id().cast_signed()), signal)?),
            Some(_) => Err(Errno::ESRCH.into()),
        }
    }

    pub(crate) fn name(&self) -> &'static str {
        self.launch.name
    }

    pub(crate) fn command_line(&self) -> &[String] {
        &self.command_line
    }

    /// `None` while it runs.
    pub(crate) fn status(&self) -> Option<ExitStatus> {
        self.running().child.try_wait().ok().flatten()
    }

    /// How it ended, with the end of its log; `None` while it runs.
    pub(crate) fn death(&self) -> Option<String> {
        let status = self.status()?;
        let mut text = match (status.code(), status.signal()) {
            (Some(code), _) => format!("ended with exit code {code}"),
            (None, Some(number)) => match Signal::try_from(number) {
                Ok(signal) => format!("was killed by signal {number} ({signal})"),
                Err(_) => format!("was killed by signal {number}"),
            },
            (None, None) => "ended".to_string(),
        };
        if status.signal() == Some(Signal::SIGKILL as i32) && oom_kills() > self.oom_kills_before {
            text += " (the OOM killer has killed processes since it started)";
        }
        Some(text + &self.log_suffix())
    }

    /// The error of a failed start: how it ended, or `why` if it still runs.
    pub(crate) fn start_error(&self, why: &str) -> RigError {
        let reason = self.death().unwrap_or_else(|| format!("{why}{}", self.log_suffix()));
        RigError::Start { program: self.launch.name.into(), reason }
    }

    /// Calls `ready` every few milliseconds until it succeeds, the process ends or time is up.
    pub(crate) fn wait_until_ready(
        &self,
        deadline: Duration,
        mut ready: impl FnMut(Duration) -> std::result::Result<(), String>,
    ) -> Result<()> {
        let end = Instant::now() + deadline;
        loop {
            if self.status().is_some() {
                return Err(self.start_error("ended"));
            }
            let left = end.saturating_duration_since(Instant::now());
            match ready(left.max(Duration::from_millis(1))) {
                Ok(()) => return Ok(()),
                Err(why) if left.is_zero() => {
                    return Err(self.start_error(&format!("not ready after {deadline:?}: {why}")));
                }
                Err(_) => std::thread::sleep(Duration::from_millis(5)),
            }
        }
    }

    /// Waits for a program to exit; any exit code except 0 is an error.
    pub(crate) fn wait_for_success(&self, within: Duration) -> Result<()> {
        let end = Instant::now() + within;
        loop {
            match self.status() {
                Some(status) if status.success() => return Ok(()),
                Some(_) => return Err(self.start_error("ended")),
                None if Instant::now() > end => {
                    return Err(self.start_error(&format!("not done after {within:?}")));
                }
                None => std::thread::sleep(Duration::from_millis(10)),
            }
        }
    }

    /// Kills it and its helpers and waits until they have ended. Later calls do nothing.
    pub(crate) fn end(&self) {
        let mut running = self.running();
        running.is_over = true;
        let child = &mut running.child;
        let pid = child.id();
        if matches!(child.try_wait(), Ok(None)) {
            // Helpers can lead their own process groups, and still write while they end.
            let helpers = ProcessTree::new(&[pid]).pids().split_off(1);
            let helpers: Vec<_> = helpers.into_iter().filter_map(Identity::of).collect();
            if let Some(signal) = self.quit_signal {
                let _ = kill(Pid::from_raw(pid.cast_signed()), signal);
                let until = Instant::now() + QUIT_WITHIN;
                while matches!(child.try_wait(), Ok(None)) && Instant::now() < until {
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
            if matches!(child.try_wait(), Ok(None)) {
                // Not reaped yet, so the id still belongs to our group.
                let _ = killpg(Pid::from_raw(pid.cast_signed()), Signal::SIGKILL);
                let _ = child.wait();
            }
            let until = Instant::now() + HELPERS_WITHIN;
            for helper in &helpers {
                helper.kill();
            }
            while helpers.iter().any(|helper| helper.runs()) && Instant::now() < until {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        // Fails only if the guard has ended.
        let _ = self.guard.disown_process(pid);
    }

    fn log_suffix(&self) -> String {
        let lines = log_tail(&self.launch.log).unwrap_or_default();
        match lines.as_str() {
            "" => ", with an empty log".into(),
            lines => [Failure::LOG, lines].concat(),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}

impl Launch {
    /// Starts the program; its output is appended to the log.
    fn run(&self, also: &[&str], dies_with_thread: bool) -> Result<Child> {
        let set = cpu_set(self.cpus.as_deref().unwrap_or_default(), &allowed_by_the_system())?;
        let out = File::options().append(true).create(true).open(&self.log);
        let out = out.map_err(RigError::io("open log", &self.log))?;
        let err = out.try_clone().map_err(RigError::io("open log", &self.log))?;
        let joins = self.group.iter().chain(&self.other_groups).map(|group| {
            let file = procs(group);
            let opened = File::options().write(true).open(&file);
            opened.map_err(RigError::io("put a process into", &file))
        });
        let joins = joins.collect::<Result<Vec<File>>>()?;
        let mut command = child::command(&self.program);
        command
            .args(&self.arguments)
            .args(also)
            .current_dir(&self.directory)
            .env("PATH", self.search.to_variable())
            .env("HOME", &self.directory)
            .env("TMPDIR", &self.directory)
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(err)
            .process_group(0);
        let network = self.network.as_ref().map(|network| network.namespace().try_clone_to_owned());
        let network =
            network.transpose().map_err(RigError::io("enter the network of", &self.program))?;
        before_exec(&mut command, dies_with_thread, set, (joins, network));
        command.spawn().map_err(RigError::io("start", &self.program))
    }
}

/// Makes the kernel kill the child when the thread that started it ends if `dies_with_thread`, pins
/// it to `cpus` if given, and moves it to the control groups of which `joins` are the open
/// `cgroup.procs`, and into the namespace `network`.
#[expect(unsafe_code, reason = "Command::pre_exec has no safe wrapper")]
fn before_exec(
    command: &mut Command,
    dies_with_thread: bool,
    cpus: Option<CpuSet>,
    (joins, network): (Vec<File>, Option<OwnedFd>),
) {
    let parent = getpid();
    let before_exec = move || {
        if dies_with_thread {
            set_pdeathsig(Signal::SIGKILL)?;
        }
        // If the parent died before that call, the signal never comes.
        if getppid() != parent {
            return Err(io::Error::from(Errno::ESRCH));
        }
        for processes in &joins {
            // 0 means the writing process.
            nix::unistd::write(processes, b"0")?;
        }
        if let Some(network) = &network {
            setns(network, CloneFlags::CLONE_NEWNET)?;
        }
        match &cpus {
            Some(set) => Ok(sched_setaffinity(Pid::from_raw(0), set)?),
            None => Ok(()),
        }
    };
    // SAFETY: only prctl, getppid, write, setns and sched_setaffinity are called, on values made
    // before the fork; none of them allocates or takes a lock.
    unsafe {
        command.pre_exec(before_exec);
    }
}

/// Processes that the kernel has killed for lack of memory since boot; 0 if it does not count them.
fn oom_kills() -> u64 {
    let text = fs::read_to_string("/proc/vmstat").unwrap_or_default();
    let count = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
    count.and_then(|n| n.parse().ok()).unwrap_or(0)
}

/// The last lines of a log that are not blank, joined by ` | `.
fn log_tail(log: &Path) -> io::Result<String> {
    tail(&mut File::open(log)?, LOG_TAIL_LINES)
}

/// The last `lines` lines of a file that are not blank, joined by ` | `.
pub(crate) fn tail(file: &mut File, lines: usize) -> io::Result<String> {
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(LOG_TAIL_BYTES)))?;
    let mut bytes = Vec::new();
    file.take(LOG_TAIL_BYTES).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let all: Vec<&str> = text.lines().map(str::trim).filter(|l| !l.is_empty()).collect();
    Ok(all[all.len().saturating_sub(lines)..].join(" | "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_lines_are_shown() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert_eq!(log_tail(file.path()).unwrap(), "");
        let text: Vec<String> = (0..3000).map(|n| format!("  line {n}\n\n")).collect();
        fs::write(file.path(), text.concat()).unwrap();
        let tail = log_tail(file.path()).unwrap();
        assert!(tail.starts_with("line 2994 | "), "{tail}");
        assert!(tail.ends_with(" | line 2999"), "{tail}");
    }
}
