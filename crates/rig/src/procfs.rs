//! Reads processes and threads from `/proc`. The identity of a process is its id together with its
//! start time, which distinguishes it from a later process with the same id.
//! Source: proc(5), `/proc/<pid>/stat` and `/proc/<pid>/task/<tid>/schedstat`.

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, SysconfVar, sysconf};
use std::fs;

/// Identity of a process, unique until the host reboots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    /// Process id.
    pub(crate) pid: u32,
    /// Session id.
    pub(crate) session: u32,
    /// Start time, in clock ticks since boot.
    pub(crate) start_ticks: u64,
}

/// The needed fields of `/proc/<pid>/stat`.
struct Stat<'a> {
    identity: Identity,
    /// Name of its program, or of the kernel thread.
    name: &'a str,
    group: u32,
    ended: bool,
    is_kernel: bool,
    /// CPU time in user and kernel mode, clock ticks.
    cpu_ticks: u64,
    /// CPU time of ended descendants that were waited for, clock ticks.
    children_ticks: u64,
}

impl Identity {
    /// The process that has this id now; a zombie is included.
    pub(crate) fn of(pid: u32) -> Option<Self> {
        Some(Stat::parse(pid, &stat_text(pid)?)?.identity)
    }

    /// True while this very process runs; false for a zombie.
    pub(crate) fn runs(self) -> bool {
        let text = stat_text(self.pid).unwrap_or_default();
        Stat::parse(self.pid, &text).is_some_and(|s| self.is(&s) && !s.ended)
    }

    /// Running processes of the group that this process leads or led, including itself: a server's
    /// helpers can outlive it for a moment.
    pub(crate) fn group(self) -> Vec<Self> {
        let member = |pid: u32| {
            let text = stat_text(pid)?;
            let stat = Stat::parse(pid, &text)?;
            (!stat.ended && (self.is(&stat) || self.leads(&stat))).then_some(stat.identity)
        };
        processes().filter_map(member).collect()
    }

    /// Id and start time of a process never change; its session can.
    fn is(self, other: &Stat<'_>) -> bool {
        (self.pid, self.start_ticks) == (other.identity.pid, other.identity.start_ticks)
    }

    /// The kernel does not reuse a group id while the group has members, and our groups do not
    /// start sessions.
    fn leads(self, member: &Stat<'_>) -> bool {
        member.group == self.pid
            && member.identity.pid != self.pid
            && member.identity.session == self.session
            && member.identity.start_ticks >= self.start_ticks
    }

    /// Sends SIGKILL to this very process, if it still runs.
    pub(crate) fn kill(self) {
        if self.runs() {
            // The only remaining error is that it has just ended.
            let _ = kill(Pid::from_raw(self.pid.cast_signed()), Signal::SIGKILL);
        }
    }
}

/// Ids of all visible processes.
pub(crate) fn processes() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten();
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

/// Name and CPU time of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProcessActivity {
    pub(crate) identity: Identity,
    /// Name of its program, or of the kernel thread.
    pub(crate) name: String,
    /// True for a kernel thread.
    pub(crate) is_kernel: bool,
    /// CPU time in user and kernel mode, clock ticks.
    pub(crate) cpu_ticks: u64,
}

impl ProcessActivity {
    pub(crate) fn of(pid: u32) -> Option<Self> {
        Self::parse(pid, &stat_text(pid)?)
    }

    fn parse(pid: u32, text: &str) -> Option<Self> {
        let Stat { identity, name, is_kernel, cpu_ticks, .. } = Stat::parse(pid, text)?;
        Some(Self { identity, name: name.into(), is_kernel, cpu_ticks })
    }
}

/// CPU time of a process's ended descendants that were waited for, in clock ticks; `None` if the
/// process does not exist.
pub(crate) fn children_cpu_ticks(pid: u32) -> Option<u64> {
    Some(Stat::parse(pid, &stat_text(pid)?)?.children_ticks)
}

fn stat_text(pid: u32) -> Option<String> {
    fs::read_to_string(format!("/proc/{pid}/stat")).ok()
}

/// Process flag `PF_KTHREAD` of the kernel's `linux/sched.h`.
const KERNEL_THREAD: u64 = 0x0020_0000;

impl<'a> Stat<'a> {
    /// The program name can contain spaces and brackets, so count fields from the last bracket.
    fn parse(pid: u32, text: &'a str) -> Option<Self> {
        let (from, to) = (text.find('(')?, text.rfind(')')?);
        let fields: Vec<&str> = text[to + 1..].split_ascii_whitespace().collect();
        let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
        Some(Self {
            identity: Identity { pid, session: number(3)? as u32, start_ticks: number(19)? },
            name: text.get(from + 1..to)?,
            group: number(2)? as u32,
            ended: matches!(*fields.first()?, "Z" | "X"),
            is_kernel: number(6)? & KERNEL_THREAD != 0,
            cpu_ticks: number(11)? + number(12)?,
            children_ticks: number(13)? + number(14)?,
        })
    }
}

/// Scheduling statistics of a thread since its start (`schedstat`). Source: the kernel's
/// Documentation/scheduler/sched-stats.rst.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SchedStat {
    /// Time on a CPU, nanoseconds.
    pub(crate) cpu_ns: u64,
    /// Time spent runnable but waiting for a CPU, nanoseconds.
    pub(crate) waited_ns: u64,
    /// Number of times it was scheduled on a CPU.
    pub(crate) runs: u64,
}

impl SchedStat {
    /// Parses the file's three numbers; `None` if it is empty, as on kernels without the counters.
    pub(crate) fn parse(text: &[u8]) -> Option<Self> {
        let mut numbers = numbers(text);
        Some(Self { cpu_ns: numbers.next()?, waited_ns: numbers.next()?, runs: numbers.next()? })
    }
}

/// The decimal numbers of a text; other words are skipped.
pub(crate) fn numbers(text: &[u8]) -> impl Iterator<Item = u64> {
    let words = text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    words.filter_map(|word| std::str::from_utf8(word).ok()?.parse().ok())
}

/// Page size, bytes.
pub(crate) fn page_bytes() -> u64 {
    let bytes = sysconf(SysconfVar::PAGE_SIZE).ok().flatten();
    bytes.and_then(|bytes| u64::try_from(bytes).ok()).unwrap_or(4096)
}

/// Nanoseconds per clock tick, the unit of times in `/proc`.
pub(crate) fn ns_per_tick() -> f64 {
    let per_second = sysconf(SysconfVar::CLK_TCK).ok().flatten().unwrap_or(100);
    1e9 / per_second as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    #[test]
    fn a_name_with_brackets_is_parsed() {
        let line = "7 (a) b) Z 1 7 5 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 8433 0 0";
        let stat = Stat::parse(7, line).unwrap();
        assert_eq!(stat.identity, Identity { pid: 7, session: 5, start_ticks: 8433 });
        assert!(stat.ended);
        assert_eq!(stat.group, 7);
        assert!(Stat::parse(7, "7 (a) S 1").is_none());
    }

    #[test]
    fn process_activity_is_parsed() {
        let line = "7 (a) b) R 1 7 5 0 -1 0 0 0 0 0 30 12 9 8 20 0 1 0 8433 0 0";
        let identity = Identity { pid: 7, session: 5, start_ticks: 8433 };
        let work =
            ProcessActivity { identity, name: "a) b".into(), is_kernel: false, cpu_ticks: 42 };
        assert_eq!(ProcessActivity::parse(7, line), Some(work));
        assert_eq!(Stat::parse(7, line).map(|stat| stat.children_ticks), Some(17));
        let kernel = line.replace("-1 0 0", "-1 69238880 0");
        assert!(ProcessActivity::parse(7, &kernel).is_some_and(|work| work.is_kernel));
        assert!(ProcessActivity::parse(7, "7 (a) S 1").is_none());
        assert!(processes().any(|pid| pid == std::process::id()));
    }

    #[test]
    fn schedstat_is_parsed() {
        let read = SchedStat { cpu_ns: 12, waited_ns: 3, runs: 4 };
        assert_eq!(SchedStat::parse(b"12 3 4\n"), Some(read));
        assert_eq!(SchedStat::parse(b""), None);
    }

    #[test]
    fn another_process_with_the_same_id_is_not_killed() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let real = Identity::of(child.id()).unwrap();
        let earlier = Identity { start_ticks: real.start_ticks - 1, ..real };
        assert!(!earlier.runs());
        earlier.kill();
        std::thread::sleep(std::time::Duration::from_millis(50));
        assert!(child.try_wait().unwrap().is_none());
        assert!(earlier.group().is_empty());
        real.kill();
        assert!(!child.wait().unwrap().success());
        assert!(!real.runs());
    }

    #[test]
    fn helpers_of_an_ended_leader_are_found() {
        let mut leader = Command::new("sh")
            .args(["-c", "sleep 60 & echo; exec sleep 60"])
            .stdout(std::process::Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap();
        let identity = Identity::of(leader.id()).unwrap();
        // The line is printed after the helper was started.
        std::io::Read::read_exact(leader.stdout.as_mut().unwrap(), &mut [0]).unwrap();
        identity.kill();
        leader.wait().unwrap();
        let remaining = identity.group();
        assert_eq!(remaining.len(), 1);
        assert_ne!(remaining[0].pid, identity.pid);
        remaining[0].kill();
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(5);
        while remaining[0].runs() {
            assert!(std::time::Instant::now() < deadline);
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
    }
}
