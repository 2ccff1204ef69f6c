//! A connection with PostgreSQL's protocol 3.0 that sends the same messages as `libpq`.
//!
//! Source: PostgreSQL's manual, "Frontend/Backend Protocol". The library `postgres-protocol`
//! encodes messages and logins. The connection is our own, because a full client library chooses
//! its own messages and cannot send those of PHP.

use std::ops::Range;
use std::time::{Duration, Instant};

use ::postgres_protocol::IsNull;
use ::postgres_protocol::authentication::md5_hash;
use ::postgres_protocol::authentication::sasl::{ChannelBinding, SCRAM_SHA_256, ScramSha256};
use ::postgres_protocol::message::backend::{DataRowBody, ErrorFields, Header, Message};
use ::postgres_protocol::message::frontend;
use bytes::BytesMut;
use fallible_iterator::FallibleIterator as _;
use model::{Database, Endpoint, ErrorClass, Secret};
use workloads::store::StoreError;

use crate::fault;
use crate::socket::Socket;

/// Bytes per read.
const READ_BYTES: usize = 16 << 10;

/// Longest message to accept: a value of 64 MiB, the longest of all stores, plus its header.
const MESSAGE_BYTES_MAX: i32 = 66 << 20;

/// Format of a parameter or a column: text, or the bytes of its type.
pub(super) const TEXT: i16 = 0;
pub(super) const BINARY: i16 = 1;

/// `SQLSTATE` for a duplicate key.
pub(super) const DUPLICATE: &str = "23505";

pub(super) struct Connection {
    socket: Socket,
    timeout: Duration,
    input: BytesMut,
    output: BytesMut,
}

/// A request that failed.
pub(super) struct Refusal {
    /// The server's `SQLSTATE`; empty if the connection failed.
    pub(super) state: String,
    pub(super) error: StoreError,
}

impl From<Refusal> for StoreError {
    fn from(refusal: Refusal) -> Self {
        refusal.error
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        Self { state: String::new(), error }
    }
}

impl Refusal {
    /// Marks the error as fatal, because the server closed the connection after it.
    fn ended(mut self) -> Self {
        self.error.fatal = true;
        self
    }
}

/// The server's reply to one statement.
#[derive(Default)]
pub(super) struct Answer {
    rows: Vec<DataRowBody>,
    /// Rows that were inserted, updated, deleted or selected.
    pub(super) affected: u64,
    /// True if the statement committed a transaction.
    pub(super) is_committed: bool,
}

impl Answer {
    /// A column of a row, both numbered from 0; `None` for NULL and for a missing column.
    pub(super) fn column(&self, row: usize, column: usize) -> Option<&[u8]> {
        let row = self.rows.get(row)?;
        let range = row.ranges().nth(column).ok().flatten().flatten()?;
        row.buffer().get(range)
    }

    /// Its rows, with all columns as text.
    pub(super) fn texts(&self) -> Vec<Vec<String>> {
        let texts = |row: &DataRowBody| {
            let text = |range: Option<Range<usize>>| {
                let bytes = range.and_then(|range| row.buffer().get(range)).unwrap_or_default();
                Ok(String::from_utf8_lossy(bytes).into_owned())
            };
            row.ranges().map(text).collect().unwrap_or_default()
        };
        self.rows.iter().map(texts).collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

impl Connection {
    /// Connects and logs in.
    pub(super) fn open(endpoint: &Endpoint, timeout: Duration) -> Result<Self, StoreError> {
        let Endpoint::Postgres(database) = endpoint else {
            return Err(StoreError::fatal(ErrorClass::Other, "not a PostgreSQL endpoint"));
        };
        let socket = Socket::connect(&database.address, None, timeout)?;
        let (input, output) = (BytesMut::new(), BytesMut::new());
        let mut connection = Self { socket, timeout, input, output };
        connection.log_in(database)?;
        Ok(connection)
    }

    fn log_in(&mut self, database: &Database) -> Result<(), StoreError> {
        let parameters = [
            ("user", database.user.as_str()),
            ("database", &database.name),
            ("client_encoding", "UTF8"),
        ];
        let password = database.password.as_ref().map(Secret::reveal);
        let required_password = || password.ok_or_else(needs_password);
        let mut scram = None;
        let mut is_proven = true;
        // Limits the whole login, in addition to each reply.
        let deadline = Instant::now() + self.timeout;
        check_encoded(frontend::startup_message(parameters, &mut self.output))?;
        self.send()?;
        loop {
            if Instant::now() > deadline {
                let late = std::io::ErrorKind::TimedOut.into();
                return Err(fault::connection(&late, self.timeout));
            }
            match self.message()? {
                Message::AuthenticationOk if !is_proven => return Err(unexpected()),
                Message::AuthenticationOk
                | Message::ParameterStatus(_)
                | Message::BackendKeyData(_)
                | Message::NoticeResponse(_) => continue,
                Message::ReadyForQuery(_) => return Ok(()),
                Message::ErrorResponse(body) => return Err(refusal(body.fields()).into()),
                Message::AuthenticationCleartextPassword => {
                    let password = required_password()?.as_bytes();
                    check_encoded(frontend::password_message(password, &mut self.output))?;
                }
                Message::AuthenticationMd5Password(body) => {
                    let user = database.user.as_bytes();
                    let hash = md5_hash(user, required_password()?.as_bytes(), body.salt());
                    check_encoded(frontend::password_message(hash.as_bytes(), &mut self.output))?;
                }
                Message::AuthenticationSasl(_) => {
                    is_proven = false;
                    let channel = ChannelBinding::unsupported();
                    let exchange =
                        scram.insert(ScramSha256::new(required_password()?.as_bytes(), channel));
                    let (first, output) = (exchange.message(), &mut self.output);
                    check_encoded(frontend::sasl_initial_response(SCRAM_SHA_256, first, output))?;
                }
                Message::AuthenticationSaslContinue(body) => {
                    let exchange = scram.as_mut().ok_or_else(unexpected)?;
                    exchange.update(body.data()).map_err(|_| unexpected())?;
                    check_encoded(frontend::sasl_response(exchange.message(), &mut self.output))?;
                }
                Message::AuthenticationSaslFinal(body) => {
                    let exchange = scram.as_mut().ok_or_else(unexpected)?;
                    // The server proves that it knows the password hash.
                    exchange.finish(body.data()).map_err(|_| unexpected())?;
                    is_proven = true;
                    continue;
                }
                _ => return Err(unknown_login()),
            }
            self.send()?;
        }
    }

    /// Sends a statement as text (`PQexec`).
    pub(super) fn query(&mut self, statement: &str) -> Result<Answer, Refusal> {
        check_encoded(frontend::query(statement, &mut self.output))?;
        self.round_trip()
    }

    /// Prepares a statement under our own name (`PQprepare`).
    pub(super) fn prepare(&mut self, name: &str, statement: &str) -> Result<(), Refusal> {
        check_encoded(frontend::parse(name, statement, [], &mut self.output))?;
        frontend::sync(&mut self.output);
        self.round_trip().map(drop)
    }

    /// Executes a prepared statement with its parameters, each with its format; columns are
    /// returned as text (`PQexecPrepared`).
    pub(super) fn execute(
        &mut self,
        name: &str,
        parameters: &[(i16, &[u8])],
    ) -> Result<Answer, Refusal> {
        let formats = parameters.iter().map(|(format, _)| *format);
        let values = parameters.iter().map(|(_, value)| *value);
        let write = |value: &[u8], output: &mut BytesMut| {
            output.extend_from_slice(value);
            Ok(IsNull::No)
        };
        frontend::bind("", name, formats, values, write, [TEXT], &mut self.output)
            .map_err(|_| too_long())?;
        check_encoded(frontend::describe(b'P', "", &mut self.output))?;
        check_encoded(frontend::execute("", 0, &mut self.output))?;
        frontend::sync(&mut self.output);
        self.round_trip()
    }

    /// Sends `Terminate`, as `PQfinish` does.
    pub(super) fn close(mut self) {
        frontend::terminate(&mut self.output);
        // The server is notified, but nobody waits for it.
        let _ = self.send();
    }

    fn send(&mut self) -> Result<(), StoreError> {
        self.socket.begin();
        let sent = self.socket.write_all(&self.output);
        self.output.clear();
        sent.map_err(|e| fault::connection(&e, self.timeout))
    }

    /// Sends the output buffer and reads until the server is ready for more.
    fn round_trip(&mut self) -> Result<Answer, Refusal> {
        self.send()?;
        let mut answer = Answer::default();
        let mut refused: Option<Refusal> = None;
        loop {
            let message = match self.message() {
                Ok(message) => message,
                // An error sent before the connection closed is the cause.
                Err(e) => return Err(refused.map_or(e.into(), Refusal::ended)),
            };
            match message {
                Message::DataRow(row) => answer.rows.push(row),
                Message::CommandComplete(body) => {
                    let tag = body.tag().unwrap_or_default();
                    let count = tag.rsplit(' ').next().and_then(|count| count.parse().ok());
                    answer.affected = count.unwrap_or(0);
                    answer.is_committed = tag == "COMMIT";
                }
                Message::ErrorResponse(body) => {
                    let refusal = refusal(body.fields());
                    if refusal.error.fatal {
                        return Err(refusal);
                    }
                    refused.get_or_insert(refusal);
                }
                Message::ReadyForQuery(_) => return refused.map_or(Ok(answer), Err),
                Message::ParseComplete
                | Message::BindComplete
                | Message::NoData
                | Message::RowDescription(_)
                | Message::EmptyQueryResponse
                | Message::NoticeResponse(_)
                | Message::ParameterStatus(_) => {}
                _ => return Err(unexpected().into()),
            }
        }
    }

    fn message(&mut self) -> Result<Message, StoreError> {
        loop {
            // The library allocates as many bytes as the header announces.
            match Header::parse(&self.input) {
                Ok(Some(header)) if header.len() > MESSAGE_BYTES_MAX => return Err(unexpected()),
                Err(_) => return Err(unexpected()),
                Ok(_) => {}
            }
            match Message::parse(&mut self.input) {
                Ok(Some(message)) => return Ok(message),
                Ok(None) => {}
                Err(_) => return Err(unexpected()),
            }
            let filled = self.input.len();
            self.input.resize(filled + READ_BYTES, 0);
            let read = self.socket.read(&mut self.input[filled..]);
            self.input.truncate(filled + read.as_ref().copied().unwrap_or(0));
            let end = match read {
                Ok(0) => std::io::ErrorKind::UnexpectedEof.into(),
                Ok(_) => continue,
                Err(e) => e,
            };
            return Err(fault::connection(&end, self.timeout));
        }
    }
}

/// Errors: a message could not be encoded because a statement or a name contains a zero byte.
fn check_encoded(result: std::io::Result<()>) -> Result<(), StoreError> {
    result.map_err(|_| too_long())
}

fn too_long() -> StoreError {
    let message = "a statement has a zero byte or is longer than 2 GiB (expected neither)";
    StoreError::fatal(ErrorClass::Other, message)
}

fn unexpected() -> StoreError {
    let message = "the reply violates PostgreSQL's protocol (expected a PostgreSQL server)";
    StoreError::fatal(ErrorClass::Protocol, message)
}

fn unknown_login() -> StoreError {
    let message = "the server requires an unsupported login method (expected a password, with \
                   SCRAM-SHA-256, MD5 or in plain text)";
    StoreError::fatal(ErrorClass::Denied, message)
}

fn needs_password() -> StoreError {
    let message = format!("the server requires a password{}", fault::PASSWORD_HINT);
    StoreError::fatal(ErrorClass::Denied, message)
}

/// Parses an error of the server.
fn refusal(mut fields: ErrorFields<'_>) -> Refusal {
    let (mut state, mut text) = (String::new(), String::new());
    while let Ok(Some(field)) = fields.next() {
        match field.type_() {
            b'C' => state = fault::printable(field.value_bytes()),
            b'M' => text = fault::printable(field.value_bytes()),
            _ => {}
        }
    }
    Refusal { error: error(&state, &text), state }
}

/// Classifies an error by its `SQLSTATE` (PostgreSQL's manual, appendix "PostgreSQL Error Codes").
fn error(state: &str, text: &str) -> StoreError {
    let class = match state {
        "28P01" => {
            let message = format!(
                "the server rejected the user or the password (`{state}`; expected those of the \
                 target's URL)"
            );
            return StoreError::fatal(ErrorClass::Denied, message);
        }
        "28000" => {
            let message = format!(
                "the server answered `{text}` (expected a user and an address that it admits \
                 without TLS)"
            );
            return StoreError::fatal(ErrorClass::Denied, message);
        }
        "3D000" => {
            let message = format!("the server answered `{text}` (expected an existing database)");
            return StoreError::fatal(ErrorClass::Denied, message);
        }
        "57P01" | "57P02" | "57P05" => {
            return StoreError::fatal(
                ErrorClass::Closed,
                format!("the server shut down: `{text}`"),
            );
        }
        "53300" | "57P03" => ErrorClass::Refused,
        "42501" => ErrorClass::Denied,
        "53100" | "53200" => ErrorClass::Full,
        "55P03" | "40P01" | "40001" => ErrorClass::Lock,
        "57014" => ErrorClass::Timeout,
        _ => ErrorClass::Reply,
    };
    StoreError::soft(class, format!("the server answered `{state} {text}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_the_right_class() {
        let class = |state| {
            let e = error(state, "words");
            (e.class, e.fatal)
        };
        assert_eq!(class("28P01"), (ErrorClass::Denied, true));
        assert_eq!(class("53300"), (ErrorClass::Refused, false));
        assert_eq!(class("53100"), (ErrorClass::Full, false));
        assert_eq!(class("55P03"), (ErrorClass::Lock, false));
        assert_eq!(class("57P01"), (ErrorClass::Closed, true));
        assert_eq!(class("42P01"), (ErrorClass::Reply, false));
    }
}
