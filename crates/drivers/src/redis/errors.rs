//! Conversion of error replies and unexpected replies into store errors.

use model::ErrorClass;
use workloads::store::StoreError;

use super::resp::{Reply, Tree};
use crate::fault;

/// The class of an error reply, by its leading code or, if that is generic, by its text.
pub(super) fn error_class(text: &str) -> ErrorClass {
    match text.split(' ').next().unwrap_or_default() {
        "NOAUTH" | "WRONGPASS" | "NOPERM" | "DENIED" => ErrorClass::Denied,
        "OOM" => ErrorClass::Full,
        _ if text.starts_with("ERR max number of clients") => ErrorClass::Refused,
        // A password for an account without one (all versions), or a wrong password before Redis 6.
        _ if text.starts_with("ERR AUTH ")
            || text.starts_with("ERR Client sent AUTH")
            || text == "ERR invalid password" =>
        {
            ErrorClass::Denied
        }
        _ => ErrorClass::Reply,
    }
}

/// Converts an error reply into an error of its class.
pub(super) fn refused(words: &[u8]) -> StoreError {
    let text = fault::printable(words);
    let class = error_class(&text);
    let fatal = class == ErrorClass::Refused;
    let hint = match text.split(' ').next() {
        Some("LOADING") => " (wait until it has loaded its data)",
        Some("NOAUTH") => fault::PASSWORD_HINT,
        _ => "",
    };
    StoreError { class, message: format!("the server answered `{text}`{hint}"), fatal }
}

/// The error for a reply of a type that the command never returns; the connection is no longer
/// trusted.
pub(super) fn unexpected(command: &str, reply: &Reply<'_>) -> StoreError {
    if let Reply::Error(words) = reply {
        return refused(words);
    }
    let message = format!("`{command}` returned {}", reply.kind());
    StoreError::fatal(ErrorClass::Protocol, message)
}

/// True for an error about a command that a server does not know, or a proxy such as Envoy's.
fn is_unknown(error: &str) -> bool {
    error.contains("unknown command") || error.contains("unsupported command")
}

/// The reply; `None` if the server does not know the command.
pub(super) fn known(reply: Result<Tree, StoreError>) -> Result<Option<Tree>, StoreError> {
    match reply {
        Ok(tree) => Ok(Some(tree)),
        Err(e) if !e.fatal && is_unknown(&e.message.to_lowercase()) => Ok(None),
        Err(e) => Err(e),
    }
}
