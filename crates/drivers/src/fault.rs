//! Errors of the operating system as error classes.

use std::io;
use std::time::Duration;

use model::ErrorClass;
use workloads::store::StoreError;

/// The class of an error of a socket or a file.
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
        // An answer longer than any that is expected.
        K::FileTooLarge => ErrorClass::Protocol,
        _ => ErrorClass::Other,
    }
}

/// An error of an open connection; what is left in it belongs to nobody, so it is fatal.
pub(crate) fn connection(e: &io::Error, timeout: Duration) -> StoreError {
    match class(e.kind()) {
        ErrorClass::Timeout => StoreError::fatal(ErrorClass::Timeout, no_answer(timeout)),
        class @ (ErrorClass::Other | ErrorClass::Protocol) => StoreError::fatal(class, text(e)),
        class => StoreError::fatal(class, format!("the server ended the connection ({})", text(e))),
    }
}

/// An error of a call that has a connection of its own: what broke that one does not end the
/// client; nobody listening any more, or another password, does.
pub(crate) fn of_one_call(mut e: StoreError) -> StoreError {
    if matches!(e.class, ErrorClass::Timeout | ErrorClass::Closed) {
        e.fatal = false;
    }
    e
}

/// An error while a connection to `address` was made.
pub(crate) fn connecting(kind: io::ErrorKind, address: &str, timeout: Duration) -> StoreError {
    let at = format!("`{address}`");
    match (class(kind), kind) {
        (ErrorClass::Timeout, _) => {
            StoreError::fatal(ErrorClass::Timeout, format!("{at}: {}", no_answer(timeout)))
        }
        (ErrorClass::Refused, _) | (_, io::ErrorKind::NotFound) => StoreError::fatal(
            ErrorClass::Refused,
            format!("nobody listens at {at} (expected a running server: start it)"),
        ),
        (class, io::ErrorKind::AddrNotAvailable) => StoreError::fatal(
            class,
            format!("cannot connect to {at}: its host has no address (expected one that is known)"),
        ),
        (class, _) => StoreError::fatal(class, format!("cannot connect to {at}: {kind}")),
    }
}

/// An error of a file; the next call may succeed.
pub(crate) fn file(what: &str, e: &io::Error) -> StoreError {
    StoreError::soft(class(e.kind()), format!("{what}: {}", text(e)))
}

/// The words for a missing answer.
pub(crate) fn no_answer(timeout: Duration) -> String {
    format!("no answer within {} ms", timeout.as_millis())
}

/// What cures the lack of a password.
pub(crate) const PASSWORD: &str = " (expected a password: in the URL, by --password-file NAME=FILE \
     or in the environment as CACHEDYNO_PASSWORD_NAME)";

/// A system error in lower case and without its number.
pub(crate) fn text(e: &io::Error) -> String {
    let words = e.to_string();
    words.split(" (os error").next().unwrap_or_default().to_lowercase()
}

/// A server's words, fit for one line: what would control a terminal is spelled out, at most 200
/// characters.
pub(crate) fn words(bytes: &[u8]) -> String {
    let line = String::from_utf8_lossy(bytes);
    let mut shown = String::new();
    for c in line.chars() {
        if controls(c) { shown.extend(c.escape_default()) } else { shown.push(c) }
    }
    shown.chars().take(200).collect()
}

/// True for what moves a terminal's cursor, changes its colours or turns the writing around.
fn controls(c: char) -> bool {
    let turns =
        matches!(c, '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    turns || c.is_control()
}

/// The same of a server's words, in at most that many bytes.
pub(crate) fn words_within(bytes: &[u8], bytes_max: usize) -> String {
    let mut text = words(&bytes[..bytes.len().min(bytes_max)]);
    // A byte that is no text has become three.
    while text.len() > bytes_max {
        text.pop();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_full() {
        let e = io::Error::from_raw_os_error(nix::libc::ENOSPC);
        assert_eq!(file("write", &e).class, ErrorClass::Full);
        assert_eq!(file("write", &e).message, "write: no space left on device");
        let e = io::Error::from_raw_os_error(nix::libc::EDQUOT);
        assert_eq!(file("write", &e).class, ErrorClass::Full);
        assert!(!file("write", &e).fatal);
    }

    #[test]
    fn a_servers_words_stay_on_one_line() {
        assert_eq!(words(b"a\r\nb\x1b[31m"), "a\\r\\nb\\u{1b}[31m");
        assert_eq!(words("a\u{202e}b".as_bytes()), "a\\u{202e}b");
        assert_eq!(words(&[b'x'; 1000]).len(), 200);
        assert_eq!(words_within(b"a\x00b", 2), "a\\");
        assert_eq!(words_within(&[0xff; 1000], 200), "\u{fffd}".repeat(66));
    }
}
