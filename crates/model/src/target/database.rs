//! URLs of databases on SQL servers.

use std::fmt;
use url::Url;

use super::address::{NetAddress, Secret};
use super::parts::{UrlError, known_queries, part, password, query, tcp, unix, user};
use super::percent::decode;

/// A database on a SQL server with its login.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Database {
    /// Address of the server.
    pub address: NetAddress,
    /// Account name.
    pub user: String,
    /// Password; `None` for an account without one.
    pub password: Option<Secret>,
    /// Name of the database, which must exist.
    pub name: String,
}

/// Formats the address without the login.
impl fmt::Display for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} database {}", self.address, self.name)
    }
}

impl Database {
    /// Parses `SCHEME://user:password@host:port/database`, or
    /// `SCHEME+unix:///socket?database=NAME&user=NAME&password=TEXT`, with the given default port
    /// and user.
    pub(super) fn of(url: &Url, (port, default_user): (u16, &str)) -> Result<Self, UrlError> {
        let is_unix = url.scheme().ends_with("+unix");
        let no_queries = "no query parameters; TLS is not supported";
        let keys = if is_unix { "database, user, password" } else { no_queries };
        known_queries(url, keys)?;
        let from_query = |key| if is_unix { query(url, key) } else { None };
        let name = if is_unix {
            query(url, "database").unwrap_or_default()
        } else {
            url.path().trim_matches('/').into()
        };
        Ok(Self {
            address: if is_unix { unix(url)? } else { tcp(url, port)? },
            user: user(url).or_else(|| from_query("user")).unwrap_or_else(|| default_user.into()),
            password: password(url).or_else(|| from_query("password").map(Secret::new)),
            name: checked_name(url, &name)?,
        })
    }
}

fn checked_name(url: &Url, text: &str) -> Result<String, UrlError> {
    let name = decode(text);
    let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '$');
    if name.is_empty() {
        return Err(part(url, "database", "missing", "the name of an existing database"));
    }
    if !name.chars().all(good) {
        let expected = "letters, digits, `_`, `-` and `$`";
        return Err(part(url, "database", &format!("`{name}`"), expected));
    }
    Ok(name)
}
