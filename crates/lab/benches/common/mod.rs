//! Shared by all benches: arguments and errors.

use model::Failure;
use std::error::Error;

/// Result of a bench.
pub(crate) type Outcome = Result<(), Box<dyn Error>>;

/// The program's arguments without those that cargo adds.
pub(crate) fn arguments() -> Vec<String> {
    std::env::args().skip(1).filter(|a| a != "--bench").collect()
}

/// The number after `name`, or `default` if `name` is not given.
pub(crate) fn number(arguments: &[String], name: &str, default: u64) -> Result<u64, String> {
    let Some(at) = arguments.iter().position(|a| a == name) else { return Ok(default) };
    let text = arguments.get(at + 1).map_or("", String::as_str);
    text.parse().map_err(|_| format!("`{text}` is not a number (expected one after {name})"))
}

/// Converts a failure to a printable error.
pub(crate) fn error(Failure { class, message }: Failure) -> Box<dyn Error> {
    format!("{class}: {message}").into()
}
