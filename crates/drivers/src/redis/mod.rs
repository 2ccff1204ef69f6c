//! Redis and what speaks its protocol (Valkey and others), by RESP2 over TCP or a unix socket.
//!
//! - [`resp`]: the codec, pure.
//! - [`wire`]: one connection with reusable buffers; a request is one write and usually one read.
//! - [`plain`], [`page`], [`admin`]: the layouts and what is done around a run.

mod admin;
mod page;
mod plain;
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

/// An error reply as an error of its class, by the code that begins it.
fn refused(words: &[u8]) -> StoreError {
    let text = fault::words(words);
    let class = match text.split(' ').next().unwrap_or_default() {
        "NOAUTH" | "WRONGPASS" | "NOPERM" | "DENIED" => ErrorClass::Denied,
        "OOM" => ErrorClass::Full,
        _ if text.starts_with("ERR max number of clients") => ErrorClass::Refused,
        _ => ErrorClass::Reply,
    };
    let fatal = class == ErrorClass::Refused;
    StoreError { class, message: format!("the server answered `{text}`"), fatal }
}

/// A reply of a type that the command never gives; the connection is no longer trusted.
fn unexpected(command: &str, reply: &Reply<'_>) -> StoreError {
    if let Reply::Error(words) = reply {
        return refused(words);
    }
    let message = format!("`{command}` was answered by {}", reply.kind());
    StoreError::fatal(ErrorClass::Protocol, message)
}
