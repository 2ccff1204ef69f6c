//! Ownership marks of what a run creates. They outlive the run and identify the program and its
//! guard by process id and start time, on a given host, boot and set of namespaces.
//!
//! The mark of a directory, `.cachedyno-owned`, is a regular file of these lines:
//!
//! ```text
//! cachedyno made this directory and removes it.
//! host 0123456789abcdef0123456789abcdef
//! boot 72eb6a65-1ca5-4da6-a9dd-506d7700a40f
//! namespaces 4026531836 4026531834
//! program 4711 8433
//! guard 4712 8450
//! ```
//!
//! - `host`: `/etc/machine-id` (machine-id(5)), or the host name if there is none. Several hosts
//!   can use one disk, for example a virtual machine and its own host, with different boot ids.
//! - `boot`: `/proc/sys/kernel/random/boot_id`.
//! - `namespaces`: inodes of the PID and time namespaces (namespaces(7)); 0 for time if the kernel
//!   has no time namespaces.
//! - `program` and `guard`: process id, and start time in clock ticks since boot (proc(5)).
//!
//! A control group cannot contain a mark, so its name has the same fields, except host and boot
//! because no group survives a reboot: `cachedyno-<8 hex>-<namespaces>-<program>-<guard>`, where
//! `.` separates the two numbers of a field.

use crate::procfs::Identity;
use crate::random::random;
use std::fmt;
use std::fs;

/// File name of the mark in an owned directory.
pub(crate) const MARK: &str = ".cachedyno-owned";
/// Maximum number of bytes read from a mark; ours have about 200.
pub(crate) const MARK_BYTES_MAX: u64 = 4096;

/// First line of a mark.
pub(crate) const FIRST_LINE: &str = "cachedyno made this directory and removes it.";
const PREFIX: &str = "cachedyno-";
const NAME_DIGITS: usize = 8;
/// Inode of the kernel's initial PID namespace (`PROC_PID_INIT_INO` in its
/// `include/linux/proc_ns.h`).
const INITIAL_PID_NAMESPACE: u64 = 0xEFFF_FFFC;

/// Process id and start time, in clock ticks since boot.
type Process = (u32, u64);

/// The program that created a directory or control group, and its guard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    host: String,
    boot: String,
    namespaces: (u64, u64),
    program: Process,
    guard: Process,
}

/// Whether an owner is still running.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// The program or its guard is running.
    Alive,
    /// Both have ended; contains the evidence for it.
    Gone(String),
    /// Cannot be determined from here; contains the reason.
    Unknown(&'static str),
}

impl Owner {
    /// This process and its guard; `None` if `/proc` cannot be read.
    pub(crate) fn of_this_process(guard: u32) -> Option<Self> {
        let process = |pid| Identity::of(pid).map(|found| (found.pid, found.start_ticks));
        Some(Self {
            host: host()?,
            boot: boot()?,
            namespaces: namespaces()?,
            program: process(std::process::id())?,
            guard: process(guard)?,
        })
    }

    /// Parses a mark; `None` if it is incomplete or not ours.
    pub(crate) fn of_mark(text: &str) -> Option<Self> {
        let lines: Vec<&str> = text.strip_suffix('\n')?.split('\n').collect();
        let [FIRST_LINE, host, boot, namespaces, program, guard] = lines[..] else {
            return None;
        };
        let boot = boot.strip_prefix("boot ")?;
        let is_boot = boot.len() == 36 && boot.bytes().all(|b| b == b'-' || b.is_ascii_hexdigit());
        Some(Self {
            host: host.strip_prefix("host ")?.into(),
            boot: is_boot.then(|| boot.into())?,
            namespaces: pair(namespaces.strip_prefix("namespaces ")?, ' ')?,
            program: pair(program.strip_prefix("program ")?, ' ')?,
            guard: pair(guard.strip_prefix("guard ")?, ' ')?,
        })
    }

    /// Text of the mark.
    pub(crate) fn mark(&self) -> String {
        let Self { host, boot, namespaces, program, guard } = self;
        format!(
            "{FIRST_LINE}\nhost {host}\nboot {boot}\n\
             namespaces {} {}\nprogram {} {}\nguard {} {}\n",
            namespaces.0, namespaces.1, program.0, program.1, guard.0, guard.1
        )
    }

    /// Part of a control group's name after `cachedyno-<8 hex>`.
    pub(crate) fn suffix(&self) -> String {
        let Self { namespaces, program, guard, .. } = self;
        format!(
            "-{}.{}-{}.{}-{}.{}",
            namespaces.0, namespaces.1, program.0, program.1, guard.0, guard.1
        )
    }

    /// Parses the name of a control group; `None` if it is not ours.
    pub(crate) fn of_group(name: &str) -> Option<Self> {
        let (plain, rest) = name.split_at_checked(PREFIX.len() + NAME_DIGITS)?;
        let mut parts = rest.strip_prefix('-').filter(|_| is_our_name(plain))?.split('-');
        let owner = Self {
            host: host()?,
            boot: boot()?,
            namespaces: pair(parts.next()?, '.')?,
            program: pair(parts.next()?, '.')?,
            guard: pair(parts.next()?, '.')?,
        };
        parts.next().is_none().then_some(owner)
    }

    /// Whether the owner is still running. `is_local`: no other host can use the file system that
    /// contains the mark; `is_unlocked`: no process holds the mark's lock, which the program holds
    /// as long as it runs.
    pub(crate) fn state(&self, is_local: bool, is_unlocked: bool) -> State {
        let (Some(host), Some(boot), Some(namespaces)) = (host(), boot(), namespaces()) else {
            return State::Unknown("cannot read from /proc which processes are running");
        };
        if self.boot != boot {
            return if is_local && self.host == host {
                State::Gone("created before the last boot".into())
            } else {
                State::Unknown("created before the last boot or by another host sharing this disk")
            };
        }
        if self.namespaces != namespaces {
            // Locks are visible across all containers of a kernel. If the guard is still running
            // there, it removes the same files.
            if is_local && is_unlocked {
                return State::Gone("created in another container, where its program ended".into());
            }
            if has_ended(self.namespaces.0) {
                return State::Gone("created in another container, which has ended".into());
            }
            return State::Unknown("created in another container, which may still be running");
        }
        let runs = |(pid, start_ticks)| {
            Identity::of(pid).is_some_and(|now| now.start_ticks == start_ticks && now.runs())
        };
        if runs(self.program) || runs(self.guard) {
            return State::Alive;
        }
        State::Gone(format!("{self} ended"))
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} and its guard {}", self.program.0, self.guard.0)
    }
}

/// Whether a directory's name has the form `cachedyno-<8 hex>`.
pub(crate) fn is_our_name(name: &str) -> bool {
    name.strip_prefix(PREFIX).is_some_and(|digits| {
        digits.len() == NAME_DIGITS
            && digits.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
    })
}

/// A new random name of the form `cachedyno-<8 hex>`.
pub(crate) fn new_name() -> String {
    format!("{PREFIX}{:0NAME_DIGITS$x}", random())
}

fn pair<A: std::str::FromStr, B: std::str::FromStr>(text: &str, between: char) -> Option<(A, B)> {
    let (a, b) = text.split_once(between)?;
    Some((a.parse().ok()?, b.parse().ok()?))
}

fn host() -> Option<String> {
    let id = fs::read_to_string("/etc/machine-id").unwrap_or_default();
    if !id.trim().is_empty() {
        return Some(id.trim().into());
    }
    nix::unistd::gethostname().ok()?.into_string().ok()
}

fn boot() -> Option<String> {
    Some(fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?.trim_end().into())
}

/// Whether a PID namespace has no processes left. Known only in the machine's initial namespace,
/// which sees the processes of all others; false elsewhere.
fn has_ended(namespace: u64) -> bool {
    if namespaces().is_none_or(|(own, _)| own != INITIAL_PID_NAMESPACE) {
        return false;
    }
    let Ok(processes) = fs::read_dir("/proc") else { return false };
    // Process 1 is in this namespace, and its link can be unreadable.
    let pids = processes.flatten().filter_map(|e| e.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| *pid != 1).all(|pid| match fs::read_link(format!("/proc/{pid}/ns/pid")) {
        Ok(link) => link.to_str() != Some(&format!("pid:[{namespace}]")),
        // An ended process has no namespace; a running one with an unreadable link could be in it.
        Err(_) => Identity::of(pid).is_none_or(|process| !process.runs()),
    })
}

/// Inodes of the PID and time namespaces; the latter exist since Linux 5.6.
fn namespaces() -> Option<(u64, u64)> {
    // The link reads `pid:[4026531836]`.
    let inode = |name: &str| {
        let link = fs::read_link(format!("/proc/self/ns/{name}")).ok()?;
        link.to_str()?.split_once('[')?.1.strip_suffix(']')?.parse().ok()
    };
    Some((inode("pid")?, inode("time").unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner() -> Owner {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let owner = Owner::of_this_process(child.id()).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        owner
    }

    #[test]
    fn marks_and_names_survive_a_round_trip() {
        let owner = owner();
        assert_eq!(Owner::of_mark(&owner.mark()), Some(owner.clone()));
        let name = new_name() + &owner.suffix();
        assert_eq!(Owner::of_group(&name), Some(owner.clone()), "{name}");
        let mark = owner.mark();
        for incomplete in
            ["", "\n", FIRST_LINE, &mark[..mark.len() - 1], &(mark.clone() + "x 1 2\n")]
        {
            assert_eq!(Owner::of_mark(incomplete), None, "{incomplete}");
        }
        for other in ["cachedyno-0123abcd", "cachedyno-0123abcd-1.2-3.4", "cachedyno-ä", "x"] {
            assert_eq!(Owner::of_group(other), None, "{other}");
        }
        assert_eq!(Owner::of_group(&(name + "-5.6")), None);
    }

    #[test]
    fn only_names_of_our_form_are_accepted() {
        assert!(is_our_name(&new_name()) && is_our_name("cachedyno-0123abcd"));
        for other in ["cachedyno-0123ABCD", "cachedyno-0123abc", "cachedyno-0123abcde", "cachedyno"]
        {
            assert!(!is_our_name(other), "{other}");
        }
    }

    #[test]
    fn an_owner_is_alive_while_the_program_or_its_guard_runs() {
        let owner = owner();
        assert_eq!(owner.state(true, true), State::Alive);
        let gone = Owner { program: owner.guard, ..owner.clone() };
        assert!(matches!(gone.state(true, true), State::Gone(_)), "{:?}", gone.state(true, true));
        let guarded = Owner { guard: owner.program, ..gone };
        assert_eq!(guarded.state(true, true), State::Alive);
        // The process id was reused by another process.
        let reused = (owner.program.0, owner.program.1 - 1);
        let replaced = Owner { program: reused, ..owner };
        assert!(matches!(replaced.state(true, true), State::Gone(_)));
    }

    #[test]
    fn an_owner_that_cannot_be_checked_is_unknown() {
        let owner = owner();
        let boot = "00000000-0000-0000-0000-000000000000".to_string();
        let before = Owner { boot, ..owner.clone() };
        assert!(matches!(before.state(true, true), State::Gone(_)));
        assert!(matches!(before.state(false, true), State::Unknown(_)), "on a network disk");
        let host = "elsewhere".to_string();
        let other_host = Owner { host, ..before };
        assert!(matches!(other_host.state(true, true), State::Unknown(_)), "another host");
        let elsewhere = |pids| {
            let namespaces = (pids, 1);
            Owner { namespaces, program: owner.guard, ..owner.clone() }
        };
        let other_container = elsewhere(owner.namespaces.0);
        assert!(matches!(other_container.state(true, true), State::Gone(_)), "its lock is free");
        assert!(matches!(other_container.state(true, false), State::Unknown(_)), "no locks");
        assert!(matches!(other_container.state(false, true), State::Unknown(_)), "a network disk");
        // No namespace has inode 1; only root in the initial namespace can verify that.
        let sees_all =
            owner.namespaces.0 == INITIAL_PID_NAMESPACE && nix::unistd::geteuid().is_root();
        assert_eq!(matches!(elsewhere(1).state(true, false), State::Gone(_)), sees_all);
    }
}
