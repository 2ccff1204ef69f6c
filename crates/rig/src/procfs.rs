//! What `/proc` says of processes and threads. The identity of a process is its id together with
//! its start time, so that an id that the kernel gave to somebody else meanwhile is told apart.
//! Source: proc(5), `/proc/<pid>/stat` and `/proc/<pid>/task/<tid>/schedstat`.

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, SysconfVar, sysconf};
use std::fs;

/// One process, for as long as the host is up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    /// Process id.
    pub(crate) pid: u32,
    /// Session that it belongs to.
    pub(crate) session: u32,
    /// Start, in clock ticks since boot.
    pub(crate) start_ticks: u64,
}

/// The fields of `/proc/<pid>/stat` that are needed here.
struct Stat<'a> {
    identity: Identity,
    /// Its program, or its own name where it is the kernel's.
    name: &'a str,
    group: u32,
    ended: bool,
    is_kernel: bool,
    /// CPU time in user and kernel mode, clock ticks.
    cpu_ticks: u64,
    /// The same of ended children that it has waited for, with all below them.
    children_ticks: u64,
}

impl Identity {
    /// The process that has this id now; a zombie counts.
    pub(crate) fn of(pid: u32) -> Option<Self> {
        Some(Stat::parse(pid, &stat_text(pid)?)?.identity)
    }

    /// True while this very process runs; false for a zombie.
    pub(crate) fn runs(self) -> bool {
        let text = stat_text(self.pid).unwrap_or_default();
        Stat::parse(self.pid, &text).is_some_and(|s| self.is(&s) && !s.ended)
    }

    /// Processes of the group that this process leads or led, itself included, that still run:
    /// a server's helpers outlive it for a moment.
    pub(crate) fn group(self) -> Vec<Self> {
        let member = |pid: u32| {
            let text = stat_text(pid)?;
            let stat = Stat::parse(pid, &text)?;
            (!stat.ended && (self.is(&stat) || self.leads(&stat))).then_some(stat.identity)
        };
        processes().filter_map(member).collect()
    }

    /// A process keeps id and start time for life; its session it may leave.
    fn is(self, other: &Stat<'_>) -> bool {
        (self.pid, self.start_ticks) == (other.identity.pid, other.identity.start_ticks)
    }

    /// A group id is not given anew while the group has members, and ours starts no session.
    fn leads(self, member: &Stat<'_>) -> bool {
        member.group == self.pid
            && member.identity.pid != self.pid
            && member.identity.session == self.session
            && member.identity.start_ticks >= self.start_ticks
    }

    /// Sends SIGKILL to this very process, if it still runs.
    pub(crate) fn kill(self) {
        if self.runs() {
            // The only error left is that it ended just now.
            let _ = kill(Pid::from_raw(self.pid.cast_signed()), Signal::SIGKILL);
        }
    }
}

/// Ids of all processes that can be seen.
pub(crate) fn processes() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten();
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

/// What a process has done so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Work {
    pub(crate) identity: Identity,
    /// Its program, or its own name where it is the kernel's.
    pub(crate) name: String,
    /// True for a thread of the kernel.
    pub(crate) is_kernel: bool,
    /// CPU time in user and kernel mode, clock ticks.
    pub(crate) cpu_ticks: u64,
}

impl Work {
    pub(crate) fn of(pid: u32) -> Option<Self> {
        Self::parse(pid, &stat_text(pid)?)
    }

    fn parse(pid: u32, text: &str) -> Option<Self> {
        let Stat { identity, name, is_kernel, cpu_ticks, .. } = Stat::parse(pid, text)?;
        Some(Self { identity, name: name.into(), is_kernel, cpu_ticks })
    }
}

/// CPU time that the ended children of a process had used, with all below them, once it has waited
/// for them, clock ticks; `None` when there is no such process.
pub(crate) fn children_cpu_ticks(pid: u32) -> Option<u64> {
    Some(Stat::parse(pid, &stat_text(pid)?)?.children_ticks)
}

fn stat_text(pid: u32) -> Option<String> {
    fs::read_to_string(format!("/proc/{pid}/stat")).ok()
}

/// Among the flags of a process: `PF_KTHREAD` of the kernel's `linux/sched.h`.
const KERNEL_THREAD: u64 = 0x0020_0000;

impl<'a> Stat<'a> {
    /// The program's name may hold spaces and brackets, so fields count from the last bracket.
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

/// What a thread did since it began: its `schedstat`. Source: the kernel's
/// Documentation/scheduler/sched-stats.rst.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SchedStat {
    /// Time on a CPU, nanoseconds.
    pub(crate) cpu_ns: u64,
    /// Time ready to run but waiting for one, nanoseconds.
    pub(crate) waited_ns: u64,
    /// How often it was given one.
    pub(crate) runs: u64,
}

impl SchedStat {
    /// Of the file's three numbers; `None` where it is empty, as without such counters.
    pub(crate) fn parse(text: &[u8]) -> Option<Self> {
        let mut numbers = numbers(text);
        Some(Self { cpu_ns: numbers.next()?, waited_ns: numbers.next()?, runs: numbers.next()? })
    }
}

/// The decimal numbers of a text; other words are passed over.
pub(crate) fn numbers(text: &[u8]) -> impl Iterator<Item = u64> {
    let words = text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    words.filter_map(|word| std::str::from_utf8(word).ok()?.parse().ok())
}

/// A page, bytes.
pub(crate) fn page_bytes() -> u64 {
    let bytes = sysconf(SysconfVar::PAGE_SIZE).ok().flatten();
    bytes.and_then(|bytes| u64::try_from(bytes).ok()).unwrap_or(4096)
}

/// Nanoseconds of a clock tick, the unit of times in `/proc`.
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
    fn a_name_with_brackets_is_read() {
        let line = "7 (a) b) Z 1 7 5 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 8433 0 0";
        let stat = Stat::parse(7, line).unwrap();
        assert_eq!(stat.identity, Identity { pid: 7, session: 5, start_ticks: 8433 });
        assert!(stat.ended);
        assert_eq!(stat.group, 7);
        assert!(Stat::parse(7, "7 (a) S 1").is_none());
    }

    #[test]
    fn what_a_process_did_is_read() {
        let line = "7 (a) b) R 1 7 5 0 -1 0 0 0 0 0 30 12 9 8 20 0 1 0 8433 0 0";
        let identity = Identity { pid: 7, session: 5, start_ticks: 8433 };
        let work = Work { identity, name: "a) b".into(), is_kernel: false, cpu_ticks: 42 };
        assert_eq!(Work::parse(7, line), Some(work));
        assert_eq!(Stat::parse(7, line).map(|stat| stat.children_ticks), Some(17));
        let kernel = line.replace("-1 0 0", "-1 69238880 0");
        assert!(Work::parse(7, &kernel).is_some_and(|work| work.is_kernel));
        assert!(Work::parse(7, "7 (a) S 1").is_none());
        assert!(processes().any(|pid| pid == std::process::id()));
    }

    #[test]
    fn what_a_thread_did_is_read() {
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
        // The line comes after the helper was started.
        std::io::Read::read_exact(leader.stdout.as_mut().unwrap(), &mut [0]).unwrap();
        identity.kill();
        leader.wait().unwrap();
        let left = identity.group();
        assert_eq!(left.len(), 1);
        assert_ne!(left[0].pid, identity.pid);
        left[0].kill();
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(5);
        while left[0].runs() {
            assert!(std::time::Instant::now() < deadline);
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
    }
}
