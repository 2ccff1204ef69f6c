//! Tables on SQL servers: what they may be called, and how those of a run are made and dropped.

use model::{ErrorClass, Failure, Layout};
use workloads::store::StoreError;

use crate::{Patience, fault};

/// A connection around a run, to a database in which it makes tables.
pub(crate) trait Tables {
    /// Runs a statement whose answer does not matter.
    fn run(&mut self, statement: &str) -> Result<(), Failure>;

    /// Names of the tables that begin with a plain identifier, as the server says.
    fn names(&mut self, prefix: &str) -> Result<Vec<String>, Failure>;

    /// Tables that this value made.
    fn made(&mut self) -> &mut Vec<String>;

    /// Errors: a table of this name is there already, and stays as it is.
    fn expect_none(&mut self, table: &str) -> Result<(), Failure> {
        if self.names(table)?.iter().any(|name| name == table) {
            let message = format!("table `{table}` exists already (left as it is: look into it)");
            return Err(Failure { class: ErrorClass::NotOurs, message });
        }
        Ok(())
    }

    /// Makes a table by its `CREATE TABLE` and the statements that follow. One that is there
    /// already is left alone.
    fn create(&mut self, table: &str, statements: &[String]) -> Result<(), Failure> {
        self.expect_none(table)?;
        for (number, statement) in statements.iter().enumerate() {
            self.run(statement)?;
            if number == 0 {
                self.made().push(table.into());
            }
        }
        Ok(())
    }

    /// Drops the tables that begin with `prefix`, where it is not empty, and those that were made.
    fn drop_all(&mut self, prefix: &str, patience: &mut Patience<'_>) -> Result<(), Failure> {
        if !prefix.is_empty() {
            let prefix = identifier(prefix)?;
            // The server compared; nothing is removed on its word alone.
            let left = self.names(prefix)?;
            for table in left.iter().filter(|table| table.starts_with(prefix)) {
                patience.check()?;
                let table = identifier(table)?;
                self.run(&format!("DROP TABLE IF EXISTS {table}"))?;
            }
        }
        while let Some(table) = self.made().last().cloned() {
            patience.check()?;
            self.run(&format!("DROP TABLE IF EXISTS {table}"))?;
            self.made().pop();
        }
        Ok(())
    }
}

/// The column of a session's name in a layout's table.
pub(crate) fn id_column(layout: Layout) -> &'static str {
    match layout {
        Layout::Plain => "name",
        Layout::Page => "sess_id",
    }
}

/// A table's name that needs no quotes: a letter or `_`, then letters, digits and `_`, at most 63,
/// since PostgreSQL cuts what is longer.
pub(crate) fn identifier(name: &str) -> Result<&str, StoreError> {
    let good = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let begins = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if begins && name.len() <= 63 && name.chars().all(good) {
        return Ok(name);
    }
    let shown = fault::words(name.as_bytes());
    let expected = "a letter, then letters, digits and `_`, at most 63";
    Err(StoreError::fatal(
        ErrorClass::Other,
        format!("table name `{shown}` cannot be used (expected {expected})"),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_identifiers_pass() {
        for name in ["sessions", "_1", "cachedyno_ab12"] {
            assert_eq!(identifier(name).unwrap(), name);
        }
        for name in ["", "1a", "a-b", "a b", "a`b", "a;drop", "ä", &"x".repeat(64)] {
            assert!(identifier(name).is_err(), "{name}");
        }
    }
}
