//! The table of users: an integer as primary key, then the columns of [`COLUMNS`] as text.

use model::ErrorClass;
use workloads::cache_aside::{COLUMNS, User};
use workloads::store::StoreError;

/// Its name. Only private servers have it.
pub(crate) const TABLE: &str = "users";

/// The statement that creates the table, with the server's type of the primary key and what follows
/// the columns.
pub(crate) fn schema(key: &str, behind: &str) -> String {
    let columns: Vec<String> = COLUMNS.iter().map(|name| format!("{name} TEXT NOT NULL")).collect();
    format!("CREATE TABLE {TABLE} (id {key} NOT NULL PRIMARY KEY, {}){behind}", columns.join(", "))
}

/// The statement that reads a row, with the server's placeholder.
pub(crate) fn select(placeholder: &str) -> String {
    format!("SELECT id, {} FROM {TABLE} WHERE id = {placeholder}", COLUMNS.join(", "))
}

/// The statement that inserts rows. Their values need no escapes in any SQL: they are drawn from
/// letters, digits, spaces and `.@`.
pub(crate) fn insert(users: &[User]) -> String {
    let mut sql = format!("INSERT INTO {TABLE} VALUES ");
    for (at, user) in users.iter().enumerate() {
        sql.push_str(if at == 0 { "(" } else { ", (" });
        sql.push_str(&user.number.to_string());
        for value in &user.columns {
            debug_assert!(!value.contains(['\'', '\\']), "{value}");
            sql.extend([", '", value, "'"]);
        }
        sql.push(')');
    }
    sql
}

/// The error for a row that lacks a column or has one of another type.
pub(crate) fn unexpected(column: usize) -> StoreError {
    let name = column.checked_sub(1).and_then(|at| COLUMNS.get(at)).unwrap_or(&"id");
    let message = format!("column `{name}` of table `{TABLE}` is missing or has another type");
    StoreError::soft(ErrorClass::Protocol, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_name_every_column() {
        let created = schema("BIGINT", " X");
        assert!(created.starts_with("CREATE TABLE users (id BIGINT NOT NULL PRIMARY KEY, name "));
        assert!(created.ends_with("note TEXT NOT NULL) X"), "{created}");
        let read = "SELECT id, name, email, street, city, country, note FROM users WHERE id = $1";
        assert_eq!(select("$1"), read);
        let user = |number, name: &str| User {
            number,
            columns: [name, "b", "c", "d", "e", "f"].map(String::from),
        };
        assert_eq!(
            insert(&[user(1, "x"), user(2, "y")]),
            "INSERT INTO users VALUES (1, 'x', 'b', 'c', 'd', 'e', 'f'), \
             (2, 'y', 'b', 'c', 'd', 'e', 'f')"
        );
    }
}
