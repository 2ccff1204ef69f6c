//! Times at which somebody else has taken the CPU of the generator or of a server, and which
//! requests they delay.
//!
//! A queue grows while its server or its source stands still, and near its knee it needs many times
//! as long to shrink again: where a search asks what a store bears, that would be the answer. What
//! is answered from such a loss on until as many requests are under way as when it began is
//! therefore counted apart. The queue is then as it was, and what is left of its course is one
//! without the loss: exactly so where a queue's future depends on nothing but its length, as with
//! Poisson arrivals and exponential times of service (the strong Markov property; Asmussen,
//! "Applied probability and queues", 2003, I.8).
//!
//! A thread of the generator knows that it stood still by its own clock, which it reads after every
//! few requests. That a server did is told by the kernel: `schedstat` of its threads counts how
//! long each was ready to run and did not (Documentation/scheduler/sched-stats.rst). What a
//! server's threads and children take from each other is its own doing and counts as any other
//! time.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;

/// Shortest time without a CPU that is taken note of, nanoseconds.
const LOST_MIN_NS: u64 = 300_000;
/// Time that a thread of the generator may need for a request, and for a byte of its value.
const OWN_NS: u64 = 5_000;
const OWN_NS_A_BYTE: u64 = 4;
/// What a thread waits for its CPU each time it wakes up, with nobody else there.
const WAKE_NS: u64 = 10_000;
/// How often the servers' threads are looked at, and how slow a reply is after which they are at
/// once.
const LOOK_NS: u64 = 2_000_000;
const SLOW_NS: u64 = 500_000;
/// No looking more often than that, however slow replies are.
const LOOK_MIN_NS: u64 = 500_000;
/// Most threads of servers that are looked at; where they have more, none is.
const THREADS_MAX: usize = 16;
/// How much of what a server's other threads used excuses a wait of one: longer than they let each
/// other wait.
const EXCUSED_NS_MAX: u64 = 50_000_000;
/// How far apart the numbers of requests under way are kept, and for how long.
const KEPT_EVERY_NS: u64 = 100_000;
const KEPT_NS: u64 = 100_000_000;
/// After how long an empty store is believed to be as it was.
const FORGOTTEN_NS: u64 = 20_000_000;

/// What others took, of a thread's time or of several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lost {
    /// How often the CPU was gone.
    pub(crate) times: u64,
    /// How long in all, nanoseconds: of the thread itself, and of the servers.
    pub(crate) own_ns: u64,
    pub(crate) server_ns: u64,
}

impl Lost {
    /// Both together.
    #[must_use]
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            times: self.times + other.times,
            own_ns: self.own_ns + other.own_ns,
            server_ns: self.server_ns + other.server_ns,
        }
    }
}

/// A number of requests under way that is to be reached again.
#[derive(Clone, Copy, Debug)]
struct Level {
    requests: u64,
    /// Whether fewer are under way, from the first look after a loss on. Most often more are, but a
    /// server may have had little to do meanwhile.
    from_below: Option<bool>,
    since_ns: u64,
}

/// A thread's watch.
#[derive(Debug)]
pub(super) struct Preempted {
    servers: Vec<RunQueue>,
    /// Main threads' lists of their children.
    children: Vec<File>,
    looked_ns: u64,
    /// When this thread was at work last, and how many requests it had sent and settled.
    seen: (u64, u64),
    /// What it needs at most for a request.
    own_ns_each: u64,
    /// Requests under way at times past, ascending.
    kept: VecDeque<(u64, u64)>,
    /// What is waited for, since a CPU was gone.
    level: Option<Level>,
    /// Not yet told.
    lost: Lost,
}

impl Preempted {
    /// A watch over the calling thread and processes of servers; requests have values of at most
    /// `value_bytes`.
    pub(super) fn new(servers: &[u32], value_bytes: u64) -> Self {
        let mut threads: Vec<RunQueue> = servers.iter().flat_map(|pid| threads(*pid)).collect();
        if threads.len() > THREADS_MAX {
            threads.clear();
        }
        let children = |pid: &u32| File::open(format!("/proc/{pid}/task/{pid}/children")).ok();
        let children: Vec<File> = servers.iter().filter_map(children).collect();
        // Without that list nobody knows what a server does to itself.
        if children.len() < servers.len() {
            threads.clear();
        }
        Self {
            servers: threads,
            children,
            looked_ns: 0,
            seen: (u64::MAX, 0),
            own_ns_each: OWN_NS + value_bytes * OWN_NS_A_BYTE,
            kept: VecDeque::new(),
            level: None,
            lost: Lost::default(),
        }
    }

    /// The thread is at work, with so many requests under way and `handled` sent and settled since
    /// its start.
    pub(super) fn at_work(&mut self, now_ns: u64, under_way: u64, handled: u64) {
        let (seen_ns, seen_handled) = self.seen;
        let own_ns = (handled - seen_handled) * self.own_ns_each;
        let gone_ns = now_ns.saturating_sub(seen_ns);
        self.seen = (now_ns, handled);
        if gone_ns >= LOST_MIN_NS + own_ns {
            self.lost.own_ns += gone_ns;
            self.begins(now_ns, under_way);
        }
        if now_ns >= self.looked_ns + LOOK_NS {
            self.look(now_ns);
        }
        if self.kept.back().is_none_or(|(at_ns, _)| now_ns >= at_ns + KEPT_EVERY_NS) {
            self.kept.push_back((now_ns, under_way));
            while self.kept.front().is_some_and(|(at_ns, _)| at_ns + KEPT_NS < now_ns) {
                self.kept.pop_front();
            }
        }
    }

    /// The thread sleeps until a time at the latest.
    pub(super) fn sleeps(&mut self, until_ns: u64) {
        self.seen.0 = until_ns;
    }

    /// A reply came that took `service_ns`; true where what is answered now is to be counted apart.
    pub(super) fn answered(&mut self, now_ns: u64, service_ns: u64) -> bool {
        if service_ns >= SLOW_NS && now_ns >= self.looked_ns + LOOK_MIN_NS {
            self.look(now_ns);
        }
        self.is_waiting()
    }

    /// True from a loss on until the queue is as before it.
    pub(super) fn is_waiting(&self) -> bool {
        self.level.is_some()
    }

    /// So many requests are under way once one has left, and all that are due were sent.
    pub(super) fn left(&mut self, now_ns: u64, requests: u64) {
        let Some(level) = &mut self.level else { return };
        let from_below = *level.from_below.get_or_insert(requests < level.requests);
        let is_there =
            if from_below { requests >= level.requests } else { requests <= level.requests };
        // What was under way at a higher rate is perhaps never under way again.
        let is_over = requests == 0 && now_ns >= level.since_ns + FORGOTTEN_NS;
        if is_there || is_over {
            self.level = None;
        }
    }

    /// So many are under way once some were sent: from below their number is reached so.
    pub(super) fn joined(&mut self, requests: u64) {
        let is_there = |l: &Level| l.from_below == Some(true) && requests >= l.requests;
        if self.level.as_ref().is_some_and(is_there) {
            self.level = None;
        }
    }

    /// What was lost since this was asked last.
    pub(super) fn take_lost(&mut self) -> Lost {
        std::mem::take(&mut self.lost)
    }

    fn begins(&mut self, now_ns: u64, under_way: u64) {
        self.lost.times += 1;
        // What a first loss is waited for is not changed by a second.
        let requests = self.level.map_or(under_way, |level| level.requests);
        self.level = Some(Level { requests, from_below: None, since_ns: now_ns });
    }

    /// Looks whether a server lost its CPU.
    fn look(&mut self, now_ns: u64) {
        self.looked_ns = now_ns;
        let used: Vec<Used> = self.servers.iter_mut().map(RunQueue::read).collect();
        let all_ns: u64 = used.iter().map(|u| u.cpu_ns).sum();
        let threads = self.servers.iter_mut().zip(&used);
        let lost_ns = threads.map(|(thread, used)| thread.lost(*used, all_ns - used.cpu_ns));
        let lost_ns = lost_ns.max().unwrap_or(0);
        if lost_ns < LOST_MIN_NS || self.has_children() {
            return;
        }
        self.lost.server_ns += lost_ns;
        let begun_ns = now_ns.saturating_sub(lost_ns + LOST_MIN_NS);
        let before = self.kept.iter().rev().find(|(at_ns, _)| *at_ns <= begun_ns);
        let under_way = before.or(self.kept.front()).map_or(0, |(_, under_way)| *under_way);
        self.begins(now_ns, under_way);
    }

    fn has_children(&self) -> bool {
        self.children.iter().any(|file| file.read_at(&mut [0; 1], 0).map_or(true, |read| read > 0))
    }
}

/// What a thread did between two looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Used {
    cpu_ns: u64,
    waited_ns: u64,
    runs: u64,
}

/// A thread's `schedstat`.
#[derive(Debug)]
struct RunQueue {
    file: File,
    last: Used,
    /// What the server's other threads used that no wait of this one is put down to yet.
    excused_ns: u64,
}

impl RunQueue {
    /// For how long others had its CPU; the server's other threads used `own_ns` meanwhile.
    /// A wait is told only when it is over, when what those used may have been told long before.
    fn lost(&mut self, used: Used, own_ns: u64) -> u64 {
        let waited_ns = used.waited_ns.saturating_sub(used.runs * WAKE_NS);
        let excused_ns = self.excused_ns + own_ns;
        self.excused_ns = excused_ns.saturating_sub(waited_ns).min(EXCUSED_NS_MAX);
        waited_ns.saturating_sub(excused_ns)
    }

    /// What the thread did since it was read last; nothing where it has ended.
    fn read(&mut self) -> Used {
        let mut text = [0; 96];
        let read = self.file.read_at(&mut text, 0).unwrap_or(0);
        let Some(now) = parsed(&text[..read]) else { return Used::default() };
        let last = std::mem::replace(&mut self.last, now);
        Used {
            cpu_ns: now.cpu_ns.saturating_sub(last.cpu_ns),
            waited_ns: now.waited_ns.saturating_sub(last.waited_ns),
            runs: now.runs.saturating_sub(last.runs),
        }
    }
}

/// Three numbers: time on a CPU and time waiting for one, nanoseconds, and how often it ran.
fn parsed(text: &[u8]) -> Option<Used> {
    let mut numbers = std::str::from_utf8(text).ok()?.split_whitespace().map(str::parse);
    let mut next = || numbers.next()?.ok();
    Some(Used { cpu_ns: next()?, waited_ns: next()?, runs: next()? })
}

/// The threads of a process whose `schedstat` can be read.
fn threads(pid: u32) -> Vec<RunQueue> {
    let entries = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let opened = entries.filter_map(|entry| {
        let file = File::open(entry.path().join("schedstat")).ok()?;
        let mut thread = RunQueue { file, last: Used::default(), excused_ns: 0 };
        thread.read();
        Some(thread)
    });
    opened.collect()
}

#[cfg(test)]
#[path = "preempted_tests.rs"]
mod tests;
