//! The database's file, and how PHP's PDO opens it.

use std::path::Path;
use std::time::Duration;

use ::rusqlite::{Connection, Error, ErrorCode, OpenFlags};
use model::ErrorClass;
use workloads::store::StoreError;

use crate::fault;

/// Name of the file in the run's directory; the log and its index lie beside it.
const FILE: &str = "sessions.sqlite";
/// Name of the table. The file is the run's own, so its table needs no other.
pub(super) const TABLE: &str = "sessions";

/// Opens the database of a directory, which must be there. Statements wait for a lock until the
/// time-out, by the pauses of SQLite's own handler, as PDO's do.
pub(super) fn open(directory: &Path, timeout: Duration) -> Result<Connection, StoreError> {
    open_with(directory, timeout, OpenFlags::empty())
}

/// Makes the database where it is not there yet, with its log written ahead (WAL). The mode is kept
/// in the file.
pub(super) fn create(directory: &Path, timeout: Duration) -> Result<Connection, StoreError> {
    let created = open_with(directory, timeout, OpenFlags::SQLITE_OPEN_CREATE)?;
    let mode: String = created
        .pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0))
        .map_err(|e| error(&e))?;
    if mode != "wal" {
        let message = format!("journal mode `{mode}` (expected wal, which needs shared memory)");
        return Err(StoreError::fatal(ErrorClass::Other, message));
    }
    Ok(created)
}

fn open_with(
    directory: &Path,
    timeout: Duration,
    flags: OpenFlags,
) -> Result<Connection, StoreError> {
    // One thread a connection, so that the library needs no locks; no link is followed.
    let flags = flags
        | OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let opened = Connection::open_with_flags(directory.join(FILE), flags);
    let opened = opened.and_then(|connection| {
        connection.busy_timeout(timeout)?;
        Ok(connection)
    });
    opened.map_err(|e| error(&e))
}

/// An error of the library as one of ours: <https://sqlite.org/rescode.html>.
pub(super) fn error(e: &Error) -> StoreError {
    let class = match e.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => ErrorClass::Lock,
        Some(ErrorCode::DiskFull | ErrorCode::OutOfMemory) => ErrorClass::Full,
        Some(ErrorCode::PermissionDenied | ErrorCode::ReadOnly | ErrorCode::CannotOpen) => {
            ErrorClass::Denied
        }
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => ErrorClass::Protocol,
        Some(ErrorCode::SystemIoFailure) => ErrorClass::Other,
        _ => ErrorClass::Reply,
    };
    StoreError::soft(class, format!("SQLite says `{}`", fault::words(e.to_string().as_bytes())))
}
