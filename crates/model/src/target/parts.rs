//! Parts of a target's URL and their errors.

use url::Url;

use super::address::{NetAddress, Secret};
use super::mask::mask_text;
use super::percent::decode;
use crate::product::Product;

/// Error of an invalid target URL.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum UrlError {
    /// Not a URL.
    #[error("`{0}` is not a URL (expected {forms})", forms = Product::all_urls())]
    NotUrl(String),
    /// An unknown scheme.
    #[error("unknown scheme `{0}` (expected {forms})", forms = Product::all_urls())]
    Scheme(String),
    /// A part is missing or malformed.
    #[error("{part} of `{url}` is {problem} (expected {expected})")]
    Part {
        /// The URL with its password masked.
        url: String,
        /// Name of the part.
        part: &'static str,
        /// The problem.
        problem: String,
        /// What is expected.
        expected: &'static str,
    },
}

pub(super) fn part(
    url: &Url,
    part: &'static str,
    problem: &str,
    expected: &'static str,
) -> UrlError {
    UrlError::Part { url: mask_text(url.as_str()), part, problem: mask_text(problem), expected }
}

pub(super) fn tcp(url: &Url, default_port: u16) -> Result<NetAddress, UrlError> {
    match url.host_str() {
        Some(host) if !host.is_empty() => {
            let host = host.trim_start_matches('[').trim_end_matches(']');
            Ok(NetAddress::Tcp(host.into(), url.port().unwrap_or(default_port)))
        }
        _ => Err(part(url, "host", "missing", "a host name or address")),
    }
}

pub(super) fn unix(url: &Url) -> Result<NetAddress, UrlError> {
    let path = decode(url.path());
    if path.trim_matches('/').is_empty() {
        return Err(part(url, "socket path", "missing", "three slashes and an absolute path"));
    }
    if path.split_once(':').is_some_and(|(_, after)| after.contains('@')) {
        let expected = "the login in the query, as in ?user=NAME&password=TEXT";
        return Err(part(url, "socket path", "invalid: it contains a login", expected));
    }
    Ok(NetAddress::Unix(path.into()))
}

pub(super) fn user(url: &Url) -> Option<String> {
    non_empty(&decode(url.username()))
}

pub(super) fn password(url: &Url) -> Option<Secret> {
    url.password().map(|p| Secret::new(decode(p)))
}

pub(super) fn query(url: &Url, key: &str) -> Option<String> {
    url.query_pairs().find(|(k, _)| k == key).map(|(_, v)| v.into_owned())
}

/// Rejects unknown keys in a URL's query; `known` keys are separated by commas.
pub(super) fn known_queries(url: &Url, known: &'static str) -> Result<(), UrlError> {
    let unknown = |key: &str| known.split(", ").all(|name| name != key);
    match url.query_pairs().find(|(key, _)| unknown(key)) {
        None => Ok(()),
        // If a password contains `&`, a part of it looks like a key.
        Some((key, value)) if !value.is_empty() && query(url, "password").is_none() => {
            Err(part(url, "query", &format!("`{key}`, which is unknown"), known))
        }
        Some(_) => Err(part(url, "query", "invalid: it has an unknown key", known)),
    }
}

fn non_empty(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_string())
}
