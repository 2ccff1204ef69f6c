//! Writing a record: a sink of events.

use jiff::Timestamp;
use model::{Event, Header, Sink, SinkError};
use serde::Serialize;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{BufRead, BufReader, Seek, SeekFrom, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::{
    ArchiveError, HEADER, LATENCY_LOG, LOCK, SEAL, TARGETS, TRIALS, TargetLine, hlog, reader,
    samples,
};

/// Writes one record; holds its lock as long as it lives.
#[derive(Debug)]
pub struct Writer {
    path: PathBuf,
    targets: File,
    trials: File,
    /// When the run began, milliseconds since 1970.
    started_unix_ms: u64,
    _lock: File,
}

impl Writer {
    /// Makes the directory of a new record below `records` and writes its header.
    pub fn create(records: &Path, header: &Header) -> Result<Self, ArchiveError> {
        let path = records.join(directory_name(header));
        fs::create_dir_all(records).map_err(|e| written(records, e))?;
        fs::create_dir(&path).map_err(|e| written(&path, e))?;
        write_whole(&path.join(HEADER), header).inspect_err(|_| {
            // A directory without a header is no record; it is still empty.
            let _ = fs::remove_dir(&path);
        })?;
        Self::open(path, header.started_unix_ms)
    }

    /// Opens an unsealed or interrupted record to add the missing trials.
    pub fn resume(path: &Path) -> Result<Self, ArchiveError> {
        let started_unix_ms = reader::header(path)?.started_unix_ms;
        let writer = Self::open(path.to_path_buf(), started_unix_ms)?;
        cut_torn_line(&path.join(TRIALS))?;
        cut_torn_line(&path.join(TARGETS))?;
        let log = path.join(LATENCY_LOG);
        if log.exists() {
            cut_torn_line(&log)?;
        }
        samples::cut_torn_member(path)?;
        let seal = path.join(SEAL);
        match fs::remove_file(&seal) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(written(&seal, e)),
            _ => Ok(writer),
        }
    }

    fn open(path: PathBuf, started_unix_ms: u64) -> Result<Self, ArchiveError> {
        let lock = append(&path.join(LOCK))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(ArchiveError::InUse(path)),
            Err(TryLockError::Error(e)) => return Err(written(&path.join(LOCK), e)),
        }
        let targets = append(&path.join(TARGETS))?;
        let trials = append(&path.join(TRIALS))?;
        Ok(Self { path, targets, trials, started_unix_ms, _lock: lock })
    }

    /// Directory of the record.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn target(&mut self, line: &TargetLine) -> Result<(), ArchiveError> {
        append_line(&mut self.targets, &self.path.join(TARGETS), line)
    }

    fn take(&mut self, event: &Event) -> Result<(), ArchiveError> {
        match event {
            Event::TargetReady { target, version, configuration } => self.target(&TargetLine {
                target: target.clone(),
                version: Some(version.clone()),
                configuration: configuration.clone(),
                unavailable: None,
            }),
            Event::TargetUnavailable { target, failure } => self.target(&TargetLine {
                target: target.clone(),
                version: None,
                configuration: Vec::new(),
                unavailable: Some(failure.clone()),
            }),
            Event::TrialEnded(trial) => {
                append_line(&mut self.trials, &self.path.join(TRIALS), trial)
            }
            Event::Intervals { cell, intervals } => {
                let path = self.path.join(LATENCY_LOG);
                hlog::append(&path, self.started_unix_ms, cell, intervals)
            }
            Event::Samples { block, cell, samples } => {
                samples::append_samples(&self.path, (*block, cell), samples)
            }
            Event::RunEnded(seal) => write_whole(&self.path.join(SEAL), seal),
            _ => Ok(()),
        }
    }
}

impl Sink for Writer {
    fn name(&self) -> &'static str {
        "record"
    }

    fn event(&mut self, event: &Event) -> Result<(), SinkError> {
        self.take(event).map_err(|e| SinkError(e.to_string()))
    }
}

/// `<time>-<study>-<id>`, time in UTC, so that names sort by time.
fn directory_name(header: &Header) -> String {
    let time = utc(header.started_unix_ms);
    format!("{}-{}-{}", time.strftime("%Y%m%dT%H%M%SZ"), header.plan.study, header.run)
}

/// The time that is so many milliseconds after 1970 began.
pub(crate) fn utc(unix_ms: u64) -> Timestamp {
    let unix_ms = i64::try_from(unix_ms).unwrap_or(i64::MAX);
    Timestamp::from_millisecond(unix_ms).unwrap_or(Timestamp::UNIX_EPOCH)
}

pub(crate) fn written(path: &Path, source: std::io::Error) -> ArchiveError {
    ArchiveError::Io { doing: "written", path: path.to_path_buf(), source }
}

pub(crate) fn append(path: &Path) -> Result<File, ArchiveError> {
    OpenOptions::new().create(true).append(true).open(path).map_err(|e| written(path, e))
}

pub(crate) fn json(path: &Path, value: &impl Serialize) -> Result<Vec<u8>, ArchiveError> {
    serde_json::to_vec(value).map_err(|e| written(path, e.into()))
}

fn append_line(file: &mut File, path: &Path, value: &impl Serialize) -> Result<(), ArchiveError> {
    let mut line = json(path, value)?;
    line.push(b'\n');
    append_whole(file, path, &line)
}

/// Adds bytes at the end of a file and syncs it to disk.
pub(crate) fn append_whole(file: &mut File, path: &Path, bytes: &[u8]) -> Result<(), ArchiveError> {
    let before = file.metadata().map_err(|e| written(path, e))?.len();
    let done = file.write_all(bytes).and_then(|()| file.sync_data());
    done.map_err(|e| {
        // What fitted of them is taken back, so that the file stays a list of whole lines.
        match file.set_len(before) {
            Ok(()) => written(path, e),
            Err(also) => written(path, std::io::Error::other(format!("{e}; then {also}"))),
        }
    })
}

/// Writes a file whole or not at all: under another name first, then renamed.
pub(crate) fn write_whole(path: &Path, value: &impl Serialize) -> Result<(), ArchiveError> {
    let directory = path.parent().unwrap_or(Path::new("."));
    // As readable as the record's other files: what the user's umask leaves of this.
    let readable = fs::Permissions::from_mode(0o666);
    let mut file = tempfile::Builder::new()
        .permissions(readable)
        .tempfile_in(directory)
        .map_err(|e| written(path, e))?;
    let text = json(path, value)?;
    file.write_all(&text).map_err(|e| written(path, e))?;
    file.as_file().sync_data().map_err(|e| written(path, e))?;
    file.persist(path).map_err(|e| written(path, e.error))?;
    Ok(())
}

/// Cuts off a last line that has no end.
fn cut_torn_line(path: &Path) -> Result<(), ArchiveError> {
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)
        .map_err(|e| written(path, e))?;
    let mut whole = 0;
    let mut reader = BufReader::new(&file);
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line).map_err(|e| written(path, e))? > 0 {
        if line.ends_with(b"\n") {
            whole += line.len() as u64;
        }
        line.clear();
    }
    file.set_len(whole).map_err(|e| written(path, e))?;
    file.seek(SeekFrom::End(0)).map_err(|e| written(path, e))?;
    Ok(())
}
