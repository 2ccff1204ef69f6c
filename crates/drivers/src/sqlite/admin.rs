//! Administration of the directory around a run, as for files, with a database in it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use ::rusqlite::Connection;
use model::{Endpoint, ErrorClass, Failure, Layout};
use workloads::store::StoreError;

use super::connection::{TABLE, create, error, open};
use crate::tables::id_column;
use crate::{Admin, CleanupDeadline, Facts, SessionOptions, admin, files};

/// Pragmas that a connection reports, in addition to the journal mode.
const PRAGMAS: [&str; 4] = ["cache_size", "page_size", "synchronous", "wal_autocheckpoint"];

struct SqliteAdmin {
    endpoint: Endpoint,
    files: Box<dyn Admin>,
    timeout: Duration,
}

pub(crate) fn open_admin(
    directory: &Path,
    timeout: Duration,
) -> Result<Box<dyn Admin>, StoreError> {
    let endpoint = Endpoint::Sqlite { directory: directory.into() };
    Ok(Box::new(SqliteAdmin { endpoint, files: files::open_admin(directory)?, timeout }))
}

/// The statements that create a layout's table.
///
/// Plain: as on MySQL; the 2019 script did not support SQLite. Page: Symfony's
/// `PdoSessionHandler::createTable` 7.1.
pub(super) fn schema(layout: Layout) -> String {
    match layout {
        Layout::Plain => format!(
            "CREATE TABLE {TABLE} (name TEXT NOT NULL PRIMARY KEY, value TEXT NOT NULL, \
             created TEXT NULL)"
        ),
        Layout::Page => format!(
            "CREATE TABLE {TABLE} (sess_id TEXT NOT NULL PRIMARY KEY, sess_data BLOB NOT NULL, \
             sess_lifetime INTEGER NOT NULL, sess_time INTEGER NOT NULL); \
             CREATE INDEX sess_lifetime_idx ON {TABLE} (sess_lifetime)"
        ),
    }
}

/// Settings of a new connection, by the names of its pragmas.
fn configuration() -> Result<Vec<(String, String)>, StoreError> {
    let connection = Connection::open_in_memory().map_err(|e| error(&e))?;
    let mut settings = vec![("journal_mode".to_string(), "wal".to_string())];
    for name in PRAGMAS {
        let value: i64 =
            connection.pragma_query_value(None, name, |row| row.get(0)).map_err(|e| error(&e))?;
        let value = match (name, value) {
            ("synchronous", 0) => "off".into(),
            ("synchronous", 1) => "normal".into(),
            ("synchronous", 2) => "full".into(),
            _ => value.to_string(),
        };
        settings.push((name.to_string(), value));
    }
    Ok(settings)
}

impl Admin for SqliteAdmin {
    fn facts(&mut self) -> Result<Facts, Failure> {
        let of_files = self.files.facts()?;
        let place = of_files.version.strip_prefix("files").unwrap_or_default();
        let version = format!("SQLite {}{place}", ::rusqlite::version());
        let mut configuration = configuration()?;
        // The `fsync` entry of the file driver does not apply.
        configuration
            .extend(of_files.configuration.into_iter().filter(|(name, _)| name != "fsync"));
        configuration.sort();
        Ok(Facts { version, empty: of_files.empty, configuration })
    }

    fn prepare(
        &mut self,
        layout: Layout,
        name: &str,
        value_bytes: usize,
    ) -> Result<PathBuf, Failure> {
        let directory = self.files.prepare(layout, name, value_bytes)?;
        let connection = create(&directory, self.timeout)?;
        connection.execute_batch(&schema(layout)).map_err(|e| error(&e))?;
        Ok(directory)
    }

    fn verify(
        &mut self,
        layout: Layout,
        options: &SessionOptions,
        id: &str,
    ) -> Result<(), Failure> {
        let result = admin::round_trip(&self.endpoint, layout, options, id);
        let column = id_column(layout);
        let connection = open(&options.directory, options.timeout)?;
        let removed = connection.execute(&format!("DELETE FROM {TABLE} WHERE {column} = ?"), [id]);
        let removed = removed.map_err(|e| Failure::from(error(&e)))?;
        match (result, removed) {
            (Ok(()), 1) => Ok(()),
            (Ok(()), _) => Err(Failure {
                class: ErrorClass::Protocol,
                message: format!("session `{id}` was read but could not be removed"),
            }),
            (failed, _) => failed,
        }
    }

    fn clean(
        &mut self,
        layout: Layout,
        prefix: &str,
        patience: &mut CleanupDeadline<'_>,
    ) -> Result<(), Failure> {
        self.files.clean(layout, prefix, patience)
    }
}
