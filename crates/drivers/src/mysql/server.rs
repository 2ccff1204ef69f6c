//! A server and its connection options.

use std::io;
use std::time::Duration;

use ::mysql::consts::CapabilityFlags;
use ::mysql::error::DriverError;
use ::mysql::{Conn, Error, MySqlError, Opts, OptsBuilder};
use model::{Database, Endpoint, ErrorClass, NetAddress};
use workloads::store::StoreError;

use crate::fault;

/// Longest packet to send or accept. Querying the server's own limit would take one more statement
/// per connection.
const PACKET_BYTES_MAX: usize = 64 << 20;

/// A server and its connection options.
pub(super) struct Server {
    options: Opts,
    pub(super) address: String,
    pub(super) timeout: Duration,
}

impl Server {
    pub(super) fn new(endpoint: &Endpoint, timeout: Duration) -> Result<Self, StoreError> {
        Self::with_statements(endpoint, timeout, Vec::new())
    }

    /// A server whose connections first run `statements`.
    pub(super) fn with_statements(
        endpoint: &Endpoint,
        timeout: Duration,
        statements: Vec<String>,
    ) -> Result<Self, StoreError> {
        let Endpoint::Mysql(Database { address, user, password, name }) = endpoint else {
            return Err(StoreError::fatal(ErrorClass::Other, "not a MySQL endpoint"));
        };
        let builder = OptsBuilder::new()
            .user(Some(user.as_str()))
            .pass(password.as_ref().map(|p| p.reveal().to_string()))
            .db_name(Some(name.as_str()))
            // Use TCP when TCP was requested, even on loopback.
            .prefer_socket(false)
            .tcp_nodelay(true)
            .max_allowed_packet(Some(PACKET_BYTES_MAX))
            .tcp_connect_timeout(Some(timeout))
            .read_timeout(Some(timeout))
            .write_timeout(Some(timeout))
            // An unchanged row counts as found.
            .additional_capabilities(CapabilityFlags::CLIENT_FOUND_ROWS)
            .init(statements);
        let builder = match address {
            NetAddress::Tcp(host, port) => {
                builder.ip_or_hostname(Some(host.as_str())).tcp_port(*port)
            }
            NetAddress::Unix(path) => {
                let Some(path) = path.to_str() else {
                    let message = format!("socket path `{}` is not UTF-8", path.display());
                    return Err(StoreError::fatal(ErrorClass::Other, message));
                };
                builder.socket(Some(path))
            }
        };
        Ok(Self { options: builder.into(), address: address.to_string(), timeout })
    }

    pub(super) fn connect(&self) -> Result<Conn, StoreError> {
        Conn::new(self.options.clone()).map_err(|e| match e {
            Error::DriverError(DriverError::ConnectTimeout) => {
                fault::connecting(&io::ErrorKind::TimedOut.into(), &self.address, self.timeout)
            }
            Error::DriverError(DriverError::CouldNotConnect(Some((_, _, kind)))) => {
                fault::connecting(&kind.into(), &self.address, self.timeout)
            }
            other => self.error(&other),
        })
    }

    /// Converts an error of the library.
    pub(super) fn error(&self, e: &Error) -> StoreError {
        let under = match e {
            Error::MySqlError(e) => return reply(e),
            Error::IoError(e) => Some(e),
            Error::CodecError(e) => {
                std::error::Error::source(e).and_then(|under| under.downcast_ref::<io::Error>())
            }
            _ => None,
        };
        if let Some(e) = under {
            return fault::connection(e, self.timeout);
        }
        let message = fault::printable(e.to_string().as_bytes()).to_lowercase();
        StoreError::fatal(ErrorClass::Protocol, message)
    }
}

/// Converts an error of the server by its code, as listed in the server errors of MySQL
/// (<https://dev.mysql.com/doc/mysql-errors/8.4/en/server-error-reference.html>) and MariaDB
/// (<https://mariadb.com/kb/en/mariadb-error-code-reference/>).
fn reply(e: &MySqlError) -> StoreError {
    let text = fault::printable(e.message.as_bytes());
    let class = match e.code {
        1045 | 1698 => {
            let message = format!(
                "the server rejected the user or the password (`{}`; expected those of the \
                 target's URL)",
                e.code
            );
            return StoreError::fatal(ErrorClass::Denied, message);
        }
        1044 | 1130 | 1142 | 1143 | 1227 | 1370 => ErrorClass::Denied,
        1040 | 1129 | 1203 | 1226 => ErrorClass::Refused,
        1021 | 1114 => ErrorClass::Full,
        1026 | 1030 if text.contains(" 28 ") || text.contains("No space left") => ErrorClass::Full,
        1205 | 1213 => ErrorClass::Lock,
        1969 | 3024 => ErrorClass::Timeout,
        1053 | 1079 | 1927 => {
            return StoreError::fatal(
                ErrorClass::Closed,
                format!("the server shut down: `{text}`"),
            );
        }
        _ => ErrorClass::Reply,
    };
    StoreError::soft(class, format!("the server answered `{} {text}`", e.code))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(code: u16, message: &str) -> (ErrorClass, bool) {
        let e = reply(&MySqlError { state: "HY000".into(), message: message.into(), code });
        (e.class, e.fatal)
    }

    #[test]
    fn errors_have_the_right_class() {
        assert_eq!(class(1045, "Access denied for user"), (ErrorClass::Denied, true));
        assert_eq!(class(1040, "Too many connections"), (ErrorClass::Refused, false));
        assert_eq!(class(1114, "The table 't' is full"), (ErrorClass::Full, false));
        let storage = "Got error 28 \"No space left on device\" from storage engine InnoDB";
        assert_eq!(class(1030, storage), (ErrorClass::Full, false));
        assert_eq!(class(1030, "Got error 122 from storage engine"), (ErrorClass::Reply, false));
        assert_eq!(class(1213, "Deadlock found"), (ErrorClass::Lock, false));
        assert_eq!(class(1053, "Server shutdown in progress"), (ErrorClass::Closed, true));
        assert_eq!(class(1146, "Table doesn't exist"), (ErrorClass::Reply, false));
    }
}
