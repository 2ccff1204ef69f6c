//! Redis and what speaks its protocol (Valkey and others), by RESP2 over TCP or a unix socket.
//!
//! - `resp`: the codec, pure.
//! - `wire`: one connection with reusable buffers; a request is one write and usually one read.
//! - `control`: such a connection for questions around a load.
//! - `plain`, `page`, `admin`: the layouts and what is done around a run.
//! - `replies`, [`requests`], [`cluster`]: what the event loop of `load` sends and reads.

mod admin;
pub mod cluster;
mod control;
pub mod hello;
mod judge;
mod page;
mod plain;
mod replies;
pub mod requests;
mod resp;
#[cfg(test)]
mod resp_tests;
mod wire;

use model::{Endpoint, ErrorClass};
use workloads::store::{PageStore, SessionStore, StoreError};

use crate::{SessionOptions, fault};
use resp::Reply;
use wire::Wire;

pub(crate) use admin::open_admin;
pub use control::Control;
pub use replies::Replies;
pub use resp::Tree;

pub(crate) fn open_plain(
    endpoint: &Endpoint,
    options: &SessionOptions,
) -> Result<Box<dyn SessionStore>, StoreError> {
    let wire = Wire::connect(endpoint, options.timeout)?;
    Ok(Box::new(plain::Plain::new(wire, options.ttl_s)))
}

pub(crate) fn open_page(
    endpoint: &Endpoint,
    options: &SessionOptions,
) -> Result<Box<dyn PageStore>, StoreError> {
    let wire = Wire::connect(endpoint, options.timeout)?;
    Ok(Box::new(page::Page::new(wire, options.ttl_s)))
}

/// The class of an error reply, by the code that begins it or, where that says nothing, by its
/// words.
fn error_class(text: &str) -> ErrorClass {
    match text.split(' ').next().unwrap_or_default() {
        "NOAUTH" | "WRONGPASS" | "NOPERM" | "DENIED" => ErrorClass::Denied,
        "OOM" => ErrorClass::Full,
        _ if text.starts_with("ERR max number of clients") => ErrorClass::Refused,
        // A password for an account without one, in all versions; a wrong one before Redis 6.
        _ if text.starts_with("ERR AUTH ")
            || text.starts_with("ERR Client sent AUTH")
            || text == "ERR invalid password" =>
        {
            ErrorClass::Denied
        }
        _ => ErrorClass::Reply,
    }
}

/// An error reply as an error of its class.
fn refused(words: &[u8]) -> StoreError {
    let text = fault::words(words);
    let class = error_class(&text);
    let fatal = class == ErrorClass::Refused;
    let cure = if text.starts_with("LOADING") { " (wait until it has read its data)" } else { "" };
    StoreError { class, message: format!("the server answered `{text}`{cure}"), fatal }
}

/// A reply of a type that the command never gives; the connection is no longer trusted.
fn unexpected(command: &str, reply: &Reply<'_>) -> StoreError {
    if let Reply::Error(words) = reply {
        return refused(words);
    }
    let message = format!("`{command}` was answered by {}", reply.kind());
    StoreError::fatal(ErrorClass::Protocol, message)
}
