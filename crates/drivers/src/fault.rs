//! Maps errors of the operating system to error classes.

use std::io;
use std::time::Duration;

use model::ErrorClass;
use workloads::store::StoreError;

use crate::tls_fault;

/// The class of a socket or file error.
pub(crate) fn class(kind: io::ErrorKind) -> ErrorClass {
    use io::ErrorKind as K;
    match kind {
        K::WouldBlock | K::TimedOut => ErrorClass::Timeout,
        K::ConnectionRefused | K::AddrNotAvailable | K::HostUnreachable | K::NetworkUnreachable => {
            ErrorClass::Refused
        }
        K::ConnectionReset
        | K::ConnectionAborted
        | K::BrokenPipe
        | K::NotConnected
        | K::UnexpectedEof => ErrorClass::Closed,
        K::PermissionDenied | K::ReadOnlyFilesystem => ErrorClass::Denied,
        K::StorageFull | K::QuotaExceeded => ErrorClass::Full,
        // The reply exceeded its size limit.
        K::FileTooLarge => ErrorClass::Protocol,
        _ => ErrorClass::Other,
    }
}

/// An error on an open connection. It is fatal because unread bytes can remain on the connection.
pub(crate) fn connection(e: &io::Error, timeout: Duration) -> StoreError {
    if let Some(words) = tls_fault::problem(e) {
        return StoreError::fatal(ErrorClass::Refused, words);
    }
    match class(e.kind()) {
        ErrorClass::Timeout => StoreError::fatal(ErrorClass::Timeout, no_answer(timeout)),
        class @ (ErrorClass::Other | ErrorClass::Protocol) => StoreError::fatal(class, text(e)),
        class => {
            StoreError::fatal(class, format!("the server closed the connection ({})", text(e)))
        }
    }
}

/// An error of a call that opened its own connection. A timeout or a closed connection does not end
/// the client; a refused connection or a rejected password does.
pub(crate) fn of_one_call(mut e: StoreError) -> StoreError {
    if matches!(e.class, ErrorClass::Timeout | ErrorClass::Closed) {
        e.fatal = false;
    }
    e
}

/// The error for a host name that does not resolve.
pub(crate) fn unknown_host() -> io::Error {
    let words = "its host name has no address (expected a known host)";
    io::Error::new(io::ErrorKind::HostUnreachable, words)
}

/// An error while connecting to `address`.
pub(crate) fn connecting(e: &io::Error, address: &str, timeout: Duration) -> StoreError {
    let (at, kind) = (format!("`{address}`"), e.kind());
    match (class(kind), kind) {
        (ErrorClass::Timeout, _) => {
            StoreError::fatal(ErrorClass::Timeout, format!("{at}: {}", no_answer(timeout)))
        }
        (_, io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound) => StoreError::fatal(
            ErrorClass::Refused,
            format!("nothing is listening at {at} (expected a running server: start it)"),
        ),
        (class @ ErrorClass::Refused, _) => {
            StoreError::fatal(class, format!("cannot connect to {at}: {}", text(e)))
        }
        (class, _) => StoreError::fatal(class, format!("cannot connect to {at}: {kind}")),
    }
}

/// A file error; the next call can succeed.
pub(crate) fn file(what: &str, e: &io::Error) -> StoreError {
    StoreError::soft(class(e.kind()), format!("{what}: {}", text(e)))
}

/// The message for a missing reply.
pub(crate) fn no_answer(timeout: Duration) -> String {
    format!("no answer within {} ms", timeout.as_millis())
}

/// The hint for a missing password.
pub(crate) const PASSWORD_HINT: &str = " (expected a password: in the URL, by --password-file \
     NAME=FILE or in the environment as CACHEDYNO_PASSWORD_NAME)";

/// A system error in lower case, without its number.
pub(crate) fn text(e: &io::Error) -> String {
    let words = e.to_string();
    words.split(" (os error").next().unwrap_or_default().to_lowercase()
}

/// A server's text made safe for one line: control characters are escaped, and at most 200
/// characters are kept.
pub(crate) fn printable(bytes: &[u8]) -> String {
    let line = String::from_utf8_lossy(bytes);
    let mut shown = String::new();
    for c in line.chars() {
        if controls(c) { shown.extend(c.escape_default()) } else { shown.push(c) }
    }
    shown.chars().take(200).collect()
}

/// True for characters that move a terminal's cursor, change its colours or reverse the text
/// direction.
fn controls(c: char) -> bool {
    let turns =
        matches!(c, '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    turns || c.is_control()
}

/// Like [`printable`], limited to `bytes_max` bytes.
pub(crate) fn printable_within(bytes: &[u8], bytes_max: usize) -> String {
    let mut text = printable(&bytes[..bytes.len().min(bytes_max)]);
    // An invalid UTF-8 byte has become three bytes.
    while text.len() > bytes_max {
        text.pop();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_or_quota_has_class_full() {
        let e = io::Error::from_raw_os_error(nix::libc::ENOSPC);
        assert_eq!(file("write", &e).class, ErrorClass::Full);
        assert_eq!(file("write", &e).message, "write: no space left on device");
        let e = io::Error::from_raw_os_error(nix::libc::EDQUOT);
        assert_eq!(file("write", &e).class, ErrorClass::Full);
        assert!(!file("write", &e).fatal);
    }

    #[test]
    fn server_text_stays_on_one_line() {
        assert_eq!(printable(b"a\r\nb\x1b[31m"), "a\\r\\nb\\u{1b}[31m");
        assert_eq!(printable("a\u{202e}b".as_bytes()), "a\\u{202e}b");
        assert_eq!(printable(&[b'x'; 1000]).len(), 200);
        assert_eq!(printable_within(b"a\x00b", 2), "a\\");
        assert_eq!(printable_within(&[0xff; 1000], 200), "\u{fffd}".repeat(66));
    }
}
