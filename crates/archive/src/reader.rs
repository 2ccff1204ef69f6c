//! Reads, lists and finds records.

use model::leftovers::{KILLED, leftovers};
use model::record::RECORD_FORMAT;
use model::{Header, Listed, PlannedTarget, Seal, SealStatus, TargetState, Trial};
use serde::de::DeserializeOwned;
use std::ffi::OsStr;
use std::fs::{self, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::directory::Directory;
use crate::json::parse;
use crate::{ArchiveError, HEADER, LOCK, POINTS, TARGETS, TRIALS, numbers, seal};

/// The contents of a record.
#[derive(Clone, Debug)]
pub struct Record {
    /// Its directory.
    pub path: PathBuf,
    /// Plan, conditions, tool and command.
    pub header: Header,
    /// The last known state of each target.
    pub targets: Vec<TargetState>,
    /// Finished trials in the order in which they ended, then the finished points of running ones.
    pub trials: Vec<Trial>,
    /// How the run ended; `None` if it was killed or is still running.
    pub seal: Option<Seal>,
    /// True while a process is writing the record.
    pub running: bool,
    /// Files that were changed after the record was sealed.
    pub changed: Vec<String>,
}

impl Record {
    /// Reads a record.
    pub fn read(path: &Path) -> Result<Self, ArchiveError> {
        Self::of(&Directory::of_record(path)?)
    }

    pub(crate) fn of(directory: &Directory) -> Result<Self, ArchiveError> {
        let header = header(directory)?;
        let Ending { seal, changed, running } = ending(directory, in_use)?;
        let mut targets: Vec<TargetState> = Vec::new();
        for line in lines::<TargetState>(directory, TARGETS)? {
            targets.retain(|t| t.target != line.target);
            targets.push(line);
        }
        // Read the points before the trials, since a trial's line may replace them in between.
        let parts = lines(directory, POINTS)?;
        let mut trials = Vec::new();
        for trial in lines(directory, TRIALS)? {
            Trial::add(&mut trials, trial);
        }
        for part in not_ended(parts, &trials) {
            Trial::merge_part(&mut trials, part);
        }
        let path = directory.path().to_path_buf();
        Ok(Self { path, header, targets, trials, seal, running, changed })
    }
}

/// The parts whose trials have not ended.
pub(crate) fn not_ended(mut parts: Vec<Trial>, ended: &[Trial]) -> Vec<Trial> {
    parts.retain(|part| !ended.iter().any(|trial| trial.repeats(part)));
    parts
}

/// Whether and how a run ended.
#[derive(Default)]
pub(crate) struct Ending {
    pub(crate) seal: Option<Seal>,
    changed: Vec<String>,
    pub(crate) running: bool,
}

/// Reads whether and how a run ended. A run writes the seal before it releases the lock. So a
/// record that is neither sealed nor `in_use` is checked for a seal again before it counts as
/// killed.
pub(crate) fn ending(
    record: &Directory,
    in_use: impl FnOnce(&Directory) -> bool,
) -> Result<Ending, ArchiveError> {
    let (mut seal, mut changed) = seal::read(record)?;
    let running = seal.is_none() && in_use(record);
    if seal.is_none() && !running {
        (seal, changed) = seal::read(record)?;
    }
    Ok(Ending { seal, changed, running })
}

/// All records below `records`, oldest first. Links, and directories that are not records, are
/// skipped. Names and errors of records that cannot be read are passed to `unreadable`.
pub fn list(
    records: &Path,
    unreadable: &mut dyn FnMut(&OsStr, ArchiveError),
) -> Result<Vec<Listed>, ArchiveError> {
    let all = match Directory::open(records) {
        Ok(all) => all,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(crate::unreadable(records, e)),
    };
    let entries = fs::read_dir(records).map_err(|e| crate::unreadable(records, e))?;
    let mut found = Vec::new();
    for entry in entries.filter_map(Result::ok) {
        let Ok(record) = all.below(&entry.file_name()) else { continue };
        match listed(&record) {
            Ok(record) => found.push(record),
            Err(ArchiveError::NotARecord(_)) => {}
            Err(e) => unreadable(&entry.file_name(), e),
        }
    }
    found.sort_by(|a, b| (a.started_unix_ms, &a.run).cmp(&(b.started_unix_ms, &b.run)));
    Ok(found)
}

fn listed(record: &Directory) -> Result<Listed, ArchiveError> {
    let header = header(record)?;
    let Ending { seal, changed, running } = ending(record, in_use).unwrap_or_default();
    let status = match seal {
        Some(Seal { status: SealStatus::Complete, .. }) => "complete",
        Some(Seal { status: SealStatus::Interrupted, .. }) => "interrupted",
        None if running => "running",
        None => "unsealed",
    };
    let plan = &header.plan;
    let left = |t: &&PlannedTarget| leftovers(&header, t, KILLED).is_some();
    let killed = status == "unsealed";
    let search = plan.cells.iter().find_map(|cell| cell.load.search());
    let limits = search.into_iter().flat_map(|search| &search.slos);
    let holding = plan.targets.iter().filter(|_| killed).filter(left);
    Ok(Listed {
        path: record.path().to_path_buf(),
        may_hold_leftovers: holding.map(|t| t.name.clone()).collect(),
        limits: limits.map(ToString::to_string).collect(),
        run: header.run,
        study: header.plan.study,
        scale: header.plan.scale.name(),
        started_unix_ms: header.started_unix_ms,
        status,
        changed,
        targets: header.plan.targets.into_iter().map(|t| t.name).collect(),
    })
}

/// The directory of a run given as a path, an id, a unique prefix of an id or name, or `latest`.
pub fn find(records: &Path, wanted: &str) -> Result<PathBuf, ArchiveError> {
    let as_path = Path::new(wanted);
    if as_path.is_dir() {
        return match Directory::of_record(as_path)?.file(HEADER)? {
            Some(_) => Ok(as_path.to_path_buf()),
            None => Err(ArchiveError::NotARecord(as_path.to_path_buf())),
        };
    }
    let mut damaged = Vec::new();
    let mut keep = |name: &OsStr, e| damaged.push((name.to_string_lossy().into_owned(), e));
    let all = list(records, &mut keep)?;
    let name = |l: &Listed| l.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let unknown = || ArchiveError::Unknown {
        wanted: wanted.into(),
        within: records.to_path_buf(),
        known: match &all[..] {
            [] => "none".into(),
            some => named(some.iter().map(|l| l.run.clone())),
        },
    };
    if wanted == "latest" {
        // Names start with the time.
        let newest = all.last().map(name);
        return match damaged.into_iter().find(|(name, _)| Some(name) > newest.as_ref()) {
            Some((_, e)) => Err(e),
            None => all.last().map(|l| l.path.clone()).ok_or_else(unknown),
        };
    }
    let matches: Vec<&Listed> = all
        .iter()
        .filter(|_| !wanted.is_empty())
        .filter(|l| l.run.starts_with(wanted) || name(l).starts_with(wanted))
        .collect();
    match &matches[..] {
        [] => {
            let is_it = |name: &str| {
                let run = name.rsplit('-').next().unwrap_or_default();
                !wanted.is_empty() && (name.starts_with(wanted) || run.starts_with(wanted))
            };
            let found = damaged.into_iter().find(|(name, _)| is_it(name));
            Err(found.map_or_else(unknown, |(_, e)| e))
        }
        [one] => Ok(one.path.clone()),
        several => Err(ArchiveError::Ambiguous {
            wanted: wanted.into(),
            matches: named(several.iter().map(|l| format!("`{}`", name(l)))),
        }),
    }
}

/// Maximum number of runs named in a message.
const NAMED_MAX: usize = 20;

fn named(names: impl ExactSizeIterator<Item = String>) -> String {
    let more = names.len().saturating_sub(NAMED_MAX);
    let text = names.take(NAMED_MAX).collect::<Vec<_>>().join(", ");
    if more > 0 { format!("{text} and {more} more") } else { text }
}

/// Whether another cachedyno is writing the record; false if it is not a record.
pub fn is_in_use(path: &Path) -> bool {
    Directory::open(path).is_ok_and(|record| in_use(&record))
}

pub(crate) fn in_use(record: &Directory) -> bool {
    let lock = record.file(LOCK).ok().flatten();
    lock.is_some_and(|lock| matches!(lock.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

/// Run id of a record's directory; `None` if it is not a record.
pub fn run_of(directory: &Path) -> Option<String> {
    Some(header(&Directory::of_record(directory).ok()?).ok()?.run)
}

pub(crate) fn header(record: &Directory) -> Result<Header, ArchiveError> {
    #[derive(serde::Deserialize)]
    struct Format {
        format: u32,
    }
    let (path, file) = (record.path().to_path_buf(), record.place(HEADER));
    let text = record.read(HEADER)?.ok_or_else(|| ArchiveError::NotARecord(path.clone()))?;
    let Format { format } = parse(&file, 1, &text)?;
    if format > RECORD_FORMAT {
        return Err(ArchiveError::TooNew { path, found: format, known: RECORD_FORMAT });
    }
    let damaged = |problem| ArchiveError::Damaged { path: file.clone(), line: 1, problem };
    numbers::check(std::iter::once(&text[..])).map_err(|(_, problem)| damaged(problem))?;
    let header: Header = parse(&file, 1, &text)?;
    header.plan.check().map_err(damaged)?;
    Ok(header)
}

/// Parses every complete line of a file; empty if the file does not exist.
pub(crate) fn lines<T: DeserializeOwned>(
    record: &Directory,
    name: &str,
) -> Result<Vec<T>, ArchiveError> {
    let (text, path) = (record.read(name)?.unwrap_or_default(), record.place(name));
    let whole = text.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
    let lines = || text[..whole].split_inclusive(|b| *b == b'\n');
    numbers::check(lines()).map_err(|(line, problem)| ArchiveError::Damaged {
        path: path.clone(),
        line,
        problem,
    })?;
    lines().zip(1..).map(|(text, line)| parse(&path, line, text)).collect()
}
