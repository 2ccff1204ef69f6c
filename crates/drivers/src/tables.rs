//! Tables on SQL servers: their names, and creating and dropping those of a run.

use model::{ErrorClass, Failure, Layout};
use workloads::store::StoreError;

use crate::{CleanupDeadline, fault};

/// An administrative connection to a database in which a run creates tables.
pub(crate) trait Tables {
    /// Runs a statement and ignores its result.
    fn run(&mut self, statement: &str) -> Result<(), Failure>;

    /// Names of the tables that start with a plain identifier, as reported by the server.
    fn names(&mut self, prefix: &str) -> Result<Vec<String>, Failure>;

    /// Tables created through this value.
    fn created(&mut self) -> &mut Vec<String>;

    /// Errors: a table of this name already exists. It is left unchanged.
    fn expect_absent(&mut self, table: &str) -> Result<(), Failure> {
        if self.names(table)?.iter().any(|name| name == table) {
            let message =
                format!("table `{table}` already exists (left unchanged: check its contents)");
            return Err(Failure { class: ErrorClass::NotOurs, message });
        }
        Ok(())
    }

    /// Creates a table with its `CREATE TABLE` and the statements that follow. An existing table is
    /// left unchanged.
    fn create(&mut self, table: &str, statements: &[String]) -> Result<(), Failure> {
        self.expect_absent(table)?;
        for (number, statement) in statements.iter().enumerate() {
            self.run(statement)?;
            if number == 0 {
                self.created().push(table.into());
            }
        }
        Ok(())
    }

    /// Drops the tables that start with `prefix`, unless it is empty, and those created here.
    fn drop_all(
        &mut self,
        prefix: &str,
        patience: &mut CleanupDeadline<'_>,
    ) -> Result<(), Failure> {
        if !prefix.is_empty() {
            let prefix = identifier(prefix)?;
            // Check again instead of relying on the server's matching alone.
            let left = self.names(prefix)?;
            for table in left.iter().filter(|table| table.starts_with(prefix)) {
                patience.check()?;
                let table = identifier(table)?;
                self.run(&format!("DROP TABLE IF EXISTS {table}"))?;
            }
        }
        while let Some(table) = self.created().last().cloned() {
            patience.check()?;
            self.run(&format!("DROP TABLE IF EXISTS {table}"))?;
            self.created().pop();
        }
        Ok(())
    }
}

/// The column of the session's name in a layout's table.
pub(crate) fn id_column(layout: Layout) -> &'static str {
    match layout {
        Layout::Plain => "name",
        Layout::Page => "sess_id",
    }
}

/// Checks a table name that needs no quotes: a letter or `_`, then letters, digits and `_`, at most
/// 63 characters, since PostgreSQL truncates longer names.
pub(crate) fn identifier(name: &str) -> Result<&str, StoreError> {
    let good = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let begins = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if begins && name.len() <= 63 && name.chars().all(good) {
        return Ok(name);
    }
    let shown = fault::printable(name.as_bytes());
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
