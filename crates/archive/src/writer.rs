//! The event sink that writes a record.

use model::{Event, Header, Sink, SinkError, Trial};
use serde::Serialize;
use std::fs::{self, File, TryLockError};
use std::io::{self, Read as _};
use std::path::Path;
use std::slice;

use crate::directory::{Directory, append_whole};
use crate::json::json;
use crate::time::utc;
use crate::{
    ArchiveError, HEADER, LATENCY_LOG, LOCK, POINTS, SEAL, TARGETS, TRIALS, hlog, reader, samples,
    seal, written,
};

/// Writes one record and holds its lock until dropped.
#[derive(Debug)]
pub struct Writer {
    record: Directory,
    targets: File,
    trials: File,
    /// Start of the run, milliseconds since the Unix epoch.
    started_unix_ms: u64,
    /// Files that were changed after an earlier seal; recorded in the next seal.
    changed: Vec<String>,
    lost: Option<String>,
    _lock: File,
}

impl Writer {
    /// Creates a new record's directory below `records` and writes its header.
    pub fn create(records: &Path, header: &Header) -> Result<Self, ArchiveError> {
        let path = records.join(directory_name(header));
        fs::create_dir_all(records).map_err(|e| written(records, e))?;
        fs::create_dir(&path).map_err(|e| written(&path, e))?;
        let record = Directory::open(&path).map_err(|e| written(&path, e))?;
        let text = json(&record.place(HEADER), header)?;
        record.write_whole(HEADER, &text).inspect_err(|_| {
            // Without a header the directory is not a record. It is still empty.
            let _ = fs::remove_dir(&path);
        })?;
        Self::open(record, header.started_unix_ms)
    }

    /// Opens an unsealed or interrupted record to append the missing trials.
    pub fn resume(path: &Path) -> Result<Self, ArchiveError> {
        let record = Directory::of_record(path)?;
        let started_unix_ms = reader::header(&record)?.started_unix_ms;
        let mut writer = Self::open(record, started_unix_ms)?;
        let record = &writer.record;
        (_, writer.changed) = seal::read(record)?;
        cut_torn_line(record, TRIALS)?;
        cut_torn_line(record, TARGETS)?;
        for name in [LATENCY_LOG, POINTS] {
            if record.file(name)?.is_some() {
                cut_torn_line(record, name)?;
            }
        }
        samples::cut_torn_member(record)?;
        record.remove(SEAL)?;
        Ok(writer)
    }

    /// Replaces the header of a resumed record, whose conditions have changed.
    pub fn replace_header(&self, header: &Header) -> Result<(), ArchiveError> {
        self.record.write_whole(HEADER, &json(&self.record.place(HEADER), header)?)
    }

    fn open(record: Directory, started_unix_ms: u64) -> Result<Self, ArchiveError> {
        let lock = record.append(LOCK)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(ArchiveError::InUse(record.path().to_path_buf()));
            }
            Err(TryLockError::Error(e)) => return Err(record.unwritten(LOCK, e)),
        }
        let (targets, trials) = (record.append(TARGETS)?, record.append(TRIALS)?);
        Ok(Self {
            record,
            targets,
            trials,
            started_unix_ms,
            changed: Vec::new(),
            lost: None,
            _lock: lock,
        })
    }

    /// Directory of the record.
    pub fn path(&self) -> &Path {
        self.record.path()
    }

    /// Files of a resumed record that were changed after it was sealed.
    pub fn changed(&self) -> &[String] {
        &self.changed
    }

    /// Why the record is incomplete, such as a full disk; `None` if it is complete.
    pub fn lost(&self) -> Option<&str> {
        self.lost.as_deref()
    }

    /// Removes the points of a finished trial, since the trial's line contains them.
    fn forget_points(&self, ended: &Trial) -> Result<(), ArchiveError> {
        if self.record.file(POINTS)?.is_none() {
            return Ok(());
        }
        let parts = reader::lines(&self.record, POINTS)?;
        let place = self.record.place(POINTS);
        let mut kept = Vec::new();
        for part in reader::not_ended(parts, slice::from_ref(ended)) {
            kept.extend(json(&place, &part)?);
            kept.push(b'\n');
        }
        if kept.is_empty() {
            self.record.remove(POINTS)
        } else {
            self.record.write_whole(POINTS, &kept)
        }
    }

    fn take(&mut self, event: &Event) -> Result<(), ArchiveError> {
        match event {
            Event::TargetChecked(state) => {
                append_line(&mut self.targets, &self.record.place(TARGETS), state)
            }
            Event::PointEnded(part) => {
                append_line(&mut self.record.append(POINTS)?, &self.record.place(POINTS), part)
            }
            Event::TrialEnded(trial) => {
                append_line(&mut self.trials, &self.record.place(TRIALS), trial)?;
                self.forget_points(trial)
            }
            Event::Intervals { cell, intervals } => {
                hlog::append(&self.record, self.started_unix_ms, cell, intervals)
            }
            Event::Samples { block, cell, samples } => {
                samples::append_samples(&self.record, (*block, cell), samples)
            }
            Event::RunEnded(seal) => seal::write(&self.record, seal, &self.changed),
            _ => Ok(()),
        }
    }
}

impl Sink for Writer {
    fn name(&self) -> &'static str {
        "record"
    }

    fn event(&mut self, event: &Event) -> Result<(), SinkError> {
        self.take(event).map_err(|e| SinkError(self.lost.insert(e.to_string()).clone()))
    }
}

/// `<time>-<study>-<id>`, with the time in UTC, so that names sort by time.
fn directory_name(header: &Header) -> String {
    let time = utc(header.started_unix_ms);
    format!("{}-{}-{}", time.strftime("%Y%m%dT%H%M%SZ"), header.plan.study, header.run)
}

fn append_line(file: &mut File, path: &Path, value: &impl Serialize) -> Result<(), ArchiveError> {
    let mut line = json(path, value)?;
    line.push(b'\n');
    append_whole(file, path, &line)
}

/// Truncates an incomplete last line.
fn cut_torn_line(record: &Directory, name: &str) -> Result<(), ArchiveError> {
    let mut file = record.append(name)?;
    let (mut part, mut length, mut whole) = (vec![0; 1 << 16], 0, 0);
    loop {
        let read = match file.read(&mut part) {
            Ok(0) => break,
            Ok(read) => read,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(record.unreadable(name, e)),
        };
        if let Some(at) = part[..read].iter().rposition(|b| *b == b'\n') {
            whole = length + at as u64 + 1;
        }
        length += read as u64;
    }
    if whole < length {
        file.set_len(whole).map_err(|e| record.unwritten(name, e))?;
    }
    Ok(())
}
