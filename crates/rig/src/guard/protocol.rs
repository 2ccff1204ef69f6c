//! Messages to the guard, one per line, terminated by a line feed.
//!
//! ```text
//! own-process <pid> <session> <start in clock ticks since boot>
//! disown-process <pid>
//! own-directory <absolute path>
//! disown-directory <absolute path>
//! ```
//! In a path, `\` is escaped as `\\` and a line feed as `\n`; all other bytes are literal.

use crate::procfs::Identity;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// Kill it if it still runs at the end.
    OwnProcess(Identity),
    /// It has ended.
    DisownProcess(u32),
    /// Remove it if it still exists at the end.
    OwnDirectory(PathBuf),
    /// It was removed.
    DisownDirectory(PathBuf),
}

impl Line {
    /// Formats the message, including the line feed.
    pub(super) fn encode(&self) -> Vec<u8> {
        match self {
            Self::OwnProcess(Identity { pid, session, start_ticks }) => {
                format!("own-process {pid} {session} {start_ticks}\n").into_bytes()
            }
            Self::DisownProcess(pid) => format!("disown-process {pid}\n").into_bytes(),
            Self::OwnDirectory(path) => encode_path(b"own-directory ", path),
            Self::DisownDirectory(path) => encode_path(b"disown-directory ", path),
        }
    }

    /// Parses a line; `None` if it is truncated (no line feed), unknown, or has a relative path.
    pub(super) fn decode(line: &[u8]) -> Option<Self> {
        let line = line.strip_suffix(b"\n")?;
        if let Some(path) = line.strip_prefix(b"own-directory ") {
            return Some(Self::OwnDirectory(decode_path(path)?));
        }
        if let Some(path) = line.strip_prefix(b"disown-directory ") {
            return Some(Self::DisownDirectory(decode_path(path)?));
        }
        let mut words = std::str::from_utf8(line).ok()?.split(' ');
        let name = words.next()?;
        let pid = words.next()?.parse().ok()?;
        let line = match name {
            "own-process" => Self::OwnProcess(Identity {
                pid,
                session: words.next()?.parse().ok()?,
                start_ticks: words.next()?.parse().ok()?,
            }),
            "disown-process" => Self::DisownProcess(pid),
            _ => return None,
        };
        words.next().is_none().then_some(line)
    }
}

fn encode_path(name: &[u8], path: &Path) -> Vec<u8> {
    let mut line = name.to_vec();
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'\\' => line.extend_from_slice(b"\\\\"),
            b'\n' => line.extend_from_slice(b"\\n"),
            other => line.push(*other),
        }
    }
    line.push(b'\n');
    line
}

fn decode_path(text: &[u8]) -> Option<PathBuf> {
    let mut path = Vec::with_capacity(text.len());
    let mut bytes = text.iter();
    while let Some(byte) = bytes.next() {
        path.push(match byte {
            b'\\' => match bytes.next()? {
                b'\\' => b'\\',
                b'n' => b'\n',
                _ => return None,
            },
            other => *other,
        });
    }
    let path = PathBuf::from(OsString::from_vec(path));
    path.is_absolute().then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_round_trips() {
        let strange = PathBuf::from(OsString::from_vec(b"/a b\\n\n\xff".to_vec()));
        for line in [
            Line::OwnProcess(Identity { pid: 12, session: 3, start_ticks: 99 }),
            Line::DisownProcess(12),
            Line::OwnDirectory(strange.clone()),
            Line::DisownDirectory(strange),
        ] {
            let bytes = line.encode();
            assert_eq!(bytes.iter().position(|b| *b == b'\n'), Some(bytes.len() - 1));
            assert_eq!(Line::decode(&bytes), Some(line));
        }
    }

    #[test]
    fn truncated_and_invalid_messages_are_rejected() {
        for line in [
            &b"own-directory /a"[..],
            b"own-directory a\n",
            b"own-directory \n",
            b"own-directory /a\\\n",
            b"own-process 1 2\n",
            b"own-process 1 2 3 4\n",
            b"own-process x 2 3\n",
            b"disown-process -1\n",
            b"remove /\n",
            b"\n",
        ] {
            assert_eq!(Line::decode(line), None, "{}", String::from_utf8_lossy(line));
        }
    }
}
