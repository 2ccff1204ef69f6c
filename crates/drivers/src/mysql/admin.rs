//! Administration of a MySQL or MariaDB server around a run.

use std::os::fd::AsRawFd as _;
use std::path::PathBuf;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use ::mysql::prelude::{FromRow, Queryable};
use ::mysql::{Conn, Row, Value};
use model::{Backend, Endpoint, ErrorClass, Failure, Layout, StoreCounters};
use nix::sys::socket;
use workloads::store::StoreError;

use super::magento;
use super::server::Server;
use crate::rows::table::{TABLE, schema as schema_of_rows};
use crate::tables::{Tables, id_column, identifier};
use crate::{Admin, CleanupDeadline, Facts, SessionOptions, admin, fault};

/// Longest value of the types TEXT and BLOB; longer ones need the medium types.
const SHORT_BYTES_MAX: usize = 65_535;

/// Most bytes of a result's rows; variables and table names take a few hundred KiB.
const REPLY_BYTES_MAX: usize = 64 << 20;

/// Queries the status variables that [`counters`] reads.
const STATUS: &str = "SHOW GLOBAL STATUS WHERE Variable_name IN ('Bytes_received', 'Bytes_sent', \
     'Connection_errors_max_connections', 'Innodb_buffer_pool_bytes_data', \
     'Innodb_buffer_pool_pages_total', 'Innodb_page_size', 'Questions', 'Threads_connected')";

struct MysqlAdmin {
    endpoint: Endpoint,
    server: Server,
    conn: Conn,
    /// Tables that we created.
    created: Vec<String>,
}

pub(crate) fn open_admin(
    endpoint: &Endpoint,
    timeout: Duration,
) -> Result<Box<dyn Admin>, StoreError> {
    let (server, conn) = connect(Server::new(endpoint, timeout)?)?;
    Ok(Box::new(MysqlAdmin { endpoint: endpoint.clone(), server, conn, created: Vec::new() }))
}

/// Connects within the timeout. The library only limits each read of the handshake, so it runs on a
/// separate thread, which is abandoned when it is late.
fn connect(server: Server) -> Result<(Server, Conn), StoreError> {
    let late =
        fault::connecting(&std::io::ErrorKind::TimedOut.into(), &server.address, server.timeout);
    let timeout = server.timeout;
    let (answer, answered) = mpsc::channel();
    thread::spawn(move || {
        let connected = server.connect();
        // Nobody is waiting for a late result.
        let _ = answer.send(connected.map(|conn| (server, conn)));
    });
    answered.recv_timeout(timeout).map_err(|_| late)?
}

/// The statements that create a layout's table.
///
/// Plain: the 2019 script fills three columns by position: `name`, `value` and one that accepts
/// NULL; its schema was not published. In ours, the name is the primary key (otherwise every read
/// would scan the table), ASCII and compared bytewise; the value is TEXT, or MEDIUMTEXT if needed;
/// the third column is a timestamp.
///
/// Page: Symfony's `PdoSessionHandler::createTable` 7.1; with MEDIUMBLOB, as in Shopware, if the
/// values need it.
pub(super) fn schema(layout: Layout, table: &str, value_bytes: usize) -> Vec<String> {
    let medium = if value_bytes > SHORT_BYTES_MAX { "MEDIUM" } else { "" };
    match layout {
        Layout::Plain => vec![format!(
            "CREATE TABLE {table} (\
             name VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY, \
             value {medium}TEXT CHARACTER SET utf8mb4 NOT NULL, \
             created TIMESTAMP NULL) ENGINE = InnoDB"
        )],
        Layout::Page => vec![
            format!(
                "CREATE TABLE {table} (\
                 sess_id VARBINARY(128) NOT NULL PRIMARY KEY, \
                 sess_data {medium}BLOB NOT NULL, \
                 sess_lifetime INTEGER UNSIGNED NOT NULL, \
                 sess_time INTEGER UNSIGNED NOT NULL) COLLATE utf8mb4_bin, ENGINE = InnoDB"
            ),
            format!("CREATE INDEX sess_lifetime_idx ON {table} (sess_lifetime)"),
        ],
    }
}

impl MysqlAdmin {
    /// Queries the server; its reply must end within the timeout. The library only limits each
    /// read, so the connection is shut down when it is late.
    fn ask<T>(
        &mut self,
        question: impl FnOnce(&mut Conn) -> Result<T, ::mysql::Error>,
    ) -> Result<T, Failure> {
        let (fd, timeout) = (self.conn.as_raw_fd(), self.server.timeout);
        let (answer, is_late) = thread::scope(|scope| {
            let (done, answered) = mpsc::channel::<()>();
            let watch = scope.spawn(move || {
                let is_late = answered.recv_timeout(timeout) == Err(RecvTimeoutError::Timeout);
                // The connection outlives this thread, so its socket's descriptor stays valid.
                is_late && socket::shutdown(fd, socket::Shutdown::Both).is_ok()
            });
            let answer = question(&mut self.conn);
            drop(done);
            (answer, watch.join().unwrap_or_default())
        });
        answer.map_err(|e| {
            if is_late {
                let message = fault::no_answer(timeout);
                return Failure { class: ErrorClass::Timeout, message };
            }
            self.server.error(&e).into()
        })
    }

    /// The rows of a result, which must end within [`REPLY_BYTES_MAX`]. After a longer one the
    /// connection is unusable.
    fn rows<T: FromRow>(&mut self, statement: &str) -> Result<Vec<T>, Failure> {
        let rows = self.ask(|conn| {
            let fd = conn.as_raw_fd();
            let (mut rows, mut bytes) = (Vec::new(), 0_usize);
            for row in conn.query_iter(statement)? {
                let row = row?;
                let values = (0..row.len()).filter_map(|at| row.as_ref(at));
                bytes += size_of::<Row>() + values.map(|v| v.bin_len() as usize).sum::<usize>();
                if bytes > REPLY_BYTES_MAX {
                    // The library would otherwise read forever.
                    let _ = socket::shutdown(fd, socket::Shutdown::Both);
                    return Ok(None);
                }
                rows.push(T::from_row_opt(row)?);
            }
            Ok(Some(rows))
        })?;
        rows.ok_or_else(|| {
            let message = "a reply is too long (expected that of a MySQL server)".into();
            Failure { class: ErrorClass::Protocol, message }
        })
    }
}

impl Tables for MysqlAdmin {
    fn run(&mut self, statement: &str) -> Result<(), Failure> {
        self.ask(|conn| conn.query_drop(statement))
    }

    fn names(&mut self, prefix: &str) -> Result<Vec<String>, Failure> {
        self.rows(&format!(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE() \
             AND LEFT(table_name, {}) = '{prefix}'",
            prefix.len()
        ))
    }

    fn created(&mut self) -> &mut Vec<String> {
        &mut self.created
    }
}

/// The counters from `SHOW GLOBAL STATUS`, by name. Source: MySQL's manual, "Server Status
/// Variables". Data is what InnoDB keeps in its buffer pool; such a server does not report keys,
/// hits and misses.
fn counters(status: &[(String, String)]) -> StoreCounters {
    let value = |name: &str| {
        let found = status.iter().find(|(own, _)| own.eq_ignore_ascii_case(name));
        found.and_then(|(_, value)| value.parse::<u64>().ok())
    };
    let pages = value("Innodb_buffer_pool_pages_total").zip(value("Innodb_page_size"));
    StoreCounters {
        used_bytes: value("Innodb_buffer_pool_bytes_data"),
        limit_bytes: pages.map(|(pages, bytes)| pages.saturating_mul(bytes)),
        connections: value("Threads_connected"),
        refused: value("Connection_errors_max_connections"),
        commands: value("Questions"),
        received_bytes: value("Bytes_received"),
        sent_bytes: value("Bytes_sent"),
        ..StoreCounters::default()
    }
}

/// Settings that contain passwords, or that can contain statements and addresses with passwords.
fn may_be_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["pass", "secret", "private_key", "sst_auth", "provider_options", "init_connect", "init_slave"]
        .iter()
        .chain(&["init_replica", "cluster_address"])
        .any(|part| name.contains(part))
}

/// Product and version: `MariaDB 10.11.19` from `10.11.19-MariaDB-0+deb12u1` and the server's
/// version comment.
fn version(version: &str, comment: &str) -> String {
    // Older MariaDB servers prepend 5.5.5- for compatibility with old replicas.
    let version = version.strip_prefix("5.5.5-").unwrap_or(version);
    let product = match (version.contains("MariaDB"), comment.contains("Percona")) {
        (true, _) => "MariaDB",
        (_, true) => "Percona Server",
        _ => "MySQL",
    };
    format!("{product} {}", version.split('-').next().unwrap_or(version))
}

impl Admin for MysqlAdmin {
    fn facts(&mut self) -> Result<Facts, Failure> {
        let reported: Option<(String, String)> =
            self.ask(|conn| conn.query_first("SELECT VERSION(), @@version_comment"))?;
        let (number, comment) = reported.unwrap_or_default();
        let empty = Some(self.names("")?.is_empty());
        // Values can be bytes without a valid encoding.
        let rows: Vec<(String, Value)> = self.rows("SHOW GLOBAL VARIABLES")?;
        let text = |value| match value {
            Value::Bytes(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            _ => String::new(),
        };
        let reported = rows.into_iter().filter(|(name, _)| !may_be_secret(name));
        let mut configuration: Vec<_> = reported.map(|(name, value)| (name, text(value))).collect();
        configuration.sort();
        let version = admin::versions(vec![version(&number, &comment)]);
        Ok(Facts { version, empty, configuration })
    }

    fn prepare(
        &mut self,
        layout: Layout,
        name: &str,
        value_bytes: usize,
    ) -> Result<PathBuf, Failure> {
        let table = identifier(name)?;
        self.create(table, &schema(layout, table, value_bytes))?;
        Ok(PathBuf::new())
    }

    fn prepare_cache(&mut self, backend: Backend) -> Result<(), Failure> {
        if backend != Backend::MagentoMysql {
            return Ok(());
        }
        for table in magento::TABLES {
            self.expect_absent(table)?;
        }
        for (table, statement) in magento::TABLES.into_iter().zip(magento::SCHEMA) {
            self.create(table, &[statement.into()])?;
        }
        Ok(())
    }

    fn prepare_rows(&mut self) -> Result<(), Failure> {
        let schema = schema_of_rows("BIGINT UNSIGNED", " ENGINE = InnoDB, CHARACTER SET utf8mb4");
        self.create(TABLE, &[schema])
    }

    /// Size of the table's file. Other statistics of InnoDB are estimates from some time ago.
    fn table_bytes(&mut self, table: &str) -> Result<Option<u64>, Failure> {
        let table = identifier(table)?;
        // MariaDB's name, and MySQL's.
        let view = "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = \
                    'information_schema' AND TABLE_NAME IN ('INNODB_SYS_TABLESPACES', \
                    'INNODB_TABLESPACES')";
        let views: Vec<String> = self.rows(view)?;
        let Some(view) = views.first() else { return Ok(None) };
        let size = format!(
            "SELECT FILE_SIZE FROM information_schema.{view} WHERE NAME = CONCAT(DATABASE(), \
             '/{table}')"
        );
        match self.rows::<u64>(&size) {
            Ok(sizes) => Ok(sizes.first().copied()),
            Err(e) if e.class == ErrorClass::Denied => Ok(None),
            Err(e) => Err(e),
        }
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
        let statement = format!("DELETE FROM {table} WHERE {column} = ?");
        let removed = self.ask(|conn| conn.exec_drop(statement, (id,)));
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
        let status: Vec<(String, String)> = self.rows(STATUS)?;
        let reported = counters(&status);
        Ok(Some(reported).filter(|reported| *reported != StoreCounters::default()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_include_the_product() {
        assert_eq!(version("10.11.19-MariaDB-0+deb12u1", "Debian 12"), "MariaDB 10.11.19");
        assert_eq!(version("5.5.5-10.4.1-MariaDB", ""), "MariaDB 10.4.1");
        assert_eq!(version("8.4.0", "MySQL Community Server - GPL"), "MySQL 8.4.0");
        assert_eq!(version("8.0.36-28", "Percona Server (GPL)"), "Percona Server 8.0.36");
    }

    #[test]
    fn counters_are_parsed_from_the_status() {
        let status = [
            ("Bytes_sent", "9"),
            ("Innodb_buffer_pool_pages_total", "2048"),
            ("Innodb_page_size", "16384"),
            ("Questions", "7"),
            ("Ssl_cipher", ""),
        ];
        let status = status.map(|(name, value)| (name.to_string(), value.to_string()));
        let expected = StoreCounters {
            limit_bytes: Some(32 << 20),
            commands: Some(7),
            sent_bytes: Some(9),
            ..StoreCounters::default()
        };
        assert_eq!(counters(&status), expected);
    }

    #[test]
    fn secrets_are_recognized_by_name() {
        for name in ["report_password", "wsrep_sst_auth", "init_connect"] {
            assert!(may_be_secret(name), "{name}");
        }
        assert!(!may_be_secret("innodb_buffer_pool_size"));
    }

    #[test]
    fn long_values_get_a_medium_column() {
        assert!(schema(Layout::Plain, "t", 1_500)[0].contains("value TEXT"));
        assert!(schema(Layout::Plain, "t", 65_536)[0].contains("value MEDIUMTEXT"));
        assert!(schema(Layout::Page, "t", 65_535)[0].contains("sess_data BLOB"));
        assert!(schema(Layout::Page, "t", 65_536)[0].contains("sess_data MEDIUMBLOB"));
    }
}
