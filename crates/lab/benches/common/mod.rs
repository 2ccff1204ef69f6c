//! What every bench needs: its arguments, and errors that print.

use model::Failure;
use std::error::Error;

/// What a bench ends with.
pub(crate) type Outcome = Result<(), Box<dyn Error>>;

/// The program's arguments, without what cargo adds.
pub(crate) fn arguments() -> Vec<String> {
    std::env::args().skip(1).filter(|a| a != "--bench").collect()
}

/// The number after `name`, or `default` when the name is not given.
pub(crate) fn number(arguments: &[String], name: &str, default: u64) -> Result<u64, String> {
    let Some(at) = arguments.iter().position(|a| a == name) else { return Ok(default) };
    let text = arguments.get(at + 1).map_or("", String::as_str);
    text.parse().map_err(|_| format!("`{text}` is no number (expected one after {name})"))
}

/// A failure as an error that prints.
pub(crate) fn told(Failure { class, message }: Failure) -> Box<dyn Error> {
    format!("{class}: {message}").into()
}
