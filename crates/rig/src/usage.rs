//! What processes use while they are measured: CPU by thread and in all, memory, context switches,
//! waiting for a CPU.
//!
//! Sources: proc(5), `/proc/<pid>/task/<tid>/status`, and `schedstat` there: time on a CPU and time
//! ready to run but waiting for one, nanoseconds. The files stay open and are read again from their
//! beginning, which saves most of what a reading costs.

use model::{ProcessUse, ThreadCpu};
use nix::errno::Errno;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt as _;

use crate::cpu::process_cpu_ns;
use crate::procfs::{SchedStat, numbers};
use crate::tree::below_main_thread;

/// Threads of a process that are read at once; more are read less often, so that a reading costs no
/// more on average.
const THREADS_AT_ONCE: usize = 32;
/// Threads of a process whose files stay open, two each.
const THREADS_OPEN_MAX: usize = 256;
/// Room for a file of one thread: `status` has about 1,500 bytes.
const FILE_BYTES_MAX: usize = 8 << 10;

/// Reads the same processes again and again.
#[derive(Debug)]
pub struct UsageReader {
    processes: Vec<Process>,
    /// True where CPU time of children counts.
    with_children: bool,
    buffer: Vec<u8>,
}

impl UsageReader {
    /// Of processes by their ids; all of them count together.
    pub fn new(pids: &[u32]) -> Self {
        let processes = pids.iter().map(|pid| Process::new(*pid)).collect();
        Self { processes, with_children: false, buffer: vec![0; FILE_BYTES_MAX] }
    }

    /// The same, with the CPU time of what their main threads have started: a server's children
    /// write its data to the disk.
    #[must_use]
    pub fn with_children(self) -> Self {
        Self { with_children: true, ..self }
    }

    /// What they have used until now; `None` when there are none, or one of them has ended.
    pub fn read(&mut self) -> Option<ProcessUse> {
        let mut all = ProcessUse::default();
        for process in &mut self.processes {
            process.add_to(&mut all, &mut self.buffer)?;
            if self.with_children {
                all.cpu_ns += below_main_thread(process.pid);
            }
        }
        (!self.processes.is_empty()).then_some(all)
    }
}

#[derive(Debug)]
struct Process {
    pid: u32,
    status: Reread,
    threads: Vec<Thread>,
    /// True when the list of threads may be wrong.
    is_changed: bool,
    /// Readings so far.
    readings: usize,
    /// What threads had used that have ended since, as they were last read.
    ended: Counts,
}

#[derive(Debug)]
struct Thread {
    id: u32,
    name: String,
    cpu_ns: u64,
    last: Counts,
    status: Reread,
    schedstat: Reread,
}

/// What is added up over threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    voluntary_switches: u64,
    involuntary_switches: u64,
    run_delay_ns: u64,
}

impl Counts {
    fn add(&mut self, other: Self) {
        self.voluntary_switches += other.voluntary_switches;
        self.involuntary_switches += other.involuntary_switches;
        self.run_delay_ns += other.run_delay_ns;
    }
}

impl Process {
    fn new(pid: u32) -> Self {
        Self {
            pid,
            status: Reread::new(format!("/proc/{pid}/status")),
            threads: Vec::new(),
            is_changed: true,
            readings: 0,
            ended: Counts::default(),
        }
    }

    /// Adds what it has used; `None` when it has ended.
    fn add_to(&mut self, all: &mut ProcessUse, buffer: &mut [u8]) -> Option<()> {
        let status = Status::parse(self.status.read(true, buffer).ok()?);
        if status.is_over {
            return None;
        }
        all.cpu_ns += process_cpu_ns(self.pid)?;
        all.resident_bytes += status.resident_bytes;
        all.swapped_bytes += status.swapped_bytes;
        if self.readings.is_multiple_of(status.threads.div_ceil(THREADS_AT_ONCE).max(1)) {
            if self.is_changed || status.threads != self.threads.len() {
                self.list();
            }
            self.read_threads(buffer);
            all.threads.extend(self.threads.iter().filter(|t| t.cpu_ns > 0).map(|t| ThreadCpu {
                id: t.id,
                name: t.name.clone(),
                cpu_ns: t.cpu_ns,
            }));
        }
        self.readings += 1;
        let mut counts = self.ended;
        self.threads.iter().for_each(|thread| counts.add(thread.last));
        all.voluntary_switches += counts.voluntary_switches;
        all.involuntary_switches += counts.involuntary_switches;
        all.run_delay_ns += counts.run_delay_ns;
        Some(())
    }

    /// Finds threads that are new, and leaves out those that have ended.
    fn list(&mut self) {
        let entries = fs::read_dir(format!("/proc/{}/task", self.pid)).into_iter().flatten();
        let mut ids: Vec<u32> =
            entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect();
        ids.sort_unstable();
        let ended = &mut self.ended;
        self.threads.retain(|thread| {
            let is_there = ids.binary_search(&thread.id).is_ok();
            if !is_there {
                ended.add(thread.last);
            }
            is_there
        });
        for id in ids {
            if let Err(at) = self.threads.binary_search_by_key(&id, |thread| thread.id) {
                self.threads.insert(at, Thread::new(self.pid, id));
            }
        }
        self.is_changed = false;
    }

    /// A thread that cannot be read keeps what was read last; one that has ended leaves the list
    /// with the next reading.
    fn read_threads(&mut self, buffer: &mut [u8]) {
        let keeps = self.threads.len() <= THREADS_OPEN_MAX;
        for thread in &mut self.threads {
            if let Err(e) = thread.read(keeps, buffer) {
                self.is_changed |= has_ended(&e);
            }
        }
    }
}

/// ESRCH is what files of an ended thread answer that are still open.
fn has_ended(e: &io::Error) -> bool {
    e.kind() == io::ErrorKind::NotFound || e.raw_os_error() == Some(Errno::ESRCH as i32)
}

impl Thread {
    fn new(pid: u32, id: u32) -> Self {
        Self {
            id,
            name: String::new(),
            cpu_ns: 0,
            last: Counts::default(),
            status: Reread::new(format!("/proc/{pid}/task/{id}/status")),
            schedstat: Reread::new(format!("/proc/{pid}/task/{id}/schedstat")),
        }
    }

    fn read(&mut self, keeps: bool, buffer: &mut [u8]) -> io::Result<()> {
        let status = Status::parse(self.status.read(keeps, buffer)?);
        if self.name != status.name {
            status.name.clone_into(&mut self.name);
        }
        self.last.voluntary_switches = status.voluntary_switches;
        self.last.involuntary_switches = status.involuntary_switches;
        if let Some(times) = SchedStat::parse(self.schedstat.read(keeps, buffer)?) {
            (self.cpu_ns, self.last.run_delay_ns) = (times.cpu_ns, times.waited_ns);
        }
        Ok(())
    }
}

/// A small file below `/proc` that is read again and again.
#[derive(Debug)]
struct Reread {
    path: String,
    file: Option<File>,
}

impl Reread {
    fn new(path: String) -> Self {
        Self { path, file: None }
    }

    /// What it holds now, as much as fits into `buffer`; `keeps` it open for the next time.
    fn read<'b>(&mut self, keeps: bool, buffer: &'b mut [u8]) -> io::Result<&'b [u8]> {
        let file = match self.file.take() {
            Some(file) => file,
            None => File::open(&self.path)?,
        };
        let bytes = file.read_at(buffer, 0)?;
        self.file = keeps.then_some(file);
        Ok(&buffer[..bytes])
    }
}

/// What is needed of a `status` file.
#[derive(Debug, Default, PartialEq, Eq)]
struct Status<'a> {
    name: &'a str,
    /// True for a process that has ended and waits for its parent.
    is_over: bool,
    threads: usize,
    resident_bytes: u64,
    swapped_bytes: u64,
    voluntary_switches: u64,
    involuntary_switches: u64,
}

impl<'a> Status<'a> {
    /// Lines are `Name:\tvalue`; memory is in KiB, which the kernel calls kB.
    fn parse(text: &'a [u8]) -> Self {
        let mut status = Self::default();
        for line in text.split(|b| *b == b'\n') {
            let Some(colon) = line.iter().position(|b| *b == b':') else { continue };
            let value = &line[colon + 1..];
            let number = || numbers(value).next().unwrap_or_default();
            match &line[..colon] {
                b"Name" => {
                    status.name = std::str::from_utf8(value.trim_ascii()).unwrap_or_default();
                }
                b"State" => {
                    status.is_over = matches!(value.trim_ascii().first(), Some(b'Z' | b'X'));
                }
                b"Threads" => status.threads = number() as usize,
                b"VmRSS" => status.resident_bytes = number() * 1024,
                b"VmSwap" => status.swapped_bytes = number() * 1024,
                b"voluntary_ctxt_switches" => status.voluntary_switches = number(),
                b"nonvoluntary_ctxt_switches" => status.involuntary_switches = number(),
                _ => {}
            }
        }
        status
    }
}

#[cfg(test)]
#[path = "usage_tests.rs"]
mod tests;
