//! Administration of a PostgreSQL server around a run.

use std::path::PathBuf;
use std::time::Duration;

use model::{Endpoint, Failure, Layout, StoreCounters};
use workloads::store::StoreError;

use super::connection::{Connection, TEXT};
use crate::rows::table::{TABLE, schema as schema_of_rows};
use crate::tables::{Tables, id_column, identifier};
use crate::{Admin, CleanupDeadline, Facts, SessionOptions, admin};

struct PostgresAdmin {
    endpoint: Endpoint,
    connection: Connection,
    /// Tables that we created.
    created: Vec<String>,
}

pub(crate) fn open_admin(
    endpoint: &Endpoint,
    timeout: Duration,
) -> Result<Box<dyn Admin>, StoreError> {
    let connection = Connection::open(endpoint, timeout)?;
    Ok(Box::new(PostgresAdmin { endpoint: endpoint.clone(), connection, created: Vec::new() }))
}

/// The statements that create a layout's table.
///
/// Plain: as on MySQL; the 2019 script did not support PostgreSQL. Page: Symfony's
/// `PdoSessionHandler::createTable` 7.1.
pub(super) fn schema(layout: Layout, table: &str) -> Vec<String> {
    match layout {
        Layout::Plain => vec![format!(
            "CREATE TABLE {table} (name VARCHAR(128) COLLATE \"C\" NOT NULL PRIMARY KEY, \
             value TEXT NOT NULL, created TIMESTAMP NULL)"
        )],
        Layout::Page => vec![
            format!(
                "CREATE TABLE {table} (sess_id VARCHAR(128) NOT NULL PRIMARY KEY, \
                 sess_data BYTEA NOT NULL, sess_lifetime INTEGER NOT NULL, \
                 sess_time INTEGER NOT NULL)"
            ),
            // The server derives the index name from the table, so that several tables can have
            // one.
            format!("CREATE INDEX ON {table} (sess_lifetime)"),
        ],
    }
}

impl PostgresAdmin {
    fn rows(&mut self, statement: &str) -> Result<Vec<Vec<String>>, Failure> {
        Ok(self.connection.query(statement).map_err(StoreError::from)?.texts())
    }

    fn number(&mut self, statement: &str) -> Result<Option<u64>, Failure> {
        let rows = self.rows(statement)?;
        Ok(rows.first().and_then(|row| row.first()).and_then(|text| text.parse().ok()))
    }
}

impl Tables for PostgresAdmin {
    fn run(&mut self, statement: &str) -> Result<(), Failure> {
        self.rows(statement).map(drop)
    }

    fn names(&mut self, prefix: &str) -> Result<Vec<String>, Failure> {
        let rows = self.rows(&format!(
            "SELECT tablename FROM pg_catalog.pg_tables WHERE schemaname = current_schema() \
             AND left(tablename, {}) = '{prefix}'",
            prefix.len()
        ))?;
        Ok(rows.into_iter().flatten().collect())
    }

    fn created(&mut self) -> &mut Vec<String> {
        &mut self.created
    }
}

/// Settings that can contain passwords: of archives, other servers or keys.
fn may_be_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["pass", "secret", "conninfo", "command", "key"].iter().any(|part| name.contains(part))
}

/// Product and version: `PostgreSQL 15.18` from `15.18 (Debian 15.18-0+deb12u1)`.
fn version(reported: &str) -> String {
    format!("PostgreSQL {}", reported.split(' ').next().unwrap_or(reported))
}

impl Admin for PostgresAdmin {
    fn facts(&mut self) -> Result<Facts, Failure> {
        // Any relation that can contain foreign data, in any user schema.
        let others = self.number(
            "SELECT count(*) FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n \
             ON n.oid = c.relnamespace WHERE c.relkind IN ('r', 'p', 'm', 'f', 'S', 'v') \
             AND n.nspname <> 'information_schema' AND left(n.nspname, 3) <> 'pg_'",
        )?;
        let pairs = self.rows("SHOW ALL")?.into_iter().filter_map(|row| match &row[..] {
            [name, value, ..] => Some((name.clone(), value.clone())),
            _ => None,
        });
        let mut configuration: Vec<_> = pairs.filter(|(name, _)| !may_be_secret(name)).collect();
        configuration.sort();
        let reported = configuration.iter().find(|(name, _)| name == "server_version");
        let version = version(reported.map_or("", |(_, value)| value));
        let version = admin::versions(vec![version]);
        Ok(Facts { version, empty: others.map(|count| count == 0), configuration })
    }

    fn prepare(&mut self, layout: Layout, name: &str, _: usize) -> Result<PathBuf, Failure> {
        let table = identifier(name)?;
        self.create(table, &schema(layout, table))?;
        Ok(PathBuf::new())
    }

    fn prepare_rows(&mut self) -> Result<(), Failure> {
        self.create(TABLE, &[schema_of_rows("BIGINT", "")])
    }

    fn table_bytes(&mut self, table: &str) -> Result<Option<u64>, Failure> {
        let table = identifier(table)?;
        self.number(&format!("SELECT pg_total_relation_size('{table}')"))
    }

    fn verify(
        &mut self,
        layout: Layout,
        options: &SessionOptions,
        id: &str,
    ) -> Result<(), Failure> {
        let table = identifier(&options.table)?;
        let result = admin::round_trip(&self.endpoint, layout, options, id);
        let column = id_column(layout);
        let mut remove = || {
            self.connection.prepare("", &format!("DELETE FROM {table} WHERE {column} = $1"))?;
            self.connection.execute("", &[(TEXT, id.as_bytes())])
        };
        let removed = remove().map(drop).map_err(|refusal| StoreError::from(refusal).into());
        result.and(removed)
    }

    fn clean(
        &mut self,
        _: Layout,
        prefix: &str,
        patience: &mut CleanupDeadline<'_>,
    ) -> Result<(), Failure> {
        self.drop_all(prefix, patience)
    }

    fn counters(&mut self) -> Result<Option<StoreCounters>, Failure> {
        let connections = self.number(
            "SELECT count(*) FROM pg_catalog.pg_stat_activity \
             WHERE backend_type = 'client backend'",
        )?;
        Ok(connections
            .map(|count| StoreCounters { connections: Some(count), ..StoreCounters::default() }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_include_the_product() {
        assert_eq!(version("15.18 (Debian 15.18-0+deb12u1)"), "PostgreSQL 15.18");
        assert_eq!(version("17beta1"), "PostgreSQL 17beta1");
    }

    #[test]
    fn secrets_are_recognized_by_name() {
        for name in ["primary_conninfo", "archive_command", "ssl_key_file", "ssl_passphrase"] {
            assert!(may_be_secret(name), "{name}");
        }
        assert!(!may_be_secret("shared_buffers"));
    }
}
