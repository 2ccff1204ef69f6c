//! Reading records: one whole, or the list of all.

use model::leftovers::leftovers;
use model::record::RECORD_FORMAT;
use model::{Header, PlannedTarget, Seal, SealStatus, Trial};
use serde::de::DeserializeOwned;
use std::fs::{self, File, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::{ArchiveError, HEADER, LOCK, SEAL, TARGETS, TRIALS, TargetLine};

/// A record as read.
#[derive(Clone, Debug)]
pub struct Record {
    /// Its directory.
    pub path: PathBuf,
    /// Plan, conditions, tool and command.
    pub header: Header,
    /// What each target told last; one line a target.
    pub targets: Vec<TargetLine>,
    /// Trials in the order in which they ended.
    pub trials: Vec<Trial>,
    /// How it ended; `None` when it was killed.
    pub seal: Option<Seal>,
}

/// One record in a list.
#[derive(Clone, Debug)]
pub struct Listed {
    /// Its directory.
    pub path: PathBuf,
    /// Id of the run.
    pub run: String,
    /// Name of the study.
    pub study: String,
    /// Scale by name.
    pub scale: &'static str,
    /// Start, milliseconds since 1970-01-01 UTC.
    pub started_unix_ms: u64,
    /// `complete`, `interrupted` or `unsealed`.
    pub status: &'static str,
    /// Names of the planned targets.
    pub targets: Vec<String>,
    /// Of a search the limits as they are typed; empty for other runs.
    pub limits: Vec<String>,
    /// Of a run that was killed: existing stores in which it may have left data, by name.
    pub may_hold_leftovers: Vec<String>,
}

impl Record {
    /// Reads a record.
    pub fn read(path: &Path) -> Result<Self, ArchiveError> {
        let header = header(path)?;
        let seal = match fs::read(path.join(SEAL)) {
            Ok(text) => Some(parse(&path.join(SEAL), 1, &text)?),
            Err(e) if e.kind() == ErrorKind::NotFound => None,
            Err(e) => return Err(unreadable(&path.join(SEAL), e)),
        };
        let mut targets: Vec<TargetLine> = Vec::new();
        for line in lines::<TargetLine>(&path.join(TARGETS))? {
            targets.retain(|t| t.target != line.target);
            targets.push(line);
        }
        let trials = lines(&path.join(TRIALS))?;
        Ok(Self { path: path.to_path_buf(), header, targets, trials, seal })
    }
}

/// All records below `records`, oldest first; directories that are no records are passed over.
pub fn list(records: &Path) -> Result<Vec<Listed>, ArchiveError> {
    let entries = match fs::read_dir(records) {
        Ok(entries) => entries,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(unreadable(records, e)),
    };
    let mut listed: Vec<Listed> = entries
        .filter_map(Result::ok)
        .filter_map(|entry| {
            let path = entry.path();
            // A damaged or newer record must not hide the others; reading it tells what is wrong.
            let header = header(&path).ok()?;
            let seal = fs::read(path.join(SEAL)).ok();
            let status = match seal.and_then(|s| serde_json::from_slice::<Seal>(&s).ok()) {
                Some(Seal { status: SealStatus::Complete, .. }) => "complete",
                Some(Seal { status: SealStatus::Interrupted, .. }) => "interrupted",
                None => "unsealed",
            };
            let Header { plan, run, .. } = &header;
            let left = |t: &&PlannedTarget| leftovers(plan, run, t).is_some();
            let killed = status == "unsealed" && !in_use(&path);
            let limits = plan.search.iter().flat_map(|search| &search.slos);
            let holding = plan.targets.iter().filter(|_| killed).filter(left);
            Some(Listed {
                path,
                may_hold_leftovers: holding.map(|t| t.name.clone()).collect(),
                limits: limits.map(ToString::to_string).collect(),
                run: header.run,
                study: header.plan.study,
                scale: header.plan.scale.name(),
                started_unix_ms: header.started_unix_ms,
                status,
                targets: header.plan.targets.into_iter().map(|t| t.name).collect(),
            })
        })
        .collect();
    listed.sort_by(|a, b| (a.started_unix_ms, &a.run).cmp(&(b.started_unix_ms, &b.run)));
    Ok(listed)
}

/// The directory of a run given as a path, an id, a unique prefix of an id or name, or `latest`.
pub fn find(records: &Path, wanted: &str) -> Result<PathBuf, ArchiveError> {
    let as_path = Path::new(wanted);
    if as_path.join(HEADER).is_file() {
        return Ok(as_path.to_path_buf());
    }
    if as_path.is_dir() {
        return Err(ArchiveError::NotARecord(as_path.to_path_buf()));
    }
    let all = list(records)?;
    let unknown = || ArchiveError::Unknown {
        wanted: wanted.into(),
        within: records.to_path_buf(),
        known: match &all[..] {
            [] => "none".into(),
            some => some.iter().map(|l| l.run.as_str()).collect::<Vec<_>>().join(", "),
        },
    };
    if wanted == "latest" {
        return all.last().map(|l| l.path.clone()).ok_or_else(unknown);
    }
    let name = |l: &Listed| l.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let matches: Vec<&Listed> = all
        .iter()
        .filter(|_| !wanted.is_empty())
        .filter(|l| l.run.starts_with(wanted) || name(l).starts_with(wanted))
        .collect();
    match &matches[..] {
        [] => Err(unknown()),
        [one] => Ok(one.path.clone()),
        several => Err(ArchiveError::Ambiguous {
            wanted: wanted.into(),
            matches: several
                .iter()
                .map(|l| format!("`{}`", name(l)))
                .collect::<Vec<_>>()
                .join(", "),
        }),
    }
}

/// Whether another cachedyno writes the record at this moment.
pub fn in_use(path: &Path) -> bool {
    let lock = File::open(path.join(LOCK));
    lock.is_ok_and(|lock| matches!(lock.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

/// Id of the run whose record a directory is; `None` where it is no record.
pub fn run_of(directory: &Path) -> Option<String> {
    Some(header(directory).ok()?.run)
}

pub(crate) fn header(path: &Path) -> Result<Header, ArchiveError> {
    #[derive(serde::Deserialize)]
    struct Format {
        format: u32,
    }
    let file = path.join(HEADER);
    let text = fs::read(&file).map_err(|e| match e.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => {
            ArchiveError::NotARecord(path.to_path_buf())
        }
        _ => unreadable(&file, e),
    })?;
    let Format { format } = parse(&file, 1, &text)?;
    if format > RECORD_FORMAT {
        let path = path.to_path_buf();
        return Err(ArchiveError::TooNew { path, found: format, known: RECORD_FORMAT });
    }
    parse(&file, 1, &text)
}

/// Every whole line of a file; a file that is not there has none.
fn lines<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>, ArchiveError> {
    let text = match fs::read(path) {
        Ok(text) => text,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(unreadable(path, e)),
    };
    let whole = text.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
    text[..whole]
        .split_inclusive(|b| *b == b'\n')
        .enumerate()
        .map(|(i, line)| parse(path, i + 1, line))
        .collect()
}

pub(crate) fn parse<T: DeserializeOwned>(
    path: &Path,
    line: usize,
    text: &[u8],
) -> Result<T, ArchiveError> {
    serde_json::from_slice(text).map_err(|e| ArchiveError::Damaged {
        path: path.to_path_buf(),
        line,
        problem: e.to_string(),
    })
}

pub(crate) fn unreadable(path: &Path, source: std::io::Error) -> ArchiveError {
    ArchiveError::Io { doing: "read", path: path.to_path_buf(), source }
}
