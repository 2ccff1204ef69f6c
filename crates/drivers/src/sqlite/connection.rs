//! The database file, opened as by PHP's PDO.

use std::path::Path;
use std::time::Duration;

use ::rusqlite::{Connection, Error, ErrorCode, OpenFlags};
use model::ErrorClass;
use workloads::store::StoreError;

use crate::fault;

/// Name of the file in the run's directory; the log and its index are next to it.
const FILE: &str = "sessions.sqlite";
/// Name of the table. The file belongs to the run, so the name is fixed.
pub(super) const TABLE: &str = "sessions";

/// Opens the existing database in a directory. Statements wait for a lock until the timeout, with
/// the pauses of SQLite's own handler, as in PDO.
pub(super) fn open(directory: &Path, timeout: Duration) -> Result<Connection, StoreError> {
    open_with(directory, timeout, OpenFlags::empty())
}

/// Creates the database if it does not exist, with a write-ahead log (WAL). The mode is stored in
/// the file.
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
    // Each connection stays on one thread, so the library needs no mutexes; links are not followed.
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

/// Converts an error of the library: <https://sqlite.org/rescode.html>.
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
    StoreError::soft(
        class,
        format!("SQLite reported `{}`", fault::printable(e.to_string().as_bytes())),
    )
}
