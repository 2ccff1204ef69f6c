//! Resource usage of processes during a measurement: CPU time per thread and in total, memory,
//! context switches, run delay.
//!
//! Sources: proc(5), `/proc/<pid>/task/<tid>/status` and `schedstat` (time on a CPU and time
//! runnable but waiting for one, nanoseconds). The files stay open and are read again from the
//! start, which saves most of the cost of a reading.

use model::{ProcessUse, ThreadCpu};
use nix::errno::Errno;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt as _;

use crate::cpu::process_cpu_ns;
use crate::procfs::{SchedStat, numbers};
use crate::tree::below_main_thread;

/// Number of threads of a process that are read each time. Processes with more threads are read
/// less often, so the average cost of a reading stays the same.
const THREADS_AT_ONCE: usize = 32;
/// Maximum number of threads of a process whose files (two each) stay open.
const THREADS_OPEN_MAX: usize = 256;
/// Buffer size for a thread's file: `status` has about 1,500 bytes.
const FILE_BYTES_MAX: usize = 8 << 10;

/// Reads the usage of the same processes repeatedly.
#[derive(Debug)]
pub struct UsageReader {
    processes: Vec<Process>,
    /// True if CPU time of children counts.
    with_children: bool,
    buffer: Vec<u8>,
}

impl UsageReader {
    /// A reader of the total usage of these processes.
    pub fn new(pids: &[u32]) -> Self {
        let processes = pids.iter().map(|pid| Process::new(*pid)).collect();
        Self { processes, with_children: false, buffer: vec![0; FILE_BYTES_MAX] }
    }

    /// Includes the CPU time of children of the main threads, such as those that write a server's
    /// data to disk.
    #[must_use]
    pub fn with_children(self) -> Self {
        Self { with_children: true, ..self }
    }

    /// Adds those of the processes that it does not read yet.
    pub fn follow(&mut self, pids: &[u32]) {
        let is_new = |pid: &&u32| self.processes.iter().all(|process| process.pid != **pid);
        let new: Vec<Process> = pids.iter().filter(is_new).map(|pid| Process::new(*pid)).collect();
        self.processes.extend(new);
    }

    /// Usage so far, with what ended processes had used when they were last read; `None` if no
    /// process runs.
    pub fn read(&mut self) -> Option<ProcessUse> {
        let mut all = ProcessUse::default();
        let mut is_running = false;
        for process in &mut self.processes {
            let mut own = ProcessUse::default();
            if process.add_to(&mut own, &mut self.buffer).is_some() {
                is_running = true;
                if self.with_children {
                    own.cpu_ns += below_main_thread(process.pid);
                }
                process.last = ProcessUse { threads: Vec::new(), ..own.clone() };
            } else {
                own = ProcessUse { resident_bytes: 0, swapped_bytes: 0, ..process.last.clone() };
            }
            all.add(own);
        }
        is_running.then_some(all)
    }
}

#[derive(Debug)]
struct Process {
    pid: u32,
    status: ProcFile,
    stat: ProcFile,
    io: ProcFile,
    threads: Vec<Thread>,
    /// True if the list of threads may be outdated.
    is_changed: bool,
    /// Readings so far.
    readings: usize,
    /// Last usage.
    last: ProcessUse,
    /// Last read counts of threads that have ended since.
    ended: Counts,
}

#[derive(Debug)]
struct Thread {
    id: u32,
    name: String,
    cpu_ns: u64,
    last: Counts,
    status: ProcFile,
    schedstat: ProcFile,
}

/// Counts that are summed over threads.
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
            status: ProcFile::new(format!("/proc/{pid}/status")),
            stat: ProcFile::new(format!("/proc/{pid}/stat")),
            io: ProcFile::new(format!("/proc/{pid}/io")),
            threads: Vec::new(),
            is_changed: true,
            readings: 0,
            last: ProcessUse::default(),
            ended: Counts::default(),
        }
    }

    /// Adds the usage of the process to `all`; `None` if it has ended.
    fn add_to(&mut self, all: &mut ProcessUse, buffer: &mut [u8]) -> Option<()> {
        let status = Status::parse(self.status.read(true, buffer).ok()?);
        if status.has_ended {
            return None;
        }
        all.cpu_ns += process_cpu_ns(self.pid)?;
        all.resident_bytes += status.resident_bytes;
        all.swapped_bytes += status.swapped_bytes;
        let threads = status.threads;
        // Both are of all threads, including ended ones. Another user's process may hide its calls.
        all.major_faults += self.stat.read(true, buffer).map_or(0, major_faults);
        all.calls += self.io.read(true, buffer).map_or(0, calls);
        if self.readings.is_multiple_of(threads.div_ceil(THREADS_AT_ONCE).max(1)) {
            if self.is_changed || threads != self.threads.len() {
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

    /// Adds new threads to the list and removes those that have ended.
    fn list(&mut self) {
        let entries = fs::read_dir(format!("/proc/{}/task", self.pid)).into_iter().flatten();
        let mut ids: Vec<u32> =
            entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect();
        ids.sort_unstable();
        let ended = &mut self.ended;
        self.threads.retain(|thread| {
            let still_exists = ids.binary_search(&thread.id).is_ok();
            if !still_exists {
                ended.add(thread.last);
            }
            still_exists
        });
        for id in ids {
            if let Err(at) = self.threads.binary_search_by_key(&id, |thread| thread.id) {
                self.threads.insert(at, Thread::new(self.pid, id));
            }
        }
        self.is_changed = false;
    }

    /// A thread that cannot be read keeps its last values; one that has ended is removed from the
    /// list at the next reading.
    fn read_threads(&mut self, buffer: &mut [u8]) {
        let keep_open = self.threads.len() <= THREADS_OPEN_MAX;
        for thread in &mut self.threads {
            if let Err(e) = thread.read(keep_open, buffer) {
                self.is_changed |= has_ended(&e);
            }
        }
    }
}

/// Reading an open file of an ended thread fails with ESRCH.
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
            status: ProcFile::new(format!("/proc/{pid}/task/{id}/status")),
            schedstat: ProcFile::new(format!("/proc/{pid}/task/{id}/schedstat")),
        }
    }

    fn read(&mut self, keep_open: bool, buffer: &mut [u8]) -> io::Result<()> {
        let status = Status::parse(self.status.read(keep_open, buffer)?);
        if self.name != status.name {
            status.name.clone_into(&mut self.name);
        }
        self.last.voluntary_switches = status.voluntary_switches;
        self.last.involuntary_switches = status.involuntary_switches;
        if let Some(times) = SchedStat::parse(self.schedstat.read(keep_open, buffer)?) {
            (self.cpu_ns, self.last.run_delay_ns) = (times.cpu_ns, times.waited_ns);
        }
        Ok(())
    }
}

/// A small file below `/proc` that is read repeatedly.
#[derive(Debug)]
struct ProcFile {
    path: String,
    file: Option<File>,
}

impl ProcFile {
    fn new(path: String) -> Self {
        Self { path, file: None }
    }

    /// Current contents, truncated to the size of `buffer`. Keeps the file open if `keep_open`.
    fn read<'b>(&mut self, keep_open: bool, buffer: &'b mut [u8]) -> io::Result<&'b [u8]> {
        let file = match self.file.take() {
            Some(file) => file,
            None => File::open(&self.path)?,
        };
        let bytes = file.read_at(buffer, 0)?;
        self.file = keep_open.then_some(file);
        Ok(&buffer[..bytes])
    }
}

/// Major faults in a `stat` file: field 12, where field 2 is the name in parentheses.
fn major_faults(stat: &[u8]) -> u64 {
    let after_name = stat.iter().rposition(|b| *b == b')').map_or(stat, |at| &stat[at + 1..]);
    let field = after_name.split(|b| *b == b' ').filter(|field| !field.is_empty()).nth(9);
    field.and_then(|field| numbers(field).next()).unwrap_or_default()
}

/// Calls that read and wrote in an `io` file.
fn calls(io: &[u8]) -> u64 {
    let value = |name: &[u8]| {
        let mut lines = io.split(|b| *b == b'\n');
        lines.find_map(|line| numbers(line.strip_prefix(name)?).next())
    };
    value(b"syscr:").unwrap_or_default() + value(b"syscw:").unwrap_or_default()
}

/// Fields of a `status` file that are used here.
#[derive(Debug, Default, PartialEq, Eq)]
struct Status<'a> {
    name: &'a str,
    /// True for a zombie process.
    has_ended: bool,
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
                    status.has_ended = matches!(value.trim_ascii().first(), Some(b'Z' | b'X'));
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
