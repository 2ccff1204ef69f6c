//! Who owns what a run makes, in a form that outlives the run: the program and its guard, each by
//! process id and start time, and where these count.
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
//! - `host`: `/etc/machine-id` (machine-id(5)), or the host's name where there is none. Several
//!   hosts can use one disk, as a virtual machine and its own host do, and each has another boot.
//! - `boot`: `/proc/sys/kernel/random/boot_id`.
//! - `namespaces`: inodes of the namespaces of process ids and of time (namespaces(7)); 0 for time
//!   where the kernel has none.
//! - `program` and `guard`: process id, and start in clock ticks since boot (proc(5)).
//!
//! A control group has no file of ours, so its name says the same but for host and boot, which no
//! group outlives: `cachedyno-<8 hex>-<namespaces>-<program>-<guard>`, with `.` within each.

use crate::procfs::Identity;
use crate::random::random;
use std::fmt;
use std::fs;

/// Name of the mark in an owned directory.
pub(crate) const MARK: &str = ".cachedyno-owned";
/// Most bytes of a mark that are read; ours has some 200.
pub(crate) const MARK_BYTES_MAX: u64 = 4096;

/// First line of a mark.
pub(crate) const FIRST_LINE: &str = "cachedyno made this directory and removes it.";
const PREFIX: &str = "cachedyno-";
const NAME_DIGITS: usize = 8;
/// Inode of the namespace of process ids that the kernel starts with (`PROC_PID_INIT_INO` in its
/// `include/linux/proc_ns.h`).
const FIRST_NAMESPACE: u64 = 0xEFFF_FFFC;

/// A process id and a start time, in clock ticks since boot.
type Process = (u32, u64);

/// The program that made something, and its guard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    host: String,
    boot: String,
    namespaces: (u64, u64),
    program: Process,
    guard: Process,
}

/// What is known about an owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// The program or its guard runs.
    Lives,
    /// Neither runs any more, with the reason in words.
    Gone(String),
    /// Not to be told from here, with the reason in words.
    Unknown(&'static str),
}

impl Owner {
    /// This process and its guard; `None` where `/proc` does not tell.
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

    /// Reads a mark; `None` where it is torn or not ours.
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

    /// The text of a mark.
    pub(crate) fn mark(&self) -> String {
        let Self { host, boot, namespaces, program, guard } = self;
        format!(
            "{FIRST_LINE}\nhost {host}\nboot {boot}\n\
             namespaces {} {}\nprogram {} {}\nguard {} {}\n",
            namespaces.0, namespaces.1, program.0, program.1, guard.0, guard.1
        )
    }

    /// The name of a control group, after its `cachedyno-<8 hex>`.
    pub(crate) fn suffix(&self) -> String {
        let Self { namespaces, program, guard, .. } = self;
        format!(
            "-{}.{}-{}.{}-{}.{}",
            namespaces.0, namespaces.1, program.0, program.1, guard.0, guard.1
        )
    }

    /// Reads the name of a control group; `None` where it is not ours.
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

    /// Whether it still runs. `is_local`: no other host can use the file system on which the mark
    /// was found; `is_unlocked`: nobody holds the mark's lock, which the program does as long as it
    /// runs.
    pub(crate) fn state(&self, is_local: bool, is_unlocked: bool) -> State {
        let (Some(host), Some(boot), Some(namespaces)) = (host(), boot(), namespaces()) else {
            return State::Unknown("/proc does not tell which processes run");
        };
        if self.boot != boot {
            return if is_local && self.host == host {
                State::Gone("made before the last boot".into())
            } else {
                State::Unknown("made before the last boot, or by another host that uses this disk")
            };
        }
        if self.namespaces != namespaces {
            // One kernel knows the locks of all containers. A guard that still runs there removes
            // the same.
            if is_local && is_unlocked {
                return State::Gone("made in another container, where its program ended".into());
            }
            if has_ended(self.namespaces.0) {
                return State::Gone("made in another container, which has ended".into());
            }
            return State::Unknown("made in another container, which may still run");
        }
        let runs = |(pid, start_ticks)| {
            Identity::of(pid).is_some_and(|now| now.start_ticks == start_ticks && now.runs())
        };
        if runs(self.program) || runs(self.guard) {
            return State::Lives;
        }
        State::Gone(format!("{self} ended"))
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} and its guard {}", self.program.0, self.guard.0)
    }
}

/// Whether a directory's name has our form, `cachedyno-<8 hex>`.
pub(crate) fn is_our_name(name: &str) -> bool {
    name.strip_prefix(PREFIX).is_some_and(|digits| {
        digits.len() == NAME_DIGITS
            && digits.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
    })
}

/// A name of our form.
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

/// Whether a namespace of process ids has no process any more. Known only in the first namespace of
/// the machine, which sees the processes of all others; false elsewhere.
fn has_ended(namespace: u64) -> bool {
    if namespaces().is_none_or(|(own, _)| own != FIRST_NAMESPACE) {
        return false;
    }
    let Ok(processes) = fs::read_dir("/proc") else { return false };
    // Process 1 is in this namespace, and can hide where it is.
    let pids = processes.flatten().filter_map(|e| e.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| *pid != 1).all(|pid| match fs::read_link(format!("/proc/{pid}/ns/pid")) {
        Ok(link) => link.to_str() != Some(&format!("pid:[{namespace}]")),
        // One that has ended has no namespace; of one that hides its own nobody can say.
        Err(_) => Identity::of(pid).is_none_or(|process| !process.runs()),
    })
}

/// Inodes of the namespaces of process ids and of time, the latter since Linux 5.6.
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
    fn marks_and_names_read_back() {
        let owner = owner();
        assert_eq!(Owner::of_mark(&owner.mark()), Some(owner.clone()));
        let name = new_name() + &owner.suffix();
        assert_eq!(Owner::of_group(&name), Some(owner.clone()), "{name}");
        let mark = owner.mark();
        for torn in ["", "\n", FIRST_LINE, &mark[..mark.len() - 1], &(mark.clone() + "x 1 2\n")] {
            assert_eq!(Owner::of_mark(torn), None, "{torn}");
        }
        for other in ["cachedyno-0123abcd", "cachedyno-0123abcd-1.2-3.4", "cachedyno-ä", "x"] {
            assert_eq!(Owner::of_group(other), None, "{other}");
        }
        assert_eq!(Owner::of_group(&(name + "-5.6")), None);
    }

    #[test]
    fn only_a_name_of_our_form_is_ours() {
        assert!(is_our_name(&new_name()) && is_our_name("cachedyno-0123abcd"));
        for other in ["cachedyno-0123ABCD", "cachedyno-0123abc", "cachedyno-0123abcde", "cachedyno"]
        {
            assert!(!is_our_name(other), "{other}");
        }
    }

    #[test]
    fn an_owner_lives_while_one_of_both_runs_with_that_start() {
        let owner = owner();
        assert_eq!(owner.state(true, true), State::Lives);
        let gone = Owner { program: owner.guard, ..owner.clone() };
        assert!(matches!(gone.state(true, true), State::Gone(_)), "{:?}", gone.state(true, true));
        let guarded = Owner { guard: owner.program, ..gone };
        assert_eq!(guarded.state(true, true), State::Lives);
        // The process id has been given to another process since.
        let again = (owner.program.0, owner.program.1 - 1);
        let replaced = Owner { program: again, ..owner };
        assert!(matches!(replaced.state(true, true), State::Gone(_)));
    }

    #[test]
    fn what_cannot_be_told_is_not_called_ownerless() {
        let owner = owner();
        let boot = "00000000-0000-0000-0000-000000000000".to_string();
        let before = Owner { boot, ..owner.clone() };
        assert!(matches!(before.state(true, true), State::Gone(_)));
        assert!(matches!(before.state(false, true), State::Unknown(_)), "on a network disk");
        let host = "elsewhere".to_string();
        let of_another = Owner { host, ..before };
        assert!(matches!(of_another.state(true, true), State::Unknown(_)), "of another host");
        let elsewhere = |pids| {
            let namespaces = (pids, 1);
            Owner { namespaces, program: owner.guard, ..owner.clone() }
        };
        let runs = elsewhere(owner.namespaces.0);
        assert!(matches!(runs.state(true, true), State::Gone(_)), "its lock is free");
        assert!(matches!(runs.state(true, false), State::Unknown(_)), "no locks there");
        assert!(matches!(runs.state(false, true), State::Unknown(_)), "a network disk");
        // No namespace has the inode 1; who sees all processes knows.
        let sees_all = owner.namespaces.0 == FIRST_NAMESPACE && nix::unistd::geteuid().is_root();
        assert_eq!(matches!(elsewhere(1).state(true, false), State::Gone(_)), sees_all);
    }
}
