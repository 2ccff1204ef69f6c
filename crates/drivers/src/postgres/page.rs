//! Statements of Symfony's `PdoSessionHandler` on PostgreSQL. PDO uses server-side prepared
//! statements there: a statement is prepared on first execution and deallocated when PHP releases
//! it, at the end of the handler's method.
//!
//! `BEGIN`, `SELECT … FOR UPDATE`, `INSERT`; `INSERT … ON CONFLICT … DO UPDATE`, `COMMIT`; `DELETE`
//! of expired rows. Columns are returned as text, so data has two digits per byte (php-src,
//! `ext/pdo_pgsql`).

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use model::{Endpoint, ErrorClass};
use workloads::store::StoreError;

use super::connection::{self, BINARY, DUPLICATE, Refusal, TEXT};
use crate::pdo::{self, Connection as _};

pub(super) struct Connection {
    inner: connection::Connection,
    select: String,
    insert: String,
    merge: String,
    delete: String,
    /// Statements prepared so far; PDO numbers them.
    prepared: u32,
    /// Names of the statements that the current call holds.
    held: Vec<String>,
}

impl Connection {
    pub(super) fn open(
        endpoint: &Endpoint,
        timeout: Duration,
        table: &str,
    ) -> Result<Self, StoreError> {
        // By default the server waits for a lock indefinitely.
        let (timeout, wait) = pdo::timeouts(timeout);
        let wait_ms = wait.as_millis();
        let mut inner = connection::Connection::open(endpoint, timeout)?;
        // A statement can wait for several locks, one after the other.
        inner.query(&format!("SET lock_timeout = {wait_ms}; SET statement_timeout = {wait_ms}"))?;
        let insert = format!(
            "INSERT INTO {table} (sess_id, sess_data, sess_lifetime, sess_time) \
             VALUES ($1, $2, $3, $4)"
        );
        let mut own = Self {
            inner,
            select: format!(
                "SELECT sess_data, sess_lifetime FROM {table} WHERE sess_id = $1 FOR UPDATE"
            ),
            merge: format!(
                "{insert} ON CONFLICT (sess_id) DO UPDATE SET (sess_data, sess_lifetime, \
                 sess_time) = (EXCLUDED.sess_data, EXCLUDED.sess_lifetime, EXCLUDED.sess_time)"
            ),
            delete: format!("DELETE FROM {table} WHERE sess_lifetime < $1"),
            insert,
            prepared: 0,
            held: Vec::new(),
        };
        own.warm_up()?;
        Ok(own)
    }

    /// Runs the statements of a page and undoes them: a new server process first reads the table's
    /// metadata, which takes as long as a short lock wait.
    fn warm_up(&mut self) -> Result<(), StoreError> {
        // A unique ID, so that no client waits for it.
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let id = format!("cachedyno_{}_{number}", std::process::id());
        self.begin()?;
        self.select(&id, &mut Vec::new())?;
        self.merge(&pdo::Row { id: &id, value: &[], expires_s: 0, now_s: 0 })?;
        self.insert(&pdo::Row { id: &id, value: &[], expires_s: 0, now_s: 0 })?;
        self.roll_back()?;
        self.release()?;
        self.prepared = 0;
        Ok(())
    }

    fn run(&mut self, statement: &str) -> Result<(), StoreError> {
        self.inner.query(statement)?;
        Ok(())
    }

    /// Prepares a statement under the name that PDO uses.
    fn prepare(&mut self, statement: fn(&Self) -> &str) -> Result<String, Refusal> {
        self.prepared = self.prepared.wrapping_add(1);
        let name = format!("pdo_stmt_{:08x}", self.prepared);
        let text = statement(self).to_string();
        self.inner.prepare(&name, &text)?;
        self.held.push(name.clone());
        Ok(name)
    }

    fn write(&mut self, statement: fn(&Self) -> &str, row: &pdo::Row<'_>) -> Result<(), Refusal> {
        let name = self.prepare(statement)?;
        let (expires_s, now_s) = (row.expires_s.to_string(), row.now_s.to_string());
        let parameters = [
            (TEXT, row.id.as_bytes()),
            (BINARY, row.value),
            (TEXT, expires_s.as_bytes()),
            (TEXT, now_s.as_bytes()),
        ];
        self.inner.execute(&name, &parameters).map(drop)
    }
}

impl pdo::Connection for Connection {
    const LOCKS_ROWS: bool = true;

    fn begin(&mut self) -> Result<(), StoreError> {
        self.run("BEGIN")
    }

    fn select(&mut self, id: &str, value: &mut Vec<u8>) -> Result<Option<u64>, StoreError> {
        // After a duplicate key, PHP executes its existing statement.
        let name = match self.held.first() {
            Some(name) => name.clone(),
            None => self.prepare(|own| &own.select)?,
        };
        let answer = self.inner.execute(&name, &[(TEXT, id.as_bytes())]).map_err(as_lock_error)?;
        if answer.is_empty() {
            return Ok(None);
        }
        let expires_s = answer.column(0, 1).and_then(|text| std::str::from_utf8(text).ok());
        let expires_s = expires_s.and_then(|text| text.parse().ok());
        let is_read = answer.column(0, 0).is_some_and(|text| decode(text, value).is_some());
        expires_s.filter(|_| is_read).map(Some).ok_or_else(|| {
            let message = "a row does not come from the session handler (expected bytes as \
                           hexadecimal digits, and a lifetime)";
            StoreError::soft(ErrorClass::Protocol, message)
        })
    }

    fn insert(&mut self, row: &pdo::Row<'_>) -> Result<bool, StoreError> {
        match self.write(|own| &own.insert, row) {
            Ok(()) => Ok(true),
            Err(refusal) if refusal.state == DUPLICATE => Ok(false),
            Err(refusal) => Err(as_lock_error(refusal)),
        }
    }

    fn merge(&mut self, row: &pdo::Row<'_>) -> Result<(), StoreError> {
        self.write(|own| &own.merge, row).map_err(as_lock_error)
    }

    fn delete_expired(&mut self, now_s: u64) -> Result<u64, StoreError> {
        let now_s = now_s.to_string();
        let name = self.prepare(|own| &own.delete)?;
        let deleted = self.inner.execute(&name, &[(TEXT, now_s.as_bytes())]);
        Ok(deleted.map_err(as_lock_error)?.affected)
    }

    fn commit(&mut self) -> Result<(), StoreError> {
        // `COMMIT` silently rolls a failed transaction back.
        if self.inner.query("COMMIT")?.is_committed {
            return Ok(());
        }
        let message = "the server rolled the transaction back (expected a commit)";
        Err(StoreError::soft(ErrorClass::Reply, message))
    }

    fn roll_back(&mut self) -> Result<(), StoreError> {
        self.run("ROLLBACK")
    }

    fn release(&mut self) -> Result<(), StoreError> {
        for name in std::mem::take(&mut self.held) {
            match self.inner.query(&format!("DEALLOCATE {name}")) {
                Err(refusal) if refusal.error.fatal => return Err(refusal.into()),
                // The server rejects it in a failed transaction, which PHP ignores.
                _ => {}
            }
        }
        Ok(())
    }
}

/// Converts the error of a locking statement: a timeout means that it waited for a lock.
fn as_lock_error(refusal: Refusal) -> StoreError {
    let mut e = refusal.error;
    if e.class == ErrorClass::Timeout && !e.fatal {
        e.class = ErrorClass::Lock;
    }
    e
}

/// Decodes the text of a `bytea`, `\x` and two digits per byte, into `value`; `None` for any other
/// text.
fn decode(text: &[u8], value: &mut Vec<u8>) -> Option<()> {
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    let (pairs, []) = text.strip_prefix(b"\\x")?.as_chunks::<2>() else { return None };
    value.clear();
    value.reserve(pairs.len());
    for [high, low] in pairs {
        value.push(digit(*high)? << 4 | digit(*low)?);
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_decoded_from_hexadecimal_digits() {
        let read = |text: &[u8]| {
            let mut value = b"left over".to_vec();
            decode(text, &mut value).map(|()| value)
        };
        assert_eq!(read(b"\\x"), Some(Vec::new()));
        assert_eq!(read(b"\\x00ff7A"), Some(vec![0, 255, 0x7a]));
        for wrong in [&b"00"[..], b"\\x0", b"\\x0g", b""] {
            assert_eq!(read(wrong), None);
        }
    }
}
