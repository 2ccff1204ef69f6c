//! Pressure stall information (PSI) of the machine or of a control group: how long tasks waited for
//! memory, disks and CPUs. Source: the kernel's page "PSI - Pressure Stall Information" on
//! `/proc/pressure`, and "Control Group v2" on `memory.pressure`, `io.pressure` and `cpu.pressure`.

use model::Pressure;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

/// Bytes of a file with some to spare: two lines.
const FILE_BYTES_MAX: usize = 512;

/// Reads pressure repeatedly.
#[derive(Debug)]
pub struct PressureReader {
    memory: File,
    io: File,
    cpu: File,
}

impl PressureReader {
    /// A reader for the whole machine; `None` if the kernel has no PSI.
    pub fn of_machine() -> Option<Self> {
        Self::new(|kind| File::open(Path::new("/proc/pressure").join(kind)).ok())
    }

    /// A reader for a control group; `None` with version 1, or without PSI.
    pub fn of_group(group: &Path) -> Option<Self> {
        Self::new(|kind| File::open(group.join(format!("{kind}.pressure"))).ok())
    }

    fn new(open: impl Fn(&str) -> Option<File>) -> Option<Self> {
        let mut reader = Self { memory: open("memory")?, io: open("io")?, cpu: open("cpu")? };
        // A kernel that was started without PSI has the files, but refuses to read them.
        reader.read().map(|_| reader)
    }

    /// Time waited so far; `None` if it cannot be read.
    pub fn read(&mut self) -> Option<Pressure> {
        let [memory, io, cpu] = [&self.memory, &self.io, &self.cpu].map(text);
        let (memory, io, cpu) = (memory?, io?, cpu?);
        Some(Pressure {
            memory_some_ns: total_us(&memory, "some ")? * 1000,
            memory_full_ns: total_us(&memory, "full ")? * 1000,
            io_some_ns: total_us(&io, "some ")? * 1000,
            io_full_ns: total_us(&io, "full ")? * 1000,
            cpu_some_ns: total_us(&cpu, "some ")? * 1000,
        })
    }
}

fn text(file: &File) -> Option<String> {
    let mut text = [0; FILE_BYTES_MAX];
    let read = file.read_at(&mut text, 0).ok()?;
    String::from_utf8(text[..read].to_vec()).ok()
}

/// Total of the line that starts with `kind`: `some avg10=… avg60=… avg300=… total=<µs>`.
pub(crate) fn total_us(text: &str, kind: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(kind))?;
    line.split(' ').find_map(|field| field.strip_prefix("total="))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn totals_of_a_group_are_read_in_nanoseconds() {
        let group = tempfile::tempdir().unwrap();
        assert!(PressureReader::of_group(group.path()).is_none(), "version 1 has no such files");
        let lines = |some: u64, full: u64| {
            let line =
                |kind, total| format!("{kind} avg10=0.00 avg60=1.50 avg300=0.00 total={total}\n");
            [line("some", some), line("full", full)].concat()
        };
        for (kind, some) in [("memory", 10), ("io", 30), ("cpu", 50)] {
            fs::write(group.path().join(format!("{kind}.pressure")), lines(some, some + 10))
                .unwrap();
        }
        let mut reader = PressureReader::of_group(group.path()).unwrap();
        let expected = Pressure {
            memory_some_ns: 10_000,
            memory_full_ns: 20_000,
            io_some_ns: 30_000,
            io_full_ns: 40_000,
            cpu_some_ns: 50_000,
        };
        assert_eq!(reader.read(), Some(expected));
        fs::write(group.path().join("io.pressure"), "").unwrap();
        assert_eq!(reader.read(), None, "no figure, not zero");
    }

    #[test]
    fn totals_of_the_machine_grow() {
        let Some(mut reader) = PressureReader::of_machine() else {
            eprintln!("skipped: this kernel has no pressure stall information");
            return;
        };
        let (first, second) = (reader.read().unwrap(), reader.read().unwrap());
        assert!(second.cpu_some_ns >= first.cpu_some_ns);
        assert!(first.memory_full_ns <= first.memory_some_ns);
    }
}
